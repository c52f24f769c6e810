"""How rows are drawn: by their sample weights, or by the dual variable."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pommel._jit import state
from pommel.problem import MIX


@state
class ByWeight(NamedTuple):
    """i ~ y0, the same for all rows where `cumulative`, the distribution function of y0, is empty."""

    n: int
    y0: Any
    cumulative: Any

    def draw(self, u, y):
        if self.cumulative.size == 0:
            return np.uintp(u * self.n)  # unsigned: an index that needs no look at its sign
        return np.uintp(np.searchsorted(self.cumulative, u * self.cumulative[-1], side="right"))

    def importance(self, i, y):
        return float(self.n) if self.cumulative.size == 0 else 1.0 / self.y0[i]

    def foresees(self):
        return self.cumulative.size == 0  # else a draw takes as long as a step

    def foresee(self, u):
        return np.uintp(u * self.n)


@state
class ByDual(NamedTuple):
    """i ~ gamma y + (1 - gamma) y0."""

    gamma: float
    y0: Any

    def draw(self, u, y):
        return np.uintp(y.weights.draw(u, self.gamma))

    def importance(self, i, y):
        return 1.0 / (self.gamma * y.weight(i) + (1.0 - self.gamma) * self.y0[i])

    def foresees(self):
        return False

    def foresee(self, u):
        return np.uintp(0)


def sampling_state(problem: Any, rule: Any) -> ByWeight | ByDual:
    """The state for a rule's way of sampling."""
    if rule.sampling == "uniform":
        y0 = problem.y0
        return ByWeight(problem.n, y0, np.zeros(0) if np.ptp(y0) == 0.0 else np.cumsum(y0))
    return ByDual(MIX[rule.sampling], problem.y0)
