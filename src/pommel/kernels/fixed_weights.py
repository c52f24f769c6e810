"""Weights of rows that no adversary moves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pommel._jit import prefetch, state
from pommel.problem import Vector
from pommel.sets.ball_within import BallWithin
from pommel.sets.point import Point


@state
class FixedWeights(NamedTuple):
    """y = y0."""

    y0: Any

    def expect(self, i):
        prefetch(self.y0, np.intp(i))

    def weight(self, i):
        return self.y0[i]

    def ascend(self, i, importance, ascent):
        return True

    def point(self) -> Vector:
        """y."""
        return self.y0


def dual_state(problem: Any, rule: Any, y: Vector) -> FixedWeights | None:
    """The state for a dual set of a single point."""
    base = rule.dual_set.base if isinstance(rule.dual_set, BallWithin) else rule.dual_set
    fits = type(base) is Point and y.size == problem.n and rule.sampling == "uniform"
    return FixedWeights(y) if fits else None
