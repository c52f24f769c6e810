"""ExactAUC against CVXPY and least squares, and its bounds against any point there is, on problems of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracles import solve_auc
from small_problems import auc, binary_data

import pommel as pm
from pommel.problems._auc_quadratic import EPS, AUCQuadratic
from pommel.rows import Rows
from pommel.solvers._trust_region import Factor

METHODS = ["factorise", "iterate"]


def solve(problem: pm.AUC, method: str = "auto", tol: float = 1e-8, **options: Any) -> pm.Solution:
    return pm.ExactAUC(method=method).solve(problem, tol=tol, max_passes=None, **options)


def least_squares(problem: pm.AUC) -> tuple[np.ndarray, float]:
    """w of least length and P by a singular value decomposition of centred rows, without a ball."""
    A = np.array([problem.rows.row(i) for i in range(problem.n)])
    positive = problem.labels > 0.0
    means = [A[kept].mean(axis=0) for kept in (positive, ~positive)]
    lines = [(A[kept] - mean) / np.sqrt(kept.sum()) for kept, mean in zip((positive, ~positive), means, strict=True)]
    lam = problem.regularizer.strong_convexity
    full = np.vstack([*lines, means[0] - means[1], np.sqrt(lam / (2.0 * problem.q)) * np.eye(A.shape[1])])
    target = np.zeros(len(full))
    target[problem.n] = 1.0
    w = np.linalg.lstsq(full, target, rcond=1e-11)[0]
    return w, problem.q * float(np.sum((full @ w - target) ** 2) - 1.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lam2", [0.0, 0.1])
@pytest.mark.parametrize("on", ["w", "v"])
@pytest.mark.parametrize("radius", [0.02, 0.5, 100.0])
def test_agrees_with_cvxpy(radius: float, on: str, lam2: float, method: str, rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    options = {"radius": radius, "on": on, "lam2": lam2}
    problem, optimum = auc(X + 3.0, labels, **options), solve_auc(X + 3.0, labels, **options)
    sol = solve(problem, method)
    assert sol.status is pm.Status.CONVERGED
    assert sol.objective == pytest.approx(optimum.value, abs=1e-8)
    assert sol.lower_bound <= optimum.value + 1e-8
    np.testing.assert_allclose(sol.x, optimum.x, atol=1e-4)
    np.testing.assert_allclose(problem.primal_set.project(sol.x), sol.x, rtol=1e-14)
    assert problem.is_constraint_active(sol.x) == problem.is_constraint_active(optimum.x)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lam", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("shape", [(40, 5), (12, 30)], ids=["tall", "wide"])
def test_agrees_with_least_squares(shape: tuple[int, int], lam: float, method: str, rng: np.random.Generator) -> None:
    """The last two columns are copies of others: without a regularizer the solution of least length is wanted."""
    X, labels = binary_data(rng, n=shape[0], d=shape[1] - 2)
    problem = pm.AUC(np.column_stack([X, X[:, :2]]), labels, regularizer=pm.L2(lam) if lam else None)
    sol = solve(problem, method, tol=1e-10 if method == "factorise" and lam else 0.0)
    w, optimum = least_squares(problem)
    assert sol.objective == pytest.approx(optimum, abs=1e-10)
    np.testing.assert_allclose(sol.x[:-2], w, rtol=1e-4, atol=1e-5 * np.abs(w).max())
    np.testing.assert_allclose(sol.x[-2:], [w @ problem.mean_positive, w @ problem.mean_negative], atol=1e-4)


@pytest.mark.parametrize("apart", [1e-15, 1e-13, 1e-9])
def test_nearly_equal_columns_prove_nothing(apart: float, rng: np.random.Generator) -> None:
    """Their difference may carry all the signal there is: rounding cannot tell."""
    labels = np.where(np.arange(20) % 2, 1.0, -1.0)
    x = 1.0 + 0.9 * rng.random(20)
    problem = pm.AUC(np.column_stack([x, x + apart * labels]), labels)
    w = np.array([-1.0, 1.0]) / (2.0 * apart)
    far = np.append(w, [w @ problem.mean_positive, w @ problem.mean_negative])
    assert solve(problem, "factorise", tol=0.0).lower_bound <= problem.objective(far)


@st.composite
def problems(draw: st.DrawFn) -> pm.AUC:
    """Random rows with copies, constant columns, offsets and units; with and without ball and regularizer."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 8))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < draw(st.sampled_from([0.3, 1.0])))
    X[rng.random(n) < draw(st.sampled_from([0.0, 0.5]))] = X[0]
    X *= draw(st.sampled_from([1e-3, 1.0, 1e3])) ** rng.integers(0, 2, d)
    X += draw(st.sampled_from([0.0, 1.0, 1e6])) * rng.integers(0, 2, d)
    kind = draw(st.sampled_from(["", "copied column", "constant column"]))
    if kind:
        X[:, -1] = X[:, 0] if kind == "copied column" else 0.1
    labels = rng.permutation(n) < draw(st.integers(1, n - 1))
    radius = draw(st.sampled_from([None, 1e-3, 1.0, 1e3]))
    lam = draw(st.sampled_from([None, 1e-6, 1e-2, 1.0]))
    return pm.AUC(
        sp.csr_array(X) if draw(st.booleans()) else X,
        labels,
        constraint=None if radius is None else pm.L2Ball(radius),
        on=draw(st.sampled_from(["w", "v"])),
        regularizer=None if lam is None else pm.L2(lam),
    )


