"""Divergences: what every phi* and its conjugate must satisfy. A new one is tested by having `EXAMPLES`."""

from __future__ import annotations

import pickle
from decimal import Decimal, localcontext
from functools import singledispatch
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from exact import DIGITS, decimals, project
from hypothesis import given
from hypothesis import strategies as st
from oracles import TIGHT
from strategies import vectors

import pommel as pm
from pommel._registry import examples
from pommel.divergences import DIVERGENCES
from pommel.problem import Divergence, Vector

EXACT = 1e-12
WEIGHTS = [np.ones(1), np.ones(2), np.ones(6), np.array([2.0, 1.0, 0.3, 0.0, 3.0]), np.array([0.0, 1e-3, 1.0, 1e3])]

every_divergence = pytest.mark.parametrize("divergence", examples(DIVERGENCES), ids=repr)
every_weights = pytest.mark.parametrize("weights", WEIGHTS, ids=str)


@singledispatch
def stated(divergence: Divergence, y: cp.Variable, weights: Vector) -> tuple[Any, Any]:
    """phi*(y) and what must hold on its domain beyond y in the simplex, for CVXPY."""
    raise NotImplementedError(f"state here what phi* is for {divergence!r}")


@stated.register
def _(divergence: pm.Mean, y: cp.Variable, weights: Vector) -> tuple[Any, Any]:
    return 0.0, y == weights / weights.sum()


@stated.register
def _(divergence: pm.ChiSquare, y: cp.Variable, weights: Vector) -> tuple[Any, Any]:
    kept, n, y0 = weights > 0.0, weights.sum(), weights / weights.sum()
    squares = cp.sum_squares(cp.multiply(y[kept] - y0[kept], 1.0 / np.sqrt(y0[kept])))
    return 0.5 * n * divergence.lam * squares, y[~kept] == 0.0


def dual_points(divergence: Divergence, weights: Vector, rng: np.random.Generator) -> Vector:
    """Points of Y: its corners, the reference distribution, and others."""
    size = weights.size
    far = np.vstack([1e6 * np.eye(size), weights / weights.sum(), rng.standard_normal((30, size))])
    return np.array([divergence.dual_set(weights).project(z) for z in far])


def length(gradient: Vector, weights: Vector) -> float:
    """Of losses and other gradients by y: the norm dual to that of the metric."""
    return float(np.sqrt(weights @ gradient**2))


@every_divergence
@every_weights
def test_best_response_is_the_gradient_of_phi(
    divergence: Divergence, weights: Vector, rng: np.random.Generator
) -> None:
    for losses in rng.standard_normal((10, weights.size)):
        steps = 1e-7 * np.eye(weights.size)
        rises = [divergence.conjugate(losses + e, weights) - divergence.conjugate(losses - e, weights) for e in steps]
        np.testing.assert_allclose(divergence.best_response(losses, weights), np.array(rises) / 2e-7, atol=1e-5)


@every_divergence
@every_weights
def test_fenchel_young_inequality_is_tight_at_the_best_response(
    divergence: Divergence, weights: Vector, rng: np.random.Generator
) -> None:
    points = dual_points(divergence, weights, rng)
    for losses in rng.standard_normal((10, weights.size)) * 10.0 ** rng.integers(-3, 4, (10, 1)):
        phi, best = divergence.conjugate(losses, weights), divergence.best_response(losses, weights)
        for y in points:
            assert y @ losses - divergence.value(y, weights) <= phi + EXACT * np.abs(losses).max()
        assert best @ losses - divergence.value(best, weights) == pytest.approx(phi, abs=EXACT * np.abs(losses).max())


@every_divergence
@every_weights
def test_phi_is_the_maximum_that_clarabel_finds(
    divergence: Divergence, weights: Vector, rng: np.random.Generator
) -> None:
    losses = rng.standard_normal(weights.size)
    y = cp.Variable(weights.size)
    phi_star, domain = stated(divergence, y, weights)
    problem = cp.Problem(cp.Maximize(losses @ y - phi_star), [y >= 0.0, cp.sum(y) == 1.0, domain])
    problem.solve(solver=cp.CLARABEL, **TIGHT)
    assert divergence.conjugate(losses, weights) == pytest.approx(problem.value, rel=1e-7, abs=1e-7)
    assert divergence.value(y.value, weights) == pytest.approx(losses @ y.value - problem.value, rel=1e-6, abs=1e-6)


@every_divergence
@every_weights
def test_gradient_is_that_of_phi_star(divergence: Divergence, weights: Vector, rng: np.random.Generator) -> None:
    """Along the simplex, inside of it: there phi* is defined on either side."""
    y0 = weights / weights.sum()
    for shares in rng.dirichlet(weights + (weights > 0.0), size=10):
        y, ahead = 0.5 * y0 + 0.5 * shares, y0 - shares
        rise = divergence.value(y + 1e-6 * ahead, weights) - divergence.value(y - 1e-6 * ahead, weights)
        slope = divergence.gradient(y, weights) @ ahead
        assert rise / 2e-6 == pytest.approx(slope, rel=1e-5, abs=1e-7)


