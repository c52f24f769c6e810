"""A solve of the same problem in other units of features: the same run, up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_problems import N, binary_data

import pommel as pm
from pommel.engines import ENGINES
from pommel.solvers._solver import Solver

PASSES = 150
UNITS = {"1024": 1024.0, "1/1024": 1.0 / 1024.0}

SOLVERS: dict[str, Solver] = {
    "RSPDsc": pm.RSPDsc(),
    "RSPD": pm.RSPD(),
    "ARSPD": pm.ARSPD(),
    "whole": pm.RSPDsc(dual_gradient="whole"),
    "implicit": pm.RSPD(dual_gradient="implicit"),
    "balls": pm.ARSPD(stage_length=30, theta=0.5),
}


def dro(X: Any, labels: Any, scale: float, *, lam1: float = 1.0 / N, lam2: float = 0.0, radius: float = np.inf) -> Any:
    """With x in units of 1 / scale."""
    return pm.DRO(
        scale * X,
        labels,
        divergence=pm.ChiSquare(lam1),
        regularizer=pm.L2(lam2 * scale**2) if lam2 else None,
        constraint=pm.L2Ball(radius / scale) if np.isfinite(radius) else None,
    )


PROBLEMS: dict[str, dict[str, float]] = {
    "L2": {"lam2": 0.1},
    "ball": {"radius": 0.5},
    "small ball": {"radius": 0.01, "lam2": 0.1},
    "nothing": {},
    "stiff": {"lam1": 0.01 / N, "lam2": 0.1},
    "stiff, ball": {"lam1": 0.01 / N, "radius": 2.0},
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scale", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("options", PROBLEMS.values(), ids=PROBLEMS)
def test_robust_risk(
    options: dict[str, float], solver: Solver, scale: float, engine: str, rng: np.random.Generator, seed: int
) -> None:
    """With sampling, pilot, radii, length of steps and all: nothing depends on a length that is taken for granted."""
    X, labels = binary_data(rng)
    budget = {"tol": 0.0, "max_passes": PASSES, "random_state": seed, "engine": engine}
    plain, other = (solver.solve(dro(X, labels, s, **options), **budget) for s in (1.0, scale))
    assert plain.engine == other.engine
    for column, unit in {"steps": 1.0, "objective": 1.0, "primal_step": scale**-2, "dual_step": 1.0}.items():
        np.testing.assert_allclose(other.history[column], unit * plain.history[column], rtol=1e-9)
    np.testing.assert_allclose(other.x * scale, plain.x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other.y, plain.y, rtol=1e-9, atol=1e-12)
    assert (plain.history["objective"][1:] != plain.history["objective"][0]).any()  # it did something


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scale", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize(("radius", "lam2"), [(0.5, 0.0), (np.inf, 0.1), (0.1, 0.1)], ids=["ball", "L2", "both"])
def test_auc(
    radius: float, lam2: float, solver: Solver, scale: float, engine: str, rng: np.random.Generator, seed: int
) -> None:
    """Although a and b have no units: X measures them in rows. Class means are far from 0."""
    X, labels = binary_data(rng)
    budget = {"tol": 0.0, "max_passes": PASSES, "random_state": seed, "engine": engine}
    plain, other = (
        solver.solve(
            pm.AUC(
                s * (X + 1.0),
                labels,
                constraint=pm.L2Ball(radius / s) if np.isfinite(radius) else None,
                regularizer=pm.L2(lam2 * s**2) if lam2 else None,
            ),
            **budget,
        )
        for s in (1.0, scale)
    )
    for column, unit in {"steps": 1.0, "objective": 1.0, "primal_step": scale**-2, "dual_step": 1.0}.items():
        np.testing.assert_allclose(other.history[column], unit * plain.history[column], rtol=1e-9, atol=1e-12 * unit)
    units = np.append(np.full(plain.x.size - 2, scale), [1.0, 1.0])
    np.testing.assert_allclose(other.x * units, plain.x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other.y, plain.y, rtol=1e-9, atol=1e-12)
    assert (plain.history["objective"][1:] != plain.history["objective"][0]).any()  # it did something
