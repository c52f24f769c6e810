"""The whole space."""

from __future__ import annotations

from dataclasses import dataclass

from pommel.problem import ConvexSet, Vector

__all__ = ["WholeSpace"]


@dataclass(frozen=True)
class WholeSpace(ConvexSet):
    """R^d: no constraint, the projection is the identity."""

    def project(self, z: Vector) -> Vector:
        return z


EXAMPLES = (WholeSpace(),)
