"""Same truth: given the same draws, the compiled engine makes the reference engine's iterates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import pommel as pm
from pommel.engines.compiled import Compiled, LazyWalk
from pommel.engines.engine import Averages, Engine, GradientStep, Walk
from pommel.engines.reference import Reference
from pommel.problem import Problem, Sampling
from pommel.rows import Rows
from pommel.sets import BallWithin

RTOL = 1e-8
"""As far as the two may differ, relative to the largest entry; about 1e-13 is usual."""

N, D = 40, 6


@dataclass(frozen=True)
class Ramp:
    """A user's loss: nobody has registered it."""

    slope: float = 0.5

    lipschitz, smoothness, infimum = 1.0, np.inf, 0.0

    def value(self, margin: Any, label: Any) -> Any:
        return np.maximum(0.3 - label * margin, self.slope * np.maximum(0.0, 1.0 - label * margin))

    def derivative(self, margin: Any, label: Any) -> Any:
        first = 0.3 - label * margin > self.slope * np.maximum(0.0, 1.0 - label * margin)
        return -label * (1.0 * first + self.slope * (1.0 - first) * (label * margin < 1.0))


def unsorted_with_duplicates(X: np.ndarray) -> sp.csr_array:
    """Each entry in two halves, the last columns first."""
    n, d = X.shape
    indices = np.tile(np.repeat(np.arange(d)[::-1], 2), n)
    return sp.csr_array((np.repeat(X[:, ::-1] / 2.0, 2), indices, np.arange(n + 1) * 2 * d), shape=X.shape)


STORAGE: dict[str, Callable[[np.ndarray], Any]] = {
    "dense": lambda X: X,
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "csr int64": lambda X: with_index_type(sp.csr_array(X), np.int64),
    "duplicates": unsorted_with_duplicates,
    "intercept": lambda X: Rows(sp.csr_array(X), constant=0.7, column_scale=np.linspace(0.5, 2.0, D)),
    "dense intercept": lambda X: Rows(X, constant=0.7, column_scale=np.linspace(0.5, 2.0, D)),
}


def with_index_type(X: Any, dtype: type) -> Any:
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    return X


