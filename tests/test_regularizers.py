"""Regularizers: what every g must satisfy. A new one is tested by having `EXAMPLES`."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pommel as pm
from pommel._registry import examples
from pommel.problem import Regularizer
from pommel.regularizers import REGULARIZERS

every_regularizer = pytest.mark.parametrize("g", examples(REGULARIZERS), ids=repr)


@pytest.fixture
def points(rng: np.random.Generator) -> np.ndarray:
    """Points of all sizes, with zeros, where a regularizer may have a kink."""
    return np.vstack([rng.standard_normal((30, 4)) * 10.0 ** rng.integers(-6, 6, (30, 1)), np.zeros(4), np.eye(4)])


@every_regularizer
def test_subgradient_and_strong_convexity(g: Regularizer, points: np.ndarray) -> None:
    for x in points:
        slope = g.subgradient(x)
        for z in points:
            bound = g.value(x) + slope @ (z - x) + 0.5 * g.strong_convexity * np.sum((z - x) ** 2)
            assert g.value(z) >= bound - 1e-12 * (g.value(z) + abs(bound) + abs(slope @ x))


@every_regularizer
def test_fenchel_young_inequality_is_tight_at_the_subgradient(g: Regularizer, points: np.ndarray) -> None:
    for x in points:
        for u in (g.subgradient(x), *points):
            assert g.value(x) + g.conjugate(u) >= (1.0 - 1e-12) * (u @ x)
        u = g.subgradient(x)
        assert g.value(x) + g.conjugate(u) == pytest.approx(u @ x, rel=1e-12)


@every_regularizer
def test_lipschitz_bound_holds(g: Regularizer, points: np.ndarray) -> None:
    for x in points:
        assert np.linalg.norm(g.subgradient(x)) <= g.lipschitz(np.linalg.norm(x)) * (1.0 + 1e-12)


@every_regularizer
def test_regularizer_changes_nothing_and_survives_pickling(g: Regularizer) -> None:
    x = np.array([1.0, -2.0, 0.0])
    x.flags.writeable = False
    twin = pickle.loads(pickle.dumps(g))
    assert (twin, twin.value(x), repr(twin)) == (g, g.value(x), repr(g))
    assert not np.shares_memory(g.subgradient(x), x)


@pytest.mark.parametrize("lam", [0.0, -1.0, np.nan, np.inf])
def test_strength_must_be_positive(lam: float) -> None:
    with pytest.raises(ValueError, match=r"L2\(lam\) must be a finite number > 0"):
        pm.L2(lam)
