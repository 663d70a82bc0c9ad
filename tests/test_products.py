"""Sums of products of rows: every layout, precision and instruction set against sums written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from separatrix import (
    LeastSquaresClassifier,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    RidgeClassifier,
    _hot,
)
from separatrix.data.memory import ChosenRows, DenseView, view_of
from separatrix.data.products import add_products, symmetric
from separatrix.data.threads import at_most
from separatrix.solvers.moments import class_moments


@pytest.fixture(params=_hot.instruction_sets())
def instruction_set(request):
    before = _hot.instruction_set()
    _hot.use_instruction_set(request.param)
    yield request.param
    _hot.use_instruction_set(before)


def slow(X, n_classes, classes, weights, origin, order):
    """The sums, sample by sample."""
    d = X.shape[1]
    gram, sums = np.zeros((d, d)), np.zeros((n_classes, d))
    for i in range(X.shape[0]) if order is None else order:
        k = 0 if classes is None else classes[i]
        z = X[i].astype(np.float64)
        if origin is not None:
            z -= origin[k] if origin.ndim == 2 else origin
        s = 1.0 if weights is None else weights[i]
        gram += s * np.outer(z, z)
        sums[k] += s * z
    return gram, sums


def laid_out(X, layout):
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        room = np.full((2 * X.shape[0], 3 * X.shape[1] + 1), np.nan, dtype=X.dtype)
        room[::2, : 3 * X.shape[1] : 3] = X
        return room[::2, : 3 * X.shape[1] : 3]
    if layout == "wider":
        room = np.full((X.shape[0], X.shape[1] + 5), np.nan, dtype=X.dtype)
        room[:, : X.shape[1]] = X
        return room[:, : X.shape[1]]
    return X[::-1].copy()[::-1] if layout == "reversed" else X


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 8, 13, 16, 17, 24, 31, 40, 57])
@pytest.mark.parametrize("n", [0, 1, 7, 233, 500])
def test_sums_of_every_shape(instruction_set, n, d):
    random = np.random.default_rng(100 * n + d)
    X = random.normal(size=(n, d)) + 3.0
    classes, weights = random.integers(0, 3, n).astype(np.int32), random.uniform(0, 2, n)
    origin = random.normal(size=(3, d))
    gram, sums = np.ones((d, d)), np.ones((3, d))
    add_products(X, gram, sums, classes=classes, weights=weights, origin=origin)
    expected = slow(X, 3, classes, weights, origin, None)
    assert_allclose(symmetric(gram), expected[0] + 1.0, rtol=1e-12, atol=1e-12)
    assert_allclose(sums, expected[1] + 1.0, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("layout", ["C", "F", "strided", "wider", "reversed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("precision", ["double", "single", "coarse"])
@pytest.mark.parametrize("what", ["plain", "classes", "weights", "origin", "origins", "order", "all"])
def test_sums_of_every_kind(instruction_set, layout, dtype, precision, what):
    random = np.random.default_rng(3)
    n, d = 251, 19
    X = (random.normal(size=(n, d)) + 1.0).astype(dtype)
    every = what == "all"
    classes = random.integers(0, 4, n) if every or what in ("classes", "origins") else None
    weights = random.uniform(0, 2, n) if every or what == "weights" else None
    one = random.normal(size=d).astype(np.float32).astype(np.float64)
    origin = np.outer([1, 2, 3, 4], one) if every or what == "origins" else one if what == "origin" else None
    order = random.permutation(n)[:100] if every or what == "order" else None
    given = dict(classes=classes, weights=weights, origin=origin, order=order, precision=precision)
    gram, sums = np.zeros((d, d)), np.zeros((4, d))
    add_products(laid_out(X, layout), gram, sums, **given)
    expected = slow(X, 4, classes, weights, origin, order)
    tol = {"double": 1e-13, "single": 1e-5, "coarse": 3e-4}[precision]
    assert_allclose(symmetric(gram), expected[0], rtol=tol, atol=tol * expected[0].max())
    tol = 1e-13 if precision == "coarse" and dtype == np.float64 else min(tol, 1e-5)
    assert_allclose(sums, expected[1], rtol=tol, atol=tol * n)
    alone = np.zeros((4, d))
    add_products(laid_out(X, layout), None, alone, **given)
    assert_array_equal(alone, sums)
    alone = np.zeros((d, d))
    add_products(laid_out(X, layout), alone, **given)
    assert_array_equal(symmetric(alone), gram)


def rounded(Z, pack=232, largest=32767.0, length=46300.0):
    """Rows in packs of about as many, each feature of a pack rounded to integers in a unit of its own."""
    count = -(-len(Z) // pack)
    parts = []
    for k in range(count):
        part = Z[k * len(Z) // count : (k + 1) * len(Z) // count]
        most, norm = np.abs(part).max(axis=0), np.linalg.norm(part, axis=0)
        unit = np.where(most > 0, np.maximum(most / largest, norm / length), 1.0)
        parts.append(np.rint(part / unit) * unit)
    return np.concatenate(parts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 231, 232, 233, 700, 929])
def test_coarse_products_are_those_of_rounded_features(instruction_set, n, dtype):
    random = np.random.default_rng(n)
    d = 43
    X = (random.standard_t(2, size=(n, d)) * np.logspace(-8, 8, d)).astype(dtype)
    X[:, 5] = 0.0
    X[1:, 6] = 0.0  # one value alone
    X[:, 7] = (random.random(n) < 0.1) * 1e-12
    gram = np.zeros((d, d))
    add_products(X, gram, precision="coarse")
    Z = X.astype(np.float64)
    size = np.linalg.norm(Z, axis=0)
    size[size == 0] = 1.0
    error = np.abs(symmetric(gram) - Z.T @ Z) / np.outer(size, size)
    assert error.max() < 3e-4
    assert_array_equal(gram[5], 0.0)
    if _hot.instruction_set() in ("baseline", "v3", "v4") and n > 200:  # elsewhere they may be exact
        near = rounded(Z)
        apart = np.abs(gram - near.T @ near) / np.outer(size, size)
        assert np.sqrt(np.mean(apart**2)) < 0.2 * np.sqrt(np.mean(error**2))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coarse_products_of_what_is_not_finite_are_nan(instruction_set, dtype, bad):
    X = np.random.default_rng(0).normal(size=(300, 12)).astype(dtype)
    X[250, 9] = bad
    gram = np.zeros((12, 12))
    add_products(X, gram, precision="coarse")
    assert np.isnan(symmetric(gram)[9]).all()
    assert np.isfinite(np.delete(np.delete(gram, 9, axis=0), 9, axis=1)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 231, 232, 233, 929])
def test_products_of_whole_numbers_are_exact(instruction_set, n, dtype):
    random = np.random.default_rng(n)
    d = 43
    X = random.integers(-255, 256, size=(n, d))
    X[:, 5] = 0
    X[0, 6] = 32767
    classes, near = random.integers(0, 3, n), random.integers(-200, 200, size=(3, d))
    near[:, 6] = 0
    gram, sums = np.zeros((d, d)), np.zeros((3, d))
    add_products(
        (X + near[classes]).astype(dtype),
        gram,
        sums,
        classes=classes,
        origin=near.astype(float),
        precision="whole",
    )
    assert_array_equal(symmetric(gram), X.T @ X)
    assert_array_equal(sums, [X[classes == k].sum(axis=0) for k in range(3)])


@pytest.mark.parametrize("bad", [0.5, 1e-5, 32768.0, 1e12, 1e30, np.nan, np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_no_whole_number_is_seen(instruction_set, dtype, bad):
    X = np.random.default_rng(0).integers(0, 9, size=(300, 12)).astype(dtype)
    X[250, 9] = bad
    gram = np.zeros((12, 12))
    add_products(X, gram, precision="whole")
    Z = X.astype(float)
    told = np.isnan(symmetric(gram)[9, 9])
    assert told or gram[9, 9] == Z[:, 9] @ Z[:, 9]  # elsewhere than on x86 they are doubles
    rest = np.delete(np.arange(12), 9)
    assert_array_equal(gram[np.ix_(rest, rest)], Z[:, rest].T @ Z[:, rest])


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("steps", [4, 100, 255])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_multiples_of_a_fraction_stand_for_their_whole_numbers(instruction_set, dtype, steps, layout):
    random = np.random.default_rng(steps)
    n, d = 470, 43
    X = random.integers(-255, 256, size=(n, d))
    X[:, 5] = 0
    classes, near = random.integers(0, 3, n), random.integers(-200, 200, size=(3, d))
    number = (X + near[classes]).astype(dtype)
    how = dict(classes=classes, origin=near.astype(float), precision="whole", steps=steps)
    for values in (number / dtype(steps), number * dtype(1 / steps)):  # rounded once, or twice
        gram, sums = np.zeros((d, d)), np.zeros((3, d))
        add_products(laid_out(values, layout), gram, sums, **how)
        assert_array_equal(symmetric(gram), X.T @ X)
        assert_array_equal(sums, [X[classes == k].sum(axis=0) for k in range(3)])


@pytest.mark.parametrize("bad", [1e-9, 0.501, 3.0 + 1e-4, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [2, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_no_multiple_is_seen(instruction_set, dtype, at, bad):
    X = np.random.default_rng(0).integers(0, 9, size=(300, 11)).astype(dtype) / dtype(255)
    X[250, at] = bad
    gram = np.zeros((11, 11))
    add_products(X, gram, precision="whole", steps=255)
    assert np.isnan(symmetric(gram)[at, at])
    assert np.isfinite(np.delete(np.delete(gram, at, axis=0), at, axis=1)).all()


def test_swapped_bytes_and_shares_of_items():
    X = np.arange(12.0).reshape(4, 3)
    records = np.zeros(4, dtype=[("a", np.int8), ("x", np.float64, (3,))])
    records["x"] = X
    for odd in (X.astype(X.dtype.newbyteorder()), records["x"]):
        gram = np.zeros((3, 3))
        add_products(odd, gram)
        assert_array_equal(symmetric(gram), X.T @ X)


def test_mirror():
    full = np.random.default_rng(0).normal(size=(75, 75))
    upper = np.triu(full)
    assert_array_equal(symmetric(np.ascontiguousarray(full)), upper + np.triu(full, 1).T)


@pytest.mark.parametrize("d", [30, 1500])
def test_gram_of_a_view_is_the_same_for_any_number_of_threads(d):
    random = np.random.default_rng(1)
    X = random.normal(size=(60_000 // d * 10, d))
    weights, shift = random.uniform(0, 1, X.shape[0]), random.normal(size=d)
    found = []
    for n_jobs in (1, 2, 3):
        with at_most(n_jobs):
            found.append(DenseView(X).gram(weights, shift))
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])
    Z = (X - shift) * np.sqrt(weights)[:, None]
    assert_allclose(found[0], Z.T @ Z, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_column_sums(weighted):
    random = np.random.default_rng(2)
    X = random.normal(size=(300, 7)) * (random.random((300, 7)) < 0.5)
    s = random.uniform(0, 2, 300) if weighted else None
    expected = (np.ones(300) if s is None else s) @ X
    for samples in (X, sparse.csr_array(X), np.asfortranarray(X.astype(np.float32))):
        assert_allclose(view_of(samples).column_sums(s), expected, rtol=1e-5, atol=1e-5)
    assert_allclose(view_of(X).column_sums(s), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "model",
    [
        RidgeClassifier(),
        RidgeClassifier(solver="sparse_cg"),
        RidgeClassifier(solver="svd"),
        LeastSquaresClassifier(),
        LinearDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'solver', '')}",
)
@pytest.mark.parametrize(
    ("value", "weight"),
    [(np.nan, None), (np.inf, None), (-np.inf, None), (1e200, None), (np.nan, 0.0), (np.inf, 0.0)],
)
def test_values_that_sums_cannot_hold_are_named(model, value, weight):
    """The sums tell that something is wrong, in whatever block it is; the message tells where."""
    random = np.random.default_rng(4)
    X, y = random.normal(size=(30_000, 24)), random.integers(0, 3, 30_000)
    X[27_123, 7] = value
    s = None if weight is None else np.where(np.arange(30_000) == 27_123, weight, 1.0)
    with pytest.raises(ValueError, match=r"Input X contains .*row 27123, column 7"):
        model.fit(X, y, sample_weight=s)


@pytest.mark.parametrize("kind", ["shared", "full"])
def test_means_are_not_taken_relative_to_a_sample_that_does_not_count(kind):
    random = np.random.default_rng(5)
    X, y = random.normal(size=(500, 5)), random.integers(0, 2, 500)
    X[y.argmin()] = 1e15
    s = np.where(np.arange(500) == y.argmin(), 0.0, 1.0)
    found = class_moments(DenseView(X), y, 2, s, kind=kind)
    expected = class_moments(DenseView(X[s > 0]), y[s > 0], 2, kind=kind)
    assert_allclose(found.scatter, expected.scatter, rtol=1e-12, atol=1e-10)
    assert_allclose(found.mean, expected.mean, rtol=1e-13, atol=1e-13)


def test_wide_rows_come_in_longer_blocks():
    view = DenseView(np.zeros((3000, 2000)))
    rows = [part.stop - part.start for part in view.for_products().parts()]
    assert rows[0] > view.parts()[0].stop
    assert sum(rows) == 3000
    narrow = DenseView(np.zeros((3000, 20)))
    assert narrow.for_products() is narrow


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("columns", [1, 3, 7])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (37, 3), (300, 13), (700, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("single", "precision"), [(False, 1e-12), (True, 1e-5)])
def test_sweep_of_least_squares(instruction_set, single, precision, dtype, n, d, columns, weighted):
    rng = np.random.default_rng(n + d)
    X = laid_out(rng.normal(size=(n, d)).astype(dtype), "wider")
    targets = rng.normal(size=(max(2, columns), columns))
    classes = rng.integers(0, targets.shape[0], n).astype(np.int32)
    W, b = rng.normal(size=(columns, d)), rng.normal(size=columns)
    s = rng.integers(0, 3, n).astype(np.float64) if weighted else None
    gradient, sums = np.zeros((columns, d)), np.zeros((3, columns))
    _hot.sweep_squares(X, single, classes, s, targets, W, b, gradient, *sums)
    scores = X.astype(np.float64) @ W.T + b
    E = targets[classes] - scores
    share = np.ones(n) if s is None else s
    near = dict(rtol=precision, atol=10 * precision * np.sqrt(n * d))
    assert_allclose(gradient, (share[:, None] * E).T @ X.astype(np.float64), **near)
    assert_allclose(sums[0], share @ E, **near)
    assert_allclose(sums[1], share @ np.square(E), rtol=precision)
    if columns == 1:
        wrong = (scores[:, 0] >= 0) != (targets[classes, 0] > 0)
    else:
        wrong = np.argmax(scores, axis=1) != classes
    assert_array_equal(sums[2], [share @ wrong] + [0.0] * (columns - 1))


@pytest.mark.parametrize("columns", range(1, 9))
@pytest.mark.parametrize(("n", "d"), [(1, 1), (37, 3), (300, 13), (700, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_scores(instruction_set, dtype, n, d, columns):
    rng = np.random.default_rng(n + d)
    X = laid_out(rng.normal(size=(n, d)).astype(dtype), "wider")
    W, b = rng.normal(size=(columns, d)), rng.normal(size=columns)
    found = np.full((n, columns), np.nan, dtype)
    _hot.dense_scores(X, W, b, found)
    tol = 1e-5 if dtype == np.float32 else 1e-13
    assert_allclose(found, X.astype(np.float64) @ W.T + b, rtol=tol, atol=20 * tol)


@pytest.mark.parametrize("weights_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 2, 7, 8, 11, 15, 40])
def test_scores_of_views(columns, dtype, weights_dtype):
    """Few columns and many, in any layout, in the wider precision and the same for any number of threads."""
    rng = np.random.default_rng(columns)
    dense = (rng.normal(size=(9000, 130)) * (rng.random((9000, 130)) < 0.3)).astype(dtype)
    W, b = (rng.normal(size=size).astype(weights_dtype) for size in ((columns, 130), columns))
    exact = dense.astype(np.float64) @ W.T.astype(np.float64) + b
    tol = 1e-13 if np.float64 in (dtype, weights_dtype) else 1e-5
    narrow, long = sparse.csr_array(dense), sparse.csr_array(dense)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    for samples in (dense, np.asfortranarray(dense), laid_out(dense, "wider"), narrow, long):
        found = []
        for n_jobs in (1, 2):
            with at_most(n_jobs):
                found.append(view_of(samples).scores(W, b))
        assert found[0].dtype == np.result_type(dtype, weights_dtype)
        assert_array_equal(found[0], found[1])
        assert_allclose(found[0], exact, rtol=tol, atol=50 * tol)
    few = view_of(narrow[:3]).scores(W, b)  # too few rows to be worth whole registers
    assert_allclose(few, exact[:3], rtol=tol, atol=50 * tol)
    chosen = np.flatnonzero(rng.random(9000) < 0.5)
    assert_allclose(ChosenRows(view_of(narrow), chosen).scores(W, b), exact[chosen], rtol=tol, atol=50 * tol)


def test_least_squares_of_float32_samples_in_single_precision_is_corrected():
    """Enough features for sums in single precision: residuals in double make up for what they lose."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(4000, 80)) @ rng.normal(size=(80, 80)) + 1.0).astype(np.float32)
    y = (X @ rng.normal(size=80) > 0).astype(int)
    model = LeastSquaresClassifier().fit(X, y)
    A = np.column_stack([X.astype(np.float64), np.ones(4000)])
    exact = np.linalg.lstsq(A, np.where(y == 1, 1.0, -1.0), rcond=None)[0]
    assert_allclose(model.coef_[0], exact[:-1], rtol=1e-5, atol=2e-7 * np.abs(exact).max())
    assert model.certificate_.relative_gap < 1e-12
