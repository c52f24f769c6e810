"""The stochastic gradient step of Algorithms 1 and 2."""

from __future__ import annotations

import math

from pommel._jit import kernel
from pommel.kernels.look_ahead import look_ahead

DONE, REFUSED, NOT_FINITE = range(3)


@kernel
def gradient_steps(rows, model, sampling, x, y, draws):
    """x <- Pi_X(x - eta_x grad_x), y <- Pi_Y(y + eta_y grad_y), both sampled at (x, y), one step for each draw.

    x, its running sum and y are changed in place. Returns the number of steps made and why it was not all of them: y
    refused a step, which has not been made, or the step led to infinity or NaN. A step costs what `rows.dot`,
    `rows.add` and `y.ascend` do.
    """
    for k in range(draws.size):
        look_ahead(rows, model, sampling, x, y, draws, k)
        i = sampling.draw(draws[k], y)
        importance = sampling.importance(i, y)
        margin = x.margin(rows, i)
        slope, ascent, j, t_slope = model.sample(i, importance, margin, x, y)
        if not y.ascend(i, importance, ascent):
            return k, REFUSED
        x.count()
        finite = x.descend(rows, i, slope, j, t_slope)
        x.project()
        if not (finite and math.isfinite(margin + ascent)):
            return k + 1, NOT_FINITE
    return draws.size, DONE
