"""What gaps are counted from: a bracket of P* that is proved, and closed by everybody's runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.certified.ours import Curve

WIDTH = 1e-9
"""A long run of ours goes on until its bracket is this narrow, relatively."""

DECIDED = 3.0
"""Gaps below this many widths of the bracket are not compared."""


@dataclass
class Bracket:
    """lower <= P* <= upper: the best proof of ours, the best point of anyone."""

    lower: float = -np.inf
    upper: float = np.inf
    offset: float = 0.0  # of what gaps are relative to: P + offset

    def update(self, curve: Curve) -> None:
        if curve.objectives.size:
            self.lower = max(self.lower, float(curve.lower_bounds[-1]))
            self.upper = min(self.upper, float(curve.objectives.min()))

    @property
    def size(self) -> float:
        return abs(self.upper + self.offset)

    @property
    def width(self) -> float:
        """Relative; negative if a bound was above an objective, which would be a wrong bound."""
        return (self.upper - self.lower) / self.size

    def decides(self, gap: float) -> bool:
        return self.width <= gap / DECIDED

    def goal(self, gap: float) -> float:
        """An objective that surely has this gap, as far as is known now."""
        return self.lower + gap * self.size
