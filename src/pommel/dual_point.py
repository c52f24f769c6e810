"""A dual point of a DRO problem that coordinate ascent improves, with the model and the lower bound it stands for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dnrm2

from pommel._jit import NotCompilable, pointer
from pommel.certificates import EPS, dual_bound, no_bound
from pommel.divergences.chi_square import ChiSquare
from pommel.divergences.mean import Mean
from pommel.kernels import dual_coordinates as kernels
from pommel.kernels.rows import row_state
from pommel.problem import Problem, Vector
from pommel.problems.dro import DRO
from pommel.regularizers.l2 import L2

__all__ = ["DualPoint"]

CHUNK = 2**20
"""About so many entries of the rows are gone through without asking whether to go on."""

EARLY, PARTS = 2, 4
"""In the first epochs, while losses fall fast, the threshold is set anew after each of so many parts of the rows."""

WIDTH, NEAR = 0.01, 3.0
"""Where a warm start rounds kinks: over this share of the margin that a row's own first step would span. Rows without a
kink so many widths away are visited seldom at first; on a9a and w8a a pass so proves two to four times as much."""


class DualPoint:
    """Weights y and slopes s, one of each for a row, and x = -sum_i y_i s_i a_i / lam, kept within a ball.

    The bound that y and s prove needs no read of the rows, see `certificates.dual_bound`. An epoch makes one coordinate
    step for each row but for some of those at rest, each step exact for any convex loss, and goes on from where the
    last epochs pointed to.

    Parameters
    ----------
    problem : DRO
        One that `missing` finds nothing missing of.
    x, y, read : ndarray, optional
        Where to start: an x, its dual response A(x), and what `problem.read(x)` gave. This costs a pass over the rows,
        for the x that follows from the dual point, and one more each for y and `read` if they are not given. By
        default x = 0 and the first epoch is a start from scratch.

    Attributes
    ----------
    epochs : int
        How many have been made.
    """

    def __init__(
        self, problem: DRO, x: Vector | None = None, y: Vector | None = None, read: Vector | None = None
    ) -> None:
        lam, divergence = problem.regularizer.strong_convexity, problem.divergence
        depth = problem.weights.sum() * divergence.lam if isinstance(divergence, ChiSquare) else math.inf
        margins = np.zeros(problem.n)
        if x is not None:
            margins = problem.read(x) if read is None else read
        losses = problem.losses_of(margins)
        y = divergence.best_response(losses, problem.weights) if y is None else y
        cells = np.zeros((problem.n, kernels.CELLS))
        cells[:, kernels.Y], cells[:, kernels.LOSS], cells[:, kernels.KINK] = y, losses, np.nan
        cells[:, kernels.PERIOD], cells[:, kernels.LABEL] = 1.0, problem.labels
        cells[:, kernels.REFERENCE], cells[:, kernels.CURVATURE] = problem.y0, problem.rows.squared_norms / lam
        scalars = np.zeros(kernels.SCALARS)
        scalars[kernels.TAU] = float(y @ (losses - divergence.gradient(y, problem.weights)))
        scalars[kernels.SHARE] = 1.0
        self.problem, self.epochs = problem, 0
        self._rows = row_state(problem.rows)
        self._ascent = kernels.Ascent(
            pointer(problem.loss),
            cells,
            np.zeros((problem.d, 1)),
            scalars,
            lam,
            1.0 / depth,
            float(problem.primal_set.radius),
        )
        self._previous = np.zeros(problem.d)
        self._theta, self._is_whole, self._best = 1.0, True, -math.inf
        self._is_cold = x is None
        # Bounds of the rounding in z, in units of EPS: since z was computed anew, and what the last epoch added to it.
        self._drift = self._carried = 0.0
        if x is not None:
            self._warm_start(margins)
        self._balance()

    @staticmethod
    def missing(problem: Problem) -> str | None:
        """Why a problem has no dual that coordinates can climb here, None if it has."""
        if type(problem) is not DRO:
            return f"it takes DRO problems, not {type(problem).__name__}"
        if type(problem.divergence) not in (ChiSquare, Mean):
            return f"the threshold of {problem.divergence!r} is not known: it takes ChiSquare and Mean"
        if type(problem.regularizer) is not L2:
            return f"{problem.regularizer!r} leaves x undetermined by the dual: it takes L2(lam) with lam > 0"
        if (reason := no_bound(problem)) is not None:
            return reason
        try:
            pointer(problem.loss)
        except NotCompilable as error:
            return str(error)
        return None

    @property
    def x(self) -> Vector:
        """The x that belongs to the point. A new array."""
        return self.problem.primal_set.project(self._ascent.vectors[:, 0].copy())

    def epoch(self, rng: np.random.Generator, permit: Callable[[int], bool] = lambda rows: True) -> bool:
        """Make one pass, in random order, over the rows that are due; False if it was not made to its end.

        `permit` is asked before every chunk of rows, with their number, so that they can be paid for; a false answer
        ends the epoch. `x` is then as good as any, and `bound` is that of before.
        """
        order = self._due(rng)
        self._extrapolate()
        entries = max(self.problem.rows.X.size // self.problem.n, 1)
        size = min(max(CHUNK // entries, 1), -(-order.size // (PARTS if self.epochs < EARLY else 1)))
        for first in range(0, order.size, max(size, 1)):
            chunk = order[first : first + size]
            if not permit(chunk.size):
                return False
            self._step(chunk)
            if self.epochs < EARLY:
                self._balance()
        self._balance()
        self.epochs, self._is_whole = self.epochs + 1, True
        return True

    def _step(self, chunk: NDArray[np.int64]) -> None:
        """Make steps. Each adds two roundings of z, which extrapolations carry on, theta times as far in all."""
        kernels.dual_steps(self._rows, self._ascent, chunk)
        made = 4.0 * chunk.size * self._theta * math.sqrt(self._ascent.scalars[kernels.LARGEST])
        self._drift, self._carried = self._drift + made, self._carried + made

    def bound(self) -> float:
        """The best lower bound of min P that the point, as it stood after one of the epochs, proved when asked."""
        y = np.ascontiguousarray(self._ascent.cells[:, kernels.Y])
        total = float(y.sum())
        if self._is_whole and total > 0.0:
            u = (-self._ascent.lam / total) * self._ascent.vectors[:, 0]
            slopes = np.ascontiguousarray(self._ascent.cells[:, kernels.SLOPE])
            self._best = max(self._best, dual_bound(self.problem, y / total, slopes, u) - self.rounding / total)
        return self._best

    @property
    def rounding(self) -> float:
        """How much of a bound is given away for the rounding that x has gathered since it was last computed anew."""
        ascent = self._ascent
        reached = min(float(dnrm2(ascent.vectors[:, 0])), ascent.radius)  # how steep g* is at u = -lam z
        return reached * ascent.lam * EPS * self._drift

    def settle(self) -> None:
        """Forget where the last epochs pointed to: x then comes closer to what the bound already knows."""
        self._theta = 1.0

    def refresh(self) -> None:
        """Compute x anew from the weights and slopes, for a read of the rows: the rounding of many steps is gone."""
        products, z = np.ascontiguousarray(self._ascent.cells[:, kernels.PRODUCT]), self._ascent.vectors[:, 0]
        fresh = self.problem.rows.rmatvec(products) / -self._ascent.lam
        self._previous += fresh - z
        z[:] = fresh
        self._drift = 0.0

    def _due(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """The rows to visit. Those that are visited every so many epochs are spread over these by their number."""
        if (self.epochs < EARLY and self._is_cold) or not self._is_whole:
            return rng.permutation(self.problem.n)
        period = self._ascent.cells[:, kernels.PERIOD].astype(np.int64)  # a power of two
        turn = np.arange(self.epochs, self.epochs + self.problem.n)
        return rng.permutation(np.flatnonzero(turn & (period - 1) == 0))

    def _extrapolate(self) -> None:
        """Nesterov's momentum from epoch to epoch, from the start again where steps turn against it.

        x follows linearly. Products may leave their domain on the way: the row's next step brings them back.
        """
        factor = 0.0
        if not self._is_whole or self._ascent.scalars[kernels.ALIGNMENT] < 0.0:
            self._theta = 1.0
        if self._is_whole and self.epochs >= EARLY:
            theta = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self._theta**2))
            factor, self._theta = (self._theta - 1.0) / theta, theta
        kernels.extrapolate(self._ascent, self._previous, factor)
        self._drift, self._carried = max(self._drift, self._carried), 0.0
        self._is_whole = False

    def _balance(self) -> None:
        if self._ascent.inverse_depth > 0.0:
            kernels.balance(self._ascent)

    def _warm_start(self, margins: Vector) -> None:
        """Slopes of the loss at the margins, each the mean over a neighbourhood, which rounds the kinks."""
        cells, loss, labels = self._ascent.cells, self.problem.loss, self.problem.labels
        width = WIDTH * cells[:, kernels.Y] * cells[:, kernels.CURVATURE]
        width = np.maximum(width, 1e-6 * np.maximum(np.abs(margins), 1e-6))
        low, high = (loss.value(margins + side * width, labels) for side in (-1.0, 1.0))
        least, most, left, right = (loss.derivative(margins + t * width, labels) for t in (-1.0, 1.0, -NEAR, NEAR))
        slopes = np.clip((high - low) / (2.0 * width), least, most)  # between these but for rounding
        cells[:, kernels.PERIOD] = np.where(left == right, kernels.LONGEST_PERIOD, 1.0)
        cells[:, kernels.SLOPE] = slopes
        cells[:, kernels.PRODUCT] = cells[:, kernels.PREVIOUS] = cells[:, kernels.Y] * slopes
        self.refresh()
        self._previous[:] = self._ascent.vectors[:, 0]
        length = float(np.linalg.norm(self._previous))
        self._ascent.scalars[kernels.SQUARED_LENGTH] = length**2
        self._ascent.scalars[kernels.SHARE] = min(1.0, self._ascent.radius / length) if length > 0.0 else 1.0
