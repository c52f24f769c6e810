"""Weights of rows on the simplex, moved by sampled gradients of y'l - phi*(y) with grad phi* = slope (y / y0 - 1).

In relative weights r = y / y0 and the metric of the sample weights, a gradient step of length eta at row i is

    whole:    r <- Pi(c r + (1 - c) + (n eta / q_i) l_i e_i),  c = 1 - n eta slope
    centred:  r <- Pi(r + (n eta / q_i) (l_i - slope (r_i - 1) - center) e_i)

where q_i is the row's probability. The projection does not see the constant that "whole" adds to all r, so it is
left out. The center moves as `moved_center` of the reference engine has it, which takes no more than the row's own r.

Within a ball of radius R around the stage's start, in that metric, a step is refused when the length of the path may
have passed R: the exact projection then costs O(n) and is somebody else's work.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pommel._jit import kernel, prefetch, state
from pommel.kernels.heap_simplex import HeapSimplex, heap_simplex
from pommel.kernels.tree_simplex import tree_simplex
from pommel.problem import Vector
from pommel.sets.ball_within import BallWithin
from pommel.sets.simplex import Simplex

PATH, CENTER = 0, 1
"""Entries of `moving`."""


@state
class Adversary(NamedTuple):
    """The dual variable on the simplex."""

    weights: Any  # a lazy structure of the relative weights
    y0: Any
    moving: Any  # array: a bound of the distance from the start, and the center
    n: float  # sum of the sample weights
    step: float  # eta_y
    slope: float
    centred: bool
    ball: float  # R, infinite for none
    spread: float  # a bound of |start - y0|

    def expect(self, i):
        prefetch(self.y0, np.intp(i))
        self.weights.expect(i)

    def weight(self, i):
        return self.y0[i] * self.weights.value(i)

    def ascend(self, i, importance, ascent):
        c, r = 1.0, 0.0
        if self.centred:
            r = self.weights.value(i)
            ascent -= self.slope * (r - 1.0) + self.moving[CENTER]
        else:
            c -= self.n * self.step * self.slope
        delta = self.n * self.step * importance * ascent
        if self.ball < math.inf:
            # The step before its projection: delta y0_i e_i and (1 - c) (y0 - y), each in the metric n y0.
            length = abs(delta) * math.sqrt(self.y0[i] / self.n) + (1.0 - c) * (self.spread + self.moving[PATH])
            if not self.moving[PATH] + length <= self.ball:
                return False
            self.moving[PATH] += length
        if self.centred:
            self.moving[CENTER] += self.slope * self.y0[i] * (max(r + delta, 0.0) - r)
        self.weights.move(i, c, delta)
        return True

    def point(self) -> Vector:
        """y."""
        r = np.empty(self.y0.size)
        store(self.weights, r)
        return self.y0 * r

    def at(self, y: Vector, dual_set: BallWithin) -> Adversary:
        """The same at y, whose distance from the start is then known exactly."""
        build = heap_simplex if isinstance(self.weights, HeapSimplex) else tree_simplex
        distance = dual_set.distance(y, dual_set.center)
        moving = np.array([distance, self.moving[CENTER]])
        return self._replace(weights=build(_relative(y, self.y0), self.y0), moving=moving)

    @property
    def center(self) -> float | None:
        """The center as it stands."""
        return float(self.moving[CENTER]) if self.centred else None

    def set_free(self) -> Adversary:
        """The same without the ball: it refuses no step."""
        return self._replace(ball=math.inf)


@kernel
def store(weights, r):
    """All relative weights."""
    weights.store(r)


def dual_state(problem: Any, rule: Any, y: Vector) -> Adversary | None:
    """The state for a simplex, within a ball around the start or not, and a quadratic phi*; None for anything else."""
    base, ball, curvature = rule.dual_set, np.inf, problem.dual_curvature
    if type(base) is BallWithin and type(base.base) is Simplex:
        if base.ball_radius < base.base.diameter:
            ball = base.ball_radius
            if not np.array_equal(base.center, y):
                return None
        base = base.base
    whole = rule.center is None
    if type(base) is not Simplex or curvature is None or (whole and not rule.dual_step * curvature < 1.0):
        return None
    n = float(problem.weights.sum())
    return Adversary(
        weights=(heap_simplex if rule.sampling == "uniform" else tree_simplex)(_relative(y, problem.y0), problem.y0),
        y0=problem.y0,
        moving=np.array([0.0, 0.0 if whole else rule.center]),
        n=n,
        step=float(rule.dual_step),
        slope=float(curvature / n),
        centred=not whole,
        ball=float(ball),
        spread=base.distance(y, problem.y0),
    )


def _relative(y: Vector, y0: Vector) -> Vector:
    return np.divide(y, y0, out=np.zeros(y.size), where=y0 > 0.0)
