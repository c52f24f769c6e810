"""Independent truths: the same problems stated in CVXPY and solved by Clarabel, from X and the labels alone."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

TIGHT = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}  # at 1e-10 Clarabel sometimes gives up


class Optimum(NamedTuple):
    x: np.ndarray
    value: float  # Clarabel's own optimal value, not an objective of ours at x


def solve_dro(
    X: Any,
    labels: np.ndarray,
    *,
    loss: str,
    lam1: float | None,
    lam2: float,
    sample_weight: np.ndarray | None = None,
    radius: float | None = None,
) -> Optimum:
    """DRO of a linear model with labels -1 and +1; `lam1=None` is plain risk minimisation.

    phi is written as a minimum: for weights w, n = sum w and y0 = w / n, a Lagrange multiplier for the simplex gives
    phi(l) = min_t  t + sum_i y0_i (l_i - t + n lam1)_+^2 / (2 n lam1) - n lam1 / 2.
    """
    w = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    n, y0 = w.sum(), w / w.sum()
    x = cp.Variable(X.shape[1])
    z = cp.multiply(labels, X @ x)
    losses = cp.pos(1 - z) if loss == "hinge" else cp.logistic(-z)
    if lam1 is None:
        risk = y0 @ losses
    else:
        t = cp.Variable()
        excess = cp.multiply(np.sqrt(y0), cp.pos(losses - t + n * lam1))
        risk = t + cp.sum_squares(excess) / (2 * n * lam1) - n * lam1 / 2
    constraints = [] if radius is None else [cp.norm2(x) <= radius]
    return _minimum(x, risk + lam2 / 2 * cp.sum_squares(x), constraints)


def solve_auc(X: Any, labels: np.ndarray, *, radius: float | None = None, on: str = "w", lam2: float = 0.0) -> Optimum:
    """AUC over v = (w, a, b) with alpha maximised out: a* is affine in w, so F's maximum is a square."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    positive = labels > 0
    p = positive.mean()
    v = cp.Variable(X.shape[1] + 2)
    w, a, b = v[:-2], v[-2], v[-1]
    difference = X[~positive].mean(axis=0) - X[positive].mean(axis=0)
    spread = (
        cp.sum_squares(X[positive] @ w - a) / positive.sum() + cp.sum_squares(X[~positive] @ w - b) / (~positive).sum()
    )
    objective = p * (1 - p) * (spread + 2 * difference @ w + cp.square(difference @ w)) + lam2 / 2 * cp.sum_squares(w)
    bounded = v if on == "v" else w
    return _minimum(v, objective, [] if radius is None else [cp.norm2(bounded) <= radius])


def solve_quadratics(centers: np.ndarray, roots: np.ndarray, *, lam1: float) -> Optimum:
    """DRO of the losses |R_i (x - c_i)|^2, phi as in `solve_dro`."""
    n, d = centers.shape
    x, t, excess = cp.Variable(d), cp.Variable(), cp.Variable(n, nonneg=True)
    losses = [cp.sum_squares(root @ (x - center)) for root, center in zip(roots, centers, strict=True)]
    risk = t + cp.sum_squares(excess) / (2 * n**2 * lam1) - n * lam1 / 2
    constraints = [loss - t + n * lam1 <= above for loss, above in zip(losses, excess, strict=True)]
    return _minimum(x, risk, constraints, dict.fromkeys(TIGHT, 1e-7))


def _minimum(x: cp.Variable, objective: Any, constraints: list[Any], tolerances: dict[str, float] = TIGHT) -> Optimum:
    problem = cp.Problem(cp.Minimize(objective), constraints)
    for fraction in (0.99, 0.9, 0.8):  # its steps stall now and then on exponential cones: shorter ones get through
        with warnings.catch_warnings(action="ignore", category=UserWarning), suppress(cp.SolverError):
            problem.solve(solver=cp.CLARABEL, max_step_fraction=fraction, **tolerances)
        if problem.status == "optimal":
            return Optimum(np.asarray(x.value), float(problem.value))
    raise AssertionError(f"Clarabel ended with status {problem.status}")
