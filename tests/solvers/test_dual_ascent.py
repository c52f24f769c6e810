"""Coordinate ascent on the dual: to Clarabel's optimum from both sides, on every kind of problem it takes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import solve_dro
from scipy.sparse import csr_array
from small_problems import WEIGHTS, auc, binary_data, dro

import pommel as pm
from pommel.dual_point import DualPoint
from pommel.rows import Rows

WAYS = [
    {"loss": loss, "lam1": lam1, "lam2": lam2, "radius": radius, "sample_weight": weights}
    for loss in ("hinge", "logistic")
    for lam1 in (None, 0.02, 1.0)
    for lam2, radius in ((0.1, None), (0.1, 0.4), (0.1, 50.0), (1e-2, None))
    for weights in (None, WEIGHTS)
]


def solve(problem: Any, tol: float = 1e-8, **options: Any) -> pm.Solution:
    return pm.DualAscent().solve(problem, tol=tol, max_passes=5000, **options)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_bound_and_objective_meet_at_the_optimum(way: dict[str, Any], rng: np.random.Generator, seed: int) -> None:
    X, labels = binary_data(rng)
    optimum = solve_dro(X, labels, **way).value
    solution = solve(dro(X, labels, **way), random_state=seed)
    assert solution.status is pm.Status.CONVERGED
    assert (solution.history["lower_bound"] <= optimum + 1e-7).all()
    assert solution.lower_bound == pytest.approx(optimum, abs=1e-7)
    assert solution.objective == pytest.approx(optimum, abs=1e-7)


@pytest.mark.parametrize("lam1", [None, 0.001, 0.01])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_more_rows_than_columns_and_strong_adversaries(loss: str, lam1: float | None, rng: np.random.Generator) -> None:
    """The threshold is as slow a variable as any there."""
    X, labels = binary_data(rng, 150, 6)
    way: dict[str, Any] = {"loss": loss, "lam1": lam1, "lam2": 0.005}
    solution = solve(dro(X, labels, **way), tol=1e-6)
    assert solution.objective == pytest.approx(solve_dro(X, labels, **way).value, rel=2e-6)
    assert solution.n_passes < 2000


@dataclass(frozen=True)
class Absolute:
    """A loss of a user's own, with slopes -1 and 1."""

    lipschitz, infimum, smoothness = 1.0, 0.0, np.inf

    def value(self, margin: Any, label: Any) -> Any:
        return np.abs(margin - label)

    def derivative(self, margin: Any, label: Any) -> Any:
        return np.where(margin < label, -1.0, 1.0)

    def conjugate(self, slope: Any, label: Any) -> Any:
        return np.where(np.abs(slope) <= 1.0, slope * label, np.inf)


@pytest.mark.parametrize("loss", [Absolute(), pm.SmoothedHinge(0.3), pm.SmoothedHinge(1e-4)], ids=str)
@pytest.mark.parametrize("divergence", [pm.Mean(), pm.ChiSquare(0.02)], ids=str)
def test_any_loss_is_certified(loss: Any, divergence: Any, rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, 40, 4)
    solution = solve(pm.DRO(X, labels, loss=loss, divergence=divergence, regularizer=pm.L2(0.02)))
    assert solution.relative_gap <= 1e-8


@pytest.mark.parametrize("options", [{}, {"constant": 2.0, "column_scale": np.array([1.0, 0.2, 3.0])}], ids=str)
def test_sparse_and_dense_rows_give_the_same_run(options: dict[str, Any], rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, 30)
    X[rng.random(X.shape) < 0.4] = 0.0
    solutions = []
    for storage in (np.asarray, csr_array):
        rows = Rows(storage(X), **options)
        solutions.append(
            pm.DualAscent().solve(
                pm.DRO(rows, labels, divergence=pm.ChiSquare(0.05), regularizer=pm.L2(0.05)), tol=0, max_passes=20
            )
        )
    np.testing.assert_allclose(solutions[0].x, solutions[1].x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        solutions[0].history["lower_bound"], solutions[1].history["lower_bound"], rtol=1e-9, atol=1e-12
    )


