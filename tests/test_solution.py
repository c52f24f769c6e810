"""What a solve returns: read-only, printable, its history a mapping of columns."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

import pommel as pm


def history(*objectives: float) -> pm.History:
    table = pm.History()
    for stage, objective in enumerate(objectives):
        table.append({"stage": stage, "objective": objective})
    return table


def solution(**changes: Any) -> pm.Solution:
    parts = {
        "x": np.array([1.0, 2.0]),
        "y": np.array([1.0]),
        "objective": 0.123456789123,
        "lower_bound": -0.5,
        "gap": 0.623456789123,
        "relative_gap": 5.05,
        "status": pm.Status.MAX_PASSES,
        "message": "the budget of passes is used up; more",
        "solver": "RSPD",
        "engine": "reference",
        "n_gradients": 314,
        "n_passes": 31.44,
        "seconds": 0.126,
        "history": history(2.0, 1.0),
    }
    return pm.Solution(**parts | changes)


def test_it_prints_as_the_answer_in_two_lines() -> None:
    assert str(solution()) == (
        "RSPD: objective 0.123456789, lower bound -0.5, 31.4 passes, 0.13 s\n"
        "MAX_PASSES: the budget of passes is used up; more"
    )
    assert "lower bound -inf" in str(solution(lower_bound=-np.inf))
    assert "history" not in repr(solution()) and "x=array([1., 2.])" in repr(solution())


@pytest.mark.parametrize("name", [field.name for field in fields(pm.Solution)])
def test_it_is_frozen(name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(solution(), name, None)


def test_two_solutions_are_told_apart_without_comparing_arrays() -> None:
    one, other = solution(), solution()
    assert one == one and one != other
    assert len({one, other}) == 2


def test_it_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(solution()))
    assert str(again) == str(solution()) and again.status is pm.Status.MAX_PASSES
    assert again.history.rows == solution().history.rows


def test_every_status_says_how_it_ended() -> None:
    assert len({status.value for status in pm.Status}) == len(pm.Status) == 7
    assert all(status.value[0].islower() and not status.value.endswith(".") for status in pm.Status)


def test_history_is_a_mapping_of_columns() -> None:
    table = history(3.0, 2.0)
    assert list(table) == list(table.keys()) == ["stage", "objective"] and len(table) == 2
    assert "stage" in table and "gap" not in table
    np.testing.assert_array_equal(table["objective"], [3.0, 2.0])
    assert table["stage"].dtype.kind == "i" and table["objective"].dtype == np.float64
    columns = dict(table)
    assert columns.keys() == {"stage", "objective"}
    table["objective"][0] = 99.0  # a new array each time
    np.testing.assert_array_equal(table["objective"], [3.0, 2.0])
    assert table.rows == [{"stage": 0, "objective": 3.0}, {"stage": 1, "objective": 2.0}]
    assert repr(table) == "History(2 rows: stage, objective)"
    assert table.get("gap") is None


def test_an_unknown_column_is_told_which_there_are() -> None:
    with pytest.raises(KeyError, match="'gap'; columns are stage, objective"):
        history(1.0)["gap"]


def test_a_history_without_rows() -> None:
    table = pm.History()
    assert list(table) == [] and len(table) == 0 and dict(table) == {}
    assert "objective" not in table and table.get("objective") is None
    with pytest.raises(KeyError, match="'objective'; the history has no rows"):
        table["objective"]
    assert table.to_pandas().empty


def test_history_goes_to_pandas() -> None:
    frame = history(3.0, 2.0).to_pandas()
    assert frame.columns.tolist() == ["stage", "objective"] and frame.to_dict("records") == history(3.0, 2.0).rows


def test_two_histories_are_told_apart_without_comparing_arrays() -> None:
    one, other = history(1.0, 2.0), history(1.0, 2.0)
    assert one == one and one != other
