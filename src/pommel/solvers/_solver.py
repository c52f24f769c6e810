"""What all solvers share: a name, what they refuse, and `solve`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pommel.drive import drive
from pommel.engines.engine import Engine, Iterate
from pommel.problem import ConvexSet, Problem, Vector
from pommel.solution import Solution


class Solver(ABC):
    """An algorithm with its hyper-parameters; it holds no data and no state."""

    @property
    def name(self) -> str:
        return type(self).__name__

    @abstractmethod
    def stages(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        """The algorithm as the paper prints it; yields the point it has reached at each restart."""

    def primal_set(self, problem: Problem) -> ConvexSet:
        """Where x may be: a part of the problem's X, if the solver was told so."""
        return problem.primal_set

    def check(self, problem: Problem) -> None:  # noqa: B027 - most solvers take any problem
        """Refuse, before any work, a problem this solver cannot take."""

    def solve(
        self,
        problem: Problem,
        *,
        x0: ArrayLike | None = None,
        tol: float = 1e-3,
        max_passes: float | None = 100,
        max_seconds: float | None = None,
        random_state: Any = 0,
        callback: Callable[[dict[str, Any]], bool | None] | None = None,
        engine: str = "auto",
        verbose: int = 0,
    ) -> Solution:
        """Solve a problem.

        Parameters
        ----------
        problem : Problem
        x0 : array-like of shape (d,), optional
            Start, projected onto X; zeros by default.
        tol : float, default=1e-3
            Stop once the relative gap is proved to be at most this. 0 runs the budget and warns of nothing.
        max_passes : float, default=100
            Budget, in passes of n gradients; every evaluation counts. None for no limit.
        max_seconds : float, optional
            Time limit; none by default.
        random_state : int, Generator, RandomState or None, default=0
            Same seed, same bits.
        callback : callable, optional
            Called with each row of the history; a true answer stops the solve.
        engine : {"auto", "compiled", "reference"}, default="auto"
            What runs the steps; "auto" takes the fastest there is for the problem, and `Solution.engine` tells which.
        verbose : int, default=0
            1 prints a line at each restart, and every few seconds in between, to standard error.

        Returns
        -------
        Solution
            The best point seen, also after Ctrl-C or divergence.
        """
        return drive(
            self,
            problem,
            x0=x0,
            tol=tol,
            max_passes=max_passes,
            max_seconds=max_seconds,
            random_state=random_state,
            callback=callback,
            engine=engine,
            verbose=verbose,
        )
