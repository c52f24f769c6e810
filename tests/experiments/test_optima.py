from __future__ import annotations

import numpy as np
import oracles
import pytest

import pommel as pm
from pommel.experiments.optima import auc_optimum, dro_optimum


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((40, 6))
    return X, np.where(X @ rng.standard_normal(6) + rng.standard_normal(40) > 0.3, 1.0, -1.0)


@pytest.mark.parametrize("lam1", [None, 1 / 40, 1 / 400])
def test_dro_bounds_enclose_the_optimum(data: tuple[np.ndarray, np.ndarray], lam1: float | None) -> None:
    X, labels = data
    divergence = pm.Mean() if lam1 is None else pm.ChiSquare(lam1)
    lower, upper = dro_optimum(pm.DRO(X, labels, divergence=divergence, regularizer=pm.L2(0.05)))
    value = oracles.solve_dro(X, labels, loss="hinge", lam1=lam1, lam2=0.05).value
    assert lower - 1e-8 <= value <= upper + 1e-8
    assert -1e-12 <= upper - lower <= 1e-7


@pytest.mark.parametrize("radius", [None, 0.1, 100.0])
def test_auc_optimum_is_the_oracles(data: tuple[np.ndarray, np.ndarray], radius: float | None) -> None:
    X, labels = data
    problem = pm.AUC(X, labels, constraint=None if radius is None else pm.L2Ball(radius))
    value, v = auc_optimum(problem)
    truth = oracles.solve_auc(X, labels, radius=radius)
    assert value == pytest.approx(truth.value, abs=1e-8)
    assert v == pytest.approx(truth.x, abs=1e-3)
    assert problem.is_constraint_active(v) == (radius == 0.1)


def test_other_problems_are_refused(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, labels = data
    with pytest.raises(TypeError, match="hinge loss, L2 and no constraint"):
        dro_optimum(pm.DRO(X, labels, loss=pm.Logistic(), divergence=pm.Mean(), regularizer=pm.L2(1.0)))
    with pytest.raises(TypeError, match="no regularizer"):
        auc_optimum(pm.AUC(X, labels, regularizer=pm.L2(1.0)))
