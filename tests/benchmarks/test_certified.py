"""Peers of `make bench-certified` solve the problem they are said to: all agree on P*, and with Pommel's own P."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from oracles import solve_auc, solve_dro

import pommel as pm
from benchmarks.certified import conic, linear, peers
from benchmarks.certified.objective import Enough, Objective, Trace

N, D, LAM2 = 150, 8, 0.02
LOSSES = {"hinge": pm.Hinge(), "logistic": pm.Logistic()}


@pytest.fixture(params=["dense", "sparse"])
def X(rng: np.random.Generator, request: pytest.FixtureRequest) -> object:
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.6)
    return X if request.param == "dense" else sp.csr_array(X)


@pytest.fixture
def labels(rng: np.random.Generator, X: object) -> np.ndarray:
    return np.where(X @ np.linspace(-1.0, 1.0, D) + 0.5 * rng.standard_normal(N) > 0.0, 1.0, -1.0)


def best(run: peers.Run) -> float:
    trace = Trace(max_seconds=10.0)
    with warnings.catch_warnings(action="ignore"):
        run(trace)
    assert all(later < earlier for earlier, later in pairwise(trace.objectives))
    return trace.objectives[-1]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("strength", [0.05, 1.0, 10.0, None])
def test_objective_is_that_of_pommel_with_a_subgradient(X, labels, rng, loss: str, strength: float | None) -> None:
    lam1 = None if strength is None else strength / N
    divergence = pm.Mean() if lam1 is None else pm.ChiSquare(lam1)
    problem = pm.DRO(X, labels, loss=LOSSES[loss], divergence=divergence, regularizer=pm.L2(LAM2))
    objective = Objective(X, labels, loss, lam1, LAM2)
    for scale in (0.0, 0.1, 3.0, 100.0, 0.5):  # the search for the threshold starts from the last one
        x = scale * rng.standard_normal(D)
        value, gradient = objective.value_and_gradient(x)
        assert value == pytest.approx(problem.objective(x), rel=1e-12)
        assert objective.value(x) == pytest.approx(value, rel=1e-14)
        other = x + rng.standard_normal(D)
        assert objective.value(other) >= value + gradient @ (other - x) - 1e-9


@pytest.mark.parametrize("width", [1.0, 1e-3])
def test_rounding_changes_the_objective_by_half_its_width_at_most(X, labels, rng, width: float) -> None:
    objective, x = Objective(X, labels, "hinge", 1.0 / N, LAM2), rng.standard_normal(D)
    value, gradient = objective.value_and_gradient(x, width)
    assert 0.0 <= objective.value(x) - value <= width / 2
    step = 1e-6 * rng.standard_normal(D)
    change = objective.value_and_gradient(x + step, width)[0] - objective.value_and_gradient(x - step, width)[0]
    assert change == pytest.approx(2.0 * gradient @ step, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("strength", [0.1, 1.0, 10.0])
def test_peers_agree_on_robust_problems(X, labels, loss: str, strength: float) -> None:
    objective = Objective(X, labels, loss, strength / N, LAM2)
    optimum = solve_dro(X, labels, loss=loss, lam1=strength / N, lam2=LAM2).value
    reached = {name: best(run) for name, run in peers.quasi_newton(objective).items()}
    reached["Clarabel"] = best(conic.clarabel(objective)[0])
    if loss == "hinge":
        reached["OSQP"] = best(conic.osqp(objective)[0])
    for name, value in reached.items():
        kinks = 1e-4 if name.startswith("L-BFGS-B") and loss == "hinge" else 1e-6  # it may end at one
        assert optimum * (1.0 - 1e-7) <= value <= optimum * (1.0 + kinks), name


@pytest.mark.parametrize("loss", LOSSES)
def test_peers_agree_without_an_adversary(X, labels, loss: str) -> None:
    objective = Objective(X, labels, loss, None, LAM2)
    optimum = solve_dro(X, labels, loss=loss, lam1=None, lam2=LAM2).value
    for name, run in linear.risk_minimisers(objective, X, labels).items():
        assert best(run) == pytest.approx(optimum, rel=1e-6), name


def test_rankers_agree(X, labels) -> None:
    problem = pm.AUC(X, labels, regularizer=pm.L2(LAM2))
    optimum = solve_auc(X, labels, lam2=LAM2).value
    for name, run in linear.rankers(problem, X, labels, LAM2).items():
        assert best(run) == pytest.approx(optimum, rel=1e-6), name
    assert linear.logistic_reference(problem, X, labels)[1] > optimum


def test_ball_of_dro_is_that_of_the_best_response(X, labels) -> None:
    lam1 = 0.5 / N
    problem = pm.DRO(X, labels, divergence=pm.ChiSquare(lam1), regularizer=pm.L2(LAM2))
    x = solve_dro(X, labels, loss="hinge", lam1=lam1, lam2=LAM2).x
    radius = conic.chi_square_ball(Objective(X, labels, "hinge", lam1, LAM2), x)
    assert radius == pytest.approx(np.mean((N * problem.best_response(x) - 1.0) ** 2), rel=1e-9)


def test_trace_keeps_the_best_and_ends_at_the_goal() -> None:
    trace = Trace(max_seconds=5.0, goal=1.0)
    for value in (3.0, 4.0, 2.0):
        trace.record(value)
    assert trace.objectives == [3.0, 2.0]
    with pytest.raises(Enough):
        trace.record(0.9)
