"""Gradients of the square-loss AUC problem in w, t = (a, b) and alpha; see `pommel.problems.auc`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pommel._jit import prefetch, state
from pommel.problems.auc import AUC


@state
class SquareAUC(NamedTuple):
    """Labels z_i = +-1 and the share p of positives."""

    labels: Any
    p: float

    def expect(self, i):
        prefetch(self.labels, np.intp(i))

    def sample(self, i, importance, margin, x, y):
        label = self.labels[i]
        j, k = (0, 1.0 - self.p) if label > 0.0 else (1, self.p)
        residual = margin - x.t[j]
        slope = 2.0 * k * (residual - label * (1.0 + y.weight(i)))
        return slope, -2.0 * k * label * margin, j, -2.0 * k * residual


def model_state(problem: Any) -> SquareAUC | None:
    """The state of an `AUC` problem; None for others."""
    # A subclass may have other gradients.
    return SquareAUC(problem.labels, problem.p) if type(problem) is AUC else None
