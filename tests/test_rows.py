"""Rows against the matrix written out: any storage, implicit scale and constant, extreme units, malformed input."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pommel.rows
from pommel.rows import Rows

SPARSE = (sp.csr_array, sp.csc_array, sp.coo_array, sp.bsr_array, sp.dia_array, sp.lil_array, sp.dok_array)
FORMATS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": np.ndarray.tolist,
    "dense": np.array,
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
    "csr_matrix": sp.csr_matrix,
    "csr-64": lambda X: with_parts(sp.csr_array(X), indices=np.int64, indptr=np.int64),
    **{kind.__name__: kind for kind in SPARSE},
}
DTYPES = (bool, np.int8, np.uint16, np.int64, np.float32, np.float64)


def with_parts(X: Any, **parts: Any) -> Any:
    """The same sparse matrix with some of its arrays exchanged, behind the back of its constructor's checks."""
    X = X.copy()
    for name, part in parts.items():
        setattr(X, name, getattr(X, name).astype(part) if isinstance(part, type) else np.asarray(part))
    return X


def written_out(X: Any, constant: float | None = None, column_scale: Any = None) -> np.ndarray:
    X = X.toarray() if sp.issparse(X) else X
    X = np.asarray(X, dtype=float)
    full = X if column_scale is None else X * np.asarray(column_scale)
    return full if constant is None else np.column_stack([full, np.full(len(full), constant)])


def agree(rows: Rows, A: np.ndarray, rng: np.random.Generator, weights: np.ndarray | None = None) -> None:
    """Every answer of `rows` is that of the matrix A."""
    assert (rows.n, rows.d) == A.shape
    x, u = rng.standard_normal(rows.d), rng.standard_normal(rows.n)
    largest = np.abs(A).max() or 1.0
    np.testing.assert_allclose(rows.matvec(x), A @ x, rtol=1e-12, atol=1e-13 * largest)
    np.testing.assert_allclose(rows.rmatvec(u), A.T @ u, rtol=1e-12, atol=1e-13 * largest)
    np.testing.assert_allclose([rows.row(i) for i in range(rows.n)], A, rtol=1e-14)
    np.testing.assert_allclose(rows.squared_norms, (A**2).sum(axis=1), rtol=1e-13)
    weights = rng.exponential(size=rows.n) if weights is None else weights
    for shift in (None, np.where(rng.random(rows.d) < 0.5, largest * rng.standard_normal(rows.d), 0.0)):
        away = A if shift is None else A - shift
        gram = rows.gram(weights, shift)
        np.testing.assert_allclose(gram, away.T @ (weights[:, np.newaxis] * away), rtol=1e-12, atol=1e-13 * largest**2)
        np.testing.assert_array_equal(gram, gram.T)
    norm = np.linalg.norm(np.sqrt(weights)[:, np.newaxis] * A, 2)
    assert norm * (1.0 - 1e-12) <= rows.spectral_norm_bound(weights) <= norm * (1.0 + 1e-7)


def contents(X: Any) -> dict[str, Any]:
    """All that a user could see change in a matrix."""
    if not sp.issparse(X):
        return {"values": X} if isinstance(X, list) else {"values": X.tolist(), "dtype": X.dtype}
    parts = {name: part.tolist() for name, part in vars(X).items() if isinstance(part, np.ndarray)}
    return parts | {"format": X.format, "shape": X.shape, "dtype": X.dtype}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("storage", FORMATS.values(), ids=FORMATS)
def test_storage_does_not_matter(storage: Any, dtype: Any, rng: np.random.Generator) -> None:
    X = storage(rng.integers(0, 3, (6, 4)).astype(dtype))
    before = deepcopy(contents(X))
    agree(Rows(X), written_out(X), rng)
    agree(Rows(X, constant=0.5, column_scale=[0.1, 1.0, 2.0, 30.0]), written_out(X, 0.5, [0.1, 1.0, 2.0, 30.0]), rng)
    assert contents(X) == before


