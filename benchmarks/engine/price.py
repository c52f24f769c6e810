"""The price of a step: time per gradient against averaged SGD of scikit-learn, and against just reading the row.

A solve is timed without its evaluations, the passes of `Engine.restart` and `Engine.natural_steps`; drawing rows,
averaging, projections, and setting up and writing out the lazy structures at each stage are all in. Of scikit-learn the
time of a long fit less that of a short one is taken, which leaves out checks and conversions of the input.
"""

from __future__ import annotations

import lzma
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import normalize

import pommel as pm
from benchmarks.engine.report import interleaved, say, shown, summary, table, verdict, write
from pommel._jit import kernel
from pommel.engines import engine
from pommel.engines.compiled import Compiled
from pommel.engines.engine import Exhausted
from pommel.kernels.rows import row_state
from pommel.problem import Problem
from pommel.solvers._solver import Solver

BAR = 1.2
PASSES, EPOCHS = 20, 6

PIECE = 2**14
"""A kernel is called for at most this many steps, about a millisecond: so short a time is often left undisturbed."""

SETS = {
    "a9a": ("a9a", 123),
    "w8a": ("w8a", 300),
    "news20": ("news20", 62_061),
    "covtype": ("covtype.libsvm.binary.scale", 54),
}

RIVALS = ("hinge", "squared", "floor")

METHODS = {
    "DRO": "RSPD-sc, DRO",
    "AUC": "ARSPD, AUC",
    "hinge": "SGD, hinge",
    "squared": "SGD, squared",
    "floor": "floor",
}

NOTES = (
    "ns: per gradient, for scikit-learn per sample and epoch; median over rounds taken in turn in one process. Ratios: "
    "median over rounds (least-most).",
    "undisturbed: from the least time that each piece of the work, 2^14 steps or a fit, took in any round. That helps "
    "where others use the same cores now and then; on a busy machine trust neither.",
    "RSPD-sc: hinge, chi-square 1/n, L2 1/n. ARSPD: |w| <= 10. SGD: average=True, alpha=1/n, no intercept.",
    "squared: SGD with the squared loss, whose gradients are never zero, like those of AUC; where that of the hinge is "
    "zero there is nothing to add to w.",
    "floor: reads row and label at a draw and takes the row's product with a vector, nothing else.",
)


def load(name: str) -> tuple[sp.csr_array, np.ndarray]:
    """A set with labels -1 and 1; news20 is made binary, classes 1-10 against 11-20, and its rows have unit length."""
    if "POMMEL_DATA" not in os.environ:
        sys.exit("Set POMMEL_DATA to the folder that has the LIBSVM files the price is measured on, compressed by xz.")
    file, features = SETS[name]
    with lzma.open(Path(os.environ["POMMEL_DATA"]) / f"{file}.xz") as text:
        X, labels = load_svmlight_file(text, n_features=features)
    if name == "news20":
        X, labels = normalize(X), labels <= 10
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # what scikit-learn's SGD takes
    return X, np.where(labels == labels.max(), 1.0, -1.0)


