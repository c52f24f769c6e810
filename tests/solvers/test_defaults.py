"""What "auto" stands for: shares of natural steps, how far they lead across X, how rows are drawn, and the pilot."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import oracles
import pytest
from small_problems import N, auc, binary_data, dro
from traces import Recorder, robust_hinge, trace

import pommel as pm
from pommel.engines import ENGINES
from pommel.problem import NaturalSteps, Problem, Vector

RESTARTED = [pm.RSPDsc, pm.RSPD, pm.ARSPD]
restarted = pytest.mark.parametrize("solver", RESTARTED)
CALM, STIFF = 1.0 / N, 0.01 / N
"""chi-square strengths: from x = 0 with hinge losses, n lam below 1/2 is stiff."""


def short(solver: Any, **options: Any) -> Any:
    """Two stages of 20 steps."""
    one_call = {"n_calls": 1} if solver is pm.ARSPD else {}
    return solver(**{"stage_length": 20, "n_stages": 2} | one_call | options)


@pytest.mark.parametrize("lam1", [CALM, STIFF], ids=["calm", "stiff"])
@pytest.mark.parametrize("dual_gradient", ["centred", "whole"])
@pytest.mark.parametrize(
    ("solver", "options"),
    [
        (pm.RSPDsc, {"n_stages": 4}),
        (pm.RSPD, {"n_stages": 4}),
        (pm.ARSPD, {"n_stages": 2, "n_calls": 2, "kappa": 0.25}),
    ],
)
def test_auto_steps_are_shares_of_the_natural_ones_at_each_restart(
    rng: np.random.Generator, seed: int, solver: Any, options: dict[str, Any], dual_gradient: str, lam1: float
) -> None:
    """0.4 of the primal one, halved; all of the dual one, not halved where its gradient is centred.

    The first is in RSPD-sc at most D / (M sqrt T), D the longest way from x_0 to where a stage has started.
    """
    problem, _, x0 = robust_hinge(rng, lam1)
    engine = trace(solver(**options, stage_length=30, dual_gradient=dual_gradient, pilot=False), problem, x0, seed)
    starts = [x0, *(stage.average for stage in engine.stages[:-1])]
    stiff = problem.natural_steps(x0, problem.best_response(x0)).stiff
    farthest = 0.0
    for rule, start, halved in zip(engine.rules, starts, [1, 2, 4, 8], strict=True):
        assert rule.sampling == ("mixed" if stiff else "uniform")
        natural = problem.natural_steps(start, problem.best_response(start), rule.sampling)
        expected, farthest = 0.4 * natural.primal / halved, max(farthest, float(np.linalg.norm(start - x0)))
        if solver is pm.RSPDsc and halved > 1:
            expected = min(expected, farthest / (natural.gradient * sqrt(30 * halved)))
        assert rule.primal_step == pytest.approx(expected, rel=1e-12)
        assert rule.dual_step == pytest.approx(natural.dual / (1 if dual_gradient == "centred" else halved), rel=1e-12)
        center = problem.respond(start).center if dual_gradient == "centred" else None
        assert rule.center == center


@restarted
def test_a_given_step_is_halved_and_the_other_may_be_auto(rng: np.random.Generator, seed: int, solver: Any) -> None:
    problem, _, x0 = robust_hinge(rng)
    engine = trace(short(solver, primal_step=0.1), problem, x0, seed)
    assert [rule.primal_step for rule in engine.rules] == [0.1, 0.05]
    assert engine.rules[0].dual_step == natural_steps(engine, problem, x0).dual
    engine = trace(short(solver, dual_step=0.01, pilot=False), problem, x0, seed)
    assert [rule.dual_step for rule in engine.rules] == [0.01, 0.005]
    assert engine.rules[0].primal_step == 0.4 * natural_steps(engine, problem, x0).primal


@restarted
def test_a_dual_variable_that_all_rows_share_takes_a_quarter_of_the_natural_step(
    rng: np.random.Generator, seed: int, solver: Any
) -> None:
    problem = auc(*binary_data(rng))
    engine = trace(short(solver), problem, np.zeros(problem.d), seed)
    for rule, start, halved in zip(engine.rules, (np.zeros(problem.d), engine.stages[0].average), (1, 2), strict=True):
        natural = problem.natural_steps(start, problem.best_response(start)).dual
        assert rule.dual_step == pytest.approx(natural / 4 / halved, rel=1e-12)


def natural_steps(engine: Recorder, problem: Problem, x: Vector) -> NaturalSteps:
    """For the sampling of the last stage."""
    return problem.natural_steps(x, problem.best_response(x), engine.rules[-1].sampling)


@pytest.mark.parametrize(
    ("solver", "lengths"),
    [
        (pm.RSPDsc, [500, 500, 504, 1200, 4000]),
        (pm.RSPD, [500, 500, 504, 1200, 4000]),
        (pm.ARSPD, [500, 500, 500, 500, 600]),
    ],
)
def test_first_stages_are_four_passes_long_or_three_fifths_of_one_and_at_least_500_steps(
    solver: Any, lengths: list[int]
) -> None:
    rows = {n: auc(np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 2) for n in (2, 125, 126, 300, 1000)}
    assert [solver().first_length(problem) for problem in rows.values()] == lengths
    assert solver(stage_length=10.2).first_length(rows[2]) == 11  # lengths from a formula are rounded up


@restarted
@pytest.mark.parametrize("length", ["auto", 50])
def test_a_stage_does_not_lead_much_further_than_across_X(
    rng: np.random.Generator, seed: int, solver: Any, length: Any
) -> None:
    """From 0 with hinge loss gradients are rows, so 0.8 R / sqrt(mean |a_i|^2 T) is the step where R is small."""
    X, labels = binary_data(rng)
    moment, T = np.mean(np.sum(X**2, axis=1)), 500 if length == "auto" else length
    for radius in (0.01, 0.1, 1.0, 100.0):
        problem = dro(X, labels, loss="hinge", lam1=CALM, lam2=0.0, radius=radius)
        engine = trace(short(solver, stage_length=length), problem, np.zeros(problem.d), seed)
        across = 0.8 * radius / sqrt(moment * T)
        natural = 0.4 * natural_steps(engine, problem, np.zeros(problem.d)).primal
        assert engine.rules[0].primal_step == pytest.approx(min(natural, across), rel=1e-12)
        assert (natural > across) == (radius < 5.0)  # natural * moment = 1, so the radii meet at sqrt(T / moment) / 2
    given = trace(short(solver, primal_step=3.0), problem, np.zeros(problem.d), seed)
    assert given.rules[0].primal_step == 3.0


def test_it_is_the_same_share_of_X_in_every_stage(rng: np.random.Generator, seed: int) -> None:
    """Halved, as all steps are; longer stages of a later call have shorter steps."""
    problem = dro(*binary_data(rng), loss="hinge", lam1=CALM, lam2=0.0, radius=1e-3)
    for solver, parts in (
        (pm.RSPDsc(stage_length=30, n_stages=4), [1, 2, 4, 8]),
        (pm.RSPD(stage_length=30, n_stages=4), [1, 2, 4, 8]),
        (pm.ARSPD(stage_length=30, n_stages=2, n_calls=2, kappa=0.5), [1, 2, 2 * 2, 2 * 4]),  # T is 4 T, its root 2
    ):
        engine = trace(solver, problem, np.zeros(problem.d), seed)
        starts = [np.zeros(problem.d), *(stage.average for stage in engine.stages[:-1])]
        for rule, start, part in zip(engine.rules, starts, parts, strict=True):
            gradient = problem.natural_steps(start, problem.best_response(start)).gradient
            assert rule.primal_step == pytest.approx(0.8 * 1e-3 / (gradient * sqrt(30.0)) / part, rel=1e-12)


def test_steps_are_no_longer_than_the_way_to_go(seed: int) -> None:
    """Half of the labels are noise, so P* is 0.9 and natural steps, shares of P, are far too long for the last stages.

    For six seeds the median gap of five runs was 0.12 to 0.42 of that of runs whose steps are halved only.
    """
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2000, 5))
    labels = np.where(X.sum(axis=1) + 6.0 * rng.standard_normal(2000) > 0.0, 1.0, -1.0)
    parts = {"loss": "hinge", "lam1": 1 / 2000, "lam2": 1 / 2000}
    problem, optimum = dro(X, labels, **parts), oracles.solve_dro(X, labels, **parts).value
    first = problem.natural_steps(np.zeros(5), problem.y0)
    halved = {"primal_step": 0.4 * first.primal, "dual_gradient": "centred"}

    def gap(**options: Any) -> float:
        runs = [pm.RSPDsc(**options).solve(problem, tol=0, max_passes=60, random_state=[seed, k]) for k in range(5)]
        return float(np.median([run.objective for run in runs])) - optimum

    assert gap() < 0.7 * gap(**halved)


class TooLong(pm.DRO):
    """Natural steps from x = 0 are a thousand times what they should be."""

    def natural_steps(self, x: Vector, *arguments: Any) -> NaturalSteps:
        natural = super().natural_steps(x, *arguments)
        return natural if x.any() else natural._replace(primal=1000.0 * natural.primal)


def test_a_stage_that_leads_far_astray_is_made_again(rng: np.random.Generator, seed: int) -> None:
    """With a quarter of the step, until it does not; what comes after forgets it."""
    X, labels = binary_data(rng, n=50)
    problem = TooLong(X, labels, divergence=pm.ChiSquare(1 / 50), regularizer=pm.L2(0.01))
    engine = trace(pm.RSPDsc(stage_length=200, n_stages=8), problem, np.zeros(problem.d), seed)
    lost = [problem.objective(stage.average) > 2.0 for stage in engine.stages]  # P(0) = 1 and P >= 0
    tries = lost.index(False)
    assert tries > 0 and not any(lost[tries:])
    for k, stage in enumerate(engine.stages[: tries + 1]):
        assert len(stage.x) - 1 == 200 and not stage.x[0].any()
        assert engine.rules[k].primal_step == engine.rules[0].primal_step / 4**k
    second, start = engine.rules[tries + 1], engine.stages[tries].average
    assert len(engine.stages[tries + 1].x) - 1 == 400
    natural = problem.natural_steps(start, problem.best_response(start))
    way = np.linalg.norm(start) / (natural.gradient * sqrt(400))
    assert second.primal_step == pytest.approx(min(0.2 * natural.primal, way), rel=1e-12)

    given = trace(pm.RSPDsc(stage_length=200, n_stages=3, primal_step=30.0), problem, np.zeros(problem.d), seed)
    assert [len(stage.x) - 1 for stage in given.stages] == [200, 400, 800]  # as the paper has it


# How rows are drawn


@restarted
@pytest.mark.parametrize(
    ("name", "sampling"), [("calm", "uniform"), ("stiff", "mixed"), ("mean", "uniform"), ("AUC", "uniform")]
)
def test_rows_are_drawn_by_y_too_where_the_problem_is_stiff(
    name: str, sampling: str, rng: np.random.Generator, seed: int, solver: Any
) -> None:
    """As the start has it, in all stages; but not where another way is asked for."""
    problem = PROBLEMS[name](rng)
    x0 = np.zeros(problem.d)
    for options in ({}, {"pilot": False}, {"primal_step": 0.01}, {"primal_step": 0.01, "dual_step": 1e-4}):
        engine = trace(short(solver, **options), problem, x0, seed)
        assert {rule.sampling for rule in engine.rules} == {sampling}
    if name != "AUC":
        for asked in ("uniform", "dual", "mixed"):
            engine = trace(short(solver, sampling=asked), problem, x0, seed)
            assert {rule.sampling for rule in engine.rules} == {asked}


PROBLEMS: dict[str, Callable[[np.random.Generator], Problem]] = {
    "calm": lambda rng: dro(*binary_data(rng), loss="hinge", lam1=CALM, lam2=0.1),
    "stiff": lambda rng: dro(*binary_data(rng), loss="hinge", lam1=STIFF, lam2=0.1),
    "mean": lambda rng: dro(*binary_data(rng), loss="hinge", lam1=None, lam2=0.1),
    "AUC": lambda rng: auc(*binary_data(rng), radius=1.0),
}


# The pilot


def factors(engine: Recorder, stages: int) -> tuple[list[float], list[float]]:
    """Of the first short run's primal step: those of all short runs, and that of the first stage."""
    steps = [rule.primal_step / engine.rules[0].primal_step for rule in engine.rules]
    return steps[:-stages], steps[-stages:]


