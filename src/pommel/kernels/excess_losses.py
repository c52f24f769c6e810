"""The best response to chi-square divergence: one pass to find the largest loss, a few for the threshold, one for y.

It is what `sets/simplex.py` has as `balance`, without temporaries, and from a threshold that is nearly right.
"""

from __future__ import annotations

import math

from pommel._jit import kernel


@kernel
def respond(losses, weights, depth, near, y):
    r"""Write :math:`y_i = y^0_i (1 + e_i)`, :math:`e_i = \max(\ell_i - \nu, -depth) / depth`, and return phi and nu.

    nu is where sum y = 1, y0 = weights / sum(weights). Newton's method on the convex, falling function sum y0 e of nu,
    from `near`, which need not be a number: after one step it only climbs, and it ends at the root after finitely many,
    two or three if `near` is near. Losses are counted from the largest, so that nothing is lost where they are huge and
    close together.
    """
    n = losses.size
    total, largest = 0.0, -math.inf
    for i in range(n):
        if weights[i] > 0.0:
            total += weights[i]
            if losses[i] > largest or losses[i] != losses[i]:
                largest = losses[i]
    share, nu, climbs = 1.0 / total, near - largest, False
    if not abs(nu) < math.inf:
        nu = 0.0
    while True:
        mass = excess = 0.0
        for i in range(n):
            t = losses[i] - largest - nu
            if t > -depth:
                mass += weights[i]
                excess += weights[i] * t
            else:
                excess -= weights[i] * depth
        if mass == 0.0:
            nu = 0.0
            continue
        step = excess / mass
        if not (step > 0.0 or not climbs) or nu + step == nu:  # also ends on NaN
            break
        nu, climbs = nu + step, True
    gain = squares = mass = 0.0
    for i in range(n):
        t = losses[i] - largest - nu
        e = max(t, -depth) / depth
        y[i] = share * weights[i] * (1.0 + e)
        mass += y[i]
        gain += y[i] * t
        squares += share * weights[i] * e * e
    for i in range(n):
        y[i] /= mass
    return largest + (nu + gain - 0.5 * depth * squares), largest + nu
