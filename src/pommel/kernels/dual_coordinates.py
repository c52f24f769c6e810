"""Coordinate ascent on the dual of a regularised sum over rows whose weights rise with their losses.

The model is z = -sum_i y_i s_i a_i / lam, shrunk where it would leave a ball. A row's weight is
y_i = y0_i max(0, 1 + (loss_i - tau) / depth), and sum y = 1 sets the threshold tau. Like x, tau is a primal variable
that moves with the coordinates: tau = start + flexibility * (sum y - 1), as in an augmented Lagrangian.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pommel._jit import inlined, kernel, prefetch, state
from pommel.kernels.coordinate_step import MAX_TRIES, coordinate_step
from pommel.kernels.look_ahead import COLUMNS, EXPECT, FETCH, LARGE

Y, SLOPE, PRODUCT, PREVIOUS, LOSS, KINK, PERIOD, LABEL, REFERENCE, CURVATURE = range(10)
"""What is kept of a row, side by side, as rows are visited in random order: its weight, slope and their product, the
one an epoch before, the loss at the last visit, the margin of the kink it then sat at, or NaN, and that it is visited
every so many epochs; then label, y0_i and |a_i|^2 / lam, which stay. After an extrapolation the product is not y s."""

CELLS = 10

TAU, FLEXIBILITY, SQUARED_LENGTH, LARGEST, SHARE, ALIGNMENT, SCALARS = range(7)
"""tau, how far it rises with sum y, |z|^2 and its largest value in this epoch, the share of z that x is, and how well
the steps of an epoch went on in the direction of the extrapolation, measured by the curvatures; how many these are."""

LONGEST_PERIOD = 8.0
"""Rows at rest are visited every so many epochs at least."""

LEAST_BOOST, LARGEST_BOOST, ROWS_PER_BOOST = 3.0, 30.0, 10.0
"""By how much tau is more flexible than what a step of all rows at once would call for. At 1, with strong adversaries,
tau swings to and fro for hundreds of epochs, as rows follow it slowly; between 10 and 100 it makes no difference on
large data, but with few rows a boost as large as their number makes each step wait for tau."""

ASTRAY = 0.5
"""Where sum y is further than this from 1, tau is no longer moved but set by the losses as they were recorded."""


@state
class Ascent(NamedTuple):
    """Where coordinate ascent stands. All arrays are changed in place."""

    loss: Any  # (margin, label) -> value and derivative
    cells: Any  # of shape (n, CELLS)
    vectors: Any  # z, of shape (d, 1)
    scalars: Any
    lam: float
    inverse_depth: float  # 0 for weights that stay at y0
    radius: float


@kernel
def dual_steps(rows, ascent, order):
    """A coordinate step for each row in `order`, in this order.

    A row whose product rests, as those beyond all kinks do at zero, is visited half as often from then on.
    """
    cells, z, scalars = ascent.cells, ascent.vectors, ascent.scalars
    steepness, flexibility, tau = ascent.inverse_depth, scalars[FLEXIBILITY], scalars[TAU]
    for k in range(order.size):
        look_ahead(rows, cells, z, order, k)
        i = order[k]
        reference, curvature, old_y, old = cells[i, REFERENCE], cells[i, CURVATURE], cells[i, Y], cells[i, PRODUCT]
        if reference == 0.0:
            continue
        raw = rows.dot(i, z, 0)
        # y = reference (1 + (loss - tau') / depth) with tau' = tau + flexibility (y - old_y), solved for y.
        share = reference / (1.0 + reference * steepness * flexibility)
        rise = share * steepness
        base = share - rise * (tau - old_y * flexibility)
        # Outside the ball x moves by less than z does: twice its share at most, on the way out and for short ways.
        ease = min(1.0, 2.0 * scalars[SHARE])
        label, margin, kink = cells[i, LABEL], scalars[SHARE] * raw, cells[i, KINK]
        y, slope, loss, at = coordinate_step(ascent.loss, label, base, rise, ease * curvature, margin, old, kink)
        step = y * slope - old
        if ease < 1.0 and step * raw > 0.0 and 4.0 * curvature * step**2 > ascent.lam * scalars[SQUARED_LENGTH]:
            y, slope, loss, at = coordinate_step(ascent.loss, label, base, rise, curvature, margin, old, kink)
        tau += (y - old_y) * flexibility
        product, previous = y * slope, cells[i, PREVIOUS]
        cells[i, Y], cells[i, SLOPE], cells[i, LOSS], cells[i, KINK] = y, slope, loss, at
        cells[i, PERIOD] = min(2.0 * cells[i, PERIOD], LONGEST_PERIOD) if product == old == previous else 1.0
        if product != old:
            cells[i, PRODUCT] = product
            scalars[ALIGNMENT] += curvature * (product - old) * (product - previous)
            change = (old - product) / ascent.lam
            rows.axpy(i, change, z)
            scalars[SQUARED_LENGTH] += change * (2.0 * raw + change * (curvature * ascent.lam))
            scalars[LARGEST] = max(scalars[LARGEST], scalars[SQUARED_LENGTH])
            if ascent.radius < math.inf:
                scalars[SHARE] = share_within(scalars[SQUARED_LENGTH], ascent.radius)
    scalars[TAU] = tau


@inlined
def look_ahead(rows, cells, z, order, k):
    """Ask the memory for what the steps after the k-th will read, see `look_ahead.py`."""
    if k + EXPECT < order.size:
        i = order[k + EXPECT]
        rows.expect(i)
        prefetch(cells, np.intp(i) * CELLS)
        prefetch(cells, np.intp(i) * CELLS + CELLS - 1)
    if k + FETCH < order.size:
        rows.fetch(order[k + FETCH])
    if z.size > LARGE and k + COLUMNS < order.size:
        rows.fetch_columns(order[k + COLUMNS], z)


@inlined
def share_within(squared_length, radius):
    """What share of a vector the projection onto a ball leaves."""
    length = math.sqrt(max(squared_length, 0.0))
    return radius / length if length > radius else 1.0


@kernel
def extrapolate(ascent, previous, factor):
    """Products and z go on by `factor` times what they changed by since the last call; `previous` is the z of then."""
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
    scalars[SQUARED_LENGTH] = scalars[LARGEST] = squared
    scalars[SHARE] = share_within(squared, ascent.radius)
    scalars[ALIGNMENT] = 0.0


@kernel
def balance(ascent):
    """Move tau as far as sum y asks for, and with it the weights of rows of slope zero, which x does not depend on.

    tau - start = flexibility (sum y - 1), whose right side depends on tau, too, is solved by Newton's method: sum y is
    convex and falling in tau, so after its first step it climbs to the root. The flexibility is set by how far weights
    would follow if each row made its step alone. A sum far from 1 is the fault of tau: all weights then follow from
    losses as they were recorded, and no row rests.
    """
    cells, scalars, steepness = ascent.cells, ascent.scalars, ascent.inverse_depth
    start = tau = scalars[TAU]
    response = fixed = total = rows = 0.0
    highest = -math.inf
    for i in range(cells.shape[0]):
        if cells[i, REFERENCE] > 0.0:
            bend, slope = cells[i, REFERENCE] * steepness, cells[i, SLOPE]
            fixed += cells[i, Y] if slope != 0.0 else 0.0
            total += cells[i, Y]
            response += bend / (1.0 + cells[i, CURVATURE] * bend * slope**2) if cells[i, Y] > 0.0 else 0.0
            highest = max(highest, cells[i, LOSS])
            rows += 1.0
    boost = min(max(rows / ROWS_PER_BOOST, LEAST_BOOST), LARGEST_BOOST)
    is_astray = not abs(total - 1.0) < ASTRAY or response == 0.0
    stiffness = 0.0 if is_astray else response / boost
    if is_astray:
        fixed, tau = 0.0, min(tau, highest)
    climbing = False
    for _ in range(MAX_TRIES):
        mass = free = 0.0
        for i in range(cells.shape[0]):
            part = 1.0 + (cells[i, LOSS] - tau) * steepness
            if part > 0.0 and (is_astray or cells[i, SLOPE] == 0.0):
                mass += cells[i, REFERENCE] * steepness
                free += cells[i, REFERENCE] * part
        new = tau + (fixed + free - 1.0 - stiffness * (tau - start)) / (stiffness + mass)
        if climbing and not new > tau:
            break
        tau, climbing = new, True
    scalars[TAU], scalars[FLEXIBILITY] = tau, 1.0 / (stiffness if stiffness > 0.0 else mass)
    for i in range(cells.shape[0]):
        if is_astray:
            cells[i, PERIOD] = 1.0
        if cells[i, SLOPE] == 0.0:
            cells[i, Y] = cells[i, REFERENCE] * max(0.0, 1.0 + (cells[i, LOSS] - tau) * steepness)
