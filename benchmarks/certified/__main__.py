"""Time to a certified gap, beside that of everything else one could use: `make bench-certified`, under an hour.

With --quick under five minutes. Ours count from the time at which a gap was proved, peers from when their best point
had that gap in truth, which they cannot know. Tables are printed; results/certified.json beside this folder holds all
runs, results/certified-<set>.png shows them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.certified import parts, picture, tables
from benchmarks.certified.problems import LOSSES, SETS, SHORT, STRENGTHS, Case, data
from benchmarks.certified.race import GAPS, Effort, Race, families, peers_of, run_case
from benchmarks.engine.report import CONSOLE, say

RESULTS = Path(__file__).parents[1] / "results"
FULL = Effort(rounds=3, budget=20.0, truth=20.0, slow_peers=True)
QUICK = Effort(rounds=2, budget=6.0, truth=6.0, slow_peers=False)

QUICK_CASES = [Case(name, "hinge", STRENGTHS[0]) for name in ("a9a", "w8a", "news20")]
QUICK_CASES[1:1] = [Case("a9a", "logistic", STRENGTHS[0])]

Store = Callable[[list[Any]], None]


def robust(effort: Effort, sets: Sequence[str], quick: bool, store: Store) -> list[str]:
    bars, stored = tables.Bars(), []
    for name in sets:
        races: list[Race] = []
        for loss in LOSSES:
            kept: list[str] | None = None
            for strength in STRENGTHS:
                case = Case(name, loss, strength)
                if quick and case not in QUICK_CASES:
                    continue
                race = run_case(case, effort, kept)
                if case.is_main:  # the others take the variants that were the fastest to what bars are about
                    groups = families(peers_of(race)).values()
                    kept = [race.best(names, gap)[0] for gap in GAPS[2:] for names in groups]
                races.append(race)
                tables.against_peers(bars, race)
                stored.append(race.as_json("robust"))
                store(stored)
        if races:
            tables.times(name, races)
            picture.save(races, RESULTS / f"certified-{SHORT[name]}.png")
    bars.show("Robust problems: time to a certified gap / time of the best peer to that true gap")
    return bars.missed


def mean(effort: Effort, sets: Sequence[str], quick: bool, store: Store) -> list[str]:
    """The same without an adversary, beside liblinear and scikit-learn."""
    bars, stored = tables.Bars(), []
    for name in sets:
        races = [run_case(Case(name, loss, None), effort) for loss in LOSSES]
        for race in races:
            tables.against_liblinear(bars, race)
            stored.append(race.as_json("mean"))
        store(stored)
        tables.times(f"{name}, without an adversary", races)
    bars.show("Mean(): time to a certified gap of 1e-6 / that of liblinear to the true one")
    return bars.missed


def auc(effort: Effort, sets: Sequence[str], quick: bool, store: Store) -> list[str]:
    bars, stored = tables.Bars(), []
    races = []
    for name in sets:
        races.append(parts.run_auc(name, effort))
        tables.against_ridge(bars, races[-1])
        stored.append(races[-1].as_json("auc"))
        store(stored)
    tables.times(f"AUC, L2 {parts.AUC_LAM2:g}", races, (1e-4, 1e-6, parts.AUC_GAP))
    bars.show("AUC: time to a certified gap of 1e-8 / that of balanced ridge regression to the true one")
    return bars.missed


def path(effort: Effort, sets: Sequence[str], quick: bool, store: Store) -> list[str]:
    bars, stored = tables.Bars(), []
    for name in sets:
        for loss in LOSSES if not quick else ("hinge",):
            row = parts.run_path(Case(name, loss, STRENGTHS[0]), effort.rounds)
            stored.append(row)
            store(stored)
            bars.add(row["case"], "path of 20 / one solve", row["ratio"], tables.PATH_BAR, f"{min(row['path']):.2f} s")
            bars.add(row["case"], "points not certified", float(row["points"] - row["certified"]), 0.0)
    bars.show("A path of 20 robustness values / one solve")
    return bars.missed


PARTS: dict[str, tuple[Callable[[Effort, Sequence[str], bool, Store], list[str]], tuple[str, ...], tuple[str, ...]]] = {
    "robust": (robust, SETS, ("a9a", "w8a", "news20")),
    "mean": (mean, ("a9a", "w8a", "news20"), ("a9a",)),
    "auc": (auc, ("a9a", "w8a", "news20", "covtype", "dense 100k (synthetic)"), ("a9a",)),
    "path": (path, ("a9a", "w8a", "news20"), ("a9a",)),
}
"""Each with its sets, and those with --quick."""


def write(part: str, rows: Any, *, quick: bool) -> None:
    """Put a part's rows, as many as there are, into the results; what other parts wrote stays."""
    file = RESULTS / "certified.json"
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    results[part] = {"quick": quick, "date": time.strftime("%Y-%m-%d"), "machine": machine, "rows": rows}
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps(results) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-certified", description="Time to a certified gap.")
    parser.add_argument("--quick", action="store_true", help="smaller and fewer, in under five minutes")
    parser.add_argument("--only", default=",".join(PARTS), help="some of %(default)s (the default)")
    parser.add_argument("--sets", help=f"some of {','.join(SHORT.values())}; all of a part by default")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"--only takes some of {','.join(PARTS)}, got {','.join(sorted(unknown))}")
    named = options.sets.split(",") if options.sets else list(SHORT.values())
    if unknown := set(named) - set(SHORT.values()):
        parser.error(f"--sets takes some of {','.join(SHORT.values())}, got {','.join(sorted(unknown))}")
    missed = []
    with threadpool_limits(1):
        for part in chosen:
            measure, sets, few = PARTS[part]
            kept = [name for name in (few if options.quick else sets) if SHORT[name] in named]

            def store(rows: list[Any], part: str = part) -> None:
                write(part, rows, quick=options.quick)

            missed += measure(QUICK if options.quick else FULL, kept, options.quick, store)
            data.cache_clear()
    for note in tables.NOTES:
        CONSOLE.print(note, highlight=False)
    say(f"{'Missed bars: ' + '; '.join(missed) if missed else 'All bars are met'}. All numbers are in certified.json.")


if __name__ == "__main__":
    main()
