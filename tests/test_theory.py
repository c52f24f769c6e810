"""Theorems 1 to 4: stages worked out by hand, and the proofs' own inequalities for any constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from math import inf, log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pommel.theory import Plan, Stage, theorem_1, theorem_2, theorem_3, theorem_4


def assert_stages(plan: Plan, expected: list[tuple[float, ...]]) -> None:
    """Rows are (call, stage, T, eta_x, eta_y, R_x, R_y)."""
    rows = [astuple(stage) for stage in plan.stages]
    assert [row[:3] for row in rows] == [row[:3] for row in expected]
    np.testing.assert_allclose(rows, expected, rtol=1e-14)


def test_theorem_1_by_hand() -> None:
    # S = ceil(log2 5) = 3; a natural logarithm would give 2.
    # T_1 = max(405 * 2^2, 810 * (2 * 0.5 * 3)^2) / (0.1 * 1) = max(1620, 7290) / 0.1
    # eta_x = 2 / (45 * 2^2) = 1 / 90,  eta_y = 2 / (45 * 3^2) = 2 / 405
    plan = theorem_1(M=2.0, B=3.0, G=0.5, L=2.0, mu=0.1, epsilon0=1.0, epsilon=0.2)
    assert_stages(
        plan,
        [
            (1, 1, 72_900, 1 / 90, 2 / 405, inf, inf),
            (1, 2, 145_800, 1 / 180, 1 / 405, inf, inf),
            (1, 3, 291_600, 1 / 360, 1 / 810, inf, inf),
        ],
    )
    assert plan.total_gradients == 72_900 * (2**3 - 1) == 510_300


def test_theorem_1_rounds_the_first_length_up_and_doubles_that() -> None:
    # T_1 = 405 * 4^2 / (0.7 * 2) = 6480 / 1.4 = 4628.57...;  the dual term 810 * (2 * 0.5 * 1)^2 is smaller
    # eta_x = 2 * 2 / (45 * 4^2) = 1 / 180,  eta_y = 2 * 2 / 45
    plan = theorem_1(M=4.0, B=1.0, G=0.5, L=2.0, mu=0.7, epsilon0=2.0, epsilon=0.5)
    assert_stages(plan, [(1, 1, 4_629, 1 / 180, 4 / 45, inf, inf), (1, 2, 9_258, 1 / 360, 2 / 45, inf, inf)])


def test_theorem_2_by_hand() -> None:
    # S = 2, delta-tilde = 0.2 / 2, ln(1 / delta-tilde) = ln 10 = 2.302585...
    # R_x = 2 * 1 / sqrt(0.25) = 4,  R_y = 1 * (4 * 4)^1 = 16, both halved
    # noise: max(1.2 * 4, 1 * 16)^2 / 1^2 = 256 in either stage;  T = 8192 * 2.302585... * 256 = 4,828,870.9
    # eta_x = 1 / (40 * 1.44) = 1 / 57.6,  eta_y = 1 / 40
    plan = theorem_2(M=1.2, B=1.0, G=4.0, L=1.0, v=1.0, c=2.0, theta=0.5, epsilon0=1.0, epsilon=0.25, delta=0.2)
    assert_stages(plan, [(1, 1, 4_828_871, 1 / 57.6, 1 / 40, 4, 16), (1, 2, 4_828_871, 1 / 115.2, 1 / 80, 2, 8)])
    assert plan.total_gradients == 9_657_742


def test_theorem_2_for_v_below_1_has_the_length_of_its_last_stage() -> None:
    # As above but v = 1/2:  R_y = 1 * sqrt(4 * 4) = 4, divided by sqrt(2) each stage
    # noise: stage 1  max(1.2 * 4, 4)^2 / 1^2 = 23.04,  stage 2  max(1.2 * 2, 4 / sqrt(2))^2 / (1/2)^2 = 32
    # T = 8192 * 2.302585... * 32 = 603,608.9
    plan = theorem_2(M=1.2, B=1.0, G=4.0, L=1.0, v=0.5, c=2.0, theta=0.5, epsilon0=1.0, epsilon=0.25, delta=0.2)
    assert_stages(plan, [(1, 1, 603_609, 1 / 57.6, 1 / 40, 4, 4), (1, 2, 603_609, 1 / 115.2, 1 / 80, 2, 4 / sqrt(2))])


def test_theorem_2_needs_320_noises_even_for_the_boldest_delta() -> None:
    # 8192 * ln(1 / 0.99) = 82.3 < 320;  R_x = 1 * 1 / 0.5^0 = 1,  T = 320 * (2 * 1)^2 / 1
    plan = theorem_2(M=2.0, B=1.0, G=4.0, L=0.1, v=1.0, c=1.0, theta=1.0, epsilon0=1.0, epsilon=0.5, delta=0.99)
    assert_stages(plan, [(1, 1, 1_280, 1 / 160, 1 / 40, 1, 0.4)])


def test_theorem_3_by_hand() -> None:
    # S = 2, K = log2(0.5 / 0.25) + 1 = 2, delta-hat = 0.06 / (2 * 3), ln(1 / delta-hat) = ln 100 = 4.605170...
    # R_x = 1 / sqrt(1/2) = sqrt(2),  R_y = 2 * 0.5 * R_x;  radii of the next call 2^(1/2), its length 2 times as large
    # T_1 = 8192 * 4.605170... * max(1 * sqrt(2), 3 * sqrt(2))^2 / 1^2 = 8192 * 4.605170... * 18 = 679,059.97
    plan = theorem_3(M=1.0, B=3.0, G=0.5, L=2.0, c=1.0, theta=0.5, epsilon0=1.0, epsilon1=0.5, epsilon=0.25, delta=0.06)
    root = sqrt(2)
    assert_stages(
        plan,
        [
            (1, 1, 679_060, 1 / 40, 1 / 360, root, root),
            (1, 2, 679_060, 1 / 80, 1 / 720, root / 2, root / 2),
            (2, 1, 1_358_120, 1 / 40, 1 / 360, 2, 2),
            (2, 2, 1_358_120, 1 / 80, 1 / 720, 1, 1),
        ],
    )
    assert (plan.n_stages, plan.n_calls, plan.total_gradients) == (2, 2, 4_074_360)


def test_theorem_4_by_hand() -> None:
    # S = 3, K = log2(0.5 / 0.125) + 1 = 3, ln(1 / delta-hat) = ln(3 * 4 / 0.12) = ln 100
    # R_x = 3 * 1 / 0.5 = 6,  R_y = 0.5 * 1 * 6;  radii double from call to call, lengths are 4 times as large
    # T_1 = 8192 * 4.605170... * max(2 * 6, 1 * 3)^2 / 1^2 = 8192 * 4.605170... * 144 = 5,432,479.8
    plan = theorem_4(M=2.0, B=1.0, G=1.0, L=0.5, distance=3.0, epsilon0=1.0, epsilon1=0.5, epsilon=0.125, delta=0.12)
    assert_stages(
        plan,
        [
            (call, stage, length, 1 / 160 / half, 1 / 40 / half, R_x / half, R_x / 2 / half)
            for call, length, R_x in ((1, 5_432_480, 6.0), (2, 21_729_920, 12.0), (3, 86_919_680, 24.0))
            for stage, half in ((1, 1), (2, 2), (3, 4))
        ],
    )
    assert plan.total_gradients == 3 * (1 + 4 + 16) * 5_432_480


positive = st.floats(-6.0, 6.0).map(lambda power: 2.0**power)
share = st.floats(0.0, 1.0)
bounds = st.fixed_dictionaries({"M": positive, "B": positive, "G": positive, "L": positive, "epsilon0": positive})
fraction = st.floats(0.005, 0.25)  # epsilon / epsilon0
confidence = st.floats(1e-6, 0.999)
UP = 1.0 + 1e-9  # rounding


@given(bounds, positive, fraction)
def test_stages_of_theorem_1_halve_the_bound(known: dict[str, float], mu: float, small: float) -> None:
    """The proof's bound of E[P(x_s) - P*], solved for that expectation, is at most epsilon_{s-1} / 2."""
    M, B, G, L, epsilon = known["M"], known["B"], known["G"], known["L"], known["epsilon0"]
    plan = theorem_1(**known, mu=mu, epsilon=small * epsilon)
    for stage in plan.stages:
        share = 4.0 * (L * G) ** 2 / (mu * stage.dual_step * stage.length)
        constant = 2.0 * epsilon / (mu * stage.primal_step * stage.length) + share * epsilon
        noise = 2.5 * (stage.primal_step * M**2 + stage.dual_step * B**2)
        assert share <= UP / 9.0
        assert (constant + noise) / (1.0 - share) <= UP * epsilon / 2.0
        epsilon /= 2.0
    assert epsilon <= UP * small * known["epsilon0"] < 2.0 * UP * epsilon


