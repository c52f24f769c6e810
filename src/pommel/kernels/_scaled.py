"""What heap and tree share: keeping S and L in relative weights r_i = S (u_i - L) where no digit is lost.

So written, a step that changes all r changes two numbers; which u it clips is for the two structures to know.
"""

from __future__ import annotations

import math

from pommel._jit import kernel

SCALE, ZERO, REACH = 0, 1, 2  # entries of scalars: S, L, and 1 / the smallest mass

CHECKS = 16  # every n / 16 moves; by default every sixteenth time the heap is rebuilt
FAR, TINY, HUGE = 16.0, 1e-100, 1e100


@kernel
def within(delta, reach):
    """A delta that takes its row as far as any larger one would: to all of the weight, or to none; NaN if not finite.

    As r <= 1 / p, a row whose raw value exceeds c / p_min by 1 / p_i takes all; as what the others have to gain is at
    most 1, one that lies 1 / (1 - p_i) <= 1 / p_min below zero leaves. So nothing is lost, and L stays near the values.
    """
    return math.copysign(reach, delta) if math.isfinite(delta) else math.nan


@kernel
def far(scalars):
    """Whether S or L would cost digits. NaN does not ask for a rebuild, which would not help."""
    S = scalars[SCALE]
    return abs(S * scalars[ZERO]) > FAR or S < TINY or S > HUGE
