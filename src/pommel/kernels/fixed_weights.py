"""Weights of rows that no adversary moves."""

from __future__ import annotations

from typing import Any, NamedTuple

from pommel._jit import state
from pommel.problem import Vector
from pommel.sets.ball_within import BallWithin
from pommel.sets.point import Point


@state
class FixedWeights(NamedTuple):
    """y = y0."""

    y0: Any

    def weight(self, i):
        return self.y0[i]

    def ascend(self, i, q, ascent):
        return True

    def point(self) -> Vector:
        """y."""
        return self.y0


def dual_state(problem: Any, rule: Any, y: Vector) -> FixedWeights | None:
    """The state for a dual set of a single point."""
    base = rule.dual_set.base if isinstance(rule.dual_set, BallWithin) else rule.dual_set
    return FixedWeights(y) if isinstance(base, Point) and rule.sampling == "uniform" else None