def high_probability_bound(known: dict[str, float], stage: Stage, log_term: float) -> float:
    """The right-hand side of the bound that Theorem 2's proof makes of one stage."""
    M, B, T = known["M"], known["B"], stage.length
    R_x, R_y, eta_x, eta_y = stage.primal_radius, stage.dual_radius, stage.primal_step, stage.dual_step
    start = R_x**2 / (eta_x * T) + R_y**2 / (eta_y * T)
    noise = 2.5 * (eta_x * M**2 + eta_y * B**2)
    return start + noise + 4.0 * (M * R_x + B * R_y) * sqrt(2.0 * log_term / T)


@given(bounds, share, share, positive, fraction, confidence)
def test_stages_of_theorem_2_halve_the_bound(
    known: dict[str, float], v: float, theta: float, c: float, small: float, delta: float
) -> None:
    epsilon = small * known["epsilon0"]
    plan = theorem_2(**known, v=v, theta=theta, c=c, epsilon=epsilon, delta=delta)
    at_start = known["epsilon0"]
    for stage in plan.stages:
        assert high_probability_bound(known, stage, log(plan.n_stages / delta)) <= UP * at_start / 2.0
        assert UP * stage.primal_radius >= c * at_start / epsilon ** (1.0 - theta)
        assert UP * stage.dual_radius >= known["L"] * (known["G"] * stage.primal_radius) ** v
        at_start /= 2.0
    assert at_start <= UP * epsilon < 2.0 * UP * at_start


