"""Distributionally robust linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pommel._validation import check_binary_labels, check_values, check_weights
from pommel.losses.hinge import Hinge
from pommel.problem import MIX, Constants, ConvexSet, Divergence, Loss, Regularizer, Sampling, Vector, check_part
from pommel.problems._error_bound import error_bound
from pommel.problems._weighted_losses import WeightedLosses
from pommel.regularizers.none import NoRegularizer
from pommel.rows import Rows
from pommel.sets.whole_space import WholeSpace

__all__ = ["DRO"]

Indices = NDArray[np.intp]


class DRO(WeightedLosses):
    r"""Distributionally robust optimisation of a linear model.

    .. math:: \min_{x \in X} \max_{y \in Y} \; \sum_i y_i h(a_i^\top x, b_i) - \varphi^*(y) + g(x)

    The adversary y moves weight to the rows with the largest losses, and pays phi*(y) for leaving the reference
    distribution y0. With `Mean()` there is no adversary and the problem is plain (regularised) risk minimisation.

    Parameters
    ----------
    X : array-like, sparse matrix or Rows of shape (n, d)
        The rows a_i. Give a `Rows` for an intercept column or column scales.
    labels : array-like of shape (n,)
        Two classes of any type; the larger one is b = +1. See `classes`.
    loss : Loss, default=Hinge()
        The loss h.
    divergence : Divergence
        phi*, for example ``ChiSquare(1 / n)``.
    regularizer : Regularizer, optional
        g, for example ``L2(1 / n)``; none by default.
    constraint : ConvexSet, optional
        X; the whole space by default.
    sample_weight : array-like of shape (n,), optional
        y0 is proportional to it and n is its sum: an integer weight stands for a repeated row, zero for a removed one.

    Attributes
    ----------
    n, d : int
        Rows and length of x.
    weights, y0 : ndarray of shape (n,)
        Sample weights and the reference distribution.
    classes : ndarray of shape (2,)
        The labels that became b = -1 and b = +1.

    References
    ----------
    .. [1] Yan, Xu, Lin, Zhang and Yang, Stochastic primal-dual algorithms with faster convergence than O(1/sqrt(T))
       for problems without bilinear structure, 2019, section 5.
    .. [2] Namkoong and Duchi, Stochastic gradient methods for distributionally robust optimization with
       f-divergences, NIPS 2016.

    Examples
    --------
    >>> import pommel as pm
    >>> p = pm.DRO([[1.0], [-1.0]], ["yes", "no"], divergence=pm.ChiSquare(0.5), regularizer=pm.L2(0.5))
    >>> p.objective(np.zeros(1))
    1.0
    """

    def __init__(
        self,
        X: Any,
        labels: ArrayLike,
        *,
        loss: Loss = Hinge(),
        divergence: Divergence,
        regularizer: Regularizer | None = None,
        constraint: ConvexSet | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self.rows = X if isinstance(X, Rows) else Rows(X)
        weights = check_weights(sample_weight, self.rows.n)
        self.labels, self.classes = check_binary_labels(labels, weights)
        check_part(loss, "loss", Loss, optional=("lipschitz", "smoothness", "infimum", "conjugate"))
        check_values(loss.value(np.zeros(2), np.ones(2)), f"{type(loss).__name__}.value")
        check_values(loss.derivative(np.zeros(2), np.ones(2)), f"{type(loss).__name__}.derivative")
        self.loss = loss
        super().__init__(
            d=self.rows.d,
            weights=weights,
            divergence=divergence,
            regularizer=NoRegularizer() if regularizer is None else regularizer,
            primal_set=WholeSpace() if constraint is None else constraint,
        )

    def read(self, x: Vector) -> Vector:
        return self.rows.matvec(x)

    def losses_of(self, read: Vector) -> Vector:
        return self.loss.value(read, self.labels)

    def weighted_gradient(self, x: Vector, y: Vector) -> Vector:
        return self.rows.rmatvec(y * self.loss.derivative(self.rows.matvec(x), self.labels))

    def loss_and_gradient(self, x: Vector, i: int) -> tuple[float, Vector]:
        row, label = self.rows.row(i), self.labels[i]
        margin = row @ x
        return self.loss.value(margin, label), self.loss.derivative(margin, label) * row

    def second_moments(self, x: Vector, share: Vector, q: Vector, read: Vector) -> tuple[float, float]:
        slopes, losses = self.loss.derivative(read, self.labels), self.losses_of(read)
        inverse_q = np.divide(1.0, q, out=np.zeros(self.n), where=q > 0.0)
        moment_x = (q * share**2) @ (slopes**2 * self.rows.squared_norms)
        moment_y = (self.dual_set.metric * inverse_q) @ losses**2
        return float(moment_x), float(moment_y)

    def like(self, **parts: Any) -> DRO:
        """The same with another `divergence`, `regularizer`, `loss` or `constraint`; nothing is read."""
        other = object.__new__(DRO)
        other.rows, other.labels, other.classes = self.rows, self.labels, self.classes
        other.loss = parts.pop("loss", self.loss)
        constraint = parts.pop("constraint", self.primal_set)
        kept: dict[str, Any] = {"divergence": self.divergence, "regularizer": self.regularizer}
        super(DRO, other).__init__(d=self.d, weights=self.weights, primal_set=constraint, **kept | parts)
        return other

    def part(self, some: Indices) -> DRO | None:
        """The problem on some of its rows, which stand for the others, too: n stays. None if they are of one class."""
        weights, labels = self.weights[some], self.labels[some]
        if not weights.any() or np.ptp(labels[weights > 0.0]) == 0.0:
            return None
        return DRO(
            self.rows.part(some),
            labels,
            loss=self.loss,
            divergence=self.divergence,
            regularizer=self.regularizer,
            constraint=self.primal_set,
            sample_weight=weights * (self.weights.sum() / weights.sum()),
        )

    def lower_bound(self) -> float:
        return float(getattr(self.loss, "infimum", -np.inf))

    def constants(self, sampling: Sampling = "uniform", objective: float | None = None) -> Constants:
        """Bounds that hold on X where |x| <= R, a ball that contains every minimiser.

        R is the least of: the constraint's own radius and, if 0 lies in X: sqrt((P(0) - inf h) / mu), because the
        strongly convex P falls by at least mu |x*|^2 / 2 on the way to x* and mu |x*|^2 / 2 of P(x*) is the
        regularizer; max|a_i| Lip(h) / mu, because then mu x* is no longer than a mean of loss gradients. If it does
        not, |x_0| + sqrt(2 (P(x_0) - inf h) / mu) for the point x_0 of X nearest to 0.
        """
        why: dict[str, str] = {}
        mu = self.regularizer.strong_convexity
        kept = self.weights > 0.0
        row_norms = np.sqrt(self.rows.squared_norms[kept])
        lipschitz, total = float(getattr(self.loss, "lipschitz", np.inf)), self.weights.sum()
        x0 = self.primal_set.project(np.zeros(self.d))
        epsilon0 = (self.objective(x0) if objective is None else objective) - self.lower_bound()
        radius = self.primal_set.radius
        if mu > 0.0 and not x0.any():
            radius = min(radius, np.sqrt(epsilon0 / mu), row_norms.max() * lipschitz / mu)
        elif mu > 0.0:
            radius = min(radius, float(np.linalg.norm(x0)) + np.sqrt(2.0 * epsilon0 / mu))
        # No y_i / q_i is above 1 / share_i, no 1 / q_i above 1 / ((1 - gamma) y0_i).
        gamma = MIX[sampling]
        share = self.y0[kept] if gamma == 0.0 else np.full(kept.sum(), gamma)

        M = B = G = None
        if not np.isfinite(lipschitz):
            why["M"] = why["B"] = why["G"] = f"{self.loss!r} has no Lipschitz constant"
        elif not np.isfinite(radius):
            why["M"] = why["B"] = "X is unbounded and g is not strongly convex, so iterates may go anywhere"
        else:
            M = float((row_norms / share).max() * lipschitz + self.regularizer.lipschitz(radius))
            at_zero = self.loss.value(np.zeros(kept.sum()), self.labels[kept])
            largest = np.abs(at_zero) + lipschitz * radius * row_norms
            gradient_bound = self.divergence.gradient_bound(self.weights)
            if sampling == "dual":
                why["B"] = "under i ~ y the gradient l_i / y_i is unbounded"
            elif gradient_bound is None:
                why["B"] = f"the gradient of {self.divergence!r} is unbounded on its domain"
            else:
                B = float((largest * total / np.sqrt(self.weights[kept])).max() / (1.0 - gamma) + gradient_bound)
        if np.isfinite(lipschitz):
            G = lipschitz * self.rows.spectral_norm_bound(self.weights)
        L, v = self.divergence.holder(self.weights)
        c, theta = error_bound(mu or None, self.primal_set)
        if c is None:
            why["c"] = why["theta"] = "g is not strongly convex and X is unbounded"
        if not mu > 0.0:
            why["mu"] = "g is not strongly convex"
        if not np.isfinite(epsilon0):
            why["epsilon0"] = f"{self.loss!r} has no lower bound"
        return Constants(
            M=M,
            B=B,
            G=G,
            L=L,
            v=v,
            mu=mu or None,
            c=c,
            theta=theta,
            epsilon0=epsilon0 if np.isfinite(epsilon0) else None,
            radius=float(radius),
            why=why,
        )

    def __repr__(self) -> str:
        parts = f"{self.rows!r}, {self.loss!r}, {self.divergence!r}, {self.regularizer!r}, {self.primal_set!r}"
        return f"DRO({parts})"
