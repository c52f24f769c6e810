"""h(margin, label), one file each: formula, conjugate, domain, constants, reference."""

from pommel._registry import discover

LOSSES = discover(globals())
