"""What RSPD-sc, RSPD and ARSPD share: the parameters of a stage, and what they are where none are given."""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from pommel._validation import check_choice, check_number
from pommel.engines.engine import Engine, GradientStep, Iterate
from pommel.problem import ConvexSet, Problem, Sampling, Steps
from pommel.sets.ball_within import BallWithin
from pommel.solvers._solver import Solver

Auto = Literal["auto"]
Restarted = TypeVar("Restarted", bound="RestartedSolver")

PAPER_STEPS = tuple(10.0**k for k in range(-5, 4))
"""The grid the paper's experiments tune steps over; for DRO they are steps for n y, see `RSPDsc.as_in_paper`."""

PAPER_FIRST_LENGTH = 10_000
"""T_1 of the paper's experiments."""

PRIMAL_SHARE, RADIUS_SHARE = 0.4, 0.8
"""An "auto" primal step starts at this share of the problem's natural one, and at most this share of the theory's
D / (M sqrt(T)), D the radius of X and M estimated; measured on real data."""

SHARED_DUAL_SHARE = 0.25
"""An "auto" dual step starts at this share of the natural one where y is not on a simplex: all rows move the same y
there, which the natural step would let follow single rows. Measured on real data, where 0.1 did as well."""

FIRST_STEPS = 500
"""A first stage whose length is "auto" makes not fewer steps than this."""

PILOT_RATIO, PILOT_TRIES = 4.0, 4
"""The pilot tries steps in this ratio, at most so many."""


