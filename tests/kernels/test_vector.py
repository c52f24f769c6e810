"""The lazy vector against a plain dense x, step by step over long runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import pommel.kernels  # noqa: F401 - declares what kernels may call
from pommel._jit import kernel
from pommel.kernels.rows import row_state
from pommel.kernels.vector import FOLD, REFRESH, LazyVector, lazy_vector
from pommel.problem import ConvexSet
from pommel.rows import Rows
from pommel.sets import BallWithin, L2Ball, Product, WholeSpace

MARGIN = 1e-11
"""Largest difference relative to the largest entry of any x of the run, before and after its projection."""


@kernel
def walk(x: Any, rows: Any, drawn: Any, slopes: Any, plain: Any, t_slopes: Any, pull: float, margins: Any) -> int:
    """A step for each of `drawn`, pulling margins to 0; the number of those that said they were finite."""
    finite = 0
    for k in range(drawn.size):
        i = drawn[k]
        margins[k] = x.margin(rows, i)
        x.count()
        finite += x.descend(rows, i, slopes[k] + pull * margins[k], plain[k], t_slopes[k])
        x.project()
    return finite


@dataclass(frozen=True)
class Case:
    """A kind of run; `bends` where the plain x needs a root search for each step, so that the run is shorter."""

    d: int = 7
    n_plain: int = 0
    decay: float = 1.0
    ball: float = np.inf
    whole: bool = True  # the ball bounds (w, t), else w alone, and t lies in intervals
    start_ball: float = np.inf
    step: float = 0.05
    pull: float = 1.0
    at_zero: bool = False  # where it starts
    steps: int = 3000

    def base(self) -> ConvexSet:
        ball = L2Ball(self.ball) if 0.0 < self.ball < np.inf else WholeSpace()
        if self.ball == 0.0:
            return BallWithin(WholeSpace(), np.zeros(self.d + self.n_plain), 0.0)
        if self.whole or not self.n_plain:
            return ball
        return Product((self.d, ball), *((1, L2Ball(reach)) for reach in self.reach()))

    def reach(self) -> np.ndarray:
        return 0.3 * 2.0 ** np.arange(self.n_plain)


PASSES = REFRESH + 1000  # inner products are computed anew on the way
CASES = {
    "free": Case(),
    "free, plain": Case(n_plain=2),
    "shrinking": Case(decay=0.999),
    "folding": Case(decay=0.9),
    "folding at each step": Case(decay=1e-4),
    "shrinking to nothing": Case(decay=0.8, step=0.0),
    "shrinking, plain": Case(decay=0.99, n_plain=2),
    "long": Case(decay=0.9999, step=0.01, steps=30_000),
    "no steps": Case(step=0.0),
    "ball": Case(ball=0.3, steps=2 * PASSES),
    "ball, shrinking": Case(ball=0.3, decay=0.97, steps=PASSES),
    "ball that shrinks much": Case(ball=1e-6, steps=1000),
    "ball of radius 0": Case(ball=0.0, steps=300),
    "ball, far steps": Case(ball=0.3, step=100.0, pull=0.0),
    "ball on w and t": Case(ball=0.3, n_plain=2, steps=PASSES),
    "ball on w, intervals for t": Case(ball=0.3, n_plain=2, whole=False, decay=0.999, steps=PASSES),
    "intervals for t": Case(n_plain=2, whole=False),
    "around the start": Case(start_ball=0.2, steps=PASSES),
    "around 0, the start": Case(start_ball=0.2, at_zero=True, steps=PASSES),
    "around the start, shrinking": Case(start_ball=0.2, decay=0.9),
    "around the start, plain": Case(start_ball=0.2, n_plain=2, decay=0.999),
    "around the start, never reached": Case(start_ball=1e3, decay=0.99),
    "around the start, far steps": Case(start_ball=0.2, step=100.0, pull=0.0),
    "around the start, radius 0": Case(start_ball=0.0, steps=300),
    "around the start, radius 0, plain": Case(start_ball=0.0, n_plain=2, steps=300),
    "both": Case(ball=0.9, start_ball=0.6, steps=PASSES),
    "both, shrinking": Case(ball=0.9, start_ball=0.3, decay=0.98),
    "both, far steps": Case(ball=0.9, start_ball=0.6, step=100.0, pull=0.0, steps=1000),
    "both, on w and t": Case(ball=0.9, start_ball=0.6, n_plain=2),
    "both, intervals for t": Case(ball=0.9, start_ball=0.6, n_plain=2, whole=False, steps=1500),
    "both, intervals for t, shrinking": Case(ball=0.9, start_ball=0.3, n_plain=2, whole=False, decay=0.98, steps=1500),
    "intervals for t, around the start": Case(start_ball=0.6, n_plain=2, whole=False, steps=1500),
    "one column": Case(d=1, decay=0.99, ball=0.3, start_ball=0.2),
    "one column, plain": Case(d=1, n_plain=2, decay=0.99, ball=0.3, whole=False),
    "more columns than steps between refreshes": Case(d=REFRESH + 10, ball=0.3, decay=0.9999, steps=REFRESH + 500),
}


def start_of(case: Case, rng: np.random.Generator) -> np.ndarray:
    """A point of the base set, of length about 1 where that allows it."""
    x = rng.standard_normal(case.d + case.n_plain)
    return case.base().project(np.zeros_like(x) if case.at_zero else x / np.linalg.norm(x))


def lazy(case: Case, x: np.ndarray, rows: Rows) -> LazyVector:
    return lazy_vector(
        x,
        case.n_plain,
        norms=rows.squared_norms,
        step=case.step,
        decay=case.decay,
        ball=case.ball,
        whole=case.whole,
        reach=case.reach(),
        start_ball=case.start_ball,
    )


def some_rows(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Mostly zeros, an empty row among them."""
    X = rng.standard_normal((20, case.d)) * (rng.random((20, case.d)) < 0.5)
    X[:, 0] += rng.random(20)
    X[3] = 0.0
    return X


