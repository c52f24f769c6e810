"""InteriorPoint: the optimum of an independent solver, a gap that closes on whatever problem, and units that cancel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import TIGHT, solve_dro
from scipy.sparse import csr_array
from small_problems import WEIGHTS, binary_data, dro

import pommel as pm
from pommel.solvers.interior_point import InteriorPoint

FEW = 40
LAM1 = {"stiff": 1e-4, "robust": 0.1, "paper": 1.0, "mild": 100.0, "nearly the mean": 1e4, "mean": None}
every_lam1 = pytest.mark.parametrize("lam1", LAM1.values(), ids=LAM1)


@dataclass(frozen=True)
class Absolute:
    """A user's loss, |m - b| beyond a margin that costs nothing."""

    free: float = 0.0

    def value(self, margin: Any, label: Any) -> Any:
        return np.maximum(np.abs(margin - label) - self.free, 0.0)

    def derivative(self, margin: Any, label: Any) -> Any:
        return np.sign(margin - label) * (np.abs(margin - label) > self.free)

    def conjugate(self, slope: Any, label: Any) -> Any:
        return np.where(np.abs(slope) <= 1.0, slope * label + self.free * np.abs(slope), np.inf)

    def pieces(self, label: Any) -> tuple[tuple[Any, Any], ...]:
        sides = (1.0, -label - self.free), (-1.0, label - self.free)
        return (*sides, (0.0, 0.0)) if self.free else sides


def solve(problem: Any, tol: float = 1e-8, **options: Any) -> pm.Solution:
    solution = InteriorPoint().solve(problem, tol=tol, max_passes=None, **options)
    assert solution.status is pm.Status.CONVERGED, solution.message
    assert len(solution.history["stage"]) <= FEW
    return solution


