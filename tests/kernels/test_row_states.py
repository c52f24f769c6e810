"""Rows as states: products and updates are those of dense rows, and X is read where it lies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import pommel.kernels  # noqa: F401 - declares what kernels may call
from pommel._jit import kernel
from pommel.kernels.rows import CSRRows, DenseRows, row_state
from pommel.rows import Rows

N, D = 30, 7


@kernel
def products(rows: Any, vectors: Any, k: int, found: Any) -> None:
    for i in range(found.size):
        found[i] = rows.dot(i, vectors, k)


@kernel
def add_all(rows: Any, c: Any, e: Any, vectors: Any) -> None:
    for i in range(c.size):
        rows.add(i, c[i], e[i], vectors)


def with_indices(X: np.ndarray, dtype: type) -> sp.csr_array:
    found = sp.csr_array(X)
    found.indices, found.indptr = found.indices.astype(dtype), found.indptr.astype(dtype)
    return found


def in_two_halves(X: np.ndarray) -> sp.csr_array:
    """Each entry twice, the last columns first."""
    indices = np.tile(np.repeat(np.arange(D)[::-1], 2), N)
    return sp.csr_array((np.repeat(X[:, ::-1] / 2.0, 2), indices, np.arange(N + 1) * 2 * D), shape=X.shape)


def with_room_behind(X: np.ndarray) -> sp.csr_array:
    """Arrays longer than indptr says, with what is no column at their end."""
    found = sp.csr_array(X)
    data, indices = np.append(found.data, 0.0), np.append(found.indices, D + 1000).astype(np.int32)
    found.data, found.indices = data, indices
    return found


def read_only(X: Any) -> Any:
    for array in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        array.flags.writeable = False
    return X


STORAGE: dict[str, Callable[[np.ndarray], Any]] = {
    "dense": lambda X: X,
    "dense, float32": lambda X: X.astype(np.float32),
    "dense, Fortran order": np.asfortranarray,
    "dense, strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "dense, read-only": lambda X: read_only(X.copy()),
    "csr, int32": lambda X: with_indices(X, np.int32),
    "csr, int64": lambda X: with_indices(X, np.int64),
    "csr, float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "csr, float32, int64": lambda X: with_indices(X.astype(np.float32), np.int64),
    "csr matrix": sp.csr_matrix,
    "csr, unsorted with duplicates": in_two_halves,
    "csr, room behind": with_room_behind,
    "csr, read-only": lambda X: read_only(sp.csr_array(X)),
    "no entries": lambda X: sp.csr_array(X.shape),
}
EXTRA: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale": {"column_scale": np.linspace(0.5, 2.0, D)},
    "constant": {"constant": 0.7},
    "both": {"column_scale": np.linspace(0.5, 2.0, D), "constant": 0.7},
}


def some_rows(rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.5)
    X[[0, 11, N - 1]] = 0.0
    return X


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("extra", EXTRA)
@pytest.mark.parametrize("storage", STORAGE)
def test_rows_are_those_of_x(storage: str, extra: str, width: int, rng: np.random.Generator) -> None:
    rows = Rows(STORAGE[storage](some_rows(rng)), **EXTRA[extra])
    dense = np.array([rows.row(i) for i in range(N)])
    given = [rows.X.data, rows.X.indices, rows.X.indptr] if sp.issparse(rows.X) else [rows.X]
    before = [array.copy() for array in given]
    state = row_state(rows)
    vectors = rng.standard_normal((rows.d, width))
    for k in range(width):
        found = np.empty(N)
        products(state, vectors, k, found)
        np.testing.assert_allclose(found, dense @ vectors[:, k], rtol=1e-13, atol=1e-13)
    c, e = rng.standard_normal((2, N))
    expected = vectors.copy()
    expected[:, 0] += dense.T @ c
    expected[:, 1] += dense.T @ e
    add_all(state, c, e, vectors)
    np.testing.assert_allclose(vectors, expected, rtol=1e-13, atol=1e-13)
    for array, old in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize("storage", [name for name in STORAGE if name != "no entries"])
def test_nothing_is_copied_or_written_to(storage: str, rng: np.random.Generator) -> None:
    rows = Rows(STORAGE[storage](some_rows(rng)), column_scale=np.linspace(0.5, 2.0, D))
    state = row_state(rows)
    names = ("data", "indices", "indptr") if isinstance(state, CSRRows) else ("X",)
    given = [rows.X.data, rows.X.indices, rows.X.indptr] if isinstance(state, CSRRows) else [rows.X]
    for name, array in zip(names, given, strict=True):
        assert np.shares_memory(getattr(state, name), array)
        assert not getattr(state, name).flags.writeable
    assert not state.scale.flags.writeable


def mapped(array: np.ndarray, path: Path) -> np.memmap:
    np.save(path, array)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_memory_map_is_read_where_it_lies(dtype: type, index: type, tmp_path: Path, rng: np.random.Generator) -> None:
    X = some_rows(rng).astype(dtype)
    plain = with_indices(X, index)
    parts = {name: mapped(getattr(plain, name), tmp_path / f"{name}.npy") for name in ("data", "indices", "indptr")}
    sparse = sp.csr_array(plain.shape, dtype=dtype)
    sparse.data, sparse.indices, sparse.indptr = parts["data"], parts["indices"], parts["indptr"]
    state = row_state(Rows(sparse))
    assert isinstance(state, CSRRows)
    for name, part in parts.items():
        assert np.shares_memory(getattr(state, name), part)

    dense = mapped(X, tmp_path / "X.npy")
    assert not dense.flags.writeable
    whole = row_state(Rows(dense))
    assert isinstance(whole, DenseRows)
    assert np.shares_memory(whole.X, dense)

    vectors = rng.standard_normal((D, 2))
    for one in (state, whole):
        found = np.empty(N)
        products(one, vectors, 1, found)
        np.testing.assert_allclose(found, X.astype(np.float64) @ vectors[:, 1], rtol=1e-13, atol=1e-13)