def test_an_integer_weight_is_a_repeated_row(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    counts = rng.integers(0, 4, labels.size)
    counts[:2] = 2
    parts: dict[str, Any] = {"divergence": pm.ChiSquare(0.03), "regularizer": pm.L2(0.1)}
    weighted = solve(pm.DRO(X, labels, sample_weight=counts, **parts))
    repeated = solve(pm.DRO(np.repeat(X, counts, axis=0), np.repeat(labels, counts), **parts))
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-7)
    np.testing.assert_allclose(weighted.x, repeated.x, atol=1e-3)


def test_degenerate_rows(rng: np.random.Generator) -> None:
    """Rows of zeros, repeated rows, two rows, a class of one row, no column that helps."""
    X, labels = binary_data(rng)
    X[[0, 3, 4]] = 0.0
    X[5] = X[6]
    single = np.where(np.arange(labels.size) == 0, 1.0, -1.0)
    for rows, classes in (
        (X, labels),
        (X, single),
        (X[1:3], np.array([-1.0, 1.0])),
        (np.zeros((4, 2)), np.array([1.0, -1.0, 1.0, 1.0])),
        (np.ones((4, 1)), np.array([1.0, -1.0, 1.0, 1.0])),
    ):
        for way in ({"lam1": None}, {"lam1": 0.05}, {"lam1": 10.0}):
            options: dict[str, Any] = {"loss": "hinge", "lam2": 0.1, **way}
            solution = solve(dro(rows, classes, **options))
            assert solution.status is pm.Status.CONVERGED
            assert solution.objective == pytest.approx(solve_dro(rows, classes, **options).value, abs=1e-7)


