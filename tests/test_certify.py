"""Stochastic solvers are certified in passing: by valid bounds, for a fifth of the passes at most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import solve_auc, solve_dro
from sklearn.exceptions import ConvergenceWarning
from small_problems import auc, binary_data, dro, quadratics

import pommel as pm
from pommel.certify import bounds_of, why_not
from pommel.engines.reference import Reference

WAYS = [
    {"loss": "hinge", "lam1": 1 / 40, "lam2": 1 / 40, "radius": None},
    {"loss": "logistic", "lam1": 1 / 400, "lam2": 1 / 40, "radius": None},
    {"loss": "hinge", "lam1": None, "lam2": 1 / 40, "radius": 0.5},
    {"loss": "hinge", "lam1": 1 / 40, "lam2": 0.0, "radius": 0.5},
    {"loss": "logistic", "lam1": 1 / 40, "lam2": 0.0, "radius": 0.5},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_bounds_are_below_the_optimum_and_come_near_it(way: dict[str, Any], rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, 40, 3)
    problem, optimum = dro(X, labels, **way), solve_dro(X, labels, **way).value
    engine = Reference(problem)
    iterate = engine.restart(pm.RSPDsc().solve(problem, tol=0, max_passes=400).x)
    found = []
    for bound, _ in zip(bounds_of(problem)(iterate, engine), range(30), strict=False):
        found.append(bound)
    assert max(found) <= optimum + 1e-8
    assert max(found) >= optimum - 0.05 * optimum
    assert engine.n_gradients >= 2 * problem.n  # what was visited has been paid for


def test_auc_is_certified_by_what_its_exact_solver_proves(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, 40, 3)
    for options in ({"radius": 0.1}, {"lam2": 0.1}, {"radius": 0.2, "on": "v"}):
        problem, optimum = auc(X, labels, **options), solve_auc(X, labels, **options).value
        engine = Reference(problem)
        found = list(bounds_of(problem)(engine.restart(np.zeros(problem.d)), engine))
        assert optimum - 1e-6 <= max(found) <= optimum + 1e-8


@pytest.mark.parametrize("solver", [pm.RSPDsc(), pm.RSPD(), pm.ARSPD()], ids=lambda s: s.name)
def test_a_stochastic_solver_stops_on_a_proof(solver: Any, rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, 300, 3)
    problem = dro(X, labels, loss="hinge", lam1=1 / 300, lam2=1 / 300)
    optimum = pm.solve(problem, tol=1e-9).objective
    solution = solver.solve(problem, tol=0.05, max_passes=3000)
    assert solution.status is pm.Status.CONVERGED
    assert (solution.objective - optimum) / solution.objective <= solution.relative_gap <= 0.05
    assert solution.lower_bound <= optimum
    run = solver.solve(problem, tol=0, max_passes=solution.n_passes)
    assert run.lower_bound == 0.0  # nobody has asked for a proof, and none was paid for


def test_a_fifth_of_the_passes_at_most_goes_into_bounds(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, 300, 3)
    problem = dro(X, labels, loss="hinge", lam1=1 / 300, lam2=1 / 300)
    with pytest.warns(ConvergenceWarning):
        proved = pm.RSPDsc().solve(problem, tol=1e-12, max_passes=200)
    plain = pm.RSPDsc().solve(problem, tol=0, max_passes=200)
    steps = [solution.history["steps"].sum() for solution in (proved, plain)]
    assert steps[0] >= 0.75 * steps[1]  # evaluations are in neither


def test_why_there_is_none(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    assert "nothing is known of the losses of FunctionProblem" in str(why_not(quadratics(rng)))
    assert "without a regularizer" in str(why_not(dro(X, labels, loss="hinge", lam1=0.1, lam2=0.0)))
    assert why_not(dro(X, labels, loss="hinge", lam1=0.1, lam2=0.1)) is None
    wide = pm.AUC(rng.standard_normal((5, 2001)), [0, 1, 0, 1, 1])
    assert "nothing tells how flat P may be" in str(why_not(wide))
    engine = Reference(quadratics(rng))
    assert list(bounds_of(engine.problem)(engine.restart(np.zeros(engine.problem.d)), engine)) == []
