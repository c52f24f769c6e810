"""Newton's method on P, with kinks of the loss rounded less and less."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from pommel._validation import check_choice
from pommel.engines.engine import Engine, Iterate
from pommel.problem import Problem, SmoothLoss, Vector
from pommel.problems._local_model import LocalModel, can_be_rounded, is_smooth
from pommel.problems.dro import DRO
from pommel.regularizers.l2 import L2
from pommel.regularizers.none import NoRegularizer
from pommel.sets.l2_ball import L2Ball
from pommel.sets.whole_space import WholeSpace
from pommel.solvers._conjugate_gradients import conjugate_gradients
from pommel.solvers._quadratic_in_ball import minimise_in_ball
from pommel.solvers._solver import Solver

__all__ = ["Newton"]

NARROWER = 10.0
"""Kinks are rounded over a width that falls by this factor."""

OWN_SHARE = 0.5
"""It falls when the gap of the rounded problem is below this share of what rounding leaves."""

LARGEST_MATRIX = 2000
"""Up to this d the Hessian is formed, if "auto" is to choose."""

MOST_STEPS = 100
"""For one width."""

DECREASE, LENGTHS = 1e-4, 60
"""A step must gain this share of what its slope promises; it is halved so many times at most."""

SAMPLED, SAMPLES, SAMPLE_GAP = 10_000, (32, 6), 1e-2
"""From so many rows on, a smooth problem is first solved on one row in so many, to such a relative gap. With kinks it
does not pay: where they lie on some rows says little of where they lie on all."""

SPREAD = float(np.finfo(np.float64).eps)

FALLEN = 1e-3
"""Margins are read anew where they have fallen to this share."""

NOISE = 8.0 * SPREAD
"""Gains smaller than this share of the value cannot be told from rounding; the gradient then tells more."""


@dataclass(frozen=True, kw_only=True)
class Newton(Solver):
    r"""Newton's method for a distributionally robust linear model, certified.

    Solves :math:`\min_x \varphi(\ell(x)) + g(x)` with phi' Lipschitz, g quadratic or zero, and x anywhere or in a ball
    around 0. phi'' has jumps where a weight reaches zero, so this is a semismooth Newton method [1]_. A loss with kinks
    is rounded, over a width that falls by 10 as soon as the rounded problem is solved as well as rounding is worth
    solving it for. Weights and slopes of the rounded loss are dual feasible: the lower bound that comes with every
    step lies below its objective by the gap of the rounded problem and by what rounding costs, and by no more.

    Parameters
    ----------
    linear_solver : {"auto", "cholesky", "cg"}, default="auto"
        How a step is found: from the Hessian as a matrix, at O(d^3) and one read of the rows, or by conjugate gradients
        from products with it, at two reads each. "auto" takes the matrix where d <= 2000. In a ball that is active its
        eigenvectors are needed, so there "cg" is not taken.

    References
    ----------
    .. [1] Qi and Sun, A nonsmooth version of Newton's method, Math. Program. 58, 1993.
    .. [2] Keerthi and DeCoste, A modified finite Newton method for fast solution of large scale linear SVMs, JMLR 6,
       2005.

    Examples
    --------
    >>> import pommel as pm
    >>> X, labels = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.3]], [1, 1, 0]
    >>> p = pm.DRO(X, labels, divergence=pm.ChiSquare(1 / 3), regularizer=pm.L2(1 / 3))
    >>> sol = pm.Newton().solve(p, tol=1e-6)
    >>> sol.status.name, round(sol.objective, 6), sol.relative_gap <= 1e-6
    ('CONVERGED', 0.42445, True)
    """

    linear_solver: Literal["auto", "cholesky", "cg"] = "auto"

    def stages(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        assert isinstance(problem, DRO)
        start = engine.restart(x0)
        x, margins = x0, problem.read(x0) if start.read is None else start.read
        if not x0.any() and problem.n >= SAMPLED and is_smooth(problem.loss):
            x, margins = self.from_samples(problem, engine, rng)
        for loss in rounded(problem, x, margins, start.objective, engine):
            for model in self.steps(LocalModel(problem, loss, x, margins), engine):
                x, margins = model.x, model.margins
                response = problem.respond(x, margins)
                yield Iterate(x, *response, lower_bound=model.lower_bound)
                if model.own_gap <= OWN_SHARE * (response.objective - model.lower_bound - model.own_gap):
                    break

    def steps(self, model: LocalModel, engine: Engine, share: float = 1.0) -> Iterator[LocalModel]:
        """Newton's method for one loss; `share` is that of the rows the model has."""
        largest = float(np.abs(model.margins).max())
        for _ in range(MOST_STEPS):
            engine.pay(share)  # for the gradient
            yield model
            direction = self.direction(model, engine, share)
            ahead = search(model, direction, model.problem.read(direction))
            if ahead is None or (ahead.value >= model.value and ahead.own_gap >= model.own_gap):
                return
            model, now = ahead, float(np.abs(ahead.margins).max())
            if now < FALLEN * largest:  # what steps have added up to has the rounding of what they started from
                engine.pay(share)
                model = LocalModel(model.problem, model.loss, model.x, model.problem.read(model.x), model.multiplier)
                largest = now

    def from_samples(self, problem: DRO, engine: Engine, rng: np.random.Generator) -> tuple[Vector, Vector]:
        """Nearly the solution for a part of the rows, and its margins for all: most of the way for little."""
        x, loss = np.zeros(problem.d), problem.loss
        for parts in SAMPLES:
            some = np.sort(rng.choice(problem.n, problem.n // parts, replace=False))
            sample = problem.part(some)
            if sample is not None and is_smooth(loss):
                for model in self.steps(LocalModel(sample, loss, x, sample.read(x)), engine, 1.0 / parts):
                    x = model.x
                    if model.own_gap <= SAMPLE_GAP * model.value:
                        break
        engine.pay(passes=1)
        return x, problem.read(x)

    def direction(self, model: LocalModel, engine: Engine, share: float) -> Vector:
        """From x to the minimiser of the quadratic that agrees with P at x, in X."""
        problem, x = model.problem, model.x
        bounded = isinstance(problem.primal_set, L2Ball)
        if self._forms_matrix(problem):
            engine.pay(3 * share)
            hessian = model.hessian()
            if bounded:
                return minimise_in_ball(hessian, hessian @ x - model.gradient, problem.primal_set.radius) - x
            return -solve(hessian, model.gradient)
        engine.pay(3 * share)
        return -conjugate_gradients(model.hessian_times, model.gradient, model.hessian_diagonal(), engine, 2 * share)

    def check(self, problem: Problem) -> None:
        wanted = "Newton takes a DRO problem"
        if not isinstance(problem, DRO):
            raise ValueError(f"{wanted}, got {type(problem).__name__}")
        if not (is_smooth(problem.loss) or can_be_rounded(problem.loss)):
            raise ValueError(
                f"{wanted} whose loss has a second_derivative, or kinks and a method smoothed(width) that rounds them. "
                f"{problem.loss!r} has neither"
            )
        if type(problem.regularizer) not in (L2, NoRegularizer):
            raise ValueError(f"{wanted} with an L2 regularizer or none, got {problem.regularizer!r}")
        if type(problem.primal_set) not in (WholeSpace, L2Ball):
            raise ValueError(f"{wanted} with no constraint or an L2Ball, got {problem.primal_set!r}")
        if self.linear_solver == "cg" and isinstance(problem.primal_set, L2Ball):
            raise ValueError('linear_solver="cg" takes no constraint: a ball needs the Hessian as a matrix')

    def __post_init__(self) -> None:
        check_choice(self.linear_solver, "linear_solver", ("auto", "cholesky", "cg"))

    def _forms_matrix(self, problem: DRO) -> bool:
        if self.linear_solver == "auto":
            return problem.d <= LARGEST_MATRIX or isinstance(problem.primal_set, L2Ball)
        return self.linear_solver == "cholesky"


def rounded(problem: DRO, x: Vector, margins: Vector, width: float, engine: Engine) -> Iterator[SmoothLoss]:
    """The loss, or, if it has kinks, smooth ones ever nearer to it.

    The first is the one that x solves best: where x is nearly a solution, a wide one would lead away from it. Widths
    are powers of ten, so that x may well be what another problem's solve at such a width has led to.
    """
    loss = problem.loss
    if is_smooth(loss):
        yield loss
        return
    assert can_be_rounded(loss)
    width = NARROWER ** math.ceil(math.log(width, NARROWER)) if width > 0.0 else 1.0
    narrowest, least = SPREAD * width, math.inf
    while width > narrowest and x.any():
        engine.pay(passes=1)
        gap = LocalModel(problem, loss.smoothed(width), x, margins).own_gap
        if not gap < 0.5 * least:
            width *= NARROWER
            break
        width, least = width / NARROWER, gap
    while width > narrowest:
        yield loss.smoothed(width)
        width /= NARROWER


def search(model: LocalModel, direction: Vector, margins: Vector) -> LocalModel | None:
    """The first of the steps 1, 1/2, 1/4, ... that gains enough, None if none does."""
    slope, length = model.slope_along(direction, margins), 1.0
    for _ in range(LENGTHS):
        ahead = model.moved(direction, margins, length)
        if ahead.value <= model.value + DECREASE * length * slope + NOISE * abs(model.value):
            return ahead
        length /= 2.0
    return None


def solve(hessian: Vector, gradient: Vector) -> Vector:
    """The Newton step; where the Hessian is singular to working precision, a multiple of the identity is added."""
    lift = 0.0
    while True:
        try:
            factor = cho_factor(hessian + lift * np.eye(len(hessian)) if lift else hessian, check_finite=False)
            return cho_solve(factor, gradient, check_finite=False)
        except LinAlgError:
            lift = max(100.0 * lift, SPREAD * float(np.trace(hessian)), np.finfo(np.float64).tiny)