@restarted
@pytest.mark.parametrize("lam1", [0.4 / N, STIFF, 1e-4 / N])
def test_the_pilot_takes_the_best_of_some_steps(lam1: float, rng: np.random.Generator, seed: int, solver: Any) -> None:
    """One pass with each; a quarter, a sixteenth, ... as long as that is no worse, and four times if that is."""
    problem, _, _ = robust_hinge(rng, lam1)
    x0 = np.zeros(problem.d)
    engine = trace(short(solver), problem, x0, seed)
    tried, made = factors(engine, stages=2)
    reached = [problem.objective(stage.average) for stage in engine.stages[: len(tried)]]
    assert {len(stage.x) for stage in engine.stages[: len(tried)]} == {N + 1}
    assert all((stage.x[0] == x0).all() for stage in engine.stages[: len(tried) + 1])

    lowered = [4.0**-k for k in range(4)]
    if tried[-1] == 4.0:
        assert tried == [1.0, 0.25, 4.0] and reached[1] > reached[0]
    else:
        assert tried == lowered[: len(tried)] and len(tried) >= 3
        assert (np.diff(reached[:-1]) <= 0.0).all()
        assert len(tried) == 4 or reached[-1] > reached[-2]
    best = max(factor for factor, value in zip(tried, reached, strict=True) if value == min(reached))
    assert made == pytest.approx([best, made[1]], rel=1e-12)
    natural = problem.natural_steps(x0, problem.best_response(x0), "mixed")
    assert engine.rules[0].primal_step == pytest.approx(0.4 * natural.primal, rel=1e-12)
    assert {rule.dual_step for rule in engine.rules[: len(tried) + 1]} == {natural.dual}
    assert all(rule.primal_set is problem.primal_set for rule in engine.rules[: len(tried)])
    assert all(state == engine.seeds[0] for state in engine.seeds[: len(tried)])  # the same rows are drawn
    assert engine.seeds[len(tried)] != engine.seeds[0]


