"""Rows, loss, divergence, regularizer and sets put together, one problem a file."""

from pommel._registry import discover

PROBLEMS = discover(globals())
