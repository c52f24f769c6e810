"""The part of a set that lies in a ball around a given point: the sets of Algorithm 2."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from pommel.problem import ConvexSet, Vector

__all__ = ["BallWithin"]


class BallWithin(ConvexSet):
    """{z in base : |z - center| <= radius}, the paper's B_x(x_0, R) and B_y(y_0, R).

    By the optimality conditions the projection of z is  base.project(center + t (z - center))  for the t in [0, 1]
    at which its distance to the center is the radius (t = 1 if that is inside already). The distance grows with t, so
    t is found by a bracketed root search to the last bits, whatever the base set.

    Parameters
    ----------
    base : ConvexSet
        The set to stay in.
    center : ndarray
        Center of the ball, itself in `base` or closer to it than `radius`.
    radius : float
        Radius, >= 0, in the metric of `base`; infinite for no ball.
    """

    def __init__(self, base: ConvexSet, center: Vector, radius: float) -> None:
        if not radius >= 0.0:
            raise ValueError(f"the radius of a ball must be >= 0, got {radius}")
        self.base, self.center, self.ball_radius = base, center, float(radius)
        self.metric, self.radius = base.metric, base.radius
        self.diameter = min(base.diameter, 2.0 * self.ball_radius)
        if np.isfinite(radius):
            offset = base.distance(base.project(center), center)
            if offset > radius * (1.0 + 1e-9) + 1e-12:
                raise ValueError(
                    f"the ball does not meet the set: its center is {offset:.3g} away, radius {radius:.3g}"
                )

    def project(self, z: Vector) -> Vector:
        nearest = self.base.project(z)
        if not self._excess(nearest) > 0.0:
            return nearest
        ray = z - self.center
        length = self.base.distance(z, self.center)
        # The distance is at most t |z - center| where the center is in the base set, so the root is not below this.
        low = self.ball_radius / length if np.isfinite(length) else 0.0
        if self._excess(self.base.project(self.center + low * ray)) > 0.0:
            low = 0.0
            if self._excess(self.base.project(self.center)) >= 0.0:
                return self.base.project(self.center)
        t = brentq(
            lambda t: self._excess(self.base.project(self.center + t * ray)),
            low,
            1.0,
            xtol=np.finfo(np.float64).tiny,
            rtol=4.0 * np.finfo(np.float64).eps,
            maxiter=2000,
        )
        return self.base.project(self.center + t * ray)

    def _excess(self, z: Vector) -> float:
        return self.base.distance(z, self.center) - self.ball_radius

    def distance(self, a: Vector, b: Vector) -> float:
        return self.base.distance(a, b)

    def __repr__(self) -> str:
        return f"BallWithin({self.base!r}, radius={self.ball_radius:g})"