@dataclass(frozen=True, kw_only=True)
class RestartedSolver(Solver):
    """Parameters of a stage; the subclasses' docstrings say what they mean."""

    primal_step: float | Auto = "auto"
    dual_step: float | Auto = "auto"
    stage_length: float | Auto = "auto"
    sampling: Sampling | Auto = "auto"
    dual_gradient: Literal["centred", "whole", "implicit"] = "centred"
    bound: float = math.inf
    pilot: bool = True

    FIRST_PASSES: ClassVar[float] = 4.0
    """Passes that a first stage whose length is "auto" makes."""

    def __post_init__(self) -> None:
        for name in ("primal_step", "dual_step"):
            if getattr(self, name) != "auto":
                check_number(getattr(self, name), name, equal=True)
        if self.stage_length != "auto":
            check_number(self.stage_length, "stage_length", above=1.0, equal=True)
        check_number(self.bound, "bound", infinite=True)
        check_choice(self.sampling, "sampling", ("auto", *get_args(Sampling)))
        check_choice(self.dual_gradient, "dual_gradient", ("centred", "whole", "implicit"))

    def check(self, problem: Problem) -> None:
        if self.dual_gradient == "implicit" and problem.dual_curvature is None:
            raise ValueError(f'dual_gradient="implicit" needs a quadratic phi*; that of {problem!r} is none')

    def first_length(self, problem: Problem) -> int:
        """T_1."""
        if isinstance(self.stage_length, str):
            return max(math.ceil(self.FIRST_PASSES * problem.n), FIRST_STEPS)
        return math.ceil(self.stage_length)

    def primal_set(self, problem: Problem) -> ConvexSet:
        """X within |x| <= bound, where the theory's constants hold."""
        X = problem.primal_set
        return X if self.bound >= X.radius else BallWithin(X, np.zeros(problem.d), self.bound)

    def sets(self, problem: Problem) -> tuple[ConvexSet, ConvexSet]:
        """X and Y."""
        return self.primal_set(problem), problem.dual_set

    def steps(self, engine: Engine, start: Iterate, factor: float, travel: float = math.inf) -> Steps:
        """eta_x and eta_y of a stage: `factor` times the given ones, or shares of the problem's natural steps.

        An "auto" primal step does not lead much further in a stage than across X. Nor is it above travel / M with
        travel = D / sqrt(T), D the distance that stages have led so far: the theory's D / (M sqrt(T)), which is far
        below the natural step where P* is not small against P. An "auto" dual step is not lowered where the dual
        gradient is centred: that has little variance near a solution, and y had better keep up with x. Elsewhere it is
        halved like all steps.
        """
        if isinstance(self.primal_step, str) or isinstance(self.dual_step, str):
            natural = engine.natural_steps(start, self._sampling)
        if isinstance(self.primal_step, str):
            if natural.primal == 0.0 and natural.gradient > 0.0 and engine.problem.lower_bound() == -math.inf:
                raise ValueError(
                    "there is no natural primal step: P is 0 at the start and no lower bound of it is known. Give "
                    "primal_step, or the problem's lower_bound"
                )
            walk = natural.gradient * math.sqrt(self.first_length(engine.problem))
            radius = engine.problem.primal_set.radius
            across = RADIUS_SHARE * radius / walk if walk > 0.0 else math.inf
            eta_x = factor * min(PRIMAL_SHARE * natural.primal, across)
            eta_x = min(eta_x, travel / natural.gradient) if natural.gradient > 0.0 else eta_x
        else:
            eta_x = factor * self.primal_step
        if isinstance(self.dual_step, str):
            share = SHARED_DUAL_SHARE if start.center is None else 1.0
            eta_y = natural.dual if self._center(start) is not None else factor * share * natural.dual
        else:
            eta_y = factor * self.dual_step
        curvature = engine.problem.dual_curvature
        if self.dual_gradient == "implicit" and curvature is not None:
            # argmax y'l - phi*(y) - |y - y_t|^2 / (2 eta) is, for a quadratic phi*, an explicit step of less length.
            eta_y /= 1.0 + eta_y * curvature
        return Steps(eta_x, eta_y)

    def is_lost(self, problem: Problem, start: Iterate, reached: Iterate) -> bool:
        """Whether a stage with an "auto" step rose by more than it could have fallen: that step was far too long."""
        most = start.objective - problem.lower_bound()
        return self.primal_step == "auto" and reached.objective - start.objective > most

    def tuned(
        self: Restarted, engine: Engine, start: Iterate, rng: np.random.Generator
    ) -> Generator[Iterate, None, tuple[Restarted, float]]:
        """The solver with its sampling settled, and a factor of the automatic primal step, found by short runs.

        A strong adversary soon holds most of its weight on few rows, which "mixed" sampling draws more often. It also
        leaves little between P(x_0) and min P, to which natural steps should be proportional. One pass with each of
        some steps tells: they are lowered as long as that helps, else raised once. The factor is 1 where the problem is
        not stiff. The points that short runs lead to are yielded, as those of stages are: one may be all that a small
        budget buys.
        """
        sampling, pilot = self.sampling, self.pilot and self.primal_step == "auto"
        stiff = (sampling == "auto" or pilot) and engine.natural_steps(start, "uniform").stiff
        if sampling == "auto":
            sampling = "mixed" if stiff and start.center is not None else "uniform"
        solver = replace(self, sampling=sampling)
        if not (stiff and pilot):
            return solver, 1.0
        X, Y = self.sets(engine.problem)
        seed = rng.integers(2**63)  # the same draws for all

        def run(factor: float) -> Iterate:
            rule = solver.rule(solver.steps(engine, start, factor), X, Y, start)
            average = engine.run(rule, start.x, start.y, engine.problem.n, np.random.default_rng(seed))
            return engine.restart(average.x)

        best, lowest = 1.0, math.inf
        for k in range(PILOT_TRIES):
            reached = run(PILOT_RATIO**-k)
            yield reached
            if reached.objective > lowest:
                break
            best, lowest = PILOT_RATIO**-k, reached.objective
        if best == 1.0:
            shrink = engine.shrink
            reached = run(PILOT_RATIO)
            yield reached
            if reached.objective < lowest:
                return solver, PILOT_RATIO
            engine.shrink = shrink  # had these steps led out of the numbers, those taken now need not be shorter
        return solver, best

    def rule(self, steps: Steps, primal_set: ConvexSet, dual_set: ConvexSet, start: Iterate) -> GradientStep:
        """x <- Pi(x - eta_x grad_x), y <- Pi(y + eta_y grad_y) on the given sets."""
        return GradientStep(steps.primal, steps.dual, primal_set, dual_set, self._sampling, self._center(start))

    def share_with(self, other: type[Restarted], **parameters: Any) -> Restarted:
        """Another solver with the same parameters of a stage, but for those given."""
        shared = {field.name: getattr(self, field.name) for field in fields(RestartedSolver)}
        return other(**shared | parameters)

    @staticmethod
    def theory_setting(problem: Problem) -> dict[str, Any]:
        """How the theorems sample, and where the constants they use hold."""
        radius = problem.constants("uniform").radius
        return {"sampling": "uniform", "dual_gradient": "whole", "bound": radius}

    @property
    def _sampling(self) -> Sampling:
        return "uniform" if self.sampling == "auto" else self.sampling

    def _center(self, start: Iterate) -> float | None:
        return start.center if self.dual_gradient == "centred" else None


class Reach(NamedTuple):
    """What radii are made of where none are given."""

    distance: float  # a bound of |x_0 - x*|: c epsilon_0^theta
    theta: float
    G: float
    L: float
    v: float

    def dual_radius(self, primal_radius: float, v: float) -> float:
        """L (G R_x)^v: a dual ball of this radius holds A(x) for all |x - x_0| <= R_x."""
        known = math.isfinite(primal_radius) and math.isfinite(self.G)
        return self.L * (self.G * primal_radius) ** v if known else math.inf


def reach(problem: Problem, engine: Engine, start: Iterate) -> Reach:
    """From the problem's constants; infinite, so that no ball binds, where one of them is not known."""
    known = engine.constants(start)
    epsilon0 = start.objective - problem.lower_bound()
    distance, theta, G, L = math.inf, 0.0, math.inf, math.inf
    if known.c is not None and known.theta is not None:
        distance, theta = known.c * epsilon0**known.theta, known.theta
    if known.G is not None and known.L is not None:
        G, L = known.G, known.L
    return Reach(distance, theta, G, L, 1.0 if known.v is None else known.v)


def given(value: float | Auto, default: float) -> float:
    """The value, or the default where it is "auto"."""
    return default if isinstance(value, str) else value


def count(limit: int | None) -> Iterable[int]:
    """1, 2, ... up to a limit, if there is one."""
    return itertools.count(1) if limit is None else range(1, limit + 1)
