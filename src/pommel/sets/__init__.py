"""Closed convex sets with their exact projections, one file each."""

from pommel._registry import discover

SETS = discover(globals())
