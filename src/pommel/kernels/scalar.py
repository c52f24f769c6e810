"""A single dual variable in an interval, with phi*(y) = (curvature / 2) y^2: the alpha of AUC."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pommel._jit import state
from pommel.problem import Vector
from pommel.sets.ball_within import BallWithin
from pommel.sets.l2_ball import L2Ball
from pommel.sets.point import is_zero
from pommel.sets.whole_space import WholeSpace


@state
class Scalar(NamedTuple):
    """y <- Pi(y + eta (ascent - curvature y))."""

    y: Any  # an array of length one
    step: float  # eta_y
    curvature: float
    low: float
    high: float

    def expect(self, i):
        pass

    def weight(self, i):
        return self.y[0]

    def ascend(self, i, importance, ascent):
        y = self.y[0]
        self.y[0] = min(max(y + self.step * (ascent - self.curvature * y), self.low), self.high)
        return True

    def point(self) -> Vector:
        """The dual variable as a vector of length one."""
        return self.y.copy()


def dual_state(problem: Any, rule: Any, y: Vector) -> Scalar | None:
    """The state for one dual variable and a quadratic phi* around 0: on the line all balls are intervals."""
    base, low, high = rule.dual_set, -np.inf, np.inf
    if y.size != 1 or problem.dual_curvature is None or rule.sampling != "uniform" or rule.center is not None:
        return None
    while isinstance(base, BallWithin):
        low, high = max(low, base.center[0] - base.ball_radius), min(high, base.center[0] + base.ball_radius)
        base = base.base
    if type(base) not in (L2Ball, WholeSpace) and not is_zero(base):
        return None
    low, high = max(low, -base.radius), min(high, base.radius)
    return Scalar(y.copy(), float(rule.dual_step), float(problem.dual_curvature), float(low), float(high))
