"""The minimum of a convex quadratic in a ball: a trust-region subproblem, by eigenvectors."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dnrm2
from scipy.optimize import brentq

from pommel.problem import Vector

EPS = float(np.finfo(np.float64).eps)


def minimise_in_ball(hessian: Vector, r: Vector, radius: float) -> Vector:
    """argmin z'Hz / 2 - r'z over |z| <= radius, H positive semidefinite: z = (H + nu)^-1 r with the least nu >= 0.

    Where H is singular and r has no part along its kernel, that is the shortest of all minimisers.
    """
    values, vectors = eigh(hessian, check_finite=False)
    values = np.maximum(values, 0.0)
    along = vectors.T @ r
    along[(np.abs(along) <= len(r) * EPS * dnrm2(r)) & (values <= len(r) * EPS * values[-1])] = 0.0

    def at(nu: float) -> Vector:
        return np.divide(along, values + nu, out=np.zeros_like(along), where=along != 0.0)

    with np.errstate(divide="ignore"):
        free = at(0.0)
    if dnrm2(free) <= radius:
        return vectors @ free
    most = dnrm2(along) / radius  # |z| <= |r| / nu
    low = max(most - values[-1], most * EPS)  # |z| >= |r| / (largest eigenvalue + nu)
    nu = brentq(
        lambda nu: 1.0 / radius - 1.0 / dnrm2(at(nu)), 0.5 * low, 2.0 * most, xtol=0.25 * EPS * low, rtol=4 * EPS
    )
    z = at(nu)
    return vectors @ (z * (radius / dnrm2(z)))
