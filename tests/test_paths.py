"""Paths: every point is the certified solution of its own problem."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from small_problems import WEIGHTS, auc, binary_data, dro

import pommel as pm


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_every_point_solves_its_problem(loss: str, rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, 300, 4)
    problem = dro(X, labels, loss=loss, lam1=1.0, lam2=1 / 300)
    values = [0.0, 0.3, 1.0, 3.0]
    for value, solution in zip(values, pm.path(problem, robustness=values, tol=1e-6), strict=True):
        lam1 = 1.0 / (value * 300) if value else None
        alone = pm.solve(dro(X, labels, loss=loss, lam1=lam1, lam2=1 / 300), tol=1e-8)
        assert solution.status is pm.Status.CONVERGED
        assert alone.lower_bound <= solution.objective <= alone.objective * (1.0 + 1e-6)


def test_along_regularizers_and_with_weights(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    problem = dro(X, labels, loss="hinge", lam1=0.1, lam2=1.0, sample_weight=WEIGHTS)
    found = pm.path(problem, regularizers=[pm.L2(1.0), pm.L2(0.1)], tol=1e-6)
    assert [solution.objective > 0.0 for solution in found] == [True, True]
    np.testing.assert_allclose(found[0].objective, pm.solve(problem, tol=1e-6).objective, rtol=2e-6)


def test_a_start_from_the_neighbours_saves_most_of_the_work(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, 12_000, 5)
    problem = dro(X, labels, loss="logistic", lam1=1.0, lam2=1 / 12_000)
    values = np.geomspace(0.5, 2.0, 10)
    along = [solution.n_passes for solution in pm.path(problem, robustness=values)]
    assert sum(along[2:]) / 8 <= 0.75 * along[0]


def test_like_shares_rows_and_keeps_classes(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    problem = pm.DRO(X, np.where(labels > 0, "yes", "no"), divergence=pm.Mean(), sample_weight=WEIGHTS)
    other = problem.like(divergence=pm.ChiSquare(0.1), loss=pm.Logistic(), constraint=pm.L2Ball(1.0))
    fresh = dro(X, labels, loss="logistic", lam1=0.1, lam2=0.0, radius=1.0, sample_weight=WEIGHTS)
    assert other.rows is problem.rows and list(other.classes) == ["no", "yes"]
    x = rng.standard_normal(problem.d)
    assert other.objective(x) == fresh.objective(x)
    assert other.respond(x).center == fresh.respond(x).center
    assert other.primal_set == pm.L2Ball(1.0)


def test_refusals(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    problem = dro(X, labels, loss="hinge", lam1=0.1, lam2=0.1)
    with pytest.raises(ValueError, match="either robustness or regularizers"):
        pm.path(problem)
    with pytest.raises(ValueError, match="robustness must be a finite number >= 0"):
        pm.path(problem, robustness=[-1.0])
    with pytest.raises(ValueError, match="Mean\\(\\) has no robustness to give"):
        pm.path(dro(X, labels, loss="hinge", lam1=None, lam2=0.1), robustness=[1.0])
    with pytest.raises(TypeError, match="takes a DRO problem, got AUC"):
        pm.path(auc(X, labels), robustness=[1.0])


def test_one_stop_ends_the_path(rng: np.random.Generator) -> None:
    problem = dro(*binary_data(rng), loss="hinge", lam1=0.1, lam2=0.1)
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        found = pm.path(problem, robustness=[0.0, 1.0], callback=lambda row: True)
    assert [solution.status for solution in found] == [pm.Status.STOPPED]
    with pytest.raises(TypeError, match="it takes no x0"):
        pm.path(problem, robustness=[1.0], x0=np.zeros(3))
    assert len(pm.path(problem, robustness=1.0)) == 1