@given(bounds, st.floats(0.0, 0.99), positive, fraction, share, confidence)
def test_stages_of_theorems_3_and_4_halve_the_bound(
    known: dict[str, float], theta: float, c: float, small: float, between: float, delta: float
) -> None:
    """In every call; and the last call's radius is what Theorem 2 asks for."""
    epsilon0, epsilon = known["epsilon0"], small * known["epsilon0"]
    accuracies = {
        "epsilon": epsilon,
        "epsilon1": min(epsilon + between * (epsilon0 / 2.0 - epsilon), epsilon0 / 2.0),
    }
    if theta > 0.0:
        plan = theorem_3(**known, **accuracies, theta=theta, c=c, delta=delta)
    else:
        plan = theorem_4(**known, **accuracies, distance=c, delta=delta)
    S = plan.n_stages
    for stage in plan.stages:
        at_start = epsilon0 / 2.0 ** (stage.stage - 1)
        assert high_probability_bound(known, stage, log(S * (S + 1) / delta)) <= UP * at_start / 2.0
    last_call = plan.stages[-S]
    assert (last_call.call, last_call.stage) == (plan.n_calls, 1)
    assert len(plan.stages) <= S * (S + 1)  # so a share delta / (S (S + 1)) for each stage adds up to delta at most
    assert UP * last_call.primal_radius >= c * epsilon0 / epsilon ** (1.0 - theta)


def test_describe_is_a_table_with_the_promise_and_the_price() -> None:
    plan = theorem_2(M=2.0, B=1.0, G=4.0, L=0.1, v=1.0, c=1.0, theta=1.0, epsilon0=1.0, epsilon=0.5, delta=0.9)
    assert plan.describe().splitlines() == [
        "Theorem 2: P(x) - P* <= 1 with probability at least 0.1",
        "call  stage          length  primal_step    dual_step  primal_radius  dual_radius",
        "   1      1           3,453      0.00625        0.025              1          0.4",
        "total: 3,453 gradients",
    ]


def test_a_start_that_is_good_enough_needs_no_stage() -> None:
    plan = theorem_1(M=1.0, B=1.0, G=1.0, L=1.0, mu=1.0, epsilon0=0.1, epsilon=0.1)
    assert (plan.n_stages, plan.n_calls, plan.total_gradients) == (0, 0, 0)
    with pytest.raises(ValueError, match="nothing is left to do"):
        _ = plan.first_stage


SOUND: dict[Callable[..., Plan], dict[str, Any]] = {
    theorem_1: {"mu": 1.0},
    theorem_2: {"v": 1.0, "c": 1.0, "theta": 0.5, "delta": 0.1},
    theorem_3: {"c": 1.0, "theta": 0.5, "epsilon1": 0.25, "delta": 0.1},
    theorem_4: {"distance": 1.0, "epsilon1": 0.25, "delta": 0.1},
}
ALL, ADAPTIVE = tuple(SOUND), (theorem_3, theorem_4)


@pytest.mark.parametrize(
    ("theorems", "name", "values", "message"),
    [
        (ALL, "epsilon", (0.0, -1.0, inf), "epsilon"),
        (ALL, "M", (-1.0, inf), "M must be"),
        (ALL, "B", (-1.0,), "B must be"),
        (ALL, "G", (-1.0,), "G must be"),
        (ALL, "L", (-1.0,), "L must be"),
        ((theorem_1,), "mu", (0.0, inf), "mu must be"),
        (ALL[1:], "delta", (0.0, 1.0, -0.1), r"delta must lie in \(0, 1\)"),
        ((theorem_2, theorem_3), "c", (-1.0,), "c must be"),
        ((theorem_2,), "v", (-0.5, 1.5), "v must be"),
        ((theorem_2,), "theta", (-0.5, 1.1), "theta must be"),
        ((theorem_3,), "theta", (0.0, 1.0), "0 < theta < 1"),
        ((theorem_4,), "distance", (-1.0,), "distance must be"),
        (ADAPTIVE, "epsilon", (0.3,), "epsilon <= epsilon0 / 4"),
        (ADAPTIVE, "epsilon1", (0.0, 0.05, 0.6), "epsilon1 <= epsilon0 / 2"),
    ],
)
def test_impossible_constants_are_refused(theorems: Any, name: str, values: Any, message: str) -> None:
    for theorem in theorems:
        sound = {"M": 1.0, "B": 1.0, "G": 1.0, "L": 1.0, "epsilon0": 1.0, "epsilon": 0.1} | SOUND[theorem]
        assert theorem(**sound).total_gradients > 0
        for value in values:
            with pytest.raises(ValueError, match=message):
                theorem(**sound | {name: value})
