"""Rows of X as states: dense and CSR, with column scale and constant column as in `pommel.rows.Rows`.

Vectors that go with them are stored as rows (z_j, q_j, ...), so that a step touches one place in memory for each
non-zero. Duplicate and unsorted entries are fine: a product adds them up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from pommel._jit import prefetch, state
from pommel.rows import Rows

LINE = 64
"""Bytes of a cache line."""


@state
class CSRRows(NamedTuple):
    """Row i has the entries data[k] in columns indices[k], indptr[i] <= k < indptr[i + 1]."""

    data: Any
    indices: Any
    indptr: Any
    scale: Any  # of the columns, or empty
    constant: float  # in a last column of its own, or 0

    def expect(self, i):
        prefetch(self.indptr, np.intp(i))

    def fetch(self, i):
        first, last = np.intp(self.indptr[i]), np.intp(self.indptr[i + 1])
        prefetch(self.indices, first)
        prefetch(self.indices, last - 1)
        prefetch(self.data, first)
        prefetch(self.data, last - 1)
        # Loops that mostly make no round: how often one goes round is hard to foresee, and dear where it was not.
        for entry in range(first + LINE // 8, last - LINE // 8, LINE // 8):
            prefetch(self.data, entry)
        for entry in range(first + LINE // 4, last - LINE // 4, LINE // 4):
            prefetch(self.indices, entry)

    def fetch_columns(self, i, vectors):
        for entry in range(self.indptr[i], self.indptr[i + 1]):
            prefetch(vectors, np.intp(self.indices[entry]) * vectors.shape[1])

    def dot(self, i, vectors, k):
        total = 0.0
        if self.scale.size == 0:
            for entry in range(self.indptr[i], self.indptr[i + 1]):
                total += self.data[entry] * vectors[self.indices[entry], k]
        else:
            for entry in range(self.indptr[i], self.indptr[i + 1]):
                j = self.indices[entry]
                total += self.data[entry] * self.scale[j] * vectors[j, k]
        if self.constant != 0.0:
            total += self.constant * vectors[-1, k]
        return total

    def add(self, i, c, e, vectors):
        for entry in range(self.indptr[i], self.indptr[i + 1]):
            j = self.indices[entry]
            a = self.data[entry] * (self.scale[j] if self.scale.size else 1.0)
            vectors[j, 0] += c * a
            vectors[j, 1] += e * a
        if self.constant != 0.0:
            vectors[-1, 0] += c * self.constant
            vectors[-1, 1] += e * self.constant

    def axpy(self, i, c, vectors):
        for entry in range(self.indptr[i], self.indptr[i + 1]):
            j = self.indices[entry]
            vectors[j, 0] += c * (self.data[entry] * (self.scale[j] if self.scale.size else 1.0))
        if self.constant != 0.0:
            vectors[-1, 0] += c * self.constant


@state
class DenseRows(NamedTuple):
    """Row i is X[i]."""

    X: Any
    scale: Any
    constant: float

    def expect(self, i):
        pass

    def fetch(self, i):
        prefetch(self.X, np.intp(i) * self.X.shape[1])  # the processor foresees the rest of a row

    def fetch_columns(self, i, vectors):
        pass

    def dot(self, i, vectors, k):
        total = 0.0
        if self.scale.size == 0:
            for j in range(self.X.shape[1]):
                total += self.X[i, j] * vectors[j, k]
        else:
            for j in range(self.X.shape[1]):
                total += self.X[i, j] * self.scale[j] * vectors[j, k]
        if self.constant != 0.0:
            total += self.constant * vectors[-1, k]
        return total

    def add(self, i, c, e, vectors):
        for j in range(self.X.shape[1]):
            a = self.X[i, j] * (self.scale[j] if self.scale.size else 1.0)
            vectors[j, 0] += c * a
            vectors[j, 1] += e * a
        if self.constant != 0.0:
            vectors[-1, 0] += c * self.constant
            vectors[-1, 1] += e * self.constant

    def axpy(self, i, c, vectors):
        for j in range(self.X.shape[1]):
            vectors[j, 0] += c * (self.X[i, j] * (self.scale[j] if self.scale.size else 1.0))
        if self.constant != 0.0:
            vectors[-1, 0] += c * self.constant


def row_state(rows: Rows) -> CSRRows | DenseRows:
    """The rows of a problem. Its arrays are views that cannot be written to: X may be a read-only memory map."""
    scale = np.ones(0) if rows.column_scale is None else rows.column_scale
    constant = 0.0 if rows.constant is None else rows.constant
    if sp.issparse(rows.X):
        indices, indptr = (array.view(array.dtype.str.replace("i", "u")) for array in (rows.X.indices, rows.X.indptr))
        return CSRRows(*map(_read_only, (rows.X.data, indices, indptr, scale)), constant)
    return DenseRows(_read_only(rows.X), _read_only(scale), constant)


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view
