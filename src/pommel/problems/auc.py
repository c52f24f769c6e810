"""AUC maximisation with the square loss, as a min-max problem with a single dual variable."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches

from pommel._validation import check_binary_labels
from pommel.problem import Constants, ConvexSet, NaturalSteps, Regularizer, Response, Sampling, Vector, check_part
from pommel.problems._error_bound import error_bound
from pommel.regularizers.none import NoRegularizer
from pommel.rows import Rows
from pommel.sets.l2_ball import L2Ball
from pommel.sets.point import Point
from pommel.sets.product import Product
from pommel.sets.whole_space import WholeSpace

__all__ = ["AUC"]

BLOCK = 2**16
"""Rows a full pass works on at a time."""

NATURAL_SHARE = 1.5
"""Natural primal steps are this share of size / moment: longer than for other losses, as P is smooth. Measured."""

UNIT_SHARE = 0.3
"""The unit of a and b, as a share of the root mean square length of rows. Measured: 0.1 is slow, 1 noisy."""


class AUC:
    r"""Empirical AUC maximisation with the square loss (Ying, Wen and Lyu, 2016).

    .. math:: \min_{v = (w, a, b)} \max_\alpha \; \frac1n \sum_i F(w, a, b, \alpha; a_i, z_i) + g(w)

    With p the share of positives, k_i = 1 - p for a positive row and p for a negative one, t_i = a or b, and z_i = +-1:

    .. math:: F = k_i (w^\top a_i - t_i)^2 - 2 (1 + \alpha) k_i z_i w^\top a_i - p(1-p) \alpha^2

    In the terms of the library: l(v) = 2p(1-p) w'(mu_neg - mu_pos), phi*(alpha) = p(1-p) alpha^2, and all the rest is
    g, of which only sampled gradients are used. A(v) = w'(mu_neg - mu_pos). At the best a and b,

    .. math:: P = p(1-p) \left( \mathbb{E}_{\text{pairs}} [(1 - w^\top (x_+ - x_-))^2] - 1 \right) + g(w),

    a quadratic in w: class-balanced least squares. A constraint on v instead of w has another optimum once it binds.

    Parameters
    ----------
    X : array-like, sparse matrix or Rows of shape (n, d - 2)
        The rows a_i.
    labels : array-like of shape (n,)
        Two classes of any type; the larger one is positive.
    constraint : ConvexSet, optional
        For example ``L2Ball(10.0)``; none by default.
    on : {"w", "v"}, default="w"
        What the constraint bounds: w, with a and b free in the ranges they can take, or the whole v = (w, a, b) as in
        the paper's experiments.
    regularizer : Regularizer, optional
        g, a function of w; none by default.

    Attributes
    ----------
    n, d : int
        Rows and length of v: columns of X plus two.
    p : float
        Share of positives.
    classes : ndarray of shape (2,)
        The negative and the positive label.
    mean_positive, mean_negative : ndarray
        The class means, computed once.

    References
    ----------
    .. [1] Ying, Wen and Lyu, Stochastic online AUC maximization, NIPS 2016.
    .. [2] Yan, Xu, Lin, Zhang and Yang, Stochastic primal-dual algorithms with faster convergence than O(1/sqrt(T))
       for problems without bilinear structure, 2019, section 5.

    Examples
    --------
    >>> import pommel as pm
    >>> p = pm.AUC([[2.0], [1.0], [0.0]], [1, 0, 0], constraint=pm.L2Ball(10.0))
    >>> p.mean_positive - p.mean_negative
    array([1.5])
    """

    def __init__(
        self,
        X: Any,
        labels: ArrayLike,
        *,
        constraint: ConvexSet | None = None,
        on: Literal["w", "v"] = "w",
        regularizer: Regularizer | None = None,
    ) -> None:
        if on not in ("w", "v"):
            raise ValueError(f'on must be "w" or "v", got {on!r}')
        self.rows = X if isinstance(X, Rows) else Rows(X)
        self.n, self.d = self.rows.n, self.rows.d + 2
        self.labels, self.classes = check_binary_labels(labels, np.ones(self.n))
        self.constraint, self.on = constraint, on
        self.regularizer = NoRegularizer() if regularizer is None else regularizer
        check_part(self.regularizer, "regularizer", Regularizer, optional=("conjugate",))
        if constraint is not None:
            check_part(constraint, "constraint", ConvexSet)

        positive = self.labels > 0.0
        self.p = float(positive.mean())
        self.q = self.p * (1.0 - self.p)
        self.y0 = np.broadcast_to(1.0 / self.n, self.n)  # rows are drawn uniformly
        self.dual_curvature: float | None = 2.0 * self.q
        self.mean_positive = self.rows.rmatvec(positive / positive.sum())
        self._difference = self.rows.rmatvec(~positive / (~positive).sum())
        self._difference -= self.mean_positive  # A(v) = w'difference
        self._w_radius = self._bound_of_w()
        self.primal_set, self.dual_set = self._sets()

    @property
    def mean_negative(self) -> Vector:
        """Mean of the negative rows."""
        return self.mean_positive + self._difference

    def _bound_of_w(self) -> float:
        """|w| <= this in X: the constraint's radius, else sqrt(q / mu), for at a minimiser mu |w|^2 <= P(0) + q."""
        if self.constraint is not None:
            return self.constraint.radius
        mu = self.regularizer.strong_convexity
        return float(np.sqrt(self.q / mu)) if mu > 0.0 else np.inf

    @cached_property
    def _unit(self) -> float:
        """How much of a or b counts as length one of v, where w has a set of its own: a share of the length of rows.

        a and b are margins, so a step then changes them as it changes those of rows, in any units of features.
        """
        if self.constraint is not None and self.on == "v":
            return 1.0
        return UNIT_SHARE * float(np.sqrt(self.rows.squared_norms.mean())) or 1.0

    def _sets(self) -> tuple[ConvexSet, ConvexSet]:
        """X and Y: a, b and alpha are means of margins, so they cannot leave |w| times the length of a class mean."""
        dual_set = _ball(self._w_radius, self._difference)
        if self.constraint is not None and self.on == "v":
            return self.constraint, dual_set
        return Product(
            (self.d - 2, _ball(self._w_radius) if self.constraint is None else self.constraint),
            (1, _ball(self._w_radius, self.mean_positive)),
            (1, _ball(self._w_radius, self.mean_negative)),
            units=(1.0, self._unit, self._unit),
        ), dual_set

    def is_constraint_active(self, v: Vector, rtol: float = 1e-3) -> bool:
        """Whether w (or v) lies on the boundary of the constraint, up to a share `rtol` of its length.

        An average of iterates, which stochastic solvers return, lies a little inside when it should lie on it.
        """
        if self.constraint is None:
            return False
        point = v if self.on == "v" else v[:-2]
        outside = point * (1.0 + 2.0 * rtol)
        return bool(np.linalg.norm(self.constraint.project(outside) - outside) > rtol * np.linalg.norm(point) > 0.0)

    def losses(self, x: Vector) -> Vector:
        """l(v), of length one."""
        return np.array([2.0 * self.q * float(x[:-2] @ self._difference)])

    def best_response(self, x: Vector) -> Vector:
        return np.array([float(x[:-2] @ self._difference)])

    def objective(self, x: Vector) -> float:
        return self.saddle(x, self.best_response(x))

    def respond(self, x: Vector) -> Response:
        y, margins = self.best_response(x), self.rows.matvec(x[:-2])
        return Response(y, self._saddle(x, y, margins), None, margins)

    def saddle(self, x: Vector, y: Vector) -> float:
        return self._saddle(x, y, self.rows.matvec(x[:-2]))

    def _saddle(self, x: Vector, y: Vector, margins: Vector) -> float:
        w, alpha = x[:-2], float(y[0])
        squares = sum(k @ residuals**2 for _, k, residuals in self._blocks(x, margins)) / self.n
        bilinear = 2.0 * (1.0 + alpha) * float(w @ self._difference)
        return float(squares) + self.q * (bilinear - alpha**2) + self.regularizer.value(w)

    def gradients(self, x: Vector, y: Vector) -> tuple[Vector, Vector]:
        w, alpha = x[:-2], float(y[0])
        slopes, grad_t = np.empty(self.n), np.zeros(2)
        for some, k, residuals in self._blocks(x, self.rows.matvec(w)):
            labels, by_class = self.labels[some], -2.0 * k * residuals / self.n
            slopes[some] = -by_class - 2.0 * k * labels * (1.0 + alpha) / self.n
            grad_t += by_class[labels > 0.0].sum(), by_class[labels < 0.0].sum()
        grad_w = self.rows.rmatvec(slopes) + self.regularizer.subgradient(w)
        return np.concatenate([grad_w, grad_t]), self.losses(x) - 2.0 * self.q * alpha

    def draw(self, u: float, y: Vector, sampling: Sampling) -> int:
        _check_sampling(sampling)
        return int(u * self.n)

    def sample_gradients(
        self, x: Vector, y: Vector, i: int, sampling: Sampling = "uniform", center: float | None = None
    ) -> tuple[Vector, Vector]:
        _check_sampling(sampling)
        row, label, k, alpha = self.rows.row(i), self.labels[i], float(self._k(self.labels[i] > 0.0)), y[0]
        margin, t = row @ x[:-2], -2 if label > 0.0 else -1  # t: where a or b stands in v
        residual = margin - x[t]
        grad_x = np.zeros(self.d)
        grad_x[:-2] = 2.0 * k * (residual - label * (1.0 + alpha)) * row + self.regularizer.subgradient(x[:-2])
        grad_x[t] = -2.0 * k * residual
        return grad_x, np.array([-2.0 * k * label * margin - 2.0 * self.q * alpha])

    def natural_steps(
        self, x: Vector, y: Vector, sampling: Sampling = "uniform", read: Vector | None = None
    ) -> NaturalSteps:
        """See `Problem`. The dual step is at most L, which takes alpha all the way to its best response."""
        _check_sampling(sampling)
        alpha, margins = float(y[0]), self.rows.matvec(x[:-2]) if read is None else read
        moment_x = moment_y = 0.0
        for some, k, residuals in self._blocks(x, margins):
            labels = self.labels[some]
            slopes = 2.0 * k * (residuals - labels * (1.0 + alpha))
            along_t = 2.0 * k * residuals * self._unit
            moment_x += float(slopes**2 @ self.rows.squared_norms[some] + along_t @ along_t) / self.n
            moment_y += float(np.sum((2.0 * k * labels * margins[some] + 2.0 * self.q * alpha) ** 2)) / self.n
        moment_x += float(np.sum(self.regularizer.subgradient(x[:-2]) ** 2))
        size, L = max(self.magnitude(self._saddle(x, y, margins)), 0.0), 1.0 / (2.0 * self.q)
        # Where no gradient is left no step is needed.
        primal = float(NATURAL_SHARE * size / moment_x) if moment_x > 0.0 else 0.0
        dual = min(float(size / moment_y), L) if moment_y > 0.0 else L
        return NaturalSteps(primal, dual, float(np.sqrt(moment_x)))

    def lower_bound(self) -> float:
        """P + q is q times a mean of squares, plus g >= 0."""
        return -self.q

    def magnitude(self, objective: float) -> float:
        """P + q: q times the mean pair loss, counted from zero."""
        return objective + self.q

    def constants(self, sampling: Sampling = "uniform", objective: float | None = None) -> Constants:
        """Bounds over X and Y; they need a constraint, or a strongly convex regularizer that bounds w."""
        _check_sampling(sampling)
        why: dict[str, str] = {}
        radius, mu = self._w_radius, self._strong_convexity()
        M = B = None
        if np.isfinite(radius):
            row_norms = np.sqrt(self.rows.squared_norms)
            if self.on == "v" and self.constraint is not None:
                t_bound: float | Vector = self.constraint.radius
            else:
                means = np.linalg.norm(self.mean_positive), np.linalg.norm(self.mean_negative)
                t_bound = radius * np.where(self.labels > 0.0, *means)
            residual, alpha = radius * row_norms + t_bound, radius * float(np.linalg.norm(self._difference))
            k = self._k(self.labels > 0.0)
            lengths = 2.0 * k * np.hypot((residual + 1.0 + alpha) * row_norms, residual * self._unit)
            M = float(lengths.max() + self.regularizer.lipschitz(radius))
            B = float((2.0 * k * radius * row_norms).max() + 2.0 * self.q * alpha)
        else:
            why["M"] = why["B"] = "w is unbounded: give a bounded constraint or a strongly convex regularizer"
        x0 = self.primal_set.project(np.zeros(self.d))
        c, theta = error_bound(mu, self.primal_set)
        if c is None:
            why["c"] = why["theta"] = "P is not known to be strongly convex and v is unbounded"
        if mu is None:
            why["mu"] = "without a strongly convex regularizer P may be flat along some direction"
        return Constants(
            M=M,
            B=B,
            G=2.0 * self.q * float(np.linalg.norm(self._difference)),
            L=1.0 / (2.0 * self.q),
            v=1.0,
            mu=mu,
            c=c,
            theta=theta,
            epsilon0=(self.objective(x0) if objective is None else objective) - self.lower_bound(),
            radius=self.primal_set.radius,
            why=why,
        )

    def _strong_convexity(self) -> float | None:
        """Least curvature in v of mu |w|^2 / 2 + q (w'mu_+ - a)^2 + q (w'mu_- - b)^2; what P has besides is convex.

        Taken from the inverse of the Hessian, whose largest eigenvalue keeps its digits where class means are long.
        """
        mu = self.regularizer.strong_convexity
        if not mu > 0.0:
            return None
        means = np.linalg.qr(np.column_stack([self.mean_positive, self.mean_negative]))[1]  # in a basis of their span
        inverse = np.block([[np.eye(len(means)), means], [means.T, means.T @ means]]) / mu
        inverse[-2:, -2:] += np.eye(2) / (2.0 * self.q)
        inverse[-2:] /= self._unit
        inverse[:, -2:] /= self._unit
        return 1.0 / float(np.linalg.eigvalsh(inverse)[-1])

    def _blocks(self, x: Vector, margins: Vector) -> Iterator[tuple[slice, Vector, Vector]]:
        """Rows, their k_i and residuals w'a_i - a or w'a_i - b, a block at a time: nothing of length n is made."""
        for some in gen_batches(self.n, BLOCK):
            positive = self.labels[some] > 0.0
            yield some, self._k(positive), margins[some] - np.where(positive, x[-2], x[-1])

    def _k(self, positive: Any) -> Vector:
        return np.where(positive, 1.0 - self.p, self.p)

    def __repr__(self) -> str:
        return f"AUC({self.rows!r}, p={self.p:.4g}, {self.constraint!r} on {self.on}, {self.regularizer!r})"


def _ball(radius: float, direction: Vector | None = None) -> ConvexSet:
    """|z| <= radius, or, as an interval, what w'direction can be for |w| <= radius."""
    reach = 1.0 if direction is None else float(np.linalg.norm(direction))
    if reach == 0.0:
        return Point(np.zeros(1))
    return L2Ball(radius * reach) if np.isfinite(radius) else WholeSpace()


def _check_sampling(sampling: Sampling) -> None:
    if sampling != "uniform":
        raise ValueError(f'AUC has one dual variable, so rows are drawn with sampling="uniform", got {sampling!r}')
