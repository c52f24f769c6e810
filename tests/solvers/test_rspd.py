"""RSPD: the box of Algorithm 2, its radii, Theorem 2's parameters, and a problem of a user's own."""

from __future__ import annotations

from math import ceil, inf, log, sqrt
from typing import Any

import boxes
import numpy as np
import oracles
import pytest
from small_problems import binary_data, dro, quadratics, three_unit_rows
from traces import Recorder, assert_same_stages, robust_hinge, trace

import pommel as pm

STEPS = {"primal_step": 0.2, "dual_step": 0.02}
BOX = {"S": 4, "T": 40, "eta_x": 0.2, "eta_y": 0.02}


@pytest.mark.parametrize("v", [0.0, 0.5, 1.0])
def test_every_iterate_is_that_of_the_box(rng: np.random.Generator, seed: int, v: float) -> None:
    """Radii are so small that both balls bind again and again."""
    problem, f, x0 = robust_hinge(rng)
    solver = pm.RSPD(
        stage_length=40,
        n_stages=4,
        primal_radius=0.4,
        dual_radius=0.1,
        v=v,
        sampling="uniform",
        dual_gradient="whole",
        **STEPS,
    )
    engine = trace(solver, problem, x0, seed)
    assert_same_stages(engine.stages, boxes.rspd(f, boxes.drawn(seed), x0=x0, **BOX, R_x=0.4, R_y=0.1, v=v))
    assert [len(stage.x) - 1 for stage in engine.stages] == [40] * 4
    for s, stage in enumerate(engine.stages[:2]):
        assert farthest(stage.x) == pytest.approx(0.4 / 2**s, rel=1e-9)
        assert farthest(stage.y) == pytest.approx(0.1 / 2 ** (v * s), rel=1e-9)


def farthest(points: np.ndarray) -> float:
    return float(np.linalg.norm(points - points[0], axis=1).max())


@pytest.mark.parametrize("dual_gradient", ["whole", "centred", "implicit"])
@pytest.mark.parametrize(("sampling", "by_y"), [("uniform", 0.0), ("dual", 1.0), ("mixed", 0.5)])
def test_every_iterate_without_balls(
    rng: np.random.Generator, seed: int, sampling: str, by_y: float, dual_gradient: str
) -> None:
    problem, f, x0 = robust_hinge(
        rng, by_y=by_y, centred=dual_gradient == "centred", implicit=dual_gradient == "implicit"
    )
    free = {"primal_radius": inf, "dual_radius": inf}
    solver = pm.RSPD(stage_length=40, n_stages=4, sampling=sampling, dual_gradient=dual_gradient, **free, **STEPS)
    box = boxes.rspd(f, boxes.drawn(seed), x0=x0, **BOX, R_x=inf, R_y=inf, v=1.0)
    assert_same_stages(trace(solver, problem, x0, seed).stages, box)


def test_the_step_factor_multiplies_both_steps_of_all_stages(rng: np.random.Generator, seed: int) -> None:
    problem, _, x0 = robust_hinge(rng)
    engine = trace(pm.RSPD(stage_length=5, n_stages=3, step_factor=0.5, **STEPS), problem, x0, seed)
    assert [(rule.primal_step, rule.dual_step) for rule in engine.rules] == [
        (0.1, 0.01),
        (0.05, 0.005),
        (0.025, 0.0025),
    ]


def radii(engine: Recorder) -> list[tuple[float, float]]:
    return [(rule.primal_set.ball_radius, rule.dual_set.ball_radius) for rule in engine.rules]


def test_auto_radii_are_those_of_the_theory_for_the_accuracy_its_stages_reach(
    rng: np.random.Generator, seed: int
) -> None:
    """epsilon = epsilon0 / 2^S; R_x = c epsilon0 / sqrt(epsilon) with c = sqrt(2 / lam2), R_y = L G R_x."""
    problem, f, x0 = robust_hinge(rng)
    engine = trace(pm.RSPD(stage_length=5, n_stages=3, **STEPS), problem, x0, seed)
    epsilon0 = f.P(x0)  # losses are >= 0
    R_x = sqrt(2 / f.lam2) * epsilon0 / sqrt(epsilon0 / 2**3)
    n = problem.n
    R_y = np.linalg.norm(f.X, 2) * R_x / (n**2 * f.lam1)
    expected = [(R_x, R_y), (R_x / 2, R_y / 2), (R_x / 4, R_y / 4)]
    np.testing.assert_allclose(radii(engine), expected, rtol=1e-9)
    # Given ones stay; a dual one follows from a given primal one.
    engine = trace(pm.RSPD(stage_length=5, n_stages=1, primal_radius=2.0, **STEPS), problem, x0, seed)
    np.testing.assert_allclose(radii(engine), [(2.0, 2.0 * R_y / R_x)], rtol=1e-9)
    engine = trace(pm.RSPD(stage_length=5, n_stages=1, dual_radius=2.0, **STEPS), problem, x0, seed)
    np.testing.assert_allclose(radii(engine), [(sqrt(2 / f.lam2) * sqrt(2 * epsilon0), 2.0)], rtol=1e-9)
    engine = trace(pm.RSPD(stage_length=5, n_stages=1, v=0.5, primal_radius=4.0, **STEPS), problem, x0, seed)
    np.testing.assert_allclose(radii(engine), [(4.0, sqrt(np.linalg.norm(f.X, 2) * 4.0) / (n**2 * f.lam1))], rtol=1e-9)


