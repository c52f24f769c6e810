"""The command line: `pommel demo`. Needs typer and rich, its pictures matplotlib: pip install 'pommel[cli,plot]'."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

try:
    import matplotlib  # noqa: F401
    import typer
    from rich.console import Console
    from rich.table import Table
except ModuleNotFoundError as error:
    sys.exit(f"the command line needs {error.name}: pip install 'pommel[cli,plot]'")

from pommel.experiments.demo import Race, Tail, robust_risk, square_auc, tails
from pommel.plot.demo import draw

__all__ = ["main"]

main = typer.Typer(add_completion=False, no_args_is_help=True)


@main.callback()
def pommel() -> None:
    """Convex-concave min-max learning."""


@main.command()
def demo(
    output: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("pommel-demo.png"),
) -> None:
    """Solve a robust and an AUC problem, compare with a plain stochastic method, and show what robustness buys."""
    started, console = time.perf_counter(), Console(highlight=False)
    with console.status("starting") as status:

        def progress(text: str) -> None:
            status.update(f"[{time.perf_counter() - started:3.0f} s] {text}")

        races = []
        for experiment in (robust_risk, square_auc):
            races.append(experiment(progress))
            console.print(race_table(races[-1]), "")
        models = tails(progress)
        console.print(tail_table(models), "")
        draw(races, models).savefig(output)
    console.print(f"Picture: {output}   ({time.perf_counter() - started:.0f} s)")


def race_table(race: Race) -> Table:
    """Median gaps of the solvers at a quarter, half and all of the budget."""
    marks = (race.passes / 4.0, race.passes / 2.0, race.passes)
    table = _table(race.title, race.data, caption=race.optimum)
    table.add_column("P(x) - P*, median of 3 seeds, after")
    for mark in marks:
        table.add_column(f"{mark:.0f} passes", justify="right")
    for curve in race.curves:
        table.add_row(curve.label, *(f"{curve.at(mark):.1e}" for mark in marks))
    return table


def tail_table(models: list[Tail]) -> Table:
    """Mean, tail and worst group of each model."""
    table = _table(
        "What robustness buys: the tail",
        "losses on 20,000 fresh rows; synthetic, with a minority of 10 % that training is not told of",
    )
    table.add_column("logistic loss", no_wrap=True)
    for column in ("mean", "worst 10 %", "worst group", "its accuracy", "accuracy"):
        table.add_column(column, justify="right")
    for model in models:
        losses = (model.losses.mean(), model.worst(0.1), model.worst_group_loss)
        shares = (model.worst_group_accuracy, model.accuracy)
        table.add_row(model.label, *(f"{loss:.3f}" for loss in losses), *(f"{share:.1%}" for share in shares))
    return table


def _table(title: str, subtitle: str, caption: str | None = None) -> Table:
    return Table(
        title=f"[bold]{title}[/bold]\n{subtitle}",
        title_justify="left",
        title_style="",
        caption=caption,
        caption_justify="left",
    )
