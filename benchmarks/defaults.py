"""How good the default parameters are: `make bench-defaults`, about half an hour; with --quick under three minutes.

DRO: RSPDsc() as it comes, pilot and all, beside the best pair of steps on the paper's grid, for strong, usual and weak
adversaries. AUC: ARSPD() as it comes in a ball that binds. Scale: the same problem in other units is the same run.
Gaps are counted from a proved lower bound of P*, or from P* itself, which no stochastic solver had a hand in. Accuracy
does not depend on what else a machine does. Tables are printed; results/defaults.json beside this file holds all.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import pommel as pm
from benchmarks.engine.report import say, table, verdict
from benchmarks.sets import load
from pommel.experiments.optima import auc_optimum, dro_bounds
from pommel.problem import Loss, Problem
from pommel.solution import Solution
from pommel.solvers._restarted import PAPER_STEPS
from pommel.solvers._solver import Solver

RESULTS = Path(__file__).parent / "results" / "defaults.json"
SEEDS = range(3)

DRO_PASSES, AUC_PASSES = 60, 10

DRO_SETS = ("a9a", "w8a", "news20", "covtype")
STRENGTHS = (1.0, 0.1, 10.0)
"""n lam1."""

RATIO_BARS = {1.0: 2.0, 0.1: 3.0, 10.0: 3.0}
GAP_BARS = {"a9a": 1e-3, "w8a": 1e-2, "news20": 3e-2, "covtype": 1e-3}
"""For n lam1 = 1."""

LOGISTIC_SETS = ("a9a", "w8a")

RUNGS = ((5, 24), (20, 8), (DRO_PASSES, 3))
"""All pairs of steps run 5 passes, the best 24 of them 20, the best 8 of those 60, and the best 3 with all seeds."""

QUICK_RUNGS = ((5, 6), (DRO_PASSES, 2))

BRACKET_WIDTH, BRACKET_SECONDS = 1e-6, 240.0
QUICK_WIDTH, QUICK_SECONDS = 1e-4, 8.0

AUC_RADII = {"a9a": 0.5, "covtype": 1.0, "url sample": 0.3}
AUC_BAR = 5e-3
SCALE_BAR = 1e-6

SCALES = (1024.0, 1.0 / 1024.0)

DRO_NOTES = (
    "gaps: (P - P*) / P* after 60 passes, evaluations and pilot included; median over 3 seeds (least-most). P* is the "
    "lower end of a proved bracket, found by L-BFGS-B; width: of the bracket, relative.",
    "best pair: of the steps for x and n y on the paper's grid, both halved from stage to stage, found by successive "
    "halving: all pairs 5 passes, the best 24 of them 20, the best 8 of those 60, and the best 3 with all seeds; with "
    "--quick a coarser grid and fewer rounds.",
    "lam2 = 1/n throughout; news20: classes 1-10 against 11-20, rows of unit length; covtype: scaled.",
)
AUC_NOTES = ("gaps: (P - P*) / |P(0) - P*| within 10 passes; median over 3 seeds (least-most).",)
SCALE_NOTES = ("largest relative difference of an objective in the history of a run, seed 0, from that of scale 1.",)


def solve_all(problem: Problem, runs: Iterable[tuple[Solver, int, float]]) -> list[Solution]:
    """Solver, seed and passes of each run, as many at a time as there are cores: bits do not depend on that."""

    def solve(run: tuple[Solver, int, float]) -> Solution:
        solver, seed, passes = run
        return solver.solve(problem, tol=0, max_passes=passes, random_state=seed)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(solve, runs))


def objectives(problem: Problem, runs: Iterable[tuple[Solver, int, float]]) -> np.ndarray:
    return np.array([solution.objective for solution in solve_all(problem, runs)])


def best_pair(
    problem: pm.DRO, grid: Sequence[float], rungs: Sequence[tuple[int, int]]
) -> tuple[tuple[float, float], np.ndarray]:
    """The steps for x and n y with the least median objective, and their objectives."""
    pairs = list(itertools.product(grid, grid))

    def solver(pair: tuple[float, float]) -> pm.RSPDsc:
        return pm.RSPDsc(primal_step=pair[0], dual_step=pair[1] / problem.n**2)

    for passes, kept in rungs:
        reached = objectives(problem, ((solver(pair), SEEDS[0], passes) for pair in pairs))
        order = np.argsort(reached)[:kept]
        pairs, reached = [pairs[k] for k in order], reached[order]
    others = objectives(problem, ((solver(pair), seed, passes) for pair in pairs for seed in SEEDS[1:]))
    reached = np.column_stack([reached, others.reshape(len(pairs), -1)])
    best = int(np.median(reached, axis=1).argmin())
    return pairs[best], reached[best]


def measure_dro(name: str, strength: float, loss: Loss, quick: bool) -> dict[str, Any]:
    X, labels = cached(name)
    n = labels.size
    problem = pm.DRO(X, labels, loss=loss, divergence=pm.ChiSquare(strength / n), regularizer=pm.L2(1.0 / n))
    width, seconds = (QUICK_WIDTH, QUICK_SECONDS) if quick else (BRACKET_WIDTH, BRACKET_SECONDS)
    lower, upper = dro_bounds(problem, width=width, max_seconds=seconds)
    runs = solve_all(problem, ((pm.RSPDsc(), seed, DRO_PASSES) for seed in SEEDS))
    reached = np.array([run.objective for run in runs])
    pair, best = best_pair(problem, *((PAPER_STEPS[::2], QUICK_RUNGS) if quick else (PAPER_STEPS, RUNGS)))
    upper = min(upper, reached.min(), best.min())
    gaps, best_gaps = (reached - lower) / lower, (best - lower) / lower
    last = runs[0].history.rows[-1]
    row = {
        "set": name,
        "loss": type(loss).__name__.lower(),
        "n_lam1": strength,
        "lower": lower,
        "width": (upper - lower) / lower,
        "gaps": gaps.tolist(),
        "best_pair": pair,
        "best_pair_gaps": best_gaps.tolist(),
        "ratio": float(np.median(gaps) / np.median(best_gaps)),
        "ratio_bar": RATIO_BARS[strength],
        "gap_bar": GAP_BARS[name] if strength == 1.0 and isinstance(loss, pm.Hinge) else None,
        "last_steps": [last["primal_step"], last["dual_step"] * n**2],
        "history": [(check["n_passes"], check["objective"]) for check in runs[0].history.rows],
    }
    say(
        f"{name}, {row['loss']}, n lam1 = {strength:g}: P* >= {lower:.9g}, width {row['width']:.0e}, "
        f"gap {np.median(gaps):.2e}, best pair {np.median(best_gaps):.2e}, ratio {row['ratio']:.2f}"
    )
    return row


def dro(quick: bool, sets: Sequence[str], store: Callable[[Any], None]) -> list[str]:
    rows = []
    for name in sets:
        plain: list[tuple[float, Loss]] = [(strength, pm.Hinge()) for strength in STRENGTHS]
        for strength, loss in plain + [(1.0, pm.Logistic())] * (name in LOGISTIC_SETS):
            rows.append(measure_dro(name, strength, loss, quick))
            store(rows)
        cached.cache_clear()
    printed, missed = [], []
    for row in rows:
        gap, label = float(np.median(row["gaps"])), f"{row['set']}, {row['loss']}, n lam1 = {row['n_lam1']:g}"
        primal, dual = (f"{step:.0e}".replace("e-0", "e-").replace("e+0", "e") for step in row["best_pair"])
        printed.append(
            [
                label,
                f"{row['lower']:.8f}",
                f"{row['width']:.0e}",
                spread(row["gaps"]),
                "" if row["gap_bar"] is None else verdict(gap, row["gap_bar"]),
                spread(row["best_pair_gaps"]),
                f"{primal}, {dual}",
                f"{row['ratio']:.2f}",
                verdict(row["ratio"], row["ratio_bar"]),
            ]
        )
        if row["ratio"] > row["ratio_bar"] or (row["gap_bar"] is not None and gap > row["gap_bar"]):
            missed.append(f"DRO, {label}")
    columns = ("problem", "P*", "width", "gap", "bar", "gap, best pair", "steps", "ratio", "bar")
    table("RSPDsc() with all defaults, 60 passes", columns, printed, DRO_NOTES)
    return missed


def in_row_space(X: Any) -> np.ndarray:
    """Z of at most n columns with Z Z' = X X', for X of more columns than rows: the same problems, P* included.

    The best w is a combination of rows, and all there is to such w, margins and length, is in these products.
    """
    values, vectors = np.linalg.eigh((X @ X.T).toarray())
    kept = values > values[-1] * values.size * np.finfo(np.float64).eps
    return vectors[:, kept] * np.sqrt(values[kept])


def auc(quick: bool, sets: Sequence[str], store: Callable[[Any], None]) -> list[str]:
    rows, printed, missed = [], [], []
    for name in sets:
        X, labels = cached(name)
        ball = pm.L2Ball(AUC_RADII[name])
        problem = small = pm.AUC(X, labels, constraint=ball)
        if X.shape[1] > X.shape[0]:
            say(f"{name}: to the space of its {X.shape[0]} rows")
            small = pm.AUC(in_row_space(X), labels, constraint=ball)
        optimum, v = auc_optimum(small)
        active = small.is_constraint_active(v)
        at_zero = problem.objective(np.zeros(problem.d))
        runs = solve_all(problem, ((pm.ARSPD(), seed, AUC_PASSES) for seed in SEEDS))
        gaps = [(run.objective - optimum) / abs(at_zero - optimum) for run in runs]
        gap = float(np.median(gaps))
        rows.append(
            {
                "set": name,
                "radius": ball.radius,
                "active": active,
                "optimum": optimum,
                "at_zero": at_zero,
                "gaps": gaps,
                "bar": AUC_BAR,
                "history": [(check["n_passes"], check["objective"]) for check in runs[0].history.rows],
            }
        )
        store(rows)
        say(f"{name}, |w| <= {ball.radius:g}: P* = {optimum:.9g}, gap {gap:.2e}")
        binds = "binds" if active else "does not bind"
        printed.append(
            [name, f"{ball.radius:g}, {binds}", f"{optimum:.8f}", f"{at_zero:g}", spread(gaps), verdict(gap, AUC_BAR)]
        )
        if gap > AUC_BAR or not active:
            missed.append(f"AUC, {name}")
    columns = ("set", "|w| at most", "P*", "P(0)", "gap", "bar")
    table("ARSPD() with all defaults, AUC in a ball that binds, 10 passes", columns, printed, AUC_NOTES)
    return missed


def in_units(name: str, factor: float) -> list[tuple[Solver, Problem, int]]:
    """What runs on a set with all features times a factor and the regularisation that leaves the problem the same."""
    X, labels = cached(name)
    lam = 1.0 / labels.size
    robust = pm.DRO(X * factor, labels, divergence=pm.ChiSquare(lam), regularizer=pm.L2(lam * factor**2))
    ranked = pm.AUC(X * factor, labels, constraint=pm.L2Ball(AUC_RADII[name] / factor))
    return [(pm.RSPDsc(), robust, DRO_PASSES), (pm.ARSPD(), ranked, AUC_PASSES)]


def scale(quick: bool, sets: Sequence[str], store: Callable[[Any], None]) -> list[str]:
    rows, printed, missed = [], [], []
    for name in sets:
        units = [in_units(name, factor) for factor in (1.0, *SCALES)]
        for versions in zip(*units, strict=True):
            solver = versions[0][0]
            first, *others = (
                solver.solve(problem, tol=0, max_passes=passes, random_state=SEEDS[0]).history["objective"]
                for solver, problem, passes in versions
            )
            off = [
                float(np.abs(other - first).max() / np.abs(first).max()) if other.size == first.size else np.inf
                for other in others
            ]
            rows.append({"set": name, "solver": solver.name, "scales": SCALES, "differences": off})
            store(rows)
            say(f"{solver.name}, {name} in other units: {max(off):.1e}")
            printed.append([f"{solver.name}, {name}", *(f"{value:.1e}" for value in off), verdict(max(off), SCALE_BAR)])
            if max(off) > SCALE_BAR:
                missed.append(f"scale, {solver.name}, {name}")
    columns = ("run", "features times 1024", "times 1/1024", "bar")
    table("The same problem in other units", columns, printed, SCALE_NOTES)
    return missed


@cache
def cached(name: str) -> tuple[sp.csr_array, np.ndarray]:
    say(f"reading {name}")
    return load(name)


def spread(gaps: Sequence[float]) -> str:
    """Median (least-most)."""
    return f"{np.median(gaps):.2e} ({min(gaps):.1e}-{max(gaps):.1e})"


def write(part: str, rows: Any, *, quick: bool) -> None:
    """Put a part's rows, as many as there are, into the results; what other parts wrote stays."""
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    results[part] = {"quick": quick, "date": time.strftime("%Y-%m-%d"), "rows": rows}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


PARTS = {
    "auc": (auc, tuple(AUC_RADII), ("a9a",)),
    "scale": (scale, ("a9a", "covtype"), ("a9a",)),
    "dro": (dro, DRO_SETS, ("a9a", "w8a")),
}
"""Each with its sets, and those with --quick."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-defaults", description="How good the default parameters are.")
    parser.add_argument("--quick", action="store_true", help="smaller and fewer, in under three minutes")
    parser.add_argument("--only", default=",".join(PARTS), help="some of %(default)s (the default)")
    parser.add_argument("--sets", help="some sets, with commas; all of a part by default")
    options = parser.parse_args()
    parts = options.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--only takes some of {','.join(PARTS)}, got {','.join(sorted(unknown))}")
    missed = []
    with threadpool_limits(1):  # or BLAS threads get into the way of each other
        for part in parts:
            measure, sets, few = PARTS[part]
            kept = [
                name for name in (few if options.quick else sets) if not options.sets or name in options.sets.split(",")
            ]
            missed += measure(options.quick, kept, partial(write, part, quick=options.quick))
    say(f"{'Missed bars: ' + '; '.join(missed) if missed else 'All bars are met'}. All numbers are in {RESULTS.name}.")


if __name__ == "__main__":
    main()
