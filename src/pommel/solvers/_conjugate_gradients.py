"""Conjugate gradients with a diagonal preconditioner, for Newton steps in many variables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pommel.engines.engine import Engine
from pommel.problem import Vector

ACCURACY, MOST_STEPS = 0.1, 250
"""Steps end where the residual has this share of its first size, in the preconditioner's norm, or after so many."""


def conjugate_gradients(
    times: Callable[[Vector], Vector], r: Vector, diagonal: Vector, engine: Engine, reads: float
) -> Vector:
    """An approximate solution of H z = r, H positive definite; `reads` of the rows are paid for each product."""
    z, residual = np.zeros_like(r), r.copy()
    scaled = residual / diagonal
    direction, size = scaled.copy(), float(residual @ scaled)
    goal = ACCURACY**2 * size
    for _ in range(MOST_STEPS):
        if not size > goal or engine.exhausted():
            break
        engine.pay(reads)
        product = times(direction)
        length = size / float(direction @ product)
        z += length * direction
        residual -= length * product
        scaled = residual / diagonal
        past, size = size, float(residual @ scaled)
        direction = scaled + (size / past) * direction
    return z
