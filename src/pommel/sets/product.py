"""Cartesian product of sets."""

from __future__ import annotations

import math

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

    Examples
    --------
    >>> import numpy as np
    >>> from pommel import L2Ball, WholeSpace
    >>> Product((2, L2Ball(1.0)), (1, WholeSpace())).project(np.array([3.0, 4.0, 7.0]))
    array([0.6, 0.8, 7. ])
    """

    def __init__(self, *blocks: tuple[int, ConvexSet]) -> None:
        self.blocks = blocks
        ends = np.cumsum([check_count(size, "the length of a block") for size, _ in blocks])
        self.n, self._cuts = int(ends[-1]), ends[:-1]
        if any(np.ndim(part.metric) for _, part in blocks):
            self.metric = np.concatenate([np.broadcast_to(part.metric, size) for size, part in blocks])
        self.radius = math.hypot(*(part.radius for _, part in blocks))
        self.diameter = math.hypot(*(part.diameter for _, part in blocks))

    def project(self, z: Vector) -> Vector:
        pieces = np.split(z, self._cuts)
        return np.concatenate([part.project(piece) for (_, part), piece in zip(self.blocks, pieces, strict=True)])

    def distance(self, a: Vector, b: Vector) -> float:
        pairs = zip(self.blocks, np.split(a, self._cuts), np.split(b, self._cuts), strict=True)
        return math.hypot(*(part.distance(piece, other) for (_, part), piece, other in pairs))

    def __repr__(self) -> str:
        return f"Product({', '.join(f'({size}, {part!r})' for size, part in self.blocks)})"


EXAMPLES = (Product((2, L2Ball(1.0)), (1, WholeSpace())), Product((1, L2Ball(0.5)), (1, L2Ball(2.0)), (1, L2Ball(2.0))))
