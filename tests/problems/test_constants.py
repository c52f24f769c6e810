"""Constants of every small problem: bounds are tried at random and at extreme points, unknown ones have a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from oracles import solve_auc, solve_dro
from small_problems import PROBLEMS, SAMPLED_PROBLEMS, WEIGHTS, N, auc, binary_data, dro, probabilities

import pommel as pm
from pommel.problem import Problem, Sampling, Vector

LIMIT = 1.0 + 1e-9
DENSE = [name for name in PROBLEMS if "csr" not in name]
every_problem = pytest.mark.parametrize("name", DENSE)
every_sampling = pytest.mark.parametrize(("name", "sampling"), [pair for pair in SAMPLED_PROBLEMS if pair[0] in DENSE])


def primal_points(problem: Problem, rng: np.random.Generator, radius: float = np.inf) -> list[Vector]:
    """Points of X with |x| <= radius, many of them on the boundary and in the directions of rows."""
    directions = rng.standard_normal((30, problem.d))
    if hasattr(problem, "rows"):
        rows = [problem.rows.row(i) for i in range(problem.n)]
        directions[: 2 * problem.n, : problem.rows.d] = rows + [-row for row in rows]
    points = [problem.primal_set.project(scale * z) for scale in (0.1, 1.0, 1e3) for z in directions]
    return [x * min(1.0, radius / problem.primal_set.distance(x, 0.0 * x)) for x in points]  # still in X, for 0 is


def dual_points(problem: Problem, size: int, rng: np.random.Generator) -> Iterator[Vector]:
    """Points of Y: random ones, and its vertices."""
    for z in (*rng.standard_normal((3, size)), *1e3 * np.eye(size), *-1e3 * np.eye(size)):
        yield problem.dual_set.project(z)


@every_sampling
def test_M_and_B_bound_sampled_gradients(name: str, sampling: Sampling, rng: np.random.Generator) -> None:
    problem = PROBLEMS[name](rng)
    known, root = problem.constants(sampling), np.sqrt(problem.dual_set.metric)
    M, B = (np.inf if bound is None else bound * LIMIT for bound in (known.M, known.B))
    points = sorted(primal_points(problem, rng, known.radius), key=lambda x: np.abs(problem.losses(x)).max())
    for x in (points[0], *points[-3:]):
        for y in dual_points(problem, problem.losses(x).size, rng):
            for i in np.flatnonzero(probabilities(problem, y, sampling)):
                grad_x, grad_y = problem.sample_gradients(x, y, int(i), sampling)
                assert np.linalg.norm(np.sqrt(problem.primal_set.metric) * grad_x) <= M
                assert np.linalg.norm(root * grad_y) <= B


@every_problem
def test_G_and_L_bound_how_fast_losses_and_best_responses_move(name: str, rng: np.random.Generator) -> None:
    problem = PROBLEMS[name](rng)
    known, root = problem.constants(), np.sqrt(problem.dual_set.metric)
    for a, b in pairwise(rng.permutation(primal_points(problem, rng, known.radius))):
        moved = float(np.linalg.norm(root * (problem.losses(a) - problem.losses(b))))
        if known.G is not None:
            noise = 1e-14 * np.linalg.norm(root * problem.losses(a))  # points may be one but for their last bits
            assert moved <= known.G * problem.primal_set.distance(a, b) * LIMIT + noise
        response = problem.dual_set.distance(problem.best_response(a), problem.best_response(b))
        assert response <= known.L * moved**known.v * LIMIT + 1e-12


@every_problem
def test_mu_is_a_strong_convexity_of_the_objective(name: str, rng: np.random.Generator) -> None:
    problem = PROBLEMS[name](rng)
    mu = problem.constants().mu or 0.0
    for a, b in pairwise(rng.permutation(primal_points(problem, rng))):
        gradient, _ = problem.gradients(a, problem.best_response(a))
        tangent = problem.objective(a) + gradient @ (b - a)
        assert problem.objective(b) >= (tangent + mu / 2.0 * np.sum((b - a) ** 2)) - 1e-9 * (1.0 + abs(tangent))


@every_problem
def test_epsilon0_bounds_the_gap_at_the_start(name: str, rng: np.random.Generator) -> None:
    problem = PROBLEMS[name](rng)
    start = problem.objective(problem.primal_set.project(np.zeros(problem.d)))
    assert all(start - problem.objective(x) <= problem.constants().epsilon0 for x in primal_points(problem, rng))


@every_sampling
def test_unknown_constants_and_no_others_have_a_reason(name: str, sampling: Sampling, rng: np.random.Generator) -> None:
    known = PROBLEMS[name](rng).constants(sampling)
    assert set(known.why) == {field.name for field in fields(known) if getattr(known, field.name) is None}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("dro", {"loss": "hinge", "lam1": 1.0 / N, "lam2": 0.1}),
        ("dro", {"loss": "hinge", "lam1": None, "lam2": 2.0}),
        ("dro", {"loss": "logistic", "lam1": 1.0 / N, "lam2": 0.01, "sample_weight": WEIGHTS}),
        ("dro", {"loss": "logistic", "lam1": 1.0 / N, "lam2": 0.0, "radius": 0.5}),
        ("dro", {"loss": "hinge", "lam1": 1e-3, "lam2": 0.1, "radius": 0.3}),
        ("auc", {"lam2": 0.01}),
        ("auc", {"lam2": 0.1, "radius": 0.2}),
        ("auc", {"lam2": 0.1, "radius": 0.2, "on": "v"}),
        ("auc", {"radius": 0.2}),
    ],
    ids=str,
)
def test_the_minimiser_is_where_the_constants_say(kind: str, options: dict[str, Any], rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    state, solve = {"dro": (dro, solve_dro), "auc": (auc, solve_auc)}[kind]
    problem, optimum = state(X, labels, **options), solve(X, labels, **options)
    known, X = problem.constants(), problem.primal_set
    assert X.distance(optimum.x, 0.0 * optimum.x) <= known.radius * (1.0 + 1e-6)
    near = [X.project(optimum.x + t * rng.standard_normal(problem.d)) for t in np.geomspace(1e-2, 1.0, 30)]
    for x in (*near, *primal_points(problem, rng)):
        gap = problem.objective(x) - optimum.value
        assert gap >= -1e-8
        assert X.distance(x, optimum.x) <= known.c * (gap + 1e-8) ** known.theta * (1.0 + 1e-6)


@pytest.mark.parametrize("lam2", [1e-3, 0.1, 10.0])
def test_constants_of_dro_are_those_of_the_paper(lam2: float, rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    lam1, a = 0.2, np.linalg.norm(X, axis=1).max()
    R = min(np.sqrt(1.0 / lam2), a / lam2)  # P(0) = 1
    expected = {
        "M": N * a + lam2 * R,
        "B": N * (1.0 + a * R) + N * lam1 * np.sqrt(N**2 - N),
        "G": np.linalg.norm(X, ord=2),
        "L": 1.0 / (N**2 * lam1),
        "v": 1.0,
        "mu": lam2,
        "c": np.sqrt(2.0 / lam2),
        "theta": 0.5,
        "epsilon0": 1.0,
        "radius": R,
    }
    problem = dro(X, labels, loss="hinge", lam1=lam1, lam2=lam2)
    known = asdict(problem.constants())
    assert {name: known[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    assert problem.constants("dual").M == pytest.approx(a + lam2 * R, rel=1e-9)
    # Half of the rows drawn each way: y_i is at most 2 q_i, and q_i at least 1 / 2n.
    mixed = problem.constants("mixed")
    assert mixed.M == pytest.approx(2.0 * a + lam2 * R, rel=1e-9)
    assert mixed.B == pytest.approx(2.0 * N * (1.0 + a * R) + N * lam1 * np.sqrt(N**2 - N), rel=1e-9)


@every_problem
def test_an_objective_that_is_known_is_not_computed_again(name: str, rng: np.random.Generator) -> None:
    problem = PROBLEMS[name](rng)
    known = problem.constants("uniform")
    start = problem.objective(problem.primal_set.project(np.zeros(problem.d)))
    problem.objective = lambda x: pytest.fail("the objective is computed again")
    assert problem.constants("uniform", start) == known


@pytest.mark.parametrize("kind", [pm.AUC, partial(pm.DRO, divergence=pm.ChiSquare(0.1))], ids=["AUC", "DRO"])
def test_constants_hold_where_0_is_not_in_the_constraint(
    kind: Callable[..., Problem], rng: np.random.Generator
) -> None:
    """X is a ball around a far point: the start is not 0, and a bound for |x*| made from P(0) would not hold."""
    X, labels = binary_data(rng)
    center = np.array([4.0, -3.0, 0.0])
    far = pm.BallWithin(pm.WholeSpace(), center, 1.0)
    problem = kind(X, labels, constraint=far, regularizer=pm.L2(10.0))
    known = problem.constants()
    points = [problem.primal_set.project(z) for z in 10.0 * rng.standard_normal((100, problem.d))]
    best = min(points, key=problem.objective)
    start = problem.primal_set.project(np.zeros(problem.d))
    assert problem.objective(start) - problem.objective(best) <= known.epsilon0
    assert np.linalg.norm(best) <= known.radius


def test_mu_of_auc_survives_long_class_means() -> None:
    """Rows of a class are all alike, so P's flattest direction is known: w orthogonal to the means' difference."""
    X = np.repeat([[1e6, 1.0], [1e6, -1.0]], 3, axis=0)
    problem = pm.AUC(X, np.repeat([1, 0], 3), regularizer=pm.L2(1e-3))
    # Of (w, a, b) = (1, 0, 1e6, 1e6) the regularizer sees w alone; a and b are measured in a unit of their own.
    flattest = 1e-3 / (1.0 + 2.0 * 1e12 / problem.primal_set.metric[-1])
    assert problem.constants().mu == pytest.approx(flattest, rel=1e-6)
