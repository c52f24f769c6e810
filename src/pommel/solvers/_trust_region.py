"""Linear algebra of convex trust-region problems: min x'Qx / 2 - b'x over |x| <= R, with a formed Q or with products.

At a solution (Q + nu I) x = b with nu >= 0, and nu = 0 unless |x| = R. As Q is positive semidefinite and b in its range
there is no hard case but that of a singular Q, whose solution of least length may lie inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dpocon

from pommel.problem import Vector

EPS = float(np.finfo(np.float64).eps)

SOUND = 1e-10
"""Reciprocal condition number from which a Cholesky factor can be relied on, with units of columns taken out."""

NEWTON_STEPS = 50
"""Newton's method for nu needs about six steps, and each is as good as the one before."""


class Factor:
    """Solves Qx = b for a positive semidefinite Q: by Cholesky, or in the directions where Q differs from rounding.

    Columns are brought to one unit first, so that neither choice depends on the units of features. `rounding` is the
    share of Q that forming it may have lost.
    """

    def __init__(self, Q: Vector, rounding: float = EPS) -> None:
        self._rounding = rounding
        diagonal = np.diag(Q)
        is_something = diagonal > 0.0
        self.scale = np.where(is_something, 1.0 / np.sqrt(np.where(is_something, diagonal, 1.0)), 0.0)
        scaled = Q * self.scale
        scaled *= self.scale[:, np.newaxis]
        self.null = np.zeros((diagonal.size, 0))  # an orthonormal basis of the null space
        self._cholesky = None
        try:
            cholesky = cho_factor(scaled, lower=True, check_finite=False)
            norm = float(np.abs(scaled).sum(axis=0).max())
            self.reciprocal_condition = float(dpocon(cholesky[0], norm, uplo="L")[0])
        except np.linalg.LinAlgError:
            self.reciprocal_condition = 0.0
        if self.is_sound:
            self._cholesky = cholesky
            return
        values, vectors = eigh(scaled, check_finite=False)
        kept = values > (16.0 * diagonal.size * EPS + rounding) * max(values[-1], 1.0)
        self._inverse, self._range = 1.0 / values[kept], vectors[:, kept]
        self.null = np.linalg.qr(vectors[:, ~kept] * np.where(is_something, self.scale, 1.0)[:, np.newaxis])[0]
        self.reciprocal_condition = float(values[kept].min(initial=1.0))

    @property
    def is_singular(self) -> bool:
        return self._cholesky is None

    @property
    def is_sound(self) -> bool:
        """Whether solutions are right to more than a digit, in the directions that are not null."""
        return self.reciprocal_condition > max(SOUND, 10.0 * self._rounding)

    def solve(self, b: Vector) -> Vector:
        """x with Qx = b; where Q is singular that of least length, for b in its range."""
        b = self.scale * b
        if self._cholesky is not None:
            return self.scale * cho_solve(self._cholesky, b, check_finite=False)
        x = self.scale * (self._range @ (self._inverse * (self._range.T @ b)))
        return x - self.null @ (self.null.T @ x)


class Minimum(NamedTuple):
    """A solution with its multiplier, and the factor of Q + nu I."""

    x: Vector
    nu: float
    factor: Factor


def minimize_formed(Q: Vector, b: Vector, radius: float, rounding: float = EPS) -> Minimum:
    """More and Sorensen's method: Newton's for 1/|x(nu)| = 1/R, which increases to the root from nu = 0."""
    nu, factor = 0.0, Factor(Q, rounding)
    x = factor.solve(b)
    for _ in range(NEWTON_STEPS):
        length = float(np.linalg.norm(x))
        if length <= radius * (1.0 + 4.0 * EPS):
            break
        step = (length / radius - 1.0) * length**2 / float(x @ factor.solve(x))
        if nu + step == nu:
            break
        nu += step
        factor = Factor(Q + nu * np.eye(b.size), rounding)
        x = factor.solve(b)
    return Minimum(x, nu, factor)


def corrected(minimum: Minimum, x: Vector, gradient: Vector, radius: float) -> Minimum:
    """One Newton step from x to (Q + nu I) x = b and, for nu > 0, |x| = R, with the gradient as the rows have it."""
    _, nu, factor = minimum
    step, rate = -factor.solve(gradient + nu * x), 0.0
    if nu > 0.0:
        along = factor.solve(x)
        rate = (0.5 * (float(x @ x) - radius**2) + float(x @ step)) / float(x @ along)
        step -= rate * along
    return Minimum(x + step, nu + rate, factor)


class Direction(NamedTuple):
    """What conjugate gradients have reached: a step z, Qz, the residual g + (Q + nu) z, and the last direction."""

    z: Vector
    Qz: Vector
    residual: Vector
    last: Vector
    Q_last: Vector
    energy: float  # of the residual in the metric of the preconditioner


def conjugate_gradients(
    product: Callable[[Vector], Vector],
    gradient: Vector,
    metric: Vector,
    normal: Vector | None = None,
    nu: float = 0.0,
) -> Iterator[Direction]:
    """Steps towards (Q + nu I) z = -gradient, preconditioned by a diagonal; orthogonal to a normal.

    References
    ----------
    .. [1] Gould, Hribar and Nocedal, On the solution of equality constrained quadratic programming problems arising
       in optimization, 2001: the projected preconditioner.
    """
    inverse = np.divide(1.0, metric, where=metric > 0.0, out=np.zeros_like(metric))
    along = inverse * (np.zeros_like(metric) if normal is None else normal)

    def precondition(residual: Vector) -> Vector:
        z = inverse * residual
        if normal is not None:
            z -= (float(along @ residual) / float(along @ normal)) * along
        return z

    z, Qz, residual = np.zeros_like(gradient), np.zeros_like(gradient), gradient.copy()
    direction = -precondition(residual)
    energy = -float(residual @ direction)
    while energy > 0.0:
        Qp = product(direction)
        curvature = float(direction @ Qp) + nu * float(direction @ direction)
        if not curvature > 0.0:
            return
        step = energy / curvature
        z += step * direction
        Qz += step * Qp
        residual += step * Qp
        if nu > 0.0:
            residual += (step * nu) * direction
        preconditioned = precondition(residual)
        before, energy = energy, float(residual @ preconditioned)
        yield Direction(z, Qz, residual, direction, Qp, energy)
        direction = (energy / before) * direction
        direction -= preconditioned


def minimize_in_span(columns: list[Vector], products: list[Vector], b: Vector, radius: float) -> Vector:
    """The minimiser over the span of a few vectors z whose Qz are known."""
    lengths = [float(np.linalg.norm(column)) for column in columns]
    kept = [k for k, length in enumerate(lengths) if length > 0.0]
    Z = np.column_stack([columns[k] / lengths[k] for k in kept])
    QZ = np.column_stack([products[k] / lengths[k] for k in kept])
    values, vectors = np.linalg.eigh(Z.T @ Z)
    basis = vectors[:, values > 1e-14] / np.sqrt(values[values > 1e-14])
    small = basis.T @ (Z.T @ QZ) @ basis
    return Z @ (basis @ minimize_formed((small + small.T) / 2.0, basis.T @ (Z.T @ b), radius).x)
