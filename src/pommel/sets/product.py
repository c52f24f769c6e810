"""Cartesian product of sets."""

from __future__ import annotations

import numpy as np

from pommel.problem import ConvexSet, Vector

__all__ = ["Product"]


class Product(ConvexSet):
    """Blocks of coordinates, each in a set of its own: z = (z_1, ..., z_k) with z_j in the j-th set.

    Parameters
    ----------
    *blocks : (int, ConvexSet)
        Length of each block and its (Euclidean) set.

    Examples
    --------
    >>> import numpy as np
    >>> from pommel import L2Ball, WholeSpace
    >>> Product((2, L2Ball(1.0)), (1, WholeSpace())).project(np.array([3.0, 4.0, 7.0]))
    array([0.6, 0.8, 7. ])
    """

    def __init__(self, *blocks: tuple[int, ConvexSet]) -> None:
        self.blocks = blocks
        self.radius = float(np.linalg.norm([part.radius for _, part in blocks]))
        self.diameter = float(np.linalg.norm([part.diameter for _, part in blocks]))
        self._cuts = np.cumsum([size for size, _ in blocks])[:-1]

    def project(self, z: Vector) -> Vector:
        pieces = np.split(z, self._cuts)
        return np.concatenate([part.project(piece) for (_, part), piece in zip(self.blocks, pieces, strict=True)])

    def __repr__(self) -> str:
        return f"Product({', '.join(f'({size}, {part!r})' for size, part in self.blocks)})"
