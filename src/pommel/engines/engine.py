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

from pommel.problem import Constants, ConvexSet, Problem, Sampling, Steps, Vector

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
    center: float | None = None  # see Problem.sample_gradients


@dataclass(frozen=True)
class Iterate:
    """A point with its exact dual response: where a stage starts."""

    x: Vector
    y: Vector  # A(x)
    objective: float  # P(x)
    center: float | None  # see Problem.Response


@dataclass(frozen=True)
class Averages:
    """Means of the iterates x_t, y_t, t = 0 .. T-1, of a run, each as it stood before its step, and where it ended."""

    x: Vector
    y: Vector
    steps: int  # T, less than was asked for where the budget ended the run
    last_x: Vector  # x_T
    last_y: Vector  # y_T

    def after(self, past: Averages | None) -> Averages:
        """The same with the iterates of an earlier run averaged in."""
        if past is None or past.steps == 0:
            return self
        steps = past.steps + self.steps
        share = self.steps / steps
        x, y = past.x + share * (self.x - past.x), past.y + share * (self.y - past.y)
        return replace(self, x=x, y=y, steps=steps)


class Walk:
    """The iterate a run stands at, and the sums of those it has left."""

    def __init__(self, x: Vector, y: Vector) -> None:
        self.x, self.y = x, y
        self.sum_x, self.sum_y = np.zeros_like(x), np.zeros_like(y)
        self.steps = 0


class Diverged(ArithmeticError):
    """Even much smaller steps led to infinity or NaN."""


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

    def __init__(
        self, problem: Problem, *, max_gradients: float = math.inf, should_stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.problem, self.max_gradients, self.should_stop = problem, max_gradients, should_stop
        self.n_gradients = 0
        self.stopped = False  # should_stop has said so
        self.shrink = 1.0  # factor on all steps, lowered when a run diverges
        self.last_run: RunReport | None = None
        self._last: Iterate | None = None

    @abstractmethod
    def advance(self, rule: GradientStep, walk: Walk, draws: Vector) -> None:
        """Make one step for each number in `draws` (uniform in [0, 1)), updating `walk` in place."""

    def restart(self, x: Vector) -> Iterate:
        """x with y = A(x), for one pass over the rows; free for the point it was last asked for."""
        if self._last is None or self._last.x is not x:
            with np.errstate(over="ignore", invalid="ignore"):
                y, objective, center = self.problem.respond(x)
            self.n_gradients += self.problem.n
            self._last = Iterate(x, y, objective, center)
        return self._last

    def natural_steps(self, start: Iterate, sampling: Sampling) -> Steps:
        """The problem's natural steps at a restart, for one pass over the rows."""
        self.n_gradients += self.problem.n
        return self.problem.natural_steps(start.x, start.y, sampling)

    def constants(self, sampling: Sampling) -> Constants:
        """The problem's constants: P(0) and the norms of the rows are taken from one pass each."""
        self.n_gradients += 2 * self.problem.n
        return self.problem.constants(sampling)

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
        for tries in range(MAX_TRIES + 1):
            scaled = replace(rule, primal_step=self.shrink * rule.primal_step, dual_step=self.shrink * rule.dual_step)
            # A generator of its own for each try: how far a failed one got depends on the time it had.
            walk = self._walk(scaled, x, y, steps, np.random.default_rng(rng.integers(2**63)))
            self.last_run = RunReport(scaled.primal_step, scaled.dual_step, walk.steps, tries)
            if walk.steps == 0:
                return Averages(x, y, 0, x, y) if past is None else past
            mean_x, mean_y = walk.sum_x / walk.steps, walk.sum_y / walk.steps
            averages = Averages(mean_x, mean_y, walk.steps, walk.x, walk.y).after(past)
            if np.isfinite(averages.x).all() and np.isfinite(self.restart(averages.x).objective):
                return averages
            self.shrink *= SHRINK
        raise Diverged(f"primal_step={scaled.primal_step:.3g}, dual_step={scaled.dual_step:.3g}")

    @property
    def exhausted(self) -> bool:
        """No budget is left for a step and the pass that evaluates where it leads, or one was told to stop."""
        return self.stopped or self._steps_left() < 1

    def _steps_left(self) -> float:
        return self.max_gradients - self.n_gradients - self.problem.n

    def _walk(self, rule: GradientStep, x: Vector, y: Vector, steps: int, rng: np.random.Generator) -> Walk:
        walk, chunk = Walk(x, y), 16
        with np.errstate(over="ignore", invalid="ignore"):
            while walk.steps < steps and not self.exhausted:
                started = time.perf_counter()
                size = int(min(chunk, steps - walk.steps, self._steps_left()))
                self.advance(rule, walk, rng.random(size))
                walk.steps += size
                self.n_gradients += size
                if not np.isfinite(walk.x).all():
                    break
                self.stopped = self.should_stop()
                if time.perf_counter() - started < CHUNK_SECONDS / 2:
                    chunk *= 2
        return walk


@dataclass(frozen=True)
class RunReport:
    """What the last run did, for the history."""

    primal_step: float
    dual_step: float
    steps: int
    tries: int  # times it was made again with smaller steps
