"""Lower bounds for solvers that come by none: `drive` has a few passes spent on them at restarts.

A class here serves one solve and gets better from restart to restart. Its `bounds(iterate, engine)` yields lower
bounds, each after about a pass that the engine has been paid for; the caller stops when it likes. The dual of a problem
with L2 is best climbed by coordinates, from where it stands; elsewhere the iterate itself leads to a dual point, by
slopes of a rounded loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pommel.certificates import no_bound
from pommel.dual_point import DualPoint
from pommel.engines.engine import Engine, Iterate
from pommel.problem import Problem
from pommel.problems._local_model import LocalModel, can_be_rounded, is_smooth
from pommel.problems.auc import AUC
from pommel.problems.dro import DRO
from pommel.solvers.exact_auc import ExactAUC, no_auc_bound

__all__ = ["bounds_of", "why_not"]

NARROWER, NARROWEST = 4.0, 1e-8
"""Kinks are rounded over ever smaller widths, as long as that proves more."""


class ByCoordinates:
    """Coordinate ascent on the dual, from the first iterate's dual response on."""

    def __init__(self, problem: DRO) -> None:
        self.problem, self.rng = problem, np.random.default_rng(0)
        self.point: DualPoint | None = None

    def bounds(self, iterate: Iterate, engine: Engine) -> Iterator[float]:
        def paid(rows: int) -> bool:
            engine.pay(rows / self.problem.n)
            return True

        if self.point is None:
            engine.pay(passes=1)
            self.point = DualPoint(self.problem, iterate.x, iterate.y, iterate.read)
        while True:  # after the first epochs rows at rest are passed over
            self.point.epoch(self.rng, paid)
            yield self.point.bound()


class ByRounding:
    """Weights and slopes of a loss without kinks at the iterate are a dual point."""

    def __init__(self, problem: DRO) -> None:
        self.problem, self.width = problem, 1.0

    def bounds(self, iterate: Iterate, engine: Engine) -> Iterator[float]:
        loss, best, width = self.problem.loss, -np.inf, self.width
        margins = self.problem.read(iterate.x) if iterate.read is None else iterate.read
        while width > NARROWEST:
            engine.pay(passes=1)
            if is_smooth(loss):
                yield LocalModel(self.problem, loss, iterate.x, margins).lower_bound
                return
            assert can_be_rounded(loss)
            bound = LocalModel(self.problem, loss.smoothed(width), iterate.x, margins).lower_bound
            yield bound
            if bound < best:
                return
            self.width, best, width = width, bound, width / NARROWER


class ByQuadratic:
    """What `ExactAUC` proves on the way to the optimum, from the first iterate on; few columns take it one step."""

    def __init__(self, problem: AUC) -> None:
        self.problem = problem
        self.steps: Iterator[Iterate | None] | None = None

    def bounds(self, iterate: Iterate, engine: Engine) -> Iterator[float]:
        if self.steps is None:
            self.steps = ExactAUC().steps(self.problem, engine, iterate.x, np.random.default_rng(0))
        for found in self.steps:
            yield -np.inf if found is None else found.lower_bound


def bounds_of(problem: Problem) -> Callable[[Iterate, Engine], Iterator[float]]:
    """What makes bounds for a problem: none at all if nothing here can."""
    if why_not(problem) is not None:
        return lambda iterate, engine: iter(())
    if isinstance(problem, AUC):
        return ByQuadratic(problem).bounds
    assert isinstance(problem, DRO)
    return ByCoordinates(problem).bounds if DualPoint.missing(problem) is None else ByRounding(problem).bounds


def why_not(problem: Problem) -> str | None:
    """Why no bound can be proved for a problem, None if one can."""
    if isinstance(problem, AUC):
        return no_auc_bound(problem)
    if not isinstance(problem, DRO):
        return f"nothing is known of the losses of {type(problem).__name__}; it may be given a lower_bound"
    if not (is_smooth(problem.loss) or can_be_rounded(problem.loss)) and DualPoint.missing(problem) is not None:
        return f"{problem.loss!r} can neither be rounded nor is it smooth"
    return no_bound(problem)
