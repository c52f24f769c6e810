"""Start: what an import adds, a first solve compiles, and a second process waits for. Fresh processes, wall clock."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.engine.report import interleaved, say, shown, summary, table, verdict, write

ADDED, COLD, WARM = 0.3, 15.0, 1.5

PEERS = "import sklearn.linear_model, numba"
IMPORT = f"{PEERS}, pommel"

FIRST_GRADIENT = """
import time
import numpy as np
import scipy.sparse as sp
import pommel as pm
from pommel.engines.compiled import Compiled

rng = np.random.default_rng(0)
X, labels = sp.random_array((500, 20), density=0.3, format="csr", rng=rng), rng.random(500) < 0.5
started = time.perf_counter()
first = []
advance = Compiled.advance

def timed(*arguments):
    advance(*arguments)
    first.append(time.perf_counter() - started)

Compiled.advance = timed
problems = {
    "DRO": (pm.RSPDsc(), lambda: pm.DRO(X, labels, divergence=pm.ChiSquare(1 / 500), regularizer=pm.L2(1 / 500))),
    "AUC": (pm.ARSPD(), lambda: pm.AUC(X, labels, constraint=pm.L2Ball(1.0))),
}
for name in PROBLEMS:
    solver, make = problems[name]
    solver.solve(make(), tol=0, max_passes=60, engine="compiled")
print(time.perf_counter() - started, first[0])
"""


def python(code: str, cache: Path) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def import_seconds(statement: str, cache: Path) -> float:
    code = f"import time; started = time.perf_counter(); {statement}; print(time.perf_counter() - started)"
    return float(python(code, cache))


def solve_seconds(problems: tuple[str, ...], cache: Path) -> list[float]:
    """Of solves of small problems, and until their first gradients were made, both from just after the import."""
    return [float(number) for number in python(f"PROBLEMS = {problems!r}\n{FIRST_GRADIENT}", cache).split()]


def compiled_by_import(cache: Path) -> int:
    """Functions that `import pommel` compiles, told by Numba's own events, and files it leaves in the cache."""
    code = f"""
{PEERS}
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    import pommel
print(len(recorder.buffer))
"""
    return int(python(code, cache)) + sum(path.is_file() for path in cache.rglob("*"))


def main(quick: bool) -> None:
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        caches = (Path(folder) / str(number) for number in range(100))

        say("start: imports")
        empty = next(caches)
        rows["compiled_by_import"] = compiled_by_import(empty)
        contestants = {name: (lambda name=name: import_seconds(name, empty)) for name in (PEERS, IMPORT)}
        seconds = interleaved(contestants, rounds=3 if quick else 5)
        rows["import_peers"], rows["import_all"] = summary(seconds[PEERS]), summary(seconds[IMPORT])
        rows["import_adds"] = rows["import_all"]["median"] - rows["import_peers"]["median"]

        say("start: cold and warm solves")
        both, cold, warm = ("DRO", "AUC"), [], {"DRO": [], "AUC": []}
        for _ in range(1 if quick else 3):
            cache = next(caches)
            cold.append(solve_seconds(both, cache)[0])
            for problem in both:
                for _ in range(2):
                    warm[problem].append(solve_seconds((problem,), cache)[1])
        rows["cold"] = summary(cold)
        rows["warm"] = {problem: summary(values) for problem, values in warm.items()}
    write("start", rows, quick=quick)
    adds = rows["import_adds"]
    printed = [
        ["import pommel: functions compiled", f"{rows['compiled_by_import']}", verdict(rows["compiled_by_import"], 0)],
        ["import scikit-learn, numba", shown(rows["import_peers"]), ""],
        ["import scikit-learn, numba, pommel", shown(rows["import_all"]), ""],
        ["    added, of medians", f"{adds:.2f}", verdict(adds, ADDED)],
        ["cold: a solve of DRO and one of AUC", shown(rows["cold"]), verdict(rows["cold"]["median"], COLD)],
    ]
    for problem, values in rows["warm"].items():
        name = f"warm: import to first gradient, {problem}"
        printed.append([name, shown(values), verdict(values["median"], WARM)])
    table("Start, seconds: median (least-most)", ("", "measured", "bar"), printed)
