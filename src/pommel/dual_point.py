"""A dual point of a DRO problem, with the model and the lower bound that follow from it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pommel._jit import NotCompilable, pointer
from pommel.certificates import dual_bound, no_bound
from pommel.divergences.chi_square import ChiSquare
from pommel.divergences.mean import Mean
from pommel.kernels import dual_coordinates as kernels
from pommel.kernels.rows import row_state
from pommel.problem import Vector
from pommel.problems.dro import DRO

__all__ = ["DualPoint"]

CHUNK = 2**21
"""Entries of the rows that are visited without asking whether to go on."""

FIRST_PARTS = 4
"""In the first epochs losses fall fast: the threshold is set anew after each of so many parts."""


class DualPoint:
    def __init__(self, problem: DRO, x: Vector | None = None, y: Vector | None = None, read: Vector | None = None) -> None:
        self.problem, self.epochs = problem, 0
        lam, radius = problem.regularizer.strong_convexity, problem.primal_set.radius
        self.momentum = True
        self.boost=0.0; self.fixed = False; self.renew=False; self.cap=1e9;self.redraw=True
        self._rows = row_state(problem.rows)
        depth = problem.weights.sum() * problem.divergence.lam if isinstance(problem.divergence, ChiSquare) else np.inf
        cells = np.zeros((problem.n, kernels.CELLS))
        cells[:, kernels.KINK], cells[:, kernels.PERIOD], cells[:, kernels.Y] = np.nan, 1.0, problem.y0
        cells[:, kernels.LABEL], cells[:, kernels.REFERENCE] = problem.labels, problem.y0
        cells[:, kernels.CURVATURE] = problem.rows.squared_norms / lam
        cells[:, kernels.LOSS] = problem.losses_of(np.zeros(problem.n))
        scalars = np.zeros(5)
        scalars[kernels.SHARE] = 1.0
        self._ascent = kernels.Ascent(pointer(problem.loss), cells, np.zeros((problem.d, 1)), scalars, lam, 1.0 / depth, radius)
        self._balance()
        self._previous = np.zeros(problem.d)
        self._theta = 1.0
        self._whole = True
        self.best = -np.inf

    @property
    def x(self) -> Vector:
        return self._ascent.scalars[kernels.SHARE] * self._ascent.vectors[:, 0]

    @property
    def tau(self):
        return self._ascent.scalars[0]

    def epoch(self, rng: np.random.Generator, permit: Callable[[int], bool] = lambda rows: True) -> bool:
        cells, scalars = self._ascent.cells, self._ascent.scalars
        self._extrapolate()
        order = self._order(rng)
        parts = FIRST_PARTS if self.epochs < 2 else 1
        size = max(1, min(-(-order.size // parts), CHUNK * self.problem.n // max(self.problem.rows.X.size, 1)))
        for start in range(0, order.size, size):
            chunk = order[start : start + size]
            if not permit(chunk.size):
                return False
            kernels.dual_steps(self._rows, self._ascent, chunk)
            if self.epochs < 2:
                self._balance()
        self._balance()
        self.epochs += 1
        self._whole = True
        return True

    def _order(self, rng):
        if self.fixed:
            if self.epochs<2 or self.renew: self.perm=rng.permutation(self.problem.n); self.renew=False
            if self.epochs<2: return self.perm
            period = self._ascent.cells[:, kernels.PERIOD].astype(np.int64)[self.perm]
            return self.perm[((self.epochs+self.perm)&(period-1))==0]
        if self.epochs < 2:
            return rng.permutation(self.problem.n)
        period = self._ascent.cells[:, kernels.PERIOD].astype(np.int64)
        turn = np.arange(self.epochs, self.epochs + self.problem.n)
        return rng.permutation(np.flatnonzero((turn & (period - 1)) == 0))

    def _extrapolate(self) -> None:
        scalars = self._ascent.scalars
        factor = 0.0
        if self.momentum and self.epochs > 1:
            if scalars[kernels.ALIGNMENT] < 0.0:
                self._theta = 1.0
                self.renew=self.redraw
            self._theta=min(self._theta,self.cap)
            theta = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self._theta**2))
            factor, self._theta = (self._theta - 1.0) / theta, theta
        kernels.extrapolate(self._ascent, self._previous, factor)
        self._whole = False

    def _balance(self) -> None:
        if self._ascent.inverse_depth > 0.0:
            if self.epochs == 0 or not self.boost: kernels.balance_threshold(self._ascent)
            else: kernels.balance2(self._ascent, self.boost)

    def bound(self) -> float:
        if self._whole:
            y = self._ascent.cells[:, kernels.Y]
            total = y.sum()
            combination = (-self._ascent.lam / total) * self._ascent.vectors[:, 0]
            slopes = np.ascontiguousarray(self._ascent.cells[:, kernels.SLOPE])
            self.best = max(self.best, dual_bound(self.problem, y / total, slopes, combination))
        return self.best
