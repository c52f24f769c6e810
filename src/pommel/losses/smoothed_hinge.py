"""Smoothed hinge loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pommel._validation import check_number

__all__ = ["SmoothedHinge"]


@dataclass(frozen=True)
class SmoothedHinge:
    r"""The hinge loss with its kink rounded over a width gamma.

    .. math:: h(m, b) = \max_{0 \le t \le 1} t (1 - b m) - \tfrac{\gamma}{2} t^2, \qquad
              h^*(s) = \tfrac{\gamma}{2} t^2 - t, \; t = -b s \in [0, 1], \infty \text{ elsewhere}

    with labels b = -1 or +1: zero for b m >= 1, linear below 1 - gamma, a parabola in between. Lipschitz constant 1,
    smooth with constant 1 / gamma, and at most gamma / 2 below the hinge.

    Parameters
    ----------
    gamma : float, default=1.0
        The width, > 0.

    References
    ----------
    .. [1] Shalev-Shwartz and Zhang, Stochastic dual coordinate ascent methods for regularized loss minimization,
       JMLR 14, 2013.

    Examples
    --------
    >>> float(SmoothedHinge(1.0).value(0.0, 1.0))
    0.5
    """

    gamma: float = 1.0

    lipschitz = 1.0
    infimum = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_number(self.gamma, "SmoothedHinge(gamma)"))

    @property
    def smoothness(self) -> float:
        return 1.0 / self.gamma

    def value(self, margin: Any, label: Any) -> Any:
        below = 1.0 - label * margin
        t = np.minimum(np.maximum(below / self.gamma, 0.0), 1.0)
        return t * (below - 0.5 * self.gamma * t)

    def derivative(self, margin: Any, label: Any) -> Any:
        return -label * np.minimum(np.maximum((1.0 - label * margin) / self.gamma, 0.0), 1.0)

    def second_derivative(self, margin: Any, label: Any) -> Any:
        below = 1.0 - label * margin
        return ((below > 0.0) & (below < self.gamma)) / self.gamma

    def conjugate(self, slope: Any, label: Any) -> Any:
        t = -label * slope
        return np.where((t >= 0.0) & (t <= 1.0), t * (0.5 * self.gamma * t - 1.0), np.inf)


EXAMPLES = (SmoothedHinge(), SmoothedHinge(0.01))
