"""The reference engine against the paper's two lines written out, on every kind of problem."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_problems import PROBLEMS, SAMPLED_PROBLEMS, D, N, binary_data, quadratics

import pommel as pm
from pommel.engines.compiled import Compiled
from pommel.engines.engine import GradientStep, Walk
from pommel.engines.reference import Reference
from pommel.problem import Problem, Response, Sampling

STEPS = 25
ONLY = ("draw", "sample_gradients")


def by_hand(problem: Problem, rule: GradientStep, x: Any, y: Any, draws: Any) -> tuple[list[Any], list[Any]]:
    """All iterates, x_0 and y_0 to x_T and y_T. In a metric D, the gradient of a function is D grad.

    A center is moved by curvature / n for what y would sum up to too much, were its negative entries cut off.
    """
    xs, ys, center = [x], [y], rule.center
    for u in draws:
        i = problem.draw(u, ys[-1], rule.sampling)
        grad_x, grad_y = problem.sample_gradients(xs[-1], ys[-1], i, rule.sampling, center)
        x = rule.primal_set.project(xs[-1] - rule.primal_step * np.multiply(rule.primal_set.metric, grad_x))
        z = ys[-1] + rule.dual_step * np.multiply(rule.dual_set.metric, grad_y)
        y = rule.dual_set.project(z)
        if center is not None and problem.dual_curvature is not None:
            center += problem.dual_curvature / problem.weights.sum() * (np.sum(z[z > 0.0]) - 1.0)
        xs.append(x)
        ys.append(y)
    return xs, ys


@pytest.mark.parametrize("center", [False, True], ids=["whole", "centred"])
@pytest.mark.parametrize(("name", "sampling"), SAMPLED_PROBLEMS)
def test_steps_are_those_of_the_paper(
    name: str, sampling: Sampling, center: bool, rng: np.random.Generator, seed: int
) -> None:
    """A run moves through the same points, averages x before each step, and stays in both sets."""
    problem = PROBLEMS[name](rng)
    x = problem.primal_set.project(rng.standard_normal(problem.d))
    y, multiplier = problem.respond(x).y, problem.respond(x).center
    steps = problem.natural_steps(x, y, sampling)
    X, Y = problem.primal_set, problem.dual_set
    rule = GradientStep(steps.primal, steps.dual, X, Y, sampling, multiplier if center else None)
    draws = np.random.default_rng(np.random.default_rng(seed).integers(2**63)).random(STEPS)
    before = x.copy(), y.copy()

    run = Reference(problem).run(rule, x, y, STEPS, np.random.default_rng(seed))
    xs, ys = by_hand(problem, rule, x, y, draws)
    close = {"rtol": 1e-12, "atol": 1e-14}
    np.testing.assert_allclose(run.x, np.mean(xs[:-1], axis=0), **close)
    np.testing.assert_allclose(run.last_x, xs[-1], **close)
    np.testing.assert_allclose(run.last_y, ys[-1], **close)
    assert run.steps == STEPS
    for points, domain in ((xs, X), (ys, Y)):
        for point in points:
            np.testing.assert_allclose(domain.project(point), point, **close)
    np.testing.assert_array_equal((*x, *y), (*before[0], *before[1]))
    assert np.ptp(xs, axis=0).any()  # it did move


def stale_start(rng: np.random.Generator, sampling: Sampling) -> tuple[Problem, GradientStep, Any, Response]:
    """A rule that keeps x where it is, and the response to another x to start with; at both many weights are zero."""
    X, labels = binary_data(rng, n=40, d=3)
    weights = np.append(rng.integers(0, 4, 38), [1, 2])
    problem = pm.DRO(X, labels, divergence=pm.ChiSquare(0.1 / 40), regularizer=pm.L2(0.1), sample_weight=weights)
    x, stale = rng.standard_normal(3), problem.respond(rng.standard_normal(3))
    assert all(np.mean(y[weights > 0] == 0.0) > 0.1 for y in (stale.y, problem.best_response(x)))
    longest = problem.y0[problem.y0 > 0.0].min() / problem.dual_curvature  # takes a light row all the way
    rule = GradientStep(0.0, longest, problem.primal_set, problem.dual_set, sampling, stale.center)
    return problem, rule, x, stale


@pytest.mark.parametrize("engine", [Reference, Compiled])
@pytest.mark.parametrize("sampling", ["uniform", "mixed"])
def test_the_center_becomes_the_multiplier(
    engine: type[Reference], sampling: Sampling, rng: np.random.Generator
) -> None:
    """And y the best response with it, exactly: where every row is at its best response no draw moves anything."""
    problem, rule, x, stale = stale_start(rng, sampling)
    walk = engine(problem).begin(rule, x, stale.y)
    engine(problem).advance(rule, walk, rng.random(400 * problem.n))
    state, truth = getattr(walk, "dual", walk), problem.respond(x)
    walk.write_out()
    assert abs(stale.center - truth.center) > 1e-3
    assert state.center == pytest.approx(truth.center, rel=1e-9)
    np.testing.assert_allclose(walk.y, truth.y, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("sampling", ["uniform", "mixed"])
def test_a_moving_center_leaves_the_dual_gradient_unbiased(sampling: Sampling, rng: np.random.Generator) -> None:
    """Up to the center, which the simplex does not see, whatever has become of it."""
    problem, rule, x, stale = stale_start(rng, sampling)
    walk, centers = Walk(x, stale.y, stale.center), set()
    massive = problem.y0 > 0.0
    for draw in rng.random(30):
        Reference(problem).advance(rule, walk, np.array([draw]))
        q = problem.y0 if sampling == "uniform" else (walk.y + problem.y0) / 2.0
        samples = [problem.sample_gradients(x, walk.y, i, sampling, walk.center)[1] for i in np.flatnonzero(massive)]
        mean = q[massive] @ np.array(samples) + walk.center
        np.testing.assert_allclose(mean[massive], problem.gradients(x, walk.y)[1][massive], rtol=1e-12, atol=1e-12)
        centers.add(walk.center)
    assert len(centers) > 2


def test_sets_are_those_of_the_rule(rng: np.random.Generator) -> None:
    """Algorithm 2 narrows them to balls around the stage's start."""
    problem = quadratics(rng)
    x, y = rng.standard_normal(D), np.full(N, 1.0 / N)
    rule = GradientStep(1.0, 1.0, pm.L2Ball(0.5), pm.Point(y))
    run = Reference(problem).run(rule, rule.primal_set.project(x), y, STEPS, rng)
    assert np.linalg.norm(run.last_x) <= 0.5 * (1.0 + 1e-12)
    np.testing.assert_array_equal(run.last_y, y)


