"""FunctionProblem: a user's own losses, here (x - c_i)'Q_i(x - c_i), with a dual variable on the simplex."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from small_problems import WEIGHTS, D, N, binary_data, quadratics

import pommel as pm
from pommel.problem import Sampling


def test_a_linear_model_written_by_hand_is_dro(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    parts = {"divergence": pm.ChiSquare(0.1), "regularizer": pm.L2(0.1), "sample_weight": WEIGHTS}
    dro = pm.DRO(X, labels, loss=pm.Logistic(), **parts)
    by_hand = pm.FunctionProblem(
        losses=lambda x: np.log1p(np.exp(-labels * (X @ x))),
        gradient=lambda x, i: -labels[i] * X[i] / (1.0 + np.exp(labels[i] * (X[i] @ x))),
        n=N,
        d=D,
        lower_bound=0.0,
        **parts,
    )
    x = rng.standard_normal(D)
    y = by_hand.best_response(x)
    np.testing.assert_allclose(y, dro.best_response(x), rtol=1e-12)
    assert by_hand.objective(x) == pytest.approx(dro.objective(x), rel=1e-12)
    for sampling in get_args(Sampling):
        for ours, theirs in [
            (by_hand.gradients(x, y), dro.gradients(x, y)),
            (by_hand.sample_gradients(x, y, 0, sampling), dro.sample_gradients(x, y, 0, sampling)),
            (by_hand.natural_steps(x, y, sampling), dro.natural_steps(x, y, sampling)),
        ]:
            np.testing.assert_allclose(np.hstack(ours), np.hstack(theirs), rtol=1e-12, atol=1e-14)


def test_natural_steps_follow_the_units_of_losses(rng: np.random.Generator) -> None:
    """With all of f in other units the same step is 1 / units as long."""
    X, units = rng.standard_normal((N, D)), 1024.0
    plain, other = (
        pm.FunctionProblem(
            losses=lambda x, u=u: u * ((x - X) ** 2).sum(axis=1),
            gradient=lambda x, i, u=u: 2.0 * u * (x - X[i]),
            n=N,
            d=D,
            divergence=pm.ChiSquare(0.1 * u),
            regularizer=pm.L2(0.1 * u),
            lower_bound=0.0,
        )
        for u in (1.0, units)
    )
    x = rng.standard_normal(D)
    y = plain.best_response(x)
    ours, theirs = other.natural_steps(x, y), plain.natural_steps(x, y)
    assert (ours.primal * units, ours.dual * units, ours.gradient / units, ours.stiff) == pytest.approx(
        theirs, rel=1e-12
    )


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ({"gradient": lambda x, i: -2.0 * x}, r"gradients\(x, y\)\[0\] has the wrong sign"),
        ({"gradient": lambda x, i: x}, r"gradients\(x, y\)\[0\] is wrong"),
        (
            {"losses": lambda x: -np.full(N, x @ x), "gradient": lambda x, i: -2.0 * x},
            r"gradients\(x, y\)\[0\] is wrong",
        ),
        ({"loss": lambda x, i: 0.9 * x @ x}, r"its mean is not gradients\(x, y\)\[1\]"),
        ({"lower_bound": 1e3}, r"objective\(x\) lies below lower_bound\(\)"),
        ({"constants": pm.Constants(M=1e-3)}, "M = 0.001 is no bound"),
    ],
    ids=["sign", "factor", "concave", "loss", "lower bound", "constants"],
)
def test_check_problem_names_a_mistake(mistake: dict[str, Any], message: str, seed: int) -> None:
    """All losses are |x|^2."""
    right = {"losses": lambda x: np.full(N, x @ x), "gradient": lambda x, i: 2.0 * x}
    options = {"n": N, "d": D, "divergence": pm.ChiSquare(0.1)}
    pm.check_problem(pm.FunctionProblem(**options, **right), random_state=seed)
    with pytest.raises(AssertionError, match=f"^FunctionProblem: .*{message}"):
        pm.check_problem(pm.FunctionProblem(**options, **right | mistake), random_state=seed)


def test_one_loss_alone_is_asked_for_where_it_is_given(rng: np.random.Generator) -> None:
    """By default one sampled gradient costs all losses; `loss` spares that."""
    whole = quadratics(rng)
    single = quadratics(rng, loss=lambda x, i: float(i), losses=lambda x: pytest.fail("all losses were computed"))
    x, y = np.ones(D), np.full(N, 1.0 / N)
    assert whole.loss_and_gradient(x, 3)[0] == whole.losses(x)[3]
    assert single.loss_and_gradient(x, 3)[0] == 3.0
    single.sample_gradients(x, y, 3)


def test_wrong_shapes_are_named(rng: np.random.Generator) -> None:
    x, y = np.ones(D), np.full(N, 1.0 / N)
    with pytest.raises(ValueError, match=r"losses\(x\) must have shape \(12,\), got \(\)"):
        quadratics(rng, losses=lambda x: x @ x).objective(x)
    with pytest.raises(ValueError, match=r"gradient\(x, i\) must have shape \(3,\), got \(12, 3\)"):
        quadratics(rng, gradient=lambda x, i: np.ones((N, D))).gradients(x, y)
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(12,\), got \(1,\)"):
        quadratics(rng, sample_weight=[1.0])
    with pytest.raises(TypeError, match=r"d must be a whole number >= 1, got 3\.0"):
        quadratics(rng, d=3.0)


def test_given_constants_pass_through_and_are_completed(rng: np.random.Generator) -> None:
    given = pm.Constants(M=5.0, B=7.0, G=2.0, radius=3.0, why={"c": "P is flat"})
    known = quadratics(rng, constants=given).constants()
    assert (known.M, known.B, known.G, known.radius) == (5.0, 7.0, 2.0, 3.0)
    assert (known.L, known.v) == (1.0 / N, 1.0)  # 1 / (n^2 lam)
    assert (known.mu, known.c, known.theta) == (None, None, None)
    assert known.why["c"] == "P is flat" and "constants=" in known.why["mu"]

    convex = quadratics(rng, constants=given, regularizer=pm.L2(0.5)).constants()
    assert (convex.mu, convex.c, convex.theta) == (0.5, 2.0, 0.5)
    ball = quadratics(rng, constants=given, primal_set=pm.L2Ball(1.0)).constants()
    assert (ball.c, ball.theta, ball.radius) == (2.0, 0.0, 1.0)
    sharp = quadratics(rng, constants=replace(given, theta=1.0), regularizer=pm.L2(0.5)).constants()
    assert (sharp.c, sharp.theta) == (None, 1.0)  # what is given is not mixed with what is known


def test_lower_bound_gives_epsilon0(rng: np.random.Generator) -> None:
    problem = quadratics(rng, lower_bound=-2.0)
    assert problem.lower_bound() == -2.0
    assert problem.constants().epsilon0 == problem.objective(np.zeros(D)) + 2.0
    assert quadratics(rng, lower_bound=-np.inf).constants().epsilon0 is None
    assert quadratics(rng, constants=pm.Constants(epsilon0=0.5)).constants().epsilon0 == 0.5
