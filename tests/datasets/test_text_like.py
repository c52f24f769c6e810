from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from pommel.datasets import make_text_like


def test_shape_rows_and_classes(seed: int) -> None:
    X, labels = make_text_like(4_000, 10_000, share=0.3, noise=0.0, random_state=seed)
    assert X.shape == (4_000, 10_000)
    assert X.has_canonical_format
    assert X.indices.dtype == np.int32  # scikit-learn's solvers take no other
    np.testing.assert_allclose((X**2).sum(axis=1), 1.0)
    assert set(labels) == {-1.0, 1.0}
    assert np.mean(labels > 0.0) == pytest.approx(0.3, abs=0.04)


def test_few_words_are_common_and_most_are_rare(seed: int) -> None:
    X, _ = make_text_like(4_000, 10_000, random_state=seed)
    texts_with = np.sort(np.bincount(X.indices, minlength=X.shape[1]))[::-1]
    assert 40 < X.nnz / X.shape[0] < 90
    assert texts_with[0] > 5 * texts_with[200] > 5 * 5 * np.median(texts_with)
    assert np.median(texts_with) < 0.01 * X.shape[0]


def test_a_linear_rule_holds_for_fresh_texts_up_to_the_noise(seed: int) -> None:
    scores = {}
    for noise in (0.0, 0.25):
        X, labels = make_text_like(4_000, 5_000, noise=noise, random_state=seed)
        scores[noise] = RidgeClassifier().fit(X[:3_000], labels[:3_000]).score(X[3_000:], labels[3_000:])
    assert scores[0.0] > 0.9
    assert scores[0.25] < 0.8


def test_same_seed_same_data(seed: int) -> None:
    a, b = (make_text_like(200, 500, random_state=seed) for _ in range(2))
    np.testing.assert_array_equal(a.labels, b.labels)
    assert (a.X != b.X).nnz == 0


def test_topics_are_split_between_the_classes(seed: int) -> None:
    X, labels = make_text_like(300, 400, topics=3, random_state=seed)
    assert X.shape == (300, 400)
    assert set(labels) == {-1.0, 1.0}
    with pytest.raises(ValueError, match="at least 2"):
        make_text_like(topics=1)