def test_no_ball_binds_where_constants_are_not_known(rng: np.random.Generator, seed: int) -> None:
    problem = quadratics(rng)
    engine = trace(pm.RSPD(stage_length=5, n_stages=2, **STEPS), problem, np.zeros(problem.d), seed)
    assert radii(engine) == [(inf, inf)] * 2


def test_parameters_of_theorem_2() -> None:
    """M = 4, B = 6 + 2 sqrt 6, L = 1 / 6, c = sqrt 2, epsilon0 = 1 as for Theorem 1, and G from an SVD.

    The theorem ends at twice its epsilon, so it is asked for 1/4: S = 2, R_x = sqrt 2 / sqrt(1/4).
    """
    problem = three_unit_rows()
    B, G, R_x = 6 + 2 * sqrt(6), np.linalg.norm(problem.rows.X, 2), 2 * sqrt(2)
    R_y = G * R_x / 6
    solver = pm.RSPD.from_theory(problem, 0.5, delta=0.2)
    assert (solver.sampling, solver.dual_gradient, solver.bound) == ("uniform", "whole", 1.0)
    assert (solver.n_stages, solver.v, solver.step_factor) == (2, 1.0, 1.0)
    assert solver.stage_length == ceil(8192 * log(2 / 0.2) * max(4 * R_x, B * R_y) ** 2)
    assert (solver.primal_step, solver.dual_step) == pytest.approx((1 / (40 * 4**2), 1 / (40 * B**2)), rel=1e-12)
    assert (solver.primal_radius, solver.dual_radius) == pytest.approx((R_x, R_y), rel=1e-9)
    plan = pm.RSPD.plan(problem, 0.5, delta=0.2)
    assert (plan.theorem, plan.total_gradients) == (2, 2 * solver.stage_length)
    assert "P(x) - P* <= 0.5 with probability at least 0.8" in plan.describe()
    assert pm.RSPD.from_theory(problem, 0.5, epsilon0=0.5).n_stages == 1


def test_theory_says_what_is_missing(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    with pytest.raises(ValueError, match="c: g is not strongly convex and X is unbounded"):
        pm.RSPD.from_theory(dro(X, labels, loss="hinge", lam1=0.1, lam2=0.0), 0.1)
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\), got 1\.5"):
        pm.RSPD.from_theory(three_unit_rows(), 0.1, delta=1.5)


def test_a_users_own_problem_is_solved_to_a_thousandth(seed: int) -> None:
    """Losses (x - c_i)'Q_i(x - c_i) as callables, y on the simplex; Clarabel says what the optimum is.

    The relative gap was below 4e-4 for each of 20 seeds; at the start it is 0.2.
    """
    rng, n, d = np.random.default_rng(5), 8, 3
    centers, roots = rng.standard_normal((n, d)), np.eye(d) + 0.5 * rng.standard_normal((n, d, d))
    Q = roots.transpose(0, 2, 1) @ roots
    problem = pm.FunctionProblem(
        losses=lambda x: np.einsum("ij,ijk,ik->i", x - centers, Q, x - centers),
        loss=lambda x, i: (x - centers[i]) @ Q[i] @ (x - centers[i]),
        gradient=lambda x, i: 2.0 * Q[i] @ (x - centers[i]),
        n=n,
        d=d,
        divergence=pm.ChiSquare(1 / n),
        lower_bound=0.0,
    )
    pm.check_problem(problem, random_state=seed)
    optimum = oracles.solve_quadratics(centers, roots, lam1=1 / n)
    assert 1 < (problem.best_response(optimum.x) > 0.01).sum() < n  # neither an average nor a maximum
    solver = pm.RSPD(stage_length=20_000, n_stages=3, primal_radius=4.0, dual_radius=2.0)
    solution = solver.solve(problem, tol=0, max_passes=None, random_state=seed)
    assert problem.objective(np.zeros(d)) > 1.1 * optimum.value
    assert abs(solution.objective - optimum.value) <= 1e-3 * optimum.value


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"v": -0.1}, ValueError, r"v must be a finite number >= 0, got -0\.1"),
        ({"v": 1.1}, ValueError, r"v must be at most 1, got 1\.1"),
        ({"v": "smooth"}, TypeError, "v must be a number >= 0, got 'smooth'"),
        ({"step_factor": 0.0}, ValueError, r"step_factor must be a finite number > 0, got 0\.0"),
        ({"n_stages": None}, TypeError, "n_stages must be a whole number >= 1, got None"),
    ],
)
def test_bad_parameters_are_refused(wrong: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        pm.RSPD(**wrong)
