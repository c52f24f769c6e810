"""What a solver sees of an engine: run T steps from here, restart there.

Gradients are counted, budgets kept and non-finite iterates caught in this one place, so that a solver file holds its
algorithm and nothing else, and an engine file holds the steps.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pommel.problem import Constants, ConvexSet, NaturalSteps, Problem, Sampling, Vector

MAX_TRIES = 5
SHRINK = 0.1
"""After a stage that ran into infinity all steps are multiplied by this, at most MAX_TRIES times."""

CHUNK_SECONDS = 0.05
"""Steps run in chunks of about this long; between chunks one can stop."""


@dataclass(frozen=True)
class GradientStep:
    """The step rule of Algorithms 1 and 2.

    x <- Pi_X(x - primal_step * grad_x),  y <- Pi_Y(y + dual_step * grad_y),  both gradients sampled at (x, y).
    """

    primal_step: float
    dual_step: float
    primal_set: ConvexSet
    dual_set: ConvexSet
    sampling: Sampling = "uniform"
    center: float | None = None  # at the first step, see Problem.sample_gradients; it then moves with the walk


@dataclass(frozen=True)
class Iterate:
    """A point with its exact dual response: where a stage starts."""

    x: Vector
    y: Vector  # A(x)
    objective: float  # P(x)
    center: float | None  # see Response, and for the next one too
    read: Vector | None = None
    lower_bound: float = -math.inf  # of min P, where the solver has come by one
    solver: str = ""  # where one solver runs others: the one that came here
    note: str = ""  # and why it was that one


@dataclass(frozen=True)
class Averages:
    """The mean of the iterates x_t, t = 0 .. T-1, of a run, each as it stood before its step, and where it ended.

    Nobody needs the mean of the y_t: restarts take the best response to that of the x_t.
    """

    x: Vector
    steps: int  # T, less than was asked for where the budget ended the run
    last_x: Vector  # x_T
    last_y: Vector  # y_T

    def after(self, past: Averages | None) -> Averages:
        """The same with the iterates of an earlier run averaged in."""
        if past is None or past.steps == 0:
            return self
        steps = past.steps + self.steps
        share = self.steps / steps
        return replace(self, x=past.x + share * (self.x - past.x), steps=steps)


class Walk:
    """The iterate a run stands at with the center of its dual gradients, and the sum of the x it has left."""

    def __init__(self, x: Vector, y: Vector, center: float | None = None) -> None:
        self.x, self.y, self.center = x, y, center
        self.sum_x = np.zeros_like(x)
        self.steps = 0

    @property
    def finite(self) -> bool:
        """Whether the iterate is neither infinite nor NaN anywhere."""
        return _finite(self.x) and _finite(self.y)

    def write_out(self) -> None:
        """Bring x, y and sum_x up to date, for engines that keep them in another form."""


class Diverged(ArithmeticError):
    """Even much smaller steps led to infinity or NaN."""


class Exhausted(Exception):
    """The budget does not reach for what a solver has asked for."""


class Engine(ABC):
    """Runs steps on one problem for one solve.

    Parameters
    ----------
    problem : Problem
    max_gradients : float
        Budget, in gradients; a run is cut short at it.
    should_stop : callable
        Asked between chunks of steps; a true answer cuts the run short.
    """

    name: str
    FIRST_CHUNK = 16
    """Steps of a run's first chunk."""

    @classmethod
    def missing(cls, problem: Problem) -> str | None:
        """Why a problem cannot run here, None if it can."""
        return None

    def __init__(
        self, problem: Problem, *, max_gradients: float = math.inf, should_stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.problem, self.max_gradients, self.should_stop = problem, max_gradients, should_stop
        self.n_gradients = 0
        self.stopped = False  # should_stop has said so
        self.shrink = 1.0  # factor on all steps, lowered when a run diverges
        self.last_run: RunReport | None = None
        self._last: Iterate | None = None  # evaluated last
        self._start: Iterate | None = None  # where the last run started

    def begin(self, rule: GradientStep, x: Vector, y: Vector) -> Walk:
        """A walk that stands at (x, y)."""
        return Walk(x, y, rule.center)

    @abstractmethod
    def advance(self, rule: GradientStep, walk: Walk, draws: Vector) -> None:
        """Make one step for each number in `draws` (uniform in [0, 1)), updating `walk` in place.

        A step that leads to infinity or NaN is the last: where a run ends is up to its draws alone, not to the clock.
        """

    @np.errstate(all="ignore")
    def restart(self, x: Vector) -> Iterate:
        """x with y = A(x), for one pass over the rows; free for the point where the last run started or ended."""
        for known in (self._last, self._start):
            if known is not None and known.x is x:
                return known
        self.pay(passes=1)
        iterate = Iterate(x, *self.problem.respond(x))
        if np.isfinite(iterate.objective):  # else the run will be made again from the start that is remembered
            self._last = iterate
        return iterate

    @np.errstate(all="ignore")
    def natural_steps(self, start: Iterate, sampling: Sampling) -> NaturalSteps:
        """The problem's natural steps at a restart, for a pass over the rows if what that read is not enough."""
        if start.read is None:
            self.pay(passes=1)
        return self.problem.natural_steps(start.x, start.y, sampling, start.read)

    def constants(self, start: Iterate) -> Constants:
        """The problem's constants, for a pass over the rows, and one more for P(0) where that is not known already."""
        objective = None if start.x.any() else start.objective
        self.pay(passes=2 if objective is None else 1)
        return self.problem.constants("uniform", objective)

    @np.errstate(all="ignore")  # infinity and NaN are looked for, so they need no warning
    def run(
        self,
        rule: GradientStep,
        x: Vector,
        y: Vector,
        steps: int,
        rng: np.random.Generator,
        *,
        past: Averages | None = None,
    ) -> Averages:
        """`steps` steps of `rule` from (x, y), or as many as the budget allows, and the averages of the iterates.

        Those of `past`, a run that ended in (x, y), are averaged in. If the steps lead to infinity or NaN, the run is
        made again from its start with smaller ones, which are kept for the rest of the solve; `Diverged` is raised when
        that does not help either.
        """
        if self._last is not None and self._last.x is x:
            self._start = self._last
        for tries in range(MAX_TRIES + 1):
            scaled = replace(rule, primal_step=self.shrink * rule.primal_step, dual_step=self.shrink * rule.dual_step)
            # A generator of its own for each try: how far a failed one got depends on the time it had.
            walk = self._walk(scaled, x, y, steps, np.random.default_rng(rng.integers(2**63)))
            self.last_run = RunReport(scaled.primal_step, scaled.dual_step, walk.steps, tries)
            if walk.steps == 0:
                return Averages(x, 0, x, y) if past is None else past
            averages = Averages(walk.sum_x / walk.steps, walk.steps, walk.x, walk.y).after(past)
            if walk.finite and _finite(averages.x) and np.isfinite(self.restart(averages.x).objective):
                return averages
            self.shrink *= SHRINK
        raise Diverged(f"primal_step={scaled.primal_step:.3g}, dual_step={scaled.dual_step:.3g}")

    def exhausted(self) -> bool:
        """No budget is left for a step and the pass that evaluates where it leads, or one was told to stop."""
        self.stopped = self.stopped or self.should_stop()
        return self.stopped or self._steps_left() < 1

    def _steps_left(self) -> float:
        return self.max_gradients - self.n_gradients - self.problem.n

    def pay(self, passes: float) -> None:
        """Count reads of the rows that a solver makes itself; `Exhausted` where the budget does not reach for them."""
        if self.n_gradients + passes * self.problem.n > self.max_gradients:
            raise Exhausted
        self.n_gradients += round(passes * self.problem.n)

    def _walk(self, rule: GradientStep, x: Vector, y: Vector, steps: int, rng: np.random.Generator) -> Walk:
        walk, chunk = self.begin(rule, x, y), self.FIRST_CHUNK
        while walk.finite and walk.steps < steps and not self.exhausted():
            started, before = time.perf_counter(), walk.steps
            self.advance(rule, walk, rng.random(int(min(chunk, steps - walk.steps, self._steps_left()))))
            self.n_gradients += walk.steps - before
            if time.perf_counter() - started < CHUNK_SECONDS / 2:
                chunk *= 2
        walk.write_out()
        return walk


def _finite(z: Vector) -> bool:
    """A finite z'z, which is quick to tell, proves every entry finite; one that overflowed proves nothing."""
    return math.isfinite(z.dot(z)) or bool(np.isfinite(z).all())


@dataclass(frozen=True)
class RunReport:
    """What the last run did, for the history."""

    primal_step: float
    dual_step: float
    steps: int
    tries: int  # times it was made again with smaller steps
