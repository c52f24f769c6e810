"""Gradients of y'l(x), l_i(x) = h(a_i'x, b_i), for any loss h."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pommel._jit import pointer, prefetch, state
from pommel.problems.dro import DRO


@state
class MarginLoss(NamedTuple):
    """A loss as a function pointer, and the labels it is given."""

    labels: Any
    loss: Any  # (margin, label) -> value and derivative

    def expect(self, i):
        prefetch(self.labels, np.intp(i))

    def sample(self, i, importance, margin, x, y):
        loss, derivative = self.loss(margin, self.labels[i])
        return y.weight(i) * importance * derivative, loss, 0, 0.0


def model_state(problem: Any) -> MarginLoss | None:
    """The state of a `DRO` problem; None for others."""
    if type(problem) is not DRO:  # a subclass may have other gradients
        return None
    return MarginLoss(problem.labels, pointer(problem.loss))
