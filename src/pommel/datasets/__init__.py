"""Data to try things on. What is generated is called synthetic wherever it is shown."""

from pommel.datasets.minority import Minority, make_minority
from pommel.datasets.text_like import TextLike, make_text_like

__all__ = ["Minority", "TextLike", "make_minority", "make_text_like"]
