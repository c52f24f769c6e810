"""One case after another: contestants take turns in one process, and what they reached is counted from one bracket."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pommel as pm
from benchmarks.certified import conic, linear, ours, peers
from benchmarks.certified.objective import Trace
from benchmarks.certified.ours import AUTO, EXACT, Curve
from benchmarks.certified.problems import Case, data
from benchmarks.certified.truth import WIDTH, Bracket
from benchmarks.engine.report import say

GAPS = (1e-2, 1e-3, 1e-4, 1e-6)

SLOW = 3.0
"""Seconds; a contestant that takes longer runs in the first round only."""

AHEAD = 20.0
"""Peers get this many times what auto took, within the budget: who is slower than that is slower."""

WARM_ROWS = 400


@dataclass(frozen=True)
class Effort:
    """How long things may take."""

    rounds: int
    budget: float  # seconds for each run
    truth: float  # seconds for the run that makes the bracket
    slow_peers: bool  # CVXPY and dro


@dataclass
class Race:
    """What happened in a case."""

    case: Any
    bracket: Bracket
    curves: dict[str, list[Curve]] = field(default_factory=dict)  # of all rounds
    first_calls: dict[str, float] = field(default_factory=dict)  # seconds above those of a second call
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, curve: Curve) -> None:
        self.curves.setdefault(name, []).append(curve)
        self.bracket.update(curve)

    def times(self, name: str, gap: float, *, certified: bool = False) -> np.ndarray:
        """Seconds to a gap in each round, inf where it was not reached."""
        if certified:
            return np.array([curve.time_to_certified(gap) for curve in self.curves[name]])
        return np.array([curve.time_to(gap, self.bracket.lower, self.bracket.size) for curve in self.curves[name]])

    def time(self, name: str, gap: float, *, certified: bool = False) -> float:
        """The least of all rounds: every contestant does the same work in each, and others can only add to its time."""
        return float(self.times(name, gap, certified=certified).min())

    def best(self, names: list[str], gap: float, *, certified: bool = False) -> tuple[str, float]:
        """The fastest of some, and its time."""
        reached = {name: self.time(name, gap, certified=certified) for name in names}
        fastest = min(reached, key=lambda name: reached[name])
        return fastest, reached[fastest]

    def as_json(self, name: str) -> dict[str, Any]:
        case = self.case
        rows = {
            contestant: {
                "certified": {f"{gap:g}": self.times(contestant, gap, certified=True).tolist() for gap in GAPS},
                "true": {f"{gap:g}": self.times(contestant, gap).tolist() for gap in GAPS},
                "message": curves[0].message,
                "share_of_core": [curve.share for curve in curves],
                "curve": curves[0].points(),
            }
            for contestant, curves in self.curves.items()
        }
        bracket = {"lower": self.bracket.lower, "upper": self.bracket.upper, "width": self.bracket.width}
        return {
            **{"part": name, "case": case.name, "set": case.set, "bracket": bracket, "contestants": rows},
            **{"first_calls": self.first_calls, "notes": self.notes},
        }


def first_calls(case: Case, contestants: Mapping[str, ours.Solve]) -> dict[str, float]:
    """What the first call of each takes longer than the second: to compile, or to load what is compiled."""
    small, taken = case.problem(slice(None, None, max(1, case.n // WARM_ROWS))), {}
    for name, run in contestants.items():
        seconds = []
        for _ in range(2):
            started = time.perf_counter()
            ours.solve(run, lambda: small, 1e-3, 1.0)
            seconds.append(time.perf_counter() - started)
        taken[name] = max(0.0, seconds[0] - seconds[1])
    return taken


def take_turns(race: Race, contestants: Mapping[str, Callable[[], Curve]], rounds: int) -> None:
    """A B C A B C ...: the speed of a shared machine drifts."""
    waiting = dict(contestants)
    for _ in range(rounds):
        for name, run in list(waiting.items()):
            curve = run()
            race.add(name, curve)
            if curve.seconds.size and curve.seconds[-1] > SLOW:
                del waiting[name]


def traced(run: peers.Run, budget: float, goal: float) -> Curve:
    share, trace = ours.Share(), Trace(budget, goal)
    run(trace)
    return Curve.of(trace, share())


def run_case(case: Case, effort: Effort, kept: list[str] | None = None) -> Race:
    """All contestants on a case; of the peers only those kept, unless it is the main case."""
    race = Race(case, Bracket())
    solvers: dict[str, ours.Solve] = {AUTO: pm.solve, **ours.singles(case.problem())}
    race.first_calls = first_calls(case, solvers)
    long = ours.solve(pm.solve, case.problem, WIDTH, effort.truth)
    race.bracket.update(long)
    goal = race.bracket.goal(GAPS[-1])
    reached = long.time_to_certified(GAPS[-1]) / long.share  # budgets are by the clock on the wall
    budget = float(np.clip(AHEAD * reached, 2.0, effort.budget))
    say(f"{case.name}: P* >= {race.bracket.lower:.10g}, width {race.bracket.width:.0e}, 1e-6 after {reached:.2f} s")

    def ours_to(run: ours.Solve, seconds: float) -> Callable[[], Curve]:
        return lambda: ours.solve(run, case.problem, GAPS[-1], seconds, counts_problem=case.lam1 is None)

    def theirs(run: peers.Run) -> Callable[[], Curve]:
        return lambda: traced(run, budget if not case.is_main else effort.budget, goal)

    contestants = {AUTO: ours_to(pm.solve, effort.budget)}
    single = float(np.clip(4.0 * reached, 2.5, effort.budget))
    contestants |= {name: ours_to(run, single) for name, run in solvers.items() if name != AUTO}
    objective = case.objective()
    X, labels = data(case.set)
    if case.lam1 is None:
        contestants |= {name: theirs(run) for name, run in linear.risk_minimisers(objective, X, labels).items()}
    else:
        runs = peers.quasi_newton(objective)
        contestants |= {name: theirs(run) for name, run in runs.items() if kept is None or name in kept}
    take_turns(race, contestants, effort.rounds)
    if case.is_main and effort.slow_peers:
        assert long.x is not None
        slow_peers(race, case, effort.budget, long.x)
    return race


def slow_peers(race: Race, case: Case, budget: float, optimum: np.ndarray) -> None:
    """One run each of what takes seconds to minutes."""
    X, labels = data(case.set)
    objective, goal = case.objective(), race.bracket.goal(GAPS[-1])
    makers = {"Clarabel": conic.clarabel, "OSQP": conic.osqp}
    if case.loss == "logistic":
        del makers["OSQP"]
        race.notes.append("OSQP takes quadratic programs: no logistic loss")
    for name, make in makers.items():
        if why := conic.skip(name.lower(), X):
            race.notes.append(f"{name}: {why}")
            continue
        run, compiling = make(objective)
        race.add(name, traced(run, budget, goal))
        above = (race.curves[name][0].objectives.min(initial=np.inf) - race.bracket.lower) / race.bracket.size
        race.notes.append(
            f"{name}: best point {above:.0e} above the lower bound; CVXPY compiled for {compiling:.1f} s, not counted"
        )
    if why := conic.dro_missing() or conic.skip("dro", X):
        race.notes.append(f"dro: {why}")
        return
    try:
        race.add("dro", traced(conic.dro(objective, X, labels, optimum), budget, goal))
    except Exception as error:  # its own, when the solver below it gives up
        race.notes.append(f"dro: {error}")
    else:
        race.notes.append("dro: one point, of a problem without the regularizer, in a chi-square ball that matches")


def peers_of(race: Race) -> list[str]:
    return [name for name in race.curves if name not in (AUTO, EXACT, *ours.SINGLES)]


def family(name: str) -> str:
    """Variants of a peer differ in parameters: for each accuracy the best counts."""
    return {"L-BFGS-B": "L-BFGS-B", "smoothed": "L-BFGS-B, smoothed"}.get(name.split()[0], name)


def families(names: list[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(family(name), []).append(name)
    return groups
