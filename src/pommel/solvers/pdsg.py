"""PDSG, the plain stochastic primal-dual method that restarts are measured against."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pommel._validation import check_count, check_number
from pommel.engines.engine import Averages, Engine, GradientStep, Iterate
from pommel.problem import Problem, Vector
from pommel.solvers._solver import Solver

__all__ = ["PDSG"]

FIRST_CHECK = 1.0
"""Passes before the average is evaluated for the first time; from then on whenever they have doubled."""


@dataclass(frozen=True, kw_only=True)
class PDSG(Solver):
    """Primal-dual stochastic (sub)gradient method with averaging (Nemirovski, Juditsky, Lan and Shapiro, 2009).

    Solves min_x max_y y'l(x) - phi*(y) + g(x) by one long run of the stochastic steps that `RSPDsc` restarts, and
    answers with the average of all iterates:

        x <- Pi_X(x - eta_x grad_x),  y <- Pi_Y(y + eta_y grad_y),  both gradients sampled at (x, y).

    With bounded gradients on bounded sets E[P(x) - P*] = O(1/sqrt(T)) after T gradients, strongly convex or not. On
    AUC maximisation it is the method SOLAM of [2]_.

    Parameters
    ----------
    primal_step, dual_step : float
        eta_x and eta_y are these over sqrt(T), T the number of gradients the run is meant for.
    horizon : int, optional
        That T; the run ends there. By default there is no end: T is then the number of gradients at the next check of
        the average, which doubles from check to check, so that steps fall like 1/sqrt(t).

    References
    ----------
    .. [1] Nemirovski, Juditsky, Lan and Shapiro, Robust stochastic approximation approach to stochastic programming,
       SIAM J. Optim. 19, 2009.
    .. [2] Ying, Wen and Lyu, Stochastic online AUC maximization, NIPS 2016.

    Examples
    --------
    >>> import pommel as pm
    >>> X, labels = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.3]], [1, 1, 0]
    >>> p = pm.DRO(X, labels, divergence=pm.ChiSquare(1 / 3), regularizer=pm.L2(1 / 3))
    >>> sol = pm.PDSG(primal_step=1.0, dual_step=0.3).solve(p, tol=0, max_passes=2000)
    >>> round(sol.objective, 2)
    0.42
    """

    primal_step: float
    dual_step: float
    horizon: int | None = None

    def stages(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        X, Y = problem.primal_set, problem.dual_set
        x, y = x0, engine.restart(x0).y
        average: Averages | None = None
        t, check = 0, math.ceil(FIRST_CHECK * problem.n)
        while self.horizon is None or t < self.horizon:
            check = check if self.horizon is None else min(check, self.horizon)
            root = math.sqrt(check if self.horizon is None else self.horizon)
            rule = GradientStep(self.primal_step / root, self.dual_step / root, X, Y)
            average = engine.run(rule, x, y, check - t, rng, past=average)
            x, y = average.last_x, average.last_y
            yield engine.restart(average.x)
            t, check = check, 2 * check

    def __post_init__(self) -> None:
        for name in ("primal_step", "dual_step"):
            check_number(getattr(self, name), name, equal=True)
        if self.horizon is not None:
            check_count(self.horizon, "horizon")
