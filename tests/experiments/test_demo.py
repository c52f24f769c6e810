from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pommel.experiments.demo import Race, robust_risk, square_auc, tails


def ignore(text: str) -> None:
    pass


@pytest.mark.parametrize("experiment", [robust_risk, square_auc])
def test_race_measures_gaps_above_a_true_optimum(experiment: Callable[..., Race]) -> None:
    race = experiment(ignore, passes=8.0)
    for curve in race.curves:
        assert curve.gaps.shape == (3, curve.passes.size)
        assert (curve.gaps > 0.0).all() and (np.diff(curve.gaps, axis=1) <= 0.0).all()
        assert curve.at(8.0) < 0.2 * curve.at(1.0)
        assert curve.passes[-1] <= 8.0
    assert "not active" not in race.optimum


def test_robustness_lowers_the_tail_and_raises_the_mean() -> None:
    erm, dro = tails(ignore, robustness=(0.0, 3.0), passes=20.0)
    assert dro.worst(0.1) < 0.85 * erm.worst(0.1)
    assert dro.worst_group_loss < 0.8 * erm.worst_group_loss
    assert dro.losses.mean() > erm.losses.mean()
    assert erm.worst(1.0) == pytest.approx(erm.losses.mean())
