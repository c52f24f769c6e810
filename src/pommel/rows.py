"""The rows a_i of a linear model: dense or CSR, with an implicit column scale and an implicit constant column.

Problems never touch X; they ask a `Rows` for products and single rows. X is held as it came when it is an array or CSR
matrix of float64 or float32, else converted once; it is never modified, and neither scale nor constant column is ever
written out. All arithmetic is in float64: full passes over float32 values convert a block of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from pommel._validation import check_number, check_unmasked, check_vector
from pommel.kernels.gram import add_outer_products
from pommel.problem import Vector

EXACT_NORM_SIDE = 1000
"""Up to this many rows or columns the spectral norm is taken exactly, from the smaller Gram matrix."""

BLOCK = 2**18
"""Entries of X that are worked on at a time, where that needs a copy of them."""


BLOCK_LINES = 256
"""Rows that a product of blocks takes at a time at least."""

FULL = 0.4
"""Share of stored entries from which BLAS forms a Gram matrix faster than a loop over them. Measured."""


class Rows:
    """The matrix whose row i is a_i = (column_scale * X[i], constant).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Any float or integer type; not copied when it is float64 or float32 already, dense or CSR.
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
        check_unmasked(X, "X")
        if sp.issparse(X):
            _check_structure(X)  # before compiled code converts it
        self.X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
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

    @property
    def density(self) -> float:
        """The share of the entries of X that are stored."""
        return float(self.X.nnz / (self.n * self.X.shape[1])) if sp.issparse(self.X) else 1.0

    def matvec(self, x: Vector) -> Vector:
        """All margins a_i'x."""
        w = x if self.constant is None else x[:-1]
        w = w if self.column_scale is None else self.column_scale * w
        margins = np.concatenate([block @ w for _, block in self._blocks(self._step)])
        return margins if self.constant is None else margins + self.constant * x[-1]

    def absolute_matvec(self, x: Vector) -> Vector:
        """sum_j |a_ij x_j| for every row: the size of what a margin sums up, and its rounding is a share of."""
        sizes = np.abs(x if self.constant is None else x[:-1])
        sizes = sizes if self.column_scale is None else self.column_scale * sizes
        totals = np.concatenate([abs(block) @ sizes for _, block in self._blocks(BLOCK)])
        return totals if self.constant is None else totals + abs(self.constant * x[-1])

    def rmatvec(self, u: Vector) -> Vector:
        """sum_i u_i a_i; for a matrix u of shape (n, k) one such column for each of u's, from one read."""
        total = sum(block.T @ u[some] for some, block in self._blocks(self._step))
        if self.column_scale is not None:
            total = (self.column_scale * total.T).T
        return (
            total if self.constant is None else np.append(total, self.constant * u.sum(axis=0, keepdims=True), axis=0)
        )

    def gram(self, weights: Vector, shift: Vector | None = None) -> Vector:
        """sum_i weights_i (a_i - shift)(a_i - shift)', a d x d matrix, for weights >= 0.

        Of sparse rows only the columns where `shift` is not 0 are written out, a row at a time.
        """
        columns = self.X.shape[1]
        away = np.zeros(self.d) if shift is None else shift.copy()
        if self.constant is not None:
            away[-1] -= self.constant  # of a column of zeros
        is_full = not sp.issparse(self.X) or self.X.nnz >= FULL * self.n * columns
        return self._dense_gram(weights, away) if is_full else self._sparse_gram(weights, away)

    def _dense_gram(self, weights: Vector, away: Vector) -> Vector:
        """sum_i weights_i (a_i - away)(a_i - away)', a_i a row of column_scale * X, by BLAS."""
        columns, gram = self.X.shape[1], np.zeros((self.d, self.d))
        for some, block in self._blocks(max(BLOCK, BLOCK_LINES * columns)):
            kept = np.flatnonzero(weights[some])
            roots = np.sqrt(weights[some][kept, np.newaxis])
            lines = np.empty((kept.size, self.d))
            lines[:, :columns] = block[kept].toarray() if sp.issparse(block) else block[kept]
            lines[:, columns:] = 0.0
            if self.column_scale is not None:
                lines[:, :columns] *= self.column_scale
            lines -= away
            lines *= roots
            gram += lines.T @ lines
        return gram

    def _sparse_gram(self, weights: Vector, away: Vector) -> Vector:
        """The same by a loop over stored entries."""
        X, gram = self.X, np.zeros((self.d, self.d))
        shifted = np.flatnonzero(away)
        factors = np.ones(X.shape[1]) if self.column_scale is None else self.column_scale
        slots = np.full(self.d, -1)
        slots[shifted] = np.arange(shifted.size)
        room = shifted.size + int(np.diff(X.indptr).max(initial=0))
        # Unsigned, so that the kernel need not ask whether an index counts from the end.
        indices, indptr = (array.view(array.dtype.str.replace("i", "u")) for array in (X.indices, X.indptr))
        rows = [array.view() for array in (X.data, indices, indptr, factors, weights)]
        for array in rows:
            array.flags.writeable = False  # X may be a memory map: one type of arguments, one compiled kernel
        values, columns = np.empty(room), np.empty(room, np.uintp)
        add_outer_products(*rows, shifted.astype(np.uintp), away[shifted], slots, values, columns, gram)
        return gram + gram.T

    def packed(self) -> tuple[Rows, Any]:
        """The same rows without columns that hold nothing, and which columns stay: for data with most of them empty.

        They are left as they are where that would spare less than half of the columns.
        """
        columns = self.X.shape[1]
        if not sp.issparse(self.X) or self.constant is not None or 2 * self.X.nnz >= columns:
            return self, slice(None)
        indices = self.X.indices[: self.X.nnz]
        is_used = np.zeros(columns, bool)
        is_used[indices] = True
        is_used[0] |= not indices.size  # one column there must be
        used = np.flatnonzero(is_used)
        place = np.zeros(columns, indices.dtype)
        place[used] = np.arange(used.size)
        X = sp.csr_array((self.X.data[: indices.size], place[indices], self.X.indptr), shape=(self.n, used.size))
        return Rows(X, column_scale=None if self.column_scale is None else self.column_scale[used]), used

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

    def part(self, some: Any) -> Rows:
        """Some of the rows, by their indexes; a copy of them."""
        return Rows(self.X[some], constant=self.constant, column_scale=self.column_scale)

    def squared_columns(self, weights: Vector) -> Vector:
        """sum_i weights_i a_ij^2 for every column j, the diagonal of `gram`."""
        squares = np.zeros(self.X.shape[1])
        for some, block in self._blocks(BLOCK):
            if sp.issparse(block):
                values, columns, lengths = _entries(block)
                squares += np.bincount(columns, np.repeat(weights[some], lengths) * values**2, squares.size)
            else:
                squares += weights[some] @ block**2
        if self.column_scale is not None:
            squares *= self.column_scale**2
        return squares if self.constant is None else np.append(squares, self.constant**2 * weights.sum())

    @cached_property
    def squared_norms(self) -> Vector:
        """|a_i|^2 for every row, without a copy of X."""
        return self._squared_norms(1.0)

    def spectral_norm_bound(self, weights: Vector) -> float:
        """An upper bound of the spectral norm of diag(sqrt(weights)) a; exact when one side of a is small."""
        unit = self._unit()  # squares of entries could overflow, or vanish and leave no bound
        frobenius = float(np.sqrt(weights @ self._squared_norms(unit)))
        if min(self.n, self.d) > EXACT_NORM_SIDE:
            return unit * frobenius
        root = np.sqrt(weights)
        if self.d <= self.n:
            gram = self._gram(root, unit)
        else:  # products with coordinate vectors give the other one without densifying X
            gram = np.array([root * self.matvec(self.rmatvec(root * e) / unit) / unit for e in np.eye(self.n)])
        largest = float(np.linalg.eigvalsh((gram + gram.T) / 2.0)[-1])
        return unit * min(frobenius, float(np.sqrt(max(largest, 0.0))) * (1.0 + 1e-10))

    def _gram(self, root: Vector, unit: float) -> Vector:
        """sum_i (root_i / unit)^2 a_i a_i', from one pass over the rows."""
        columns = self.X.shape[1]
        factors = np.ones(columns) if self.column_scale is None else self.column_scale
        gram = np.zeros((self.d, self.d))
        for some, block in self._blocks(BLOCK):
            if sp.issparse(block):
                values, indices, lengths = _entries(block)
                values = values * factors[indices] / unit * np.repeat(root[some], lengths)
                pointers = np.concatenate([[0], np.cumsum(lengths)])
                part = sp.csr_array((values, indices, pointers), shape=block.shape)
                gram[:columns, :columns] += (part.T @ part).toarray()
            else:
                part = block * factors / unit * root[some, None]
                gram[:columns, :columns] += part.T @ part
            if self.constant is not None:
                last = root[some] * (self.constant / unit)
                gram[:columns, -1] += part.T @ last
                gram[-1, -1] += last @ last
        if self.constant is not None:
            gram[-1, :columns] = gram[:columns, -1]
        return gram

    @np.errstate(over="ignore")  # infinity is the answer then
    def _squared_norms(self, unit: float) -> Vector:
        """|a_i / unit|^2 for every row."""
        factors = (np.ones(self.X.shape[1]) if self.column_scale is None else self.column_scale) / unit
        norms = np.empty(self.n)
        for some, block in self._blocks(BLOCK):
            if sp.issparse(block):
                values, columns, lengths = _entries(block)
                squares = (values * factors[columns]) ** 2
                norms[some] = np.bincount(np.repeat(np.arange(lengths.size), lengths), squares, lengths.size)
            else:
                norms[some] = np.einsum("ij,ij->i", block * factors, block * factors)
        return norms + (0.0 if self.constant is None else (self.constant / unit) ** 2)

    def _unit(self) -> float:
        """A power of two within a factor of two of the largest entry."""
        factors = np.ones(self.X.shape[1]) if self.column_scale is None else self.column_scale
        largest = 0.0
        for _, block in self._blocks(BLOCK):
            values, columns, _ = _entries(block) if sp.issparse(block) else (block, slice(None), None)
            entries = values * factors[columns]
            largest = max(largest, np.abs(entries).max(initial=0.0))
        exponent = np.frexp(max(largest, self.constant or 0.0))[1]
        return float(np.ldexp(1.0, np.clip(exponent, -1022, 1023)))

    @property
    def _step(self) -> float:
        """How many entries a product takes at a time: all of them, if it can take them as they are."""
        return np.inf if self.X.dtype == np.float64 else BLOCK

    def _blocks(self, entries: float) -> Iterator[tuple[slice, Any]]:
        """X as float64, in blocks of rows that have about so many entries."""
        X = self.X
        if not entries < X.size:
            yield slice(0, self.n), X if X.dtype == np.float64 else X.astype(np.float64)
            return
        ends = X.indptr if sp.issparse(X) else X.shape[1] * np.arange(self.n + 1)
        first = 0
        while first < self.n:
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + entries, side="right")) - 1)
            some = slice(first, last)
            if sp.issparse(X):
                stored = slice(X.indptr[first], X.indptr[last])
                data, pointers = (
                    X.data[stored].astype(np.float64, copy=False),
                    X.indptr[first : last + 1] - stored.start,
                )
                block = sp.csr_array((data, X.indices[stored], pointers), shape=(last - first, X.shape[1]))
            else:
                block = X[some].astype(np.float64, copy=False)
            yield some, block
            first = last

    def __repr__(self) -> str:
        kind = "CSR" if sp.issparse(self.X) else "dense"
        return f"Rows({self.n} x {self.d}, {kind})"


