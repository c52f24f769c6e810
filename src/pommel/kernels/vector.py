"""The primal variable as a lazy vector: a step costs the non-zeros of its row, with averaging, shrinking and balls.

    x = (w, t),   w = s z + c w_0

with an anchor w_0, where the stage started (c = 0 where no ball around it is needed), and few plain coordinates t (the
thresholds of AUC). Shrinking and projecting onto balls around 0 and around the start change s and c alone, given |z|^2
and w_0'z, which are kept up to date. The sum of all iterates is  sum(s) z + sum(c) w_0 + q:  where z changes by D after
sum(s) has been counted, q takes -sum(s) D.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pommel._jit import kernel, prefetch, state
from pommel.problem import Vector
from pommel.regularizers.l2 import L2
from pommel.regularizers.none import NoRegularizer
from pommel.sets.ball_within import BallWithin
from pommel.sets.l2_ball import L2Ball
from pommel.sets.point import is_zero
from pommel.sets.product import Product
from pommel.sets.whole_space import WholeSpace

# Where the changing scalars lie in a state's array f; A_Z and A_W are the sampled row's products with z and w_0.
S, C, SUM_S, SUM_C, Z_Z, W_Z, A_Z, A_W, AGE = range(9)

FOLD = 1e-3
"""z takes up s when it has fallen below this: changes of z are divided by s and would drown older ones in q."""

REFRESH = 4096
"""Inner products are computed anew after max(d, this) steps, so that rounding errors do not add up."""


@state
class LazyVector(NamedTuple):
    """x and its running sum. Arrays are written to; numbers hold for one stage."""

    vectors: Any  # rows (z_j, q_j) or, where there is an anchor, (z_j, q_j, w_0j)
    t: Any  # plain coordinates
    sum_t: Any
    f: Any
    norms: Any  # |a_i|^2, or empty where there is no ball
    reach: Any  # the base set has |t_j| <= reach_j
    start_t: Any
    step: float  # eta_x
    decay: float  # 1 - eta_x lambda, for the regularizer (lambda / 2) |w|^2
    ball: float  # radius of the base set's ball around 0, infinite for none
    whole: bool  # whether that ball bounds (w, t) instead of w
    start_ball: float  # radius of the ball around the start, infinite for none
    start_square: float  # |w_0|^2
    t_unit: float  # how much of t counts as length one

    def expect(self, i):
        if self.norms.size:
            prefetch(self.norms, np.intp(i))

    def margin(self, rows, i):
        f = self.f
        f[A_Z] = rows.dot(i, self.vectors, 0)
        margin = f[S] * f[A_Z]
        if self.vectors.shape[1] == 3:
            f[A_W] = rows.dot(i, self.vectors, 2)
            margin += f[C] * f[A_W]
        return margin

    def count(self):
        f = self.f
        f[SUM_S] += f[S]
        f[SUM_C] += f[C]
        for j in range(self.t.size):
            self.sum_t[j] += self.t[j]

    def descend(self, rows, i, slope, j, t_slope):
        """After `margin` of the same row: the products it took are used here."""
        f = self.f
        f[S] *= self.decay
        f[C] *= self.decay
        change = (-self.step / f[S]) * slope  # the division does not wait for the slope
        if change != 0.0:
            if self.norms.size:
                f[Z_Z] += change * (2.0 * f[A_Z] + change * self.norms[i])
                f[W_Z] += change * f[A_W]
            rows.add(i, change, -change * f[SUM_S], self.vectors)
        if self.t.size:
            self.t[j] -= self.step * self.t_unit**2 * t_slope
        return math.isfinite(change + t_slope + f[Z_Z])

    def project(self):
        f = self.f
        if self.norms.size:
            f[AGE] += 1.0
            if f[AGE] >= max(self.vectors.shape[0], REFRESH):
                refresh(self)
            project_onto_balls(self)
        if f[S] < FOLD:
            fold(self)

    def point(self) -> Vector:
        """x."""
        x = self._written(self.f[S], self.f[C])
        x[self.vectors.shape[0] :] = self.t
        return x

    def running_sum(self) -> Vector:
        """The sum of all x counted."""
        total = self._written(self.f[SUM_S], self.f[SUM_C])
        total[: self.vectors.shape[0]] += self.vectors[:, 1]
        total[self.vectors.shape[0] :] = self.sum_t
        return total

    def _written(self, s: float, c: float) -> Vector:
        """s z + c w_0, with room for t; no more memory is taken than the result needs."""
        columns, anchored = self.vectors.shape[0], self.vectors.shape[1] == 3
        x = np.empty(columns + self.t.size)
        np.multiply(self.vectors[:, 0], s, out=x[:columns])
        if anchored and c != 0.0:
            x[:columns] += c * self.vectors[:, 2]
        return x


@kernel
def refresh(x):
    """|z|^2 and w_0'z, in O(d)."""
    zz = wz = 0.0
    for j in range(x.vectors.shape[0]):
        zz += x.vectors[j, 0] ** 2
        if x.vectors.shape[1] == 3:
            wz += x.vectors[j, 0] * x.vectors[j, 2]
    x.f[Z_Z], x.f[W_Z], x.f[AGE] = zz, wz, 0.0


@kernel
def fold(x):
    """s z becomes z, in O(d)."""
    f, vectors = x.f, x.vectors
    for j in range(vectors.shape[0]):
        vectors[j, 1] += f[SUM_S] * vectors[j, 0]
        vectors[j, 0] *= f[S]
    f[S], f[SUM_S] = 1.0, 0.0
    refresh(x)


