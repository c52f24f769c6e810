"""drive(): the one loop around every solver.

It alone knows budgets, time, tolerances, callbacks, progress and Ctrl-C, and it alone keeps the best point, the bounds
and the history. A solver's `stages` is the algorithm and nothing else.
"""

from __future__ import annotations

import logging
import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from pommel._validation import check_vector
from pommel.engines import ENGINES
from pommel.engines.engine import Diverged, Engine, Exhausted, Iterate
from pommel.problem import Problem, check_members
from pommel.solution import History, Solution, Status

if TYPE_CHECKING:
    from pommel.solvers._solver import Solver

__all__ = ["drive", "solve"]

CERTIFYING = 0.25
"""Reads of the rows for lower bounds, as a share of those of a solver that brings none."""

UNPROVED_PASSES = 300
"""What `solve` spends on a problem nothing can be proved for, where it is given no limit."""

LOGGER = logging.getLogger("pommel")
PROGRESS_SECONDS = 2.0
"""With verbose=1, a stage that takes longer than this says how far it is."""


def drive(
    solver: Solver,
    problem: Problem,
    *,
    x0: ArrayLike | None = None,
    tol: float = 1e-3,
    max_passes: float | None = 100,
    max_seconds: float | None = None,
    random_state: Any = 0,
    callback: Callable[[dict[str, Any]], bool | None] | None = None,
    engine: str = "auto",
    verbose: int = 0,
    thorough: bool = False,
) -> Solution:
    """Run a solver on a problem until it has converged, finished or used up what it was given.

    See `Solver.solve` for the parameters. A `thorough` run goes on behind `tol` until the solver has finished.
    """
    check_members(problem)
    solver.check(problem)
    if not tol >= 0.0:
        raise ValueError(f"tol must be >= 0, got {tol}")
    if max_passes is not None and not max_passes >= 1.0:
        raise ValueError(f"max_passes must be >= 1, which evaluates the start, or None for no limit, got {max_passes}")
    if max_seconds is not None and not max_seconds > 0.0:
        raise ValueError(f"max_seconds must be > 0, or None for no limit, got {max_seconds}")
    start = np.zeros(problem.d) if x0 is None else check_vector(x0, problem.d, "x0")
    rng = _generator(random_state)
    run = _Run(problem, tol, callback, verbose, thorough)
    max_gradients = math.inf if max_passes is None else max_passes * problem.n
    deadline = math.inf if max_seconds is None else run.started + max_seconds

    with _deferred_interrupt() as interrupted:

        def should_stop() -> bool:
            run.show_progress(steps)
            return bool(interrupted) or time.perf_counter() >= deadline

        engine_class, run.fallback = _engine_class(engine, problem)
        steps = engine_class(problem, max_gradients=max_gradients, should_stop=should_stop)
        try:
            status = run.follow(solver, steps, solver.primal_set(problem).project(start), rng)
            if interrupted and status is not Status.CONVERGED:
                status = Status.INTERRUPTED
            elif status is None:
                status = Status.MAX_SECONDS if time.perf_counter() >= deadline else Status.MAX_PASSES
        except KeyboardInterrupt:  # a second Ctrl-C, or one raised by the problem's own code
            if run.best is None:
                raise
            status = Status.INTERRUPTED
        except Diverged as error:
            status = Status.DIVERGED
            run.remark = f" (smallest tried: {error}); scale the features or give smaller steps"
    return run.solution(solver, steps, status)


