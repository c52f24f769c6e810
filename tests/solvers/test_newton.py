"""Newton's method: the optimum of Clarabel, proved, for every loss, divergence, constraint and storage it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import solve_dro
from scipy.optimize import minimize
from scipy.sparse import csr_array
from small_problems import WEIGHTS, binary_data, dro, quadratics

import pommel as pm
from pommel.solvers import newton
from pommel.solvers._conjugate_gradients import conjugate_gradients
from pommel.solvers._quadratic_in_ball import minimise_in_ball

WAYS = [
    {"loss": loss, "lam1": lam1, "lam2": lam2, "radius": radius, "sample_weight": weights}
    for loss in ("hinge", "logistic")
    for lam1 in (None, 0.01, 1.0)
    for lam2, radius in ((0.1, None), (0.1, 0.4), (0.1, 50.0), (0.0, 0.7))
    for weights in (None, WEIGHTS)
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_proves_the_optimum_of_clarabel(way: dict[str, Any], rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    optimum = solve_dro(X, labels, **way).value
    for storage in (np.asarray, csr_array):
        solution = pm.Newton().solve(dro(storage(X), labels, **way), tol=1e-9, max_passes=None)
        assert solution.status is pm.Status.CONVERGED
        assert solution.objective == pytest.approx(optimum, abs=1e-7)
        assert solution.lower_bound <= solution.objective


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_conjugate_gradients_lead_to_the_same_point(loss: str, rng: np.random.Generator) -> None:
    problem = dro(*binary_data(rng, 200, 20), loss=loss, lam1=1 / 200, lam2=1 / 200)
    by_matrix = pm.Newton(linear_solver="cholesky").solve(problem, tol=1e-8, max_passes=None)
    by_products = pm.Newton(linear_solver="cg").solve(problem, tol=1e-8, max_passes=None)
    assert by_matrix.status is by_products.status is pm.Status.CONVERGED
    assert by_products.objective == pytest.approx(by_matrix.objective, rel=2e-8)


def test_starts_on_a_sample_where_that_pays(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    X, labels = binary_data(rng, 2000, 5)
    problem = dro(X, labels, loss="logistic", lam1=1 / 2000, lam2=1 / 2000)
    plain = pm.Newton().solve(problem, tol=1e-9)
    monkeypatch.setattr(newton, "SAMPLED", 1000)
    sampled = pm.Newton().solve(problem, tol=1e-9)
    assert sampled.n_passes < plain.n_passes
    assert sampled.objective == pytest.approx(plain.objective, rel=1e-9)
    rare = np.where(np.arange(2000) == 7, 1.0, -1.0)  # a sample may well have one class only
    assert pm.Newton().solve(dro(X, rare, loss="logistic", lam1=None, lam2=0.1)).status is pm.Status.CONVERGED


def test_a_part_of_the_rows_stands_for_all(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    problem = dro(X, labels, loss="hinge", lam1=0.1, lam2=0.1, sample_weight=WEIGHTS)
    part = problem.part(np.array([0, 1, 3, 4]))
    assert part is not None
    assert (part.n, part.weights.sum()) == (4, pytest.approx(problem.weights.sum()))
    np.testing.assert_array_equal(part.labels, problem.labels[[0, 1, 3, 4]])
    assert problem.part(np.flatnonzero(problem.labels > 0.0)) is None


def test_a_warm_start_is_not_led_away(rng: np.random.Generator) -> None:
    problem = dro(*binary_data(rng, 300, 5), loss="hinge", lam1=1 / 300, lam2=1 / 300)
    cold = pm.Newton().solve(problem, tol=1e-5)
    warm = pm.Newton().solve(problem, tol=1e-5, x0=cold.x)
    assert warm.n_passes < cold.n_passes / 2.0
    assert warm.history["objective"].max() <= cold.objective * (1.0 + 1e-5)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_from_a_start_far_off_it_tells_the_objective_of_the_point_it_returns(
    loss: str, rng: np.random.Generator
) -> None:
    problem = dro(*binary_data(rng, 200, 4), loss=loss, lam1=1 / 200, lam2=1 / 200)
    far = 1e8 if loss == "logistic" else 1e4
    solution = pm.Newton().solve(problem, x0=far * np.ones(4), tol=0, max_passes=2000)
    assert solution.objective == pytest.approx(problem.objective(solution.x), rel=1e-12)
    assert solution.objective == pytest.approx(pm.solve(problem, tol=1e-9).objective, rel=1e-6)


def test_without_regularizer_and_constraint_nothing_is_proved_and_the_message_says_why(
    rng: np.random.Generator,
) -> None:
    X, labels = binary_data(rng, 100, 3)
    problem = dro(X, labels, loss="logistic", lam1=1 / 100, lam2=0.0)
    with pytest.warns(Warning, match="without a regularizer or a bounded constraint no dual point proves anything"):
        solution = pm.Newton().solve(problem, tol=1e-9, max_passes=500)
    assert solution.objective == pytest.approx(minimize(problem.objective, np.zeros(3), tol=1e-10).fun, rel=1e-6)
    assert solution.lower_bound == 0.0  # that of the losses


@pytest.mark.parametrize(
    ("problem", "solver", "match"),
    [
        (lambda rng: quadratics(rng), pm.Newton(), "takes a DRO problem, got FunctionProblem"),
        (
            lambda rng: pm.DRO(*binary_data(rng), divergence=pm.Mean(), constraint=pm.Simplex(3)),
            pm.Newton(),
            "with no constraint or an L2Ball",
        ),
        (
            lambda rng: dro(*binary_data(rng), loss="hinge", lam1=0.1, lam2=0.1, radius=1.0),
            pm.Newton(linear_solver="cg"),
            "a ball needs the Hessian as a matrix",
        ),
    ],
)
def test_refuses_what_it_cannot_take(problem: Any, solver: pm.Newton, match: str, rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=match):
        solver.solve(problem(rng))


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
@pytest.mark.parametrize("radius", [1e-3, 0.5, 100.0])
def test_quadratic_in_a_ball(rank: int, radius: float, rng: np.random.Generator) -> None:
    for scale in (1e-6, 1.0, 1e6):
        root = rng.standard_normal((rank, 5))
        hessian = scale * root.T @ root
        for r in (rng.standard_normal(5), hessian @ rng.standard_normal(5)):
            z = minimise_in_ball(hessian, r, radius)
            slope = hessian @ z - r
            assert np.linalg.norm(z) <= radius * (1.0 + 1e-12)
            # At the minimum the slope points into the ball: <slope, v - z> >= 0 for all |v| <= R.
            assert -(slope @ z) - radius * np.linalg.norm(slope) >= -1e-8 * radius * np.linalg.norm(r)


def test_conjugate_gradients_solve(rng: np.random.Generator) -> None:
    from pommel.engines.reference import Reference

    problem = dro(*binary_data(rng), loss="hinge", lam1=0.1, lam2=0.1)
    root = rng.standard_normal((30, 8))
    matrix, r = root.T @ root, rng.standard_normal(8)
    engine = Reference(problem)
    z = conjugate_gradients(lambda v: matrix @ v, r, np.diag(matrix), engine, 2.0)
    assert np.linalg.norm(matrix @ z - r) <= 0.5 * np.linalg.norm(r)
    assert engine.n_gradients % (2 * problem.n) == 0
    assert engine.n_gradients > 0
