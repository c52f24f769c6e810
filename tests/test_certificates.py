"""Lower bounds: below what Clarabel finds, and below every objective ever evaluated, whatever they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import solve_dro
from small_problems import WEIGHTS, binary_data, dro

import pommel as pm
from pommel.certificates import dual_bound, no_bound

WAYS = [
    {"loss": loss, "lam1": lam1, "lam2": lam2, "radius": radius, "sample_weight": weights}
    for loss in ("hinge", "logistic")
    for lam1 in (None, 0.02, 1.0)
    for lam2, radius in ((0.1, None), (0.1, 0.4), (0.1, 50.0), (0.0, 0.7))
    for weights in (None, WEIGHTS)
]


def slopes_of(problem: pm.DRO, x: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights and slopes that follow from x."""
    loss = pm.SmoothedHinge(width) if isinstance(problem.loss, pm.Hinge) else problem.loss
    margins = problem.read(x)
    y = problem.divergence.best_response(loss.value(margins, problem.labels), problem.weights)
    return y, loss.derivative(margins, problem.labels)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_bounds_lie_below_the_optimum_and_meet_it_at_the_solution(
    way: dict[str, Any], rng: np.random.Generator
) -> None:
    X, labels = binary_data(rng)
    problem, optimum = dro(X, labels, **way), solve_dro(X, labels, **way)
    for _ in range(20):  # anywhere in the domain
        y = problem.dual_set.project(problem.y0 * (1.0 + rng.standard_normal(problem.n)))
        slopes = -problem.labels * rng.random(problem.n)
        assert dual_bound(problem, y, slopes) <= optimum.value + 1e-7
    for width in (1.0, 1e-2):
        for x in (optimum.x, optimum.x + 0.1 * rng.standard_normal(problem.d)):
            assert dual_bound(problem, *slopes_of(problem, x, width)) <= optimum.value + 1e-7
    if way["loss"] == "logistic":  # where slopes follow from margins alone
        assert dual_bound(problem, *slopes_of(problem, optimum.x, 1.0)) == pytest.approx(optimum.value, abs=1e-5)


@given(data=st.data())
def test_no_objective_is_ever_below_a_bound_rounding_included(data: Any) -> None:
    """Offsets, scales and strengths from tiny to huge: a Newton solve goes on until rounding stops it."""
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n, d = data.draw(st.integers(2, 30)), data.draw(st.integers(1, 5))
    scale, offset = 10.0 ** data.draw(st.integers(-6, 6)), data.draw(st.sampled_from([0.0, 1.0, 1e3]))
    X, labels = binary_data(rng, n, d)
    way = {
        "loss": data.draw(st.sampled_from(["hinge", "logistic"])),
        "lam1": data.draw(st.sampled_from([None, 1e-4, 1.0 / n, 10.0])),
        "lam2": 10.0 ** data.draw(st.integers(-4, 2)) * scale**2,
        "radius": data.draw(st.sampled_from([None, 0.1 / scale, 10.0 / scale])),
    }
    solution = pm.Newton().solve(dro((X + offset) * scale, labels, **way), tol=0, max_passes=300)
    assert solution.lower_bound <= solution.history["objective"].min()


def test_combination_saves_the_read_and_changes_nothing(rng: np.random.Generator) -> None:
    problem = dro(*binary_data(rng), loss="hinge", lam1=0.1, lam2=0.1)
    y, slopes = slopes_of(problem, rng.standard_normal(problem.d), 0.5)
    given_one = dual_bound(problem, y, slopes, problem.rows.rmatvec(y * slopes))
    assert given_one == dual_bound(problem, y, slopes)


def test_slopes_outside_the_domain_prove_nothing(rng: np.random.Generator) -> None:
    problem = dro(*binary_data(rng), loss="hinge", lam1=0.1, lam2=0.1)
    assert dual_bound(problem, problem.y0, problem.labels) == -np.inf


class Bare:
    """A loss without a conjugate."""

    def value(self, margin: Any, label: Any) -> Any:
        return (label - margin) ** 2

    def derivative(self, margin: Any, label: Any) -> Any:
        return 2.0 * (margin - label)


def test_why_there_is_no_bound(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    assert no_bound(dro(X, labels, loss="hinge", lam1=0.1, lam2=0.1)) is None
    assert no_bound(dro(X, labels, loss="hinge", lam1=0.1, lam2=0.0, radius=1.0)) is None
    assert "without a regularizer" in str(no_bound(dro(X, labels, loss="hinge", lam1=0.1, lam2=0.0)))
    bare = pm.DRO(X, labels, loss=Bare(), divergence=pm.Mean(), regularizer=pm.L2(0.1))
    assert "has no conjugate" in str(no_bound(bare))
    boxed = pm.DRO(X, labels, divergence=pm.Mean(), constraint=pm.Simplex(X.shape[1]))
    assert "on Simplex(3) is not known" in str(no_bound(boxed))
