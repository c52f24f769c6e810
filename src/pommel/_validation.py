"""Checks of what users pass in: numbers, labels, sample weights. Each error says what was wrong and what to do."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target

from pommel.problem import Vector


def check_number(
    value: Any, name: str, *, above: float = 0.0, equal: bool = False, at_most: float = np.inf, infinite: bool = False
) -> float:
    """A number above a limit (or equal to it) and at most another, finite unless infinity is allowed, as a float."""
    sign = ">=" if equal else ">"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number {sign} {above:g}, got {value!r}")
    number = float(value)
    if not (number > above or (equal and number == above)) or (number == np.inf and not infinite):
        raise ValueError(f"{name} must be a {'' if infinite else 'finite '}number {sign} {above:g}, got {value!r}")
    if number > at_most:
        raise ValueError(f"{name} must be at most {at_most:g}, got {value!r}")
    return number


def check_count(value: Any, name: str) -> int:
    """A whole number >= 1."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number >= 1, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be >= 1, got {value!r}")
    return int(value)


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_unmasked(values: Any, name: str) -> None:
    """A mask would be dropped without a word."""
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise ValueError(f"{name} is a masked array with masked entries: fill them, or leave their rows out")


def check_vector(values: ArrayLike, size: int, name: str) -> Vector:
    """A finite float vector of the given length; a copy, so that nobody can change it from outside."""
    check_unmasked(values, name)
    vector = np.array(values, dtype=np.float64)
    if vector.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {vector.shape}")
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} has {np.sum(~np.isfinite(vector))} entries that are NaN or infinite")
    return vector


def check_values(values: Any, name: str) -> None:
    """What a user's function of two numbers gives for two arrays of length two."""
    if np.shape(values) != (2,):
        raise ValueError(
            f"{name} must take arrays and answer with one of the same shape: for arrays of length 2 the shape of its "
            f"answer is {np.shape(values)}"
        )


def check_weights(values: ArrayLike | None, n: int, name: str = "sample_weight") -> Vector:
    """Weights of rows, >= 0 with a positive sum; ones where none are given."""
    if values is None:
        return np.ones(n)
    weights = check_vector(values, n, name)
    if weights.min() < 0.0:
        raise ValueError(f"{name} must be >= 0, row {int(weights.argmin())} has {weights.min()}")
    if not np.isfinite(weights.sum()):
        raise ValueError(f"the sum of {name} is too large for a number")
    if weights.sum() <= 0.0:
        raise ValueError(f"{name} is zero for every row")
    return weights


def check_binary_labels(labels: ArrayLike, weights: Vector) -> tuple[Vector, NDArray[Any]]:
    """Labels of any type with two values, as -1 and +1 (the larger value), and the two values.

    Rows of weight zero count as removed: their labels may be anything.
    """
    n = weights.size
    check_unmasked(labels, "labels")
    values, kept = np.asarray(labels), weights > 0.0
    if values.shape != (n,):
        raise ValueError(f"labels must have shape ({n},), one for each row of X, got {values.shape}")
    if values.dtype.kind == "f" and np.isnan(values[kept]).any():
        missing = kept & np.isnan(values)
        raise ValueError(f"labels has {missing.sum()} NaN, the first in row {missing.argmax()}")
    try:
        type_of_target(values[kept], input_name="labels")  # refuses complex numbers, bytes, lists
        classes = np.unique(values[kept])
    except TypeError as error:
        raise TypeError(f"labels must be of one type, with none missing: {error}") from error
    if classes.size != 2:
        shown = ", ".join(map(str, classes[:5])) + (", ..." if classes.size > 5 else "")
        raise ValueError(
            f"labels must have exactly two classes among the rows of positive weight, got {classes.size}: {shown}"
        )
    return np.where(values == classes[1], 1.0, -1.0), classes
