"""Lower bounds of AUC problems for solvers that have none of their own, in instalments."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pommel.engines.engine import Engine, Iterate
from pommel.problem import Vector
from pommel.problems._auc_quadratic import no_quadratic
from pommel.problems.auc import AUC
from pommel.solvers.exact_auc import FORMED_SIDE, ExactAUC


class AUCCertifier:
    """What `ExactAUC` proves on the way to the optimum, with a few reads of the rows at a time.

    It starts from the first point it is given and then goes on from where it was: it gains on any stochastic solver. A
    problem with few columns is certified to rounding by its first call.

    Parameters
    ----------
    problem : AUC

    Attributes
    ----------
    reason : str or None
        Why no bound but the problem's own can be had, None if one can.
    lower_bound : float
        The best so far, -inf before the first.
    best : Iterate or None
        The best point met on the way: often far better than the one to be certified.
    is_done : bool
        Nothing is left but rounding.
    """

    def __init__(self, problem: AUC) -> None:
        self.problem, self.reason = problem, self._missing(problem)
        self.lower_bound, self.is_done = -math.inf, self.reason is not None
        self.best: Iterate | None = None
        self._steps: Iterator[Iterate | None] | None = None

    @staticmethod
    def _missing(problem: AUC) -> str | None:
        missing = no_quadratic(problem)
        if missing is not None:
            return f"bounds of AUC problems need {missing}"
        is_bounded = problem.constraint is not None or problem.regularizer.strong_convexity > 0.0
        if not is_bounded and problem.d - 2 > FORMED_SIDE:
            return (
                f"without a regularizer or a ball, and with more than {FORMED_SIDE} columns, nothing tells how flat P "
                "may be: only P >= -p(1 - p) is known"
            )
        return None

    def improve(self, engine: Engine, x: Vector, passes: float = 10.0) -> float:
        """The best lower bound after about so many more reads of the rows, which `engine` counts.

        The budget is kept to within what a single step reads, which is five times, and six more at the start.
        `Exhausted` is raised where the engine's own budget ends.
        """
        if self._steps is None:
            self._steps = ExactAUC().steps(self.problem, engine, x, np.random.default_rng(0))
        stop = engine.n_gradients + passes * self.problem.n
        while not self.is_done and engine.n_gradients < stop:
            try:
                iterate = next(self._steps)
            except StopIteration:
                self.is_done = True
                break
            if iterate is not None:
                self.lower_bound = max(self.lower_bound, iterate.lower_bound)
                if self.best is None or iterate.objective < self.best.objective:
                    self.best = iterate
        return self.lower_bound
