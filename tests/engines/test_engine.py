"""Engine: gradients counted, budgets kept, averages merged, infinity survived. A step here is just adding to x."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pommel as pm
from pommel.engines import engine as engine_module
from pommel.engines.engine import MAX_TRIES, SHRINK, Averages, Diverged, Engine, Exhausted, GradientStep, Walk
from pommel.problem import Constants, NaturalSteps, Response

N = 10
CHUNK_SECONDS = {"never grow": 0.0, "always grow": math.inf}
START, DUAL = np.zeros(2), np.zeros(1)


class Plain:
    """Counts what it is asked for in gradients, each answer one pass of N, constants two.

    A pass is spared where its answer is handed in: natural steps from what `respond` has read, if it says that, and
    constants from an objective.
    """

    n, d = N, 2

    def __init__(
        self, objective: Callable[[np.ndarray], float] = lambda x: float(np.abs(x).sum()), read: bool = False
    ) -> None:
        self.objective, self.spent, self.read = objective, 0, read

    def respond(self, x: np.ndarray) -> Response:
        self.spent += N
        return Response(DUAL, self.objective(x), 7.0, 10.0 * x if self.read else None)

    def natural_steps(self, x: np.ndarray, y: np.ndarray, sampling: str, read: np.ndarray | None) -> NaturalSteps:
        if read is None:
            self.spent += N
        else:
            np.testing.assert_array_equal(read, 10.0 * x)
        return NaturalSteps(*x[:2])

    def constants(self, sampling: str, objective: float | None) -> Constants:
        assert objective in (None, 0.0)  # P(0)
        self.spent += 2 * N if objective is None else N
        return Constants(M=1.0)


class Adding(Engine):
    """Adds primal_step to x and takes dual_step from y, or leaps to where `leap` says at a longer step than `limit`."""

    name = "adding"
    limit, leap_at, leap = math.inf, 0, (np.full(2, np.inf), DUAL)

    def advance(self, rule: GradientStep, walk: Walk, draws: np.ndarray) -> None:
        for _ in draws:
            walk.sum_x += walk.x
            walk.x, walk.y = walk.x + rule.primal_step, walk.y - rule.dual_step
            if rule.primal_step > self.limit and walk.steps >= self.leap_at:
                walk.x, walk.y = self.leap
            walk.steps += 1
            if hasattr(self.problem, "spent"):
                self.problem.spent += 1
            if not walk.finite:
                return


class Drawing(Adding):
    """Adds the draws themselves, so that x tells which were used; goes on from infinity where the draws do."""

    def advance(self, rule: GradientStep, walk: Walk, draws: np.ndarray) -> None:
        for u in draws:
            walk.sum_x += walk.x
            walk.x = walk.x + rule.primal_step * u
            walk.steps += 1
            if rule.primal_step > self.limit and u > 0.99:
                walk.x = walk.x * np.inf
                return


def rule(primal: float = 1.0, dual: float = 2.0) -> GradientStep:
    return GradientStep(primal, dual, pm.WholeSpace(), pm.WholeSpace())


def fresh(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_averages_are_of_iterates_before_each_step() -> None:
    """x = 0, 1, 2, 3, 4 before the steps, 5 after the last one."""
    averages = Adding(Plain()).run(rule(), START, DUAL, 5, fresh())
    np.testing.assert_array_equal(averages.x, [2.0, 2.0])
    np.testing.assert_array_equal(averages.last_x, [5.0, 5.0])
    np.testing.assert_array_equal(averages.last_y, [-10.0])
    assert averages.steps == 5
    assert not START.any() and not DUAL.any()  # what is passed in is not written to


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5))
def test_runs_in_pieces_average_as_one(lengths: list[int]) -> None:
    """Also when a piece is empty, the first one too."""
    engine, past = Adding(Plain()), None
    x, y = START, DUAL
    for length in lengths:
        past = engine.run(rule(), x, y, length, fresh(), past=past)
        x, y = past.last_x, past.last_y
    T = sum(lengths)
    assert past is not None and past.steps == T
    np.testing.assert_allclose(past.x, max(T - 1, 0) / 2.0, rtol=1e-13)
    np.testing.assert_array_equal(past.last_y, -2.0 * T)
    np.testing.assert_array_equal(past.last_x, float(T))


def test_averages_merge_by_their_lengths() -> None:
    def of(value: float, steps: int) -> Averages:
        return Averages(np.array([value]), steps, np.array([10 * value]), np.array([20 * value]))

    merged = of(4.0, 3).after(of(1.0, 6))
    assert (merged.x, merged.steps) == (2.0, 9)
    assert (merged.last_x, merged.last_y) == (40.0, 80.0)  # of the later run
    assert of(4.0, 3).after(None).x == of(4.0, 3).after(of(1.0, 0)).x == 4.0


def test_every_gradient_is_counted() -> None:
    problem = Plain()
    engine = Adding(problem)

    def spends(gradients: int, act: Callable[[], Any]) -> Any:
        before = engine.n_gradients
        answer = act()
        assert (engine.n_gradients - before, engine.n_gradients) == (gradients, problem.spent)
        return answer

    start = spends(N, lambda: engine.restart(START))
    assert (start.objective, start.center) == (0.0, 7.0)
    spends(0, lambda: engine.restart(START))  # known already
    ones = spends(N, lambda: engine.restart(np.ones(2)))
    assert spends(N, lambda: engine.natural_steps(ones, "uniform")) == NaturalSteps(1.0, 1.0)
    assert spends(N, lambda: engine.constants(start)).M == 1.0  # P(0) is known
    assert spends(2 * N, lambda: engine.constants(ones)).M == 1.0
    averages = spends(37 + N, lambda: engine.run(rule(), START, DUAL, 37, fresh()))  # it looks where it has come to
    spends(0, lambda: engine.restart(averages.x))
    assert engine.last_run == engine_module.RunReport(primal_step=1.0, dual_step=2.0, steps=37, tries=0)


def test_runs_may_start_from_the_same_point_again() -> None:
    """It is still known where they started, whatever was evaluated since."""
    problem = Plain()
    engine = Adding(problem)
    start = engine.restart(START)
    ends = [engine.run(rule(), start.x, start.y, steps, fresh()).x for steps in (5, 6)]
    spent = engine.n_gradients
    assert engine.restart(start.x) is start
    assert engine.restart(ends[1]).objective == problem.objective(ends[1])
    assert engine.n_gradients == problem.spent == spent == 3 * N + 11
    assert engine.restart(ends[0]).x is ends[0]  # from the run before: made anew
    assert engine.n_gradients == problem.spent == spent + N


def test_what_a_restart_has_read_is_not_read_again() -> None:
    problem = Plain(read=True)
    engine = Adding(problem)
    start = engine.restart(np.array([1.0, 2.0]))
    for _ in range(3):
        assert engine.natural_steps(start, "uniform") == NaturalSteps(1.0, 2.0)
    assert engine.n_gradients == problem.spent == N


PRICES = {
    "restart": N,
    "natural_steps": N,
    "natural_steps of what was read": 0,
    "constants": 2 * N,
    "constants at 0": N,
}
ACTIONS = st.lists(st.sampled_from(list(PRICES)) | st.integers(0, 60), min_size=1, max_size=12)


@given(actions=ACTIONS, budget=st.floats(0.0, 200.0), limit=st.sampled_from([math.inf, 0.05, 0.0]))
def test_budget_is_never_exceeded(actions: list[Any], budget: float, limit: float) -> None:
    """And nothing that it reaches for is refused; the count is right to the end, also for runs made again."""
    problem = Plain()
    engine = Adding(problem, max_gradients=budget)
    engine.limit, engine.leap_at = limit, 20
    start = engine_module.Iterate(START, DUAL, 0.0, None)
    elsewhere = engine_module.Iterate(np.ones(2), DUAL, 2.0, None, read=np.full(2, 10.0))
    for action in actions:
        left = budget - engine.n_gradients
        price = PRICES.get(action, 0)
        try:
            if action == "restart":
                engine.restart(np.ones(2))
            elif action == "natural_steps":
                engine.natural_steps(start, "uniform")
            elif action == "natural_steps of what was read":
                engine.natural_steps(elsewhere, "uniform")
            elif action == "constants":
                engine.constants(elsewhere)
            elif action == "constants at 0":
                engine.constants(start)
            else:
                averages = engine.run(rule(), START, DUAL, action, fresh())
                np.testing.assert_allclose(averages.x, engine.shrink * max(averages.steps - 1, 0) / 2.0, rtol=1e-13)
                if engine.last_run.tries == 0:
                    assert averages.steps == max(0, min(action, math.floor(left - N)))
        except Exhausted:
            assert left < price
        except Diverged:
            assert limit == 0.0
        assert engine.n_gradients == problem.spent <= budget
        assert engine.exhausted() == (budget - engine.n_gradients - N < 1)


def test_a_run_without_budget_gives_back_its_start() -> None:
    engine = Adding(Plain(), max_gradients=N)
    averages = engine.run(rule(), START, DUAL, 5, fresh())
    assert averages.x is averages.last_x is START and averages.last_y is DUAL and averages.steps == 0
    past = Averages(np.ones(2), 3, START, DUAL)
    assert engine.run(rule(), START, DUAL, 5, fresh(), past=past) is past
    assert engine.n_gradients == 0


def test_chunks_end_when_told_to_stop() -> None:
    """Asked before each chunk: here the third answer is yes, after chunks of 16 and 32 or 16 and 16."""
    answers = iter([False, False, True])
    engine = Adding(Plain(), should_stop=lambda: next(answers))
    averages = engine.run(rule(), START, DUAL, 10**9, fresh())
    assert averages.steps in (32, 48) and engine.n_gradients == averages.steps + N
    np.testing.assert_array_equal(averages.x, (averages.steps - 1) / 2.0)
    assert engine.stopped and engine.exhausted()  # and it is not asked again
    assert engine.run(rule(), START, DUAL, 5, fresh()).steps == 0


@pytest.mark.parametrize("limit", [math.inf, 0.5], ids=["finite", "retried"])
def test_chunks_do_not_change_a_bit(limit: float, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the clock says; a try that failed leaves the draws of the next one as they are."""
    results = []
    odd_clock = np.cumsum(np.random.default_rng(seed + 1).exponential(0.05, 10_000)).tolist()
    for chunk_seconds, clock in [
        *((seconds, None) for seconds in CHUNK_SECONDS.values()),
        (engine_module.CHUNK_SECONDS, itertools.cycle(odd_clock).__next__),
    ]:
        monkeypatch.setattr(engine_module, "CHUNK_SECONDS", chunk_seconds)
        if clock is not None:
            monkeypatch.setattr(engine_module, "time", SimpleNamespace(perf_counter=clock))
        engine, rng = Drawing(Plain()), fresh(seed)
        engine.limit = limit
        first = engine.run(rule(), START, DUAL, 3000, rng)
        second = engine.run(rule(), START, DUAL, 1000, rng)
        results.append([*first.x, *first.last_x, *second.x, *second.last_x, engine.n_gradients, rng.random()])
        assert engine.shrink == (1.0 if limit == math.inf else SHRINK)
    assert results[0] == results[1] == results[2]


