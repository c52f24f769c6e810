"""What the parts share: interleaved timing, tables, and the JSON file they all write to."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parents[1] / "results" / "engine.json"
STARTED = time.perf_counter()
CONSOLE = Console(width=None if os.isatty(1) else 150)


def interleaved(contestants: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, np.ndarray]:
    """What each contestant returns in each round, A B C A B C ...: the speed of a shared machine drifts."""
    taken: dict[str, list[Any]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            taken[name].append(run())
    return {name: np.array(values) for name, values in taken.items()}


def summary(values: Any) -> dict[str, float]:
    """Median and extremes."""
    return {"median": float(np.median(values)), "least": float(np.min(values)), "most": float(np.max(values))}


def shown(values: Mapping[str, float], digits: int = 2) -> str:
    """Median (least - most)."""
    return f"{values['median']:.{digits}f} ({values['least']:.{digits}f}-{values['most']:.{digits}f})"


def verdict(value: float, bar: float) -> str:
    return f"[green]<= {bar:g}[/]" if value <= bar else f"[bold red]> {bar:g}[/]"


def say(text: str) -> None:
    """Progress."""
    CONSOLE.print(f"[dim]{time.perf_counter() - STARTED:6.1f} s  {text}[/]", highlight=False)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> None:
    """Print a table; all but the first column are numbers."""
    printed = Table(title=title, title_justify="left", title_style="bold", header_style="")
    for number, column in enumerate(columns):
        printed.add_column(column, justify="right" if number else "left")
    for row in rows:
        printed.add_row(*row)
    CONSOLE.print()
    CONSOLE.print(printed)
    for note in notes:
        CONSOLE.print(note, highlight=False)


def write(part: str, rows: Any, *, quick: bool) -> None:
    """Put a part's rows into the results; what other parts wrote stays."""
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    results[part] = {
        "quick": quick,
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine,
        "load": os.getloadavg()[0],
        "rows": rows,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
