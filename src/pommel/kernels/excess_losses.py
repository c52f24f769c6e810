"""The best response to chi-square divergence, with its value: two or three sweeps over the losses.

It is what `sets/simplex.py` has as `balance`, without temporaries, and from a threshold that is nearly right.
"""

from __future__ import annotations

import math

from pommel._jit import summing

ENOUGH = 1e-15
"""Weights that sum to one up to this are right."""

LOWEST = -1.7976931348623157e308

FALLS = 3
"""The threshold climbs to its place, but for a first step and what rounding adds."""


@summing
def respond(losses, weights, depth, near, y):
    r"""Write :math:`y_i = y^0_i (m_i + depth) / depth`, :math:`m_i = \max(\ell_i - \nu, -depth)`; return phi and nu.

    y0 = weights / sum(weights), and nu is where sum y0 m = 0, which makes sum y = 1. Newton's method on that convex,
    falling function of nu, from `near`, which need not be a number: after a step it only climbs, and it ends at the
    root after finitely many, one or two if `near` is near. Losses are counted from there, or from the largest, so that
    nothing is lost where they are huge and close together.
    """
    n, start, total = losses.size, near, 0.0
    for i in range(n):
        total += weights[i]
    if not abs(near) < math.inf:
        start = largest(losses, weights)
    nu, falls, inverse, unit, from_largest = 0.0, 0, 1.0 / depth, 1.0 / (total * depth), False
    while True:
        # Nothing is written here: whether a loop with sums and writes runs on vectors depends on where arrays lie.
        mass = excess = gain = squares = 0.0
        for i in range(n):
            weight, m = weights[i], above(losses[i], start, nu, weights[i], depth)
            mass += weight if m > -depth else 0.0
            excess += weight * m
            gain += unit * weight * (m + depth) * m
            squares += weight * (m * (m * inverse))
        if mass == 0.0 and not from_largest:  # nu lies above all losses, by more than depth
            start, nu, from_largest = largest(losses, weights), 0.0, True
            continue
        step = excess / mass
        falls += step < 0.0
        if not abs(excess) > ENOUGH * depth * total or falls > FALLS or nu + step == nu:
            break
        nu += step
    for i in range(n):
        y[i] = unit * weights[i] * (above(losses[i], start, nu, weights[i], depth) + depth)
    return start + (nu + gain - 0.5 * squares / total), start + nu


@summing
def above(loss, start, nu, weight, depth):
    """How far a loss lies above start + nu, at least -depth."""
    away = loss - start
    away = away if not away <= LOWEST else LOWEST  # or `start` and `nu` would be added up first, as sums may be
    m = away - nu
    return m if weight > 0.0 and not m <= -depth else -depth  # NaN stays, unless the row is a removed one


@summing
def largest(losses, weights):
    """The largest loss of a row with weight; NaN if one is."""
    found = -math.inf
    for i in range(losses.size):
        if weights[i] > 0.0 and not losses[i] <= found:
            found = losses[i]
    return found
