"""Class weights, means and scatter: against the formulas, stable, and mergeable."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from separatrix import _hot
from separatrix.data.memory import CsrView, DenseView, view_of
from separatrix.solvers import grid
from separatrix.solvers import moments as module
from separatrix.solvers.glance import glance
from separatrix.solvers.moments import KINDS, Moments, class_moments


def slow(X, classes, n_classes, weights=None, kind="shared"):
    """The formulas, written out, on exactly centred data (extended precision)."""
    X = np.asarray(X).astype(np.longdouble)
    s = np.ones(len(X)) if weights is None else weights
    d = X.shape[1]
    w, mean = np.zeros(n_classes), np.zeros((n_classes, d))
    full = np.zeros((n_classes, d, d))
    for k in range(n_classes):
        own = (classes == k) & (s > 0)
        if own.any():
            w[k] = s[own].sum()
            mu = (s[own, None] * X[own]).sum(axis=0) / s[own].sum()
            C = X[own] - mu
            mean[k], full[k] = mu, (C * s[own, None]).T @ C
    shared = full.sum(axis=0)
    scatter = {"shared": shared, "rows": shared, "full": full, "diagonal": np.einsum("kjj->kj", full)}[kind]
    return w, mean, scatter


def assert_moments(found, expected, rtol=1e-12):
    weight, mean, scatter = expected
    assert_allclose(found.weight, weight, rtol=rtol)
    assert_allclose(found.mean, mean, rtol=rtol, atol=rtol * np.abs(mean).max())
    # Entry (i, j) of a scatter is known to a part of the two features' spreads.
    pooled = found.within() if found.kind != "diagonal" else np.diag(found.within())
    spread = np.sqrt(np.outer(np.diag(pooled), np.diag(pooled)))
    atol = rtol * (np.diag(spread) if found.kind == "diagonal" else spread)
    own = found.within() if found.kind == "rows" else found.scatter
    assert np.all(np.abs(own - scatter) <= atol + 1e-300)


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(700, 6)) @ random.normal(size=(6, 6)) + random.normal(size=6)
    return X, random.integers(0, 4, 700), random.integers(0, 3, 700) * random.uniform(0.5, 2, 700)


@pytest.fixture
def small_pieces(monkeypatch):
    """Blocks and pieces so small that merging decides."""
    monkeypatch.setattr("separatrix.data.memory.BLOCK_BYTES", 6 * 8 * 50)
    monkeypatch.setattr(module, "BLOCK_BYTES", 6 * 8 * 30)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", ["C", "F", "csr", "integers"])
@pytest.mark.usefixtures("small_pieces")
def test_formulas(data, kind, weighted, layout):
    X, classes, weights = data
    s = weights if weighted else None
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    if layout == "integers":
        X = np.rint(10 * X).astype(np.int32)
    samples = {"csr": sparse.csr_array, "F": np.asfortranarray}.get(layout, np.asarray)(X)
    # Class 4 never comes.
    assert_moments(class_moments(view_of(samples), classes, 5, s, kind=kind), slow(X, classes, 5, s, kind))


@pytest.mark.parametrize("kind", ["shared", "full"])
def test_large_scatter_class_by_class(data, kind, monkeypatch):
    X, classes, weights = data
    expected = class_moments(DenseView(X), classes, 4, weights, kind=kind)
    monkeypatch.setattr(module, "BLOCK_BYTES", 6 * 6 * 8)
    for samples in (X, sparse.csr_array(X)):
        found = class_moments(view_of(samples), classes, 4, weights, kind=kind)
        assert_moments(found, (expected.weight, expected.mean, expected.scatter))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("apart", [0.0, 1e8])
@pytest.mark.usefixtures("small_pieces")
def test_no_cancellation(data, kind, apart):
    """Mean 1e8, and classes 1e8 apart: the scatter keeps the digits that the data have."""
    X, classes, weights = data
    far = X + 1e8 + apart * classes[:, None]
    assert_moments(class_moments(DenseView(far), classes, 4, weights, kind=kind),
                   slow(far, classes, 4, weights, kind), rtol=1e-12)  # fmt: skip


def test_float32_sums_in_double(data):
    X, classes, _ = data
    X = (X + 100).astype(np.float32)
    found = class_moments(DenseView(X), classes, 4)
    assert found.scatter.dtype == found.mean.dtype == np.float64
    assert_moments(found, slow(X, classes, 4))


@pytest.mark.parametrize("kind", KINDS)
@given(cuts=st.lists(st.integers(0, 60), max_size=5), seed=st.integers(0, 99))
def test_merging(kind, cuts, seed):
    """Any split of sorted or mixed rows gives the moments of the whole; a side may lack classes."""
    random = np.random.default_rng(seed)
    X, classes = random.normal(size=(60, 3)) + 50, random.integers(0, 3, 60)
    if seed % 2:
        classes.sort()
    edges = [0, *sorted(cuts), 60]
    total = Moments.empty(3, 3, kind)
    for a, b in pairwise(edges):
        total += class_moments(DenseView(X[a:b]), classes[a:b], 3, kind=kind)
    assert_moments(total, slow(X, classes, 3, None, kind))


def test_a_new_class_arrives_unrounded():
    one = class_moments(DenseView(np.array([[0.1, 0.7]])), np.array([0]), 2)
    two = class_moments(DenseView(np.array([[0.3, 1e8 / 3]])), np.array([1]), 2)
    for merged in (one + two, two + one):
        assert_array_equal(merged.mean, [[0.1, 0.7], [0.3, 1e8 / 3]])
        assert not merged.scatter.any()
    assert one.weight.tolist() == [1.0, 0.0]  # adding leaves the parts alone


@pytest.mark.parametrize("kind", KINDS)
def test_total(data, kind):
    """Within and between add up to the scatter about the overall mean; an absent class adds nothing."""
    X, classes, weights = data
    X = X + 1e6
    m = class_moments(DenseView(X), classes, 6, weights, kind=kind)
    _, mean, scatter = slow(X, np.zeros(len(X), dtype=int), 1, weights, kind)
    expected = scatter if kind in ("shared", "rows") else scatter[0]
    assert_allclose(m.total_mean, mean[0], rtol=1e-14)
    assert m.total_weight == pytest.approx(weights.sum())
    assert_allclose(m.total_scatter(), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_weights_are_repetitions(data):
    X, classes, weights = data
    times = np.rint(weights).astype(int)
    repeated = class_moments(DenseView(np.repeat(X, times, axis=0)), np.repeat(classes, times), 4)
    weighted = class_moments(DenseView(X), classes, 4, times.astype(float))
    assert_moments(weighted, (repeated.weight, repeated.mean, repeated.scatter))


def test_wide_sparse_data():
    """One variance per feature needs no matrix; the others refuse what no memory holds, by name."""
    random = np.random.default_rng(0)
    place = random.integers(0, 50_000, 400)
    X = sparse.csr_array((np.ones(400), (np.repeat(np.arange(40), 10), place)), shape=(40, 50_000))
    classes = np.arange(40) % 2
    found = class_moments(CsrView(X), classes, 2, kind="diagonal")
    expected = np.array([20 * X.toarray()[classes == k].var(axis=0) for k in (0, 1)])
    assert_allclose(found.scatter, expected, atol=1e-12)
    with pytest.raises(ValueError, match=r"50,000 features need .*covariance='diagonal'"):
        class_moments(CsrView(X), classes, 2)


def test_repeated_entries_count_as_their_sum():
    X = sparse.csr_array((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    found = class_moments(CsrView(X), np.array([0, 0]), 1, kind="diagonal")
    assert_allclose(found.scatter, [[12.5, 4.5]])
    assert X.nnz == 3


def test_refusals(data):
    X, classes, _ = data
    with pytest.raises(ValueError, match="kind must be one of shared, full, diagonal"):
        class_moments(DenseView(X), classes, 4, kind="spherical")
    with pytest.raises(ValueError, match="do not merge"):
        class_moments(DenseView(X), classes, 4) + class_moments(DenseView(X), classes, 4, kind="full")
    assert_array_equal(class_moments(DenseView(X[:0]), classes[:0], 4).weight, np.zeros(4))


def correlated(n, d, least, seed=0):
    """Float32 samples of three classes whose correlations have eigenvalues down to about the given one."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    y = rng.integers(0, 3, n)
    X = (rng.normal(size=(n, d)) * np.geomspace(1.0, np.sqrt(least), d)) @ Q + 0.3 * y[:, None]
    return X.astype(np.float32), y


