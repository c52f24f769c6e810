"""Coordinate ascent on the dual."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pommel.dual_point import DualPoint
from pommel.engines.engine import Engine, Iterate
from pommel.problem import Problem, Vector
from pommel.problems.dro import DRO
from pommel.solvers._solver import Solver

__all__ = ["DualAscent"]

FIRST, SPACING = 2, 1.25
"""Epochs before the first check and between checks, which read the rows once more, and their growth."""

LAG = 0.1
"""The bound is ahead of x where it has gained less than this share of the gap since the last check."""

RENEWAL = 0.05
"""x is computed anew where its rounding costs the bound more than this share of the gap."""

STILL, PATIENCE = 3, 100
"""Only rounding is left when nothing was gained in three quarters of all epochs, and in so many at least."""


@dataclass(frozen=True, kw_only=True)
class DualAscent(Solver):
    r"""Coordinate ascent on the dual of a regularised DRO problem, certified at every check.

    .. math:: \min_{\|x\| \le R} \max_{y} \; \sum_i y_i h(a_i^\top x, b_i) - \varphi^*(y) + \tfrac{\lambda}{2} \|x\|^2

    for any convex loss h with a conjugate, `ChiSquare` or `Mean`, and R finite or not. For a fixed threshold tau of the
    worst case P has an upper model that is a regularised sum over rows of convex functions of a margin, whose dual one
    ascends a coordinate at a time, exactly, as in [1]_ and [2]_. A coordinate is a weight y_i times a slope s_i of the
    loss, x is a sum over them, and y and s prove a lower bound at no cost. The model is jointly convex in x and tau,
    and tau moves with the sum of the weights as one more variable [3]_, so that the whole converges to the optimum of
    P. Rows at rest are visited less often, and from pass to pass the point is extrapolated by Nesterov's momentum.

    A pass costs what the entries of the rows do, however many columns there are: the method is at its best on sparse
    and wide data. It has no parameters. A start `x0` other than 0 is used through the dual point that follows from it.

    References
    ----------
    .. [1] Shalev-Shwartz and Zhang, Stochastic dual coordinate ascent methods for regularized loss minimization,
       JMLR 14, 2013.
    .. [2] Hsieh, Chang, Lin, Keerthi and Sundararajan, A dual coordinate descent method for large-scale linear SVM,
       ICML 2008.
    .. [3] Bertsekas, Constrained optimization and Lagrange multiplier methods, Academic Press, 1982.

    Examples
    --------
    >>> import pommel as pm
    >>> X, labels = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.3]], [1, 1, 0]
    >>> p = pm.DRO(X, labels, divergence=pm.ChiSquare(1 / 3), regularizer=pm.L2(1 / 3))
    >>> sol = pm.DualAscent().solve(p, tol=1e-6, max_passes=None)
    >>> round(sol.objective, 6), sol.relative_gap <= 1e-6
    (0.42445, True)
    """

    def check(self, problem: Problem) -> None:
        if (reason := DualPoint.missing(problem)) is not None:
            raise ValueError(f"DualAscent cannot take this problem: {reason}")

    def stages(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        point = self.start(problem, engine, x0)
        bound, objective = -math.inf, math.inf
        goes_on, gained, due = True, 0, FIRST

        def paid(rows: int) -> bool:  # for a chunk of rows and the check after it
            affordable = not engine.exhausted() and engine.affords(rows)
            if affordable:
                engine.pay(rows / problem.n)
            return affordable

        while goes_on and point.epochs - gained <= PATIENCE + STILL * gained:
            while goes_on and point.epochs < due:
                goes_on = point.epoch(rng, paid)
            if goes_on and point.rounding > RENEWAL * (objective - bound) and engine.affords(problem.n):
                engine.pay(1)
                point.refresh()
            iterate = replace(engine.restart(point.x), lower_bound=point.bound())
            yield iterate
            if iterate.lower_bound > bound or iterate.objective < objective:
                gained = point.epochs
            objective = min(objective, iterate.objective)
            if iterate.lower_bound - bound < LAG * (iterate.objective - iterate.lower_bound):
                point.settle()
            bound, due = iterate.lower_bound, due + max(FIRST, round((SPACING - 1.0) * due))

    @staticmethod
    def start(problem: Problem, engine: Engine, x0: Vector) -> DualPoint:
        """The dual point that follows from x0."""
        assert isinstance(problem, DRO)
        if not x0.any():
            return DualPoint(problem)
        start = engine.restart(x0)
        engine.pay(1)
        return DualPoint(problem, x0, start.y, start.read)
