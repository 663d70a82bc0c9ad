"""Nearest neighbours: exact, ties by row order, whatever the route, the layout and the number of threads."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.neighbors import KNeighborsClassifier as PeerClassifier

from oracles import by_row_order, squared_distances
from separatrix import _hot
from separatrix.data import memory
from separatrix.data.memory import view_of
from separatrix.kernels import RBF, CallableKernel, Linear, Polynomial
from separatrix.models.neighbors import KNeighborsClassifier
from separatrix.solvers import neighbors
from separatrix.solvers._metrics import METRICS, resolve_metric
from separatrix.solvers._reduction import PANEL, Reduction, SparseReduction
from separatrix.solvers.neighbors import Search

X, Y = load_iris(return_X_y=True)
DIGITS, DIGIT = load_digits(return_X_y=True)


def search(A, Q, k, metric="euclidean", algorithm="brute", n_jobs=1, **params):
    return Search(view_of(A), resolve_metric(metric, params), algorithm).nearest(view_of(Q), k, n_jobs)


@pytest.fixture
def always_filter(monkeypatch):
    """Small data take the routes of large ones."""
    monkeypatch.setattr(neighbors, "_SMALL", 0)
    monkeypatch.setattr(neighbors, "_PROJECT_WORK", 0)


def clustered(random, n, d, dtype=np.float64):
    """Rows near a few directions, with repetitions: there is something to project and there are ties."""
    rows = random.normal(size=(n, 8)) @ random.normal(size=(8, d)) + 0.1 * random.normal(size=(n, d))
    rows[n // 2 : n // 2 + n // 8] = rows[: n // 8]
    return rows.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 3, 15, 16, 17, 33, 200, 300])
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_euclidean_is_exact(always_filter, d, dtype, layout):
    random = np.random.default_rng(d)
    A, Q = clustered(random, 700, d, dtype), clustered(random, 50, d, dtype)
    Q[:20] = A[100:120]
    expected, order = by_row_order(squared_distances(Q, A), 9)
    distance, index = search(layout(A), layout(Q), 9)
    assert_array_equal(index, order)
    assert_allclose(distance, np.sqrt(expected), rtol=1e-12)
    assert distance.dtype == np.float64


def test_projection_is_used_where_it_helps(always_filter):
    random = np.random.default_rng(0)
    near_a_plane = clustered(random, 1000, 300)
    assert Reduction(view_of(near_a_plane), False, True).basis.shape == (300, 16)
    assert Reduction(view_of(random.normal(size=(1000, 300))), False, True).basis is None


@pytest.mark.parametrize("name", _hot.instruction_sets())
@pytest.mark.parametrize("d", [5, 64, 256])
def test_every_instruction_set_gives_the_same_bits(always_filter, name, d):
    random = np.random.default_rng(3)
    A, Q = clustered(random, 600, d, np.float32), clustered(random, 40, d, np.float32)
    wanted = {}
    chosen = _hot.instruction_set()
    try:
        for kind in ("baseline", name):
            _hot.use_instruction_set(kind)
            for metric, layout in product(("euclidean", "cosine"), (np.asarray, sparse.csr_array)):
                found = search(layout(A), layout(Q), 4, metric)
                for ours, first in zip(found, wanted.setdefault((metric, layout), found), strict=True):
                    assert_array_equal(ours, first)
    finally:
        _hot.use_instruction_set(chosen)


@pytest.mark.parametrize("scale", [1e-160, 1e-30, 1.0, 1e30, 1e160])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_far_from_the_origin_and_on_any_scale(always_filter, scale, shift):
    """|x|² − 2 x·q + |q|² loses every digit here; overflow and underflow must not lose a neighbour."""
    random = np.random.default_rng(5)
    A, Q = (random.normal(size=(n, 20)) + shift for n in (400, 30))
    expected = by_row_order(squared_distances(Q, A), 6)[1]
    index = search(A * scale, Q * scale, 6)[1]
    assert np.all((index >= 0) & (index < 400))
    if 1e-100 < scale < 1e100:
        assert_array_equal(index, by_row_order(squared_distances(Q * scale, A * scale), 6)[1])
        if scale == 1.0:
            assert_array_equal(index, expected)


def test_outliers_do_not_blunt_the_others(always_filter):
    random = np.random.default_rng(6)
    A, Q = random.normal(size=(500, 30)), random.normal(size=(40, 30))
    A[7], Q[3] = 1e25, -1e25
    assert_array_equal(search(A, Q, 5)[1], by_row_order(squared_distances(Q, A), 5)[1])


def test_the_filter_never_rejects_a_neighbour():
    """Its bound holds for each pair, with the reduced vectors as they are stored."""
    random = np.random.default_rng(7)
    for cosine, d in product((False, True), (20, 200)):
        A, Q = clustered(random, 333, d, np.float32), clustered(random, 50, d, np.float32)
        reduction = Reduction(view_of(A), cosine, True)
        panels, halves = reduction.panels(A)
        rows = panels.transpose(0, 2, 1).reshape(-1, reduction.width)
        assert rows.shape[0] % PANEL == 0
        z, room = reduction.queries(Q.astype(float))
        scores = z @ rows[:333].T - halves[:333]
        distances = cdist(Q, A, "cosine") if cosine else squared_distances(Q, A)
        assert np.all(scores >= (room[:, None] - reduction.grow * (distances + 1e-12)) / 2)
        assert np.mean(scores >= (room[:, None] - reduction.grow * 0.5 * distances) / 2) < 0.7


def test_bound_of_sparse_rows():
    random = np.random.default_rng(8)
    A = sparse.random_array((200, 50), density=0.2, rng=random, format="csr")
    reduction = SparseReduction.of(view_of(A), False)
    (values, room), (_, halves) = reduction.values(A), reduction.rows(A)
    Z = sparse.csr_array((values, A.indices, A.indptr), shape=A.shape)
    scores = (Z @ Z.T).toarray() - halves
    distances = squared_distances(A.toarray(), A.toarray())
    assert np.all(scores >= (room[:, None] - reduction.grow * distances) / 2 - 1e-30)


@given(
    st.integers(1, 60),
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
    st.sampled_from([2, 3, 50]),
)
def test_many_ties(n, m, d, seed, levels):
    """On a coarse grid most distances are equal: rows decide, on every route."""
    random = np.random.default_rng(seed)
    A, Q = random.integers(0, levels, (n, d)), random.integers(0, levels, (m, d))
    k = int(random.integers(1, n + 1))
    for metric, name in (
        ("euclidean", "sqeuclidean"),
        ("manhattan", "cityblock"),
        ("chebyshev", "chebyshev"),
    ):
        expected = by_row_order(cdist(Q, A, name), k)[1]
        for algorithm in ("brute", "tree"):
            assert_array_equal(search(A, Q, k, metric, algorithm)[1], expected)
    assert_array_equal(search(sparse.csr_array(A), Q, k)[1], by_row_order(cdist(Q, A, "sqeuclidean"), k)[1])


@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("d", [20, 200])
def test_many_blocks_in_many_rounds(always_filter, monkeypatch, layout, metric, d):
    random = np.random.default_rng(d)
    A, Q = (layout(clustered(random, n, d, np.float32)) for n in (500, 300))
    whole = search(A, Q, 6, metric)
    monkeypatch.setattr(memory, "BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr(neighbors, "_ROUND_BYTES", 1 << 15)
    monkeypatch.setattr(neighbors, "_BLOCK_NUMBERS", 1 << 10)
    assert len(view_of(A).parts()) > 2
    for first, second in zip(whole, search(A, Q, 6, metric, n_jobs=2), strict=True):
        assert_array_equal(first, second)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("k", [1, 7, 60])
def test_many_copies(always_filter, layout, k):
    """More equal rows than one stretch of the core holds, near the query and far from it."""
    A = np.repeat(np.arange(4.0), 700)[:, None] * np.ones((1, 20))
    A[100] = 5.0
    Q = np.array([[0.0], [0.6], [2.0], [9.0]]) * np.ones((1, 20))
    Q = np.repeat(Q, 3, axis=0)
    assert_array_equal(search(layout(A), layout(Q), k)[1], by_row_order(squared_distances(Q, A), k)[1])


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_threads_change_nothing(always_filter, metric, layout):
    random = np.random.default_rng(9)
    A, Q = layout(clustered(random, 500, 30)), layout(clustered(random, 600, 30))
    one, two = (search(A, Q, 5, metric, n_jobs=n) for n in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert_array_equal(first, second)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_cosine(always_filter, layout):
    random = np.random.default_rng(10)
    A, Q = random.normal(size=(400, 40)), random.normal(size=(30, 40))
    A[5] = 0.0
    Q[2] = 0.0
    distance, index = search(layout(A), layout(Q), 400, "cosine")
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num(cdist(Q, A, "cosine"), nan=1.0)
    assert_allclose(np.take_along_axis(expected, index, 1), distance, atol=1e-13)
    assert np.all(np.diff(distance) >= 0)
    assert_array_equal(index[2], np.arange(400))
    peer = PeerClassifier(metric="cosine").fit(A, A[:, 0] > 0).kneighbors(Q[3:])
    assert_array_equal(index[3:, :5], peer[1])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("d", [7, 16, 45])
def test_dense_and_sparse_give_the_same_bits(always_filter, metric, d):
    random = np.random.default_rng(d)
    A, Q = (sparse.random_array((n, d), density=0.4, rng=random, format="csr") for n in (300, 40))
    of_sparse, of_dense = search(A, Q, 9, metric), search(A.toarray(), Q.toarray(), 9, metric)
    assert_array_equal(of_sparse[0], of_dense[0])
    assert_array_equal(of_sparse[1], of_dense[1])


def test_mixed_layouts_and_types(always_filter):
    random = np.random.default_rng(11)
    A, Q = random.integers(0, 9, (300, 25)), random.integers(0, 9, (40, 25))
    expected = by_row_order(squared_distances(Q, A), 7)[1]
    kinds = (np.uint8, np.int64, np.float32, np.float64)
    for first, second in product(kinds, kinds):
        for dense in (np.asarray, sparse.csr_array):
            assert_array_equal(search(dense(A.astype(first)), Q.astype(second), 7)[1], expected)
            assert_array_equal(search(A.astype(first), dense(Q.astype(second)), 7)[1], expected)
    wide = sparse.csr_array(A.astype(float))
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert_array_equal(search(wide, Q, 7)[1], expected)
    strided = np.repeat(A.astype(float), 2, axis=1)[:, ::2]
    assert_array_equal(search(strided, Q, 7)[1], expected)


def test_sparse_input_that_is_not_sorted_or_repeats_entries():
    A = sparse.csr_array(([1.0, 2.0, 1.0, 5.0], [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    model = KNeighborsClassifier(1).fit(A, [0, 1])
    assert_array_equal(model.kneighbors(A)[0], [[0.0], [0.0]])
    assert_allclose(model.kneighbors(A.toarray()[:1], 2)[0], [[0.0, np.sqrt(4 + 4 + 25)]])
    roomy = sparse.csr_array(([1.0, 2.0, 9.0], [0, 1, 1], [0, 1, 2]), shape=(2, 3))
    assert_allclose(search(roomy, roomy, 2)[0], [[0.0, np.sqrt(5)]] * 2)


PARAMETERS = {
    "minkowski": {"p": 3},
    "p": {"p": 1.5},
    "seuclidean": {"V": DIGITS.var(axis=0) + 1},
    "mahalanobis": {"VI": np.diag(np.arange(1.0, 65.0))},
}


@pytest.mark.parametrize("metric", sorted(set(METRICS) - {"precomputed", "haversine", "nan_euclidean"}))
def test_metrics_agree_with_scipy(metric):
    A, Q = DIGITS[:300], DIGITS[300:330]
    names = {
        "p": "minkowski",
        "manhattan": "cityblock",
        "l1": "cityblock",
        "l2": "euclidean",
        "infinity": "chebyshev",
    }
    truth = metric in ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
    kind = bool if truth else float
    distances = cdist(Q.astype(kind), A.astype(kind), names.get(metric, metric), **PARAMETERS.get(metric, {}))
    expected, order = by_row_order(distances, 5)
    model = KNeighborsClassifier(metric=metric, metric_params=PARAMETERS.get(metric), p=None).fit(
        A, DIGIT[:300]
    )
    for layout in (np.asarray, sparse.csr_array):
        found, index = model.kneighbors(layout(Q))
        assert_allclose(found, expected, atol=1e-12)
        if metric not in ("cosine", "correlation"):  # their last digits depend on the order of the sums
            assert_array_equal(index, order)


def test_haversine():
    places = np.radians([[48.2, 16.4], [52.5, 13.4], [41.9, 12.5], [59.3, 18.1]])
    ours, peer = (
        make(2, metric="haversine").fit(places, [0, 1, 0, 1])
        for make in (KNeighborsClassifier, PeerClassifier)
    )
    for found, expected in zip(ours.kneighbors(places), peer.kneighbors(places), strict=True):
        assert_allclose(found, expected)
    with pytest.raises(ValueError, match="2 dimensions"):
        KNeighborsClassifier(2, metric="haversine").fit(X, Y).predict(X)


def test_missing_values():
    random = np.random.default_rng(15)
    A = np.where(random.random((60, 4)) < 0.3, np.nan, random.normal(size=(60, 4)))
    A[7] = np.nan
    y = np.arange(60) % 3
    ours = KNeighborsClassifier(3, metric="nan_euclidean").fit(A, y)
    peer = PeerClassifier(3, metric="nan_euclidean").fit(A, y)
    have_any = np.flatnonzero(~np.isnan(A).all(axis=1))
    found, expected = ours.kneighbors(A[have_any]), peer.kneighbors(A[have_any])
    assert_allclose(found[0], expected[0], atol=1e-7)
    assert ours.__sklearn_tags__().input_tags.allow_nan
    assert ours.kneighbors(A[[7]])[1].tolist() == [[0, 1, 2]]
    with pytest.raises(ValueError, match="infinity"):
        ours.predict([[np.inf, 0.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    "kernel", [Linear(), RBF(0.01), Polynomial(2, 0.01, 1.0), CallableKernel(lambda A, B: A @ B.T)]
)
def test_distance_in_the_feature_space_of_a_kernel(kernel):
    A, Q = DIGITS[:200], DIGITS[200:230]
    squared = kernel.diag(Q)[:, None] - 2 * kernel(Q, A) + kernel.diag(A)
    distance, index = KNeighborsClassifier(metric=kernel).fit(A, DIGIT[:200]).kneighbors(Q)
    assert_allclose(distance, np.sqrt(by_row_order(squared, 5)[0]), rtol=1e-6)
    assert_array_equal(index, by_row_order(squared.round(9), 5)[1])


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_callable_metric(layout):
    def largest(a, b, power):
        difference = a - b
        return abs(difference).max() ** power

    A, Q = X[::3], X[1::7]
    model = KNeighborsClassifier(3, metric=largest, metric_params={"power": 2}).fit(layout(A), Y[::3])
    expected, order = by_row_order(cdist(Q, A, "chebyshev") ** 2, 3)
    distance, index = model.kneighbors(layout(Q))
    assert_allclose(distance, expected)
    assert_array_equal(index, order)
    with pytest.raises(ValueError, match="returned NaN"):
        KNeighborsClassifier(metric=lambda a, b: np.nan).fit(X, Y).predict(X[:2])


def test_precomputed():
    train, test = np.arange(0, 150, 2), np.arange(1, 150, 2)
    D = cdist(X, X)
    own, across = D[np.ix_(train, train)], D[np.ix_(test, train)]
    plain = KNeighborsClassifier(algorithm="brute").fit(X[train], Y[train])
    given_distances = KNeighborsClassifier(metric="precomputed").fit(own, Y[train])
    for layout in (np.asarray, sparse.csr_array):
        assert_array_equal(given_distances.predict(layout(across + 1e-300)), plain.predict(X[test]))
    graph = plain.kneighbors_graph(X[test], 7, mode="distance")
    assert_array_equal(given_distances.predict(graph), plain.predict(X[test]))
    assert_array_equal(given_distances.predict(None), plain.predict(None))
    assert given_distances.__sklearn_tags__().input_tags.pairwise
    with pytest.raises(ValueError, match="Precomputed matrix must be square"):
        clone(given_distances).fit(across[:9], Y[:9])
    with pytest.raises(ValueError, match="Negative values"):
        given_distances.predict(-across)
    with pytest.raises(
        ValueError, match="neighbors are required for some samples, but some samples have only 3"
    ):
        given_distances.predict(plain.kneighbors_graph(X[test], 3, mode="distance"))
    with pytest.raises(TypeError, match="explicit zeros"):
        given_distances.predict(sparse.dok_array(across))


def test_tree_is_chosen_for_few_features_and_many_rows():
    random = np.random.default_rng(13)
    low, high = (
        KNeighborsClassifier().fit(random.normal(size=(2000, d)), np.arange(2000) % 2) for d in (2, 30)
    )
    assert "k-d tree" in low.certificate_.message
    assert "brute force" in high.certificate_.message
    assert low.certificate_.status == "converged"


def test_queries_of_other_width_are_refused():
    with pytest.raises(ValueError, match="not to be had"):
        search(X, X[:, :3], 2)


def test_memory_is_bounded():
    """All distances at once would be 8 · 3,000 · 20,000 bytes; a part of them never is."""
    import tracemalloc

    random = np.random.default_rng(14)
    A, Q = random.normal(size=(20_000, 12)), random.normal(size=(3_000, 12))
    for metric in ("euclidean", "chebyshev"):
        tracemalloc.start()
        search(A, Q, 3, metric, n_jobs=1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 60 << 20