@kernel
def project_onto_balls(x):
    """Onto the base set, or to the point of `BallWithin`'s path that lies start_ball away from the start."""
    share, shrink = 1.0, into_base(x, 1.0)
    if x.start_ball < math.inf and moved(x, share, shrink) > x.start_ball:
        share, low, high = x.start_ball / moved(x, 1.0, 1.0), 0.0, 1.0
        shrink = into_base(x, share)
        excess = moved(x, share, shrink) - x.start_ball
        while abs(excess) > 4e-16 * x.start_ball:  # the base set bends the path on the way
            low, high = (low, share) if excess > 0.0 else (share, high)
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            share, shrink = middle, into_base(x, middle)
            excess = moved(x, share, shrink) - x.start_ball
    elif shrink == 1.0 and not x.t.size:
        return
    for j in range(x.t.size):
        x.t[j] = t_on_path(x, j, share, shrink)
    x.f[C] = shrink * (1.0 - share + share * x.f[C]) if x.vectors.shape[1] == 3 else 0.0
    x.f[S] *= shrink * share


@kernel
def into_base(x, share):
    """The factor that brings the point start + share (x - start) into the base set's ball."""
    if x.ball == math.inf:
        return 1.0
    s, c = share * x.f[S], 1.0 - share + share * x.f[C]
    square = s * s * x.f[Z_Z]
    if x.vectors.shape[1] == 3:
        square += c * (c * x.start_square + 2.0 * s * x.f[W_Z])
    if x.whole:
        for j in range(x.t.size):
            square += (x.start_t[j] + share * (x.t[j] - x.start_t[j])) ** 2
    return x.ball / math.sqrt(square) if square > x.ball**2 else 1.0


@kernel
def t_on_path(x, j, share, shrink):
    """t_j of that point in the base set."""
    t = x.t[j] if share == 1.0 else x.start_t[j] + share * (x.t[j] - x.start_t[j])
    return shrink * t if x.whole else min(max(t, -x.reach[j]), x.reach[j])


@kernel
def moved(x, share, shrink):
    """How far that point in the base set lies from the start."""
    s, c = shrink * share * x.f[S], shrink * (1.0 - share + share * x.f[C]) - 1.0
    square = s * s * x.f[Z_Z] + c * (c * x.start_square + 2.0 * s * x.f[W_Z])
    for j in range(x.t.size):
        square += ((t_on_path(x, j, share, shrink) - x.start_t[j]) / x.t_unit) ** 2
    return math.sqrt(max(square, 0.0))


def lazy_vector(
    x: Vector,
    n_plain: int,
    *,
    norms: Vector,
    step: float,
    decay: float,
    ball: float,
    whole: bool,
    reach: Vector,
    start_ball: float,
    t_unit: float = 1.0,
) -> LazyVector:
    """The state at the start x = (w, t) of a stage, t being the last `n_plain` coordinates."""
    columns = x.size - n_plain
    w, t = x[:columns], x[columns:].copy()
    anchored, f = start_ball < np.inf, np.zeros(9)
    vectors = np.zeros((columns, 3 if anchored else 2))
    vectors[:, 2 if anchored else 0] = w
    f[S], f[C] = 1.0, float(anchored)
    bounded = min(ball, start_ball, *(() if whole else reach)) < np.inf
    lazy = LazyVector(
        vectors=vectors,
        t=t,
        sum_t=np.zeros(n_plain),
        f=f,
        norms=norms if bounded else np.zeros(0),
        reach=np.asarray(reach, dtype=np.float64),
        start_t=t.copy(),
        step=float(step),
        decay=float(decay),
        ball=float(ball),
        whole=whole,
        start_ball=float(start_ball),
        start_square=float(w @ w),
        t_unit=float(t_unit),
    )
    if bounded:
        refresh(lazy)
    return lazy


def primal_state(problem: Any, rule: Any, x: Vector) -> LazyVector | None:
    """The state for L2 or no regularizer and balls around 0 and the start; None for anything else."""
    n_plain, base, ball, start_ball = problem.d - problem.rows.d, rule.primal_set, np.inf, np.inf
    decay = 1.0 - rule.primal_step * problem.regularizer.strong_convexity
    # Types are compared, not instances: a subclass may have another gradient or projection.
    if type(problem.regularizer) not in (L2, NoRegularizer) or not decay > 0.0:
        return None
    while type(base) is BallWithin:
        if base.ball_radius >= base.base.diameter:
            pass
        elif np.array_equal(base.center, x):
            start_ball = min(start_ball, base.ball_radius)
        elif not base.center.any():
            ball = min(ball, base.ball_radius)
        else:
            return None
        base = base.base
    whole, reach, t_unit = True, np.full(n_plain, np.inf), 1.0
    if type(base) is L2Ball:
        ball = min(ball, base.radius)
    elif type(base) is Product and ball == np.inf:
        (size, w_set), *intervals = base.blocks
        round_ones = all(type(part) in (L2Ball, WholeSpace) or is_zero(part) for _, part in base.blocks)
        w_unit, t_unit, *others = base.units
        alike = w_unit == 1.0 and all(unit == t_unit for unit in others)
        if size != problem.rows.d or len(intervals) != n_plain or not (round_ones and alike):
            return None
        whole, ball, reach = False, w_set.radius, np.array([part.radius for _, part in intervals])
    elif type(base) is not WholeSpace:
        return None
    return lazy_vector(
        x,
        n_plain,
        norms=problem.rows.squared_norms,
        step=rule.primal_step,
        decay=decay,
        ball=ball,
        whole=whole,
        reach=reach,
        start_ball=start_ball,
        t_unit=t_unit,
    )
