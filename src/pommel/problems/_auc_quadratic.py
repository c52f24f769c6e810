"""An AUC problem as what it is once the dual variable is at its best: a convex quadratic in a ball.

    P = x'Qx / 2 - b'x,  |x| <= R,    x = w, with a and b at their best, or x = v where the ball bounds all of v.

With q = p(1 - p), delta the difference of the class means and C+, C- the class covariances, Q = 2q (C+ + C- + delta
delta') + lam I and b = 2q delta. Sums are centred by class, so that an offset of a feature costs no digits.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pommel.problem import Vector
from pommel.problems.auc import AUC, BLOCK
from pommel.regularizers.l2 import L2
from pommel.regularizers.none import NoRegularizer
from pommel.sets.l2_ball import L2Ball

EPS = float(np.finfo(np.float64).eps)

OFFSET_SHARE = 1e-2
"""Columns whose variance is below this share of their mean square are centred before their products are summed.

In sparse rows only nearly full columns can be such: a share s of entries bounds variance / mean square by 1 - s."""

CONSTANT = 64.0 * EPS
"""A column that differs by less than this share of its size is constant: the rest is rounding."""


def no_quadratic(problem: object) -> str | None:
    """Why a problem is no quadratic in a ball, None if it is one."""
    if not isinstance(problem, AUC):
        return f"a pommel.AUC, got {type(problem).__name__}"
    if not isinstance(problem.regularizer, L2 | NoRegularizer):
        return f"an L2 regularizer or none, got {problem.regularizer!r}"
    if not isinstance(problem.constraint, L2Ball | None):
        return f"an L2Ball as the constraint or none, got {problem.constraint!r}"
    return None


class Evaluation(NamedTuple):
    """P and its gradient at x, and what rounding may have done to either."""

    x: Vector
    v: Vector  # x with a and b
    y: Vector
    margins: Vector
    objective: float
    gradient: Vector  # Qx - b
    objective_error: float = np.inf
    gradient_error: Vector = np.zeros(0)


class AUCQuadratic:
    """Q, b and R of an AUC problem; no method reads the rows more often than it says."""

    def __init__(self, problem: AUC) -> None:
        self.problem, self.lam = problem, problem.regularizer.strong_convexity
        self.rows, self.used = problem.rows.packed()  # w is 0 in columns that hold nothing
        self.bounds_v = problem.on == "v" and problem.constraint is not None
        self.radius = np.inf if problem.constraint is None else problem.constraint.radius
        self.size = self.rows.d + 2 if self.bounds_v else self.rows.d
        self.strong_convexity = 0.0 if self.bounds_v else self.lam  # a and b are not regularized
        self.positive = (problem.labels > 0.0).astype(np.float64)
        self.negative = 1.0 - self.positive
        self.shares = self.positive / self.positive.sum(), self.negative / self.negative.sum()
        self.weights = 2.0 * problem.q * (self.shares[0] + self.shares[1])
        self.means = problem.mean_positive[self.used], problem.mean_negative[self.used]
        self.delta = self.means[0] - self.means[1]
        self.linear = np.zeros(self.size)
        self.linear[: self.delta.size] = 2.0 * problem.q * self.delta
        stored = getattr(self.rows.X, "indptr", None)
        self._lengths = np.asarray(2 + (self.rows.d if stored is None else np.diff(stored)))
        self._longest = int(self._lengths.max())
        self._moments: Vector | None = None

    def lift(self, x: Vector) -> Vector:
        """The v that x stands for, in X."""
        v, problem = np.zeros(self.problem.d), self.problem
        v[:-2][self.used] = x[: self.delta.size]
        if self.bounds_v:
            v[-2:] = x[-2:]
        else:  # a and b are best for w as it is in X
            v = problem.primal_set.project(v)
            v[-2:] = [v[:-2][self.used] @ mean for mean in self.means]
        return problem.primal_set.project(v)

    def lower(self, v: Vector) -> Vector:
        """The x that stands for v."""
        w = v[:-2][self.used]
        return np.append(w, v[-2:]) if self.bounds_v else w

    def product(self, x: Vector) -> Vector:
        """Qx, for two reads of the rows."""
        return self._product(x, self.rows.matvec(x[: self.delta.size]))

    def _product(self, x: Vector, margins: Vector) -> Vector:
        w = x[: self.delta.size]
        residuals = self.weights * self._residuals(x, margins)
        product = self.rows.rmatvec(residuals)
        product += (2.0 * self.problem.q * float(self.delta @ w)) * self.delta
        if self.lam > 0.0:
            product += self.lam * w
        if self.bounds_v:
            product = np.append(product, [-self.positive @ residuals, -self.negative @ residuals])
        return product

    def _residuals(self, x: Vector, margins: Vector) -> Vector:
        """w'a_i - a or - b; at the best a and b they are centred, in two rounds: the first leaves rounding."""
        if self.bounds_v:
            return margins - x[-2] * self.positive - x[-1] * self.negative
        for _ in range(2):
            centers = float(self.shares[0] @ margins), float(self.shares[1] @ margins)
            margins = margins - centers[0] * self.positive - centers[1] * self.negative
        return margins

    def evaluate(self, x: Vector) -> Evaluation:
        """P and its gradient, for two reads of the rows; a third one, once, for the lengths of rows."""
        problem, v = self.problem, self.lift(x)
        x = self.lower(v)
        w = x[: self.delta.size]
        margins, y = self.rows.matvec(w), problem.best_response(v)
        objective = problem._saddle(v, y, margins)
        gradient = self._product(x, margins) - self.linear

        sizes = float(np.sqrt(self.weights @ self.rows.squared_norms)) * float(np.linalg.norm(w))
        sizes += float(np.sqrt(2.0 * problem.q)) * float(np.linalg.norm(v[-2:]))
        reach = _gamma(self._longest) * sizes
        return self._with_errors(Evaluation(x, v, y, margins, objective, gradient), reach)

    def sharpened(self, at: Evaluation) -> Evaluation:
        """The same with errors from the entries that margins sum up, for one more read of the rows."""
        sizes = self.rows.absolute_matvec(at.x[: self.delta.size])
        sizes += abs(at.v[-2]) * self.positive + abs(at.v[-1]) * self.negative
        return self._with_errors(at, float(np.sqrt(self.weights @ (_gamma(self._lengths) * sizes) ** 2)))

    def _with_errors(self, at: Evaluation, shaken: float) -> Evaluation:
        """First-order effects of rounding in margins, by `shaken` in all, in sums over rows and in inner products."""
        problem, q, w = self.problem, self.problem.q, at.x[: self.delta.size]
        residuals, dense = self._residuals(at.x, at.margins), np.count_nonzero(w) + 2
        spread = float(np.sqrt(self.weights @ residuals**2))
        inner = _gamma(dense) * float(np.abs(w) @ np.abs(self.delta))
        objective = spread * shaken + 2.0 * q * (abs(1.0 + float(at.y[0])) + inner) * inner
        objective += _gamma(min(problem.n, BLOCK)) * spread**2 + 8.0 * EPS * q + _gamma(dense) * self.lam * float(w @ w)
        gradient = 2.0 * EPS * np.abs(self.linear)
        summed = _gamma(problem.n + 4) * spread
        gradient[: w.size] += shaken * np.sqrt(self.diagonal[: w.size]) + summed * np.sqrt(self.moments)
        gradient[: w.size] += 2.0 * q * inner * np.abs(self.delta) + 4.0 * EPS * self.lam * np.abs(w)
        if self.bounds_v:
            gradient[-2:] += summed + shaken
        return at._replace(objective_error=objective, gradient_error=gradient)

    def seen(self, x: Vector) -> tuple[float, float]:
        """sqrt(x'Qx) as the rows have it, and what rounding alone could make of it; one read."""
        w = x[: self.delta.size]
        residuals = self._residuals(x, self.rows.matvec(w))
        # Also what summing Q over all rows has lost, which shows in its null space.
        form = self.weights @ residuals**2 + 2.0 * self.problem.q * float(self.delta @ w) ** 2 + self.lam * (w @ w)
        lengths = np.sqrt(self.moments) @ np.abs(w) + float(np.linalg.norm(x[w.size :]))
        return float(np.sqrt(form)), (self._longest + self.problem.n) * EPS * lengths

    @property
    def moments(self) -> Vector:
        """2q times the sums over both classes of a column's mean square; one read, unless `matrix` has made it."""
        if self._moments is None:
            self._moments = self.rows.squared_columns(self.weights)
        return self._moments

    @cached_property
    def diagonal(self) -> Vector:
        """That of Q."""
        q = self.problem.q
        diagonal = np.full(self.size, 2.0 * q)
        squares = 2.0 * q * (self.means[0] ** 2 + self.means[1] ** 2)
        spread = np.maximum(self.moments - squares, EPS * self.moments)
        diagonal[: spread.size] = spread + 2.0 * q * self.delta**2 + self.lam
        if self.bounds_v:
            diagonal[: spread.size] += squares
        return diagonal

    def matrix(self) -> Vector:
        """Q, for one read of the rows, or two where columns have a large offset."""
        q, means = self.problem.q, self.means
        squares = 2.0 * q * (means[0] ** 2 + means[1] ** 2)
        gram = self.rows.gram(self.weights)
        self._moments = np.diag(gram).copy()
        is_offset = self._moments - squares < OFFSET_SHARE * self._moments
        if is_offset.any():
            shifts = [np.where(is_offset, mean, 0.0) for mean in means]
            gram = self.rows.gram(2.0 * q * self.shares[0], shifts[0]) + self.rows.gram(
                2.0 * q * self.shares[1], shifts[1]
            )
            means = np.where(is_offset, 0.0, means[0]), np.where(is_offset, 0.0, means[1])
        gram += (
            2.0 * q * (np.outer(self.delta, self.delta) - np.outer(means[0], means[0]) - np.outer(means[1], means[1]))
        )
        constant = np.diag(gram) <= CONSTANT**2 * self._moments
        gram[constant], gram[:, constant] = 0.0, 0.0
        gram[np.diag_indices_from(gram)] += self.lam
        if not self.bounds_v:
            return gram
        full = np.zeros((self.size, self.size))
        full[:-2, :-2] = gram
        for t, mean in ((-2, self.means[0]), (-1, self.means[1])):
            along = np.append(mean, [0.0, 0.0])
            along[t] = -1.0
            full += 2.0 * q * np.outer(along, along)
        return full


def _gamma(terms: Any) -> Any:
    """What rounding may take of a sum: terms * EPS / 2, or a multiple of the root that is not met in practice.

    References
    ----------
    .. [1] Higham and Mary, A new approach to probabilistic rounding error analysis, 2019.
    """
    return np.minimum(terms, 16.0 * np.sqrt(terms)) * (EPS / 2.0)
