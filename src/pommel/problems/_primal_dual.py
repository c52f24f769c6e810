"""A robust linear model with a piecewise linear loss as a quadratic program, around a point of its interior.

With h(m) = max_k s_k m + r_k, shares y0, and kappa = 1 / D for the chi-square price D (y_i - y0_i)^2 / (2 y0_i), 0 for
weights that are fixed,

    min P = min_{x, tau, v}  lam |x|^2 / 2 + tau + sum_i y0_i (v_i - tau + kappa (v_i - tau)^2 / 2)
            where the slacks  w_ik = v_i - s_ik a_i'x - r_ik >= 0.

Their multipliers y0_i b_ik are a dual point: y_i = y0_i sum_k b_ik, slopes sum_k b_ik s_ik / sum_k b_ik. Both are
feasible at all times; what steps bring together is b_ik w_ik and 0, and lam x and the gradient it balances. Given dx
and dtau, the steps of a row are its own business: `pommel.kernels.complementary_pairs`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from pommel.certificates import dual_bound
from pommel.kernels import complementary_pairs as pairs
from pommel.problem import PiecewiseLinearLoss, Vector
from pommel.problems.dro import DRO

FIRST_SLACK = 1.6
"""The smallest slack at the start, in units of what intercepts differ by."""

SPREAD = float(np.finfo(np.float64).eps)


class Direction(NamedTuple):
    """A step of everything; those of rows follow from it."""

    x: Vector
    tau: float
    margins: Vector
    target: float  # products b_ik w_ik are to be target + extra_ik
    extra: Vector
    length: float  # the longest step that keeps all weights and slacks >= 0, at most 1


class PrimalDual:
    """x, tau, and weights, slacks and levels of all rows. It starts at x = 0 with products that are all alike."""

    def __init__(self, problem: DRO) -> None:
        self.problem, n = problem, problem.n
        loss = cast(PiecewiseLinearLoss, problem.loss)
        pieces = [np.broadcast_to(part, n) for piece in loss.pieces(problem.labels) for part in piece]
        self.slopes, intercepts = np.stack(pieces[0::2], axis=1), np.stack(pieces[1::2], axis=1)
        curvature = problem.divergence.curvature(problem.weights)
        self.kappa = float(problem.weights.sum()) / curvature if curvature else 0.0
        self.x, self.margins = np.zeros(problem.d), np.zeros(n)
        self.tau = float(intercepts.max()) + FIRST_SLACK * (float(np.ptp(intercepts)) or self._unit)
        self.levels = np.full(n, self.tau)
        self.slacks = self.tau - intercepts
        self.weights = 1.0 / self.slacks
        self.weights /= self.weights.sum(axis=1, keepdims=True)

    def eliminate(self) -> None:
        """Write down what rows say of dx and dtau. Reads the rows."""
        n = self.problem.n
        self._masses, self._tilts, self._curvatures, sums = *np.empty((3, n)), np.empty((n, 3))
        results = self._rows(pairs.eliminate, self._masses, self._tilts, self._curvatures, sums)
        self._own, self._rest, self.products, self._total = results
        self._forces, self._border, self._pull = self.problem.rows.rmatvec(sums).T

    @property
    def lower_bound(self) -> float:
        """Of min P, from the dual point."""
        if self.kappa == 0.0:
            return dual_bound(self.problem, self.problem.y0, self._tilts, self._forces)
        return dual_bound(self.problem, self._masses / self._total, self._tilts, self._forces / self._total)

    def factorise(self) -> None:
        """Cholesky's factor of the normal equations in dx, tau eliminated. Reads the rows."""
        matrix = self.problem.rows.gram(self._curvatures)
        if self.kappa > 0.0:
            matrix -= np.outer(self._border, self._border / self._own)
        diagonal = np.diag_indices_from(matrix)
        matrix[diagonal] += self.problem.regularizer.strong_convexity
        lift = SPREAD * float(np.trace(matrix))
        while True:
            try:
                self._factor = cho_factor(matrix, check_finite=False)
                return
            except LinAlgError:  # rounding
                matrix[diagonal] += lift
                lift *= 100.0

    def predictor(self) -> tuple[Direction, float]:
        """The step towards products 0, and what it would leave of their sum. Reads the rows."""
        extra = np.empty_like(self.slopes)
        self._bends, self._centring = np.empty((2, self.problem.n))
        x, tau, margins = self._solve(self._pull, self._rest)
        steepest, left, self._bend, self._center = self._rows(
            pairs.predict, margins, tau, extra, self._bends, self._centring
        )
        length = 1.0 / max(1.0, steepest)
        return Direction(x, tau, margins, 0.0, extra, length), (1.0 - length) * self.products - length**2 * left

    def corrector(self, predictor: Direction, target: float) -> Direction:
        """The step towards products that are all `target`, to second order. Reads the rows twice."""
        pull = self.problem.rows.rmatvec(self._bends + target * self._centring)
        return self._direction(pull, self._bend + target * self._center, target, predictor.extra)

    def recentred(self, step: Direction, length: float, low: float, high: float) -> Direction:
        """A step after which, at that length, products lie in [low, high], to first order. Reads the rows twice."""
        extra, pulls = np.empty_like(step.extra), np.empty(self.problem.n)
        rest = self._rows(pairs.recenter, *step[2:0:-1], *step[3:5], length, low, high, extra, pulls)
        return self._direction(self.problem.rows.rmatvec(pulls), rest, step.target, extra)

    def move(self, step: Direction, length: float) -> None:
        """Make a step."""
        self._rows(pairs.move, *step[2:0:-1], *step[3:5], length)
        self.x, self.margins = self.x + length * step.x, self.margins + length * step.margins
        self.tau += length * step.tau

    def _direction(self, pull: Vector, rest: float, target: float, extra: Vector) -> Direction:
        x, tau, margins = self._solve(self._pull + pull, self._rest + rest)
        steepest = self._rows(pairs.steepness, margins, tau, target, extra)
        return Direction(x, tau, margins, target, extra, 1.0 / max(1.0, steepest))

    def _solve(self, pull: Vector, rest: float) -> tuple[Vector, float, Vector]:
        """The dx and dtau of the normal equations, and the margins of dx."""
        pull = pull - self.problem.regularizer.subgradient(self.x)
        if self.kappa > 0.0:
            pull = pull + self._border * (rest / self._own)
        x = cho_solve(self._factor, pull, check_finite=False)
        tau = float(self._border @ x + rest) / self._own if self.kappa > 0.0 else 0.0
        return x, tau, self.problem.rows.matvec(x)

    def _rows(self, kernel: Any, *arguments: Any) -> Any:
        state = self.weights, self.slacks, self.slopes, self.levels, self.problem.y0, self.tau, self.kappa
        return kernel(*state, *arguments)

    @cached_property
    def _unit(self) -> float:
        """Of losses, where intercepts are all alike: what a gradient step at 0 gains, or any."""
        problem = self.problem
        size = float(problem.y0 @ (np.abs(self.slopes).max(axis=1) ** 2 * problem.rows.squared_norms))
        return size / problem.regularizer.strong_convexity or 1.0
