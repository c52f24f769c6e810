"""Peers that are handed the whole problem and show no iterates: CVXPY with Clarabel and OSQP, and `dro`.

Each runs once for every tolerance of a sweep, and a point counts from when its solve ended. Only the solver is timed,
not CVXPY's compilation of the problem, which is reported apart.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from benchmarks.certified.objective import Enough, Objective, Trace

CLARABEL_TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
OSQP_TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
MOST_ENTRIES = {"clarabel": 3e6, "osqp": 3e6, "dro": 1.2e6}
"""Sets with more stored entries than this, or more columns than `MOST_COLUMNS`, take such a solver far more than its
budget: news20 takes Clarabel six minutes."""

MOST_COLUMNS = 2000


def skip(solver: str, X: Any) -> str | None:
    """Why a solver is not run on a set."""
    entries = X.nnz if sp.issparse(X) else X.size
    if X.shape[1] > MOST_COLUMNS:
        return f"skipped: minutes for {X.shape[1]} columns, six of them for Clarabel on news20"
    if entries > MOST_ENTRIES[solver]:
        return f"skipped: {X.shape[0]} x {X.shape[1]} with {entries} entries takes far more than the budget"
    return None


def epigraph(Z: Any, loss: str, c: float, lam2: float) -> tuple[cp.Problem, cp.Variable]:
    """P as a cone program in x, the threshold and the excess of each loss over it, as small as it gets."""
    n, d = Z.shape
    x, tau, excess = cp.Variable(d), cp.Variable(), cp.Variable(n, nonneg=True)
    above = [excess >= 1 - Z @ x - tau, excess >= -tau] if loss == "hinge" else [excess >= cp.logistic(-Z @ x) - tau]
    value = tau + c / 2 + cp.sum_squares(excess) / (2 * c * n) + lam2 / 2 * cp.sum_squares(x)
    return cp.Problem(cp.Minimize(value), above), x


class Compiled:
    """A problem as a solver takes it."""

    def __init__(self, objective: Objective, solver: str) -> None:
        assert objective.c is not None
        started = time.perf_counter()
        self.problem, self.x = epigraph(objective.Z, objective.loss, objective.c, objective.lam2)
        self.data, self.chain, self.inverse = self.problem.get_problem_data(solver, solver_opts={})
        self.seconds = time.perf_counter() - started

    def solve(self, **options: Any) -> tuple[float, np.ndarray | None]:
        started = time.perf_counter()
        raw = self.chain.solve_via_data(self.problem, self.data, solver_opts=options)
        seconds = time.perf_counter() - started
        with suppress(cp.SolverError), warnings.catch_warnings(action="ignore"):
            self.problem.unpack_results(raw, self.chain, self.inverse)
        return seconds, self.x.value


def swept(
    objective: Objective, solver: str, settings: list[dict[str, Any]], limit: str
) -> tuple[Callable[[Trace], None], float]:
    """A run over the settings, and what compiling took."""
    compiled = Compiled(objective, solver)

    def run(trace: Trace) -> None:
        with suppress(Enough):
            for options in settings:
                seconds, x = compiled.solve(**options, **{limit: trace.max_seconds})
                if x is not None:
                    trace.record(objective.value(x), seconds)
                if seconds > trace.max_seconds:
                    raise Enough

    return run, compiled.seconds


def clarabel(objective: Objective) -> tuple[Callable[[Trace], None], float]:
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    return swept(
        objective,
        cp.CLARABEL,
        [{**dict.fromkeys(names, tolerance), "max_threads": 1} for tolerance in CLARABEL_TOLERANCES],
        "time_limit",
    )


def osqp(objective: Objective) -> tuple[Callable[[Trace], None], float]:
    settings = [
        {"eps_abs": tolerance, "eps_rel": tolerance, "max_iter": 10**6, "polishing": False}
        for tolerance in OSQP_TOLERANCES
    ]
    return swept(objective, cp.OSQP, settings, "time_limit")


def chi_square_ball(objective: Objective, x: np.ndarray) -> float:
    """mean (n y_i - 1)^2 at x: the ball whose boundary the penalised problem's best response at its optimum lies on."""
    _, y = objective.risk(objective.losses(objective.Z @ x, slopes=False)[0])
    return float(np.mean((np.asarray(y) - 1.0) ** 2))


def dro_missing() -> str | None:
    """Why `dro` cannot run, None if it can."""
    try:
        with warnings.catch_warnings(action="ignore"):
            importlib.import_module("dro.linear_model.chi2_dro")
    except Exception as error:  # it imports much that may be missing or broken in its own ways
        return f"dro cannot be imported: {type(error).__name__}: {error}"
    return None


def dro(objective: Objective, X: Any, labels: np.ndarray, optimum: np.ndarray) -> Callable[[Trace], None]:
    """`Chi2DRO` on the ball that matches; it has no regularizer, so its point is near ours, not the same.

    It has no tolerance to set and no time limit, and compiles within its fit: all of that is timed.
    """
    from dro.linear_model.chi2_dro import Chi2DRO

    def run(trace: Trace) -> None:
        kind = "svm" if objective.loss == "hinge" else "logistic"
        model = Chi2DRO(input_dim=objective.d, model_type=kind, fit_intercept=False)
        model.update({"eps": chi_square_ball(objective, optimum)})
        started = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):
            model.fit(X, labels)
        seconds = time.perf_counter() - started
        with suppress(Enough):
            trace.record(objective.value(np.ravel(model.theta)), seconds)

    return run
