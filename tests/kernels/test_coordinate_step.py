"""One coordinate step against a search for the best margin of the row: any convex loss, values and slopes only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import pommel as pm
from pommel._jit import pointer
from pommel.kernels.coordinate_step import coordinate_step


@dataclass(frozen=True)
class Pinball:
    """A user's loss: its kink is at the label, its slopes are -0.3 and 0.7, with a second kink at label + 2."""

    lipschitz = 1.7

    def value(self, margin: Any, label: Any) -> Any:
        return np.maximum(0.3 * (label - margin), 0.7 * (margin - label)) + np.maximum(0.0, margin - label - 2.0)

    def derivative(self, margin: Any, label: Any) -> Any:
        return np.where(margin < label, -0.3, 0.7) + np.where(margin > label + 2.0, 1.0, 0.0)


LOSSES = {"hinge": pm.Hinge(), "smoothed": pm.SmoothedHinge(0.1), "logistic": pm.Logistic(), "kinks": Pinball()}


def step(loss: Any, *arguments: float) -> tuple[float, float, float, float]:
    return coordinate_step(pointer(loss), *map(float, arguments))


def model(
    loss: Any, label: float, base: float, rise: float, curvature: float, target: float
) -> Callable[[float], float]:
    """curvature H(m) + (m - target)^2 / 2, with H the integral of max(0, base + rise loss) in the loss."""

    def of(m: float) -> float:
        value = float(loss.value(m, label))
        if rise == 0.0:
            return curvature * base * value + 0.5 * (m - target) ** 2
        return curvature * 0.5 / rise * max(0.0, base + rise * value) ** 2 + 0.5 * (m - target) ** 2

    return of


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@given(
    label=st.sampled_from([-1.0, 1.0]),
    base=st.sampled_from([-0.2, 0.0, 0.3, 2.0]),
    rise=st.sampled_from([0.0, 0.01, 0.5, 10.0]),
    curvature=st.sampled_from([1e-3, 0.3, 1.0, 30.0]),
    margin=st.floats(-5.0, 5.0),
    share=st.floats(-1.0, 1.0),
)
@example(label=1.0, base=0.3, rise=0.0, curvature=30.0, margin=0.99, share=0.0)
def test_it_is_the_best_margin(
    loss: Any, label: float, base: float, rise: float, curvature: float, margin: float, share: float
) -> None:
    base = abs(base) if rise == 0.0 else base
    product = share * base
    target = margin + curvature * product
    y, slope, value, kink = step(loss, label, base, rise, curvature, margin, product, np.nan)
    m = target - curvature * y * slope
    of = model(loss, label, base, rise, curvature, target)
    found = minimize_scalar(of, bracket=(m - 1.0, m + 1.0), method="brent", options={"xtol": 1e-11})
    scale = 1.0 + abs(margin) + abs(target) + curvature * (abs(base) + rise)
    assert of(m) <= found.fun + 1e-5 * abs(m - margin) * scale + 1e-11 * scale**2
    assert y == pytest.approx(max(0.0, base + rise * value))
    assert value == pytest.approx(float(loss.value(m, label)), abs=2e-3 * (abs(m - margin) + 1e-9) * 2.0)
    ends = [float(loss.derivative(m + side * 1e-2 * (1.0 + abs(m - margin)), label)) for side in (-1.0, 1.0)]
    assert ends[0] - 1e-12 <= slope <= ends[1] + 1e-12  # in the domain of h*
    if not np.isnan(kink):  # it is remembered, and leads to the same step
        again = step(loss, label, base, rise, curvature, margin, product, kink)
        assert again == pytest.approx((y, slope, value, kink), rel=1e-9, abs=1e-9)
    elsewhere = step(loss, label, base, rise, curvature, margin, product, 1.7)  # a wrong memory does no harm
    m = target - curvature * elsewhere[0] * elsewhere[1]
    assert of(m) <= found.fun + 1e-5 * abs(m - margin) * scale + 1e-11 * scale**2


def test_a_kink_is_met_exactly() -> None:
    """From a margin close to it, too, where the weight times the jump of slopes dwarfs the move."""
    for margin in (-3.0, 0.5, 0.9, 0.99999):
        y, slope, _, kink = step(pm.Hinge(), 1.0, 1.0, 0.0, 30.0, margin, 0.0, np.nan)
        assert kink == pytest.approx(1.0, abs=1e-13)
        assert y * slope == pytest.approx((margin - 1.0) / 30.0, rel=1e-9, abs=1e-14)


def test_rows_of_zeros_follow_their_loss() -> None:
    assert step(pm.Hinge(), 1.0, 0.2, 0.5, 0.0, 0.0, -0.1, np.nan)[:3] == pytest.approx((0.7, -1.0, 1.0))