@pytest.mark.parametrize("weighted", [False, True])
def test_single_precision_where_it_does_no_harm(weighted):
    X, y = correlated(6000, 70, 0.5)
    s = np.random.default_rng(1).integers(0, 3, 6000).astype(np.float64) if weighted else None
    single = class_moments(view_of(X), y, 3, s, single=True)
    exact = class_moments(view_of(X.astype(np.float64)), y, 3, s)
    units = np.outer(*2 * [np.sqrt(exact.scatter.diagonal())])
    assert not np.array_equal(single.scatter, exact.scatter)
    assert_allclose(single.scatter / units, exact.scatter / units, atol=1e-6)
    assert_allclose(single.mean + single.rest, exact.mean + exact.rest, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("spoilt", ["condition", "mean", "constant", "tiny"])
def test_double_precision_where_single_would_do_harm(spoilt):
    X, y = correlated(6000, 70, 1e-6 if spoilt == "condition" else 0.5)
    if spoilt == "mean":
        X[:, 3] += 1e4
    if spoilt == "constant":
        X[:, 5] = 2.0
    if spoilt == "tiny":
        X[:, 5] *= 1e-20  # float32 has few digits of its squares
    one, other = (class_moments(view_of(X), y, 3, single=single) for single in (True, False))
    assert_array_equal(one.scatter, other.scatter)
    assert_array_equal(one.mean, other.mean)


@pytest.mark.parametrize("weighted", [False, True])
def test_single_precision_of_a_far_class_that_a_glance_misses(weighted):
    X, y = correlated(6000, 70, 0.5)
    rare = np.array([1, 301, 5003])  # a glance looks at about every 28th row
    X[rare] += 1e3
    y = y.copy()
    y[rare] = 3
    s = np.where(y == 1, 2.0, 1.0) if weighted else None
    if weighted:
        s[1] = 0.0
    single = class_moments(view_of(X), y, 4, s, single=True)
    exact = class_moments(view_of(X.astype(np.float64)), y, 4, s)
    units = np.outer(*2 * [np.sqrt(exact.scatter.diagonal())])
    assert not np.array_equal(single.scatter, exact.scatter)
    assert_allclose(single.scatter / units, exact.scatter / units, atol=1e-6)
    assert_allclose(single.mean, exact.mean, rtol=1e-6, atol=1e-7)


def test_a_glance_tells_condition_and_mean():
    X, y = correlated(6000, 30, 1e-4)
    X[:, 2] += 50.0 * X[:, 2].std()
    seen = glance(view_of(X), y, 3, None)
    R = np.corrcoef(X - np.stack([X[y == k].mean(axis=0) for k in range(3)])[y], rowvar=False)
    true = 1.0 / (np.abs(R).sum(axis=0).max() * np.abs(np.linalg.inv(R)).sum(axis=0).max())
    assert true / 5 < seen.condition < 5 * true
    assert 40 < seen.largest_mean < 60
    X[0, 0] = np.nan
    assert glance(view_of(X), y, 3, None).condition == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spoilt", [None, "a fraction", "a large number"])
def test_whole_numbers(dtype, spoilt, monkeypatch):
    """Counts, a rare one and a constant among them, are exact; so are sums with an odd value, by doubles."""
    monkeypatch.setattr(grid, "_LARGE", 0)
    random = np.random.default_rng(5)
    X = random.poisson(random.gamma(1.0, 30.0, 70), size=(900, 70)).astype(dtype)
    X[:, 3], X[:, 4] = 7.0, 0.0
    X[450, 4] = 255.0
    if spoilt:
        X[700, 9] = 0.1 if spoilt == "a fraction" else 40_000.0
    y = random.integers(0, 4, 900)
    y[y == 3] = random.random((y == 3).sum()) < 0.5  # a class of nobody
    found = class_moments(view_of(X), y, 4)
    exact = [X[y == k].astype(np.longdouble) for k in range(3)]
    means = np.array([rows.mean(axis=0) for rows in exact], dtype=float)
    scatter = sum((rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0)) for rows in exact).astype(float)
    spread = np.sqrt(np.maximum(np.outer(np.diag(scatter), np.diag(scatter)), 1e-300))
    assert_allclose(found.mean[:3], means, rtol=1e-14)
    assert_array_equal(found.mean[3], 0.0)
    assert np.abs((found.scatter - scatter) / spread).max() < 1e-13
    assert_array_equal(found.scatter[3], 0.0)
    if _hot.instruction_set() in ("baseline", "v3", "v4"):  # elsewhere doubles take all
        whole = module._of_whole_numbers(view_of(X), y.astype(np.int32), 4, None)
        assert (whole is None) == bool(spoilt)


