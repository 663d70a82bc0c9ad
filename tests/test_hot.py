"""The compiled loops: the same bits on every instruction set and layout; references in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from oracles import permute, shuffle
from separatrix import Perceptron, SGDClassifier, _hot
from separatrix.data.memory import view_of
from separatrix.solvers import _order


@pytest.fixture
def each_set():
    chosen = _hot.instruction_set()
    yield _hot.instruction_sets()
    _hot.use_instruction_set(chosen)


def test_instruction_sets(each_set):
    assert "baseline" in each_set
    assert _hot.instruction_set() == each_set[-1]
    with pytest.raises(ValueError, match="v99"):
        _hot.use_instruction_set("v99")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3, 11])
@pytest.mark.parametrize("d", [1, 7, 8, 37])
def test_same_bits_everywhere(each_set, dtype, n_classes, d):
    """Arbitrary floats: dense and CSR rows, 32- and 64-bit indices, every instruction set."""
    rng = np.random.default_rng(d)
    X = rng.standard_normal((60, d)).astype(dtype)
    X[rng.random((60, d)) < 0.4] = 0
    y = rng.integers(0, n_classes, 60)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for parameters in (
        dict(),
        dict(multiclass="joint", keep="average"),
        dict(multiclass="ovo", penalty="elasticnet"),
    ):
        fits = []
        for name in each_set:
            _hot.use_instruction_set(name)
            for data in (X, sparse.csr_array(X), wide):
                model = Perceptron(max_iter=8, tol=None, margin=0.1, **parameters).fit(data, y)
                fits.append(np.column_stack([model.intercept_, model.coef_]))
        for other in fits[1:]:
            assert_array_equal(other, fits[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("multiclass", ["ovr", "ovo", "joint"])
@pytest.mark.parametrize("n_classes", [2, 3, 19])
@pytest.mark.parametrize("kind", ["counts", "tenths"])
def test_close_decisions_are_those_of_dense_rows(each_set, dtype, multiclass, n_classes, kind):
    """Whole numbers give scores that are equal, tenths such that are equal but for the order of their sum."""
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (90, 21)) * (rng.random((90, 21)) < 0.6)
    X = (X * (1.0 if kind == "counts" else 0.1)).astype(dtype)
    X[1::3] = -X[::3]  # a sample and its negative: scores around 0 with the intercept left out
    y = np.arange(90) % n_classes
    weights = rng.integers(0, 3, 90) / 2
    options = {"multiclass": multiclass, "shuffle": False, "tol": None, "eta0": 0.1, "fit_intercept": False}
    for name in each_set:
        _hot.use_instruction_set(name)
        for keep in ("best", "last", "average"):
            dense, csr = (
                Perceptron(keep=keep, max_iter=7, **options).fit(rows, y, sample_weight=weights)
                for rows in (X, sparse.csr_array(X))
            )
            assert_array_equal(csr.coef_, dense.coef_)
            for column in ("mistakes", "margin_errors", "training_errors"):
                assert [h[column] for h in csr.history_] == [h[column] for h in dense.history_]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("longest", [3, 9, 40])
def test_rows_of_any_length_decide_as_dense_ones(each_set, dtype, index, longest):
    """Two classes, whose rows are read by eights: empty and short ones, at the begin of the arrays too."""
    rng = np.random.default_rng(longest)
    lengths = np.concatenate([[0, 1, 2], rng.integers(0, longest + 1, 200)])
    X = np.zeros((lengths.size, 45), dtype=dtype)
    for row, length in zip(X, lengths, strict=True):
        row[rng.permutation(45)[:length]] = rng.integers(-3, 4, length) * 0.1
    y = rng.integers(0, 2, lengths.size)
    csr = sparse.csr_array(X)
    csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
    for name in each_set:
        _hot.use_instruction_set(name)
        for keep, margin, fit_intercept in (("best", 0.0, False), ("last", 0.3, True), ("best", 0.3, True)):
            options = {"keep": keep, "margin": margin, "fit_intercept": fit_intercept, "shuffle": False}
            dense, stored = (Perceptron(max_iter=5, tol=None, **options).fit(rows, y) for rows in (X, csr))
            assert_array_equal(stored.coef_, dense.coef_)
            assert_array_equal(stored.intercept_, dense.intercept_)
            for column in ("mistakes", "margin_errors", "training_errors"):
                assert [h[column] for h in stored.history_] == [h[column] for h in dense.history_]
        dense, stored = (
            SGDClassifier(max_iter=5, tol=None, fit_intercept=False, shuffle=False).fit(rows, y).coef_
            for rows in (X, csr)
        )
        assert_allclose(stored, dense, rtol=1e-3 if dtype == np.float32 else 1e-9, atol=1e-4)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 100])
def test_shuffle(n):
    order = np.arange(n, dtype=np.int64)
    expected, expected_state = shuffle(order, 12345)
    state = _hot.shuffle(order, 12345)
    assert_array_equal(order, expected)
    assert state == expected_state


@pytest.mark.parametrize("n", [0, 1, 2, 5, 100])
@pytest.mark.parametrize("seed", [0, 1, 12345, 2**32 - 1])
def test_permute(n, seed):
    order = np.arange(n, dtype=np.int64)
    once = permute(order, seed)
    _hot.permute(order, seed)
    assert_array_equal(order, once)
    _hot.permute(order, seed)
    assert_array_equal(order, permute(once, seed))


def test_shuffle_is_fair():
    """Each sample comes to each place about equally often."""
    counts, state = np.zeros((5, 5)), 7
    for _ in range(20_000):
        order = np.arange(5, dtype=np.int64)
        state = _hot.shuffle(order, state)
        counts[order, np.arange(5)] += 1
    assert np.abs(counts / 20_000 - 0.2).max() < 0.02


@pytest.mark.parametrize("n", [1, 7, 64, 1000, 1001])
@pytest.mark.parametrize("block", [1, 4, 16, 5000])
@pytest.mark.parametrize("streams", [1, 3])
def test_shuffle_blocks(n, block, streams):
    samples = np.arange(n, dtype=np.int64) * 3 + 1
    order = np.zeros_like(samples)
    ids, expected_state = shuffle(range(-(-n // block)), 99)
    expected = [
        b * block + t
        for first in range(0, len(ids), streams)
        for t in range(block)
        for b in ids[first : first + streams]
        if b * block + t < n
    ]
    assert _hot.shuffle_blocks(samples, order, block, streams, 99) == expected_state
    assert_array_equal(order, samples[expected])


def test_blocks_are_used_for_large_data_and_learn_as_well(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 6))
    y = (X[:, 0] + 0.3 * rng.standard_normal(4000) > 0).astype(int)
    order = np.argsort(y, kind="stable")  # sorted by class, the hard case for blocks
    monkeypatch.setattr(_order, "CONTENT_BYTES", 0)
    monkeypatch.setattr(_order, "BLOCK_BYTES", 1 << 10)
    model = Perceptron(max_iter=20, tol=None).fit(X[order], y[order])
    assert model.score(X, y) > 0.88
    s = rng.integers(0, 3, 4000)
    assert Perceptron(max_iter=5, tol=None).fit(X, y, sample_weight=s).certificate_.samples == np.sum(s > 0)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_neighbours_are_alike_where_rows_are_sorted(kind):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2000, 5)) * [3, 1, 1, 1, 1], rng.integers(0, 4, 2000)
    samples = np.arange(2000)
    by_class, by_place = np.argsort(y, kind="stable"), np.argsort(X[:, 0])
    assert not _order.neighbours_alike(view_of(kind(X)), y, samples)
    assert not _order.neighbours_alike(view_of(kind(X)), X[:, 0], samples)
    assert _order.neighbours_alike(view_of(kind(X[by_class])), y[by_class], samples)
    assert _order.neighbours_alike(view_of(kind(X[by_place])), y[by_place], samples)  # alike in features
    assert _order.neighbours_alike(view_of(kind(X)), np.sort(X[:, 0]), samples)  # in targets
    assert not _order.neighbours_alike(view_of(kind(X[by_class])), y[by_class], rng.permutation(2000))
    for few in (0, 1, 2, 3, 20):
        assert not _order.neighbours_alike(view_of(kind(X)), y, samples[:few])


def test_single_rows_are_permuted_where_neighbours_are_alike(monkeypatch):
    monkeypatch.setattr(_order, "CONTENT_BYTES", 0)
    monkeypatch.setattr(_order, "BLOCK_BYTES", 480)  # ten rows
    monkeypatch.setattr(_order, "STREAMS", 1)
    X = np.random.default_rng(0).standard_normal((3000, 6))
    for y in (np.arange(3000) % 2, np.arange(3000) // 1500):
        visits = _order.Visits(view_of(X), y, None, shuffle=True, seed=0)
        visits.next_pass()
        assert_array_equal(np.sort(visits.order), np.arange(3000))
        neighbours = np.mean(np.diff(visits.order) == 1)
        assert neighbours < 0.01 if y[0] == y[1] else neighbours > 0.85
        before = visits.order.copy()
        visits.next_pass()
        assert np.mean(before == visits.order) < 0.5


def test_row_hashes():
    X = np.array([[1.0, 0.0, 2.0], [1.0, -0.0, 2.0], [2.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    dense = _order.row_hashes(view_of(X))
    assert dense[0] == dense[1]
    assert len(set(dense.tolist())) == 3
    assert_array_equal(_order.row_hashes(view_of(sparse.csr_array(X))), dense)
    assert_array_equal(_order.row_hashes(view_of(X.astype(np.float32))), dense)
    assert_array_equal(_order.row_hashes(view_of(X.astype(int))), dense)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, np.asfortranarray])
def test_threads_change_nothing(layout, dtype, monkeypatch):
    monkeypatch.setattr("separatrix.solvers.perceptron._THREAD_BYTES", 0)
    monkeypatch.setattr("separatrix.solvers._rows._CHUNK_WORK", 1 << 12)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2000, 9)).astype(dtype), rng.integers(0, 3, 2000)
    for name in ("ovr", "ovo", "joint"):
        fits = [
            Perceptron(multiclass=name, max_iter=6, tol=None, n_jobs=n).fit(layout(X), y)
            for n in (1, 2, None)
        ]
        for other in fits[1:]:
            assert_array_equal(other.coef_, fits[0].coef_)
            errors = [[h["training_errors"] for h in fit.history_] for fit in (other, fits[0])]
            assert errors[0] == errors[1]
