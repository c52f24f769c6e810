"""A primal-dual interior-point method for piecewise linear losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from pommel.certificates import no_bound
from pommel.divergences.chi_square import ChiSquare
from pommel.divergences.mean import Mean
from pommel.engines.engine import Engine, Iterate
from pommel.problem import PiecewiseLinearLoss, Problem, Vector
from pommel.problems._primal_dual import PrimalDual
from pommel.problems.dro import DRO
from pommel.regularizers.l2 import L2
from pommel.sets.whole_space import WholeSpace
from pommel.solvers._solver import Solver

__all__ = ["InteriorPoint"]

LARGEST_MATRIX = 2000
"""The largest d."""

MOST_STEPS = 200

BACK = 0.995
"""Steps end so far on the way to the boundary."""

POWER = 4
"""The target is the share of the products that the predictor leaves, to this power, of their mean."""

CORRECTORS, LONG = 2, 0.95
"""So many further solves with one factor try to lengthen a step that is shorter than this."""

REACH, CENTRE, GAIN = 0.3, (0.1, 10.0), 0.01
"""By how much, to products in which range around the target, and what they must gain to be tried again."""

SHORTEST, SPREAD = 1e-8, float(np.finfo(np.float64).eps)
"""Shorter steps, and products whose sum is a smaller share of P, end the solve: what is left is rounding."""


@dataclass(frozen=True, kw_only=True)
class InteriorPoint(Solver):
    r"""A primal-dual interior-point method for robust linear models with a piecewise linear loss, certified.

    Solves :math:`\min_x \varphi(\ell(x)) + \tfrac{\lambda}{2} \|x\|^2` for :math:`h(m) = \max_k s_k m + r_k`, such as
    the hinge or the absolute loss, and the chi-square divergence or the mean, as the quadratic program it is:

    .. math:: \max_{\alpha \ge 0} \; \sum_{ik} \alpha_{ik} r_{ik} - \varphi^*(y) - \frac{1}{2 \lambda} \Big\| \sum_{ik}
              \alpha_{ik} s_{ik} a_i \Big\|^2, \qquad y_i = \sum_k \alpha_{ik}

    Its steps cost a d x d Cholesky factor and one weighted Gram matrix of the rows each, as those of Newton's method
    do; their number hardly depends on the problem, ten to thirty for any accuracy. A step is Mehrotra's predictor and
    corrector [1]_, followed by up to two of Gondzio's centrality correctors [2]_, which use the same factor. All of a
    row's own unknowns are eliminated [3]_. x and alpha are feasible at all times, so every step has its lower bound.

    Interior points cannot be warm-started well: x0 is evaluated, but the iteration starts at 0. Each step counts up to
    nine passes; give ``max_passes=None``.

    References
    ----------
    .. [1] Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 2, 1992.
    .. [2] Gondzio, Multiple centrality corrections in a primal-dual method for linear programming, Comput. Optim. Appl.
       6, 1996.
    .. [3] Ferris and Munson, Interior-point methods for massive support vector machines, SIAM J. Optim. 13, 2002.
    .. [4] Wright, Primal-dual interior-point methods, SIAM, 1997.

    Examples
    --------
    >>> import pommel as pm
    >>> X, labels = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.3]], [1, 1, 0]
    >>> p = pm.DRO(X, labels, divergence=pm.ChiSquare(1 / 3), regularizer=pm.L2(1 / 3))
    >>> sol = pm.InteriorPoint().solve(p, tol=1e-6, max_passes=None)
    >>> sol.status.name, round(sol.objective, 6), bool(sol.relative_gap <= 1e-6)
    ('CONVERGED', 0.42445, True)
    """

    def stages(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        assert isinstance(problem, DRO)
        point = PrimalDual(problem)
        for _ in range(MOST_STEPS):
            engine.pay(passes=1)
            point.eliminate()
            response = problem.respond(point.x, point.margins)
            yield Iterate(point.x, *response, lower_bound=point.lower_bound)
            if not point.products > SPREAD * abs(response.objective):
                return
            engine.pay(passes=4)
            point.factorise()
            predictor, left = point.predictor()
            target = (left / point.products) ** POWER * point.products / point.slopes.shape[1]
            step = point.corrector(predictor, target)
            for _ in range(CORRECTORS):
                if step.length >= LONG:
                    break
                engine.pay(passes=2)
                ahead = point.recentred(step, min(1.0, step.length + REACH), *(share * target for share in CENTRE))
                if not ahead.length >= step.length + GAIN:
                    break
                step = ahead
            if not step.length > SHORTEST:
                return
            point.move(step, BACK * step.length if step.length < 1.0 else 1.0)

    def check(self, problem: Problem) -> None:
        wanted = "InteriorPoint takes a DRO problem"
        if not isinstance(problem, DRO):
            raise ValueError(f"{wanted}, got {type(problem).__name__}")
        if not hasattr(problem.loss, "pieces"):
            raise ValueError(
                f"{wanted} whose loss is piecewise linear and has a method pieces(label) that gives slopes and "
                f"intercepts of its pieces. {problem.loss!r} has none; Newton takes smooth losses"
            )
        if type(problem.divergence) not in (ChiSquare, Mean):
            raise ValueError(f"{wanted} with ChiSquare or Mean, got {problem.divergence!r}")
        if type(problem.regularizer) is not L2:
            raise ValueError(f"{wanted} with an L2 regularizer, got {problem.regularizer!r}")
        if type(problem.primal_set) is not WholeSpace:
            raise ValueError(f"{wanted} with no constraint, got {problem.primal_set!r}; Newton takes an L2Ball")
        if problem.d > LARGEST_MATRIX:
            raise ValueError(
                f"{wanted} with d <= {LARGEST_MATRIX}, got d = {problem.d}: it factors a d x d matrix at each step"
            )
        reason = no_bound(problem)
        if reason is not None:
            raise ValueError(f"InteriorPoint cannot certify this problem: {reason}")
        check_pieces(problem)


def check_pieces(problem: DRO) -> None:
    """Refuse pieces that are not those of the loss."""
    loss = cast(PiecewiseLinearLoss, problem.loss)
    for label in (-1.0, 1.0):
        for margin in (-3.0, -0.3, 0.0, 0.3, 3.0):
            value = float(loss.value(margin, label))
            largest = max(float(slope) * margin + float(above) for slope, above in loss.pieces(label))
            if not np.isclose(value, largest, rtol=1e-9, atol=1e-12):
                raise ValueError(
                    f"{loss!r} is {value} at margin {margin} and label {label}, the largest of its pieces {largest}"
                )