@pytest.mark.parametrize("name", CASES)
def test_run_is_that_of_a_dense_vector(name: str, rng: np.random.Generator) -> None:
    case = CASES[name]
    X, x = some_rows(case, rng), start_of(case, rng)
    feasible = case.base() if case.start_ball == np.inf else BallWithin(case.base(), x, case.start_ball)
    rows = Rows(sp.csr_array(X))
    vector, states = lazy(case, x, rows), row_state(rows)
    total, largest, errors = np.zeros_like(x), np.abs(x).max(), []
    done = 0
    while done < case.steps:
        part = int(min(rng.integers(1, 400), case.steps - done))  # seen at any point between foldings and refreshes
        drawn, plain = rng.integers(0, len(X), part), rng.integers(0, max(case.n_plain, 1), part)
        slopes, t_slopes = rng.standard_normal((2, part)) * rng.choice([0.0, 1.0], (2, part), p=[0.2, 0.8])
        margins, dense_margins = np.empty((2, part))
        assert walk(vector, states, drawn, slopes, plain, t_slopes, case.pull, margins) == part
        for k, i in enumerate(drawn):
            w = x[: case.d]
            dense_margins[k] = X[i] @ w
            total += x
            x = x.copy()
            x[: case.d] = case.decay * w - case.step * (slopes[k] + case.pull * dense_margins[k]) * X[i]
            if case.n_plain:
                x[case.d + plain[k]] -= case.step * t_slopes[k]
            largest = max(largest, np.abs(x).max())
            x = feasible.project(x)
        done += part
        errors += [np.abs(margins - dense_margins).max(), np.abs(vector.point() - x).max()]
        errors.append(np.abs(vector.running_sum() - total).max() / done)
        assert vector.f[0] >= FOLD
    assert max(errors) <= MARGIN * largest


@pytest.mark.parametrize(("ball", "start_ball"), [(np.inf, np.inf), (0.3, np.inf), (np.inf, 0.2), (0.3, 0.2)])
@pytest.mark.parametrize("n_plain", [0, 2])
def test_the_result_stays_in_the_sets(ball: float, start_ball: float, n_plain: int, rng: np.random.Generator) -> None:
    case = Case(ball=ball, start_ball=start_ball, n_plain=n_plain, whole=False, decay=0.99, step=3.0, pull=0.0)
    X, x = some_rows(case, rng), start_of(case, rng)
    rows = Rows(X)
    vector, states = lazy(case, x, rows), row_state(rows)
    drawn, plain = rng.integers(0, len(X), 10_000), rng.integers(0, max(n_plain, 1), 10_000)
    slopes, t_slopes = rng.standard_normal((2, 10_000))
    walk(vector, states, drawn, slopes, plain, t_slopes, 0.0, np.empty(10_000))
    found = vector.point()
    assert np.linalg.norm(found[: case.d]) <= ball * (1.0 + 1e-12)
    assert np.linalg.norm(found - x) <= start_ball * (1.0 + 1e-12)
    assert np.all(np.abs(found[case.d :]) <= case.reach()) or not n_plain


@pytest.mark.parametrize("name", ["free", "shrinking", "ball", "around the start", "both", "both, on w and t"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, 1e308])
def test_a_step_that_overflows_is_reported(name: str, bad: float, rng: np.random.Generator) -> None:
    case = CASES[name]
    X, x = some_rows(case, rng), start_of(case, rng)
    rows, zero = Rows(X), np.zeros(1, dtype=np.int64)
    vector = lazy(Case(**{**vars(case), "step": 1e3}), x, rows)
    one = (vector, row_state(rows), zero)
    assert walk(*one, np.array([bad]), zero, np.zeros(1), 0.0, np.empty(1)) == 0
    vector = lazy(case, x, rows)
    if case.n_plain and not np.isfinite(bad):
        assert walk(vector, row_state(rows), zero, np.zeros(1), zero, np.array([bad]), 0.0, np.empty(1)) == 0


@pytest.mark.parametrize("name", ["ball", "around the start", "both"])
def test_a_finite_step_whose_square_overflows_is_projected_or_reported(name: str, rng: np.random.Generator) -> None:
    case = Case(**{**vars(CASES[name]), "step": 1.0})
    X, x = some_rows(case, rng), start_of(case, rng)
    feasible = case.base() if case.start_ball == np.inf else BallWithin(case.base(), x, case.start_ball)
    rows, zero = Rows(X), np.zeros(1, dtype=np.int64)
    vector = lazy(case, x, rows)
    finite = walk(vector, row_state(rows), zero, np.array([1e160]), zero, np.zeros(1), 0.0, np.empty(1))
    truth = feasible.project(x - 1e160 * X[0])
    assert finite == 0 or np.abs(vector.point() - truth).max() <= 1e-9