def test_nothing_else_of_a_problem_is_used(rng: np.random.Generator) -> None:
    problem = quadratics(rng)
    bare = SimpleNamespace(**{name: getattr(problem, name) for name in ONLY})
    rule = GradientStep(0.01, 0.01, problem.primal_set, problem.dual_set)
    walk = Walk(np.zeros(D), np.full(N, 1.0 / N))
    Reference(bare).advance(rule, walk, rng.random(STEPS))
    assert walk.steps == STEPS and walk.finite


def test_draws_may_come_in_portions(rng: np.random.Generator) -> None:
    problem, draws = quadratics(rng), rng.random(STEPS)
    rule = GradientStep(0.01, 0.01, problem.primal_set, problem.dual_set, "dual")
    whole, portions = (Walk(np.zeros(D), np.full(N, 1.0 / N)) for _ in range(2))
    Reference(problem).advance(rule, whole, draws)
    for portion in np.split(draws, [3, 3, 20]):
        Reference(problem).advance(rule, portions, portion)
    for name in ("x", "y", "sum_x", "steps"):
        np.testing.assert_array_equal(getattr(portions, name), getattr(whole, name))


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_the_first_step_out_of_the_numbers_is_the_last(bad: float, rng: np.random.Generator) -> None:
    """Rows 7 and up have such gradients; a run ends at the first of them, so its length depends on the draws alone."""
    problem = quadratics(rng, gradient=lambda x, i: np.full(D, bad if i >= 7 else 1.0))
    rule = GradientStep(0.01, 0.01, problem.primal_set, problem.dual_set)
    draws = np.array([0.0, 0.1, 0.2, 0.3, 0.99, 0.1, 0.1])
    walk = Walk(np.zeros(D), np.full(N, 1.0 / N))
    with np.errstate(invalid="ignore"):
        Reference(problem).advance(rule, walk, draws)
    assert walk.steps == 5 and not walk.finite
    assert np.isfinite(walk.sum_x).all()  # of the iterates before the steps, all of which were finite
