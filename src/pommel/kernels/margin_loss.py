"""Gradients of y'l(x), l_i(x) = h(a_i'x, b_i), for any loss h."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pommel._jit import pointer, prefetch, state
from pommel.problems.dro import DRO


@state
class MarginLoss(NamedTuple):
    """A loss as two function pointers, and the labels it is given."""

    labels: Any
    loss_value: Any  # no field may have the name of a protocol's method
    loss_derivative: Any

    def expect(self, i):
        prefetch(self.labels, np.intp(i))

    def sample(self, i, q, margin, x, y):
        label = self.labels[i]
        return y.weight(i) / q * self.loss_derivative(margin, label), self.loss_value(margin, label), 0, 0.0


def model_state(problem: Any) -> MarginLoss | None:
    """The state of a `DRO` problem; None for others."""
    if type(problem) is not DRO:  # a subclass may have other gradients
        return None
    return MarginLoss(problem.labels, pointer(problem.loss, "value"), pointer(problem.loss, "derivative"))
