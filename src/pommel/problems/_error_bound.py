"""The error bound  dist(x, X*) <= c (P(x) - P*)^theta  that a problem has for free."""

from __future__ import annotations

import numpy as np

from pommel.problem import ConvexSet


def error_bound(mu: float | None, primal_set: ConvexSet) -> tuple[float | None, float | None]:
    """(c, theta) where P is mu-strongly convex, else where X is bounded; None and None where neither is known."""
    if mu is not None:
        return float(np.sqrt(2.0 / mu)), 0.5
    if np.isfinite(primal_set.diameter):
        return primal_set.diameter, 0.0
    return None, None
