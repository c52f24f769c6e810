"""g, one file each: only its subgradients are ever needed."""

from pommel._registry import discover

REGULARIZERS = discover(globals())