@pytest.mark.parametrize("dependent", ["", "exactly", "nearly"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_grey_values_from_0_to_1(dtype, dependent, monkeypatch):
    """Multiples of 1/255 are exact but for rounding of the samples, which nearly dependent ones bring out."""
    monkeypatch.setattr(grid, "_LARGE", 0)
    random = np.random.default_rng(5)
    number = np.minimum(random.poisson(random.gamma(1.0, 30.0, 70), size=(900, 70)), 255)
    number[:, 3] = 7
    if dependent == "exactly":
        number[:, 1] = number[:, 2]
    elif dependent:
        number[:, 5] = number[:, 1] + (np.arange(900) == 5)
    X, y = (number / 255).astype(dtype), random.integers(0, 4, 900)
    found = class_moments(view_of(X), y, 4)
    rows = [X[y == k].astype(np.longdouble) for k in range(4)]
    scatter = sum((part - part.mean(axis=0)).T @ (part - part.mean(axis=0)) for part in rows).astype(float)
    length = np.sqrt(np.square(X.astype(float)).sum(axis=0))
    rounding = 2e-7 if dtype == np.float32 and dependent != "nearly" else 1e-13
    assert_allclose(found.mean, [part.mean(axis=0).astype(float) for part in rows], rtol=rounding)
    assert np.abs((found.scatter - scatter) / np.outer(length, length)).max() < rounding
    if _hot.instruction_set() in ("baseline", "v3", "v4"):
        whole = module._of_whole_numbers(view_of(X), y.astype(np.int32), 4, None)
        assert (whole is None) == (dependent == "nearly" and dtype == np.float32)
