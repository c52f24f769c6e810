"""Every iterate of a solver, as the reference engine makes it, beside those of `boxes`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from boxes import RobustHinge, Stage, Vector
from small_problems import N, binary_data, dro

from pommel.engines.engine import Averages, GradientStep, Walk
from pommel.engines.reference import Reference
from pommel.problem import Problem
from pommel.solvers._solver import Solver


class Recorder(Reference):
    """The reference engine, one step at a time, with all that it was asked for."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.rules: list[GradientStep] = []
        self.stages: list[Stage] = []
        self.seeds: list[Any] = []  # of the draws

    def run(
        self,
        rule: GradientStep,
        x: Vector,
        y: Vector,
        steps: int,
        rng: np.random.Generator,
        *,
        past: Averages | None = None,
    ) -> Averages:
        self.rules.append(rule)
        self.seeds.append(rng.bit_generator.state)
        self._x, self._y = [x], [y]
        averages = super().run(rule, x, y, steps, rng, past=past)
        self.stages.append(Stage(np.array(self._x), np.array(self._y), averages.x))
        return averages

    def advance(self, rule: GradientStep, walk: Walk, draws: Vector) -> None:
        for u in draws:
            super().advance(rule, walk, np.array([u]))
            self._x.append(walk.x)
            self._y.append(walk.y)


def trace(solver: Solver, problem: Problem, x0: Vector, seed: int) -> Recorder:
    """A whole run of the solver."""
    engine = Recorder(problem)
    for iterate in solver.stages(problem, engine, x0, np.random.default_rng(seed)):
        np.testing.assert_array_equal(iterate.x, engine.stages[-1].average)
    return engine


def robust_hinge(
    rng: np.random.Generator, lam1: float = 1.0 / N, **options: Any
) -> tuple[Problem, RobustHinge, Vector]:
    """Pommel's problem, the boxes' own, and a start."""
    X, labels = binary_data(rng)
    lam2 = 0.3
    problem = dro(X, labels, loss="hinge", lam1=lam1, lam2=lam2)
    return problem, RobustHinge(X, labels, lam1, lam2, **options), rng.standard_normal(problem.d)


def assert_same_stages(ours: list[Stage], theirs: Iterable[Stage]) -> None:
    """Iterate by iterate; rounding errors do not grow, so 1e-9 leaves a wide margin."""
    theirs = list(theirs)
    assert [stage.x.shape for stage in ours] == [stage.x.shape for stage in theirs]
    for our, their in zip(ours, theirs, strict=True):
        for mine, other in zip(our, their, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9)
