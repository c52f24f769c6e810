"""No regularizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dnrm2

from pommel.problem import Vector

__all__ = ["NoRegularizer"]


@dataclass(frozen=True)
class NoRegularizer:
    """g = 0, with conjugate 0 at 0 and infinity elsewhere: what `regularizer=None` stands for."""

    strong_convexity = 0.0

    def value(self, x: Vector) -> float:
        return 0.0

    def subgradient(self, x: Vector) -> Vector:
        return np.zeros_like(x)

    def lipschitz(self, radius: float) -> float:
        return 0.0

    def conjugate(self, u: Vector, radius: float = np.inf) -> float:
        return radius * float(dnrm2(u)) if np.any(u) else 0.0


EXAMPLES = (NoRegularizer(),)
