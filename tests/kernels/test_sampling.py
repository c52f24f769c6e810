"""Rows are drawn as the reference engine draws them: `problem.draw`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pommel as pm
from pommel._jit import kernel
from pommel.engines.engine import GradientStep
from pommel.kernels.adversary import dual_state
from pommel.kernels.sampling import sampling_state
from pommel.problem import MIX, Sampling

DRAWS = 2000


@kernel
def draw_all(sampling: Any, y: Any, u: Any, drawn: Any, odds: Any) -> None:
    for k in range(u.size):
        drawn[k] = sampling.draw(u[k], y)
        odds[k] = 1.0 / sampling.importance(drawn[k], y)


WEIGHTS = {
    "equal": lambda rng, n: None,
    "integer": lambda rng, n: np.append(rng.integers(0, 3, n - 2), [1, 2]),
    "any": lambda rng, n: rng.lognormal(0.0, 2.0, n),
    "zeros at both ends": lambda rng, n: np.r_[np.zeros(n // 4), np.ones(n - 2 * (n // 4)), np.zeros(n // 4)],
}


def problem_with(weights: str, n: int, rng: np.random.Generator) -> pm.DRO:
    labels = np.array([-1, 1] * (n // 2))
    return pm.DRO(
        rng.standard_normal((n, 3)),
        labels,
        divergence=pm.ChiSquare(1.0 / n),
        regularizer=pm.L2(1.0 / n),
        sample_weight=WEIGHTS[weights](rng, n),
    )


def rule_for(problem: Any, sampling: Sampling) -> GradientStep:
    return GradientStep(0.1, 1e-3, problem.primal_set, problem.dual_set, sampling, center=0.0)


@pytest.mark.parametrize("n", [4, 6, 50, 1000])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("sampling", list(MIX))
def test_draws_are_those_of_the_problem(sampling: Sampling, weights: str, n: int, rng: np.random.Generator) -> None:
    problem = problem_with(weights, n, rng)
    rule = rule_for(problem, sampling)
    y = problem.dual_set.project(problem.y0 * (1.0 + 1.5 * rng.standard_normal(n)))
    dual = dual_state(problem, rule, y)
    steps = np.cumsum(MIX[sampling] * y + (1.0 - MIX[sampling]) * problem.y0)
    u = np.r_[0.0, 0.5, 1.0 - 2.0**-53, rng.random(DRAWS), steps[:-1] / steps[-1]]
    u = np.minimum(u, 1.0 - 2.0**-53)
    drawn, odds = np.empty(u.size, dtype=np.int64), np.empty(u.size)
    draw_all(sampling_state(problem, rule), dual, u, drawn, odds)
    expected = np.array([problem.draw(one, y, sampling) for one in u])
    # Rows may differ only where u lies within rounding of a step of the distribution function.
    near = np.abs(steps / steps[-1] - u[:, None]).min(axis=1) < 1e-13
    np.testing.assert_array_equal(drawn[~near], expected[~near])
    assert near.sum() <= n + 3
    q = MIX[sampling] * y + (1.0 - MIX[sampling]) * problem.y0
    assert np.all(q[drawn] > 0.0)
    np.testing.assert_allclose(odds, q[drawn], rtol=1e-12)
