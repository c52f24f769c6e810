"""Checks of what users pass in: what is taken, and what an error says."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pommel._validation import (
    check_binary_labels,
    check_choice,
    check_count,
    check_number,
    check_vector,
    check_weights,
)


@pytest.mark.parametrize("value", [1, 2.5, np.float32(0.5), np.int8(3), Fraction(1, 4), np.float64(1e300), 5e-324])
def test_numbers_of_any_type_become_floats(value: Any) -> None:
    number = check_number(value, "step")
    assert type(number) is float and number == float(value)


@pytest.mark.parametrize(
    ("value", "options", "error", "message"),
    [
        ("1", {}, TypeError, "step must be a number > 0, got '1'"),
        (None, {}, TypeError, "step must be a number > 0, got None"),
        (True, {}, TypeError, "step must be a number > 0, got True"),
        (1j, {}, TypeError, "step must be a number > 0, got 1j"),
        ([1.0], {"equal": True}, TypeError, "step must be a number >= 0, got [1.0]"),
        (0, {}, ValueError, "step must be a finite number > 0, got 0"),
        (-1.0, {"equal": True}, ValueError, "step must be a finite number >= 0, got -1.0"),
        (np.nan, {"infinite": True}, ValueError, "step must be a number > 0, got nan"),
        (np.inf, {}, ValueError, "step must be a finite number > 0, got inf"),
        (-np.inf, {"infinite": True}, ValueError, "step must be a number > 0, got -inf"),
        (2, {"above": 2.0}, ValueError, "step must be a finite number > 2, got 2"),
        (1.5, {"at_most": 1.0}, ValueError, "step must be at most 1, got 1.5"),
    ],
)
def test_wrong_numbers_are_named(value: Any, options: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        check_number(value, "step", **options)


def test_limits_of_numbers() -> None:
    assert check_number(0.0, "step", equal=True) == 0.0
    assert check_number(np.inf, "step", infinite=True) == np.inf
    assert check_number(1.0, "step", at_most=1.0) == 1.0
    assert check_number(-2.5, "step", above=-3.0) == -2.5


@pytest.mark.parametrize("value", [1, 7, np.int64(7), np.uint8(7)])
def test_counts(value: Any) -> None:
    assert type(check_count(value, "n")) is int and check_count(value, "n") == value


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (0, ValueError, "n must be >= 1, got 0"),
        (-3, ValueError, "n must be >= 1, got -3"),
        (1.0, TypeError, "n must be a whole number >= 1, got 1.0"),
        (True, TypeError, "n must be a whole number >= 1, got True"),
        ("3", TypeError, "n must be a whole number >= 1, got '3'"),
    ],
)
def test_wrong_counts_are_named(value: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        check_count(value, "n")


def test_choices() -> None:
    check_choice("uniform", "sampling", ("uniform", "dual"))
    for wrong in ("Dual", None, 0):
        with pytest.raises(ValueError, match=f"^sampling must be one of 'uniform', 'dual', got {wrong!r}$"):
            check_choice(wrong, "sampling", ("uniform", "dual"))


@pytest.mark.parametrize("values", [[1, 2], (1.0, 2.0), np.array([1, 2], np.int8), np.array([1.0, 2.0])])
def test_vectors_are_copied(values: Any) -> None:
    vector = check_vector(values, 2, "u")
    assert vector.dtype == np.float64 and vector.tolist() == [1.0, 2.0]
    assert not np.shares_memory(vector, np.asarray(values))
    vector[0] = 9.0  # also where the original is not writable
    assert values[0] == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0], "u must have shape (2,), got (1,)"),
        (1.0, "u must have shape (2,), got ()"),
        ([[1.0], [2.0]], "u must have shape (2,), got (2, 1)"),
        ([1.0, np.nan], "u has 1 entries that are NaN or infinite"),
        ([-np.inf, np.nan], "u has 2 entries that are NaN or infinite"),
        (["a", "b"], "could not convert string to float"),
    ],
)
def test_wrong_vectors_are_named(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        check_vector(values, 2, "u")


def test_weights() -> None:
    np.testing.assert_array_equal(check_weights(None, 3), [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(check_weights([0, 2, 0.5], 3), [0.0, 2.0, 0.5])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 1.0], "sample_weight must have shape (3,), got (2,)"),
        ([1.0, -0.5, -2.0], "sample_weight must be >= 0, row 2 has -2.0"),
        ([0.0, 0.0, 0.0], "sample_weight is zero for every row"),
        ([1.0, np.inf, 1.0], "sample_weight has 1 entries that are NaN or infinite"),
    ],
)
def test_wrong_weights_are_named(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_weights(values, 3)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, 1, 0], [0, 1]),
        ([-1.0, 1.0, -1.0], [-1.0, 1.0]),
        ([False, True, False], [False, True]),
        (["ham", "spam", "ham"], ["ham", "spam"]),
        (np.array(["ham", "spam", "ham"], dtype=object), ["ham", "spam"]),
        (np.array([7, 9, 7], dtype=np.uint8), [7, 9]),
    ],
    ids=str,
)
def test_labels_become_signs_the_larger_class_is_positive(labels: Any, classes: list[Any]) -> None:
    signs, found = check_binary_labels(labels, np.ones(3))
    assert signs.dtype == np.float64 and signs.tolist() == [-1.0, 1.0, -1.0]
    assert found.tolist() == classes


@pytest.mark.parametrize("removed", [np.nan, np.inf, 5.0])
def test_labels_of_removed_rows_may_be_anything(removed: float) -> None:
    signs, classes = check_binary_labels([0.0, removed, 1.0, removed], np.array([1.0, 0.0, 2.0, 0.0]))
    assert signs[[0, 2]].tolist() == [-1.0, 1.0] and classes.tolist() == [0.0, 1.0]
    assert np.isfinite(signs).all()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], "labels must have shape (3,), one for each row of X, got (2,)"),
        ([[0], [1], [0]], "labels must have shape (3,), one for each row of X, got (3, 1)"),
        ([0.0, np.nan, np.nan], "labels has 2 NaN, the first in row 1"),
        ([1, 1, 1], "exactly two classes among the rows of positive weight, got 1: 1"),
        (["a", "b", "c"], "got 3: a, b, c"),
    ],
    ids=str,
)
def test_wrong_labels_are_named(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        check_binary_labels(labels, np.ones(3))


def test_only_the_first_of_many_classes_are_shown() -> None:
    with pytest.raises(ValueError, match=r"got 9: 0, 1, 2, 3, 4, \.\.\.$"):
        check_binary_labels(np.arange(9), np.ones(9))


@pytest.mark.parametrize("labels", [[0, "a", 0], [0, None, 1], ["ham", None, "spam"], ["ham", np.nan, "spam"]], ids=str)
def test_labels_of_mixed_types_are_refused(labels: Any) -> None:
    with pytest.raises(TypeError, match=r"^labels must be of one type, with none missing: "):
        check_binary_labels(np.array(labels, dtype=object), np.ones(3))
