"""One algorithm a file: `stages` reads like its box in the paper."""

from pommel._registry import discover

SOLVERS = discover(globals())
