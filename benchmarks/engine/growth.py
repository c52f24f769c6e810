"""Growth: time per gradient against n and d, at 50 non-zeros in every row of a synthetic matrix.

Where the structures of the compiled engine outgrow the caches a step waits for memory; nothing else may grow. A step of
the reference engine is O(n + d), and a few of them tell its price.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import pommel as pm
from benchmarks.engine.price import read
from benchmarks.engine.report import interleaved, say, summary, table, verdict, write
from pommel.engines import ENGINES
from pommel.engines.engine import GradientStep
from pommel.kernels.rows import row_state
from pommel.problem import Problem

BAR, REFERENCE_GROWS = 3.0, 100.0
NONZEROS = 50
SHAPES = [(10**4, 10**3), (10**5, 10**3), (10**4, 10**5), (10**5, 10**5), (10**6, 10**4), (10**6, 10**6)]
STEPS = {"compiled": 2**14, "reference": 4}


def synthetic(n: int, d: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of about unit length with non-zeros in random columns, and labels of a random hyperplane, some flipped."""
    rng = np.random.default_rng(0)
    indices = rng.integers(d, size=n * NONZEROS, dtype=np.int32)
    data = rng.standard_normal(n * NONZEROS) / np.sqrt(NONZEROS)
    indptr = np.arange(0, n * NONZEROS + 1, NONZEROS, dtype=np.int32)
    X = sp.csr_array((data, indices, indptr), shape=(n, d))
    margins = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    return X, np.where(margins > 0.0, 1.0, -1.0)


def contestants(n: int, d: int) -> dict[tuple[str, str], Callable[[], float]]:
    """Seconds per gradient, for each problem and engine."""
    X, labels = synthetic(n, d)
    problems = {
        "DRO": pm.DRO(X, labels, divergence=pm.ChiSquare(1.0 / n), regularizer=pm.L2(1.0 / n)),
        "AUC": pm.AUC(X, labels, constraint=pm.L2Ball(10.0)),
    }
    walks = {(problem, engine): walk(problems[problem], engine) for problem in problems for engine in ENGINES}
    return {("rows only", "compiled"): rows_only(problems["DRO"])} | walks


def walk(problem: Problem, name: str) -> Callable[[], float]:
    """Steps that go on where those of the last round ended."""
    engine = ENGINES[name](problem)
    start = engine.restart(np.zeros(problem.d))
    natural = engine.natural_steps(start, "uniform")
    sets = problem.primal_set, problem.dual_set
    rule = GradientStep(0.4 * natural.primal, natural.dual, *sets, center=start.center)
    at = engine.begin(rule, start.x, start.y)
    seconds = timed(lambda draws: engine.advance(rule, at, draws), STEPS[name])
    for _ in range(20):  # compiles, and gets away from the start
        seconds()
    return seconds


def rows_only(problem: Any) -> Callable[[], float]:
    rows, w = row_state(problem.rows), np.ones((problem.d, 2))
    seconds = timed(lambda draws: read(rows, problem.labels, w, draws), STEPS["compiled"])
    seconds()  # compiles
    return seconds


def timed(run: Callable[[np.ndarray], Any], steps: int) -> Callable[[], float]:
    rng = np.random.default_rng(0)

    def seconds() -> float:
        run(rng.random(steps))  # the caches are full of what ran before
        draws = rng.random(steps)
        started = time.perf_counter()
        run(draws)
        return (time.perf_counter() - started) / steps

    return seconds


def main(quick: bool) -> None:
    everybody = {}
    for n, d in (SHAPES[0], SHAPES[-1]) if quick else SHAPES:
        say(f"growth: n = {n:,}, d = {d:,}")
        everybody |= {(n, d, *key): run for key, run in contestants(n, d).items()}
    ns = {}
    for name in ENGINES:  # each by itself: the reference engine's vectors would fill the caches
        say(f"growth: {name} engine, in turn over all shapes")
        ns |= interleaved({key: run for key, run in everybody.items() if key[-1] == name}, rounds=9 if quick else 25)
    ns = {key: summary(1e9 * ns[key]) for key in everybody}
    names = ("n", "d", "problem", "engine")
    rows = [{"data": "synthetic", **dict(zip(names, key, strict=True)), "ns": value} for key, value in ns.items()]
    write("growth", rows, quick=quick)
    printed = []
    for problem, name in dict.fromkeys(key[2:] for key in ns):
        values = [value["median"] for key, value in ns.items() if key[2:] == (problem, name)]
        times = max(values) / min(values)
        bar = verdict(times, BAR) if name == "compiled" else f"about {REFERENCE_GROWS:g}"
        bar = "" if problem == "rows only" else bar
        printed.append([f"{problem}, {name}", *(f"{value:,.0f}" for value in values), f"{times:.2f}", bar])
    shapes = [f"{n:.0e} x {d:.0e}".replace("e+0", "e") for n, d in dict.fromkeys(key[:2] for key in ns)]
    title = f"Growth: ns per gradient, synthetic n x d with {NONZEROS} non-zeros a row"
    notes = (
        "Medians of rounds; evaluations excluded. Growth: most over least.",
        "rows only: reads a row at a draw and takes its product with a vector, one row after the other.",
    )
    table(title, ("engine", *shapes, "growth", "bar"), printed, notes)
