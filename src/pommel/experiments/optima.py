"""The optimum of small problems, found without Pommel's solvers: what their gaps are measured against."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np
from scipy.optimize import brentq, minimize

from pommel.losses.hinge import Hinge
from pommel.problem import Vector
from pommel.problems.auc import AUC
from pommel.problems.dro import DRO
from pommel.regularizers.l2 import L2
from pommel.sets.l2_ball import L2Ball
from pommel.sets.whole_space import WholeSpace

__all__ = ["auc_optimum", "dro_bounds", "dro_optimum"]

SMOOTHINGS = 10.0 ** -np.arange(0.0, 8.5, 0.5)
"""Widths of the rounded kink, each a warm start for the next."""

GRADIENT_SHARE = 1e-3
"""A rounded problem is solved once |grad|^2 is below this share of its width times lam."""


def dro_optimum(problem: DRO) -> tuple[float, float]:
    """A lower and an upper bound of min P for hinge loss, an L2 regularizer and no constraint, for d up to about 100.

    They are those of `dro_bounds`, by BFGS and as close as it gets: about 1e-8.
    """
    if not isinstance(problem.loss, Hinge):
        raise TypeError(f"dro_optimum takes hinge loss, L2 and no constraint, got {problem!r}")
    return dro_bounds(problem, width=0.0, method="BFGS")


def dro_bounds(
    problem: DRO,
    *,
    width: float = 1e-6,
    max_seconds: float = np.inf,
    method: Literal["L-BFGS-B", "BFGS"] = "L-BFGS-B",
) -> tuple[float, float]:
    """A lower and an upper bound of min P for hinge or smooth loss, an L2 regularizer and no constraint.

    A quasi-Newton method minimises P with the kink of the hinge rounded over a width gamma that falls to 1e-8, until
    the bounds differ by a share `width` or the time is over. With s_i the slope of the rounded loss there and y the
    best response, every margin m has h(m) >= s_i m - h*(s_i), so that -sum y_i h*(s_i) - phi*(y) -
    g*(-sum y_i s_i a_i) is a lower bound whatever accuracy the method has reached. The gradient's part of the
    difference is |grad|^2 / (2 lam); there is no need for it to be small beside gamma's.
    """
    loss, g = problem.loss, problem.regularizer
    rounds = isinstance(loss, Hinge)
    known = (rounds or np.isfinite(loss.smoothness)) and isinstance(g, L2)
    if not (known and isinstance(problem.primal_set, WholeSpace)):
        raise TypeError(f"dro_bounds takes hinge loss, L2 and no constraint, or another smooth loss, got {problem!r}")
    phi, weights, rows, labels = problem.divergence, problem.weights, problem.rows, problem.labels
    deadline = time.perf_counter() + max_seconds

    def rounded(x: Vector, gamma: float) -> tuple[Vector, Vector, Vector]:
        """Rounded losses, their slopes and their best response y."""
        margins = rows.matvec(x)
        if rounds:
            excess = 1.0 - labels * margins
            share = np.clip(excess / gamma, 0.0, 1.0)
            losses, slopes = share * (excess - gamma * share / 2.0), -labels * share
        else:
            losses, slopes = loss.value(margins, labels), loss.derivative(margins, labels)
        return losses, slopes, phi.best_response(losses, weights)

    def at(x: Vector, gamma: float) -> tuple[float, float]:
        """The lower bound that x leads to, and P(x)."""
        _, slopes, y = rounded(x, gamma)
        conjugates = float(y @ loss.conjugate(slopes, labels))
        return -conjugates - phi.value(y, weights) - g.conjugate(-rows.rmatvec(y * slopes)), problem.objective(x)

    x = np.zeros(problem.d)
    lower, upper = at(x, SMOOTHINGS[0])
    gradient = np.zeros_like(x)
    options = {"maxiter": 3000, "gtol": 1e-8}
    if method == "L-BFGS-B":
        options = {"maxiter": 3000, "maxfun": 6000, "maxcor": 30, "gtol": 0.0, "ftol": 0.0}
    for gamma in SMOOTHINGS:

        def smooth(x: Vector, gamma: float = gamma) -> tuple[float, Vector]:
            losses, slopes, y = rounded(x, gamma)
            gradient[:] = g.subgradient(x) + rows.rmatvec(y * slopes)
            return float(y @ losses) - phi.value(y, weights) + g.value(x), gradient.copy()

        def enough(_: Vector, gamma: float = gamma) -> None:
            if gradient @ gradient < GRADIENT_SHARE * gamma * g.strong_convexity or time.perf_counter() > deadline:
                raise StopIteration

        x = minimize(smooth, x, jac=True, method=method, callback=enough, options=options).x
        below, above = at(x, gamma)
        lower, upper = max(lower, below), min(upper, above)
        if upper - lower <= width * abs(upper) or time.perf_counter() > deadline:
            break
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
