"""The compiled engine: the reference engine's steps for linear models, at the price of a row's non-zeros."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

from pommel import kernels
from pommel._jit import NotCompilable
from pommel.engines.engine import GradientStep, Walk
from pommel.engines.reference import Reference
from pommel.kernels.gradient_step import NOT_FINITE, REFUSED, gradient_steps
from pommel.kernels.rows import row_state
from pommel.kernels.sampling import sampling_state
from pommel.problem import Problem, Vector
from pommel.rows import Rows


class LazyWalk(Walk):
    """A walk whose iterate and running sum are states of kernels."""

    finite = True

    def __init__(self, x: Vector, y: Vector, *, model: Any, sampling: Any, primal: Any, dual: Any) -> None:
        super().__init__(x, y)
        self.model, self.sampling, self.primal, self.dual = model, sampling, primal, dual
        self.measured = True  # no step has been made since the dual variable's distance from the start was measured

    def write_out(self) -> None:
        """The end of the walk: the states, the largest things in memory besides X, are let go."""
        self.x, self.y, self.sum_x = self.primal.point(), self.dual.point(), self.primal.running_sum()
        self.primal = self.dual = None


class Compiled(Reference):
    """Steps by kernels where a lazy form of them is known; by the reference engine, O(n + d) each, where none is."""

    name = "compiled"
    FIRST_CHUNK = 4096

    def __init__(self, problem: Problem, **limits: Any) -> None:
        super().__init__(problem, **limits)
        self._model = _first("model_state", problem)
        self._rows = row_state(problem.rows)  # type: ignore[attr-defined]

    @classmethod
    def missing(cls, problem: Problem) -> str | None:
        """Why a problem cannot run here, None if it can."""
        try:
            if not isinstance(getattr(problem, "rows", None), Rows) or _first("model_state", problem) is None:
                return f"there are no kernels for {type(problem).__name__}"
        except NotCompilable as error:
            return str(error)
        return None

    def begin(self, rule: GradientStep, x: Vector, y: Vector) -> Walk:
        primal, dual = _first("primal_state", self.problem, rule, x), _first("dual_state", self.problem, rule, y)
        if primal is None or dual is None:
            self.name = "compiled, with steps by the reference engine"
            return super().begin(rule, x, y)
        sampling = sampling_state(self.problem, rule)
        return LazyWalk(x, y, model=self._model, sampling=sampling, primal=primal, dual=dual)

    def advance(self, rule: GradientStep, walk: Walk, draws: Vector) -> None:
        if not isinstance(walk, LazyWalk):
            super().advance(rule, walk, draws)
            return
        while draws.size:
            steps, outcome = self._steps(walk, walk.dual, draws)
            walk.steps, draws = walk.steps + steps, draws[steps:]
            walk.measured = walk.measured and steps == 0
            if outcome == NOT_FINITE:
                walk.finite = False
                return
            if outcome == REFUSED and not walk.measured:  # the ball may have been reached: see whether it has
                walk.dual, walk.measured = walk.dual.at(walk.dual.point(), rule.dual_set), True
            elif outcome == REFUSED:
                self._refused_step(rule, walk, draws[:1])
                draws = draws[1:]

    def _refused_step(self, rule: GradientStep, walk: LazyWalk, draw: Vector) -> None:
        """One step with y moved by the reference engine, whose projection knows the ball."""
        plain = Walk(walk.primal.point(), walk.dual.point(), walk.dual.center)
        super().advance(rule, plain, draw)
        steps, outcome = self._steps(walk, walk.dual.set_free(), draw)
        walk.steps, walk.finite = walk.steps + steps, plain.finite and outcome != NOT_FINITE
        walk.dual, walk.measured = walk.dual.at(plain.y, rule.dual_set), True

    def _steps(self, walk: LazyWalk, dual: Any, draws: Vector) -> tuple[int, int]:
        return gradient_steps(self._rows, walk.model, walk.sampling, walk.primal, dual, draws)


@cache
def _builders(kind: str) -> list[Callable[..., Any]]:
    names = (f"{kernels.__name__}.{info.name}" for info in pkgutil.iter_modules(kernels.__path__))
    modules = [importlib.import_module(name) for name in names]
    return [getattr(module, kind) for module in modules if hasattr(module, kind)]


def _first(kind: str, *arguments: Any) -> Any:
    """The state of the first structure that fits."""
    states = (build(*arguments) for build in _builders(kind))
    return next((state for state in states if state is not None), None)