@restarted
def test_the_pilot_is_the_same_for_the_same_seed(rng: np.random.Generator, seed: int, solver: Any) -> None:
    problem = PROBLEMS["stiff"](rng)
    one, same = (trace(short(solver), problem, np.zeros(problem.d), seed) for _ in range(2))
    assert [rule.primal_step for rule in one.rules] == [rule.primal_step for rule in same.rules]
    for ours, theirs in zip(one.stages, same.stages, strict=True):
        np.testing.assert_array_equal(ours.x, theirs.x)


@restarted
@pytest.mark.parametrize(
    ("name", "options", "piloted"),
    [
        ("stiff", {}, True),
        ("stiff", {"sampling": "uniform"}, True),
        ("stiff", {"dual_step": 1e-4, "sampling": "dual"}, True),
        ("stiff", {"pilot": False}, False),
        ("stiff", {"primal_step": 0.1}, False),
        ("calm", {}, False),
        ("mean", {}, False),
        ("AUC", {}, False),
    ],
)
def test_the_pilot_is_for_auto_steps_of_stiff_problems(
    name: str, options: dict[str, Any], piloted: bool, rng: np.random.Generator, seed: int, solver: Any
) -> None:
    problem = PROBLEMS[name](rng)
    engine = trace(short(solver, **options), problem, np.zeros(problem.d), seed)
    assert len(engine.rules) - 2 in ([3, 4] if piloted else [0])


