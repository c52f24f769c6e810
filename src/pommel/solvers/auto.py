"""The solver that should be fastest for a problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pommel.engines.engine import Engine, Iterate
from pommel.problem import Problem, Vector
from pommel.problems._local_model import is_smooth
from pommel.problems.auc import AUC
from pommel.problems.dro import DRO
from pommel.solvers._solver import Solver
from pommel.solvers.arspd import ARSPD
from pommel.solvers.dual_ascent import DualAscent
from pommel.solvers.exact_auc import ExactAUC
from pommel.solvers.interior_point import InteriorPoint
from pommel.solvers.newton import LARGEST_MATRIX, Newton
from pommel.solvers.rspd_sc import RSPDsc

__all__ = ["Auto", "is_tiny"]

TINY = 2**14
"""Problems with fewer entries are solved in a blink, to rounding."""

PATIENCE, HALVED = 40.0, 0.5
"""A solver gives way to the next when the gap of the last so many passes and more has not fallen to this share."""


@dataclass(frozen=True, kw_only=True)
class Auto(Solver):
    """Chooses among the solvers that can take a problem: what `pommel.solve` does.

    =============================  ======================================================================
    problem                        in this order, the next where the one before does not get on
    =============================  ======================================================================
    AUC                            `ExactAUC`
    DRO, d <= 2000, kinked loss    `InteriorPoint`, `Newton`, `DualAscent`
    DRO, d <= 2000, smooth loss    `Newton`, `DualAscent`
    DRO, d > 2000                  `DualAscent`, `Newton`
    all others                     `RSPDsc` where g is strongly convex, else `ARSPD`
    =============================  ======================================================================

    One that cannot take the problem is passed over. The gap that decides is the certified one, counted in passes and
    not in seconds, so that the same problem gets the same answer on every machine. `Solution.solver` and
    `Solution.message` tell what was taken and why, the history's column `solver` when.

    Examples
    --------
    >>> import pommel as pm
    >>> p = pm.AUC([[2.0], [1.0], [0.0]], [1, 0, 0], constraint=pm.L2Ball(10.0))
    >>> pm.solve(p).solver
    'ExactAUC'
    """

    def stages(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        choices = list(candidates(problem))
        for number, (solver, reason) in enumerate(choices):
            is_last = number == len(choices) - 1
            progress = Progress(engine, problem)
            for iterate in solver.stages(problem, engine, x0, rng):
                yield replace(iterate, solver=solver.name, note=f"{solver.name} was taken: {reason}")
                if not is_last and progress.has_stalled(iterate):
                    break
                x0 = iterate.x


class Progress:
    """Whether a solver's certified gap still falls."""

    def __init__(self, engine: Engine, problem: Problem) -> None:
        self.engine, self.problem = engine, problem
        self.objective, self.bound = np.inf, -np.inf
        self.since, self.gap = float(engine.n_gradients), np.inf

    def has_stalled(self, iterate: Iterate) -> bool:
        self.objective = min(self.objective, iterate.objective)
        self.bound = max(self.bound, iterate.lower_bound)
        gap = self.objective - self.bound
        if gap <= HALVED * self.gap:
            self.since, self.gap = self.engine.n_gradients, gap
        return self.engine.n_gradients - self.since > PATIENCE * self.problem.n


def candidates(problem: Problem) -> Iterator[tuple[Solver, str]]:
    """The solvers that can take a problem and the reason for each, the one that should be fastest first."""
    sparse_and_wide = (DualAscent(), "a step costs a row's entries, however many columns there are")
    if isinstance(problem, AUC):
        ordered: list[tuple[Solver, str]] = [(ExactAUC(), "the problem is a quadratic")]
    elif isinstance(problem, DRO):
        by_matrix: list[tuple[Solver, str]] = [
            (InteriorPoint(), f"the loss is piecewise linear and d = {problem.d} small enough for matrices"),
            (Newton(), f"d = {problem.d} is small enough for matrices"),
        ]
        if is_smooth(problem.loss):
            by_matrix = [(Newton(), f"the loss is smooth and d = {problem.d} small enough for matrices")]
        if problem.d <= LARGEST_MATRIX:
            ordered = [*by_matrix, sparse_and_wide]
        else:
            ordered = [sparse_and_wide, (Newton(), "it takes large d by conjugate gradients")]
    else:
        ordered = []
    ordered += [
        (RSPDsc(), "no finisher knows this problem"),
        (ARSPD(), "no finisher knows this problem, and g is not strongly convex"),
    ][0 if strongly_convex(problem) else 1 :][:1]
    for solver, reason in ordered:
        try:
            solver.check(problem)
        except ValueError:
            continue
        yield solver, reason


def strongly_convex(problem: Problem) -> bool:
    """Whether g is known to be."""
    return bool(getattr(getattr(problem, "regularizer", None), "strong_convexity", 0.0) > 0.0)


def is_tiny(problem: Problem) -> bool:
    """Whether solving to rounding costs nothing that anybody would notice."""
    return isinstance(problem, DRO | AUC) and problem.n * problem.d <= TINY
