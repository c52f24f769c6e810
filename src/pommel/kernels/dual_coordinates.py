"""Coordinate ascent on the dual of a regularised sum over rows, for any convex loss.

Row i of the sum is H(m) = psi(h(m, b_i)) at the margin m = a_i'x, with psi' = max(0, base + rise * loss): the weight y
the row is given rises with its loss, or stays where rise = 0. Its dual coordinate is the product y s of that weight and
a slope s of the loss, and the model is z = -sum_i y_i s_i a_i / lam, shrunk where it would leave a ball.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pommel._jit import inlined, kernel, prefetch, state
from pommel.kernels.look_ahead import COLUMNS, EXPECT, FETCH, LARGE

Y, SLOPE, PRODUCT, PREVIOUS, LOSS, KINK, PERIOD, LABEL, REFERENCE, CURVATURE = range(10)
"""What is kept of a row, together in memory, as rows are visited in random order: its weight and slope, their product,
the one an epoch before, the loss when the row was last visited, the margin of the kink it sat at then, or NaN, and that
it is visited every so many epochs; then label, y0_i and |a_i|^2 / lam, which stay."""

CELLS = 10

THRESHOLD, FLEXIBILITY, SQUARED_LENGTH, SHARE, ALIGNMENT = range(5)
"""Scalars: tau, how much it rises with sum y, |z|^2, the share of z that x is, and how well the steps of an epoch go on
in the direction that they were extrapolated to, in the metric of the curvatures."""

ROUNDING = 2.0**-48
"""Margins this close, relatively, are the same."""

ACCURACY = 1e-3
"""A step is exact enough when what is left of its equation has fallen by this."""

MAX_TRIES = 200

LONGEST_PERIOD = 8.0
"""Even rows at rest are visited every so many epochs."""


@state
class Ascent(NamedTuple):
    """Where coordinate ascent stands. All arrays are changed in place."""

    loss: Any  # (margin, label) -> value and derivative
    cells: Any  # (n, 8), see above
    vectors: Any  # (d, 1): z
    scalars: Any
    lam: float
    inverse_depth: float  # of the threshold: y = y0 max(0, 1 + (loss - tau) / depth)
    radius: float


@inlined
def pressed(loss, label, base, rise, curvature, target, m):
    """Loss, slope and weight at m, and by how much m + curvature y s exceeds the target: a monotone function of m."""
    value, slope = loss(m, label)
    y = max(base + rise * value, 0.0)
    return value, slope, y, m - target + curvature * (y * slope)


@inlined
def coordinate_step(loss, label, base, rise, curvature, margin, product, kink):
    """The best (y, s) of one row, others fixed: those at the m with  m + curvature H'(m) = margin + curvature product.

    Returns y, s, the loss, and the kink the m is at, NaN if it is at none. Only values and slopes are asked for. The
    left side rises with slope 1 or more, so from any m a step as long as the excess leads to the root or beyond it.
    Secants then are exact on linear pieces of H', and the tangents of h at both ends meet where h has a kink between
    linear pieces; at a kink, y s is set by the equation, and s lies between the slopes on either side.
    """
    target = margin + curvature * product
    here = margin
    if kink == kink:  # rows that sat at a kink mostly do so again
        tiny = ROUNDING * (abs(target) + abs(margin) + abs(kink))
        here = kink - tiny
        value, slope, y, excess = pressed(loss, label, base, rise, curvature, target, here)
        if excess <= 0.0:
            low, low_slope, there = here, slope, kink + tiny
            value, slope, y, excess = pressed(loss, label, base, rise, curvature, target, there)
            if excess >= 0.0:
                return y, at_kink(y, low_slope, slope, (target - kink) / curvature), value, kink
            here = there
    else:
        value, slope, y, excess = pressed(loss, label, base, rise, curvature, target, here)
    tiny = ROUNDING * (abs(target) + abs(here))
    if abs(excess) <= tiny:
        return y, slope, value, math.nan
    enough = max(tiny, ACCURACY * abs(excess))

    there = here - excess
    value2, slope2, y2, excess2 = pressed(loss, label, base, rise, curvature, target, there)
    if abs(excess2) <= enough or (excess > 0.0) == (excess2 > 0.0):
        return y2, slope2, value2, math.nan
    tiny = ROUNDING * (abs(target) + abs(here) + abs(there))
    if excess < 0.0:
        low, low_value, low_slope, low_excess = here, value, slope, excess
        high, high_value, high_slope, high_excess = there, value2, slope2, excess2
    else:
        low, low_value, low_slope, low_excess = there, value2, slope2, excess2
        high, high_value, high_slope, high_excess = here, value, slope, excess
    middle = math.nan
    for k in range(MAX_TRIES):
        width = high - low
        if width <= 2.5 * tiny:
            break
        if k % 3 == 0:
            m = low + width * (low_excess / (low_excess - high_excess))
        elif k % 3 == 1 and low_slope < high_slope:
            middle = low + (high_value - low_value - high_slope * width) / (low_slope - high_slope)
            m = middle - tiny
        elif k % 3 == 2 and middle == middle:
            m, middle = middle + tiny, math.nan
        else:
            m = low + 0.5 * width
        if not low < m < high:
            m = low + 0.5 * width
            if not low < m < high:
                break
        value, slope, y, excess = pressed(loss, label, base, rise, curvature, target, m)
        if abs(excess) <= enough:
            return y, slope, value, math.nan
        if excess < 0.0:
            low, low_value, low_slope, low_excess = m, value, slope, excess
        else:
            high, high_value, high_slope, high_excess = m, value, slope, excess
    kink = low + 0.5 * (high - low)
    y = max(base + rise * low_value, 0.0)
    return y, at_kink(y, low_slope, high_slope, (target - kink) / curvature), low_value, kink


@inlined
def at_kink(y, low, high, product):
    return min(max(product / y, low), high) if y > 0.0 else low


@kernel
def dual_steps(rows, ascent, order):
    """A coordinate step for each row in `order`, in this order; cells, z and scalars change in place.

    tau moves with sum y, as if it were one more coordinate of x. A row whose product is at rest is visited half as often.
    """
    cells, z, scalars = ascent.cells, ascent.vectors, ascent.scalars
    depth, flexibility, tau = ascent.inverse_depth, scalars[FLEXIBILITY], scalars[THRESHOLD]
    for k in range(order.size):
        if k + EXPECT < order.size:
            rows.expect(order[k + EXPECT])
            prefetch(cells, np.intp(order[k + EXPECT]) * CELLS)
            prefetch(cells, np.intp(order[k + EXPECT]) * CELLS + CELLS - 1)
        if k + FETCH < order.size:
            rows.fetch(order[k + FETCH])
        if z.size > LARGE and k + COLUMNS < order.size:
            rows.fetch_columns(order[k + COLUMNS], z)
        i = order[k]
        reference, curvature, old_y, old = cells[i, REFERENCE], cells[i, CURVATURE], cells[i, Y], cells[i, PRODUCT]
        if reference == 0.0:
            continue
        raw = rows.dot(i, z, 0)
        # y = y0 (1 + (loss - tau) / depth) with the tau that follows from y
        share = reference / (1.0 + reference * depth * flexibility)
        rise = depth * share
        base = share - rise * (tau - old_y * flexibility)
        y, slope, loss, kink = coordinate_step(
            ascent.loss, cells[i, LABEL], base, rise, curvature, scalars[SHARE] * raw, old, cells[i, KINK]
        )
        product, previous = y * slope, cells[i, PREVIOUS]
        resting = product == old and old == previous
        cells[i, PERIOD] = min(2.0 * cells[i, PERIOD], LONGEST_PERIOD) if resting else 1.0
        cells[i, Y], cells[i, SLOPE], cells[i, LOSS], cells[i, KINK] = y, slope, loss, kink
        tau += (y - old_y) * flexibility
        change = (old - product) / ascent.lam
        if change != 0.0:
            scalars[ALIGNMENT] += curvature * (product - old) * (product - previous)
            cells[i, PRODUCT] = product
            rows.axpy(i, change, z)
            if ascent.radius < math.inf:
                scalars[SQUARED_LENGTH] += change * (2.0 * raw + change * (curvature * ascent.lam))
                scalars[SHARE] = share_within(scalars[SQUARED_LENGTH], ascent.radius)
    scalars[THRESHOLD] = tau


@inlined
def share_within(squared_length, radius):
    length = math.sqrt(max(squared_length, 0.0))
    return radius / length if length > radius else 1.0


@kernel
def extrapolate(ascent, previous, factor):
    """Products and z go on by `factor` times what they changed by since the last call, z from `previous`."""
    cells, z, scalars = ascent.cells, ascent.vectors, ascent.scalars
    for i in range(cells.shape[0]):
        product = cells[i, PRODUCT]
        cells[i, PRODUCT] = product + factor * (product - cells[i, PREVIOUS])
        cells[i, PREVIOUS] = product
    squared = 0.0
    for j in range(z.shape[0]):
        now = z[j, 0]
        z[j, 0] = now + factor * (now - previous[j])
        previous[j] = now
        squared += z[j, 0] ** 2
    scalars[SQUARED_LENGTH] = squared
    scalars[SHARE] = share_within(squared, ascent.radius)
    scalars[ALIGNMENT] = 0.0


@kernel
def balance_threshold(ascent):
    """Set tau where the weights that the recorded losses call for add up to 1, by Newton's method from the last one.

    Their sum is convex, falling and piecewise linear in tau: after one step it climbs, and ends at the root. Rows of
    slope 0, which x does not depend on, are given their weights.
    """
    cells, scalars, inverse_depth = ascent.cells, ascent.scalars, ascent.inverse_depth
    tau, climbing, largest = scalars[THRESHOLD], False, -math.inf
    for _ in range(MAX_TRIES):
        mass, total = 0.0, 0.0
        for i in range(cells.shape[0]):
            reference, part = cells[i, REFERENCE], 1.0 + (cells[i, LOSS] - tau) * inverse_depth
            if reference > 0.0:
                largest = max(largest, cells[i, LOSS])
                if part > 0.0:
                    mass += reference
                    total += reference * part
        if mass == 0.0:  # all are clipped
            tau = largest
            continue
        scalars[FLEXIBILITY] = 1.0 / (mass * inverse_depth)
        new = tau + (total - 1.0) * scalars[FLEXIBILITY]
        if climbing and not new > tau:
            break
        tau, climbing = new, True
    scalars[THRESHOLD] = tau
    for i in range(cells.shape[0]):
        if cells[i, SLOPE] == 0.0:
            cells[i, Y] = cells[i, REFERENCE] * max(0.0, 1.0 + (cells[i, LOSS] - tau) * inverse_depth)


@kernel
def balance2(ascent, boost):
    cells, scalars, inverse_depth = ascent.cells, ascent.scalars, ascent.inverse_depth
    tau = scalars[THRESHOLD]
    response, fixed = 0.0, 0.0
    for i in range(cells.shape[0]):
        if cells[i, SLOPE] != 0.0:
            fixed += cells[i, Y]
            if cells[i, Y] > 0.0:
                bend = cells[i, REFERENCE] * inverse_depth
                response += bend / (1.0 + cells[i, CURVATURE] * bend * cells[i, SLOPE] ** 2)
    start = tau
    f = 0.0
    for k in range(MAX_TRIES):
        mass, free = 0.0, 0.0
        for i in range(cells.shape[0]):
            if cells[i, SLOPE] == 0.0:
                part = 1.0 + (cells[i, LOSS] - tau) * inverse_depth
                if part > 0.0:
                    mass += cells[i, REFERENCE] * inverse_depth
                    free += cells[i, REFERENCE] * part
        if k == 0:
            f = boost / (response + 1e-300)
        # tau = start + f (fixed + free(tau) - 1)
        excess = (tau - start) / f - (fixed + free - 1.0)
        step = excess / (1.0 / f + mass)
        tau -= step
        if abs(step) <= 1e-14 * (abs(tau) + 1.0/inverse_depth):
            break
    scalars[THRESHOLD] = tau
    scalars[FLEXIBILITY] = f
    for i in range(cells.shape[0]):
        if cells[i, SLOPE] == 0.0:
            cells[i, Y] = cells[i, REFERENCE] * max(0.0, 1.0 + (cells[i, LOSS] - tau) * inverse_depth)
