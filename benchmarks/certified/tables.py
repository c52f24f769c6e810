"""Tables: times to gaps for each set, and how they stand to the bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.certified.ours import AUTO, EXACT, SINGLES
from benchmarks.certified.parts import AUC_GAP, ridge_peers
from benchmarks.certified.problems import SPARSE_AND_WIDE
from benchmarks.certified.race import GAPS, Race, families, peers_of
from benchmarks.engine.report import CONSOLE, table, verdict

CHECKED, FINEST = 1e-4, 1e-6
SINGLE_BAR, CERTIFIED_BAR, LIBLINEAR_BAR, RIDGE_BAR, PATH_BAR = 1.5, 2.0, 1.5, 1.2, 5.0

NOTES = (
    "seconds of one core: wall time by the share of a core the process had; the least of all rounds, which take turns. "
    "Not in them: reading data, X times labels and its transpose for the peers, compiling.",
    "Without an adversary and for AUC, where peers check X in their fit, our problem with its checks counts, too.",
    "certified: proved by the run itself; true: (P - P*) / P* of the best point so far, P* the lower end of a proved "
    "bracket. Peers prove nothing. -: not reached in the budget; ?: the bracket is too wide to tell.",
    "L-BFGS-B: on the exact P, memory 10, 20 or 30; smoothed: the kink rounded by continuation, three schedules; for "
    "each accuracy the fastest variant. Clarabel and OSQP through CVXPY, dro, scikit-learn: the fastest solve of a "
    "sweep of tolerances.",
)


def shown(seconds: float, decided: bool = True) -> str:
    if not decided:
        return "?"
    return "-" if not np.isfinite(seconds) else f"{seconds:.3f}" if seconds < 10.0 else f"{seconds:.1f}"


def ratio(ours: float, theirs: float) -> float:
    """inf where ours never arrived, nan where nobody did."""
    if not np.isfinite(ours):
        return np.inf if np.isfinite(theirs) else np.nan
    return ours / theirs


def times(title: str, races: Sequence[Race], gaps: Sequence[float] = GAPS) -> None:
    rows = []
    for race in races:
        own = [name for name in race.curves if name in (AUTO, EXACT, *SINGLES)]
        rows.append([f"[bold]{race.case.name}[/]: P* = {race.bracket.lower:.9g}, width {race.bracket.width:.0e}"])
        for name in own:
            certified = [shown(race.time(name, gap, certified=True)) for gap in gaps]
            true = [shown(race.time(name, gap), race.bracket.decides(gap)) for gap in gaps]
            rows.append([f"  {name}", *certified, *true])
        others = [name for name in race.curves if name not in own]
        for family, names in families(others).items():
            true = [shown(race.best(names, gap)[1], race.bracket.decides(gap)) for gap in gaps]
            rows.append([f"  {family}", *("" for _ in gaps), *true])
    columns = ["", *(f"{kind}\n{gap:.0e}".replace("e-0", "e-") for kind in ("certified", "true") for gap in gaps)]
    table(title, columns, rows)
    notes = {f"{race.case.set}, {race.case.loss}: {note}": None for race in races for note in race.notes}
    for note in notes:
        CONSOLE.print(f"[dim]{note}[/]", highlight=False)
    if first := {name: max(race.first_calls.get(name, 0.0) for race in races) for name in races[0].first_calls}:
        longest = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in first.items())
        CONSOLE.print(f"[dim]first calls, above second ones: at most {longest}[/]", highlight=False)


class Bars:
    """Rows of a table of ratios, and which of them missed their bars."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.missed: list[str] = []

    def add(self, label: str, what: str, value: float, bar: float, detail: str = "") -> None:
        if np.isnan(value):
            return
        met = bool(value <= bar)
        self.rows.append({"case": label, "what": what, "value": value, "bar": bar, "met": met, "detail": detail})
        if not met:
            self.missed.append(f"{label}, {what}")

    def show(self, title: str) -> None:
        printed = [
            [row["case"], row["what"], f"{row['value']:.2f}", verdict(row["value"], row["bar"]), row["detail"]]
            for row in self.rows
        ]
        table(title, ("case", "what", "ratio", "bar", ""), printed)


def against_peers(bars: Bars, race: Race) -> None:
    """The bars of a robust problem."""
    label, peers = race.case.name, peers_of(race)
    for gap in (CHECKED, FINEST):
        bar = 1.0 / 3.0 if gap == CHECKED and race.case.set in SPARSE_AND_WIDE else 1.0
        own = race.time(AUTO, gap, certified=True)
        if not np.isfinite(own):
            bars.add(label, f"certified at {gap:.0e}", np.inf, bar, "not within the budget")
        elif race.bracket.decides(gap):
            peer, theirs = race.best(peers, gap)
            detail = f"{peer}, {shown(theirs)} s" if np.isfinite(theirs) else "no peer arrived"
            bars.add(label, f"auto / best peer, {gap:.0e}", ratio(own, theirs), bar, detail)
        single, least = race.best([name for name in SINGLES if name in race.curves], gap, certified=True)
        detail = f"{single}, {shown(least)} s" if np.isfinite(least) else "no single arrived in four times its time"
        bars.add(label, f"auto / best single, {gap:.0e}", ratio(own, least), SINGLE_BAR, detail)
    certificates(bars, race)


def certificates(bars: Bars, race: Race) -> None:
    """Certified against true time of the same run, the worst of the accuracies; and that no bound was ever wrong."""
    worst, where = np.nan, ""
    for gap in (gap for gap in GAPS if race.bracket.decides(gap)):
        for curve in race.curves[AUTO]:
            true = curve.time_to(gap, race.bracket.lower, race.bracket.size)
            quotient = ratio(curve.time_to_certified(gap), true)
            if not quotient <= worst and not np.isnan(quotient):
                worst, where = quotient, f"at {gap:.0e}, {shown(true)} s"
    bars.add(race.case.name, "certified / true, worst", worst, CERTIFIED_BAR, where)
    if race.bracket.width < 0.0:
        bars.add(race.case.name, "bound above an objective", -race.bracket.width, 0.0)


def against_liblinear(bars: Bars, race: Race) -> None:
    names = [name for name in peers_of(race) if name.startswith("liblinear")]
    peer, theirs = race.best(names, FINEST)
    own = race.time(AUTO, FINEST, certified=True)
    bars.add(race.case.name, "auto / liblinear, 1e-06", ratio(own, theirs), LIBLINEAR_BAR, f"{peer}, {shown(theirs)} s")
    value = min(float(curve.objectives[-1]) for curve in race.curves[AUTO])
    for name in peers_of(race):
        if np.isfinite(race.time(name, FINEST)):
            other = min(float(curve.objectives[-1]) for curve in race.curves[name])
            off = abs(value - other) / race.bracket.size
            bars.add(race.case.name, f"P less that of {name}, in 1e-06", off / FINEST, 1.0)
    certificates(bars, race)


def against_ridge(bars: Bars, race: Race) -> None:
    label = race.case.name
    peer, theirs = race.best(ridge_peers(race), AUC_GAP)
    own = race.time(EXACT, AUC_GAP, certified=True)
    bars.add(label, "ExactAUC / Ridge, 1e-08", ratio(own, theirs), RIDGE_BAR, f"{peer}, {shown(theirs)} s")
    auto = race.time(AUTO, AUC_GAP, certified=True)
    bars.add(label, "auto / ExactAUC, 1e-08", ratio(auto, own), SINGLE_BAR)
