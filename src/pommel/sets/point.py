"""A single point."""

from __future__ import annotations

from pommel.problem import ConvexSet, Vector

__all__ = ["Point"]


class Point(ConvexSet):
    """The set {point}: the dual set of `Mean`, where no adversary moves."""

    diameter = 0.0

    def __init__(self, point: Vector) -> None:
        self.point = point

    def project(self, z: Vector) -> Vector:
        return self.point

    def __repr__(self) -> str:
        return f"Point({self.point!r})"
