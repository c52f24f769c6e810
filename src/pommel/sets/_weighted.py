"""The norm of sample weights, which the sets of dual variables share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.blas import dnrm2

from pommel._validation import check_weights
from pommel.problem import ConvexSet, Vector


class WeightedSet(ConvexSet):
    """A set in the norm |z|^2 = sum z_i^2 / weights_i, where rows of weight zero do not count."""

    metric: Vector

    def __init__(self, n: int, weights: ArrayLike | None) -> None:
        self.n = n
        self.metric = check_weights(weights, n, "weights")
        self._massive = self.metric > 0.0
        self._root = np.sqrt(self._per_weight(np.ones(n)))

    def distance(self, a: Vector, b: Vector) -> float:
        return float(dnrm2((a - b) * self._root))

    def _per_weight(self, z: Vector) -> Vector:
        """z / weights, zero for rows of weight zero."""
        return np.divide(z, self.metric, out=np.zeros(self.n), where=self._massive)
