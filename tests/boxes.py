"""The boxes of Algorithms 1 to 3 once more, straight from the paper for robust hinge losses; nothing of Pommel in it.

Each algorithm returns the points it restarts from. The slips of the print are corrected: averages are over the T_s
iterates of their own stage, each before its update, and the y-step of Algorithm 2 uses G_y.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[Any]
Rows = Callable[[int], NDArray[Any]]  # T -> the T rows sampled in a stage


def drawn(n: int, seed: int) -> Rows:
    """The rows a uniform sampler draws: a solve gives every stage a generator of its own."""
    rng = np.random.default_rng(seed)
    return lambda T: (np.random.default_rng(rng.integers(2**63)).random(T) * n).astype(int)


def simplex(z: Vector) -> Vector:
    """The projection onto the simplex, by sorting."""
    falling = np.sort(z)[::-1]
    thresholds = (np.cumsum(falling) - 1.0) / np.arange(1, z.size + 1)
    return np.maximum(z - thresholds[np.flatnonzero(falling > thresholds)[-1]], 0.0)


def within(project: Callable[[Vector], Vector], center: Vector, radius: float) -> Callable[[Vector], Vector]:
    """The projection onto a set's part in a ball: a multiplier m >= 0 of the ball moves z to (z + m center) / (1 + m).

    The multiplier is found by bisection on t = 1 / (1 + m).
    """

    def projection(z: Vector) -> Vector:
        low, high = 0.0, 1.0
        if np.linalg.norm(project(z) - center) <= radius:
            return project(z)
        for _ in range(60):
            t = (low + high) / 2.0
            inside = np.linalg.norm(project(center + t * (z - center)) - center) <= radius
            low, high = (t, high) if inside else (low, t)
        return project(center + low * (z - center))

    return projection


@dataclass
class RobustHinge:
    """f(x, y) = sum_i y_i max(0, 1 - b_i a_i'x) - (lam1 / 2) |n y - 1|^2 + (lam2 / 2) |x|^2 on R^d x simplex."""

    X: Vector
    labels: Vector
    lam1: float
    lam2: float

    @property
    def n(self) -> int:
        return len(self.labels)

    def A(self, x: Vector) -> Vector:
        losses = np.maximum(0.0, 1.0 - self.labels * (self.X @ x))
        return simplex((losses + self.n * self.lam1) / (self.n**2 * self.lam1))

    def G(self, x: Vector, y: Vector, i: int) -> tuple[Vector, Vector]:
        """Gradients at a row drawn uniformly, so with weight n."""
        slack = 1.0 - self.labels[i] * (self.X[i] @ x)
        G_x = self.lam2 * x - (self.n * y[i] * self.labels[i] * self.X[i] if slack > 0.0 else 0.0)
        G_y = -self.n * self.lam1 * (self.n * y - 1.0)
        G_y[i] += self.n * max(0.0, slack)
        return G_x, G_y


def rspd_sc(f: RobustHinge, rows: Rows, *, x0: Vector, S: int, T: int, eta_x: float, eta_y: float) -> Iterator[Vector]:
    """Algorithm 1."""
    for _ in range(S):
        x, y, total = x0, f.A(x0), np.zeros_like(x0)
        for i in rows(T):
            total += x
            G_x, G_y = f.G(x, y, i)
            x, y = x - eta_x * G_x, simplex(y + eta_y * G_y)
        x0 = total / T
        yield x0
        eta_x, eta_y, T = eta_x / 2, eta_y / 2, 2 * T


def rspd(
    f: RobustHinge,
    rows: Rows,
    *,
    x0: Vector,
    S: int,
    T: int,
    eta_x: float,
    eta_y: float,
    R_x: float,
    R_y: float,
    v: float,
) -> Iterator[Vector]:
    """Algorithm 2."""
    for _ in range(S):
        x, y, total = x0, f.A(x0), np.zeros_like(x0)
        B_x, B_y = within(lambda z: z, x, R_x), within(simplex, y, R_y)
        for i in rows(T):
            total += x
            G_x, G_y = f.G(x, y, i)
            x, y = B_x(x - eta_x * G_x), B_y(y + eta_y * G_y)
        x0 = total / T
        yield x0
        R_x, R_y, eta_x, eta_y = R_x / 2, R_y / 2**v, eta_x / 2, eta_y / 2


def arspd(
    f: RobustHinge,
    rows: Rows,
    *,
    K: int,
    x0: Vector,
    S: int,
    T: int,
    eta_x: float,
    eta_y: float,
    R_x: float,
    R_y: float,
    theta: float,
    kappa: float,
) -> Iterator[Vector]:
    """Algorithm 3; for theta = 1 radii double, as the remark under Theorem 3 has it."""
    growth = 2 ** (1 - theta) if theta < 1 else 2
    for _ in range(K):
        for point in rspd(f, rows, x0=x0, S=S, T=T, eta_x=eta_x, eta_y=eta_y, R_x=R_x, R_y=R_y, v=1.0):
            x0 = point
            yield x0
        R_x, R_y, T = growth * R_x, growth * R_y, int(np.ceil(growth**2 * T - 1e-9))
        eta_x, eta_y = kappa * eta_x, kappa * eta_y
