"""What a solve returns: the answer, how good it is, how it ended and the way it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pommel.problem import Vector

__all__ = ["History", "Solution", "Status"]


class Status(Enum):
    """How a solve ended."""

    CONVERGED = "relative gap proved to be within tol"
    FINISHED = "the solver ran all the stages it was given"
    MAX_PASSES = "the budget of passes is used up"
    MAX_SECONDS = "the time is used up"
    STOPPED = "stopped by the callback"
    INTERRUPTED = "interrupted"
    DIVERGED = "the iterates ran into infinity even with smaller steps"


class History(Mapping[str, NDArray[Any]]):
    """One row for each check, as columns: ``history["objective"]``. `rows` are the same as dicts.

    Columns: `stage` (0 is the start; the short runs of a pilot count, too), `solver`, `n_gradients`, `n_passes`,
    `seconds`, `objective`, `lower_bound` (the best so far), `relative_gap`, and of the stage that led here `steps`,
    `primal_step`, `dual_step` and `retries`, the times it was run again with smaller steps because it had diverged.
    """

    __eq__ = object.__eq__  # that of mappings would compare arrays, which have no single truth value
    __hash__ = object.__hash__

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def append(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in tuple(self):
            known = f"columns are {', '.join(self)}" if self.rows else "the history has no rows"
            raise KeyError(f"{column!r}; {known}")
        return np.array([row[column] for row in self.rows])

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows[0] if self.rows else ())

    def __len__(self) -> int:
        return len(self.rows[0]) if self.rows else 0

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame; pandas must be installed."""
        import pandas

        return pandas.DataFrame(self.rows)

    def __repr__(self) -> str:
        return f"History({len(self.rows)} rows: {', '.join(self)})"


@dataclass(frozen=True, eq=False)
class Solution:
    """The best point a solver found, and what is proved about it.

    Attributes
    ----------
    x, y : ndarray
        The point with the lowest objective seen, and its exact dual response A(x).
    objective : float
        P(x).
    lower_bound : float
        A number that min P is never below; -inf where none is known.
    gap, relative_gap : float
        objective - lower_bound, and the same relative to the size of the objective.
    status : Status
        How the solve ended.
    message : str
        The same in a sentence, with what to try.
    solver, engine : str
        What ran.
    n_gradients, n_passes, seconds : int, float, float
        The price, evaluations included.
    history : History
        One row for each check.
    """

    x: Vector
    y: Vector
    objective: float
    lower_bound: float
    gap: float
    relative_gap: float
    status: Status
    message: str
    solver: str
    engine: str
    n_gradients: int
    n_passes: float
    seconds: float
    history: History = field(repr=False)

    def __str__(self) -> str:
        return (
            f"{self.solver}: objective {self.objective:.9g}, lower bound {self.lower_bound:.9g}, "
            f"{self.n_passes:.1f} passes, {self.seconds:.2f} s\n{self.status.name}: {self.message}"
        )
