"""phi* and its conjugate, one file each: formula, best response, domain, constants, reference."""

from pommel._registry import discover

DIVERGENCES = discover(globals())
