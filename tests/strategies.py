"""What hypothesis draws vectors from: ties, zeros, and magnitudes from 1e-300 to 1e300 side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

signs = st.sampled_from([-1.0, 1.0])
numbers = st.one_of(
    st.sampled_from([0.0, 0.5, 1.0, -1.0]),
    st.builds(float.__mul__, signs, st.floats(1e-3, 3.0)),
    st.builds(lambda sign, exponent: sign * 10.0**exponent, signs, st.floats(-300.0, 300.0)),
)


@st.composite
def vectors(draw: Any, n: int) -> np.ndarray:
    pool = draw(st.lists(numbers, min_size=1, max_size=n))
    return np.array(draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n)))
