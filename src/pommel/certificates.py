"""Lower bounds of min P: numbers that no objective is ever below, whatever accuracy a solver has reached.

For a linear model, l_i(x) = h(a_i'x, b_i), the inequality of Fenchel and Young gives for all y in Y and slopes s

    min P  >=  -sum_i y_i h*(s_i) - phi*(y) - sup_{x in X} (u'x - g(x)),    u = -sum_i y_i s_i a_i,

and equality at a solution, with s_i = h'(a_i'x) and y = A(x). A bound is only as good as y and s; where they come from
is the solvers' business.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dnrm2

from pommel.problem import Vector
from pommel.problems.dro import DRO
from pommel.sets.l2_ball import L2Ball
from pommel.sets.whole_space import WholeSpace

__all__ = ["dual_bound", "no_bound"]

EPS = float(np.finfo(np.float64).eps)


def no_bound(problem: DRO) -> str | None:
    """Why `dual_bound` cannot give a finite bound, None if it can."""
    if not hasattr(problem.loss, "conjugate"):
        return f"{problem.loss!r} has no conjugate"
    if not hasattr(problem.regularizer, "conjugate"):
        return f"{problem.regularizer!r} has no conjugate"
    if type(problem.primal_set) not in (WholeSpace, L2Ball):
        return f"the conjugate of g on {problem.primal_set!r} is not known"
    if not problem.regularizer.strong_convexity > 0.0 and not np.isfinite(problem.primal_set.radius):
        return "without a regularizer or a bounded constraint no dual point proves anything"
    return None


def dual_bound(problem: DRO, y: Vector, slopes: Vector, combination: Vector | None = None) -> float:
    """The bound that weights y >= 0 with sum 1 and slopes s_i in the domain of h* give.

    `combination` is sum_i y_i s_i a_i where the caller has it; else it costs a read of the rows. What rounding may have
    added is taken off: n eps times the size of each sum, and as much again for the objective that is compared with it.
    """
    if no_bound(problem) is not None:
        return -np.inf
    loss, g, radius = problem.loss, problem.regularizer, problem.primal_set.radius
    if combination is None:
        combination = problem.rows.rmatvec(y * slopes)
    with np.errstate(invalid="ignore"):
        conjugates = np.where(y > 0.0, y * loss.conjugate(slopes, problem.labels), 0.0)
    terms = conjugates.sum(), problem.divergence.value(y, problem.weights), g.conjugate(combination, radius)
    bound = -float(sum(terms))
    if not np.isfinite(bound):
        return -np.inf
    weighed = y > 0.0
    moved = float(
        (y * np.abs(slopes))[weighed] @ np.sqrt(problem.rows.squared_norms[weighed])
    )  # rounding of it is in u
    steepness = 1e6 * (g.conjugate((1.0 + 1e-6) * combination, radius) - terms[2])  # |u| times that of g*, or more
    length = float(dnrm2(combination))
    reached = steepness / length if length > 0.0 else 0.0
    # Losses and conjugates are differences of numbers of the size of the loss at margin 0, however small they are.
    unit = float(y @ np.abs(loss.value(np.zeros(problem.n), problem.labels)))
    sizes = float(np.abs(conjugates).sum()) + abs(terms[1]) + abs(terms[2]) + moved * reached + unit
    proved = bound - 2.0 * (problem.n + problem.d) * EPS * sizes
    return proved if np.isfinite(proved) else -np.inf
