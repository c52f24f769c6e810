"""Squared Euclidean norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dnrm2

from pommel._validation import check_number
from pommel.problem import Vector

__all__ = ["L2"]


@dataclass(frozen=True)
class L2:
    r"""Ridge penalty.

    .. math:: g(x) = \tfrac{\lambda}{2} \|x\|^2, \qquad g^*(u) = \|u\|^2 / (2 \lambda)

    It is lam-strongly convex, which is what makes P strongly convex and RSPD-sc converge like O(1/T) (Theorem 1).

    Parameters
    ----------
    lam : float
        The strength, > 0.

    Examples
    --------
    >>> import numpy as np
    >>> L2(0.5).value(np.array([1.0, 1.0]))
    0.5
    """

    lam: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", check_number(self.lam, "L2(lam)"))

    @property
    def strong_convexity(self) -> float:
        return self.lam

    def value(self, x: Vector) -> float:
        return 0.5 * self.lam * float(x @ x)

    def subgradient(self, x: Vector) -> Vector:
        return self.lam * x

    def lipschitz(self, radius: float) -> float:
        return self.lam * radius

    def conjugate(self, u: Vector, radius: float = np.inf) -> float:
        length = float(dnrm2(u))
        reached = min(length / self.lam, radius)  # |x| at the supremum
        return reached * (length - 0.5 * self.lam * reached)


EXAMPLES = (L2(0.1), L2(3.0))