@given(problem=problems(), method=st.sampled_from(METHODS), seed=st.integers(0, 2**32 - 1))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=200)
def test_no_point_is_below_the_bound(problem: pm.AUC, method: str, seed: int) -> None:
    """Neither what any other way finds, nor points around that."""
    sol = pm.ExactAUC(method=method).solve(problem, tol=0.0, max_passes=300)
    points = [sol.x, pm.ExactAUC().solve(problem, tol=0.0, max_passes=300).x]
    if problem.constraint is None:
        w, _ = least_squares(problem)
        points.append(np.append(w, [w @ problem.mean_positive, w @ problem.mean_negative]))
    rng = np.random.default_rng(seed)
    for point in list(points):
        points += [point * (1.0 + size * rng.standard_normal(point.size)) for size in (1e-15, 1e-12, 1e-9, 1e-6)]
    quadratic = AUCQuadratic(problem)
    for point in points:  # those with a longer w than the solution's have more rounding in their P
        at = quadratic.evaluate(quadratic.lower(point))
        excess = max(at.objective_error - 1e-15, 0.0) if np.linalg.norm(point) > np.linalg.norm(sol.x) else 0.0
        assert sol.lower_bound <= min(problem.objective(problem.primal_set.project(point)), at.objective) + excess


@given(problem=problems())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_the_gap_is_closed(problem: pm.AUC) -> None:
    """To 1e-8, but for what rounding of features with an offset of 1e6 leaves, and where Q is not singular to rounding.

    A ball on v is no trust-region problem for such features: a = w'mu takes all of it, and w is nothing but rounding.
    """
    assume(problem.on == "w" or problem.constraint is None or problem.rows.squared_norms.max() < 1e10)
    quadratic = AUCQuadratic(problem)
    assume(not Factor(quadratic.matrix(), rounding=problem.n * EPS).is_singular)
    sol = pm.ExactAUC().solve(problem, tol=0.0, max_passes=300)
    size = max(problem.magnitude(sol.objective), 1e-3 * problem.q)
    lengths = float(np.linalg.norm(sol.x[:-2])) * float(np.sqrt(problem.rows.squared_norms.max()))
    assert sol.gap <= 1e-8 * size + 1e-13 * lengths * problem.q or sol.lower_bound == -problem.q


def test_storage_scale_and_constant_do_not_matter(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, n=50)
    X *= rng.random(X.shape) < 0.3
    scale = np.array([2.0, 0.5, 10.0])
    written = np.column_stack([X * scale, np.full(50, 3.0)])
    for options in (
        {"regularizer": pm.L2(0.01)},
        {"constraint": pm.L2Ball(0.1)},
        {"constraint": pm.L2Ball(0.1), "on": "v"},
    ):
        expected = solve(pm.AUC(written, labels, **options))
        for stored in (X, sp.csr_array(X), sp.csr_array(X.astype(np.float32)).astype(np.float64)):
            for method in METHODS:
                rows = Rows(stored if stored is X else sp.csr_array(X), constant=3.0, column_scale=scale)
                sol = solve(pm.AUC(rows, labels, **options), method)
                assert sol.objective == pytest.approx(expected.objective, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_one_row_of_each_class(method: str) -> None:
    """The closest w to 0 that separates them by 1 is delta / |delta|^2, and P is then -p (1 - p)."""
    sol = solve(pm.AUC([[3.0, 4.0], [0.0, 0.0]], [1, 0]), method)
    np.testing.assert_allclose(sol.x[:-2], [0.12, 0.16], rtol=1e-12)
    assert sol.objective == pytest.approx(-0.25) and sol.status is pm.Status.CONVERGED


@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_learn(method: str) -> None:
    sol = pm.ExactAUC(method=method).solve(pm.AUC(np.ones((4, 2)), [0, 1, 0, 1]), tol=0.0, max_passes=50)
    assert sol.objective == 0.0 and not sol.x[:-2].any()


def test_columns_that_hold_nothing_are_left_out(rng: np.random.Generator) -> None:
    few, labels = binary_data(rng, n=30)
    X = sp.csr_array((few.ravel(), np.tile([7, 500, 9000], 30), 3 * np.arange(31)), shape=(30, 10_000))
    problem = pm.AUC(X, labels, constraint=pm.L2Ball(0.3), on="v")
    sol, expected = solve(problem), solve(pm.AUC(few, labels, constraint=pm.L2Ball(0.3), on="v"))
    assert sol.objective == pytest.approx(expected.objective, abs=1e-12)
    np.testing.assert_allclose(sol.x[[7, 500, 9000, -2, -1]], expected.x, rtol=1e-9)


def test_what_it_does_not_solve_is_refused(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    with pytest.raises(ValueError, match=r"ExactAUC needs a pommel\.AUC, got DRO"):
        pm.ExactAUC().solve(pm.DRO(X, labels, divergence=pm.Mean(), regularizer=pm.L2(1.0)))
    with pytest.raises(ValueError, match="ExactAUC needs an L2Ball as the constraint or none, got Simplex"):
        pm.ExactAUC().solve(pm.AUC(X, labels, constraint=pm.Simplex(3)))
    with pytest.raises(ValueError, match="method must be"):
        pm.ExactAUC(method="guess")
