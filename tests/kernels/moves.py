"""Long runs of moves of relative weights, compiled, and what the projection of all of y makes of the same moves."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import pommel.kernels  # noqa: F401 - declares what kernels may call
from pommel._jit import kernel
from pommel.sets import Simplex

MARGIN = 1e-11
EXACT = 1e-12
"""Largest |r_i - truth| and |sum p r - 1|, relative to the values in play: max(1, min(largest |delta|, 1 / p_min)).

The first is for the truth of `Simplex`, whose own rounding is eps / p_i for light rows and gathers over a run; the
structures stay within 5e-14 of the second, which is that of decimals.
"""

SIZES = [1, 2, 3, 10, 300]


@kernel
def walk(weights: Any, rows: Any, c: Any, deltas: Any, pull: float, targets: Any, r: Any) -> None:
    """A move for each of `rows`; `pull (target_i - r_i)` is added to `deltas`, r[t] is written after move t."""
    for t in range(rows.size):
        i = rows[t]
        deltas[t] += pull * (targets[i] - weights.value(i))
        weights.move(i, c[t], deltas[t])
        weights.store(r[t])


@kernel
def move(weights: Any, i: int, c: float, delta: float) -> None:
    weights.move(i, c, delta)


@kernel
def values(weights: Any, r: Any) -> None:
    for i in range(r.size):
        r[i] = weights.value(i)


def all_values(weights: Any, n: int) -> Any:
    r = np.empty(n)
    values(weights, r)
    return r


def truth(before: Any, masses: Any, rows: Any, given: dict[str, Any]) -> Any:
    """Each of the moves alone, by the projection of y = masses * r from where it started."""
    simplex, found = Simplex(masses.size, masses), np.empty((rows.size, masses.size))
    for t, i in enumerate(rows):
        z = masses * (given["c"][t] * before[t])
        z[i] += given["deltas"][t] * masses[i]
        found[t] = np.divide(simplex.project(z), masses, out=np.zeros(masses.size), where=masses > 0.0)
    return found


def exact(r: Any, masses: Any, rows: Any, given: dict[str, Any]) -> Any:
    """The whole run in decimals of 50 digits, for a handful of massive rows."""
    with localcontext() as context:
        context.prec = 50
        p, numbers = [Decimal(m) for m in masses.tolist()], [Decimal(x) for x in r.tolist()]
        found = np.zeros((rows.size, masses.size))
        for t, i in enumerate(rows):
            numbers = [Decimal(float(given["c"][t])) * x for x in numbers]
            numbers[i] += Decimal(float(given["deltas"][t]))
            mass, total, tau = Decimal(0), Decimal(-1), Decimal("-Infinity")
            for k in sorted(np.flatnonzero(masses), key=lambda k: -numbers[k]):
                if numbers[k] <= tau:
                    break
                mass, total = mass + p[k], total + p[k] * numbers[k]
                tau = total / mass
            numbers = [max(x - tau, Decimal(0)) for x in numbers]
            found[t, masses > 0.0] = np.array(numbers, dtype=float)[masses > 0.0]
    return found


def some_masses(rng: np.random.Generator, n: int, kind: str) -> Any:
    masses = np.ones(n) if kind == "equal" else rng.lognormal(0.0, 1.0, n)
    if kind == "some zero":
        masses[rng.random(n) < 0.3] = 0.0
        masses[n // 2] = 1.0
    return masses / masses.sum()


def some_weights(rng: np.random.Generator, masses: Any, zeros: float) -> Any:
    """Relative weights with about that share of zeros."""
    r = np.where(rng.random(masses.size) < zeros, 0.0, rng.random(masses.size))
    r[masses.size // 2] = 1.0
    return np.where(masses > 0.0, r, 0.0) / (masses @ r)


def plan(rng: np.random.Generator, n: int, name: str, moves: int) -> dict[str, Any]:
    """The arguments of `walk` but for the rows: what kind of moves."""
    ones, noise = np.ones(moves), rng.standard_normal(moves)
    given: dict[str, Any] = {"c": ones, "deltas": 0.3 * noise, "pull": 0.0, "targets": np.ones(n)}
    half = np.where(rng.random(n) < 0.5, -1.0, 3.0)
    return (
        given
        | {
            "calm": {"deltas": 0.02 * noise, "pull": 0.3},
            "half at zero": {"deltas": np.zeros(moves), "pull": 0.3, "targets": half},
            "half at zero, noise": {"pull": 0.3, "targets": half},
            "random walk": {},
            "rising": {"deltas": np.abs(noise)},
            "falling": {"deltas": -np.abs(noise)},
            "ties": {"deltas": rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], moves)},
            "whole": {"c": 0.97 * ones, "deltas": noise},
            "implicit": {"c": 0.3 * ones, "deltas": 2.0 * noise},
            "any scale": {"c": 10.0 ** rng.uniform(-3.0, 0.0, moves), "deltas": 10.0 * noise},
            "far": {"deltas": 1e3 * noise},
            "extreme": {"deltas": noise * 10.0 ** rng.uniform(-8.0, 8.0, moves)},
        }[name]
    )


PLANS = ["calm", "half at zero", "half at zero, noise", "random walk", "rising", "falling", "ties", "whole", "implicit"]
PLANS += ["any scale", "far", "extreme"]


def errors(build: Any, r: Any, masses: Any, rows: Any, given: dict[str, Any]) -> tuple[float, float]:
    """Largest differences, in units of the values in play: of a single move, and of sum p r from 1.

    The moves are compared one by one since a long run of `Simplex.project` gathers more rounding than the structures.
    """
    found, weights = np.empty((rows.size, masses.size)), build(r, masses)
    walk(weights, rows, r=found, **given)
    np.testing.assert_array_equal(all_values(weights, masses.size), found[-1])  # value and store agree
    assert np.all(found >= 0.0)
    moved = np.abs(found - truth(np.vstack([r, found[:-1]]), masses, rows, given)).max()
    unit = scale(masses, given)
    return float(moved) / unit, float(np.abs(found @ masses - 1.0).max()) / unit


def drift(build: Any, r: Any, masses: Any, rows: Any, given: dict[str, Any]) -> float:
    """Largest difference over a whole run, in units of the values in play."""
    found = np.empty((rows.size, masses.size))
    walk(build(r, masses), rows, r=found, **given)
    return float(np.abs(found - exact(r, masses, rows, given)).max()) / scale(masses, given)


def scale(masses: Any, given: dict[str, Any]) -> float:
    return float(max(1.0, min(np.abs(given["deltas"]).max(), 1.0 / masses[masses > 0.0].min())))


row_deltas = st.one_of(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), st.floats(-3.0, 3.0), st.floats(-1e8, 1e8))
factors = st.sampled_from([1.0, 1.0, 0.5, 1e-12])


@st.composite
def few_moves(draw: Any, n: int) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Arguments of `error`: a start and some moves, with many ties."""
    masses = np.array(draw(st.lists(st.sampled_from([1.0, 1.0, 2.0, 0.1, 0.0]), min_size=n, max_size=n)))
    masses[0] = 1.0
    masses /= masses.sum()
    r = np.array(draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.0]), min_size=n, max_size=n))) * (masses > 0.0)
    r[0] = 1.0
    row = st.sampled_from(np.flatnonzero(masses).tolist())
    moves = draw(st.lists(st.tuples(row, factors, row_deltas), min_size=1, max_size=40))
    rows, c, deltas = (np.array(column) for column in zip(*moves, strict=True))
    given = {"c": c, "deltas": deltas, "pull": 0.0, "targets": np.ones(n)}
    return r / (masses @ r), masses, rows, given


def work(module: ModuleType, costs: dict[str, int], run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> int:
    """What a run costs by calls of kernels of a module, all of which run as plain Python."""
    spent = 0

    def counted(function: Any, cost: int) -> Any:
        def call(*args: Any) -> Any:
            nonlocal spent
            spent += cost
            return function(*args)

        return call

    for name, function in list(vars(module).items()):
        if getattr(function, "__module__", "").startswith("pommel.kernels") and not isinstance(function, type):
            monkeypatch.setattr(module, name, counted(getattr(function, "py_func", function), costs.get(name, 0)))
    run()
    return spent


def play(weights: Any, rows: Any, given: dict[str, Any]) -> None:
    """`walk` in plain Python, without writing r."""
    pull, targets = given["pull"], given["targets"]
    for i, c, delta in zip(rows, given["c"], given["deltas"], strict=True):
        weights.move(i, c, delta + pull * (targets[i] - weights.value(i)))
