"""PDSG: one long run with steps that fall like one over the root of the gradients."""

from __future__ import annotations

import boxes
import numpy as np
import oracles
import pytest
from small_problems import N
from traces import assert_same_stages, robust_hinge, trace

import pommel as pm


def test_every_iterate_is_that_of_a_run_to_a_horizon(rng: np.random.Generator, seed: int) -> None:
    """Steps are one over the root of the horizon; what is checked on the way is the average so far."""
    problem, f, x0 = robust_hinge(rng)
    solver = pm.PDSG(primal_step=2.0, dual_step=0.3, horizon=150)
    root = np.sqrt(150)
    box = boxes.pdsg(
        f, boxes.drawn(seed), x0=x0, ends=[12, 24, 48, 96, 150], eta_x=[2.0 / root] * 5, eta_y=[0.3 / root] * 5
    )
    assert_same_stages(trace(solver, problem, x0, seed).stages, box)


def test_every_iterate_without_a_horizon(rng: np.random.Generator, seed: int) -> None:
    """Steps are one over the root of the next check, which is twice as far each time."""
    problem, f, x0 = robust_hinge(rng)
    solution = pm.PDSG(primal_step=2.0, dual_step=0.3).solve(
        problem, x0=x0, tol=0, max_passes=15 + 6, random_state=seed
    )
    ends = [12, 24, 48, 96, 180]  # 180 = 15 N: six passes went into evaluations
    next_checks = [12, 24, 48, 96, 192]
    box = boxes.pdsg(
        f,
        boxes.drawn(seed),
        x0=x0,
        ends=ends,
        eta_x=[2.0 / np.sqrt(check) for check in next_checks],
        eta_y=[0.3 / np.sqrt(check) for check in next_checks],
    )
    objectives = [f.P(x0), *(f.P(stage.average) for stage in box)]
    assert solution.history["objective"] == pytest.approx(objectives, rel=1e-9)
    assert list(solution.history["n_gradients"]) == [N, *(end + (2 + k) * N for k, end in enumerate(ends))]
    assert list(solution.history["steps"][1:]) == [12, 12, 24, 48, 84]
    assert solution.status is pm.Status.MAX_PASSES


def test_a_horizon_ends_the_run(rng: np.random.Generator) -> None:
    problem, _, _ = robust_hinge(rng)
    solution = pm.PDSG(primal_step=1.0, dual_step=0.1, horizon=30).solve(problem, tol=0, max_passes=None)
    assert solution.status is pm.Status.FINISHED
    assert solution.history["steps"][1:].sum() == 30


def test_it_gets_close_to_the_optimum(rng: np.random.Generator, seed: int) -> None:
    """From far off. For 100 seeds the gap was at most 0.007."""
    problem, f, _ = robust_hinge(rng)
    optimum = oracles.solve_dro(f.X, f.labels, loss="hinge", lam1=f.lam1, lam2=f.lam2).value
    x0 = np.full(problem.d, 3.0)
    assert problem.objective(x0) > optimum + 0.5
    solver = pm.PDSG(primal_step=1.0, dual_step=0.1)
    solution = solver.solve(problem, x0=x0, tol=0, max_passes=500, random_state=seed)
    assert optimum - 1e-8 <= solution.objective <= optimum + 0.025


@pytest.mark.parametrize("name", ["primal_step", "dual_step"])
def test_steps_are_checked(name: str) -> None:
    steps = {"primal_step": 1.0, "dual_step": 1.0}
    for wrong, error in ((-1.0, ValueError), (np.inf, ValueError), (np.nan, ValueError), ("auto", TypeError)):
        with pytest.raises(error, match=f"{name} must be a (finite )?number >= 0, got"):
            pm.PDSG(**steps | {name: wrong})
    with pytest.raises(ValueError, match="horizon must be >= 1, got 0"):
        pm.PDSG(**steps, horizon=0)
