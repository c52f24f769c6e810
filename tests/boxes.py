"""The boxes of Algorithms 1 to 3 once more, straight from the paper for robust hinge losses; nothing of Pommel in it.

Each algorithm yields its stages, with every iterate and the point it restarts from. The slips of the print are
corrected: averages are over the T_s iterates of their own stage, each before its update, and the y-step of Algorithm 2
uses G_y.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[Any]
Draws = Callable[[int], Vector]  # T -> the T uniform numbers that a stage draws its rows with


class Stage(NamedTuple):
    x: Vector  # x_0 to x_T, one in a row
    y: Vector  # y_0 to y_T
    average: Vector  # where the next stage starts


def drawn(seed: int) -> Draws:
    """What a solve draws: it gives every stage a generator of its own."""
    rng = np.random.default_rng(seed)
    return lambda T: np.random.default_rng(rng.integers(2**63)).random(T)


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
    by_y: float = 0.0  # the share of rows drawn i ~ y, not uniformly
    centred: bool = False  # grad phi* is sampled too, less an estimate of the multiplier, exact at the stage's start
    implicit: bool = False  # phi* is not stepped along but kept as it is

    def losses(self, x: Vector) -> Vector:
        return np.maximum(0.0, 1.0 - self.labels * (self.X @ x))

    def P(self, x: Vector) -> float:
        y = self.A(x)
        robustness = self.lam1 / 2.0 * np.sum((y.size * y - 1.0) ** 2)
        return float(y @ self.losses(x) - robustness + self.lam2 / 2.0 * np.sum(x**2))

    def A(self, x: Vector) -> Vector:
        n = len(self.labels)
        y = simplex((self.losses(x) + n * self.lam1) / (n**2 * self.lam1))
        top = y.argmax()
        self.multiplier = self.losses(x)[top] - n * self.lam1 * (n * y[top] - 1.0)
        return y

    def G(self, x: Vector, y: Vector, u: float) -> tuple[Vector, Vector]:
        """Gradients at one row, drawn with probability q_i and therefore weighed with 1 / q_i."""
        n = y.size
        q = self.by_y * y + (1.0 - self.by_y) / n
        i = np.searchsorted(np.cumsum(q), u, side="right")
        loss = self.losses(x)[i]
        G_x = self.lam2 * x - (y[i] / q[i] * self.labels[i] * self.X[i] if loss > 0.0 else 0.0)
        grad_phi = n * self.lam1 * (n * y - 1.0)
        G_y = np.zeros(n) if self.centred or self.implicit else -grad_phi
        G_y[i] += (loss - (grad_phi[i] + self.multiplier if self.centred else 0.0)) / q[i]
        return G_x, G_y

    def estimate_multiplier(self, z: Vector) -> None:
        """By what the weights would have in excess, were the step to z followed by no projection but max(0, z)."""
        self.multiplier += z.size * self.lam1 * (np.maximum(z, 0.0).sum() - 1.0)

    def step_y(self, y: Vector, G_y: Vector, eta_y: float) -> Vector:
        """Before the projection. The implicit step is where y'G_y - phi*(y) - |y - y_t|^2 / (2 eta_y) is largest."""
        if not self.implicit:
            return y + eta_y * G_y
        n = y.size
        return (G_y + n * self.lam1 + y / eta_y) / (n**2 * self.lam1 + 1.0 / eta_y)


def stage(
    f: RobustHinge,
    draws: Vector,
    x_0: Vector,
    y_0: Vector,
    eta_x: float,
    eta_y: float,
    Pi_x: Callable[[Vector], Vector],
    Pi_y: Callable[[Vector], Vector],
) -> Stage:
    """The inner loop."""
    x, y = [x_0], [y_0]
    for t, u in enumerate(draws):
        G_x, G_y = f.G(x[t], y[t], u)
        x.append(Pi_x(x[t] - eta_x * G_x))
        z = f.step_y(y[t], G_y, eta_y)
        if f.centred:
            f.estimate_multiplier(z)
        y.append(Pi_y(z))
    return Stage(np.array(x), np.array(y), sum(x[:-1]) / len(draws))


def everywhere(z: Vector) -> Vector:
    """The projection onto R^d."""
    return z


def rspd_sc(f: RobustHinge, draws: Draws, *, x0: Vector, S: int, T: int, eta_x: float, eta_y: float) -> Iterator[Stage]:
    """Algorithm 1."""
    for _ in range(S):
        s = stage(f, draws(T), x0, f.A(x0), eta_x, eta_y, everywhere, simplex)
        yield s
        x0 = s.average
        eta_x, eta_y, T = eta_x / 2, eta_y / 2, 2 * T


def rspd(
    f: RobustHinge,
    draws: Draws,
    *,
    x0: Vector,
    S: int,
    T: int,
    eta_x: float,
    eta_y: float,
    R_x: float,
    R_y: float,
    v: float,
) -> Iterator[Stage]:
    """Algorithm 2."""
    for _ in range(S):
        y0 = f.A(x0)
        s = stage(f, draws(T), x0, y0, eta_x, eta_y, within(everywhere, x0, R_x), within(simplex, y0, R_y))
        yield s
        x0 = s.average
        R_x, R_y, eta_x, eta_y = R_x / 2, R_y / 2**v, eta_x / 2, eta_y / 2


def arspd(
    f: RobustHinge,
    draws: Draws,
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
) -> Iterator[Stage]:
    """Algorithm 3; for theta = 1 radii double, as the remark under Theorem 3 has it."""
    growth = 2 ** (1 - theta) if theta < 1 else 2
    for _ in range(K):
        for s in rspd(f, draws, x0=x0, S=S, T=T, eta_x=eta_x, eta_y=eta_y, R_x=R_x, R_y=R_y, v=1.0):
            yield s
        x0 = s.average
        R_x, R_y, T = growth * R_x, growth * R_y, int(np.ceil(growth**2 * T - 1e-9))
        eta_x, eta_y = kappa * eta_x, kappa * eta_y


def pdsg(
    f: RobustHinge, draws: Draws, *, x0: Vector, ends: list[int], eta_x: list[float], eta_y: list[float]
) -> Iterator[Stage]:
    """One long run without restarts: it goes on with other steps at each end, and averages all iterates so far."""
    y0, total, begin = f.A(x0), np.zeros_like(x0), 0
    for end, step_x, step_y in zip(ends, eta_x, eta_y, strict=True):
        s = stage(f, draws(end - begin), x0, y0, step_x, step_y, everywhere, simplex)
        total += (end - begin) * s.average
        yield s._replace(average=total / end)
        x0, y0, begin = s.x[-1], s.y[-1], end
