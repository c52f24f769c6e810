"""The optimum of small problems, found without Pommel's solvers: what their gaps are measured against."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, minimize

from pommel.losses.hinge import Hinge
from pommel.problem import Vector
from pommel.problems.auc import AUC
from pommel.problems.dro import DRO
from pommel.regularizers.l2 import L2
from pommel.sets.l2_ball import L2Ball
from pommel.sets.whole_space import WholeSpace

__all__ = ["auc_optimum", "dro_optimum"]

SMOOTHINGS = 10.0 ** -np.arange(0.0, 8.5, 0.5)
"""Widths of the rounded kink, each a warm start for the next."""


def dro_optimum(problem: DRO) -> tuple[float, float]:
    """A lower and an upper bound of min P for hinge loss, an L2 regularizer and no constraint, for d up to about 100.

    BFGS minimises P with the kink of the hinge rounded over a width gamma that falls to 1e-8. With s the slope of the
    rounded loss there, alpha = y * s is feasible in the dual, and sum(alpha) - phi*(y) - |sum alpha_i b_i a_i|^2 / (2
    lam) is a lower bound whatever accuracy BFGS has reached.
    """
    g = problem.regularizer
    if not (isinstance(problem.loss, Hinge) and isinstance(g, L2) and isinstance(problem.primal_set, WholeSpace)):
        raise TypeError(f"dro_optimum takes hinge loss, L2 and no constraint, got {problem!r}")
    phi, weights, rows, labels = problem.divergence, problem.weights, problem.rows, problem.labels
    x = np.zeros(problem.d)
    lower, upper = -np.inf, np.inf

    def rounded(x: Vector, gamma: float) -> tuple[Vector, Vector, Vector]:
        """Rounded losses, their best response y, and alpha."""
        excess = 1.0 - labels * rows.matvec(x)
        slope = np.clip(excess / gamma, 0.0, 1.0)
        losses = slope * (excess - gamma * slope / 2.0)
        y = phi.best_response(losses, weights)
        return losses, y, y * slope

    for gamma in SMOOTHINGS:

        def smooth(x: Vector, gamma: float = gamma) -> tuple[float, Vector]:
            losses, _, alpha = rounded(x, gamma)
            return phi.conjugate(losses, weights) + g.value(x), g.subgradient(x) - rows.rmatvec(alpha * labels)

        x = minimize(smooth, x, jac=True, method="BFGS", options={"maxiter": 3000, "gtol": 1e-8}).x
        _, y, alpha = rounded(x, gamma)
        lower = max(lower, float(alpha.sum() - phi.value(y, weights) - g.conjugate(rows.rmatvec(alpha * labels))))
        upper = min(upper, problem.objective(x))
    return lower, upper


def auc_optimum(problem: AUC) -> tuple[float, Vector]:
    """min P and its minimiser v without a regularizer, unconstrained or with an L2 ball on w, for d up to about 1000.

    With a and b at their best P is q (w'Hw - 2 w'delta), H the sum of the class covariances plus delta delta',
    delta the difference of the class means. Its minimiser in a ball is (H + nu I)^-1 delta with the least nu >= 0
    that keeps it inside.
    """
    ball = problem.constraint
    if not (isinstance(ball, L2Ball | None) and problem.on == "w" and problem.regularizer.strong_convexity == 0.0):
        raise TypeError(f"auc_optimum takes no constraint or an L2Ball on w, and no regularizer, got {problem!r}")
    radius = np.inf if ball is None else ball.radius
    X = np.array([problem.rows.row(i) for i in range(problem.n)])
    positive = problem.labels > 0.0
    delta = problem.mean_positive - problem.mean_negative
    H = np.outer(delta, delta)
    for kept, mean in ((positive, problem.mean_positive), (~positive, problem.mean_negative)):
        centred = X[kept] - mean
        H += centred.T @ centred / kept.sum()
    values, vectors = np.linalg.eigh(H)
    values = np.maximum(values, values[-1] * X.shape[1] * np.finfo(np.float64).eps)
    along = vectors.T @ delta

    def solution(nu: float) -> Vector:
        return along / (values + nu)

    nu = 0.0
    if np.linalg.norm(solution(0.0)) > radius:
        most = float(np.linalg.norm(along)) / radius  # |w| <= |delta| / nu
        nu = brentq(lambda nu: np.linalg.norm(solution(nu)) - radius, 0.0, most, xtol=1e-300, rtol=1e-15)
    w = vectors @ solution(nu)
    v = np.append(w, [w @ problem.mean_positive, w @ problem.mean_negative])
    return problem.objective(v), v
