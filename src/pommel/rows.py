"""The rows a_i of a linear model: dense or CSR, with an implicit column scale and an implicit constant column.

Problems never touch X; they ask a `Rows` for products and single rows. X is held as it came when it is a float64 array
or CSR matrix, else converted once; it is never modified, and neither scale nor constant column is ever written out.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from pommel._validation import check_number, check_vector
from pommel.problem import Vector

EXACT_NORM_SIDE = 1000
"""Up to this many rows or columns the spectral norm is taken exactly, from the smaller Gram matrix."""


class Rows:
    """The matrix whose row i is a_i = (column_scale * X[i], constant).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Any float or integer type; not copied when it is float64 already, dense or CSR.
    constant : float, optional
        Value of an extra, last column, which gives a linear model a (penalised) intercept.
    column_scale : array-like of shape (d,), optional
        Positive factors of the columns of X.

    Examples
    --------
    >>> rows = Rows([[1.0, 2.0], [3.0, 4.0]], constant=1.0)
    >>> rows.matvec(np.array([1.0, 0.0, 10.0]))
    array([11., 13.])
    """

    def __init__(self, X: Any, *, constant: float | None = None, column_scale: ArrayLike | None = None) -> None:
        self.X = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
        if sp.issparse(self.X):
            _check_structure(self.X)
        self.n, columns = self.X.shape
        self.constant = None if constant is None else check_number(constant, "constant")
        self.column_scale = None
        if column_scale is not None:
            self.column_scale = check_vector(column_scale, columns, "column_scale")
            if self.column_scale.min() <= 0.0:
                raise ValueError(f"column_scale must be > 0, column {int(self.column_scale.argmin())} is not")
        self.d = columns + (self.constant is not None)

    def matvec(self, x: Vector) -> Vector:
        """All margins a_i'x."""
        w = x if self.constant is None else x[:-1]
        margins = self.X @ (w if self.column_scale is None else self.column_scale * w)
        return margins if self.constant is None else margins + self.constant * x[-1]

    def rmatvec(self, u: Vector) -> Vector:
        """sum_i u_i a_i."""
        total = self.X.T @ u
        if self.column_scale is not None:
            total = self.column_scale * total
        return total if self.constant is None else np.append(total, self.constant * u.sum())

    def row(self, i: int) -> Vector:
        """a_i as a dense vector."""
        row = np.empty(self.d)
        w = row if self.constant is None else row[:-1]
        if sp.issparse(self.X):
            w[:] = 0.0
            entries = slice(self.X.indptr[i], self.X.indptr[i + 1])
            np.add.at(w, self.X.indices[entries], self.X.data[entries])  # adds up duplicate entries, as X @ x does
        else:
            w[:] = self.X[i]
        if self.column_scale is not None:
            w *= self.column_scale
        if self.constant is not None:
            row[-1] = self.constant
        return row

    @cached_property
    def squared_norms(self) -> Vector:
        """|a_i|^2 for every row, without a copy of X."""
        scale = np.ones(self.X.shape[1]) if self.column_scale is None else self.column_scale
        if not sp.issparse(self.X):
            norms = np.einsum("ij,ij,j->i", self.X, self.X, scale**2)
        elif self.X.has_canonical_format:
            squares = (self.X.data * scale[self.X.indices]) ** 2
            norms = np.add.reduceat(np.append(squares, 0.0), self.X.indptr[:-1]) * (np.diff(self.X.indptr) > 0)
        else:  # duplicate entries add up before they are squared
            norms = np.array([float(row @ row) for row in map(self._row_of_X, range(self.n))])
        return norms + (0.0 if self.constant is None else self.constant**2)

    def spectral_norm_bound(self, weights: Vector) -> float:
        """An upper bound of the spectral norm of diag(sqrt(weights)) a; exact when one side of a is small."""
        frobenius = float(np.sqrt(weights @ self.squared_norms))
        if min(self.n, self.d) > EXACT_NORM_SIDE:
            return frobenius
        # Products with the coordinate vectors of the smaller side give that Gram matrix without densifying X.
        if self.d <= self.n:
            columns = (self.rmatvec(weights * self.matvec(e)) for e in np.eye(self.d))
        else:
            root = np.sqrt(weights)
            columns = (root * self.matvec(self.rmatvec(root * e)) for e in np.eye(self.n))
        gram = np.array(list(columns))
        largest = float(np.linalg.eigvalsh((gram + gram.T) / 2.0)[-1])
        return min(frobenius, float(np.sqrt(max(largest, 0.0))) * (1.0 + 1e-10))

    def _row_of_X(self, i: int) -> Vector:
        row = self.row(i)
        return row if self.constant is None else row[:-1]

    def __repr__(self) -> str:
        kind = "CSR" if sp.issparse(self.X) else "dense"
        return f"Rows({self.n} x {self.d}, {kind})"


def _check_structure(X: Any) -> None:
    """A CSR matrix whose pointers or indices lie outside its arrays would be read out of bounds, or crash."""
    pointers, indices = X.indptr, X.indices
    if pointers[0] != 0 or np.any(np.diff(pointers) < 0) or pointers[-1] > min(indices.size, X.data.size):
        raise ValueError("X is a malformed CSR matrix: indptr must start at 0, never fall, and end within the data")
    stored = indices[: pointers[-1]]
    if stored.size and not (stored.min() >= 0 and stored.max() < X.shape[1]):
        raise ValueError(
            f"X is a malformed CSR matrix: column indices run from {stored.min()} to {stored.max()}, "
            f"X has {X.shape[1]} columns"
        )
