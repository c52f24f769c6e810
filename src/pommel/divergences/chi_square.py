"""Chi-square divergence: variance-regularised risk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pommel._validation import check_number
from pommel.divergences.mean import Mean
from pommel.kernels.excess_losses import respond
from pommel.problem import ConvexSet, Divergence, Vector, WorstCase
from pommel.sets.simplex import Simplex

__all__ = ["ChiSquare"]


@dataclass(frozen=True)
class ChiSquare:
    r"""Chi-square distance from the reference distribution y0 = w / n, n = sum of the sample weights w.

    .. math:: \varphi^*(y) = \frac{n \lambda}{2} \sum_i \frac{(y_i - y^0_i)^2}{y^0_i} \text{ on the simplex}, \qquad
              A_i = \frac{y^0_i}{n \lambda} (\ell_i - \tau)_+, \; \sum_i A_i = 1

    For unit weights this is (lam/2) |n y - 1|^2, the paper's V. Where no weight is clipped at zero,
    phi(l) = mean(l) + Var(l) / (2 n lam): the risk with a price on its variance. In the metric of the weights phi* is
    (n^2 lam)-strongly convex, so L = 1 / (n^2 lam) and v = 1.

    Parameters
    ----------
    lam : float
        Strength, > 0. Robustness falls as it grows: 1/n is the paper's choice, infinity would be `Mean`.

    References
    ----------
    .. [1] Namkoong and Duchi, Variance-based regularization with convex objectives, NIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> losses = np.array([0.0, 1.0])
    >>> ChiSquare(0.5).conjugate(losses, np.ones(2)), float(losses.mean() + losses.var() / 2)
    (0.625, 0.625)
    """

    lam: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", check_number(self.lam, "ChiSquare(lam)"))

    def dual_set(self, weights: Vector) -> ConvexSet:
        return Simplex(weights.size, weights)

    def value(self, y: Vector, weights: Vector) -> float:
        y0 = weights / weights.sum()
        return 0.5 * weights.sum() * self.lam * float(y0 @ self._relative(y, y0) ** 2)

    def gradient(self, y: Vector, weights: Vector) -> Vector:
        return weights.sum() * self.lam * self._relative(y, weights / weights.sum())

    def respond(self, losses: Vector, weights: Vector, near: float = np.nan) -> WorstCase:
        y = np.empty(weights.size)
        losses = np.ascontiguousarray(losses, dtype=np.float64)
        phi, nu = respond(losses, weights, weights.sum() * self.lam, float(near), y)
        return WorstCase(y, phi, nu)

    def conjugate(self, losses: Vector, weights: Vector) -> float:
        return self.respond(losses, weights).risk

    def best_response(self, losses: Vector, weights: Vector) -> Vector:
        return self.respond(losses, weights).y

    def holder(self, weights: Vector) -> tuple[float, float]:
        return float(1.0 / (weights.sum() ** 2 * self.lam)), 1.0

    def gradient_bound(self, weights: Vector) -> float:
        """n^2 lam times the distance from y0 to the farthest vertex: n lam sqrt(n (1/min y0 - 1))."""
        n = weights.sum()
        return float(n * self.lam * np.sqrt(n * (n / weights[weights > 0.0].min() - 1.0)))

    def curvature(self, weights: Vector) -> float:
        return float(weights.sum() ** 2 * self.lam)

    def response_slopes(self, y: Vector, weights: Vector) -> Vector:
        """y0_i / (n lam) for rows that are not clipped."""
        return np.where(y > 0.0, weights / (weights.sum() ** 2 * self.lam), 0.0)

    def of_robustness(self, robustness: float, n: float) -> Divergence:
        """lam = 1 / (robustness n), so that phi has `robustness` times half the variance of the losses."""
        return ChiSquare(1.0 / (robustness * n)) if robustness > 0.0 else Mean()

    @staticmethod
    def _relative(y: Vector, y0: Vector) -> Vector:
        """(y - y0) / y0, zero for removed rows."""
        return np.divide(y - y0, y0, out=np.zeros_like(y), where=y0 > 0.0)


EXAMPLES = (ChiSquare(0.01), ChiSquare(0.3), ChiSquare(50.0))
