"""scikit-learn and liblinear: the same problem without an adversary, and class-balanced least squares for AUC.

They show no iterates either: each is fitted once for every tolerance of a sweep, and a point counts from when its fit
ended.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import LinearSVC

import pommel as pm
from benchmarks.certified.objective import Enough, Objective, Trace

TOLERANCES = tuple(10.0**-k for k in np.arange(0.0, 9.5, 0.5))
MANY = 10**6


def swept(
    make: Callable[[float], Any],
    X: Any,
    labels: np.ndarray,
    value: Callable[[np.ndarray], float],
    tolerances: Sequence[float] = TOLERANCES,
) -> Callable[[Trace], None]:
    """Fits for looser to tighter tolerances, until the goal is reached or one took all the time."""

    def run(trace: Trace) -> None:
        with suppress(Enough), warnings.catch_warnings(action="ignore"):
            for tolerance in tolerances:
                model = make(float(tolerance))
                started = time.perf_counter()
                model.fit(X, labels)
                seconds = time.perf_counter() - started
                trace.record(value(model.coef_.ravel()), seconds)

    return run


def risk_minimisers(objective: Objective, X: Any, labels: np.ndarray) -> dict[str, Callable[[Trace], None]]:
    """P / lam2 is what they minimise, with C = 1 / (n lam2)."""
    shared = {"C": 1.0 / (objective.n * objective.lam2), "fit_intercept": False}

    def logistic(solver: str, **options: Any) -> Callable[[Trace], None]:
        def make(tol: float) -> LogisticRegression:
            return LogisticRegression(solver=solver, tol=tol, **{"max_iter": MANY, **shared, **options})

        return swept(make, X, labels, objective.value)

    def hinge(tol: float) -> LinearSVC:
        return LinearSVC(loss="hinge", tol=tol, max_iter=MANY // 100, random_state=0, **shared)

    if objective.loss == "hinge":
        return {"liblinear": swept(hinge, X, labels, objective.value)}
    runs = {
        "liblinear": logistic("liblinear"),
        "liblinear, dual": logistic("liblinear", dual=True, random_state=0, max_iter=MANY // 100),
        "sklearn lbfgs": logistic("lbfgs"),
    }
    if objective.d <= 2000:
        runs["sklearn newton-cholesky"] = logistic("newton-cholesky")
    return runs


def rank_value(problem: pm.AUC, w: np.ndarray) -> float:
    """P at the best multiple of w, with a and b at their best: of a classifier only the direction is comparable.

    P is a quadratic along w; three values tell which.
    """

    def at(scale: float) -> float:
        v = scale * w
        return problem.objective(np.append(v, [v @ problem.mean_positive, v @ problem.mean_negative]))

    below, zero, above = at(-1.0), at(0.0), at(1.0)
    curvature, slope = above + below - 2.0 * zero, 0.5 * (above - below)
    return at(-slope / curvature) if curvature > 0.0 else zero


def rankers(problem: pm.AUC, X: Any, labels: np.ndarray, lam2: float) -> dict[str, Callable[[Trace], None]]:
    """Balanced ridge regression with alpha = lam2 n / (4 p (1 - p)) has the direction of the optimum of P with L2."""
    alpha = lam2 * labels.size / (4.0 * problem.q)

    def value(w: np.ndarray) -> float:
        return rank_value(problem, w)

    def ridge(solver: str, X: Any = X) -> Callable[[Trace], None]:
        def make(tol: float) -> RidgeClassifier:
            return RidgeClassifier(alpha=alpha, class_weight="balanced", solver=solver, tol=tol, max_iter=MANY // 100)

        direct = solver == "cholesky"
        return swept(make, X, labels, value, TOLERANCES[:1] if direct else TOLERANCES)

    runs = {f"RidgeClassifier {solver}": ridge(solver) for solver in ("sparse_cg", "lsqr")}
    if X.shape[1] <= 2000:
        runs["RidgeClassifier cholesky"] = ridge("cholesky", X.toarray() if sp.issparse(X) else X)
    return runs


def logistic_reference(problem: pm.AUC, X: Any, labels: np.ndarray) -> tuple[float, float]:
    """Seconds of balanced logistic regression as it comes, and P of its direction: what many would use for AUC."""
    model = LogisticRegression(class_weight="balanced", max_iter=MANY // 100)
    started = time.perf_counter()
    model.fit(X, labels)
    return time.perf_counter() - started, rank_value(problem, model.coef_.ravel())
