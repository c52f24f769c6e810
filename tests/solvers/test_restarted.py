"""What the restarted solvers share: steps, lengths, samplings, weights, seeds, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oracles
import pytest
from small_problems import N, auc, binary_data, dro
from traces import robust_hinge, trace

import pommel as pm
from pommel.solvers._solver import Solver

RESTARTED = [pm.RSPDsc, pm.RSPD, pm.ARSPD]
STEPS = {"primal_step": 0.2, "dual_step": 0.02}
restarted = pytest.mark.parametrize("solver", RESTARTED)


@pytest.mark.parametrize("dual_gradient", ["centred", "whole"])
@pytest.mark.parametrize(
    ("solver", "options", "halvings"),
    [
        (pm.RSPDsc, {"n_stages": 4}, [1, 2, 4, 8]),
        (pm.RSPD, {"n_stages": 4}, [1, 2, 4, 8]),
        (pm.ARSPD, {"n_stages": 2, "n_calls": 2, "kappa": 0.25}, [1, 2, 4, 8]),
    ],
)
def test_auto_steps_are_shares_of_the_natural_ones_at_each_restart(
    rng: np.random.Generator, seed: int, solver: Any, options: dict[str, Any], halvings: list[int], dual_gradient: str
) -> None:
    """0.4 of the primal one, halved; all of the dual one, not halved where its gradient is centred."""
    problem, _, x0 = robust_hinge(rng)
    engine = trace(solver(**options, stage_length=30, dual_gradient=dual_gradient), problem, x0, seed)
    starts = [x0, *(stage.average for stage in engine.stages)]
    for rule, start, halved in zip(engine.rules, starts, halvings, strict=False):
        natural = problem.natural_steps(start, problem.best_response(start))
        assert rule.primal_step == pytest.approx(0.4 * natural.primal / halved, rel=1e-12)
        assert rule.dual_step == pytest.approx(natural.dual / (1 if dual_gradient == "centred" else halved), rel=1e-12)
        center = problem.respond(start).center if dual_gradient == "centred" else None
        assert rule.center == center


@restarted
def test_a_given_step_is_halved_and_the_other_may_be_auto(rng: np.random.Generator, seed: int, solver: Any) -> None:
    problem, _, x0 = robust_hinge(rng)
    engine = trace(solver(primal_step=0.1, stage_length=10, n_stages=2, **one_call(solver)), problem, x0, seed)
    natural = problem.natural_steps(x0, problem.best_response(x0))
    assert [rule.primal_step for rule in engine.rules] == [0.1, 0.05]
    assert engine.rules[0].dual_step == natural.dual
    engine = trace(solver(dual_step=0.01, stage_length=10, n_stages=2, **one_call(solver)), problem, x0, seed)
    assert [rule.dual_step for rule in engine.rules] == [0.01, 0.005]
    assert engine.rules[0].primal_step == 0.4 * natural.primal


@restarted
def test_stages_are_four_passes_long_and_at_least_500_steps(solver: Any) -> None:
    rows = {n: auc(np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 2) for n in (2, 125, 126, 300)}
    assert [solver().first_length(problem) for problem in rows.values()] == [500, 500, 504, 1200]
    assert solver(stage_length=10.2).first_length(rows[2]) == 11  # lengths from a formula are rounded up


@restarted
def test_iterates_keep_within_the_bound(rng: np.random.Generator, seed: int, solver: Any) -> None:
    """Steps are long enough to reach it, from a start that is as long as allowed."""
    problem, _, x0 = robust_hinge(rng)
    x0 *= 0.5 / np.linalg.norm(x0)
    options = {"stage_length": 40, "n_stages": 2, "bound": 0.5, "primal_radius": 100.0, **one_call(solver), **STEPS}
    if solver is pm.RSPDsc:
        del options["primal_radius"]
    lengths = np.linalg.norm(
        np.vstack([stage.x for stage in trace(solver(**options), problem, x0, seed).stages]), axis=1
    )
    assert lengths.max() == pytest.approx(0.5, rel=1e-12)
    assert np.isclose(lengths, 0.5).sum() > 5


@restarted
def test_an_integer_weight_solves_the_problem_with_repeated_rows(
    rng: np.random.Generator, seed: int, solver: Any
) -> None:
    """Weight zero is a removed row; n lam1 is the same on both sides. For 60 seeds the gap was at most 0.006."""
    X, labels = binary_data(rng)
    weights = np.array([2.0, 1.0, 3.0, 0.0, 1.0, 1.0, 4.0, 1.0, 0.0, 1.0, 1.0, 2.0])
    copies = np.repeat(np.arange(N), weights.astype(int))
    repeated = oracles.solve_dro(X[copies], labels[copies], loss="hinge", lam1=0.1, lam2=0.3)
    problem, x0 = dro(X, labels, loss="hinge", lam1=0.1, lam2=0.3, sample_weight=weights), np.full(3, 3.0)
    solution = solver(stage_length=1500, n_stages=3).solve(problem, x0=x0, tol=0, max_passes=800, random_state=seed)
    assert problem.objective(x0) > repeated.value + 0.5
    assert repeated.value - 1e-8 <= solution.objective <= repeated.value + 0.02
    assert problem.objective(repeated.x) == pytest.approx(repeated.value, abs=1e-7)


def test_drawing_by_y_follows_y(rng: np.random.Generator, seed: int) -> None:
    """Rows of weight zero are never drawn, and the frequencies of the others are those of y within five deviations."""
    problem, _, _ = robust_hinge(rng)
    y = problem.dual_set.project(np.where(np.arange(N) < 4, -1.0, rng.random(N)))
    draws = 20_000
    rows = [problem.draw(u, y, "dual") for u in np.random.default_rng(seed).random(draws)]
    counts = np.bincount(rows, minlength=N)
    assert not counts[y == 0.0].any()
    assert (np.abs(counts - draws * y) <= 5.0 * np.sqrt(draws * y * (1.0 - y)) + 5.0).all()


@restarted
def test_auc_has_one_dual_variable_which_cannot_draw_rows(rng: np.random.Generator, solver: Any) -> None:
    problem = auc(*binary_data(rng), radius=1.0)
    with pytest.raises(ValueError, match=r'rows are drawn with sampling="uniform", got .dual.'):
        solver(sampling="dual").solve(problem)


SOLVERS: dict[str, Callable[[], Solver]] = {
    "RSPDsc": lambda: pm.RSPDsc(stage_length=50),
    "RSPDsc-dual": lambda: pm.RSPDsc(stage_length=50, sampling="dual", dual_gradient="whole"),
    "RSPD": lambda: pm.RSPD(stage_length=50),
    "ARSPD": lambda: pm.ARSPD(stage_length=50),
    "PDSG": lambda: pm.PDSG(primal_step=1.0, dual_step=0.1),
}


@pytest.mark.parametrize("build", SOLVERS.values(), ids=SOLVERS)
def test_the_same_seed_gives_the_same_bits_and_another_does_not(
    rng: np.random.Generator, seed: int, build: Callable[[], Solver]
) -> None:
    problem, _, x0 = robust_hinge(rng)

    def solve(random_state: Any) -> tuple[bytes, bytes]:
        solution = build().solve(problem, x0=x0, tol=0, max_passes=60, random_state=random_state)
        return solution.x.tobytes(), solution.history["objective"].tobytes()

    first = solve(seed)
    assert solve(seed) == first
    assert solve(np.random.default_rng(seed)) == first
    assert solve(seed + 1)[1] != first[1]


@restarted
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"primal_step": -0.1}, ValueError, r"primal_step must be a finite number >= 0, got -0\.1"),
        ({"primal_step": np.inf}, ValueError, "primal_step must be a finite number >= 0, got inf"),
        ({"dual_step": np.nan}, ValueError, "dual_step must be a finite number >= 0, got nan"),
        ({"dual_step": "large"}, TypeError, "dual_step must be a number >= 0, got 'large'"),
        ({"stage_length": 0}, ValueError, "stage_length must be a finite number >= 1, got 0"),
        ({"stage_length": np.inf}, ValueError, "stage_length must be a finite number >= 1, got inf"),
        ({"stage_length": True}, TypeError, "stage_length must be a number >= 1, got True"),
        ({"bound": 0.0}, ValueError, r"bound must be a number > 0, got 0\.0"),
        ({"sampling": "both"}, ValueError, r"sampling must be one of 'uniform', 'dual'.*, got 'both'"),
        ({"dual_gradient": "half"}, ValueError, r"dual_gradient must be one of 'centred', 'whole'.*, got 'half'"),
        ({"n_stages": 0}, ValueError, "n_stages must be >= 1, got 0"),
        ({"n_stages": 1.5}, TypeError, r"n_stages must be a whole number >= 1, got 1\.5"),
    ],
)
def test_bad_parameters_are_refused(solver: Any, wrong: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        solver(**wrong)


@pytest.mark.parametrize("solver", [pm.RSPD, pm.ARSPD])
@pytest.mark.parametrize("name", ["primal_radius", "dual_radius"])
def test_radii_are_checked(solver: Any, name: str) -> None:
    solver(**{name: np.inf}), solver(**{name: 0.0})
    for wrong, error in ((-1.0, ValueError), (np.nan, ValueError), ("small", TypeError)):
        with pytest.raises(error, match=f"{name} must be a number >= 0, got"):
            solver(**{name: wrong})


def one_call(solver: Any) -> dict[str, Any]:
    return {"n_calls": 1} if solver is pm.ARSPD else {}