class _Run:
    """Best point, bound and history of one solve."""

    def __init__(
        self,
        problem: Problem,
        tol: float,
        callback: Callable[[dict[str, Any]], bool | None] | None,
        verbose: int,
        thorough: bool,
    ) -> None:
        self.problem, self.tol, self.callback, self.verbose, self.thorough = problem, tol, callback, verbose, thorough
        self.started = self.shown = time.perf_counter()
        self.history = History()
        self.best: Iterate | None = None
        self.lower_bound = problem.lower_bound()
        self.bounds: Callable[[Iterate, Engine], Iterator[float]] | None = None  # what makes them, once it is needed
        self.certifying = 0  # gradients that went into it
        self.remark = self.note = self.fallback = ""

    def follow(self, solver: Solver, engine: Engine, x0: Any, rng: np.random.Generator) -> Status | None:
        """Check the start and every restart; the status it ended with, None if the engine is exhausted."""
        start = engine.restart(x0)
        if not np.isfinite(start.objective):
            raise ValueError(f"the objective at x0 is {start.objective}: nothing can start from there")
        status = self.check(start, engine, solver)
        stages = solver.stages(self.problem, engine, x0, rng)
        with suppress(Exhausted):
            while status is None and not engine.exhausted():
                iterate = next(stages, None)
                status = Status.FINISHED if iterate is None else self.check(iterate, engine, solver)
        if self.tol > 0.0 and status in (None, Status.FINISHED) and self.best_gap() <= self.tol:
            return Status.CONVERGED
        return status

    def check(self, iterate: Iterate, engine: Engine, solver: Solver) -> Status | None:
        """Record a restart, keep it if it is the best, and tell whether that ends the solve."""
        if self.best is None or iterate.objective < self.best.objective:
            self.best = iterate
        self.note = f"; {iterate.note}" if iterate.note else self.note
        self.lower_bound = max(self.lower_bound, iterate.lower_bound)
        if iterate.lower_bound == -math.inf:
            self.certify(iterate, engine)
        last = engine.last_run
        row: dict[str, Any] = {
            "stage": len(self.history.rows),
            "solver": iterate.solver or solver.name,
            "n_gradients": engine.n_gradients,
            "n_passes": engine.n_gradients / self.problem.n,
            "seconds": time.perf_counter() - self.started,
            "objective": iterate.objective,
            "lower_bound": self.lower_bound,
            "relative_gap": self.best_gap(),
            "steps": 0 if last is None else last.steps,
            "primal_step": math.nan if last is None else last.primal_step,
            "dual_step": math.nan if last is None else last.dual_step,
            "retries": 0 if last is None else last.tries,
        }
        self.history.append(row)
        self.say(
            f"stage {row['stage']:>3}  passes {row['n_passes']:>8.1f}  objective {row['objective']:<15.9g} "
            f"relative gap {row['relative_gap']:<9.2e} {row['seconds']:>7.1f} s"
            + (f"  after {row['retries']} tries with smaller steps" if row["retries"] else "")
        )
        stop = self.callback is not None and self.callback(dict(row))
        if self.tol > 0.0 and row["relative_gap"] <= self.tol and not self.thorough:
            return Status.CONVERGED
        return Status.STOPPED if stop else None

    def certify(self, iterate: Iterate, engine: Engine) -> None:
        """Spend a share of the passes, a fifth of them at most, on a better bound than a stochastic solver has."""
        if self.tol == 0.0:
            return
        if self.bounds is None:
            from pommel.certify import bounds_of  # they are made by solvers, which are driven from here

            self.bounds = bounds_of(self.problem)
        before, bounds = engine.n_gradients, self.bounds(iterate, engine)
        allowed = CERTIFYING * (before - self.certifying) - self.certifying
        with suppress(Exhausted, StopIteration):
            while engine.n_gradients - before + self.problem.n <= allowed and self.best_gap() > self.tol:
                self.lower_bound = max(self.lower_bound, next(bounds))
        self.certifying += engine.n_gradients - before

    def best_gap(self) -> float:
        """The relative gap of the best point."""
        assert self.best is not None
        return self.relative_gap(self.best.objective)

    def relative_gap(self, objective: float) -> float:
        """gap / max(s(P(x)), 1e-3 s(P(x0))), s the problem's own measure of size."""
        size = self.problem.magnitude(objective)
        if self.history.rows:
            size = max(size, 1e-3 * self.problem.magnitude(self.history.rows[0]["objective"]))
        gap = objective - self.lower_bound
        return float(gap / size) if size > 0.0 else (0.0 if gap <= 0.0 else math.inf)

    def show_progress(self, engine: Engine) -> None:
        now = time.perf_counter()
        if self.verbose and now - self.shown > PROGRESS_SECONDS:
            passes = engine.n_gradients / self.problem.n
            self.say(f"stage {len(self.history.rows):>3}  passes {passes:>8.1f}  ...  {now - self.started:>51.1f} s")

    def say(self, line: str) -> None:
        self.shown = time.perf_counter()
        LOGGER.debug(line)
        if self.verbose:
            print(line, file=sys.stderr, flush=True)

    def solution(self, solver: Solver, engine: Engine, status: Status) -> Solution:
        assert self.best is not None
        gap, relative_gap = self.best.objective - self.lower_bound, self.relative_gap(self.best.objective)
        message = status.value + self.remark + self.note + self.fallback
        if len(self.history.rows) > 1 and self.best.objective >= self.history.rows[0]["objective"]:
            message += "; no stage improved on the start: try smaller steps or more passes"
        if self.tol > 0.0 and status is not Status.CONVERGED:
            rounded_up = f"{1.005 * relative_gap:.2e}"
            proved = f"the relative gap is proved to be at most {rounded_up}"
            if self.lower_bound == -math.inf:
                proved = "nothing is proved about the gap"
            message += f"; {proved}, tol={self.tol:g}"
            from pommel.certify import why_not

            if reason := why_not(self.problem):
                message += f" (no better bound can be had: {reason})"
            warnings.warn(
                f"{solver.name} stopped without a proof of accuracy: {message}. The lower bound it has is "
                f"{self.lower_bound:.6g}, so the answer may be far better than it can prove; tol=0 runs the budget "
                "without this warning.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return Solution(
            x=self.best.x,
            y=self.best.y,
            objective=self.best.objective,
            lower_bound=self.lower_bound,
            gap=gap,
            relative_gap=relative_gap,
            status=status,
            message=message,
            solver=self.history.rows[-1]["solver"],
            engine=engine.name,
            n_gradients=engine.n_gradients,
            n_passes=engine.n_gradients / self.problem.n,
            seconds=time.perf_counter() - self.started,
            history=self.history,
        )


