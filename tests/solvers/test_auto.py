"""solver="auto": what it takes, that it says so, that it goes on elsewhere when a solver stalls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from small_problems import WEIGHTS, N, auc, binary_data, dro, quadratics

import pommel as pm
from pommel.engines.engine import Engine, Iterate
from pommel.problem import Problem, Vector
from pommel.solvers import auto
from pommel.solvers._solver import Solver


def wide(rng: np.random.Generator, **options: Any) -> pm.DRO:
    return dro(*binary_data(rng, 20, 2001), lam2=0.1, lam1=0.05, **options)


def sparse(rng: np.random.Generator) -> pm.DRO:
    X = sp.random_array((800, 60), density=0.05, rng=rng, format="csr")
    return dro(X, np.where(np.arange(800) % 3, 1.0, -1.0), loss="hinge", lam1=0.1, lam2=0.1)


CHOICES = {
    "strong, kinked": (lambda rng: dro(*binary_data(rng), loss="hinge", lam1=1e-3, lam2=0.1), 1e-6, "Newton"),
    "coarse, kinked": (lambda rng: dro(*binary_data(rng, 600, 40), loss="hinge", lam1=0.1, lam2=1.0), 1e-2, "Newton"),
    "fine, kinked": (lambda rng: dro(*binary_data(rng), loss="hinge", lam1=0.1, lam2=0.1), 1e-6, "InteriorPoint"),
    "sparse, kinked": (lambda rng: sparse(rng), 1e-3, "DualAscent"),
    "smooth": (lambda rng: dro(*binary_data(rng), loss="logistic", lam1=0.1, lam2=0.1), 1e-6, "Newton"),
    "ball": (lambda rng: dro(*binary_data(rng), loss="hinge", lam1=0.1, lam2=0.0, radius=0.5), 1e-6, "Newton"),
    "wide": (lambda rng: wide(rng, loss="hinge"), 1e-6, "DualAscent"),
    "wide, smooth": (lambda rng: wide(rng, loss="logistic"), 1e-6, "DualAscent"),
    "AUC": (lambda rng: auc(*binary_data(rng), radius=0.3), 1e-6, "ExactAUC"),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choice(name: str, rng: np.random.Generator) -> None:
    build, tol, expected = CHOICES[name]
    solution = pm.solve(build(rng), tol=tol)
    assert (solution.solver, solution.status) == (expected, pm.Status.CONVERGED)
    assert f"{expected} was taken: " in solution.message
    assert solution.history["solver"][-1] == expected
    assert solution.relative_gap <= tol


def test_without_structure_restarts_are_left(rng: np.random.Generator) -> None:
    strongly = quadratics(rng, regularizer=pm.L2(0.1), primal_set=pm.L2Ball(2.0))
    assert pm.solve(strongly, tol=0, max_passes=50).solver == "RSPDsc"
    assert pm.solve(quadratics(rng, primal_set=pm.L2Ball(2.0)), tol=0, max_passes=50).solver == "ARSPD"


@dataclass(frozen=True, kw_only=True)
class Stuck(Solver):
    """Stays where it is."""

    def stages(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        while True:
            engine.pay(passes=1)
            yield Iterate(x0, *problem.respond(x0), lower_bound=0.0)


def test_goes_on_with_the_next_when_one_stalls(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "Newton", Stuck)
    problem = dro(*binary_data(rng, 900, 30), loss="hinge", lam1=1 / 900, lam2=1 / 900)
    solution = pm.solve(problem, tol=1e-4)
    assert (solution.solver, solution.status) == ("InteriorPoint", pm.Status.CONVERGED)
    assert list(dict.fromkeys(solution.history["solver"]))[1:] == ["Stuck", "InteriorPoint"]


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("lam1", [None, 0.1])
def test_tiny_problems_are_solved_to_rounding(loss: str, lam1: float | None, rng: np.random.Generator) -> None:
    """So that a whole weight and a repeated row lead to the same answer."""
    X, labels = binary_data(rng)
    counts = np.concatenate([[1, 2, 0, 3], rng.integers(0, 4, N - 4)])
    copies = np.repeat(np.arange(N), counts)
    options = {"loss": loss, "lam1": lam1, "lam2": 0.1}
    weighted = pm.solve(dro(X, labels, sample_weight=counts.astype(float), **options), tol=0.1)
    repeated = pm.solve(dro(X[copies], labels[copies], **options), tol=0.1)
    assert weighted.status is repeated.status is pm.Status.CONVERGED
    assert weighted.relative_gap <= 1e-9
    np.testing.assert_allclose(weighted.x, repeated.x, rtol=1e-6, atol=1e-7)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-12)


def test_weights_and_names(rng: np.random.Generator) -> None:
    problem = dro(*binary_data(rng), loss="hinge", lam1=0.1, lam2=0.1, sample_weight=WEIGHTS)
    assert pm.solve(problem, solver=pm.Newton()).solver == "Newton"
    with pytest.raises(ValueError, match='solver must be "auto" or a solver'):
        pm.solve(problem, solver="newton")
