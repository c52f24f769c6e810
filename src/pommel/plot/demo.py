"""The picture of `pommel demo`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from pommel.experiments.demo import Race, Tail

__all__ = ["draw", "draw_race", "draw_tails"]

COLOURS = ("#d1495b", "#30638e", "#7a7a7a")


def draw(races: Sequence[Race], tails: Sequence[Tail]) -> Figure:
    """All panels side by side."""
    figure = Figure(figsize=(4.6 * (len(races) + 1), 4.0), layout="constrained", dpi=110)
    axes = figure.subplots(1, len(races) + 1)
    for panel, race in zip(axes, races, strict=False):
        draw_race(panel, race)
    draw_tails(axes[-1], tails)
    return figure


def draw_race(axes: Axes, race: Race) -> None:
    """Objective gap against passes: the median over seeds, and their range behind it."""
    for curve, colour in zip(race.curves, COLOURS, strict=False):
        axes.plot(curve.passes, np.median(curve.gaps, axis=0), "o-", color=colour, ms=3.5, label=curve.label)
        axes.fill_between(curve.passes, curve.gaps.min(axis=0), curve.gaps.max(axis=0), color=colour, alpha=0.15, lw=0)
    axes.set(xscale="log", yscale="log", xlabel="passes over the data", ylabel="P(x) − P* of the best point so far")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _finish(axes, f"{race.title}\n{race.data}")


def draw_tails(axes: Axes, tails: Sequence[Tail]) -> None:
    """Mean loss over the worst share of fresh rows; at 100 % it is the plain mean."""
    shares = np.geomspace(0.01, 1.0, 60)
    for tail, colour in zip(tails, reversed(COLOURS), strict=False):
        axes.plot(100.0 * shares, [tail.worst(share) for share in shares], color=colour, label=tail.label)
    axes.axvline(10.0, color="0.8", lw=0.8, zorder=0)
    axes.set(xscale="log", xlabel="worst share of fresh rows", ylabel="mean loss over them", ylim=(0.0, None))
    axes.xaxis.set_major_formatter(PercentFormatter(decimals=0))
    _finish(axes, "What robustness buys: the tail\nsynthetic, minority of 10 %, logistic loss")


def _finish(axes: Any, title: str) -> None:
    axes.set_title(title, fontsize=9.5)
    axes.grid(True, which="major", alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8.5)
