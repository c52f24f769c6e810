"""The parts beside the race on robust problems: AUC by exact methods, and a path of robustness values."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import pommel as pm
from benchmarks.certified import linear, ours
from benchmarks.certified.problems import Case, data
from benchmarks.certified.race import Effort, Race, peers_of, take_turns, traced
from benchmarks.certified.truth import Bracket
from benchmarks.engine.report import say

AUC_GAP, AUC_LAM2 = 1e-8, 1e-4

PATH = np.geomspace(0.1, 10.0, 20)
"""Robustness, 1 / (n lam1)."""

PATH_TOL = 1e-4


@dataclass(frozen=True)
class Ranking:
    """AUC on a set."""

    set: str
    loss: str = "squares of pairs"

    @property
    def name(self) -> str:
        return f"{self.set}, AUC"


def run_auc(name: str, effort: Effort) -> Race:
    X, labels = data(name)

    def problem() -> pm.AUC:
        return pm.AUC(X, labels, regularizer=pm.L2(AUC_LAM2))

    first = problem()
    race = Race(Ranking(name), Bracket(offset=first.q))
    race.bracket.update(ours.solve(pm.ExactAUC().solve, lambda: first, 1e-12, effort.truth))
    say(f"{name}, AUC: P* >= {race.bracket.lower:.12g}, width {race.bracket.width:.0e}")
    goal = race.bracket.goal(AUC_GAP)
    contestants: dict[str, Any] = {
        ours.EXACT: lambda: ours.solve(pm.ExactAUC().solve, problem, AUC_GAP, effort.budget, counts_problem=True),
        ours.AUTO: lambda: ours.solve(pm.solve, problem, AUC_GAP, effort.budget, counts_problem=True),
    }
    for peer, run in linear.rankers(first, X, labels, AUC_LAM2).items():
        contestants[peer] = lambda run=run: traced(run, effort.budget, goal)
    take_turns(race, contestants, effort.rounds)
    seconds, rank = linear.logistic_reference(first, X, labels)
    race.notes.append(
        f'LogisticRegression(class_weight="balanced"), another objective, took {seconds:.3f} s; its direction has a '
        f"gap of {(rank - race.bracket.lower) / race.bracket.size:.1e}"
    )
    return race


def ridge_peers(race: Race) -> list[str]:
    return [name for name in peers_of(race) if name.startswith("Ridge")]


def run_path(case: Case, rounds: int) -> dict[str, Any]:
    """Seconds of a path and of one solve in its middle, to the same certified gap, in turns."""
    whole, one, solutions = [], [], []
    for _ in range(rounds):
        problem, share, started = case.problem(), ours.Share(), time.perf_counter()
        solutions = list(pm.path(problem, robustness=PATH.tolist(), tol=PATH_TOL))
        whole.append((time.perf_counter() - started) * share())
        problem, share, started = case.problem(), ours.Share(), time.perf_counter()
        pm.solve(problem, tol=PATH_TOL, max_passes=None)
        one.append((time.perf_counter() - started) * share())
    ratio = min(whole) / min(one)
    proved = sum(bool(solution.relative_gap <= PATH_TOL) for solution in solutions)
    say(f"{case.name}: path {min(whole):.2f} s, one solve {min(one):.2f} s")
    return {"case": case.name, "path": whole, "one": one, "ratio": ratio, "certified": proved, "points": len(solutions)}