def data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.6)
    return X, np.where(X @ np.linspace(1.0, -1.0, D) + rng.standard_normal(N) > 0.0, 1, -1) * np.array(
        [1, -1] * (N // 2)
    )


def dro(storage: str = "csr", weighted: bool = False, **options: Any) -> Callable[[np.random.Generator], Problem]:
    def make(rng: np.random.Generator) -> Problem:
        X, labels = data(rng)
        given = {"divergence": pm.ChiSquare(1.0 / N), "regularizer": pm.L2(1.0 / N)} | options
        weights = rng.integers(0, 4, N) if weighted else None
        return pm.DRO(STORAGE[storage](X), labels, sample_weight=weights, **given)

    return make


def auc(storage: str = "csr", **options: Any) -> Callable[[np.random.Generator], Problem]:
    def make(rng: np.random.Generator) -> Problem:
        X, labels = data(rng)
        return pm.AUC(STORAGE[storage](X), labels, **options)

    return make


SHORT = {"primal_radius": 0.05, "dual_radius": 0.01}  # balls around the start that bind
STRONG, WEAK = pm.ChiSquare(0.1 / N), pm.ChiSquare(10.0 / N)
COMBINATIONS = {
    "as it comes": (dro(), pm.RSPDsc()),
    "dense": (dro("dense"), pm.RSPDsc()),
    "fortran": (dro("fortran"), pm.RSPDsc()),
    "float32": (dro("float32"), pm.RSPDsc()),
    "csr float32": (dro("csr float32"), pm.RSPDsc()),
    "csr int64": (dro("csr int64"), pm.RSPDsc()),
    "duplicates, ball": (dro("duplicates", constraint=pm.L2Ball(0.1)), pm.RSPDsc()),
    "intercept": (dro("intercept"), pm.RSPDsc()),
    "dense intercept, balls": (dro("dense intercept", constraint=pm.L2Ball(0.1)), pm.RSPD(**SHORT)),
    "logistic": (dro(loss=pm.Logistic()), pm.RSPDsc()),
    "user's loss": (dro(loss=Ramp()), pm.RSPDsc()),
    "strong": (dro(divergence=STRONG), pm.RSPDsc()),
    "strong, logistic, weighted": (dro(divergence=STRONG, loss=pm.Logistic(), weighted=True), pm.RSPDsc()),
    "weak": (dro(divergence=WEAK), pm.RSPDsc()),
    "mean": (dro(divergence=pm.Mean()), pm.RSPDsc()),
    "mean, ball, weighted": (dro(divergence=pm.Mean(), constraint=pm.L2Ball(0.2), weighted=True), pm.RSPD(**SHORT)),
    "no regularizer": (dro(regularizer=None), pm.RSPDsc()),
    "no regularizer, ball": (dro(regularizer=None, constraint=pm.L2Ball(0.3)), pm.ARSPD()),
    "weighted": (dro(weighted=True), pm.RSPDsc()),
    # Long steps divide by small y_i and make much of the last digit, in either engine.
    "i ~ y": (dro(divergence=STRONG), pm.RSPDsc(sampling="dual", dual_step=1e-5)),
    "i ~ y, whole, weighted": (dro(weighted=True), pm.RSPDsc(sampling="dual", dual_gradient="whole", dual_step=1e-4)),
    "mixed": (dro(), pm.RSPDsc(sampling="mixed")),
    "mixed, implicit, strong": (dro(divergence=STRONG), pm.RSPDsc(sampling="mixed", dual_gradient="implicit")),
    "whole": (dro(), pm.RSPDsc(dual_gradient="whole", dual_step=2e-4)),
    "whole, too long for a lazy step": (dro(), pm.RSPDsc(dual_gradient="whole", dual_step=0.1)),
    "implicit": (dro(), pm.RSPDsc(dual_gradient="implicit", dual_step=0.1)),
    "implicit, logistic, weighted": (
        dro(loss=pm.Logistic(), weighted=True),
        pm.RSPDsc(dual_gradient="implicit", dual_step=0.1),
    ),
    "shrinking too much for a lazy step": (dro(regularizer=pm.L2(5.0)), pm.RSPDsc(primal_step=0.3)),
    "balls that bind": (dro(), pm.RSPD(**SHORT)),
    "balls that bind, ball": (dro(constraint=pm.L2Ball(0.1)), pm.RSPD(**SHORT)),
    "balls that bind, whole, strong": (dro(divergence=STRONG), pm.RSPD(dual_gradient="whole", dual_step=1e-3, **SHORT)),
    "balls that bind, i ~ y": (dro(), pm.RSPD(sampling="dual", **SHORT)),
    "ball of theory": (dro(), pm.RSPDsc(bound=0.2)),
    "AUC, ball": (auc(constraint=pm.L2Ball(0.2)), pm.ARSPD()),
    "AUC, ball on v": (auc("dense", constraint=pm.L2Ball(0.2), on="v"), pm.ARSPD()),
    "AUC, no ball, L2": (auc("csr float32", regularizer=pm.L2(0.1)), pm.RSPDsc()),
    "AUC, ball, balls that bind": (auc(constraint=pm.L2Ball(0.2)), pm.ARSPD(primal_radius=0.02, dual_radius=0.005)),
    "AUC, ball on v, balls that bind": (auc(constraint=pm.L2Ball(0.2), on="v"), pm.RSPD(**SHORT)),
    "AUC, ball, L2, implicit": (
        auc("duplicates", constraint=pm.L2Ball(0.2), regularizer=pm.L2(0.05)),
        pm.RSPDsc(dual_gradient="implicit"),
    ),
    "plain method": (dro(), pm.PDSG(primal_step=5.0, dual_step=1e-3)),
}
LAZY_LATER = {  # steps are halved from stage to stage
    "whole, too long for a lazy step",
    "shrinking too much for a lazy step",
}


def record(engine: type[Engine], problem: Problem, solver: Any, seed: int) -> tuple[list[Averages], list[bool]]:
    """What the runs of four stages give, and whether each was lazy."""
    runs: list[Averages] = []
    lazy: list[bool] = []

    class Recording(engine):  # type: ignore[misc, valid-type]
        def run(self, *arguments: Any, **options: Any) -> Averages:
            runs.append(super().run(*arguments, **options))
            return runs[-1]

        def begin(self, *arguments: Any) -> Walk:
            walk = super().begin(*arguments)
            lazy.append(isinstance(walk, LazyWalk))
            return walk

    stages = solver.stages(
        problem, Recording(problem), problem.primal_set.project(np.zeros(problem.d)), np.random.default_rng(seed)
    )
    for _ in range(4):
        next(stages, None)
    return runs, lazy


@pytest.mark.parametrize("name", COMBINATIONS)
def test_both_engines_make_the_same_iterates(name: str, rng: np.random.Generator, seed: int) -> None:
    make, solver = COMBINATIONS[name]
    problem = make(rng)
    assert Compiled.missing(problem) is None
    (ours, lazy), (theirs, _) = (record(engine, problem, solver, seed) for engine in (Compiled, Reference))
    assert len(ours) == len(theirs) >= 4
    assert not lazy[0] if name in LAZY_LATER else all(lazy)
    for run, reference in zip(ours, theirs, strict=True):
        assert run.steps == reference.steps >= N
        for a, b in ((run.x, reference.x), (run.last_x, reference.last_x), (run.last_y, reference.last_y)):
            assert np.abs(a - b).max() <= RTOL * np.abs(b).max()


@pytest.mark.parametrize("center", [True, False], ids=["centred", "whole"])
@pytest.mark.parametrize("sampling", ["uniform", "mixed"])
def test_steps_refused_by_a_ball_are_the_same(sampling: Sampling, center: bool, rng: np.random.Generator) -> None:
    """Where the path may lead out of the dual ball the reference engine moves y; x and the center move all the same.

    The radius is half of how far the run gets without a ball.
    """
    problem, refused = dro(divergence=STRONG, weighted=True)(rng), []

    class Counting(Compiled):
        def _refused_step(self, *arguments: Any) -> None:
            refused.append(True)
            super()._refused_step(*arguments)

    x = rng.standard_normal(D)
    start, steps = problem.respond(x), problem.natural_steps(x, problem.best_response(x), sampling)
    X, Y, dual_step = problem.primal_set, problem.dual_set, steps.dual if center else 0.01 / problem.dual_curvature
    rule = GradientStep(steps.primal, dual_step, X, Y, sampling, start.center if center else None)
    engine, reference, draws = Counting(problem), Reference(problem), rng.random((40, 10))
    free = reference.begin(rule, x, start.y)
    reference.advance(rule, free, draws.ravel())
    radius = Y.distance(free.y, start.y) / 2.0
    ball = BallWithin(Y, start.y, radius)
    rule = replace(rule, dual_set=ball)
    ours, theirs = engine.begin(rule, x, start.y), reference.begin(rule, x, start.y)
    assert isinstance(ours, LazyWalk)
    for some in draws:
        engine.advance(rule, ours, some)
        reference.advance(rule, theirs, some)
        for a, b in ((ours.primal.point(), theirs.x), (ours.dual.point(), theirs.y)):
            assert np.abs(a - b).max() <= RTOL * np.abs(b).max()
        assert ours.dual.center == (pytest.approx(theirs.center, rel=RTOL) if center else None)
    assert 0 < len(refused) < ours.steps == theirs.steps == 400
    assert ball.distance(theirs.y, start.y) <= radius * (1.0 + 1e-9)


def test_there_are_at_most_40_combinations() -> None:
    assert len(COMBINATIONS) <= 40
