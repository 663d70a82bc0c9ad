"""Every view gives the same answers, without copies of float input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from separatrix.data import memory
from separatrix.data.memory import ChosenRows, CsrView, view_of, with_kept_blocks
from separatrix.models._labels import encode_labels

RNG = np.random.default_rng(0)
X = RNG.integers(-4, 5, size=(57, 6)).astype(float)
X[RNG.random(X.shape) < 0.5] = 0
W, R, S = RNG.standard_normal((3, 6)), RNG.standard_normal((57, 2)), RNG.random(57)


def wide(A):
    A = sparse.csr_array(A)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


VIEWS = {
    "C": X,
    "Fortran": np.asfortranarray(X),
    "strided": np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
    "float32": X.astype(np.float32),
    "int8": X.astype(np.int8),
    "int64": X.astype(np.int64),
    "big-endian": X.astype(">f8"),
    "csr": sparse.csr_array(X),
    "csr matrix float32": sparse.csr_matrix(X.astype(np.float32)),
    "csr 64-bit": wide(X),
    "csr int": sparse.csr_array(X.astype(np.int32)),
}


@pytest.fixture(params=[1 << 20, 500])
def block_bytes(request, monkeypatch):
    monkeypatch.setattr("separatrix.data.memory.BLOCK_BYTES", request.param)
    return request.param


@pytest.mark.parametrize("name", VIEWS)
def test_products(name, block_bytes):
    view = view_of(VIEWS[name])
    assert view.shape == X.shape
    assert view.dtype == (np.float32 if "float32" in name else np.float64)
    assert_allclose(view.scores(W, [1.0, 2.0, 3.0]), X @ W.T + [1.0, 2.0, 3.0], rtol=1e-12)
    assert_allclose(view.transposed(R), X.T @ R, rtol=1e-12, atol=1e-12)
    assert_allclose(view.gram(), X.T @ X, rtol=1e-6)
    assert_allclose(view.gram(S), (X.T * S) @ X, rtol=1e-12, atol=1e-12)
    assert_allclose(view.row_norms(), np.square(X).sum(axis=1), rtol=1e-12)
    assert view.map_sum(lambda rows, block: block.sum()) == X.sum()
    rows = np.array([5, 0, 56, 5])
    taken = view.take(rows)
    assert_array_equal(taken.toarray() if sparse.issparse(taken) else taken, X[rows])
    assert taken.dtype == view.dtype
    assert [rows for rows, _ in view.blocks()][-1].stop == 57


@pytest.mark.parametrize("name", VIEWS)
def test_chosen_rows_are_those_of_their_view(name, block_bytes):
    rows = np.array([5, 0, 56, 5, *range(0, 57, 2)])
    s = S[: len(rows)]
    view = ChosenRows(view_of(VIEWS[name]), rows)
    assert view.shape == (len(rows), 6)
    assert (len(view.parts()) > 1) == (block_bytes == 500)
    assert_allclose(view.gram(s), (X[rows].T * s) @ X[rows], rtol=1e-12, atol=1e-12)
    assert_allclose(view.scores(W), X[rows] @ W.T, rtol=1e-12, atol=1e-12)
    taken = view.take(np.array([2, 1]))
    assert_array_equal(taken.toarray() if sparse.issparse(taken) else taken, X[[56, 0]])


@pytest.mark.parametrize("name", ["C", "Fortran", "strided", "float32"])
def test_float_blocks_are_no_copies(name):
    view = view_of(VIEWS[name])
    assert all(np.shares_memory(block, VIEWS[name]) for _, block in view.blocks())
    assert view.array is VIEWS[name]


@pytest.mark.parametrize("name", ["csr", "csr matrix float32", "csr 64-bit"])
def test_float_blocks_of_sparse_rows_are_no_copies(name):
    view = view_of(VIEWS[name])
    for begin in range(0, 56, 7):
        block = view.read(slice(begin, begin + 7))
        assert np.shares_memory(block.data, VIEWS[name].data)
        assert np.shares_memory(block.indices, VIEWS[name].indices)


def test_rows_in_place():
    assert {name for name, data in VIEWS.items() if view_of(data).rows_in_place} == {
        "C",
        "reversed" if VIEWS["reversed"].strides[1] == 8 else "C",
        "float32",
        "csr",
        "csr matrix float32",
        "csr 64-bit",
    }


@pytest.mark.parametrize("damage", ["index", "negative", "indptr", "short"])
def test_damaged_csr_is_refused(damage):
    A = sparse.csr_array(X)
    A.indices, A.indptr, A.data = A.indices.copy(), A.indptr.copy(), A.data.copy()
    if damage == "index":
        A.indices[3] = 6
    elif damage == "negative":
        A.indices[3] = -1
    elif damage == "indptr":
        A.indptr[4] = A.indptr[-1] + 5
    else:
        A.data = A.data[:-1]
    with pytest.raises(ValueError, match="damaged CSR"):
        CsrView(A)


LABEL_RANGES = [
    (dtype, low, high)
    for dtype in ("i1", "u1", "i2", "i8", "u8", ">i8")
    for low, high in ((0, 3), (100, 127), (-128, 127), (2**64 - 3, 2**64 - 1))
    if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max
]


@pytest.mark.parametrize("count", [60, 20_000])
@pytest.mark.parametrize(("dtype", "low", "high"), LABEL_RANGES)
def test_labels_are_numbered_as_a_sort_would(dtype, low, high, count):
    y = np.random.default_rng(0).integers(0, high - low + 1, count).astype(np.uint64)
    y = (y + np.uint64(low % 2**64)).astype(dtype)
    classes, numbers = np.unique(y, return_inverse=True)
    found, codes = encode_labels(None, y)
    assert found.dtype == classes.dtype
    assert_array_equal(found, classes)
    assert_array_equal(codes, numbers)


@pytest.mark.parametrize("rows", [1, 2, 3, 100, 101, 299, 300])
def test_blocks_are_shared_out_evenly_by_two_threads(monkeypatch, rows):
    monkeypatch.setattr(memory, "BLOCK_BYTES", 800)  # 100 rows
    parts = view_of(np.ones((rows, 1))).parts()
    lengths = [part.stop - part.start for part in parts]
    assert sum(lengths) == rows
    assert max(lengths) <= min(100, min(lengths) + 1)
    assert len(parts) == (1 if rows <= 100 else 2 if rows == 101 else 4)
    assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]


def test_few_stored_values_are_one_block_for_few_columns(monkeypatch):
    monkeypatch.setattr(memory, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(memory, "_ALONE", 300)
    X = sparse.random_array((100, 10), density=0.1, format="csr", rng=np.random.default_rng(0))
    one, several = with_kept_blocks(view_of(X), 3), with_kept_blocks(view_of(X), 4)
    assert len(one.parts()) == 1 < len(several.parts())
    for view in (one, several):
        assert_array_equal(sparse.vstack([block for _, block in view.blocks()]).toarray(), X.toarray())
        assert_array_equal(view.take(np.array([3, 1])).toarray(), X.toarray()[[3, 1]])
