"""Lower bounds of min P for AUC problems, from any point and its gradient.

P is a convex quadratic with a Hessian Q. For every w in the ball of radius R, any nu >= 0 and rho = grad P(x) + nu x,

    P(w)  >=  P(w) + nu/2 (|w|^2 - R^2)  >=  P(x) + nu/2 (|x|^2 - R^2) - rho'(Q + nu I)^-1 rho / 2,

where Q + nu I may be replaced by anything below it, such as (lam + nu) I; and by convexity alone

    P(w)  >=  P(x) - grad P(x)'x - R |grad P(x)|,

the bound of Frank and Wolfe. Without ball and regularizer only a formed Q can tell how far P may still fall, and only
one that is not singular: what lies in its null space to working precision may carry a signal that rounding hides.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pommel.problems._auc_quadratic import EPS, AUCQuadratic, Evaluation

if TYPE_CHECKING:
    from pommel.solvers._trust_region import Factor

__all__ = ["auc_bound", "multiplier"]


def auc_bound(quadratic: AUCQuadratic, at: Evaluation, factor: Factor | None = None, nu: float = 0.0) -> float:
    """The best of the bounds that a point gives; with a factor of Q + nu I, one more.

    Taken off is twice what rounding may have added to P at this point, once for the point compared with it.
    """
    x, gradient, radius, mu = at.x, at.gradient, quadratic.radius, quadratic.strong_convexity
    error = float(np.linalg.norm(at.gradient_error))
    bounds = [-quadratic.problem.q]
    squared = float(x @ x)

    def outside(nu: float) -> float:
        """nu/2 (|x|^2 - R^2), rounded down."""
        return 0.5 * nu * (squared * (1.0 - x.size * EPS) - radius**2) if nu > 0.0 else 0.0

    for some in {0.0, multiplier(quadratic, at)}:
        if some + mu > 0.0:
            rho = float(np.linalg.norm(gradient + some * x)) + error
            bounds.append(at.objective + outside(some) - rho**2 / (2.0 * (some + mu)))
    if math.isfinite(radius):
        steepest = float(gradient @ x) + radius * float(np.linalg.norm(gradient))
        bounds.append(at.objective - steepest - (math.sqrt(squared) + radius) * error)
    if factor is not None:
        along = gradient + nu * x
        # A sound factor gives rho'(Q + nu I)^-1 rho / 2 to a factor of two; the rest is the gradient's own error.
        unsure = float(np.sum((factor.scale * at.gradient_error) ** 2)) / factor.reciprocal_condition
        # In the null space P is linear, and flat but for rounding; without a ball that much is taken for flat.
        lost = float(np.linalg.norm(factor.null.T @ along)) * (radius + math.sqrt(squared))
        unsure += lost if math.isfinite(lost) else 0.0
        bounds.append(at.objective + outside(nu) - float(along @ factor.solve(along)) - unsure)
    return max(bounds) - 2.0 * at.objective_error


def multiplier(quadratic: AUCQuadratic, at: Evaluation) -> float:
    """nu >= 0 for which the gradient is best explained by the ball: 0 within it."""
    squared = float(at.x @ at.x)
    if not squared >= (1.0 - 1e-8) * quadratic.radius**2:
        return 0.0
    return max(-float(at.gradient @ at.x) / squared, 0.0)