@pytest.mark.parametrize("copies", [1, 3], ids=["unsorted", "duplicates"])
@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_array, sp.coo_array, sp.bsr_array])
def test_entries_may_be_unsorted_and_come_in_parts(storage: Any, copies: int, rng: np.random.Generator) -> None:
    """Parts of an entry add up, and cancel now and then; X is left as it is."""
    n, d, stored = 7, 4, 15
    i, j = np.divmod(np.repeat(rng.permutation(n * d)[:stored], copies), d)
    order = rng.permutation(i.size)
    i, j = i[order], j[order]
    values = rng.integers(-2, 3, i.size).astype(float)
    if storage is sp.coo_array:
        X = sp.coo_array((values, (i, j)), shape=(n, d))
    else:
        lines, others, size = (j, i, d) if storage is sp.csc_array else (i, j, n)
        by_line = np.argsort(lines, kind="stable")
        pointers = np.concatenate([[0], np.cumsum(np.bincount(lines, minlength=size))])
        data = values[by_line, np.newaxis, np.newaxis] if storage is sp.bsr_array else values[by_line]
        X = storage((data, others[by_line], pointers), shape=(n, d))
    A, before = np.zeros((n, d)), deepcopy(contents(X))
    np.add.at(A, (i, j), values)
    agree(Rows(X, constant=2.0), written_out(A, 2.0), rng)
    assert contents(X) == before


def test_explicit_zeros_and_empty_rows(rng: np.random.Generator) -> None:
    """The first and the last row are empty, a row and a column hold only a stored zero."""
    X = sp.csr_array(([1.0, 0.0, 2.0, 0.0], [0, 2, 1, 2], [0, 0, 2, 2, 3, 4, 4]), shape=(6, 3))
    agree(Rows(X), written_out(X), rng)
    agree(Rows(X, constant=1.0), written_out(X, 1.0), rng)
    nothing = Rows(sp.csr_array((2, 3)))
    agree(nothing, np.zeros((2, 3)), rng)


def test_room_behind_the_entries_is_ignored(rng: np.random.Generator) -> None:
    """Arrays longer than the last pointer says are valid, and what lies there may be anything finite."""
    tidy = sp.csr_array(rng.integers(0, 2, (5, 3)).astype(float))
    roomy = with_parts(tidy, data=[*tidy.data, 9.0, 9.0], indices=[*tidy.indices, 0, 99])
    for X in (roomy, with_parts(roomy, data=np.float32), sp.csr_matrix(roomy)):
        agree(Rows(X), tidy.toarray(), rng)
    doubled = with_parts(roomy, data=[1.0, 2.0, 9.0], indices=[1, 1, 99], indptr=[0, 2, 2, 2, 2, 2])
    agree(Rows(doubled), np.pad([[0.0, 3.0, 0.0]], ((0, 4), (0, 0))), rng)


ENTRIES = st.one_of(st.just(0.0), st.floats(-1e3, 1e3, allow_subnormal=False).filter(lambda a: abs(a) > 1e-3))