@every_divergence
@every_weights
def test_constants_are_bounds(divergence: Divergence, weights: Vector, rng: np.random.Generator) -> None:
    dual_set, bound = divergence.dual_set(weights), divergence.gradient_bound(weights)
    np.testing.assert_array_equal(dual_set.metric, weights)
    for y in dual_points(divergence, weights, rng):
        assert bound is None or length(divergence.gradient(y, weights), weights) <= bound * (1.0 + EXACT)
    L, v = divergence.holder(weights)
    for a, b in rng.standard_normal((50, 2, weights.size)) * 10.0 ** rng.integers(-3, 4, (50, 1, 1)):
        moved = dual_set.distance(divergence.best_response(a, weights), divergence.best_response(b, weights))
        assert moved <= L * length(a - b, weights) ** v * (1.0 + EXACT) + EXACT * dual_set.radius


@every_divergence
def test_a_whole_weight_is_a_repeated_row_and_zero_a_removed_one(
    divergence: Divergence, rng: np.random.Generator
) -> None:
    counts = np.array([3, 1, 0, 2, 5])
    copies = np.repeat(np.arange(counts.size), counts)
    weights, ones = counts.astype(float), np.ones(copies.size)
    for losses in rng.standard_normal((20, counts.size)):
        repeated = losses[copies]
        assert divergence.conjugate(losses, weights) == pytest.approx(divergence.conjugate(repeated, ones), rel=EXACT)
        response = divergence.best_response(repeated, ones)
        summed = np.bincount(copies, weights=response, minlength=counts.size)
        np.testing.assert_allclose(divergence.best_response(losses, weights), summed, atol=EXACT)
        assert divergence.value(summed, weights) == pytest.approx(divergence.value(response, ones), rel=EXACT)
    for name in ("holder", "gradient_bound"):
        assert getattr(divergence, name)(ones) == getattr(divergence, name)(np.append(ones, 0.0))


@every_divergence
@every_weights
@given(data=st.data())
def test_phi_is_safe_from_tiny_to_huge_losses(divergence: Divergence, weights: Vector, data: Any) -> None:
    losses = data.draw(vectors(weights.size))
    phi, y = divergence.conjugate(losses, weights), divergence.best_response(losses, weights)
    kept, y0 = losses[weights > 0.0], weights / weights.sum()
    size = np.abs(losses).max() + EXACT  # phi* of a y that is rounded is not quite 0 at y0
    assert y.min() >= 0.0
    assert not y[weights == 0.0].any()
    assert y.sum() == pytest.approx(1.0, rel=EXACT)
    assert y @ losses - divergence.value(y, weights) == pytest.approx(phi, abs=EXACT * size)
    assert y0 @ losses - EXACT * size <= phi <= kept.max() + EXACT * size


@pytest.mark.parametrize("divergence", [pm.ChiSquare(0.01), pm.ChiSquare(50.0)], ids=repr)
@every_weights
@given(data=st.data())
def test_chi_square_is_exact(divergence: pm.ChiSquare, weights: Vector, data: Any) -> None:
    """A(l) is a projection onto the simplex, and phi follows from it: both in decimals."""
    losses = data.draw(vectors(weights.size))
    with localcontext(prec=DIGITS):
        loss, w = decimals(losses), decimals(weights)
        n, lam = sum(w), Decimal(divergence.lam)
        y0 = w / n
        y = project(pm.Simplex(weights.size, weights), y0 + w * loss / (n * n * lam))
        kept = weights > 0.0
        phi = y @ loss - n * lam / 2 * sum((y[kept] - y0[kept]) ** 2 / y0[kept])
    np.testing.assert_allclose(divergence.best_response(losses, weights), y.astype(float), rtol=0.0, atol=EXACT)
    assert divergence.conjugate(losses, weights) == pytest.approx(float(phi), abs=EXACT * np.abs(losses).max())


def test_chi_square_is_mean_and_half_the_variance(rng: np.random.Generator) -> None:
    """With lam = 1/n and no weight clipped at zero, which losses less than 1 below their mean guarantee."""
    for n in (1, 2, 7, 1000):
        losses, weights = 5.0 + rng.random(n), rng.integers(1, 4, n).astype(float)
        phi = pm.ChiSquare(1.0 / n).conjugate(losses, np.ones(n))
        assert phi == pytest.approx(losses.mean() + losses.var() / 2.0, rel=EXACT)
        mean = np.average(losses, weights=weights)
        variance = np.average((losses - mean) ** 2, weights=weights)
        weighted = pm.ChiSquare(1.0 / weights.sum()).conjugate(losses, weights)
        assert weighted == pytest.approx(mean + variance / 2.0, rel=EXACT)


@every_divergence
def test_divergence_survives_pickling(divergence: Divergence) -> None:
    assert pickle.loads(pickle.dumps(divergence)) == divergence


@pytest.mark.parametrize("lam", [0.0, -1.0, np.nan, np.inf])
def test_strength_must_be_positive(lam: float) -> None:
    with pytest.raises(ValueError, match=r"ChiSquare\(lam\) must be a finite number > 0"):
        pm.ChiSquare(lam)


def test_a_strength_that_vanishes_ends_in_nan_and_not_in_a_loop() -> None:
    assert np.isnan(pm.ChiSquare(1e-170).conjugate(np.arange(3.0), np.full(3, 1e-170)))


@pytest.mark.parametrize("near", [-10.0, 0.0, 1.0, 2.0, 10.0, np.inf, np.nan])
def test_the_search_may_start_anywhere(near: float, rng: np.random.Generator) -> None:
    losses, weights = rng.standard_normal(50), rng.random(50)
    case, cold = pm.ChiSquare(0.01).respond(losses, weights, near), pm.ChiSquare(0.01).respond(losses, weights)
    np.testing.assert_allclose(case.y, cold.y, atol=1e-13)
    assert case.risk == pytest.approx(cold.risk, rel=1e-12)
