"""Synthetic data in which one model has to serve a majority and a minority."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pommel.problem import Vector

__all__ = ["Minority", "make_minority"]


class Minority(NamedTuple):
    """Rows, labels -1 or +1, and which rows belong to the minority."""

    X: Vector
    labels: Vector
    is_minority: NDArray[np.bool_]


def make_minority(
    n_samples: int = 600, *, share: float = 0.1, shift: float = 2.0, random_state: Any = None
) -> Minority:
    """Two groups with different thresholds for the same feature; nobody says who belongs to which (synthetic).

    Feature 0 is the label plus noise, less `shift` for the minority: the threshold that is right for the majority is
    wrong for them. Feature 1 is a noisy sign of the group, three more are noise. A model fitted to the mean loss
    serves the majority and is confidently wrong about the minority.

    Parameters
    ----------
    n_samples : int, default=600
        Rows.
    share : float, default=0.1
        Expected share of the minority.
    shift : float, default=2.0
        How far their threshold lies from the majority's.
    random_state : int, Generator or None
        Same seed, same data.

    Examples
    --------
    >>> X, labels, is_minority = make_minority(1000, random_state=0)
    >>> X.shape, float(is_minority.mean())
    ((1000, 5), 0.089)
    """
    rng = np.random.default_rng(random_state)
    is_minority = rng.random(n_samples) < share
    labels = np.where(rng.random(n_samples) < 0.5, 1.0, -1.0)
    signal = labels + 0.45 * rng.standard_normal(n_samples) - shift * is_minority
    sign_of_group = is_minority + 0.6 * rng.standard_normal(n_samples)
    return Minority(
        np.column_stack([signal, sign_of_group, 0.3 * rng.standard_normal((n_samples, 3))]), labels, is_minority
    )
