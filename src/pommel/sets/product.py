"""Cartesian product of sets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pommel._validation import check_count
from pommel.problem import ConvexSet, Vector
from pommel.sets.l2_ball import L2Ball
from pommel.sets.whole_space import WholeSpace

__all__ = ["Product"]


class Product(ConvexSet):
    """Blocks of coordinates, each in a set of its own: z = (z_1, ..., z_k) with z_j in the j-th set.

    Parameters
    ----------
    *blocks : (int, ConvexSet)
        Length of each block and its set.
    units : sequence of float, optional
        For each block, how much of it counts as length one: |z|^2 = sum |z_j|^2 / units_j^2. Ones by default.

    Examples
    --------
    >>> import numpy as np
    >>> from pommel import L2Ball, WholeSpace
    >>> Product((2, L2Ball(1.0)), (1, WholeSpace())).project(np.array([3.0, 4.0, 7.0]))
    array([0.6, 0.8, 7. ])
    """

    def __init__(self, *blocks: tuple[int, ConvexSet], units: Sequence[float] | None = None) -> None:
        self.blocks, self.units = blocks, [1.0] * len(blocks) if units is None else list(units)
        ends = np.cumsum([check_count(size, "the length of a block") for size, _ in blocks])
        self.n, self._cuts = int(ends[-1]), ends[:-1]
        pairs = list(zip(self.units, blocks, strict=True))
        if any(np.ndim(part.metric) or unit != 1.0 for unit, (_, part) in pairs):
            self.metric = np.concatenate([np.broadcast_to(unit**2 * part.metric, size) for unit, (size, part) in pairs])
        self.radius = math.hypot(*(part.radius / unit for unit, (_, part) in pairs))
        self.diameter = math.hypot(*(part.diameter / unit for unit, (_, part) in pairs))

    def project(self, z: Vector) -> Vector:
        pieces = np.split(z, self._cuts)
        return np.concatenate([part.project(piece) for (_, part), piece in zip(self.blocks, pieces, strict=True)])

    def distance(self, a: Vector, b: Vector) -> float:
        rows = zip(self.units, self.blocks, np.split(a, self._cuts), np.split(b, self._cuts), strict=True)
        return math.hypot(*(part.distance(piece, other) / unit for unit, (_, part), piece, other in rows))

    def __repr__(self) -> str:
        return f"Product({', '.join(f'({size}, {part!r})' for size, part in self.blocks)})"


EXAMPLES = (
    Product((2, L2Ball(1.0)), (1, WholeSpace())),
    Product((2, L2Ball(1.0)), (1, L2Ball(3.0)), units=(1.0, 4.0)),
    Product((1, L2Ball(0.5)), (1, L2Ball(2.0)), (1, L2Ball(2.0))),
)
