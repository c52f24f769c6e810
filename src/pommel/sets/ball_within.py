"""The part of a set that lies in a ball around a given point: the sets of Algorithm 2."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from pommel._validation import check_number
from pommel.problem import ConvexSet, Vector
from pommel.sets.l2_ball import L2Ball
from pommel.sets.simplex import Simplex
from pommel.sets.whole_space import WholeSpace

__all__ = ["BallWithin"]

EPS = float(np.finfo(np.float64).eps)


class BallWithin(ConvexSet):
    """{z in base : |z - center| <= radius}, the paper's B_x(x_0, R) and B_y(y_0, R).

    By the optimality conditions the projection of z is that z itself has on the base set, if it lies in the ball, and
    else a point of the path  s -> base.project(center + s (z - center) / |z - center|),  the one at distance `radius`.
    The distance grows with s, by at most as much as s, so this point is found by a bracketed root search to the last
    bits, whatever the base set.

    Parameters
    ----------
    base : ConvexSet
        The set to stay in.
    center : array-like of shape (n,)
        Center of the ball, itself in `base` or closer to it than `radius`.
    radius : float
        Radius, >= 0, in the metric of `base`; infinite for no ball.

    Examples
    --------
    >>> import numpy as np
    >>> BallWithin(Simplex(2), np.array([0.5, 0.5]), 0.1 * np.sqrt(2.0)).project(np.array([7.0, 3.0]))
    array([0.6, 0.4])
    """

    def __init__(self, base: ConvexSet, center: ArrayLike, radius: float) -> None:
        self.base, self.center = base, np.array(center, dtype=np.float64)
        self.ball_radius = check_number(radius, "the radius of a ball", equal=True, infinite=True)
        self.n, self.metric = self.center.size, base.metric
        self._nearest = base.project(self.center)
        self._length = base.distance(self.center, np.zeros(self.n))
        self._offset = base.distance(self._nearest, self.center)
        # A center that lies in the base set may be off it by rounding.
        if self._offset > self.ball_radius and self._offset > 1e-12 * self._length:
            raise ValueError(
                f"the ball does not meet the set: its center is {self._offset:.3g} away, radius {self.ball_radius:.3g}"
            )
        self.radius = min(base.radius, self._length + self.ball_radius)
        self.diameter = min(base.diameter, 2.0 * self.ball_radius)

    def project(self, z: Vector) -> Vector:
        nearest = self.base.project(z)
        if not self._excess(nearest) > 0.0:
            return nearest
        z = self.level(z)
        high = self.base.distance(z, self.center)
        if not np.isfinite(high):
            return np.full(self.n, np.nan)
        low = self.ball_radius - self._offset  # where the path cannot have left the ball yet
        if low <= 0.0:
            return self._nearest.copy()
        direction = (z - self.center) / high

        def excess(s: float) -> float:
            return self._excess(self.base.project(self.center + s * direction))

        if excess(low) >= -2.0 * EPS * self.ball_radius:  # straight to the border, as in the interior of the base set
            return self.base.project(self.center + low * direction)
        while high > 2.0 * low:  # halves the number of digits by which they differ
            middle = math.sqrt(low) * math.sqrt(high)
            low, high = (low, middle) if excess(middle) > 0.0 else (middle, high)
        if excess(high) > 0.0:
            high = brentq(excess, low, high, xtol=math.ulp(low), rtol=4.0 * EPS)
        return self.base.project(self.center + high * direction)

    def level(self, z: Vector) -> Vector:
        """z without what no projection onto a part of the base set can see, as in `Simplex.level`."""
        return self.base.level(z) if isinstance(self.base, Simplex | BallWithin) else z

    def _excess(self, z: Vector) -> float:
        return self.base.distance(z, self.center) - self.ball_radius

    def distance(self, a: Vector, b: Vector) -> float:
        return self.base.distance(a, b)

    def __repr__(self) -> str:
        return f"BallWithin({self.base!r}, radius={self.ball_radius:g})"


EXAMPLES = (
    BallWithin(WholeSpace(), [1.0, 0.0, -2.0], 0.5),
    BallWithin(L2Ball(1.0), [0.6, 0.0], 0.7),
    BallWithin(L2Ball(1.0), [0.0, 1.5], 0.7),
    BallWithin(Simplex(3), [0.2, 0.3, 0.5], 0.4),
    BallWithin(Simplex(3, [2.0, 1.0, 0.5]), [0.25, 0.25, 0.5], 0.3),
)