@given(
    X=hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=ENTRIES),
    storage=st.sampled_from([np.array, *SPARSE]),
    constant=st.none() | st.floats(1e-3, 1e3),
    data=st.data(),
)
def test_constant_column_and_scale_are_as_if_written_out(X: Any, storage: Any, constant: Any, data: Any) -> None:
    scale = data.draw(st.none() | hnp.arrays(float, X.shape[1], elements=st.floats(1e-2, 1e2)))
    weights = data.draw(hnp.arrays(float, X.shape[0], elements=st.floats(0.0, 10.0, allow_subnormal=False)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    agree(Rows(storage(X), constant=constant, column_scale=scale), written_out(X, constant, scale), rng, weights)


def test_dense_norms_are_taken_in_blocks(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pommel.rows, "BLOCK", 10)
    X = rng.standard_normal((11, 4))
    agree(Rows(X, constant=1.0), written_out(X, 1.0), rng)


@pytest.mark.parametrize("shape", [(30, 4), (4, 30)], ids=["tall", "wide"])
def test_spectral_norm_of_a_large_matrix_is_bounded(
    shape: tuple[int, int], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exact as long as one side is short, the Frobenius norm beyond."""
    X, weights = rng.standard_normal(shape), rng.exponential(size=shape[0])
    weighted = np.sqrt(weights)[:, np.newaxis] * X
    assert Rows(X).spectral_norm_bound(weights) == pytest.approx(np.linalg.norm(weighted, 2), rel=1e-9)
    monkeypatch.setattr(pommel.rows, "EXACT_NORM_SIDE", 3)
    assert Rows(X).spectral_norm_bound(weights) == pytest.approx(np.linalg.norm(weighted), rel=1e-12)


@pytest.mark.parametrize("storage", [np.array, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("constant", [None, 2.0], ids=["", "constant"])
def test_spectral_norm_of_a_tall_matrix_takes_one_pass(
    constant: float | None, storage: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Besides those for the largest entry and the lengths of rows, by blocks of them; no products with vectors."""
    X, weights, scale = rng.standard_normal((30, 4)), rng.exponential(size=30), np.array([1e-3, 1.0, 5.0, 20.0])
    monkeypatch.setattr(pommel.rows, "BLOCK", 10)
    rows, blocks = Rows(storage(X), constant=constant, column_scale=scale), []
    original = rows._blocks
    monkeypatch.setattr(
        rows, "_blocks", lambda entries: (blocks.append(some) or (some, b) for some, b in original(entries))
    )
    bound = rows.spectral_norm_bound(weights)
    assert len(blocks) == 3 * 15  # two rows in each
    weighted = np.sqrt(weights)[:, np.newaxis] * written_out(X, constant, scale)
    assert bound == pytest.approx(np.linalg.norm(weighted, 2), rel=1e-9)


@pytest.mark.parametrize("storage", [np.array, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(
    "unit",
    [2.0**665, -(2.0**665), 2.0**-665, -(2.0**-1030), 2.0**1018],
    ids=["1e200", "-1e200", "1e-200", "-1e-310", "3e306"],
)
def test_extreme_units(unit: float, storage: Any, rng: np.random.Generator) -> None:
    """Squares overflow or vanish; margins, and the bound of the spectral norm, do not."""
    X, x = rng.integers(1, 4, (5, 3)).astype(float), rng.integers(-2, 3, 3).astype(float)
    rows = Rows(storage(unit * X))
    np.testing.assert_array_equal(rows.matvec(x), unit * (X @ x))  # a power of two leaves no rounding
    np.testing.assert_array_equal(rows.squared_norms, np.full(5, np.inf if abs(unit) > 1.0 else 0.0))
    norm = np.linalg.norm(X, 2)
    for some in (rows, Rows(storage(unit * X.T))):
        bound = some.spectral_norm_bound(np.ones(some.n)) / abs(unit)
        assert norm * (1.0 - 1e-9) <= bound <= norm * (1.0 + 1e-9)


@pytest.mark.parametrize("storage", [np.array, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_column_scale_undoes_extreme_units(unit: float, storage: Any, rng: np.random.Generator) -> None:
    X = rng.integers(1, 4, (5, 3)).astype(float)
    agree(Rows(storage(unit * X), constant=1.0, column_scale=np.full(3, 1.0 / unit)), written_out(X, 1.0), rng)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_float_csr_is_neither_copied_nor_written_to(kind: Any, dtype: Any, rng: np.random.Generator) -> None:
    X = kind(rng.integers(0, 2, (5, 3)).astype(dtype))
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    rows = Rows(X, constant=1.0, column_scale=[1.0, 2.0, 3.0])
    for name in ("data", "indices", "indptr"):
        assert np.shares_memory(getattr(rows.X, name), getattr(X, name))
    agree(rows, written_out(X, 1.0, [1.0, 2.0, 3.0]), rng)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_float_array_is_neither_copied_nor_written_to(order: Any, dtype: Any, rng: np.random.Generator) -> None:
    X = np.array(rng.standard_normal((5, 3)), order=order, dtype=dtype)
    X.flags.writeable = False
    rows = Rows(X, constant=1.0, column_scale=[1.0, 2.0, 3.0])
    assert np.shares_memory(rows.X, X)
    agree(rows, written_out(X, 1.0, [1.0, 2.0, 3.0]), rng)


def test_column_scale_is_the_callers_to_change(rng: np.random.Generator) -> None:
    X, scale = rng.standard_normal((5, 2)), np.array([1.0, 2.0])
    rows = Rows(X, column_scale=scale)
    scale[:] = -1.0
    agree(rows, written_out(X, None, [1.0, 2.0]), rng)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((0, 3)), "0 sample(s)"),
        (np.ones((3, 0)), "0 feature(s)"),
        (sp.csr_array((0, 3)), "0 sample(s)"),
        (sp.csc_array((3, 0)), "0 feature(s)"),
        (np.ones(3), "Expected 2D array, got 1D array"),
        (sp.csr_array(np.ones(3)), "Expected 2D"),
        (np.ones((2, 2, 2)), "dim 3"),
        (np.array([[1.0, np.nan]]), "Input X contains NaN"),
        (np.array([[1.0, -np.inf]], dtype=np.float32), "Input X contains infinity"),
        (sp.csr_array([[1.0, np.nan]]), "Input X contains NaN"),
        (sp.coo_array([[1.0, np.inf]]), "Input X contains infinity"),
        (np.array([[1j]]), "Complex data not supported"),
        ([["a"]], "could not convert string to float"),
    ],
    ids=str,
)
def test_what_is_no_matrix_of_finite_numbers_is_refused(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Rows(X)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"constant": 0.0}, ValueError, "constant must be a finite number > 0, got 0.0"),
        ({"constant": np.nan}, ValueError, "constant must be a finite number > 0, got nan"),
        ({"constant": True}, TypeError, "constant must be a number > 0, got True"),
        ({"column_scale": [1.0]}, ValueError, "column_scale must have shape (2,), got (1,)"),
        ({"column_scale": [1.0, 0.0]}, ValueError, "column_scale must be > 0, column 1 is not"),
        ({"column_scale": [np.inf, 1.0]}, ValueError, "column_scale has 1 entries that are NaN or infinite"),
    ],
    ids=str,
)
def test_wrong_options_are_named(options: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        Rows(np.ones((3, 2)), **options)


def lil(**lists: list[list[float]]) -> sp.lil_array:
    """The 3 x 3 identity with other lists of columns (`rows`) or values (`data`)."""
    X = sp.lil_array(np.eye(3))
    for name, value in lists.items():
        getattr(X, name)[:] = value
    return X


CSR, CSC = sp.csr_array(np.eye(3)), sp.csc_array(np.eye(3))
BSR = sp.bsr_array(np.eye(4), blocksize=(2, 2))
POINTERS = "indptr must have 4 entries, start at 0, never fall, and end within indices and data"
MALFORMED = [
    ("CSR pointers fall", with_parts(CSR, indptr=[0, 2, 1, 3]), POINTERS),
    ("CSR pointers fall below 0", with_parts(CSR, indptr=[0, -5, 2, 3]), POINTERS),
    ("CSR pointers start late", with_parts(CSR, indptr=[1, 1, 2, 3]), POINTERS),
    ("CSR pointers start below 0", with_parts(CSR, indptr=[-1, 1, 2, 3]), POINTERS),
    ("CSR one pointer short", with_parts(CSR, indptr=[0, 1, 3]), POINTERS),
    ("CSR one pointer too many", with_parts(CSR, indptr=[0, 1, 2, 3, 3]), POINTERS),
    ("CSR no pointers", with_parts(CSR, indptr=np.zeros(0, int)), POINTERS),
    ("CSR data short", with_parts(CSR, data=[1.0, 1.0]), POINTERS),
    ("CSR indices short", with_parts(CSR, indices=[0, 1]), POINTERS),
    ("CSR data long", with_parts(CSR, data=np.ones(4)), POINTERS),
    ("CSR data of two dimensions", with_parts(CSR, data=np.ones((3, 2))), POINTERS),
    ("CSR pointers far out", with_parts(CSR, indptr=[0, 1, 2, 2**31 - 1]), POINTERS),
    ("CSR float32, data short", with_parts(CSR, data=np.ones(2, np.float32)), POINTERS),
    ("CSR index too large", with_parts(CSR, indices=[0, 1, 3]), "column indices run from 0 to 3, not within 0 to 2"),
    ("CSR index far out", with_parts(CSR, indices=[0, 1, 2**31 - 1]), "column indices run from 0 to 2147483647"),
    ("CSR index negative", with_parts(CSR, indices=[0, -1, 2]), "column indices run from -1 to 2, not within 0 to 2"),
    ("CSC pointers fall", with_parts(CSC, indptr=[0, 9, 2, 3]), POINTERS),
    ("CSC data short", with_parts(CSC, data=[1.0]), POINTERS),
    ("CSC index too large", with_parts(CSC, indices=[0, 1, 30000]), "row indices run from 0 to 30000"),
    ("CSC index negative", with_parts(CSC, indices=[-30000, 1, 2]), "row indices run from -30000 to 2"),
    ("BSR index too large", with_parts(BSR, indices=[0, 2]), "column indices run from 0 to 2, not within 0 to 1"),
    ("BSR data short", with_parts(BSR, data=BSR.data[:1]), "indptr must have 3 entries"),
    ("COO index too large", with_parts(sp.coo_array(CSR), row=[0, 1, 3]), "axis 0 run from 0 to 3, not within 0 to 2"),
    ("COO index negative", with_parts(sp.coo_array(CSR), col=[0, -4, 2]), "axis 1 run from -4 to 2, not within 0 to 2"),
    ("COO data short", with_parts(sp.coo_array(CSR), data=[1.0]), "must have the same length"),
    ("LIL index too large", lil(rows=[[0], [3], [1]]), "column indices run from 0 to 3, not within 0 to 2"),
    ("LIL data short", lil(rows=[[0], [0, 1, 2], [1]]), "as many values as column indices"),
    ("LIL data long", lil(data=[[1.0], [1.0] * 9, [1.0]]), "as many values as column indices"),
    ("DIA offsets long", with_parts(sp.dia_array(CSR), offsets=np.arange(99)), "99 offsets for 1 diagonals"),
]


@pytest.mark.parametrize(("X", "message"), [case[1:] for case in MALFORMED], ids=[case[0] for case in MALFORMED])
def test_malformed_sparse_matrices_are_refused(X: Any, message: str) -> None:
    """Compiled code would read and write out of bounds: wrong numbers at best."""
    with pytest.raises(ValueError, match=re.escape(message)):
        Rows(X)


def test_repr_tells_shape_and_storage() -> None:
    assert repr(Rows(np.ones((3, 2)), constant=1.0)) == "Rows(3 x 3, dense)"
    assert repr(Rows(sp.coo_array(np.ones((3, 2))))) == "Rows(3 x 2, CSR)"


@pytest.mark.parametrize("storage", [np.array, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("block", [1, 7, 10**6])
def test_passes_in_blocks_are_whole_passes(
    block: int, dtype: Any, storage: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pommel.rows, "BLOCK", block)
    X = (rng.standard_normal((20, 4)) * (rng.random((20, 4)) < 0.5)).astype(dtype)
    X[3:6] = 0.0
    scale = [1.0, 2.0, 3.0, 0.5]
    agree(Rows(storage(X), constant=1.0, column_scale=scale), written_out(X, 1.0, scale), rng)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("full", [0.0, 2.0], ids=["by BLAS", "by a loop"])
def test_a_shifted_gram_matrix_keeps_its_digits(
    full: float, storage: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Features near 1e6, of which the squares keep but four digits, in rows of which some weigh nothing."""
    monkeypatch.setattr(pommel.rows, "FULL", full)
    A = rng.standard_normal((200, 5)) + np.array([0.0, 1e6, 0.0, 0.0, -1e6])
    A[:, 2:4] *= rng.random((200, 2)) < 0.3
    weights = rng.exponential(size=200) * (rng.random(200) < 0.7)
    shift = (weights @ A / weights.sum()) * [0.0, 1.0, 0.0, 0.0, 1.0]
    gram = Rows(storage(A), constant=3.0).gram(weights, np.append(shift, 3.0))
    away = A - shift
    np.testing.assert_allclose(gram[:5, :5], away.T @ (weights[:, np.newaxis] * away), rtol=1e-10, atol=1e-12)
    assert not gram[5].any() and not gram[:, 5].any()


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_several_columns_are_multiplied_in_one_pass(storage: Any, dtype: Any, rng: np.random.Generator) -> None:
    X, u = rng.standard_normal((30, 4)).astype(dtype), rng.standard_normal((30, 3))
    rows = Rows(storage(X), constant=2.0, column_scale=[1.0, 2.0, 3.0, 4.0])
    one_by_one = np.stack([rows.rmatvec(column) for column in u.T], axis=1)
    np.testing.assert_allclose(rows.rmatvec(u), one_by_one, rtol=1e-12, atol=1e-12)
