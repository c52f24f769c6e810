"""Exact projections: textbook formulas in decimals, with digits enough to add 1e300 and 1e-20."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from functools import singledispatch
from typing import Any

import numpy as np

import pommel as pm

Decimals = Any  # an object array of Decimal
DIGITS = 360  # what tells 1e-20 apart from 0 beside 1e300


def projection_error(convex_set: pm.problem.ConvexSet, z: np.ndarray, claimed: np.ndarray) -> float:
    """Distance from a claimed projection of z to the exact one, relative to what the set allows to tell apart.

    That is the length of the projection, and for a ball around a center the length of the center too.
    """
    with localcontext(prec=DIGITS):
        exact, metric = project(convex_set, decimals(z)), convex_set.metric
        scale = norm(exact, metric)
        if isinstance(convex_set, pm.BallWithin):
            scale += norm(decimals(convex_set.center), metric)
        error = norm(decimals(claimed) - exact, metric)
        return float(error / scale) if scale else float(error)


def decimals(values: Iterable[float]) -> Decimals:
    return np.array([Decimal(float(value)) for value in values], dtype=object)


def square(z: Decimals, metric: Any) -> Decimal:
    weights = np.broadcast_to(metric, z.shape)
    return sum((a * a / Decimal(float(w)) for a, w in zip(z, weights, strict=True) if w > 0), Decimal(0))


def norm(z: Decimals, metric: Any) -> Decimal:
    return square(z, metric).sqrt()


@singledispatch
def project(convex_set: pm.problem.ConvexSet, z: Decimals) -> Decimals:
    raise NotImplementedError(f"say here what the projection onto a {type(convex_set).__name__} is")


@project.register
def _(convex_set: pm.WholeSpace, z: Decimals) -> Decimals:
    return z


@project.register
def _(convex_set: pm.Point, z: Decimals) -> Decimals:
    return decimals(convex_set.point)


@project.register
def _(convex_set: pm.L2Ball, z: Decimals) -> Decimals:
    radius, squared = Decimal(convex_set.radius), square(z, 1.0)
    return z if squared <= radius**2 else z * (radius / squared.sqrt())


@project.register
def _(convex_set: pm.Product, z: Decimals) -> Decimals:
    cuts = np.cumsum([size for size, _ in convex_set.blocks])[:-1]
    pieces = zip(convex_set.blocks, np.split(z, cuts), strict=True)
    return np.concatenate([project(part, piece) for (_, part), piece in pieces])


@project.register
def _(convex_set: pm.Simplex, z: Decimals) -> Decimals:
    """The threshold is that of the k largest ratios, for the largest k for which the k-th lies above it."""
    w = decimals(convex_set.metric)
    kept = np.flatnonzero(convex_set.metric > 0.0)
    ratios = z[kept] / w[kept]
    order = np.argsort(-ratios)
    thresholds = (np.cumsum(z[kept][order]) - 1) / np.cumsum(w[kept][order])
    threshold = thresholds[np.flatnonzero(ratios[order] > thresholds)[-1]]
    y = decimals(np.zeros(z.size))
    y[kept] = w[kept] * np.maximum(ratios - threshold, Decimal(0))
    return y


@project.register
def _(convex_set: pm.BallWithin, z: Decimals) -> Decimals:
    """base.project(c + t (z - c)) for the largest t in [0, 1] at which it lies in the ball around c."""
    center, limit = decimals(convex_set.center), Decimal(convex_set.ball_radius) ** 2

    def path(t: Decimal) -> Decimals:
        return project(convex_set.base, center + t * (z - center))

    return path(largest(lambda t: square(path(t) - center, convex_set.metric) <= limit))


def largest(holds: Callable[[Decimal], bool]) -> Decimal:
    """The largest t in [0, 1] up to which something holds, to 15 digits: its exponent first, then its digits."""
    if holds(Decimal(1)):
        return Decimal(1)
    low, high = -700, 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(Decimal(10) ** middle) else (low, middle)
    if low == -700:
        return Decimal(0)
    t, step = Decimal(10) ** low, Decimal(10) ** high
    for _ in range(50):
        step /= 2
        t += step if holds(t + step) else 0
    return t