def test_seed_decides_the_draws() -> None:
    first, again, other = (Drawing(Plain()).run(rule(), START, DUAL, 50, fresh(seed)).x for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


LEAPS = {
    "x infinite": (np.array([np.inf, 0.0]), DUAL),
    "x NaN": (np.array([0.0, np.nan]), DUAL),
    "y infinite": (START, np.array([-np.inf])),
    "y NaN": (START, np.array([np.nan])),
    "only the average overflows": (np.full(2, 1.7e308), DUAL),
    "only the objective overflows": (np.full(2, 1e100), DUAL),
}


def overflowing(x: np.ndarray) -> float:
    """Infinite at large numbers, but not at infinity, as a hinge loss on the right side."""
    return float(np.exp(np.abs(x)).sum()) if np.isfinite(x).all() else 0.0


@pytest.mark.parametrize("leap", LEAPS.values(), ids=LEAPS)
@pytest.mark.parametrize("leap_at", [0, 29])
def test_a_run_that_leaves_the_numbers_is_made_again_from_its_start(leap: Any, leap_at: int) -> None:
    """With steps of 1 and 0.1 it leaves them, with 0.01 it does not."""
    problem = Plain(overflowing)
    engine = Adding(problem)
    engine.limit, engine.leap, engine.leap_at = 0.05, leap, leap_at
    start = engine.restart(np.array([3.0, 3.0]))
    averages = engine.run(rule(), start.x, start.y, 32, fresh())
    np.testing.assert_allclose(averages.x, 3.0 + 0.01 * 31 / 2, rtol=1e-13)
    np.testing.assert_allclose(averages.last_y, -0.02 * 32, rtol=1e-13)
    assert engine.last_run is not None
    assert (engine.last_run.tries, engine.last_run.steps) == (2, 32)
    assert (engine.last_run.primal_step, engine.last_run.dual_step) == pytest.approx((0.01, 0.02), rel=1e-12)
    assert engine.n_gradients == problem.spent  # tries that failed were made too
    assert np.isfinite(engine.restart(averages.x).objective)

    engine.run(rule(), START, DUAL, 10, fresh())  # smaller steps are kept
    assert engine.last_run.tries == 0 and engine.last_run.primal_step == pytest.approx(0.01, rel=1e-12)


def test_large_but_finite_numbers_are_no_divergence() -> None:
    """Their squares overflow."""
    engine = Adding(Plain())
    averages = engine.run(rule(primal=1e200), START, DUAL, 5, fresh())
    np.testing.assert_allclose(averages.x, 2e200, rtol=1e-13)
    assert engine.last_run is not None and engine.last_run.tries == 0


def test_a_failed_run_keeps_what_was_averaged_before() -> None:
    engine = Adding(Plain())
    past = engine.run(rule(0.01), START, DUAL, 10, fresh())
    engine.limit = 0.05
    merged = engine.run(rule(0.1), past.last_x, past.last_y, 10, fresh(), past=past)
    np.testing.assert_allclose(merged.x, 0.01 * 19 / 2, rtol=1e-13)
    assert merged.steps == 20


def test_small_steps_that_diverge_too_are_reported() -> None:
    problem = Plain()
    engine = Adding(problem)
    engine.limit = 0.0
    start = engine.restart(START)
    with pytest.raises(Diverged, match=r"^primal_step=1e-05, dual_step=2e-05$"):
        engine.run(rule(), START, DUAL, 32, fresh())
    assert engine.n_gradients == problem.spent == N + MAX_TRIES + 1  # each try went one step far
    assert engine.restart(START) is start  # the point to go back to is still known


def test_the_start_is_still_known_where_only_objectives_overflow() -> None:
    problem = Plain(overflowing)
    engine = Adding(problem)
    engine.limit, engine.leap = 0.0, LEAPS["only the objective overflows"]
    start = engine.restart(START)
    with pytest.raises(Diverged):
        engine.run(rule(), START, DUAL, 32, fresh())
    spent = engine.n_gradients
    assert engine.restart(START) is start
    assert engine.n_gradients == problem.spent == spent


def test_a_run_out_of_budget_while_retrying_ends_at_its_start() -> None:
    engine = Adding(Plain(), max_gradients=2 * N + 2)
    engine.limit, engine.leap_at = 0.0, 100
    engine.problem.objective = lambda x: math.inf if x.any() else 0.0  # not known before all has been spent
    averages = engine.run(rule(), START, DUAL, 32, fresh())
    assert averages.x is START and averages.steps == 0
    assert engine.n_gradients == 2 * N + 2
