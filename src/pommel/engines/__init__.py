"""Engines run the steps a solver asks for; all give the same iterates for the same draws."""

from pommel.engines.reference import Reference

ENGINES = {"reference": Reference}
