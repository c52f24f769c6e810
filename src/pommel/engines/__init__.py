"""Engines run the steps a solver asks for; all give the same iterates for the same draws."""

from pommel.engines.compiled import Compiled
from pommel.engines.reference import Reference

ENGINES = {"compiled": Compiled, "reference": Reference}
"""From the fastest to the one that takes any problem."""
