"""P around a point, as second-order methods see it: value, gradient and Hessian of a distributionally robust problem.

With margins m_i = a_i'x, slopes s_i = h'(m_i), y = A(x) and c from phi'' = diag(c) - c c' / sum(c),

    grad P = sum_i y_i s_i a_i + grad g,
    hess P = sum_i (y_i h''(m_i) + c_i s_i^2) a_i a_i' - q q' / sum(c) + hess g,    q = sum_i c_i s_i a_i.

Only products with rows cost a read of them; all else is sums over margins, taken in blocks that stay in a cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeGuard

import numpy as np

from pommel.certificates import dual_bound
from pommel.problem import KinkedLoss, Loss, SmoothLoss, Vector
from pommel.problems.dro import DRO

BLOCK = 2**13
"""Rows whose losses are taken at a time."""


def blocks(n: int) -> Iterator[slice]:
    """Rows a block at a time."""
    return (slice(first, first + BLOCK) for first in range(0, n, BLOCK))


class LocalModel:
    """P with the loss in place of the problem's own, around x, for g quadratic or zero."""

    def __init__(self, problem: DRO, loss: SmoothLoss, x: Vector, margins: Vector, near: float = np.nan) -> None:
        self.problem, self.loss, self.x, self.margins = problem, loss, x, margins
        losses, self.slopes = np.empty(problem.n), np.empty(problem.n)
        for some in blocks(problem.n):
            losses[some] = loss.value(margins[some], problem.labels[some])
            self.slopes[some] = loss.derivative(margins[some], problem.labels[some])
        self.y, risk, self.multiplier = problem.divergence.respond(losses, problem.weights, near)
        self.value = risk + problem.regularizer.value(x)

    @cached_property
    def combination(self) -> Vector:
        """sum_i y_i s_i a_i. Reads the rows."""
        return self.problem.rows.rmatvec(self.y * self.slopes)

    @cached_property
    def gradient(self) -> Vector:
        """Reads the rows."""
        return self.combination + self.problem.regularizer.subgradient(self.x)

    @cached_property
    def own_gap(self) -> float:
        """How far the value may be from the minimum of its own problem: the gap of Fenchel and Young for g alone."""
        g, radius = self.problem.regularizer, self.problem.primal_set.radius
        return g.value(self.x) + g.conjugate(self.combination, radius) + float(self.combination @ self.x)

    @cached_property
    def lower_bound(self) -> float:
        """Of the problem with its own loss: slopes of a smoothed one are in the domain of h*, too."""
        return dual_bound(self.problem, self.y, self.slopes, self.combination)

    def slope_along(self, direction: Vector, margins: Vector) -> float:
        """The derivative of P in a direction whose products with the rows are `margins`."""
        ahead = float((self.y * self.slopes) @ margins)
        return ahead + float(self.problem.regularizer.subgradient(self.x) @ direction)

    def moved(self, direction: Vector, margins: Vector, length: float) -> LocalModel:
        """The model a step further."""
        x = self.x + length * direction
        return LocalModel(self.problem, self.loss, x, self.margins + length * margins, self.multiplier)

    @cached_property
    def _curvatures(self) -> tuple[Vector, Vector, float]:
        """Weights of a_i a_i' in the Hessian, q, and 1 / sum(c). Reads the rows."""
        problem, weights = self.problem, np.empty(self.problem.n)
        c = problem.divergence.response_slopes(self.y, problem.weights)
        for some in blocks(problem.n):
            second = self.loss.second_derivative(self.margins[some], problem.labels[some])
            weights[some] = self.y[some] * second + c[some] * self.slopes[some] ** 2
        total = float(c.sum())
        if total == 0.0:  # phi is linear
            return weights, np.zeros(problem.d), 0.0
        return weights, problem.rows.rmatvec(c * self.slopes), 1.0 / total

    def hessian(self) -> Vector:
        """As a matrix. Reads the rows."""
        weights, q, share = self._curvatures
        hessian = self.problem.rows.gram(weights)
        hessian -= share * np.outer(q, q)
        hessian[np.diag_indices_from(hessian)] += self.problem.regularizer.strong_convexity
        return hessian

    def hessian_times(self, z: Vector) -> Vector:
        """Its product with a vector. Reads the rows twice."""
        (weights, q, share), rows = self._curvatures, self.problem.rows
        product = rows.rmatvec(weights * rows.matvec(z)) - share * float(q @ z) * q
        return product + self.problem.regularizer.strong_convexity * z

    def hessian_diagonal(self) -> Vector:
        """Its diagonal. Reads the rows."""
        weights, q, share = self._curvatures
        return self.problem.rows.squared_columns(weights) - share * q**2 + self.problem.regularizer.strong_convexity


def is_smooth(loss: Loss) -> TypeGuard[SmoothLoss]:
    """Whether the loss can be taken as it is."""
    return hasattr(loss, "second_derivative")


def can_be_rounded(loss: Loss) -> TypeGuard[KinkedLoss]:
    """Whether the loss knows how to round its kinks."""
    return hasattr(loss, "smoothed")
