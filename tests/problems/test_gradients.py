"""Gradients of every small problem: full ones against differences, sampled ones against full ones, without chance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from small_problems import PROBLEMS, SAMPLED_PROBLEMS, probabilities

import pommel as pm
from pommel.problem import Problem, Sampling

every_problem = pytest.mark.parametrize("name", PROBLEMS)
every_sampling = pytest.mark.parametrize(("name", "sampling"), SAMPLED_PROBLEMS)


def differences(f: Callable[[np.ndarray], float], z: np.ndarray, step: float = 1e-5) -> np.ndarray:
    return np.array([f(z + e) - f(z - e) for e in step * np.eye(z.size)]) / (2.0 * step)


def smooth_point(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Of some random points the one farthest from a kink of the hinge loss."""
    points = rng.standard_normal((20, problem.d))
    if isinstance(getattr(problem, "loss", None), pm.Hinge):
        return max(points, key=lambda x: np.abs(1.0 - problem.labels * problem.rows.matvec(x)).min())
    return points[0]


def interior(problem: Problem, x: np.ndarray) -> np.ndarray:
    """A point of Y between A(x) and the middle, where no row of positive weight has y_i = 0."""
    return (problem.best_response(x) + problem.dual_set.project(np.zeros_like(problem.losses(x)))) / 2.0


@every_problem
def test_full_gradients_match_differences(name: str, rng: np.random.Generator) -> None:
    problem = PROBLEMS[name](rng)
    x = smooth_point(problem, rng)
    y = interior(problem, x)
    grad_x, grad_y = problem.gradients(x, y)
    np.testing.assert_allclose(grad_x, differences(lambda x: problem.saddle(x, y), x), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(grad_y, differences(lambda y: problem.saddle(x, y), y), rtol=1e-6, atol=1e-7)


@every_problem
def test_gradient_at_the_best_response_is_that_of_the_objective(name: str, rng: np.random.Generator) -> None:
    problem = PROBLEMS[name](rng)
    x = smooth_point(problem, rng)
    gradient, _ = problem.gradients(x, problem.best_response(x))
    np.testing.assert_allclose(gradient, differences(problem.objective, x), rtol=1e-5, atol=1e-6)


@every_sampling
def test_sampled_gradients_average_to_the_full_ones(name: str, sampling: Sampling, rng: np.random.Generator) -> None:
    problem = PROBLEMS[name](rng)
    x = rng.standard_normal(problem.d)
    y = interior(problem, x)
    q, metric = probabilities(problem, y, sampling), problem.dual_set.metric
    drawn = np.flatnonzero(q)
    full_x, full_y = problem.gradients(x, y)
    for center in (None, problem.respond(x).center):
        pairs = [problem.sample_gradients(x, y, int(i), sampling, center) for i in drawn]
        mean_x, mean_y = (q[drawn] @ np.array(part) for part in zip(*pairs, strict=True))
        np.testing.assert_allclose(mean_x, full_x, rtol=1e-12, atol=1e-12)
        # Whatever stands at a row of weight zero, the metric takes it out of every step.
        np.testing.assert_allclose(metric * mean_y, metric * (full_y - (center or 0.0)), rtol=1e-12, atol=1e-11)


@every_sampling
def test_rows_are_drawn_by_their_probabilities(name: str, sampling: Sampling, rng: np.random.Generator) -> None:
    problem, size = PROBLEMS[name](rng), 5000
    y = interior(problem, rng.standard_normal(problem.d))
    q = probabilities(problem, y, sampling)
    drawn = [problem.draw((k + 0.5) / size, y, sampling) for k in range(size)]
    np.testing.assert_allclose(np.bincount(drawn, minlength=problem.n) / size, q, atol=1.01 / size)
    for u in (0.0, np.nextafter(1.0, 0.0)):
        assert q[problem.draw(u, y, sampling)] > 0.0


def test_subgradients_at_kinks_support_the_objective(rng: np.random.Generator) -> None:
    """x = (1, 0) lies on the kink of the rows (1, 0) and (-1, 1)."""
    X, labels = [[1.0, 0.0], [-1.0, 1.0], [0.0, 1.0], [2.0, 1.0]], [1, 0, 1, 0]
    problem = pm.DRO(X, labels, divergence=pm.ChiSquare(0.1))
    x = np.array([1.0, 0.0])
    assert (problem.labels * problem.rows.matvec(x) == 1.0).sum() == 2
    gradient, _ = problem.gradients(x, problem.best_response(x))
    for z in x + rng.standard_normal((100, 2)) * rng.choice([1e-3, 1.0, 10.0], (100, 1)):
        assert problem.objective(z) >= problem.objective(x) + gradient @ (z - x) - 1e-12
