"""Memory: the peak beyond X of a pass over a URL-shaped synthetic set, against what its vectors need.

Measured in a process of its own for each problem, in which the kernels have been compiled for a tiny problem before.
The vectors are those of the states that kernels work on, those of the problem, and the iterates of a run.
"""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import pommel as pm
from benchmarks.engine.report import say, table, verdict, write
from pommel.engines.compiled import Compiled
from pommel.engines.engine import GradientStep

BAR = 1.3
GIB = 2.0**30
LIMIT = 24.0  # GiB in all
SHAPE, QUICK = (2_400_000, 3_200_000, 115), (300_000, 400_000, 115)
BLOCK = 50_000  # rows

RETURN_ALL = {"MALLOC_MMAP_THRESHOLD_": str(2**17)}
"""glibc then gives every freed vector back at once, where else what was freed before could serve later ones unseen."""


def url_shaped(n: int, d: int, nonzeros: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of about unit length, float32; features from very frequent to very rare, one in three labels positive.

    The columns of a row rise, one from each of as many strata of u -> d u^4: a power law without duplicates.
    """
    rng = np.random.default_rng(0)
    hyperplane = rng.standard_normal(d, dtype=np.float32)
    data, indices = np.empty((n, nonzeros), dtype=np.float32), np.empty((n, nonzeros), dtype=np.int32)
    margins, strata = np.empty(n), np.arange(nonzeros)
    for first in range(0, n, BLOCK):
        rows = slice(first, min(first + BLOCK, n))
        u = (strata + rng.random((rows.stop - first, nonzeros), dtype=np.float32)) / nonzeros
        indices[rows] = strata + ((d - nonzeros) * u**4).astype(np.int32)
        data[rows] = rng.random(u.shape, dtype=np.float32) / np.sqrt(nonzeros / 3.0)
        margins[rows] = np.einsum("ij,ij->i", data[rows], hyperplane[indices[rows]])
    indptr = np.arange(0, n * nonzeros + 1, nonzeros, dtype=np.int32)
    X = sp.csr_array((data.ravel(), indices.ravel(), indptr), shape=(n, d))
    return X, np.where(margins > np.quantile(margins[:BLOCK], 2.0 / 3.0), 1.0, -1.0)


def make(problem: str, X: Any, labels: np.ndarray) -> Any:
    if problem == "AUC":
        return pm.AUC(X, labels, constraint=pm.L2Ball(10.0))
    return pm.DRO(X, labels, divergence=pm.ChiSquare(1.0 / labels.size), regularizer=pm.L2(1.0 / labels.size))


def one_pass(problem: Any, peaks: Peaks) -> Compiled:
    """What a stage of a solve does, a pass long."""
    engine = Compiled(problem)
    start = engine.restart(np.zeros(problem.d))
    natural = engine.natural_steps(start, "uniform")
    peaks.note("start")
    sets = problem.primal_set, problem.dual_set
    rule = GradientStep(0.4 * natural.primal, natural.dual, *sets, center=start.center)
    average = engine.run(rule, start.x, start.y, problem.n, np.random.default_rng(0))
    peaks.note("steps and restart")
    walk = engine.begin(rule, average.x, start.y)
    peaks.needed = needs(problem, walk)
    return engine


class Peaks:
    """The process's peak memory in each phase, beyond what it had at the beginning."""

    def __init__(self) -> None:
        gc.collect()
        self.base, self.bytes = resident("VmRSS"), {}
        self.needed: dict[str, int] = {}
        reset()

    def note(self, phase: str) -> None:
        self.bytes[phase] = resident("VmHWM") - self.base
        reset()


def resident(which: str) -> int:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(re.search(rf"{which}:\s+(\d+) kB", status)[1])


def reset() -> None:
    """VmHWM starts anew from VmRSS."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def needs(problem: Any, walk: Any) -> dict[str, int]:
    """Bytes of every vector that a pass cannot do without."""
    vectors = {}
    for owner, part in (("x", walk.primal), ("y", walk.dual), ("y", getattr(walk.dual, "weights", None))):
        fields = part._asdict() if part is not None else {}
        vectors |= {f"{owner}.{name}": array for name, array in fields.items() if isinstance(array, np.ndarray)}
    vectors |= {name: getattr(problem, name) for name in ("labels", "y0", "weights") if hasattr(problem, name)}
    vectors = {name: vector for name, vector in vectors.items() if any(vector.strides)}  # y0 of AUC is one number
    if isinstance(problem, pm.AUC):
        vectors |= {"mean_positive": problem.mean_positive, "mean_negative": problem.mean_negative}
    distinct = {array.ctypes.data: (name, array.nbytes) for name, array in reversed(vectors.items())}
    large = {name: size for name, size in reversed(distinct.values()) if size > 1024}
    x, y = 8 * problem.d, 8 * walk.y.size
    iterates = {"x_0": x, "mean of x_t": x, "x_T": x} | ({"y_0": y, "y_T": y} if y > 8 else {})
    return large | iterates


def child(problem: str, *shape: int) -> None:
    tiny = url_shaped(1000, 2000, 50)
    one_pass(make(problem, *tiny), Peaks())
    started = time.perf_counter()
    X, labels = url_shaped(*shape)
    built = time.perf_counter() - started
    peaks, started = Peaks(), time.perf_counter()
    made = make(problem, X, labels)
    peaks.note("problem")
    one_pass(made, peaks)
    print(
        json.dumps(
            {
                **{"data": "synthetic, URL-shaped", "n": shape[0], "d": shape[1], "nonzeros_per_row": shape[2]},
                **{"problem": problem, "bytes_X": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes},
                **{"peaks": peaks.bytes, "needed": peaks.needed, "bytes_before": peaks.base},
                **{"seconds_to_build": built, "seconds": time.perf_counter() - started},
            }
        )
    )


def main(quick: bool) -> None:
    rows = []
    for problem in ("AUC", "DRO"):
        shape = QUICK if quick else SHAPE
        say(f"memory: {problem}, {shape[0]:,} x {shape[1]:,}")
        command = [sys.executable, "-m", __name__, problem, *map(str, shape)]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | RETURN_ALL)
        rows.append(json.loads(answer.stdout))
    write("memory", rows, quick=quick)
    printed = []
    for row in rows:
        needed, peak = sum(row["needed"].values()), max(row["peaks"].values())
        total = (row["bytes_before"] + peak) / GIB
        cells = [f"{row['problem']}, {row['n']:,} x {row['d']:,}", f"{row['bytes_X'] / GIB:.2f}", f"{needed / GIB:.3f}"]
        cells += [f"{size / GIB:.3f}" for size in row["peaks"].values()]
        cells += [f"{peak / needed:.2f} {verdict(peak / needed, BAR)}", f"{total:.1f} {verdict(total, LIMIT)}"]
        printed.append(cells)
    phases = [f"peak: {phase}" for phase in rows[0]["peaks"]]
    columns = ("synthetic, URL-shaped", "X", "needed", *phases, "peak / needed", "process in all")
    needed = [
        f"{row['problem']} needs, in units of n or d numbers of 8 bytes: "
        + ", ".join(f"{name} {units(size, row)}" for name, size in row["needed"].items())
        for row in rows
    ]
    table("Memory of one pass beyond X, GiB", columns, printed, needed)


def units(size: int, row: dict[str, Any]) -> str:
    """As a multiple of n or d, whichever is the rounder one."""
    multiples = {letter: size / (8 * row[letter]) for letter in "nd"}
    letter = min(multiples, key=lambda letter: abs(8 * multiples[letter] - round(8 * multiples[letter])))
    return f"{multiples[letter]:.3g} {letter}"


if __name__ == "__main__":
    child(sys.argv[1], *map(int, sys.argv[2:]))
