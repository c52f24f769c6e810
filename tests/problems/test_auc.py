"""AUC against the paper's formula, all pairs, CVXPY and class-balanced ridge regression."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from oracles import solve_auc
from sklearn.linear_model import RidgeClassifier
from small_problems import auc, binary_data

import pommel as pm
from pommel.problem import Sampling

exactly = np.vectorize(Fraction, otypes=[object])
"""Floats as fractions: the same formulas then hold no rounding error."""


def paper_F(w: Any, a: Any, b: Any, alpha: Any, x: Any, z: float, p: Any) -> Any:
    """F(w, a, b, alpha; (x, z)) as section 5 of the paper prints it."""
    positive, negative = int(z == 1), int(z == -1)
    return (
        (1 - p) * (w @ x - a) ** 2 * positive
        + p * (w @ x - b) ** 2 * negative
        - p * (1 - p) * alpha**2
        + 2 * (1 + alpha) * (p * (w @ x) * negative - (1 - p) * (w @ x) * positive)
    )


def mean_F(v: Any, alpha: Any, X: Any, labels: np.ndarray) -> Any:
    p = Fraction(int(np.sum(labels > 0.0)), labels.size)
    return sum(paper_F(v[:-2], v[-2], v[-1], alpha, x, z, p) for x, z in zip(X, labels, strict=True)) / labels.size


def best_start(problem: pm.AUC, w: np.ndarray) -> np.ndarray:
    """v = (w, a*, b*)."""
    return np.array([*w, w @ problem.mean_positive, w @ problem.mean_negative])


def test_saddle_is_the_mean_of_the_papers_F(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    problem = pm.AUC(X, labels)
    v, alpha = rng.standard_normal(problem.d), rng.standard_normal()
    assert problem.saddle(v, np.array([alpha])) == pytest.approx(mean_F(v, alpha, X, labels), rel=1e-12)


def test_class_means_and_the_best_response(rng: np.random.Generator) -> None:
    """A(v) = w'(mu_- - mu_+) maximises the saddle, a concave parabola in alpha, and P is its value there."""
    X, labels = binary_data(rng)
    problem = pm.AUC(X, labels)
    np.testing.assert_allclose(problem.mean_positive, X[labels > 0.0].mean(axis=0), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(problem.mean_negative, X[labels < 0.0].mean(axis=0), rtol=1e-12, atol=1e-15)
    v = rng.standard_normal(problem.d)
    (alpha,) = problem.best_response(v)
    assert alpha == pytest.approx(v[:-2] @ (problem.mean_negative - problem.mean_positive))
    for shift in (-1.0, -1e-3, 1e-3, 1.0):
        below = problem.objective(v) - problem.saddle(v, np.array([alpha + shift]))
        assert below == pytest.approx(problem.p * (1.0 - problem.p) * shift**2, rel=1e-6)


def test_objective_is_the_mean_square_loss_over_pairs(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    problem = pm.AUC(X, labels, regularizer=pm.L2(0.3))
    w = rng.standard_normal(problem.d - 2)
    pairs = [(1.0 - w @ (x - z)) ** 2 for x, z in product(X[labels > 0.0], X[labels < 0.0])]
    q, v = problem.p * (1.0 - problem.p), best_start(problem, w)
    assert problem.objective(v) == pytest.approx(q * (np.mean(pairs) - 1.0) + 0.15 * w @ w, rel=1e-12)
    assert problem.magnitude(problem.objective(v)) == pytest.approx(q * np.mean(pairs) + 0.15 * w @ w, rel=1e-12)
    for z in v + 0.1 * np.eye(problem.d)[-2:]:
        assert problem.objective(z) > problem.objective(v)


@pytest.mark.parametrize("lam2", [0.0, 0.1])
@pytest.mark.parametrize("on", ["w", "v"])
@pytest.mark.parametrize("radius", [0.02, 100.0])
def test_optimum_agrees_with_cvxpy(radius: float, on: str, lam2: float, rng: np.random.Generator) -> None:
    """Means far from zero, so that a ball on v, which bounds a and b too, has another optimum than one on w."""
    X, labels = binary_data(rng)
    options = {"radius": radius, "on": on, "lam2": lam2}
    problem, optimum = auc(X + 3.0, labels, **options), solve_auc(X + 3.0, labels, **options)
    assert problem.objective(optimum.x) == pytest.approx(optimum.value, abs=1e-8)
    points = [problem.primal_set.project(z) for z in optimum.x + 0.1 * rng.standard_normal((50, problem.d))]
    assert min(map(problem.objective, points)) >= optimum.value - 1e-9
    assert problem.is_constraint_active(optimum.x) == (radius < 1.0)
    assert not problem.is_constraint_active(0.9 * optimum.x)
    np.testing.assert_allclose(problem.primal_set.project(optimum.x), optimum.x, atol=1e-6)
    if on == "w":
        np.testing.assert_allclose(optimum.x, best_start(problem, optimum.x[:-2]), atol=1e-5)


def test_no_constraint_is_never_active(rng: np.random.Generator) -> None:
    problem = pm.AUC(*binary_data(rng), regularizer=pm.L2(0.1))
    assert not problem.is_constraint_active(1e6 * np.ones(problem.d))


def test_solution_is_class_balanced_ridge_regression(rng: np.random.Generator) -> None:
    """With alpha = lam n / (4 p (1 - p)) the directions are the same; along it P is a parabola with its own vertex."""
    X, labels = binary_data(rng, n=60)
    lam = 0.05
    problem = pm.AUC(X, labels, regularizer=pm.L2(lam))
    alpha = lam * labels.size / (4.0 * problem.p * (1.0 - problem.p))
    ridge = RidgeClassifier(alpha=alpha, class_weight="balanced", solver="cholesky", tol=1e-12).fit(X, labels)
    direction = np.ravel(ridge.coef_)
    at = [problem.objective(best_start(problem, t * direction)) for t in (-1.0, 0.0, 1.0)]
    vertex = (at[0] - at[2]) / (2.0 * (at[0] - 2.0 * at[1] + at[2]))
    v = best_start(problem, vertex * direction)
    gradient, _ = problem.gradients(v, problem.best_response(v))
    start, _ = problem.gradients(0.0 * v, np.zeros(1))
    assert np.linalg.norm(gradient) <= 1e-11 * np.linalg.norm(start)


def test_a_large_offset_costs_no_digits(rng: np.random.Generator) -> None:
    """An objective near 1 from features near 1e6, whose squares are near 1e12, against exact arithmetic."""
    X, labels = binary_data(rng, n=60)
    X += 1e6
    problem = pm.AUC(X, labels)
    v = best_start(problem, rng.standard_normal(problem.d - 2))
    alpha = problem.best_response(v)
    exact = mean_F(exactly(v), exactly(alpha)[0], exactly(X), labels)
    assert problem.objective(v) == pytest.approx(float(exact), rel=1e-9)


def test_natural_steps_follow_the_units_of_features(rng: np.random.Generator) -> None:
    """The primal step, half as long again as the size of P over the second moment, by 1 / scale^2; the dual one not."""
    X, labels = binary_data(rng)
    plain = pm.AUC(X, labels, constraint=pm.L2Ball(1.0))
    other = pm.AUC(1024.0 * X, labels, constraint=pm.L2Ball(1.0 / 1024.0))
    zero, v = np.zeros(plain.d), best_start(plain, rng.standard_normal(plain.d - 2))
    ours, theirs = other.natural_steps(zero, np.zeros(1)), plain.natural_steps(zero, np.zeros(1))
    assert ours.primal * 1024.0**2 == theirs.primal
    k = np.where(labels > 0.0, 1.0 - plain.p, plain.p)
    moment = np.mean(4.0 * k**2 * np.sum(X**2, axis=1))
    assert theirs.primal == pytest.approx(1.5 * plain.q / moment)
    assert ours.gradient / 1024.0 == theirs.gradient == pytest.approx(np.sqrt(moment))
    units = np.array([1024.0] * 3 + [1.0, 1.0])
    ours, theirs = (p.natural_steps(u, p.best_response(u)) for p, u in ((other, v / units), (plain, v)))
    assert ours.dual == theirs.dual
    assert ours.primal * 1024.0**2 == pytest.approx(theirs.primal, rel=1e-12)


def test_natural_steps_are_zero_where_nothing_is_to_be_learnt() -> None:
    problem = pm.AUC(np.zeros((4, 2)), [0, 1, 0, 1])
    steps = problem.natural_steps(np.zeros(4), np.zeros(1))
    assert steps.primal == 0.0 and np.isfinite(steps.dual)


@pytest.mark.parametrize("sampling", ["dual", "mixed"])
def test_rows_are_not_drawn_by_the_dual_variable(sampling: Sampling, rng: np.random.Generator) -> None:
    problem = pm.AUC(*binary_data(rng))
    v, alpha = np.zeros(problem.d), np.zeros(1)
    for refused in (
        lambda: problem.draw(0.5, alpha, sampling),
        lambda: problem.sample_gradients(v, alpha, 0, sampling),
        lambda: problem.natural_steps(v, alpha, sampling),
        lambda: problem.constants(sampling),
    ):
        with pytest.raises(ValueError, match=f'rows are drawn with sampling="uniform", got {sampling!r}$'):
            refused()


def test_on_is_w_or_v(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match='on must be "w" or "v"'):
        pm.AUC(*binary_data(rng), on="a")
