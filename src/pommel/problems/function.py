"""A problem written as callables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pommel._validation import check_count, check_weights
from pommel.problem import Constants, ConvexSet, Divergence, Regularizer, Response, Sampling, Vector
from pommel.problems._error_bound import error_bound
from pommel.problems._weighted_losses import WeightedLosses
from pommel.regularizers.none import NoRegularizer
from pommel.sets.whole_space import WholeSpace

__all__ = ["FunctionProblem"]

PILOT = 256
"""Rows used to estimate the size of stochastic gradients."""


class FunctionProblem(WeightedLosses):
    r"""A min-max problem over convex losses of any form, given as functions.

    .. math:: \min_{x \in X} \max_{y \in Y} \; \sum_i y_i \ell_i(x) - \varphi^*(y) + g(x)

    Test one with `check_problem`, which tells a wrong gradient from a wrong sign.

    Parameters
    ----------
    losses : callable
        x -> array of shape (n,), all component losses. Each is convex.
    gradient : callable
        (x, i) -> array of shape (d,), a subgradient of the i-th loss.
    n, d : int
        Number of losses and length of x.
    divergence : Divergence
        phi* and its domain Y.
    regularizer : Regularizer, optional
        g; none by default.
    primal_set : ConvexSet, optional
        X; the whole space by default.
    loss : callable, optional
        (x, i) -> float, one component loss; by default entry i of `losses(x)`, at the price of all of them.
    sample_weight : array-like of shape (n,), optional
        As for `DRO`.
    constants : Constants, optional
        M, B, G, epsilon0, ... where you know them: `from_theory` needs them. L, v and, with a strongly convex
        regularizer, mu, c and theta are filled in.
    lower_bound : float, default=-inf
        A number that P never goes below, for example 0 for losses that are not negative.

    Examples
    --------
    >>> import pommel as pm
    >>> centers = np.array([[0.0, 0.0], [2.0, 0.0]])
    >>> p = pm.FunctionProblem(
    ...     losses=lambda x: ((x - centers) ** 2).sum(axis=1),
    ...     gradient=lambda x, i: 2.0 * (x - centers[i]),
    ...     n=2, d=2, divergence=pm.ChiSquare(0.1), lower_bound=0.0)
    >>> pm.check_problem(p)
    """

    def __init__(
        self,
        *,
        losses: Callable[[Vector], Any],
        gradient: Callable[[Vector, int], Any],
        n: int,
        d: int,
        divergence: Divergence,
        regularizer: Regularizer | None = None,
        primal_set: ConvexSet | None = None,
        loss: Callable[[Vector, int], float] | None = None,
        sample_weight: ArrayLike | None = None,
        constants: Constants | None = None,
        lower_bound: float = -np.inf,
    ) -> None:
        super().__init__(
            d=check_count(d, "d"),
            weights=check_weights(sample_weight, check_count(n, "n")),
            divergence=divergence,
            regularizer=NoRegularizer() if regularizer is None else regularizer,
            primal_set=WholeSpace() if primal_set is None else primal_set,
        )
        self._losses, self._gradient, self._loss = losses, gradient, loss
        self._constants, self._lower_bound = constants, float(lower_bound)

    def read(self, x: Vector) -> Vector:
        values = np.asarray(self._losses(x), dtype=np.float64)
        if values.shape != (self.n,):
            raise ValueError(f"losses(x) must have shape ({self.n},), got {values.shape}")
        return values

    def losses_of(self, read: Vector) -> Vector:
        return read

    def respond(self, x: Vector, read: Vector | None = None) -> Response:
        """Without what was read: `natural_steps` needs gradients as well, up to a pass of them."""
        return super().respond(x, read)._replace(read=None)

    def weighted_gradient(self, x: Vector, y: Vector) -> Vector:
        total = np.zeros(self.d)
        for i in np.flatnonzero(y):
            total += y[i] * self._gradient_of(x, int(i))
        return total

    def loss_and_gradient(self, x: Vector, i: int) -> tuple[float, Vector]:
        loss = self.losses(x)[i] if self._loss is None else self._loss(x, i)
        return float(loss), self._gradient_of(x, i)

    def _gradient_of(self, x: Vector, i: int) -> Vector:
        gradient = np.asarray(self._gradient(x, i), dtype=np.float64)
        if gradient.shape != (self.d,):
            raise ValueError(f"gradient(x, i) must have shape ({self.d},), got {gradient.shape}")
        return gradient

    def second_moments(self, x: Vector, share: Vector, q: Vector, read: Vector) -> tuple[float, float]:
        """Over an even pick of rows: each costs a call of `gradient`."""
        rows = np.flatnonzero(q)
        rows = rows[np.linspace(0, rows.size - 1, min(rows.size, PILOT)).astype(int)]
        losses, metric = read[rows], np.broadcast_to(self.dual_set.metric, self.n)[rows]
        squares = np.array([np.sum(self._gradient_of(x, int(i)) ** 2) for i in rows])
        odds = q[rows] / q[rows].sum()
        moment_x = float(odds @ (share[rows] ** 2 * squares))
        return moment_x, float(odds @ (metric * (losses / q[rows]) ** 2))

    def lower_bound(self) -> float:
        return self._lower_bound

    def constants(self, sampling: Sampling = "uniform", objective: float | None = None) -> Constants:
        """Those given, completed by what the parts know. They are taken to hold for the sampling asked for."""
        given = Constants() if self._constants is None else self._constants
        L, v = self.divergence.holder(self.weights)
        mu = given.mu if given.mu is not None else self.regularizer.strong_convexity or None
        c, theta = given.c, given.theta
        if c is None and theta is None:
            c, theta = error_bound(mu, self.primal_set)
        epsilon0 = given.epsilon0
        if epsilon0 is None and np.isfinite(self._lower_bound):
            if objective is None:
                objective = self.objective(self.primal_set.project(np.zeros(self.d)))
            epsilon0 = objective - self._lower_bound
        known = Constants(
            M=given.M,
            B=given.B,
            G=given.G,
            L=L if given.L is None else given.L,
            v=v if given.v is None else given.v,
            mu=mu,
            c=c,
            theta=theta,
            epsilon0=epsilon0,
            radius=min(given.radius, self.primal_set.radius),
        )
        unknown = [field.name for field in fields(known) if getattr(known, field.name) is None]
        return replace(known, why=dict.fromkeys(unknown, "not given as FunctionProblem(constants=...)") | given.why)

    def __repr__(self) -> str:
        return (
            f"FunctionProblem(n={self.n}, d={self.d}, {self.divergence!r}, {self.regularizer!r}, {self.primal_set!r})"
        )
