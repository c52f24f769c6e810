"""Losses: what every h must satisfy. A new loss is tested by having `EXAMPLES`."""

from __future__ import annotations

import pickle
from decimal import Decimal

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import pommel as pm
from pommel._registry import examples
from pommel.losses import LOSSES
from pommel.problem import Loss

every_loss = pytest.mark.parametrize("loss", examples(LOSSES), ids=repr)
every_label = pytest.mark.parametrize("label", [-1.0, 1.0])

POSITIVE = np.concatenate([np.logspace(-300, 300, 121), np.linspace(0.01, 3.0, 300), [30.0, 700.0, 800.0]])
MARGINS = np.sort(np.concatenate([-POSITIVE, [0.0], POSITIVE]))


@every_loss
@every_label
def test_derivative_lies_between_the_secants(loss: Loss, label: float, rng: np.random.Generator) -> None:
    """That holds at kinks too; elsewhere the secants pin the derivative down."""
    margins, step = np.concatenate([np.linspace(-3.0, 3.0, 49), rng.normal(0.0, 3.0, 200)]), 1e-6
    value = loss.value(margins, label)
    left = (value - loss.value(margins - step, label)) / step
    right = (loss.value(margins + step, label) - value) / step
    derivative = loss.derivative(margins, label)
    assert np.all((left - 1e-8 <= derivative) & (derivative <= right + 1e-8))
    assert np.median(right - left) <= 1e-5


@every_loss
@every_label
def test_conjugate_is_the_supremum(loss: Loss, label: float, rng: np.random.Generator) -> None:
    for slope in loss.derivative(rng.normal(0.0, 3.0, 20), label) * rng.choice([0.3, 1.0], 20):
        best = minimize_scalar(
            lambda m, slope=slope: loss.value(m, label) - slope * m, bounds=(-60.0, 60.0), options={"xatol": 1e-10}
        )
        assert loss.conjugate(slope, label) == pytest.approx(-best.fun, abs=1e-6)


@every_loss
@every_label
@pytest.mark.parametrize("slope", [-2.0, -1.001, -1.0, -0.5, -0.001, 0.0, 0.001, 0.5, 1.0, 1.001, 2.0])
def test_conjugate_is_infinite_where_the_supremum_is(loss: Loss, label: float, slope: float) -> None:
    far = np.array([-1e9, 1e9])
    unbounded = np.max(slope * far - loss.value(far, label)) > 1e5
    assert np.isinf(loss.conjugate(slope, label)) == unbounded


@every_loss
@every_label
def test_fenchel_young_inequality_is_tight_at_the_derivative(loss: Loss, label: float) -> None:
    slopes = loss.derivative(MARGINS, label)
    value, conjugate = loss.value(MARGINS, label), loss.conjugate(slopes, label)
    size = np.abs(value) + np.abs(slopes * MARGINS)
    np.testing.assert_array_less(np.abs(value + conjugate - slopes * MARGINS), 1e-14 * size + 1e-320)
    surplus = value[:, None] + conjugate - MARGINS[:, None] * slopes
    assert np.all(surplus >= -1e-14 * (np.abs(value[:, None]) + np.abs(MARGINS[:, None] * slopes) + np.abs(conjugate)))


@every_loss
@every_label
def test_constants_are_bounds_and_no_looser_than_need_be(loss: Loss, label: float) -> None:
    derivative = loss.derivative(MARGINS, label)
    moderate = np.linspace(-10.0, 10.0, 2001)
    curvature = np.diff(loss.derivative(moderate, label)) / np.diff(moderate)
    for bound, largest in ((loss.lipschitz, np.abs(derivative).max()), (loss.smoothness, curvature.max())):
        assert largest <= bound * (1.0 + 1e-9)
        assert largest >= 0.99 * bound or bound == np.inf
    lowest = loss.value(MARGINS, label).min()
    assert loss.infimum <= lowest <= loss.infimum + 1e-12


@every_loss
@every_label
def test_scalars_and_arrays_give_the_same(loss: Loss, label: float) -> None:
    """To the last bits: NumPy may take another path through exp for an array."""
    for function, arguments in (
        (loss.value, MARGINS),
        (loss.derivative, MARGINS),
        (loss.conjugate, loss.derivative(MARGINS, label)),
    ):
        one_by_one = [float(function(float(argument), label)) for argument in arguments]
        np.testing.assert_allclose(function(arguments, np.full(arguments.size, label)), one_by_one, rtol=1e-14)
        assert np.isfinite(one_by_one).all()


@every_loss
@every_label
def test_single_precision_is_taken(loss: Loss, label: float) -> None:
    margins = np.linspace(-50.0, 50.0, 201, dtype=np.float32)
    labels = np.full(margins.size, label, dtype=np.float32)
    for function in (loss.value, loss.derivative):
        np.testing.assert_allclose(function(margins, labels), function(margins.astype(float), label), rtol=1e-5)


@every_loss
def test_loss_survives_pickling(loss: Loss) -> None:
    twin = pickle.loads(pickle.dumps(loss))
    assert twin == loss
    np.testing.assert_array_equal(twin.value(MARGINS, 1.0), loss.value(MARGINS, 1.0))


@pytest.mark.parametrize("margin", [-1e4, -745.0, -40.0, -1.0, -1e-9, 0.0, 1e-300, 1e-9, 1.0, 40.0, 700.0])
def test_logistic_loss_is_accurate_in_both_tails(margin: float) -> None:
    odds = Decimal(-margin).exp()
    t = odds / (1 + odds)
    assert pm.Logistic().value(margin, 1.0) == pytest.approx(float((1 + odds).ln()), rel=1e-14)
    assert pm.Logistic().derivative(margin, 1.0) == pytest.approx(-float(t), rel=1e-14)


@pytest.mark.parametrize("t", [0.0, 1e-300, 1e-20, 0.3, 0.5, 1.0 - 1e-12, 1.0])
def test_logistic_conjugate_is_accurate_to_the_edges(t: float) -> None:
    exact = sum(p * p.ln() for p in (Decimal(t), 1 - Decimal(t)) if p > 0)
    assert pm.Logistic().conjugate(-t, 1.0) == pytest.approx(float(exact), rel=1e-14)
