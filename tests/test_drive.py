"""drive(): what ends a solve, what it keeps, reports and refuses, whatever the solver."""

from __future__ import annotations

import inspect
import logging
import math
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from small_problems import D, N, binary_data, quadratics

import pommel as pm
from pommel import drive as drive_module
from pommel.engines import ENGINES
from pommel.engines import engine as engine_module
from pommel.engines.engine import Engine, GradientStep, Iterate
from pommel.problem import PROBLEM_MEMBERS, Vector
from pommel.solvers._solver import Solver

COLUMNS = ["stage", "solver", "n_gradients", "n_passes", "seconds", "objective", "lower_bound", "relative_gap"]
COLUMNS += ["steps", "primal_step", "dual_step", "retries"]
RESTARTED = [pm.RSPDsc(), pm.RSPD(), pm.ARSPD()]


class Visits(Solver):
    """Goes through given points, e.g. numbers for the first coordinate; calls those that are functions."""

    def __init__(self, *points: Any) -> None:
        self.points = points

    def stages(self, problem: Any, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        for point in self.points:
            if callable(point):
                point()
            else:
                yield engine.restart(np.array([point, *x0[1:]], dtype=float))


class Walks(Solver):
    """Stages of gradient steps of a fixed size, forever: what ends them is up to drive."""

    def __init__(self, primal_step: float = 0.1, length: int = 50) -> None:
        self.primal_step, self.length = primal_step, length

    def stages(self, problem: Any, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        start = engine.restart(x0)
        rule = GradientStep(self.primal_step, 0.0, problem.primal_set, problem.dual_set)
        while True:
            start = engine.restart(engine.run(rule, start.x, start.y, self.length, rng).x)
            yield start


def bowl(bottom: float = 0.0, **options: Any) -> pm.FunctionProblem:
    """P(x) = |x|^2 + bottom with N equal losses; its lower bound is attained at 0."""
    parts: dict[str, Any] = {
        "losses": lambda x: np.full(N, x @ x + bottom),
        "gradient": lambda x, i: 2.0 * x,
        "n": N,
        "d": 2,
        "divergence": pm.Mean(),
        "lower_bound": bottom,
    }
    return pm.FunctionProblem(**parts | options)


def dro(rng: np.random.Generator, divergence: Any = pm.ChiSquare(1.0 / N)) -> pm.DRO:
    return pm.DRO(*binary_data(rng), divergence=divergence, regularizer=pm.L2(0.1))


def bits(solution: pm.Solution) -> list[Any]:
    """All of a solution but the time it took."""
    rows = [[repr(value) for name, value in row.items() if name != "seconds"] for row in solution.history.rows]
    return [solution.x.tolist(), solution.y.tolist(), solution.status, solution.n_gradients, rows]


# What ends a solve


def test_converged_where_the_lower_bound_is_attained() -> None:
    sol = pm.RSPDsc().solve(bowl(), x0=[1.0, 2.0], tol=1e-3, max_passes=None)
    assert sol.status is pm.Status.CONVERGED
    assert sol.relative_gap <= 1e-3 < sol.history["relative_gap"][-2]
    assert sol.gap == sol.objective - sol.lower_bound <= 1e-6 * 5.0
    assert sol.message == "relative gap proved to be within tol"


def test_a_start_that_is_optimal_costs_one_pass() -> None:
    """P = 0 there, and a gap of 0 relative to it is 0."""
    sol = Visits(1.0).solve(bowl())
    assert (sol.status, sol.n_passes, sol.relative_gap) == (pm.Status.CONVERGED, 1.0, 0.0)


def test_finished_after_the_last_stage() -> None:
    sol = pm.RSPDsc(n_stages=2, stage_length=30).solve(bowl(), x0=[1.0, 2.0], tol=0, max_passes=None)
    assert sol.status is pm.Status.FINISHED
    np.testing.assert_array_equal(sol.history["steps"], [0, 30, 60])


def test_callback_sees_every_row_and_stops() -> None:
    rows: list[dict[str, Any]] = []

    def callback(row: dict[str, Any]) -> bool:
        rows.append(row)
        return row["stage"] == 2

    sol = Visits(3.0, 2.0, 1.0, 0.5).solve(bowl(), x0=[4.0, 0.0], tol=0, callback=callback)
    assert sol.status is pm.Status.STOPPED
    assert rows == sol.history.rows and len(rows) == 3
    rows[0].clear()
    assert list(sol.history) == COLUMNS  # rows are the callback's to change

    rows.clear()
    sol = Visits(3.0, 0.0).solve(bowl(), x0=[4.0, 0.0], callback=callback)
    assert sol.status is pm.Status.CONVERGED and len(rows) == 3  # the last one too


@pytest.mark.parametrize("answer", [None, False, 0])
def test_callback_that_says_nothing_does_not_stop(answer: Any) -> None:
    sol = Visits(3.0, 2.0).solve(bowl(), x0=[4.0, 0.0], tol=0, callback=lambda row: answer)
    assert sol.status is pm.Status.FINISHED


@pytest.mark.parametrize("kind", ["DRO", "stiff DRO", "functions", "stiff functions", "AUC"])
@pytest.mark.parametrize("solver", RESTARTED, ids=lambda solver: solver.name)
@pytest.mark.parametrize("max_passes", [1, 1.5, 2, 3, 17.3, 200])
def test_budget_of_passes_is_never_exceeded(
    kind: str, solver: Solver, max_passes: float, rng: np.random.Generator
) -> None:
    """Every gradient a problem is asked for is in the count, and little of the budget is left.

    What a pass has read already, or P(0), is used again and costs nothing.
    """
    lam = 0.05 / N if "stiff" in kind else 1.0 / N
    problem: Any = dro(rng, pm.ChiSquare(lam))
    if "functions" in kind:
        problem = quadratics(rng, divergence=pm.ChiSquare(lam))
    elif kind == "AUC":
        problem = pm.AUC(*binary_data(rng), constraint=pm.L2Ball(1.0))
    spent = 0

    def respond(x: Vector) -> Any:
        nonlocal spent
        spent += N
        return problem.respond(x)

    def natural_steps(x: Vector, y: Vector, sampling: Any, read: Any) -> Any:
        nonlocal spent
        spent += N if read is None else 0
        return problem.natural_steps(x, y, sampling, read)

    def constants(sampling: Any, objective: float | None) -> Any:
        nonlocal spent
        spent += 2 * N if objective is None else N
        return problem.constants(sampling, objective)

    def sample_gradients(*arguments: Any) -> Any:
        nonlocal spent
        spent += 1
        return problem.sample_gradients(*arguments)

    counted = {
        "respond": respond,
        "natural_steps": natural_steps,
        "constants": constants,
        "sample_gradients": sample_gradients,
    }
    sol = solver.solve(
        SimpleNamespace(**{name: getattr(problem, name) for name in PROBLEM_MEMBERS} | counted),
        tol=0,
        max_passes=max_passes,
    )
    assert sol.status is pm.Status.MAX_PASSES
    assert sol.n_gradients == spent and sol.n_passes == spent / N
    assert max_passes * N - 2 * N < spent <= max_passes * N


@pytest.mark.parametrize("solver", RESTARTED, ids=lambda solver: solver.name)
def test_every_call_of_a_users_functions_is_paid_for(solver: Solver, rng: np.random.Generator) -> None:
    """Gradients asked for in natural steps, too: at most a pass of losses comes with each pass of them."""
    calls = {"losses": 0, "gradient": 0}
    plain = quadratics(rng)

    def counted(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*arguments: Any) -> Any:
            calls[name] += 1
            return answer(*arguments)

        return ask

    problem = quadratics(
        rng,
        losses=counted("losses", plain._losses),
        gradient=counted("gradient", plain._gradient),
        loss=lambda x, i: plain._losses(x)[i],
    )
    sol = solver.solve(problem, x0=np.ones(D), tol=0, max_passes=40)
    steps = int(sol.history["steps"].sum())
    passes = (sol.n_gradients - steps) / N
    assert calls["losses"] <= passes
    assert calls["gradient"] - steps <= N * (passes - len(sol.history.rows))  # those that tell the objective need none


def test_time_is_limited() -> None:
    sol = Walks(1e-3, 10**9).solve(bowl(), x0=[4.0, 0.0], tol=0, max_passes=None, max_seconds=0.1)
    assert sol.status is pm.Status.MAX_SECONDS
    assert 0.1 <= sol.seconds < 5.0
    assert len(sol.history.rows) == 2  # the stage that was cut counts with what it made
    assert sol.objective < sol.history["objective"][0]


def test_divergence_leaves_the_best_point() -> None:
    sol = pm.RSPDsc(primal_step=1e200, dual_step=1.0).solve(bowl(), x0=[1.0, 2.0], tol=0)
    assert sol.status is pm.Status.DIVERGED
    np.testing.assert_array_equal(sol.x, [1.0, 2.0])
    assert sol.objective == 5.0
    assert re.search(r"smallest tried: primal_step=1e\+195, dual_step=1e-05\); scale the features", sol.message)


def test_divergence_after_good_stages_leaves_their_best_point() -> None:
    """Steps grow until they are too long: no point of the stages before is lost."""

    class Growing(Walks):
        def stages(self, problem: Any, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
            for primal_step in (0.1, 1e200):
                yield from [next(Walks(primal_step).stages(problem, engine, x0, rng))]

    sol = Growing().solve(bowl(), x0=[1.0, 2.0], tol=0)
    assert sol.status is pm.Status.DIVERGED
    assert sol.objective == sol.history["objective"][1] < 5.0 == sol.history["objective"][0]


def test_a_stage_made_again_with_smaller_steps_is_told_in_the_history() -> None:
    """At |1 - 2 step| > 1 the steps run away; at a tenth of 60 they still do, at a hundredth they do not."""
    sol = Walks(primal_step=60.0, length=2000).solve(bowl(), x0=[1.0, 2.0], tol=0, max_passes=1000)
    assert sol.status is pm.Status.MAX_PASSES
    np.testing.assert_array_equal(sol.history["retries"][:3], [0, 2, 0])
    np.testing.assert_allclose(sol.history["primal_step"][1:3], 0.6, rtol=1e-12)
    assert np.isfinite(sol.history["objective"]).all() and sol.objective < 1e-3


@pytest.mark.parametrize("engine", ENGINES)
def test_huge_starts_raise_no_floating_point_warnings(engine: str) -> None:
    """Squares in the sizes of natural steps overflow."""
    problem = pm.DRO([[1.0], [2.0]], [1, 0], divergence=pm.ChiSquare(0.5))
    sol = pm.RSPDsc().solve(problem, x0=[1e160], tol=0, engine=engine)
    assert np.isfinite(sol.objective) and np.isfinite(sol.x).all()


# Ctrl-C


@pytest.fixture
def usual_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "the handler was not restored"
    signal.signal(signal.SIGINT, before)


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def raise_interrupt() -> None:
    raise KeyboardInterrupt


def test_ctrl_c_while_steps_run_gives_the_best_point(usual_ctrl_c: None) -> None:
    """It arrives from outside, in the middle of a stage that would take hours."""
    timer = threading.Timer(0.2, ctrl_c)
    timer.start()
    sol = Walks(1e-3, 10**9).solve(bowl(), x0=[4.0, 0.0], tol=0, max_passes=None, max_seconds=60.0)
    timer.join()
    assert sol.status is pm.Status.INTERRUPTED and sol.message == "interrupted"
    assert sol.seconds < 30.0
    assert len(sol.history.rows) == 2 and sol.history["steps"][1] > 0  # what the stage had made is not lost
    assert sol.objective == sol.history["objective"].min() < sol.history["objective"][0]


@pytest.mark.parametrize(
    ("events", "rows"),
    [
        ((2.0, ctrl_c, 1.0, 0.5), 3),  # the stage it falls into is finished
        ((2.0, raise_interrupt, 1.0), 2),  # by the problem's own code: not deferred
        ((2.0, ctrl_c, ctrl_c, 1.0), 2),  # who presses again cannot wait
        ((ctrl_c, 3.0), 2),
        ((ctrl_c, ctrl_c, 3.0), 1),
    ],
    ids=["once", "raised", "twice", "at once", "twice at once"],
)
def test_ctrl_c_gives_the_best_point_so_far(events: Any, rows: int, usual_ctrl_c: None) -> None:
    sol = Visits(*events).solve(bowl(), x0=[4.0, 0.0], tol=0)
    assert sol.status is pm.Status.INTERRUPTED
    assert len(sol.history.rows) == rows
    assert sol.objective == sol.history["objective"].min() == sol.x @ sol.x
    assert math.isfinite(sol.relative_gap)


def test_ctrl_c_does_not_hide_that_the_answer_is_proved(usual_ctrl_c: None) -> None:
    assert Visits(ctrl_c, 0.0).solve(bowl(), x0=[4.0, 0.0]).status is pm.Status.CONVERGED


def test_ctrl_c_before_there_is_a_point(usual_ctrl_c: None) -> None:
    """The first one waits for the start to be evaluated; with nothing to give back, the second is passed on."""

    def losses(presses: int) -> Callable[[Vector], Vector]:
        def interrupted(x: Vector) -> Vector:
            for _ in range(presses):
                ctrl_c()
            return np.full(N, x @ x)

        return interrupted

    sol = Visits(1.0).solve(bowl(losses=losses(1)), x0=[4.0, 0.0], tol=0)
    assert (sol.status, sol.objective) == (pm.Status.INTERRUPTED, 16.0)
    with pytest.raises(KeyboardInterrupt):
        Visits(1.0).solve(bowl(losses=losses(2)), x0=[4.0, 0.0], tol=0)


def test_errors_of_the_problem_pass_through(usual_ctrl_c: None) -> None:
    def fails() -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        Visits(fails).solve(bowl(), x0=[4.0, 0.0])


def test_a_handler_of_the_callers_own_stays(usual_ctrl_c: None) -> None:
    caught: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: caught.append(number))
    try:
        sol = Visits(2.0, ctrl_c, 1.0).solve(bowl(), x0=[4.0, 0.0], tol=0)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert caught == [signal.SIGINT] and sol.status is pm.Status.FINISHED


def test_other_threads_solve_too(usual_ctrl_c: None) -> None:
    """Where no signal handler can be set."""
    solutions: list[pm.Solution] = []

    def work(*events: Any) -> None:
        solutions.append(Visits(*events).solve(bowl(), x0=[4.0, 0.0], tol=0))

    for events in [(2.0, 1.0), (2.0, raise_interrupt)]:
        thread = threading.Thread(target=work, args=events)
        thread.start()
        thread.join()
    assert [sol.status for sol in solutions] == [pm.Status.FINISHED, pm.Status.INTERRUPTED]
    assert [sol.objective for sol in solutions] == [1.0, 4.0]


# What is reported


def test_history_has_a_row_for_every_check() -> None:
    sol = Visits(3.0, 5.0, 2.0).solve(bowl(-1.0), x0=[4.0, 0.0], tol=0)
    history = sol.history
    assert list(history) == COLUMNS
    np.testing.assert_array_equal(history["stage"], [0, 1, 2, 3])
    np.testing.assert_array_equal(history["n_passes"], [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(history["n_gradients"], N * history["n_passes"])
    np.testing.assert_array_equal(history["objective"], [15.0, 8.0, 24.0, 3.0])  # of the point, not the best so far
    np.testing.assert_array_equal(history["lower_bound"], -1.0)
    np.testing.assert_allclose(history["relative_gap"], [16 / 15, 9 / 8, 9 / 8, 4 / 3])  # of the best so far
    assert (np.diff(history["seconds"]) >= 0.0).all() and history["seconds"][-1] <= sol.seconds
    np.testing.assert_array_equal(history["steps"], 0)
    np.testing.assert_array_equal(history["primal_step"], np.nan)


def test_history_tells_the_steps_of_each_stage() -> None:
    sol = Walks(0.125, 20).solve(bowl(), x0=[4.0, 0.0], tol=0, max_passes=5)
    np.testing.assert_array_equal(sol.history["steps"], [0, 20, 4])  # 60 gradients less 3 evaluations
    np.testing.assert_array_equal(sol.history["primal_step"], [np.nan, 0.125, 0.125])
    np.testing.assert_array_equal(sol.history["dual_step"], [np.nan, 0.0, 0.0])
    np.testing.assert_array_equal(sol.history["n_gradients"], [12, 44, 60])


def test_history_goes_to_pandas() -> None:
    sol = Visits(3.0, 2.0).solve(bowl(), x0=[4.0, 0.0], tol=0)
    frame = sol.history.to_pandas()
    assert frame.columns.tolist() == COLUMNS and len(frame) == 3
    np.testing.assert_array_equal(frame["objective"], sol.history["objective"])


@pytest.mark.parametrize(
    ("bottom", "points"),
    [
        (0.0, [1.0, 1e-1, 1e-2, 1e-3, 0.0]),  # relative to 1e-3 of the start from the third point on
        (3.0, [1.0, 1e-1, 0.0]),
        (-3.0, [1.0, 1e-1]),  # relative to |P|
        (-4.0, [0.0]),
    ],
)
def test_relative_gap_is_relative_to_the_size_of_the_objective(bottom: float, points: list[float]) -> None:
    """gap / max(|P(x)|, 1e-3 |P(x0)|) at the best x."""
    sol = Visits(*points).solve(bowl(bottom), x0=[2.0, 0.0], tol=0)
    P0 = 4.0 + bottom
    for point, row in zip([2.0, *points], sol.history.rows, strict=True):
        P = point**2 + bottom
        size = max(abs(P), 1e-3 * abs(P0))
        assert row["relative_gap"] == pytest.approx((P - bottom) / size if size else math.inf, rel=1e-12)
    assert sol.relative_gap == sol.history["relative_gap"][-1]


def test_relative_gap_of_auc_is_relative_to_the_mean_pair_loss(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    problem, v = pm.AUC(X, labels, constraint=pm.L2Ball(1.0)), np.zeros(D + 2)
    sol = Visits(0.0).solve(problem, x0=v, tol=0)
    p = np.mean(labels > 0.0)
    assert sol.objective == 0.0
    assert sol.relative_gap == pytest.approx(-sol.lower_bound / (p * (1.0 - p)), rel=1e-12)


def test_the_best_point_is_returned_with_its_response(rng: np.random.Generator) -> None:
    problem = dro(rng)
    sol = Visits(0.3, 9.0).solve(problem, x0=np.zeros(D), tol=0)
    best = min(np.zeros(D), np.array([0.3, 0.0, 0.0]), np.array([9.0, 0.0, 0.0]), key=problem.objective)
    np.testing.assert_array_equal(sol.x, best)
    np.testing.assert_array_equal(sol.y, problem.best_response(best))
    assert sol.objective == problem.objective(best) == sol.history["objective"].min()
    assert (sol.solver, sol.lower_bound) == ("Visits", problem.lower_bound())


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ((5.0, 6.0), "no stage improved on the start: try smaller steps or more passes"),
        ((5.0, 3.0), None),
        ((), None),
    ],
)
def test_message_says_when_nothing_was_gained(points: Any, expected: str | None) -> None:
    message = Visits(*points).solve(bowl(), x0=[4.0, 0.0], tol=0).message
    assert message == "the solver ran all the stages it was given" + ("" if expected is None else f"; {expected}")


def test_one_warning_says_what_is_proved_and_where_it_was_asked_for() -> None:
    """P = 4.009 with a bound of 0.009: the gap is 0.99776 of P, and no number in the text says less."""
    with pytest.warns(ConvergenceWarning) as record:
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        sol = Visits(2.0).solve(bowl(0.009), x0=[4.0, 0.0], tol=0.1)
    assert len(record) == 1
    assert (record[0].filename, record[0].lineno) == (__file__, line)
    text = str(record[0].message)
    assert sol.message in text and "the solver ran all the stages it was given" in sol.message
    assert text.startswith("Visits stopped without a proof of accuracy: ")
    assert "tol=0.1" in text and "The lower bound it has is 0.009, so the answer may be far better" in text
    assert sol.relative_gap == pytest.approx(4.0 / 4.009)
    stated = re.search(r"the relative gap is proved to be at most (\S+), tol=0\.1", sol.message)
    assert stated is not None and sol.relative_gap <= float(stated[1]) <= 1.02 * sol.relative_gap


@pytest.mark.parametrize("point", np.sqrt(np.linspace(0.01, 0.2, 7)).tolist())
def test_the_stated_gap_is_rounded_up(point: float) -> None:
    with pytest.warns(ConvergenceWarning):
        sol = Visits(point).solve(bowl(1.0), x0=[4.0, 0.0], tol=1e-9)
    stated = re.search(r"at most (\S+), tol", sol.message)
    assert stated is not None and sol.relative_gap <= float(stated[1]) <= 1.02 * sol.relative_gap


def test_without_a_lower_bound_nothing_is_said_to_be_proved() -> None:
    with pytest.warns(
        ConvergenceWarning,
        match="nothing is proved about the gap, .* nothing is known of the losses of FunctionProblem",
    ):
        sol = Visits(2.0).solve(bowl(lower_bound=-math.inf), x0=[4.0, 0.0])
    assert sol.relative_gap == sol.gap == math.inf


def test_without_tol_nothing_is_warned_of() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sol = Visits(5.0).solve(bowl(), x0=[4.0, 0.0], tol=0)
    assert not caught and "tol" not in sol.message
    assert Visits(0.0).solve(bowl(), x0=[4.0, 0.0], tol=0).status is pm.Status.FINISHED  # nor does 0 count as reached


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in map(logging.LogRecord.getMessage, caplog.records) if text.startswith("stage")]


LINE = re.compile(r"stage +(\d+)  passes +([\d.]+)  (?:objective (\S+) +relative gap (\S+)|\.\.\.) +([\d.]+) s")


def test_progress_is_aligned_on_standard_error(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line at each check, and now and then one within a stage; the logger gets the same."""
    caplog.set_level(logging.DEBUG, logger="pommel")
    monkeypatch.setattr(drive_module, "PROGRESS_SECONDS", 0.0)
    sol = Walks(0.1, 100).solve(bowl(-1.0), x0=[4.0, 0.0], tol=0, max_passes=40, verbose=1)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert logged(caplog) == lines
    assert {(record.name, record.levelno) for record in caplog.records} == {("pommel", logging.DEBUG)}
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found)
    assert len({len(line) for line in lines}) == 1  # numbers end in the same column
    checks = [match for match in found if match and match[3]]
    assert len(lines) > len(checks) == len(sol.history.rows)
    for match, row in zip(checks, sol.history.rows, strict=True):
        assert int(match[1]) == row["stage"]
        assert float(match[2]) == pytest.approx(row["n_passes"], abs=0.06)
        assert float(match[3]) == pytest.approx(row["objective"], rel=1e-8)
        assert float(match[4]) == pytest.approx(row["relative_gap"], rel=0.006)


def test_progress_tells_of_retries(capsys: pytest.CaptureFixture[str]) -> None:
    Walks(primal_step=60.0, length=2000).solve(bowl(), x0=[1.0, 2.0], tol=0, max_passes=1000, verbose=1)
    start, first = capsys.readouterr().err.splitlines()[:2]
    assert first.endswith(" s  after 2 tries with smaller steps") and start.endswith(" s")


def test_silence_is_the_default(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="pommel")
    sol = Visits(2.0).solve(bowl(), x0=[4.0, 0.0], tol=0)
    assert capsys.readouterr() == ("", "")
    assert len(logged(caplog)) == len(sol.history.rows)


# What is taken and refused


def test_x0_is_projected_and_left_as_it_is(rng: np.random.Generator) -> None:
    x0 = np.array([3.0, 4.0])
    x0.flags.writeable = False
    sol = Visits().solve(bowl(primal_set=pm.L2Ball(1.0)), x0=x0, tol=0)
    np.testing.assert_allclose(sol.x, [0.6, 0.8], rtol=1e-15)
    sol = Visits().solve(bowl(), x0=x0, tol=0)
    assert not np.shares_memory(sol.x, x0)
    np.testing.assert_array_equal(sol.x, Visits().solve(bowl(), x0=[3, 4], tol=0).x)
    np.testing.assert_array_equal(Visits().solve(bowl(), tol=0).x, [0.0, 0.0])


@pytest.mark.parametrize(
    ("x0", "message"),
    [
        ([1.0], "x0 must have shape (2,), got (1,)"),
        ([[1.0, 2.0]], "x0 must have shape (2,), got (1, 2)"),
        ([1.0, np.nan], "x0 has 1 entries that are NaN or infinite"),
        ([np.inf, -np.inf], "x0 has 2 entries that are NaN or infinite"),
        ([1e200, 0.0], "the objective at x0 is inf: nothing can start from there"),
    ],
)
def test_wrong_starts_are_refused(x0: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Visits(1.0).solve(bowl(), x0=x0)


@pytest.mark.parametrize("engine", ENGINES)
def test_same_seed_same_bits(engine: str, seed: int, rng: np.random.Generator) -> None:
    """Whatever it comes as."""
    problem = dro(rng)

    def solved(random_state: Any) -> list[Any]:
        return bits(pm.RSPDsc().solve(problem, tol=0, max_passes=20, random_state=random_state, engine=engine))

    once = solved(seed)
    assert once == solved(seed) == solved(np.int64(seed)) == solved(np.random.default_rng(seed))
    assert solved(np.random.RandomState(seed)) == solved(np.random.RandomState(seed))
    generator, legacy = np.random.default_rng(seed), np.random.RandomState(seed)
    different = [seed + 1, None, None, generator, generator, legacy, legacy]
    assert len({repr(solved(state)) for state in different}) == len(different)  # generators move on
    assert bits(pm.RSPDsc().solve(problem, tol=0, max_passes=20, engine=engine)) == solved(0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("solver", RESTARTED, ids=lambda solver: solver.name)
def test_the_clock_does_not_change_a_bit(
    solver: Solver, engine: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, results = dro(rng), []
    for chunk_seconds in (0.0, math.inf):
        monkeypatch.setattr(engine_module, "CHUNK_SECONDS", chunk_seconds)
        results.append(bits(solver.solve(problem, tol=0, max_passes=100, engine=engine)))
    assert results[0] == results[1]


def test_a_time_limit_that_is_not_reached_changes_nothing(rng: np.random.Generator) -> None:
    problem = dro(rng)
    limited, free = (
        pm.RSPDsc().solve(problem, tol=0, max_passes=20, max_seconds=limit, engine="reference") for limit in (1e6, None)
    )
    assert bits(limited) == bits(free)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("tol", -1e-9, "tol must be >= 0, got -1e-09"),
        ("tol", np.nan, "tol must be >= 0, got nan"),
        ("max_passes", 0.5, "max_passes must be >= 1, which evaluates the start, or None for no limit, got 0.5"),
        ("max_passes", np.nan, "max_passes must be >= 1"),
        ("max_seconds", 0.0, "max_seconds must be > 0, or None for no limit, got 0.0"),
        ("max_seconds", np.nan, "max_seconds must be > 0"),
        ("engine", "warp", "engine must be one of auto, "),
    ],
)
def test_wrong_options_are_named(option: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Visits(1.0).solve(bowl(), **{option: value})


def test_engine_is_chosen_by_name() -> None:
    assert Visits().solve(bowl(), tol=0, engine="reference").engine == "reference"
    assert Visits().solve(bowl(), tol=0).engine == "reference"  # there are no kernels for a user's own functions
    with pytest.raises(ValueError, match=r'^engine="compiled" cannot run this problem: .*FunctionProblem'):
        Visits().solve(bowl(), tol=0, engine="compiled")


def test_what_is_no_problem_is_told_what_it_lacks() -> None:
    with pytest.raises(TypeError, match="ndarray is not a pommel problem") as told:
        pm.RSPDsc().solve(np.ones((2, 2)))
    for name in PROBLEM_MEMBERS:
        assert name in str(told.value)
    members = {name: getattr(bowl(), name) for name in PROBLEM_MEMBERS}
    almost = SimpleNamespace(**{name: member for name, member in members.items() if name not in ("respond", "d")})
    with pytest.raises(TypeError, match=r"Missing: d, respond\.$"):
        pm.RSPDsc().solve(almost)


def test_a_solver_refuses_before_any_work() -> None:
    class Picky(Visits):
        def check(self, problem: Any) -> None:
            raise ValueError("not this one")

    with pytest.raises(ValueError, match="not this one"):
        Picky(1.0).solve(bowl(losses=lambda x: pytest.fail("evaluated")))
