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

PATIENCE, HALVED = 30.0, 0.5
"""A solver gives way to the next when the gap of the last so many passes and more has not fallen to this share."""

STRONG, FINE, SPARSE = 0.3, 1e-5, 0.06
"""An adversary is strong where it pays less than this share of the losses at the start for moving all weight away; a
tolerance is fine below that, and rows are sparse that have a smaller share of entries: their coordinates hardly meet.
Newton's method is the fastest for strong adversaries and coarse tolerances. Measured on a9a, w8a, covtype and Gaussian
rows."""


@dataclass(frozen=True, kw_only=True)
class Auto(Solver):
    """Chooses among the solvers that can take a problem: what `pommel.solve` does.

    =============================  ========================================================================
    problem                        taken, and what follows where that stalls or gives up
    =============================  ========================================================================
    AUC                            `ExactAUC`
    DRO, d <= 2000, kinked loss    `Newton`, then `InteriorPoint`, then `DualAscent`. If the adversary is not
                                   strong: `InteriorPoint` at once where tol is not above 1e-5, else `DualAscent`
                                   first where rows are sparse
    DRO, d <= 2000, smooth loss    `Newton`, then `DualAscent`
    DRO, d > 2000                  `DualAscent`, then, if the loss is smooth, `Newton` by conjugate gradients
    all others                     `RSPDsc` where g is strongly convex, else `ARSPD`
    =============================  ========================================================================

    One that cannot take the problem is passed over. The gap that decides is the certified one, counted in passes and
    not in seconds, so that the same problem gets the same answer on every machine. `Solution.solver` and
    `Solution.message` tell what was taken and why, the history's column `solver` when.

    Parameters
    ----------
    tol : float, default=1e-3
        The relative gap that is wanted.

    Examples
    --------
    >>> import pommel as pm
    >>> p = pm.AUC([[2.0], [1.0], [0.0]], [1, 0, 0], constraint=pm.L2Ball(10.0))
    >>> pm.solve(p).solver
    'ExactAUC'
    """

    tol: float = 1e-3

    def stages(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        *others, last = self.choices(problem, engine.restart(x0))
        for solver, reason in (*others, last):
            progress, note = Progress(engine), f"{solver.name} was taken: {reason}"
            for iterate in solver.stages(problem, engine, x0, rng):
                yield replace(iterate, solver=solver.name, note=note)
                progress.add(iterate)
                if progress.has_stalled and solver is not last[0]:
                    break
            x0 = x0 if progress.x is None else progress.x
            if progress.gap <= self.tol * problem.magnitude(progress.objective):
                return

    def choices(self, problem: Problem, start: Iterate) -> list[tuple[Solver, str]]:
        """The solvers that can take a problem and the reason for each, the one that should be fastest first."""
        ordered: list[tuple[Solver, str]] = []
        if isinstance(problem, AUC):
            ordered = [(ExactAUC(), "the problem is a quadratic")]
        elif isinstance(problem, DRO) and problem.d <= LARGEST_MATRIX:
            ordered = [
                (Newton(), f"d = {problem.d} is small enough for matrices"),
                (InteriorPoint(), f"the loss is piecewise linear, and d = {problem.d} small enough for matrices"),
                (DualAscent(), "it takes any loss"),
            ]
            if not (is_smooth(problem.loss) or start.x.any() or has_strong_adversary(problem, start)):
                if self.tol <= FINE:
                    ordered[:2] = ordered[1::-1]
                elif problem.rows.density < SPARSE:
                    ordered = [(DualAscent(), "coordinates of sparse rows hardly meet"), ordered[1], ordered[0]]
        elif isinstance(problem, DRO):
            ordered = [(DualAscent(), f"d = {problem.d}, but a step costs the entries of its row only")]
            if is_smooth(problem.loss) or not takes(DualAscent(), problem):
                ordered.append((Newton(), "it takes large d by conjugate gradients"))
        able = [(solver, reason) for solver, reason in ordered if takes(solver, problem)]
        plain: Solver = RSPDsc() if is_strongly_convex(problem) else ARSPD()
        return able or [(plain, "the problem has no structure that a finisher could use")]


class Progress:
    """Whether a solver's certified gap still falls."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.objective, self.bound = engine, np.inf, -np.inf
        self.since, self.halved_from = engine.n_gradients, np.inf
        self.x: Vector | None = None

    @property
    def gap(self) -> float:
        """Of the best point and the best bound."""
        return float(self.objective - self.bound)

    def add(self, iterate: Iterate) -> None:
        """Take note of one more iterate."""
        if iterate.objective < self.objective:
            self.objective, self.x = iterate.objective, iterate.x
        self.bound = max(self.bound, iterate.lower_bound)
        if self.gap <= HALVED * self.halved_from:
            self.since, self.halved_from = self.engine.n_gradients, self.gap

    @property
    def has_stalled(self) -> bool:
        """Whether the last so many passes were in vain."""
        return self.engine.n_gradients - self.since > PATIENCE * self.engine.problem.n


def has_strong_adversary(problem: DRO, start: Iterate) -> bool:
    """Whether weights soon reach zero."""
    price = (problem.dual_curvature or np.inf) / float(problem.weights.sum())
    return bool(price < STRONG * start.objective)


def takes(solver: Solver, problem: Problem) -> bool:
    """Whether a solver can take a problem."""
    try:
        solver.check(problem)
    except ValueError:
        return False
    return True


def is_strongly_convex(problem: Problem) -> bool:
    """Whether g is known to be."""
    return bool(getattr(getattr(problem, "regularizer", None), "strong_convexity", 0.0) > 0.0)


def is_tiny(problem: Problem) -> bool:
    """Whether solving to rounding costs nothing that anybody would notice."""
    return isinstance(problem, DRO | AUC) and problem.n * problem.d <= TINY
