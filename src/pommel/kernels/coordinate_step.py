"""The best weight and slope of one row, all others fixed, for any convex loss.

In a regularised sum over rows of psi(h(a_i'x, b_i)) with psi' = max(0, base + rise * loss) each row has a dual
coordinate: the product y s of the weight y = psi' that it is given and a slope s of the loss. With the other rows
fixed, the best one follows from one scalar equation for the margin m that the row then has,

    m + curvature * y(m) h'(m)  =  target,    target = margin + curvature * (the product as it was),

curvature being |a_i|^2 over the strength of the regularizer. Its left side rises with slope 1 or more, and jumps where
h has a kink: if it jumps across the target, m is the kink, and y s is what is left of the equation.
"""

from __future__ import annotations

import math

from pommel._jit import inlined

ROUNDING = 2.0**-48
"""Margins this close, relatively, are the same."""

ACCURACY = 1e-3
"""A step is exact enough when what is wrong with the equation is this share of the move from the present margin, which
is what the product changes by. Weight and slope are valid at any m; the next visit starts from there."""

MAX_TRIES = 200


@inlined
def pressed(loss, label, base, rise, curvature, target, m):
    """Loss, slope and weight at m, and by how much the left side exceeds the target."""
    value, slope = loss(m, label)
    y = max(base + rise * value, 0.0)
    return value, slope, y, m - target + curvature * (y * slope)


@inlined
def between(low, high, product, y):
    """The slope that gives the product, kept between those on both sides of a kink, and so in the domain of h*."""
    return min(max(product / y, low), high) if y > 0.0 else low


@inlined
def coordinate_step(loss, label, base, rise, curvature, margin, product, kink):
    """(y, s, loss, kink) at that m, from values and slopes of the loss alone; `kink` is NaN if m lies at none.

    The margin of the kink that the row sat at last, or NaN, comes in: mostly it still sits there, which two values
    prove. Elsewhere one starts from the present margin: a step from there as long as the excess ends beyond the root.
    Then secants, exact on linear pieces, and the places where the tangents at both ends meet, exact for a kink between
    linear pieces, take turns with bisection.
    """
    target, here = margin + curvature * product, margin
    if kink == kink:
        tiny = ROUNDING * (abs(target) + abs(margin) + abs(kink))
        here = kink - tiny
        value, slope, y, excess = pressed(loss, label, base, rise, curvature, target, here)
        if excess <= 0.0:
            low_slope, here = slope, kink + tiny
            value, slope, y, excess = pressed(loss, label, base, rise, curvature, target, here)
            if excess >= 0.0:
                return y, between(low_slope, slope, (target - kink) / curvature, y), value, kink
    else:
        value, slope, y, excess = pressed(loss, label, base, rise, curvature, target, here)
    tiny = ROUNDING * (abs(target) + abs(here))
    if not abs(excess) > tiny:
        return y, slope, value, math.nan

    there = here - excess
    other_value, other_slope, other_y, other = pressed(loss, label, base, rise, curvature, target, there)
    if abs(other) <= max(tiny, ACCURACY * abs(there - margin)) or (excess > 0.0) == (
        other > 0.0
    ):  # the latter by rounding
        return other_y, other_slope, other_value, math.nan
    tiny += ROUNDING * abs(there)
    if excess < 0.0:
        low, low_value, low_slope, low_excess = here, value, slope, excess
        high, high_value, high_slope, high_excess = there, other_value, other_slope, other
    else:
        low, low_value, low_slope, low_excess = there, other_value, other_slope, other
        high, high_value, high_slope, high_excess = here, value, slope, excess
    crossing = math.nan
    for k in range(MAX_TRIES):
        width = high - low
        m = low + 0.5 * width
        if width <= 2.5 * tiny or not low < m < high:
            break
        candidate = m
        if k % 4 == 0:
            candidate = low + width * (low_excess / (low_excess - high_excess))
        elif k % 4 == 1 and low_slope < high_slope:
            crossing = low + (high_value - low_value - high_slope * width) / (low_slope - high_slope)
            candidate = crossing - tiny
        elif k % 4 == 2 and crossing == crossing:
            candidate, crossing = crossing + tiny, math.nan
        m = candidate if low < candidate < high else m
        value, slope, y, excess = pressed(loss, label, base, rise, curvature, target, m)
        if abs(excess) <= max(tiny, ACCURACY * abs(m - margin)):
            return y, slope, value, math.nan
        if excess < 0.0:
            low, low_value, low_slope, low_excess = m, value, slope, excess
        else:
            high, high_value, high_slope, high_excess = m, value, slope, excess
    kink = low + 0.5 * (high - low)
    y = max(base + rise * low_value, 0.0)
    return y, between(low_slope, high_slope, (target - kink) / curvature, y), low_value, kink
