"""The heap of relative weights: every r_i as the projection has it, over long runs, and in amortised O(log n)."""

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

from pommel.kernels import heap_simplex as module
from pommel.kernels.heap_simplex import heap_simplex


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", PLANS)
def test_weights_are_those_of_the_projection(name: str, n: int, rng: np.random.Generator) -> None:
    for kind, zeros in [("equal", 0.0), ("unequal", 0.9), ("some zero", 0.5)]:
        masses = some_masses(rng, n, kind)
        rows = rng.choice(np.flatnonzero(masses), 1200)
        r = some_weights(rng, masses, zeros)
        assert max(errors(heap_simplex, r, masses, rows, plan(rng, n, name, rows.size))) <= MARGIN


@pytest.mark.parametrize("n", [1, 2, 3, 10])
@pytest.mark.parametrize("name", PLANS)
def test_nothing_drifts(name: str, n: int, rng: np.random.Generator) -> None:
    masses = some_masses(rng, n, "unequal")
    rows = rng.integers(0, n, 400)
    run = (some_weights(rng, masses, 0.3), masses, rows, plan(rng, n, name, rows.size))
    assert drift(heap_simplex, *run) <= EXACT


@settings(max_examples=150)
@given(run=st.integers(1, 5).flatmap(few_moves))
def test_any_few_moves(run: tuple[Any, Any, Any, dict[str, Any]]) -> None:
    assert drift(heap_simplex, *run) <= EXACT


@pytest.mark.parametrize("name", ["calm", "half at zero, noise", "ties", "implicit", "far"])
def test_a_mark_that_moves(name: str, rng: np.random.Generator) -> None:
    """With more rows than are sampled for it, only a part of them is in the heap."""
    n = 4 * module.PROBES
    masses = some_masses(rng, n, "unequal" if name == "far" else "equal")
    rows = rng.integers(0, n, 3 * n)
    given = plan(rng, n, name, rows.size)
    assert max(errors(heap_simplex, some_weights(rng, masses, 0.2), masses, rows, given)) <= MARGIN


def test_a_row_pushed_below_zero_stays_and_nothing_moves() -> None:
    weights = heap_simplex(np.array([0.0, 1.5, 1.5]), np.full(3, 1.0 / 3.0))
    before = [np.copy(field) for field in weights]
    move(weights, 0, 1.0, -2.0)
    for field, old in zip(weights, before, strict=True):
        np.testing.assert_array_equal(field, old)


def test_zeros_are_exact(rng: np.random.Generator) -> None:
    n, c = 50, np.ones(500)
    masses, rows, r = some_masses(rng, n, "unequal"), rng.integers(0, n, 500), np.empty((500, n))
    walk(heap_simplex(np.ones(n), masses), rows, c, rng.random(500), 0.0, np.ones(n), r)
    assert np.all((r == 0.0) | (r > 1e-12))
    assert np.all(np.any(r[200:] == 0.0, axis=1))


@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize(("c", "delta"), [(1.0, math.nan), (1.0, math.inf), (1.0, -math.inf), (math.nan, 1.0)])
@np.errstate(all="ignore")
def test_what_is_not_finite_spreads_and_ends(n: int, c: float, delta: float, rng: np.random.Generator) -> None:
    masses = some_masses(rng, n, "some zero")
    massive = np.flatnonzero(masses)
    weights = heap_simplex(some_weights(rng, masses, 0.5), masses)
    move(weights, massive[0], c, delta)
    for i in rng.choice(massive, 5 * n):
        move(weights, i, 1.0, rng.standard_normal())
    assert np.all(np.isnan(all_values(weights, n)[massive]))


def test_equal_draws_give_equal_bits(rng: np.random.Generator) -> None:
    n, rows, noise = 40, rng.integers(0, 40, 400), rng.standard_normal(400)
    results = []
    for _ in range(2):
        weights = heap_simplex(np.ones(n), np.full(n, 1.0 / n))
        for i, delta in zip(rows, noise, strict=True):
            move(weights, i, 1.0, delta)
        results.append(all_values(weights, n))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("name", PLANS)
def test_work_is_amortised(name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes to the heap, and rows read by scans: on average some log2(n) a move."""
    n = 1000
    weights, rows = heap_simplex(np.ones(n), np.full(n, 1.0 / n)), rng.integers(0, n, 4 * n)
    costs = {"fill": 1, "gather": n, "rebuild": n}
    given = plan(rng, n, name, rows.size)
    assert work(module, costs, lambda: play(weights, rows, given), monkeypatch) <= 3.0 * math.log2(n) * rows.size
