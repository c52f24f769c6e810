"""L-BFGS-B of SciPy on the exact P, and on P with the hinge's kink rounded by continuation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy as np
from scipy.optimize import minimize

from benchmarks.certified.objective import Enough, Objective, Trace

Run = Callable[[Trace], None]
"""Solves until it is done or the trace has enough."""

NEVER = {"maxiter": 10**9, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0}
"""Stopping is the trace's business, or that of a line search that finds nothing more."""

STALLED = 1e-13
"""A restart that gains less than this share of P is the last."""

LAST_WIDTH = 1e-9


def lbfgs(objective: Objective, memory: int) -> Run:
    """On the exact P, started anew from the best point when the line search fails at a kink."""

    def run(trace: Trace) -> None:
        best = [np.zeros(objective.d)]

        def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = objective.value_and_gradient(x)
            if not trace.objectives or value < trace.objectives[-1]:
                best[0] = x.copy()
            trace.record(value)
            return value, gradient

        objective.tau = 0.0
        reached = np.inf
        with suppress(Enough):
            while not trace.objectives or trace.objectives[-1] < reached * (1.0 - STALLED):
                reached = trace.objectives[-1] if trace.objectives else np.inf
                options = {**NEVER, "maxcor": memory, "maxls": 30}
                minimize(value_and_gradient, best[0], jac=True, method="L-BFGS-B", options=options)

    return run


def smoothed_lbfgs(objective: Objective, memory: int, first: float, factor: float, share: float) -> Run:
    """On P with a kink of width `first`, then times `factor` and so on, each from where the last one ended.

    A width is left once |grad|^2 / (2 lam2), which is above the gap of the rounded problem, is below `share` of half
    the width, which is above what rounding changes. What is recorded is the exact P of each iterate.
    """

    def run(trace: Trace) -> None:
        x, width = np.zeros(objective.d), first
        gradient = np.zeros(objective.d)
        objective.tau = 0.0

        def record(x: np.ndarray) -> None:
            paused, tau = trace.now(), objective.tau
            value = objective.value(x)
            trace.recording += trace.now() - paused
            trace.record(value)
            objective.tau = tau

        def rounded(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient[:] = objective.value_and_gradient(x, width)
            return value, gradient.copy()

        def after_step(x: np.ndarray) -> None:
            record(x)
            if float(gradient @ gradient) <= share * width * objective.lam2:
                raise StopIteration

        with suppress(Enough):
            record(x)
            while width > LAST_WIDTH:
                options = {**NEVER, "maxcor": memory, "maxls": 30}
                x = minimize(rounded, x, jac=True, method="L-BFGS-B", callback=after_step, options=options).x
                width *= factor

    return run


def quasi_newton(objective: Objective) -> dict[str, Run]:
    """All variants: for each accuracy the best of a family counts."""
    runs: dict[str, Run] = {f"L-BFGS-B {memory}": lbfgs(objective, memory) for memory in (10, 20, 30)}
    if objective.loss == "hinge":
        smoothed = partial(smoothed_lbfgs, objective)
        runs["smoothed 20, 1, 0.1"] = smoothed(20, 1.0, 0.1, 0.1)
        runs["smoothed 20, 0.1, 0.3"] = smoothed(20, 0.1, 0.3, 0.1)
        runs["smoothed 30, 0.1, 0.1"] = smoothed(30, 0.1, 0.1, 1.0)
    return runs
