"""A single point."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pommel.problem import ConvexSet, Vector
from pommel.sets._weighted import WeightedSet

__all__ = ["Point"]


class Point(WeightedSet):
    """The set {point}: the dual set of `Mean`, where no adversary moves.

    Parameters
    ----------
    point : array-like of shape (n,)
        The point.
    weights : array-like of shape (n,), optional
        The metric, >= 0, as in `Simplex`; ones by default.
    """

    diameter = 0.0

    def __init__(self, point: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.point = np.array(point, dtype=np.float64)
        super().__init__(self.point.size, weights)
        self.radius = self.distance(self.point, np.zeros(self.n))

    def project(self, z: Vector) -> Vector:
        return self.point.copy()

    def __repr__(self) -> str:
        return f"Point({self.point!r})"


def is_zero(convex_set: ConvexSet) -> bool:
    """Whether it is {0}."""
    return isinstance(convex_set, Point) and not convex_set.point.any()


EXAMPLES = (Point([3.0]), Point([0.5, 0.5, 0.0], weights=[1.0, 1.0, 0.0]))