class Timed(Compiled):
    """Knows what its runs took, in pieces and without the evaluations they end with."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pieces: list[float] = []
        self.steps, self.evaluations = 0, 0.0

    def run(self, *args: Any, **options: Any) -> Any:
        started, others = time.perf_counter(), self.evaluations + sum(self.pieces)
        averages = super().run(*args, **options)
        others = self.evaluations + sum(self.pieces) - others
        self.pieces.append(time.perf_counter() - started - others)
        self.steps += averages.steps
        return averages

    def advance(self, rule: Any, walk: Any, draws: Any) -> None:
        for first in range(0, draws.size, PIECE):
            started = time.perf_counter()
            super().advance(rule, walk, draws[first : first + PIECE])
            self.pieces.append(time.perf_counter() - started)

    def restart(self, x: Any) -> Any:
        started = time.perf_counter()
        iterate = super().restart(x)
        self.evaluations += time.perf_counter() - started
        return iterate


engine.CHUNK_SECONDS = math.inf  # or how long pieces are would depend on the clock


def solve(solver: Solver, problem: Problem, passes: int) -> Timed:
    run = Timed(problem, max_gradients=passes * problem.n)
    with suppress(Exhausted):
        for _ in solver.stages(problem, run, np.zeros(problem.d), np.random.default_rng(0)):
            if run.exhausted():
                break
    return run


@dataclass(frozen=True)
class Contestant:
    """One way to make steps: `run` does the same work each time, in pieces, and returns the seconds each took."""

    run: Callable[[], Sequence[float]]
    price: Callable[[np.ndarray], float]  # the seconds of all pieces -> nanoseconds per gradient


def ours(solver: Solver, problem: Problem) -> Contestant:
    steps = solve(solver, problem, PASSES).steps  # and compile
    return Contestant(lambda: solve(solver, problem, PASSES).pieces, lambda seconds: 1e9 * seconds.sum() / steps)


def sgd(loss: str, X: Any, labels: np.ndarray) -> Contestant:
    def fit(epochs: int) -> float:
        alpha, options = 1.0 / labels.size, {"average": True, "fit_intercept": False, "tol": None, "random_state": 0}
        model = SGDClassifier(loss=loss, alpha=alpha, max_iter=epochs, **options)
        started = time.perf_counter()
        model.fit(X, labels)
        return time.perf_counter() - started

    samples = (EPOCHS - 1) * labels.size
    return Contestant(lambda: [fit(1), fit(EPOCHS)], lambda seconds: 1e9 * (seconds[1] - seconds[0]) / samples)


@kernel
def read(rows, labels, w, draws):
    """The least a step must do."""
    total = 0.0
    for u in draws:
        i = np.uintp(u * labels.size)
        total += labels[i] * rows.dot(i, w, 0)
    return total


def floor(problem: Any) -> Contestant:
    rows, labels, w = row_state(problem.rows), problem.labels, np.ones((problem.rows.d, 1))
    draws = np.random.default_rng(0).random(EPOCHS * problem.n)
    read(rows, labels, w, draws)

    def run() -> list[float]:
        started = time.perf_counter()
        read(rows, labels, w, draws)
        return [time.perf_counter() - started]

    return Contestant(run, lambda seconds: 1e9 * seconds[0] / draws.size)


def measure(name: str, rounds: int) -> list[dict[str, Any]]:
    X, labels = load(name)
    n = labels.size
    dro = pm.DRO(X, labels, divergence=pm.ChiSquare(1.0 / n), regularizer=pm.L2(1.0 / n))
    auc = pm.AUC(X, labels, constraint=pm.L2Ball(10.0))
    contestants = {
        "DRO": ours(pm.RSPDsc(), dro),
        "AUC": ours(pm.ARSPD(), auc),
        "hinge": sgd("hinge", X, labels),
        "squared": sgd("squared_error", X, labels),
        "floor": floor(dro),
    }
    seconds = interleaved({method: contestant.run for method, contestant in contestants.items()}, rounds)
    ns, undisturbed = {}, {}
    for method, contestant in contestants.items():
        ns[method] = np.array([contestant.price(pieces) for pieces in seconds[method]])
        undisturbed[method] = contestant.price(seconds[method].min(axis=0))
    rows = []
    for method, rivals in (
        ("DRO", ("hinge", "floor")),
        ("AUC", ("hinge", "squared", "floor")),
        *((r, ()) for r in RIVALS),
    ):
        ratios = {rival: summary(ns[method] / ns[rival]) for rival in rivals}
        least = {rival: undisturbed[method] / undisturbed[rival] for rival in rivals}
        rows.append(
            {
                **{"set": name, "n": n, "d": X.shape[1], "nonzeros_per_row": X.nnz / n, "method": method},
                **{"ns": summary(ns[method]), "ns_undisturbed": undisturbed[method]},
                **{"ratio_to": ratios, "ratio_undisturbed_to": least},
            }
        )
    return rows


def main(quick: bool) -> None:
    rows = []
    for name in ("a9a", "w8a") if quick else SETS:
        say(f"price: {name}")
        rows += measure(name, rounds=9 if quick else 25)
    write("price", rows, quick=quick)
    printed = []
    for row in rows:
        cells = [row["set"], f"{row['nonzeros_per_row']:.0f}", METHODS[row["method"]]]
        cells += [f"{row['ns']['median']:.0f}", f"{row['ns_undisturbed']:.0f}"]
        for rival in RIVALS:
            if rival in row["ratio_to"]:
                ratio, least = row["ratio_to"][rival], row["ratio_undisturbed_to"][rival]
                cells += [shown(ratio), f"{least:.2f}" + ("" if rival == "floor" else " " + verdict(least, BAR))]
            else:
                cells += ["", ""]
        printed.append(cells)
    least = "undisturbed"
    columns = ("set", "nnz", "method", "ns", least, "to hinge", least, "to squared", least, "to floor", least)
    table(f"Price of a step; bar: {BAR} times averaged SGD of the hinge", columns, printed, NOTES)