@restarted
def test_what_the_pilot_tried_is_counted_and_kept(rng: np.random.Generator, seed: int, solver: Any) -> None:
    """Each short run is a row of the history, for a pass of steps and one that tells where they led."""
    problem = PROBLEMS["stiff"](rng)
    tried = len(trace(short(solver), problem, np.zeros(problem.d), seed).rules) - 2
    history = short(solver).solve(problem, tol=0, max_passes=None, random_state=seed).history
    lengths = [0, *[N] * tried, 20, 40 if solver is pm.RSPDsc else 20]
    assert list(history["steps"]) == lengths
    counted = np.cumsum(lengths) + N * np.arange(1, len(lengths) + 1)
    # For radii a pass more gives the constants, for which P(0) is known; ARSPD takes its radii after the pilot.
    counted[tried + 1 :] += 0 if solver is pm.RSPDsc else N
    assert list(history["n_gradients"]) == list(counted)

    little = short(solver).solve(problem, tol=0, max_passes=3, random_state=seed)
    assert list(little.history["n_passes"]) == [1.0, 3.0]
    assert little.objective == history["objective"][:2].min()


def nearly_the_largest_loss() -> tuple[Problem, float]:
    """P is nearly the largest of 300 losses, 1 at the start, and min P 0.966."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    labels = np.where(X.sum(axis=1) + 0.3 * rng.standard_normal(300) > 0.0, 1.0, -1.0)
    parts = {"loss": "hinge", "lam1": 0.01 / 300, "lam2": 0.01}
    return dro(X, labels, **parts), oracles.solve_dro(X, labels, **parts).value


@pytest.mark.parametrize("engine", ENGINES)
def test_steps_that_suit_a_strong_adversary_are_shorter(engine: str, seed: int) -> None:
    """Of 400 seeds nine in ten took a quarter or less, mostly 1/64, and none more than the first."""
    problem, _ = nearly_the_largest_loss()
    taken = []
    for k in range(15):
        history = pm.RSPDsc().solve(problem, tol=0, max_passes=12, random_state=[seed, k], engine=engine).history
        taken.append(history["primal_step"][-1] / history["primal_step"][1])
    assert np.median(taken) <= 0.25


def test_the_pilot_is_worth_its_price(seed: int) -> None:
    """Median gaps of nine seeds within 100 passes: 40 such medians were at most 1/30 of that without it."""
    problem, optimum = nearly_the_largest_loss()

    def gap(solver: pm.RSPDsc) -> float:
        runs = [solver.solve(problem, tol=0, max_passes=100, random_state=[seed, k]) for k in range(9)]
        return float(np.median([run.objective for run in runs])) - optimum

    assert gap(pm.RSPDsc()) < 0.5 * gap(pm.RSPDsc(pilot=False))


def test_longer_steps_that_lead_out_of_the_numbers_shorten_no_others(seed: int) -> None:
    """Four times the step is one that diverges: it is made again with less, as any run, and then forgotten."""

    class Explosive(Recorder):
        def run(self, rule: Any, *arguments: Any, **options: Any) -> Any:
            averages = super().run(rule, *arguments, **options)
            if len(self.rules) > 1 and rule.primal_step > self.rules[0].primal_step:
                self.shrink *= 0.1
            return averages

    for k in range(100):
        problem, _, _ = robust_hinge(np.random.default_rng([seed, k]), 0.4 / N)
        engine = Explosive(problem)
        list(short(pm.RSPDsc).stages(problem, engine, np.zeros(problem.d), np.random.default_rng(seed)))
        tried, made = factors(engine, stages=2)
        if tried[-1] == 4.0 and made[0] == 1.0:
            assert engine.shrink == 1.0
            return
    raise AssertionError("in none of 100 problems longer steps were tried in vain")
