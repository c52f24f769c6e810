"""Euclidean ball around the origin."""

from __future__ import annotations

from dataclasses import dataclass, field

from scipy.linalg.blas import dnrm2

from pommel._validation import check_number
from pommel.problem import ConvexSet, Vector

__all__ = ["L2Ball"]


@dataclass(frozen=True)
class L2Ball(ConvexSet):
    """The Euclidean ball {z : |z| <= radius}.

    Its projection scales a point outside to length `radius`. Norms are taken by BLAS, which neither overflows nor
    underflows.

    Parameters
    ----------
    radius : float
        Radius, > 0.

    Examples
    --------
    >>> import numpy as np
    >>> L2Ball(1.0).project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    radius: float = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", check_number(self.radius, "L2Ball(radius)"))
        object.__setattr__(self, "diameter", 2.0 * self.radius)

    def project(self, z: Vector) -> Vector:
        norm = dnrm2(z)
        return z if norm <= self.radius else z / norm * self.radius


EXAMPLES = (L2Ball(1.0), L2Ball(1e-3))
