"""Dual variables: the adversary on the simplex and in its ball, one that does not move, and a single number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pommel as pm
from pommel._jit import kernel
from pommel.engines.engine import GradientStep
from pommel.kernels import adversary, fixed_weights, scalar
from pommel.problem import Sampling
from pommel.sets import BallWithin, L2Ball, Point, Simplex

N = 30
WAYS: list[tuple[Sampling, bool]] = [("uniform", True), ("uniform", False), ("mixed", True), ("dual", False)]


@kernel
def ascend_all(dual: Any, rows: Any, q: Any, ascents: Any) -> int:
    """How many steps were made before one was refused."""
    for k in range(rows.size):
        if not dual.ascend(rows[k], 1.0 / q[k], ascents[k]):
            return k
    return rows.size


@kernel
def weights_of(dual: Any, found: Any) -> None:
    for i in range(found.size):
        found[i] = dual.weight(i)


def some_problem(rng: np.random.Generator, weighted: bool, divergence: Any = None) -> pm.DRO:
    weights = np.append(rng.integers(0, 4, N - 2), [1, 2]) if weighted else None
    X, labels = rng.standard_normal((N, 3)), np.array([-1, 1] * (N // 2))
    divergence = pm.ChiSquare(1.0 / N) if divergence is None else divergence
    return pm.DRO(X, labels, divergence=divergence, regularizer=pm.L2(0.1), sample_weight=weights)


def some_start(problem: pm.DRO, rng: np.random.Generator) -> np.ndarray:
    """With about a quarter of the weights at zero."""
    return problem.dual_set.project(problem.y0 * (1.0 + rng.standard_normal(N)))


def rule_of(
    problem: pm.DRO, dual_set: Any, sampling: Sampling = "uniform", centred: bool = True, step: float = 2e-3
) -> GradientStep:
    return GradientStep(0.1, step, problem.primal_set, dual_set, sampling, 0.2 if centred else None)


def plain_step(
    problem: pm.DRO, rule: GradientStep, y: np.ndarray, center: float | None, i: int, q: float, ascent: float
) -> tuple[np.ndarray, float | None]:
    """y moved as the paper has it, with the projection onto `rule.dual_set`; and the center with it.

    The latter by n lam1 for what y would sum up to too much, were negative weights cut off and nothing else done.
    """
    gradient = problem.divergence.gradient(y, problem.weights)
    if center is None:
        move = -gradient
        move[i] += ascent / q
    else:
        move = np.zeros(N)
        move[i] = (ascent - gradient[i] - center) / q
    z = y + rule.dual_step * rule.dual_set.metric * move
    if center is not None:
        center += problem.weights.sum() * problem.divergence.lam * (np.sum(z[z > 0.0]) - 1.0)
    return rule.dual_set.project(z), center


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("sampling", "centred"), WAYS)
def test_steps_are_those_of_the_projection(
    sampling: Sampling, centred: bool, weighted: bool, rng: np.random.Generator
) -> None:
    problem = some_problem(rng, weighted)
    rule, y = rule_of(problem, problem.dual_set, sampling, centred), some_start(problem, rng)
    center = rule.center
    dual, clipped = adversary.dual_state(problem, rule, y), 0
    for _ in range(300):
        i = rng.choice(np.flatnonzero(problem.weights))
        q, ascent = rng.uniform(0.5, 2.0) / N, rng.uniform(0.0, 2.0)
        assert ascend_all(dual, np.array([i]), np.array([q]), np.array([ascent])) == 1
        y, center = plain_step(problem, rule, y, center, i, q, ascent)
        assert dual.center == (None if center is None else pytest.approx(center, rel=1e-11))
        found = np.empty(N)
        weights_of(dual, found)
        np.testing.assert_allclose(found, y, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(dual.point(), found, rtol=0.0, atol=1e-16)
        clipped += bool(np.any(y[problem.weights > 0.0] == 0.0))
    assert clipped > 0


@pytest.mark.parametrize("radius", [1e-3, 0.02, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("sampling", "centred"), WAYS)
def test_steps_within_the_ball_are_exact_and_others_refused(
    sampling: Sampling, centred: bool, weighted: bool, radius: float, rng: np.random.Generator
) -> None:
    """A step that is made is that of the projection onto simplex and ball; one that is refused changes nothing."""
    problem = some_problem(rng, weighted)
    y = some_start(problem, rng)
    ball = BallWithin(problem.dual_set, y, radius)
    rule = rule_of(problem, ball, sampling, centred, step=2e-3 if radius < 0.1 else 1e-2)
    dual, made, refused, measured, center = adversary.dual_state(problem, rule, y), 0, 0, True, rule.center
    assert dual.moving[adversary.PATH] == 0.0
    while made + refused < 400:
        i = rng.choice(np.flatnonzero(problem.weights))
        q, ascent = rng.uniform(0.5, 2.0) / N, rng.uniform(0.0, 2.0)
        before, moving = dual.point(), dual.moving.copy()
        expected = plain_step(problem, rule, y, center, i, q, ascent)
        one = np.array([i]), np.array([q]), np.array([ascent])
        if ascend_all(dual, *one) == 1:
            made, measured, (y, center) = made + 1, False, expected
            assert dual.moving[adversary.PATH] <= radius
        else:
            np.testing.assert_array_equal(dual.point(), before)
            np.testing.assert_array_equal(dual.moving, moving)
            if not measured:  # what the engine does: measure, and try again
                dual, measured = dual.at(dual.point(), ball), True
                assert dual.moving[adversary.PATH] <= moving[adversary.PATH] * (1.0 + 1e-9)
                continue
            free = dual.set_free()
            assert free.ball == math.inf
            assert ascend_all(free, *one) == 1  # what the engine does: x and the center move as without the ball
            refused, (y, center) = refused + 1, expected
            dual = dual.at(y, ball)
        assert dual.center == (None if center is None else pytest.approx(center, rel=1e-11))
        distance = ball.distance(dual.point(), ball.center)
        assert distance <= dual.moving[adversary.PATH] + 1e-12 * (1.0 + radius)
        np.testing.assert_allclose(dual.point(), y, rtol=0.0, atol=1e-11)
    assert refused > 0


def test_a_ball_that_holds_the_simplex_refuses_nothing(rng: np.random.Generator) -> None:
    problem = some_problem(rng, weighted=True)
    y = some_start(problem, rng)
    rule = rule_of(problem, BallWithin(problem.dual_set, y, 1.01 * problem.dual_set.diameter))
    assert adversary.dual_state(problem, rule, y).ball == math.inf


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, 1e300])
def test_what_is_not_finite_is_refused_in_a_ball_and_seen_without_one(bad: float, rng: np.random.Generator) -> None:
    problem = some_problem(rng, weighted=False)
    y = some_start(problem, rng)
    one = np.array([3]), np.array([1.0 / N]), np.array([bad])
    within = adversary.dual_state(problem, rule_of(problem, BallWithin(problem.dual_set, y, 0.1)), y)
    assert ascend_all(within, *one) == 0
    np.testing.assert_allclose(within.point(), y, rtol=0.0, atol=1e-15)
    free = adversary.dual_state(problem, rule_of(problem, problem.dual_set), y)
    assert ascend_all(free, *one) == 1
    assert math.isfinite(bad) or np.isnan(free.point()).any()
    if math.isfinite(bad):
        np.testing.assert_allclose(free.point(), np.eye(N)[3], rtol=0.0, atol=1e-12)


def test_structures_say_what_they_do_not_fit(rng: np.random.Generator) -> None:
    problem = some_problem(rng, weighted=False)
    y, Y = some_start(problem, rng), problem.dual_set
    assert adversary.dual_state(problem, rule_of(problem, BallWithin(Y, problem.y0, 0.1)), y) is None  # another center
    long = 1.0 / problem.dual_curvature
    assert adversary.dual_state(problem, rule_of(problem, Y, centred=False, step=long), y) is None
    assert adversary.dual_state(problem, rule_of(problem, Y, centred=True, step=long), y) is not None
    assert fixed_weights.dual_state(problem, rule_of(problem, Y), y) is None
    assert scalar.dual_state(problem, rule_of(problem, Y), y) is None
    fixed = some_problem(rng, weighted=False, divergence=pm.Mean())
    assert isinstance(fixed.dual_set, Point) and isinstance(Y, Simplex)
    assert adversary.dual_state(fixed, rule_of(fixed, fixed.dual_set), fixed.y0) is None


@pytest.mark.parametrize("radius", [None, 0.1])
def test_fixed_weights_stay(radius: float | None, rng: np.random.Generator) -> None:
    problem = some_problem(rng, weighted=True, divergence=pm.Mean())
    Y = problem.dual_set if radius is None else BallWithin(problem.dual_set, problem.y0, radius)
    dual = fixed_weights.dual_state(problem, rule_of(problem, Y), problem.y0)
    assert ascend_all(dual, rng.integers(0, N, 50), np.ones(50), 1e3 * rng.standard_normal(50)) == 50
    found = np.empty(N)
    weights_of(dual, found)
    np.testing.assert_array_equal(found, problem.y0)
    np.testing.assert_array_equal(dual.point(), problem.y0)


@pytest.mark.parametrize("radius", [None, 0.0, 0.05, 10.0])
def test_a_single_number_is_clipped_to_its_intervals(radius: float | None, rng: np.random.Generator) -> None:
    X, labels = rng.standard_normal((N, 3)), np.array([-1, 1] * (N // 2))
    problem = pm.AUC(X, labels, constraint=L2Ball(0.5))
    y = problem.dual_set.project(np.array([0.1]))
    Y = problem.dual_set if radius is None else BallWithin(problem.dual_set, y, radius)
    rule = GradientStep(0.1, 0.1, problem.primal_set, Y)
    dual = scalar.dual_state(problem, rule, y)
    for ascent in rng.standard_normal(200):
        assert ascend_all(dual, np.array([0]), np.ones(1), np.array([ascent])) == 1
        y = Y.project(y + 0.1 * (ascent - problem.dual_curvature * y))
        np.testing.assert_allclose(dual.point(), y, rtol=0.0, atol=1e-15)
    assert dual.weight(7) == dual.point()[0]