@pytest.mark.parametrize("sample_weight", [None, WEIGHTS], ids=["", "weighted"])
@every_lam1
def test_the_optimum_is_that_of_clarabel(lam1: float | None, sample_weight: Any, rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    n = X.shape[0] if sample_weight is None else sample_weight.sum()
    options = {"loss": "hinge", "lam1": lam1 and lam1 / n, "lam2": 0.1, "sample_weight": sample_weight}
    solution, optimum = solve(dro(X, labels, **options)), solve_dro(X, labels, **options)
    offset = 1e-9 * (lam1 or 0.0)  # what Clarabel's own tolerance is relative to
    assert solution.objective == pytest.approx(optimum.value, rel=1e-7, abs=offset)
    assert solution.lower_bound <= optimum.value * (1.0 + 1e-7) + offset
    np.testing.assert_allclose(solution.x, optimum.x, atol=1e-3)


@pytest.mark.parametrize("free", [0.0, 0.2])
@every_lam1
def test_losses_of_users_with_two_or_three_pieces(lam1: float | None, free: float, rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, n=30)
    divergence = pm.Mean() if lam1 is None else pm.ChiSquare(lam1 / 30)
    solution = solve(pm.DRO(X, labels, loss=Absolute(free), divergence=divergence, regularizer=pm.L2(0.02)))
    x, t = cp.Variable(3), cp.Variable()
    losses = cp.pos(cp.abs(X @ x - labels) - free)
    risk = (
        cp.sum(losses) / 30 if lam1 is None else t + cp.sum_squares(cp.pos(losses - t + lam1)) / (60 * lam1) - lam1 / 2
    )
    optimum = cp.Problem(cp.Minimize(risk + 0.01 * cp.sum_squares(x))).solve(solver=cp.CLARABEL, **TIGHT)
    assert solution.objective == pytest.approx(optimum, rel=1e-6)


@st.composite
def problems(draw: Any) -> dict[str, Any]:
    return {
        "seed": draw(st.integers(0, 2**32 - 1)),
        "n": draw(st.integers(2, 60)),
        "d": draw(st.integers(1, 12)),
        "scale": 10.0 ** draw(st.integers(-3, 3)),
        "lam1": draw(st.sampled_from(list(LAM1.values()))),
        "lam2": 10.0 ** draw(st.integers(-5, 1)),
        "kind": draw(st.sampled_from(["dense", "sparse", "binary", "offset", "repeated"])),
        "rare": draw(st.booleans()),
        "weighted": draw(st.booleans()),
        "free": draw(st.sampled_from([None, 0.0, 0.3])),
    }


def build(seed: int, n: int, d: int, scale: float, lam1: float | None, lam2: float, kind: str, **more: Any) -> pm.DRO:
    rng = np.random.default_rng(seed)
    X, labels = rng.standard_normal((n, d)), np.where(rng.random(n) < 0.5, -1.0, 1.0)
    if kind == "sparse":
        X *= rng.random((n, d)) < 0.3
    elif kind == "binary":
        X = (X > 0.5).astype(float)
    elif kind == "offset":
        X += 30.0
    elif kind == "repeated":
        X = X[rng.integers(0, max(1, n // 4), n)]
    weights = rng.choice([0.0, 0.5, 1.0, 7.0], n) if more["weighted"] else np.ones(n)
    labels[:2], weights[:2] = (-1.0, 1.0), 1.0
    if more["rare"]:
        labels[1:] = 1.0  # the other class has one row
    return pm.DRO(
        scale * X,
        labels,
        loss=pm.Hinge() if more["free"] is None else Absolute(more["free"]),
        divergence=pm.Mean() if lam1 is None else pm.ChiSquare(lam1 / weights.sum()),
        regularizer=pm.L2(lam2 * scale**2),
        sample_weight=weights,
    )


@settings(max_examples=300)
@given(problems())
def test_the_gap_closes_and_bounds_are_bounds(options: dict[str, Any]) -> None:
    """n < d, zero rows, rows of no weight, classes of one row, ... No bound is above any objective, rounding or not."""
    problem = build(**options)
    solution = solve(problem)
    assert solution.gap >= 0.0
    far = InteriorPoint().solve(problem, tol=0.0, max_passes=None)
    assert far.gap >= 0.0 and far.lower_bound <= solution.objective
    assert far.relative_gap <= solution.relative_gap


@every_lam1
def test_storage_and_units_of_features_and_losses_do_not_matter(lam1: float | None, rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, n=50)
    X[rng.random(X.shape) < 0.3] = 0.0
    options = {"loss": "hinge", "lam1": lam1 and lam1 / 50}
    one = solve(dro(X, labels, lam2=0.02, **options))
    sparse = solve(dro(csr_array(X), labels, lam2=0.02, **options))
    scaled = solve(dro(1024.0 * X, labels, lam2=0.02 * 1024.0**2, **options))
    again = solve(dro(X, labels, lam2=0.02, **options), x0=rng.standard_normal(3))
    for other in (sparse, scaled, again):
        np.testing.assert_allclose(other.history["objective"][1:], one.history["objective"][1:], rtol=1e-8)
        assert len(other.history["stage"]) == len(one.history["stage"])
    np.testing.assert_array_equal(1024.0 * scaled.x, one.x)
    np.testing.assert_allclose(sparse.x, one.x, rtol=1e-6, atol=1e-9)


@dataclass(frozen=True)
class Dearer(pm.Hinge):
    """The hinge loss in other units."""

    unit: float

    def value(self, margin: Any, label: Any) -> Any:
        return self.unit * super().value(margin, label)

    def derivative(self, margin: Any, label: Any) -> Any:
        return self.unit * super().derivative(margin, label)

    def conjugate(self, slope: Any, label: Any) -> Any:
        return self.unit * super().conjugate(slope / self.unit, label)

    def pieces(self, label: Any) -> tuple[tuple[Any, Any], ...]:
        return (0.0, 0.0), (-self.unit * label, self.unit)


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
@pytest.mark.parametrize("lam1", [None, 1.0])
def test_units_of_losses_do_not_matter(lam1: float | None, unit: float, rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, n=50)

    def priced(unit: float) -> pm.DRO:
        divergence = pm.Mean() if lam1 is None else pm.ChiSquare(unit * lam1 / 50)
        return pm.DRO(X, labels, loss=Dearer(unit), divergence=divergence, regularizer=pm.L2(0.02 * unit))

    one, other = solve(priced(1.0)), solve(priced(unit))
    np.testing.assert_array_equal(other.history["objective"], unit * one.history["objective"])
    np.testing.assert_array_equal(other.x, one.x)


def test_same_bits(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, n=200, d=10)
    problem = dro(X, labels, loss="hinge", lam1=1 / 200, lam2=1 / 200)
    one, two = (solve(problem, random_state=seed) for seed in (0, 1))
    np.testing.assert_array_equal(one.x, two.x)
    assert one.lower_bound == two.lower_bound


def test_intercept_and_scaled_columns(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, n=40)
    scale = np.array([0.5, 2.0, 8.0])
    parts: dict[str, Any] = {"divergence": pm.ChiSquare(1 / 40), "regularizer": pm.L2(0.05)}
    lazy = solve(pm.DRO(pm.rows.Rows(csr_array(X), constant=2.0, column_scale=scale), labels, **parts))
    plain = solve(pm.DRO(np.column_stack([X * scale, np.full(40, 2.0)]), labels, **parts))
    np.testing.assert_allclose(lazy.x, plain.x, rtol=1e-6)


def test_agrees_with_newton_on_real_data(a9a: Any) -> None:
    X, labels = a9a
    n = X.shape[0]
    problem = dro(X, labels, loss="hinge", lam1=1 / n, lam2=1 / n)
    ours, newton = solve(problem), pm.Newton().solve(problem, tol=1e-5, max_passes=None)
    assert ours.lower_bound <= newton.objective
    assert newton.objective == pytest.approx(ours.objective, rel=1e-5)


class Wrong(pm.Hinge):
    def pieces(self, label: Any) -> tuple[tuple[Any, Any], ...]:
        return (0.0, 0.0), (label, 1.0)


DATA = np.eye(2), [-1, 1]
L2 = {"divergence": pm.Mean(), "regularizer": pm.L2(1.0)}


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (pm.AUC(*DATA), "takes a DRO problem, got AUC"),
        (pm.DRO(*DATA, loss=pm.Logistic(), **L2), "has none; Newton takes smooth losses"),
        (pm.DRO(*DATA, divergence=pm.Mean()), "with an L2 regularizer"),
        (pm.DRO(*DATA, constraint=pm.L2Ball(1.0), **L2), "with no constraint"),
        (pm.DRO(csr_array((2, 2001)), [-1, 1], **L2), "got d = 2001"),
        (pm.DRO(*DATA, loss=Wrong(), **L2), "the largest of its pieces"),
    ],
)
def test_refusals(problem: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        InteriorPoint().solve(problem)


def test_a_budget_that_ends_it_is_kept(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng, n=50)
    problem = dro(X, labels, loss="hinge", lam1=0.02, lam2=0.02)
    solution = InteriorPoint().solve(problem, tol=0.0, max_passes=20)
    assert solution.status is pm.Status.MAX_PASSES
    assert solution.n_passes <= 20
