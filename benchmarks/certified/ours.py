"""Pommel's contestants: one run to 1e-6, whose history has the times to every certified gap on the way."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import pommel as pm
from benchmarks.certified.objective import Trace
from pommel.solution import Solution

Solve = Callable[..., Solution]

AUTO, EXACT = "auto", "ExactAUC"


SINGLES = ("Newton", "InteriorPoint", "DualAscent", "RSPDsc")


def singles(problem: Any) -> dict[str, Solve]:
    """What auto chooses from, each alone, as far as they take the problem."""
    solvers = {}
    for name in SINGLES:
        solver = getattr(pm, name)()
        with suppress(ValueError):
            solver.check(problem)
            solvers[name] = solver.solve
    return solvers


@dataclass(frozen=True)
class Curve:
    """The best of everything seen over time. Peers prove nothing: their bounds are -inf, their certified gaps inf."""

    seconds: np.ndarray
    objectives: np.ndarray
    lower_bounds: np.ndarray
    certified: np.ndarray
    share: float = 1.0  # of a core that the run had; seconds are those it would have taken with all of it
    message: str = ""
    x: np.ndarray | None = None

    @classmethod
    def of(cls, trace: Trace, share: float) -> Curve:
        seconds, objectives = share * np.array(trace.seconds), np.array(trace.objectives)
        return cls(seconds, objectives, np.full(seconds.size, -np.inf), np.full(seconds.size, np.inf), share)

    def points(self, most: int = 200) -> list[list[float]]:
        """Seconds, objective and lower bound, closer together at the start."""
        kept = np.unique(np.geomspace(1, max(1, self.seconds.size), most).astype(np.int64))[: self.seconds.size] - 1
        return np.column_stack([self.seconds, self.objectives, self.lower_bounds])[kept].tolist()

    def time_to(self, gap: float, optimum: float, size: float) -> float:
        """Seconds to a true gap, a share of `size`; inf if the run never had it."""
        return float(self.seconds[self.objectives - optimum <= gap * size].min(initial=np.inf))

    def time_to_certified(self, gap: float) -> float:
        return float(self.seconds[self.certified <= gap].min(initial=np.inf))


class Share:
    """The share of a core that this process had since then: others may use the same ones."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def __call__(self) -> float:
        return min(1.0, (time.process_time() - self.cpu) / (time.perf_counter() - self.wall))


def solve(run: Solve, make: Callable[[], Any], tol: float, budget: float, *, counts_problem: bool = False) -> Curve:
    """What lies outside of the history, such as choosing a solver, counts from the start.

    The problem counts, its checks of X and all, beside peers whose `fit` checks X as well; it does not beside those
    that are given X times the labels ready to use. What it computes when it is first asked for always counts.
    """
    problem = None if counts_problem else make()
    share, started = Share(), time.perf_counter()
    problem = make() if problem is None else problem
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        solution = run(problem, tol=tol, max_passes=None, max_seconds=budget)
    outside = time.perf_counter() - started - solution.seconds
    had, history = share(), solution.history
    return Curve(
        had * (history["seconds"] + outside),
        np.minimum.accumulate(history["objective"]),
        np.maximum.accumulate(history["lower_bound"]),
        np.minimum.accumulate(history["relative_gap"]),
        had,
        f"{solution.solver}: {solution.message}",
        solution.x,
    )
