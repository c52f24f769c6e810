"""The probability simplex, in the metric of the sample weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pommel._validation import check_count
from pommel.problem import Vector
from pommel.sets._weighted import WeightedSet

__all__ = ["Simplex"]


def balance(values: Vector, masses: Vector, depth: float) -> Vector:
    """Values brought into balance: max(values - nu, -depth) at the nu where sum masses * that = 0.

    This is what the simplex and the chi-square divergence have in common: the excess of each weight over its
    reference, in units where a weight of zero lies `depth` below. Newton's method on a convex, piecewise linear
    function of nu, from a nu that is never above the root: it climbs, and ends at the root after finitely many steps,
    without sorting (Michelot's algorithm). Values are counted from the largest one of positive mass, so that nothing
    is lost where they are huge, tiny or close together.
    """
    massive = masses > 0.0
    values = np.where(massive, values - values[massive].max(), -np.inf)
    total = masses[massive].sum()
    largest = masses[values.argmax()]
    nu = -depth * ((total - largest) / largest)
    while True:
        above = values - nu > -depth
        mass = masses[above].sum()
        climbed = (masses[above] @ values[above] - depth * (total - mass)) / mass
        if not climbed > nu:  # also ends on NaN
            return np.maximum(values - nu, -depth)
        nu = climbed


class Simplex(WeightedSet):
    """The probability simplex {y >= 0, sum y = 1}, with the projection in the norm sum z_i^2 / weights_i.

    With weights w the projection of z is y_i = w_i (z_i / w_i - tau)_+, tau set by the sum; for unit weights this is
    the Euclidean one. A row of weight zero stays at zero. Rows that stand for several copies thus move exactly as
    their copies would, which is what lets a sample weight stand for a repeated row.

    Parameters
    ----------
    n : int
        Length of y.
    weights : array-like of shape (n,), optional
        The metric, >= 0; ones by default.

    References
    ----------
    .. [1] Michelot, A finite algorithm for finding the projection of a point onto the canonical simplex of R^n,
       J. Optim. Theory Appl. 50, 1986.
    .. [2] Condat, Fast projection onto the simplex and the l1 ball, Math. Program. 158, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> Simplex(3).project(np.array([0.6, 0.6, -5.0]))
    array([0.5, 0.5, 0. ])
    """

    def __init__(self, n: int, weights: ArrayLike | None = None) -> None:
        super().__init__(check_count(n, "n"), weights)
        self._depth = 1.0 / float(self.metric.sum())
        two_smallest = np.sort(self.metric[self._massive])[:2]
        self.radius = float(np.sqrt(1.0 / two_smallest[0]))
        self.diameter = float(np.sqrt(np.sum(1.0 / two_smallest))) if two_smallest.size == 2 else 0.0

    def project(self, z: Vector) -> Vector:
        y = self.metric * (balance(self._per_weight(z), self.metric, self._depth) + self._depth)
        return y / y.sum()

    def level(self, z: Vector) -> Vector:
        """z less the multiple of the weights at which its largest entry is zero.

        Points of the simplex have the same sum, so no projection onto a part of it sees the difference. What goes on
        to compute with z then does not lose small differences between large entries.
        """
        values = self._per_weight(z)
        return self.metric * (values - values[self._massive].max())

    def __repr__(self) -> str:
        return f"Simplex({self.n})"


EXAMPLES = (Simplex(1), Simplex(2), Simplex(5), Simplex(4, np.array([2.0, 1.0, 0.5, 0.0])))
