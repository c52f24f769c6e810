"""What kernels may call on states: rows, sampling, models, primal and dual variables.

A step rule is written in these words alone and so names no loss, divergence, regularizer or set.
"""

from __future__ import annotations

from typing import Any

from pommel._jit import protocol


@protocol
class Rows:
    """The rows a_i. Vectors that go with them are stored as rows (z_j, q_j, ...), one for each column."""

    def expect(self, i: int) -> None: ...  # the row's place will be read soon: see `look_ahead.py`
    def fetch(self, i: int) -> None: ...  # so will its entries
    def fetch_columns(self, i: int, vectors: Any) -> None: ...  # and the places of vectors they belong to
    def dot(self, i: int, vectors: Any, k: int) -> float: ...  # a_i' times the k-th vector
    def add(self, i: int, c: float, e: float, vectors: Any) -> None: ...  # z += c a_i, q += e a_i
    def axpy(self, i: int, c: float, vectors: Any) -> None: ...  # z += c a_i


@protocol
class Sampling:
    """How rows are drawn."""

    def draw(self, u: float, y: Any) -> int: ...  # u in [0, 1) -> row
    def importance(self, i: int, y: Any) -> float: ...  # 1 / q_i, q_i the probability of that row
    def foresees(self) -> bool: ...  # whether rows are known before y is
    def foresee(self, u: float) -> int: ...  # that row


@protocol
class Model:
    """Where the sampled gradients at (x, y) come from."""

    def expect(self, i: int) -> None: ...

    def sample(self, i: int, importance: float, margin: float, x: Any, y: Any) -> tuple[float, float, int, float]:
        """(slope, ascent, j, t_slope) for a row of probability 1 / importance.

        grad_w = slope a_i, grad_t_j = t_slope, and `ascent` is what the dual variable makes grad_y of.
        """
        ...


@protocol
class Primal:
    """x = (w, t): w goes with the columns of the rows, t are few plain coordinates."""

    def expect(self, i: int) -> None: ...
    def margin(self, rows: Any, i: int) -> float: ...  # a_i'w
    def count(self) -> None: ...  # adds x to the running sum
    def descend(self, rows: Any, i: int, slope: float, j: int, t_slope: float) -> bool: ...  # False if not finite
    def project(self) -> None: ...


@protocol
class Dual:
    """y."""

    def expect(self, i: int) -> None: ...
    def weight(self, i: int) -> float: ...  # y_i, or y itself where there is one dual variable
    def ascend(self, i: int, importance: float, ascent: float) -> bool: ...  # False: refused, nothing is changed


@protocol
class Weights:
    """Relative weights r_i = y_i / y0_i >= 0 of the rows, with mean 1 under y0."""

    def expect(self, i: int) -> None: ...
    def value(self, i: int) -> float: ...  # r_i
    def move(self, i: int, c: float, delta: float) -> None: ...  # r <- projection of c r + delta e_i
    def store(self, r: Any) -> None: ...  # writes all r_i into an array


@protocol
class DrawableWeights:
    """Relative weights that rows can be drawn by."""

    def draw(self, u: float, gamma: float) -> int: ...  # i ~ gamma y + (1 - gamma) y0
