"""Synthetic data in the shape of a set of texts: sparse and wide, few common words, many rare ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from pommel._validation import check_count
from pommel.problem import Vector

__all__ = ["TextLike", "make_text_like"]

SPREAD = 0.7
"""Of the logarithm of a text's length."""

EXPONENT = 1.2
"""Of the power law of the words."""


class TextLike(NamedTuple):
    """Rows of unit length and labels -1 or +1."""

    X: csr_array
    labels: Vector


def make_text_like(
    n_samples: int = 20_242,
    n_features: int = 47_236,
    *,
    words: int = 80,
    topics: int = 40,
    contrast: float = 1.4,
    noise: float = 0.005,
    share: float = 0.52,
    random_state: Any = None,
) -> TextLike:
    """Texts on topics, half of the topics in each class, as rows of tf-idf weights (synthetic).

    Word j has frequency (j + 20)^-1.2, times the exponential of `contrast` times a standard normal number of each
    topic. A text has one topic and draws its words from that topic's frequencies. Weights are log(1 + count) log(n /
    texts that have the word), rows have unit length. The defaults have rows, columns, entries per row and class
    balance like RCV1's training set, and a linear classifier is right about as often; they are not that set.

    Parameters
    ----------
    n_samples, n_features : int
        Texts and words.
    words : int, default=80
        Median number of words of a text, repetitions included: about 76 different ones on average with the default
        vocabulary.
    topics : int, default=40
        How many; at least 2.
    contrast : float, default=1.4
        How far the words of a topic differ from those of another.
    noise : float, default=0.005
        Expected share of wrong labels.
    share : float, default=0.52
        Expected share of the positive class, before the noise.
    random_state : int, Generator or None
        Same seed, same data.

    Examples
    --------
    >>> X, labels = make_text_like(500, 2000, random_state=0)
    >>> X.shape, sorted(set(labels.tolist()))
    ((500, 2000), [-1.0, 1.0])
    """
    check_count(n_samples, "n_samples")
    check_count(n_features, "n_features")
    if check_count(topics, "topics") < 2:
        raise ValueError(f"topics must be at least 2, one for each class, got {topics}")
    rng = np.random.default_rng(random_state)
    lengths = np.maximum(1, np.exp(np.log(words) + SPREAD * rng.standard_normal(n_samples)).astype(np.int64))
    positive = rng.random(n_samples) < share
    # Even topics are those of the positive class.
    topic = 2 * rng.integers(np.where(positive, (topics + 1) // 2, topics // 2)) + ~positive
    common = (np.arange(n_features) + 20.0) ** -EXPONENT
    entries = []
    for k in range(topics):
        cumulative = np.cumsum(common * np.exp(contrast * rng.standard_normal(n_features)))
        texts = np.repeat(np.flatnonzero(topic == k).astype(np.int32), lengths[topic == k])
        drawn = np.searchsorted(cumulative, rng.random(texts.size) * cumulative[-1], side="right")
        entries.append((texts, np.minimum(drawn, n_features - 1).astype(np.int32)))  # what scikit-learn takes
    where = tuple(np.concatenate(parts) for parts in zip(*entries, strict=True))
    X = csr_array((np.ones(where[0].size), where), shape=(n_samples, n_features))  # adds up repetitions
    X.sum_duplicates()
    texts_with = np.bincount(X.indices, minlength=n_features)
    # One more text, or a word that all texts have would leave rows without entries.
    X.data = np.log1p(X.data) * np.log((n_samples + 1.0) / texts_with[X.indices])
    row = np.repeat(np.arange(n_samples), np.diff(X.indptr))
    X.data /= np.sqrt(np.bincount(row, X.data**2, minlength=n_samples))[row]
    labels = np.where(positive ^ (rng.random(n_samples) < noise), 1.0, -1.0)
    return TextLike(X, labels)
