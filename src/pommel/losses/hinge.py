"""Hinge loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pommel.losses.smoothed_hinge import SmoothedHinge

__all__ = ["Hinge"]


@dataclass(frozen=True)
class Hinge:
    r"""The hinge loss of the support vector machine.

    .. math:: h(m, b) = \max(0, 1 - b m), \qquad h^*(s) = b s \text{ for } b s \in [-1, 0], \infty \text{ elsewhere}

    with labels b = -1 or +1. Lipschitz constant 1, not smooth: the kink lies at b m = 1, where the derivative is
    taken as 0.

    References
    ----------
    .. [1] Cortes and Vapnik, Support-vector networks, Machine Learning 20, 1995.

    Examples
    --------
    >>> float(Hinge().value(0.5, -1.0))
    1.5
    """

    lipschitz = 1.0
    smoothness = np.inf
    infimum = 0.0

    def value(self, margin: Any, label: Any) -> Any:
        return np.maximum(0.0, 1.0 - label * margin)

    def derivative(self, margin: Any, label: Any) -> Any:
        return -label * (label * margin < 1.0)

    def conjugate(self, slope: Any, label: Any) -> Any:
        s = label * slope
        return np.where((s >= -1.0) & (s <= 0.0), s, np.inf)

    def pieces(self, label: Any) -> tuple[tuple[Any, Any], ...]:
        return (0.0, 0.0), (-label, 1.0)

    def smoothed(self, width: float) -> SmoothedHinge:
        return SmoothedHinge(width)


EXAMPLES = (Hinge(),)