def solve(
    problem: Problem,
    *,
    solver: str | Solver = "auto",
    x0: ArrayLike | None = None,
    tol: float = 1e-3,
    max_passes: float | None = None,
    max_seconds: float | None = None,
    random_state: Any = 0,
    callback: Callable[[dict[str, Any]], bool | None] | None = None,
    engine: str = "auto",
    verbose: int = 0,
) -> Solution:
    """Solve a problem by the solver that should be fastest for it: `Solution.message` tells which, and why.

    Parameters
    ----------
    problem : Problem
    solver : "auto" or Solver, default="auto"
        See `pommel.Auto`. It solves tiny problems to rounding, whatever `tol` is, so that equal ones get equal answers.
    x0, tol, max_passes, max_seconds, random_state, callback, engine, verbose
        As in `Solver.solve`, but that there is no limit of passes by default, or 300 where nothing can be proved.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import pommel as pm
    >>> p = pm.DRO([[1.0], [-1.0]], ["yes", "no"], divergence=pm.ChiSquare(0.5), regularizer=pm.L2(0.5))
    >>> sol = pm.solve(p)
    >>> sol.solver, sol.status.name, round(sol.objective, 6)
    ('Newton', 'CONVERGED', 0.25)
    """
    from pommel.certify import why_not
    from pommel.solvers._solver import Solver as AnySolver
    from pommel.solvers.auto import Auto, is_tiny  # solvers are driven from here

    if solver != "auto" and not isinstance(solver, AnySolver):
        raise ValueError(f'solver must be "auto" or a solver such as pm.Newton(), got {solver!r}')
    check_members(problem)
    if max_passes is None and max_seconds is None and why_not(problem) is not None:
        max_passes = UNPROVED_PASSES  # no proof would ever end it
    return drive(
        Auto(tol=tol) if isinstance(solver, str) else solver,
        problem,
        x0=x0,
        tol=tol,
        max_passes=max_passes,
        max_seconds=max_seconds,
        random_state=random_state,
        callback=callback,
        engine=engine,
        verbose=verbose,
        thorough=solver == "auto" and tol > 0.0 and is_tiny(problem),
    )


def _engine_class(name: str, problem: Problem) -> tuple[type[Engine], str]:
    """The engine of that name; "auto" is the first, fastest one that takes the problem.

    With it comes what a solution's message says about that: where a linear model does not get the fastest, the reason
    is mostly a loss that could be written in another way.
    """
    fallback = ""
    if name not in ("auto", *ENGINES):
        raise ValueError(f"engine must be one of {', '.join(['auto', *ENGINES])}, got {name!r}")
    for candidate in ENGINES.values():
        missing = candidate.missing(problem)
        if missing is None and name in ("auto", candidate.name):
            return candidate, fallback
        if missing is not None and name == candidate.name:
            raise ValueError(f'engine="{name}" cannot run this problem: {missing}')
        LOGGER.debug("engine %s is not used: %s", candidate.name, missing or f"{name} was asked for")
        if name == "auto" and hasattr(problem, "rows"):
            fallback = f"; it ran at the price of the reference engine, O(n + d) a step, as {missing}"
    raise AssertionError("the reference engine takes any problem")


def _generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from anything scikit-learn or NumPy take as a seed."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


@contextmanager
def _deferred_interrupt() -> Iterator[list[int]]:
    """Collect the first Ctrl-C in a list, so that a step is never torn; a second one raises as usual.

    Signals reach the main thread only; elsewhere, and under a handler of the caller's own, nothing is changed.
    """
    caught: list[int] = []
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield caught
        return

    def handler(signum: int, frame: Any) -> None:
        caught.append(signum)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, handler)
    try:
        yield caught
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
