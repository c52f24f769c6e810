"""Natural steps against their definition: sizes of P over second moments of the gradients, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from small_problems import DIVERGENCES, PROBLEMS, SAMPLED_PROBLEMS, N, binary_data, probabilities, quadratics

import pommel as pm
from pommel.problem import Problem, Sampling, Vector

every_sampling = pytest.mark.parametrize(
    ("name", "sampling"), [pair for pair in SAMPLED_PROBLEMS if "csr" not in pair[0]]
)


def moments(problem: Problem, x: Vector, y: Vector, sampling: Sampling) -> tuple[float, float]:
    """E|grad_x|^2, that of the losses and |grad g|^2 apart, and E|grad_y|^2, in the metrics of X and Y.

    Of grad_y for weights only what sampled losses make is counted: grad phi* is taken whole.
    """
    q, metric = probabilities(problem, y, sampling), problem.dual_set.metric
    drawn = np.flatnonzero(q)
    pairs = [problem.sample_gradients(x, y, int(i), sampling) for i in drawn]
    grads_x, grads_y = (np.array(part) for part in zip(*pairs, strict=True))
    if isinstance(problem, pm.AUC):
        slope = np.array([*problem.regularizer.subgradient(x[:-2]), 0.0, 0.0])
    else:
        slope = problem.regularizer.subgradient(x)
        grads_y = grads_y + problem.divergence.gradient(y, problem.weights)
    of_x = q[drawn] @ np.sum(problem.primal_set.metric * (grads_x - slope) ** 2, axis=1) + slope @ slope
    return float(of_x), float(q[drawn] @ np.sum(metric * grads_y**2, axis=1))


@every_sampling
def test_steps_are_sizes_over_second_moments(name: str, sampling: Sampling, rng: np.random.Generator) -> None:
    """A dual step longer than the moments allow for is the geometric mean of both, and the problem is stiff."""
    problem = PROBLEMS[name](rng)
    x = problem.primal_set.project(rng.standard_normal(problem.d))
    y = problem.best_response(x)
    size = problem.objective(x) - problem.lower_bound()
    of_x, of_y = moments(problem, x, y, sampling)
    if isinstance(problem, pm.AUC):
        whole_way, share, stiff = 1.0 / (2.0 * problem.p * (1.0 - problem.p)), 1.5, False
    else:
        n = problem.weights.sum()
        chi2 = isinstance(problem.divergence, pm.ChiSquare)
        # At a row of weight w the response to its loss moves by w / (n^2 lam), and 1 / q = n / w is what it is given.
        whole_way = problem.weights[problem.weights > 0.0].min() / (n**3 * problem.divergence.lam) if chi2 else 0.0
        share, stiff = 1.0, size / of_y < whole_way / 2.0
    dual = np.sqrt(whole_way * size / of_y) if stiff else min(whole_way, size / of_y)
    mu = np.inf if isinstance(problem, pm.AUC) else problem.regularizer.strong_convexity
    primal = share * size / of_x if mu in (0.0, np.inf) else min(size / of_x, 0.5 / mu)
    steps = problem.natural_steps(x, y, sampling)
    assert steps == pytest.approx((primal, dual, np.sqrt(of_x), stiff), rel=1e-9)


@every_sampling
def test_what_was_read_at_x_is_all_that_is_read_of_x(name: str, sampling: Sampling, rng: np.random.Generator) -> None:
    """To the last bit; no problem needs another pass for them but one of callables, which says so."""
    problem = PROBLEMS[name](rng)
    x = problem.primal_set.project(rng.standard_normal(problem.d))
    response = problem.respond(x)
    plain = problem.natural_steps(x, response.y, sampling)
    assert (response.read is None) == isinstance(problem, pm.FunctionProblem)
    if response.read is not None:
        problem.rows.matvec = lambda x: pytest.fail("the rows are read again")
    assert problem.natural_steps(x, response.y, sampling, response.read) == plain


@pytest.mark.parametrize(("n_lam", "stiff"), [(0.001, True), (0.49, True), (0.51, False), (0.99, False), (6.0, False)])
def test_a_strong_adversary_is_stiff(n_lam: float, stiff: bool, rng: np.random.Generator) -> None:
    """At x = 0 all hinge losses are 1: the moments allow for 1 / n^2, and 1 / (n^3 lam) is all the way."""
    X, labels = binary_data(rng)
    problem = pm.DRO(X, labels, divergence=pm.ChiSquare(n_lam / N))
    for sampling in ("uniform", "dual", "mixed"):
        steps = problem.natural_steps(np.zeros(problem.d), problem.y0, sampling)
        squares = np.sum(X**2, axis=1)
        assert steps.stiff is stiff
        assert steps.primal == pytest.approx(1.0 / np.mean(squares), rel=1e-12)
        assert steps.gradient == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-12)
        dual = n_lam**-0.5 if stiff else min(1.0, 1.0 / n_lam)
        assert steps.dual == pytest.approx(dual / N**2, rel=1e-12)


def test_no_adversary_and_a_single_dual_variable_are_never_stiff(rng: np.random.Generator) -> None:
    for name, build in PROBLEMS.items():
        problem = build(rng)
        if "mean" in name or "AUC" in name:
            for scale in (0.0, 0.1, 10.0):
                x = problem.primal_set.project(scale * rng.standard_normal(problem.d))
                assert not problem.natural_steps(x, problem.best_response(x)).stiff


@pytest.mark.parametrize("divergence", DIVERGENCES.values(), ids=DIVERGENCES)
def test_steps_end_at_a_lower_bound_that_rounding_leads_below(divergence: object, rng: np.random.Generator) -> None:
    """Neither back nor NaN."""
    problem = quadratics(rng, divergence=divergence)
    x = rng.standard_normal(problem.d)
    tight = quadratics(rng, divergence=divergence, lower_bound=problem.objective(x) * (1.0 + 1e-15))
    tight.read, tight._gradient = problem.read, problem._gradient  # the same losses
    steps = tight.natural_steps(x, problem.best_response(x))
    assert (steps.primal, steps.dual) == (0.0, 0.0)
