"""Data to try things on. What is generated is called synthetic wherever it is shown."""

from pommel.datasets.minority import Minority, make_minority

__all__ = ["Minority", "make_minority"]
