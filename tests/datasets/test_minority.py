from __future__ import annotations

import numpy as np
import pytest

from pommel.datasets import make_minority


def test_shares_shift_and_labels(seed: int) -> None:
    X, labels, is_minority = make_minority(50_000, share=0.2, shift=1.5, random_state=seed)
    assert is_minority.mean() == pytest.approx(0.2, abs=0.01)
    assert set(labels) == {-1.0, 1.0}
    signal = X[:, 0] - labels
    assert signal[is_minority].mean() - signal[~is_minority].mean() == pytest.approx(-1.5, abs=0.03)


def test_same_seed_same_data(seed: int) -> None:
    for a, b in zip(make_minority(random_state=seed), make_minority(random_state=seed), strict=True):
        np.testing.assert_array_equal(a, b)
