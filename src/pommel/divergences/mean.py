"""No adversary: the weighted mean of the losses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pommel.problem import ConvexSet, Vector, WorstCase
from pommel.sets.point import Point

__all__ = ["Mean"]


@dataclass(frozen=True)
class Mean:
    r"""Plain empirical risk: the adversary has no freedom.

    .. math:: \varphi^*(y) = 0 \text{ at } y = y^0, \infty \text{ elsewhere}, \qquad
              \varphi(\ell) = \sum_i y^0_i \ell_i, \qquad A = y^0 = w / n

    It is the limit of every divergence as its strength grows. grad phi is constant, so L = 0 with v = 1.

    Examples
    --------
    >>> import numpy as np
    >>> Mean().conjugate(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    2.0
    """

    def dual_set(self, weights: Vector) -> ConvexSet:
        return Point(weights / weights.sum(), weights)

    def value(self, y: Vector, weights: Vector) -> float:
        return 0.0

    def gradient(self, y: Vector, weights: Vector) -> Vector:
        return np.zeros_like(y)

    def respond(self, losses: Vector, weights: Vector, near: float = np.nan) -> WorstCase:
        y = weights / weights.sum()
        mean = float(losses @ y)
        return WorstCase(y, mean, mean)

    def conjugate(self, losses: Vector, weights: Vector) -> float:
        return float(losses @ (weights / weights.sum()))

    def best_response(self, losses: Vector, weights: Vector) -> Vector:
        return weights / weights.sum()

    def of_robustness(self, robustness: float, n: float) -> Mean:
        if robustness > 0.0:
            raise ValueError(f"Mean() has no robustness to give, got {robustness:g}: take another divergence")
        return self

    def holder(self, weights: Vector) -> tuple[float, float]:
        return 0.0, 1.0

    def gradient_bound(self, weights: Vector) -> float:
        return 0.0

    def response_slopes(self, y: Vector, weights: Vector) -> Vector:
        return np.zeros_like(y)

    def curvature(self, weights: Vector) -> float:
        return 0.0


EXAMPLES = (Mean(),)
