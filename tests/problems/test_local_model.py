"""P around a point: value, gradient and Hessian against finite differences, products and diagonals against matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from small_problems import WEIGHTS, N, binary_data

import pommel as pm
from pommel.problem import Divergence
from pommel.problems._local_model import BLOCK, LocalModel
from pommel.rows import Rows

DIVERGENCES = [pm.Mean(), pm.ChiSquare(0.02), pm.ChiSquare(1.0)]
every_way = [
    pytest.mark.parametrize("loss", [pm.Logistic(), pm.SmoothedHinge(0.7)], ids=repr),
    pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr),
    pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"]),
]


def model(rng: np.random.Generator, loss: Any, divergence: Divergence, weights: Any, storage: Any = np.asarray) -> Any:
    X, labels = binary_data(rng)
    rows = Rows(storage(X), constant=0.5, column_scale=[1.0, 2.0, 0.5])
    problem = pm.DRO(rows, labels, loss=loss, divergence=divergence, regularizer=pm.L2(0.3), sample_weight=weights)
    x = rng.standard_normal(problem.d)
    return LocalModel(problem, loss, x, problem.read(x))


def at(base: LocalModel, x: np.ndarray) -> LocalModel:
    return LocalModel(base.problem, base.loss, x, base.problem.read(x))


@every_way[0]
@every_way[1]
@every_way[2]
def test_derivatives_are_those_of_the_value(loss: Any, divergence: Divergence, weights: Any, rng: Any) -> None:
    base, step = model(rng, loss, divergence, weights), 1e-6
    assert base.value == pytest.approx(base.problem.objective(base.x), rel=1e-14)
    ends = [(at(base, base.x + step * e), at(base, base.x - step * e)) for e in np.eye(base.x.size)]
    slopes = [(ahead.value - behind.value) / (2.0 * step) for ahead, behind in ends]
    np.testing.assert_allclose(base.gradient, slopes, atol=1e-8)
    curved = [(ahead.gradient - behind.gradient) / (2.0 * step) for ahead, behind in ends]
    np.testing.assert_allclose(base.hessian(), curved, atol=2e-5)
    direction = rng.standard_normal(base.x.size)
    assert base.slope_along(direction, base.problem.read(direction)) == pytest.approx(base.gradient @ direction)


@every_way[0]
@every_way[1]
@every_way[2]
def test_products_and_diagonal_are_those_of_the_matrix(
    loss: Any, divergence: Divergence, weights: Any, rng: np.random.Generator
) -> None:
    for storage in (np.asarray, csr_array):
        base = model(rng, loss, divergence, weights, storage)
        z = rng.standard_normal(base.x.size)
        np.testing.assert_allclose(base.hessian_times(z), base.hessian() @ z, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(base.hessian_diagonal(), np.diag(base.hessian()), rtol=1e-12, atol=1e-13)


@every_way[0]
@every_way[1]
def test_a_moved_model_is_the_one_there(loss: Any, divergence: Divergence, rng: np.random.Generator) -> None:
    base = model(rng, loss, divergence, None)
    direction = rng.standard_normal(base.x.size)
    ahead, there = base.moved(direction, base.problem.read(direction), 0.3), at(base, base.x + 0.3 * direction)
    assert ahead.value == pytest.approx(there.value, rel=1e-14)
    np.testing.assert_allclose(ahead.gradient, there.gradient, rtol=1e-12, atol=1e-14)


def test_own_gap_is_what_the_gradient_leaves(rng: np.random.Generator) -> None:
    base = model(rng, pm.Logistic(), pm.ChiSquare(1.0 / N), None)
    assert base.own_gap == pytest.approx(base.gradient @ base.gradient / (2.0 * 0.3))
    assert base.value - base.lower_bound == pytest.approx(base.own_gap, rel=1e-9)


def test_blocks_do_not_show(rng: np.random.Generator) -> None:
    n = BLOCK + 3
    X, labels = binary_data(rng, n, 2)
    problem = pm.DRO(X, labels, loss=pm.Logistic(), divergence=pm.ChiSquare(1.0 / n), regularizer=pm.L2(1.0 / n))
    x = rng.standard_normal(2)
    base = LocalModel(problem, problem.loss, x, problem.read(x))
    assert base.value == pytest.approx(problem.objective(x), rel=1e-14)
    np.testing.assert_allclose(base.gradient, problem.gradients(x, base.y)[0], rtol=1e-12, atol=1e-15)