@given(data=st.data())
def test_no_objective_is_ever_below_a_bound(data: Any) -> None:
    """Scales and strengths from tiny to huge."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n, d, scale = data.draw(st.integers(2, 20)), data.draw(st.integers(1, 5)), 10.0 ** data.draw(st.integers(-6, 6))
    X, labels = binary_data(rng, n, d)
    options: dict[str, Any] = {
        "loss": data.draw(st.sampled_from(["hinge", "logistic"])),
        "lam1": data.draw(st.sampled_from([None, 1e-4, 1.0 / n, 10.0])),
        "lam2": 10.0 ** data.draw(st.integers(-4, 2)) * scale**2,
        "radius": data.draw(st.sampled_from([None, 0.1 / scale, 10.0 / scale])),
    }
    solution = pm.DualAscent().solve(dro(X * scale, labels, **options), tol=0, max_passes=150)
    assert solution.lower_bound <= solution.history["objective"].min()
    assert solution.history["lower_bound"][1:].min() > -np.inf


def test_units_of_features_change_nothing(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, 30)
    plain, other = (
        pm.DualAscent().solve(dro(X * s, labels, loss="hinge", lam1=0.02, lam2=0.05 * s**2), tol=0, max_passes=100)
        for s in (1.0, 1024.0)
    )
    np.testing.assert_allclose(other.x * 1024.0, plain.x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other.history["lower_bound"], plain.history["lower_bound"], rtol=1e-9)


def test_a_solve_is_a_function_of_its_seed_in_threads_too(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, 300, 5)
    problem = dro(csr_array(X), labels, loss="hinge", lam1=0.005, lam2=0.005)

    def bits(seed: int) -> bytes:
        return pm.DualAscent().solve(problem, tol=0, max_passes=50, random_state=seed).x.tobytes()

    with ThreadPoolExecutor(4) as threads:
        first, second, other = threads.map(bits, (3, 3, 4))
    assert first == second == bits(3) != other


def test_budget_is_kept_and_used(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, 200)
    problem = dro(X, labels, loss="logistic", lam1=0.005, lam2=1e-4)
    for budget in (1.0, 2.0, 2.5, 7.3, 30.0):
        solution = pm.DualAscent().solve(problem, tol=0, max_passes=budget)
        assert budget - 2.0 <= solution.n_passes <= budget
    assert solution.objective < solution.history["objective"][0]


def test_a_start_near_the_optimum_is_used(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, 300, 5)
    problem = dro(X, labels, loss="logistic", lam1=0.005, lam2=0.005)
    cold = solve(problem)
    warm = solve(problem, x0=cold.x)
    assert warm.n_passes <= 0.7 * cold.n_passes
    assert warm.objective == pytest.approx(cold.objective, rel=1e-8)


def test_a_dual_point_proves_more_and_more_of_a_given_point(rng: np.random.Generator, seed: int) -> None:
    """As the certifier of stochastic solvers uses it."""
    X, labels = binary_data(rng, 300, 5)
    problem = dro(X, labels, loss="hinge", lam1=0.005, lam2=0.01)
    x = solve(problem, tol=1e-4).x
    response = problem.respond(x)
    point = DualPoint(problem, x, response.y, response.read)
    bounds = [point.bound()]
    order = np.random.default_rng(seed)
    for _ in range(40):
        assert point.epoch(order)
        bounds.append(point.bound())
    assert -np.inf < bounds[0] <= response.objective
    assert bounds == sorted(bounds)
    assert bounds[-1] == pytest.approx(response.objective, rel=2e-3)
    drifted = point.x
    point.refresh()
    np.testing.assert_allclose(point.x, drifted, rtol=1e-10, atol=1e-12)


def test_an_epoch_that_is_cut_short_proves_nothing_new(rng: np.random.Generator, seed: int) -> None:
    X, labels = binary_data(rng, 50)
    problem = dro(X, labels, loss="hinge", lam1=0.02, lam2=0.02)
    optimum = solve(problem).objective
    point, order = DualPoint(problem), np.random.default_rng(seed)
    for _ in range(30):
        before = point.bound()
        assert not point.epoch(order, lambda rows: False)
        assert point.bound() == before
        assert point.epoch(order)
        assert point.bound() <= optimum
    assert point.bound() == pytest.approx(optimum, rel=1e-2)


class Bare:
    """A loss without a conjugate."""

    def value(self, margin: Any, label: Any) -> Any:
        return (label - margin) ** 2

    def derivative(self, margin: Any, label: Any) -> Any:
        return 2.0 * (margin - label)


class Uncompiled(Absolute):
    """A loss that cannot be compiled."""

    def value(self, margin: Any, label: Any) -> Any:
        return np.abs(np.asarray(margin).astype(object) - label).astype(float)


def test_refusals_say_what_is_missing(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    parts: dict[str, Any] = {"divergence": pm.Mean(), "regularizer": pm.L2(0.1)}
    refused = {
        "it takes DRO problems, not AUC": auc(X, labels, radius=1.0),
        "NoRegularizer.* leaves x undetermined": pm.DRO(X, labels, divergence=pm.Mean()),
        "Bare object .* has no conjugate": pm.DRO(X, labels, loss=Bare(), **parts),
        "on Simplex\\(3\\) is not known": pm.DRO(X, labels, constraint=pm.Simplex(3), **parts),
    }
    for reason, problem in refused.items():
        with pytest.raises(ValueError, match=rf"DualAscent cannot take this problem: .*{reason}"):
            pm.DualAscent().solve(problem)


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_a_loss_that_cannot_be_compiled_is_refused(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    problem = pm.DRO(X, labels, loss=Uncompiled(), divergence=pm.Mean(), regularizer=pm.L2(0.1))
    with pytest.raises(ValueError, match=r"problem: Uncompiled\.value cannot be compiled"):
        pm.DualAscent().solve(problem)
