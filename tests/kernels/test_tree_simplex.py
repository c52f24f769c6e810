"""The tree of relative weights: every r_i as the projection has it, draws as the distribution function has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moves import (
    EXACT,
    MARGIN,
    PLANS,
    SIZES,
    all_values,
    drift,
    errors,
    few_moves,
    move,
    plan,
    play,
    some_masses,
    some_weights,
    walk,
    work,
)

from pommel._jit import kernel
from pommel.kernels import tree_simplex as module
from pommel.kernels.tree_simplex import BLOCK, tree_simplex


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", PLANS)
def test_weights_are_those_of_the_projection(name: str, n: int, rng: np.random.Generator) -> None:
    for kind, zeros in [("equal", 0.0), ("unequal", 0.9), ("some zero", 0.5)]:
        masses = some_masses(rng, n, kind)
        rows = rng.choice(np.flatnonzero(masses), 1200)
        r = some_weights(rng, masses, zeros)
        assert max(errors(tree_simplex, r, masses, rows, plan(rng, n, name, rows.size))) <= MARGIN


@pytest.mark.parametrize("n", [1, 2, 3, 10])
@pytest.mark.parametrize("name", PLANS)
def test_nothing_drifts(name: str, n: int, rng: np.random.Generator) -> None:
    masses = some_masses(rng, n, "unequal")
    rows = rng.integers(0, n, 400)
    run = (some_weights(rng, masses, 0.3), masses, rows, plan(rng, n, name, rows.size))
    assert drift(tree_simplex, *run) <= EXACT


@settings(max_examples=150)
@given(run=st.sampled_from([1, 2, 3, 4, 2 * BLOCK + 1]).flatmap(few_moves))
def test_any_few_moves(run: tuple[Any, Any, Any, dict[str, Any]]) -> None:
    assert drift(tree_simplex, *run) <= EXACT


@kernel
def draw_all(weights: Any, u: Any, gamma: float, drawn: Any) -> None:
    for t in range(u.size):
        drawn[t] = weights.draw(u[t], gamma)


def draws(weights: Any, u: Any, gamma: float) -> Any:
    drawn = np.empty(u.size, dtype=np.int64)
    draw_all(weights, u, gamma, drawn)
    return drawn


@pytest.mark.parametrize("n", [*SIZES, BLOCK, 5 * BLOCK])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", ["random walk", "rising", "half at zero", "implicit"])
def test_draws_are_those_of_the_distribution_function(
    name: str, gamma: float, n: int, rng: np.random.Generator
) -> None:
    """Rows may differ only where u lies within rounding of a step of the distribution function."""
    masses = some_masses(rng, n, "some zero")
    rows = rng.choice(np.flatnonzero(masses), 100)
    weights = tree_simplex(some_weights(rng, masses, 0.5), masses)
    for _ in range(5):
        r = np.empty((rows.size, n))
        walk(weights, rows, r=r, **plan(rng, n, name, rows.size))
        q = gamma * masses * r[-1] + (1.0 - gamma) * masses
        cumulative = np.cumsum(q)
        steps = cumulative / cumulative[-1]
        u = np.clip(np.concatenate([rng.random(300), steps, [0.0, 1.0]]), 0.0, np.nextafter(1.0, 0.0))
        drawn = draws(weights, u, gamma)
        assert np.all(q[drawn] > 0.0)
        expected = np.searchsorted(cumulative, u * cumulative[-1], side="right")
        other = drawn != expected
        low, high = np.minimum(drawn, expected)[other], np.maximum(drawn, expected)[other]
        assert np.all(np.abs(steps[low] - u[other]) <= 1e-13)
        assert np.all(np.abs(steps[high - 1] - u[other]) <= 1e-13)  # nothing but rounding lies between the two


def test_rows_of_weight_zero_are_never_drawn() -> None:
    """Also where rounding, or the largest u, points at them."""
    n = 10 * BLOCK
    r = np.zeros(n)
    r[3], r[5 * BLOCK + 2] = 0.1, 0.2
    masses = np.full(n, 1.0 / n)
    weights = tree_simplex(r / (masses @ r), masses)
    move(weights, n // 2, 1.0, -1.0)
    u = np.array([0.0, 1.0 / 3.0 - 1e-9, 1.0 / 3.0 + 1e-9, np.nextafter(1.0, 0.0)])
    assert draws(weights, u, 1.0).tolist() == [3, 3, 5 * BLOCK + 2, 5 * BLOCK + 2]


def test_draws_have_their_frequencies(rng: np.random.Generator) -> None:
    n, size = 5, 200_000
    r = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
    weights = tree_simplex(r, np.full(n, 0.2))
    frequencies = np.bincount(draws(weights, rng.random(size), 0.5), minlength=n) / size
    np.testing.assert_allclose(frequencies, 0.1 * r + 0.1, atol=6.0 * math.sqrt(0.3 / size))


def test_a_row_pushed_below_zero_stays_and_nothing_moves() -> None:
    weights = tree_simplex(np.array([0.0, 1.5, 1.5]), np.full(3, 1.0 / 3.0))
    before = [np.copy(field) for field in weights]
    move(weights, 0, 1.0, -2.0)
    for field, old in zip(weights, before, strict=True):
        np.testing.assert_array_equal(field, old)


@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize(("c", "delta"), [(1.0, math.nan), (1.0, math.inf), (1.0, -math.inf), (math.nan, 1.0)])
@np.errstate(all="ignore")
def test_what_is_not_finite_spreads_and_ends(n: int, c: float, delta: float, rng: np.random.Generator) -> None:
    masses = some_masses(rng, n, "some zero")
    massive = np.flatnonzero(masses)
    weights = tree_simplex(some_weights(rng, masses, 0.5), masses)
    move(weights, massive[0], c, delta)
    for i in rng.choice(massive, 5 * n):
        move(weights, i, 1.0, rng.standard_normal())
    assert np.all(np.isnan(all_values(weights, n)[massive]))
    drawn = draws(weights, np.array([0.0, 0.5, np.nextafter(1.0, 0.0)]), 0.5)
    assert np.all((drawn >= 0) & (drawn < n))


@pytest.mark.parametrize("name", PLANS)
def test_work_is_amortised(name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes made anew: on average a few paths from root to leaf a move."""
    n = 64 * BLOCK
    weights, rows = tree_simplex(np.ones(n), np.full(n, 1.0 / n)), rng.integers(0, n, n)
    costs = {"pull": 1, "sum_block": 1, "rebuild": 2 * len(weights.nodes)}
    given = plan(rng, n, name, rows.size)
    assert work(module, costs, lambda: play(weights, rows, given), monkeypatch) <= 6.0 * math.log2(n) * rows.size
