"""One plot for each set: relative gap against seconds, true and certified, ours and peers'."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.certified.ours import AUTO, SINGLES, Curve
from benchmarks.certified.race import Race, families, peers_of
from benchmarks.certified.truth import Bracket

COLOURS = {
    AUTO: "#d1495b",
    "Newton": "#edae49",
    "InteriorPoint": "#c77dff",
    "DualAscent": "#66a182",
    "RSPDsc": "#a47148",
    "L-BFGS-B": "#1d3557",
    "L-BFGS-B, smoothed": "#4f86c6",
    "Clarabel": "#222222",
    "OSQP": "#777777",
    "dro": "#aaaaaa",
}
SHOWN = (1e-7, 1.0)
FIRST = 1e-3
"""Seconds; nobody has two digits before."""

FINEST = 1e-6


def draw(races: Sequence[Race]) -> Figure:
    """A panel for each problem on the set."""
    columns = min(3, len(races))
    lines = -(-len(races) // columns)
    figure = Figure(figsize=(max(7.5, 4.7 * columns), 3.9 * lines + 0.8), layout="constrained", dpi=110)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, race in zip(panels, races, strict=False):
        draw_race(axes, race)
    for axes in panels[len(races) :]:
        axes.set_visible(False)
    figure.suptitle(f"{races[0].case.set}: true gaps (full) and what a run itself has proved (dashed)", fontsize=12)
    named = {line.get_label(): line for axes in panels for line in axes.get_lines() if line.get_label()[0] != "_"}
    figure.legend(
        named.values(),
        named,
        loc="outside lower center",
        ncols=min(2 + 2 * columns, len(named)),
        frameon=False,
        fontsize=9,
    )
    return figure


def draw_race(axes: Axes, race: Race) -> None:
    """Dashed: proved by the run itself; full: true; marks: solvers that show only where they end."""
    bracket = race.bracket
    for name in (AUTO, *SINGLES):
        if name in race.curves:
            curve, width = fastest(race, [name]), 2.2 if name == AUTO else 1.3
            _steps(axes, curve.seconds, true_gaps(curve, bracket), name, lw=width, zorder=4 if name == AUTO else 3)
            _steps(axes, curve.seconds, curve.certified, name, label="_", lw=width, ls=(0, (3, 1.5)), zorder=3)
    for family, names in families(peers_of(race)).items():
        curve = fastest(race, names)
        if family in ("Clarabel", "OSQP", "dro"):
            axes.plot(
                curve.seconds,
                np.maximum(true_gaps(curve, bracket), SHOWN[0]),
                ls="none",
                marker="oDs"[("Clarabel", "OSQP", "dro").index(family)],
                ms=4.5,
                color=COLOURS[family],
                label=family,
            )
        else:
            _steps(axes, curve.seconds, true_gaps(curve, bracket), family, lw=1.5)
    if bracket.width > SHOWN[0]:
        axes.axhspan(SHOWN[0], bracket.width, color="0.9", lw=0, zorder=0)  # not decided there
    axes.set(xscale="log", yscale="log", ylim=SHOWN, xlabel="seconds", ylabel="relative gap")
    axes.set_xlim(left=FIRST)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_title(race.case.name.removeprefix(race.case.set + ", "), fontsize=10)
    axes.grid(True, which="major", alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def fastest(race: Race, names: Sequence[str]) -> Curve:
    """The run that got to the finest gap first, or else that got furthest."""

    def rank(curve: Curve) -> tuple[float, float]:
        return curve.time_to(FINEST, race.bracket.lower, race.bracket.size), float(curve.objectives.min(initial=np.inf))

    return min((curve for name in names for curve in race.curves[name]), key=rank)


def true_gaps(curve: Curve, bracket: Bracket) -> np.ndarray:
    return (curve.objectives - bracket.lower) / bracket.size


def _steps(
    axes: Axes, seconds: np.ndarray, gaps: np.ndarray, name: str, *, label: str | None = None, **style: object
) -> None:
    """A gap holds until the next point is reached."""
    known = np.isfinite(gaps)
    axes.step(
        seconds[known],
        np.maximum(gaps[known], 1e-12),
        where="post",
        color=COLOURS.get(name, "#457b9d"),
        label=name if label is None else label,
        **style,  # type: ignore[arg-type]
    )


def save(races: Sequence[Race], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    draw(races).savefig(path)
