"""Logistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlog1py, xlogy

__all__ = ["Logistic"]


@dataclass(frozen=True)
class Logistic:
    r"""The logistic loss, the negative log-likelihood of logistic regression.

    .. math:: h(m, b) = \log(1 + e^{-b m}), \qquad
              h^*(s) = t \log t + (1 - t) \log(1 - t), \; t = -b s \in [0, 1], \infty \text{ elsewhere}

    with labels b = -1 or +1. Lipschitz constant 1, smooth with constant 1/4. All formulas stay accurate in either
    tail: e^{-|bm|} is the only exponential taken.

    References
    ----------
    .. [1] Mächler, Accurately computing log(1 - exp(-|a|)), 2012.

    Examples
    --------
    >>> float(Logistic().value(-1000.0, 1.0))
    1000.0
    """

    lipschitz = 1.0
    smoothness = 0.25
    infimum = 0.0

    def value(self, margin: Any, label: Any) -> Any:
        m = label * margin
        return np.maximum(0.0, -m) + np.log1p(np.exp(-np.abs(m)))

    def derivative(self, margin: Any, label: Any) -> Any:
        m = label * margin
        return -label * np.exp(np.minimum(0.0, -m)) / (1.0 + np.exp(-np.abs(m)))

    def second_derivative(self, margin: Any, label: Any) -> Any:
        small = np.exp(-np.abs(margin * label))
        return small / (1.0 + small) ** 2

    def conjugate(self, slope: Any, label: Any) -> Any:
        t = -label * slope
        inside = (t >= 0.0) & (t <= 1.0)
        t = np.where(inside, t, 0.0)
        return np.where(inside, xlogy(t, t) + xlog1py(1.0 - t, -t), np.inf)


EXAMPLES = (Logistic(),)