def _entries(X: Any) -> tuple[Vector, Any, Any]:
    """Values and columns of the entries of a CSR matrix, and how many each row has; duplicates are added up."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    stored = slice(X.indptr[-1])  # there may be room for more behind these
    return X.data[stored], X.indices[stored], np.diff(X.indptr)


def _check_structure(X: Any) -> None:
    """A sparse matrix whose pointers or indices lie outside its arrays would be read out of bounds, or crash."""
    malformed = f"X is a malformed {X.format.upper()} matrix"
    if X.format == "coo":
        for axis, (indices, size) in enumerate(zip(X.coords, X.shape, strict=True)):
            _check_indices(f"{malformed}: indices of axis {axis}", indices, size)
    elif X.format in ("csr", "csc", "bsr") and X.ndim == 2:
        block = X.blocksize if X.format == "bsr" else (1, 1)
        lines, size = np.floor_divide(X.shape, block)[:: -1 if X.format == "csc" else 1]
        pointers, stored = X.indptr, X.indices.size
        fits = pointers.size == lines + 1 and pointers[-1] <= stored and X.data.size == stored * block[0] * block[1]
        if not fits or pointers[0] != 0 or np.any(pointers[1:] < pointers[:-1]):
            raise ValueError(
                f"{malformed}: indptr must have {lines + 1} entries, start at 0, never fall, and end within indices "
                "and data, which are of the same length"
            )
        _check_indices(
            f"{malformed}: {'row' if X.format == 'csc' else 'column'} indices", X.indices[: pointers[-1]], size
        )
    elif X.format == "lil":
        lengths = [[len(line) for line in lists] for lists in (X.rows, X.data)]
        if lengths[0] != lengths[1] or len(lengths[0]) != X.shape[0]:
            raise ValueError(f"{malformed}: each of its {X.shape[0]} rows must have as many values as column indices")
    elif X.format == "dia" and X.offsets.shape != X.data.shape[:1]:
        raise ValueError(f"{malformed}: {X.offsets.size} offsets for {len(X.data)} diagonals")


def _check_indices(name: str, indices: Any, size: int) -> None:
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        raise ValueError(f"{name} run from {indices.min()} to {indices.max()}, not within 0 to {size - 1}")
