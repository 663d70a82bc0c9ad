"""Kernel matrices computed on demand, and scores of new samples: against the kernels' own formulas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from separatrix import SVC, SVR, NuSVC, _hot
from separatrix.data.memory import view_of
from separatrix.data.threads import at_most
from separatrix.kernels import RBF, CallableKernel, Kernel, Linear, Polynomial
from separatrix.solvers import kernel_matrix
from separatrix.solvers.kernel_matrix import KernelMatrix, has_whole_numbers, native_of
from separatrix.solvers.kernel_scores import SupportSums

KERNELS = [RBF(0.4), Linear(), Polynomial(3, 0.5, 1.0), Polynomial(0, 1.0), Polynomial(5, 0.2, -0.5)]


@dataclass(frozen=True)
class Given(Kernel):
    """The kernel values are the samples."""

    precomputed = True

    def __call__(self, A, B=None):
        raise AssertionError("a precomputed kernel is looked up, not called")

    def diag(self, A):
        raise AssertionError("a precomputed kernel is looked up, not called")


@pytest.fixture
def each_set():
    chosen = _hot.instruction_set()
    yield _hot.instruction_sets()
    _hot.use_instruction_set(chosen)


def samples(n, d, seed=0, zeros=0.5, dtype=np.float64):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    X[random.random((n, d)) < zeros] = 0
    return X.astype(dtype)


def layouts(X):
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return [X, np.asfortranarray(X), sparse.csr_matrix(X), wide]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("d", [1, 3, 40])
@pytest.mark.parametrize("zeros", [0.0, 0.7])
def test_block_and_product(each_set, kernel, d, zeros):
    X = samples(101, d, zeros=zeros)
    exact = kernel(X)
    size = np.abs(exact).max()
    random = np.random.default_rng(1)
    rows, columns = random.integers(0, 101, 17), random.integers(0, 101, 70)
    coef = random.normal(size=(17, 5))
    coef[:, 2] = 0
    for name in each_set:
        _hot.use_instruction_set(name)
        for precision, tol in (("float32", 4e-6), ("float64", 1e-14)):
            for layout in layouts(X):
                matrix = KernelMatrix(kernel, view_of(layout), cache_bytes=1e6, precision=precision)
                assert matrix.native is not None
                assert_allclose(matrix.diag, np.diagonal(exact), rtol=1e-12)
                block = matrix.block(rows, columns)
                assert block.dtype == precision
                assert_allclose(block, exact[np.ix_(rows, columns)], rtol=0, atol=tol * size)
                sums, near = exact[:, rows] @ coef, 30 * tol * size
                assert_allclose(matrix.product(rows, coef), sums, rtol=0, atol=near)
                assert_allclose(matrix.product(rows, coef, columns), sums[columns], rtol=0, atol=near)


def test_float32_and_integer_samples():
    X = np.round(samples(60, 7) * 4)
    for data in (X.astype(np.float32), X.astype(np.int16), sparse.csr_array(X.astype(np.int64))):
        matrix = KernelMatrix(RBF(0.1), view_of(data), cache_bytes=1e6)
        assert_allclose(matrix.block(np.arange(60), np.arange(60)), RBF(0.1)(X), atol=1e-14)


def test_equal_samples_far_from_the_origin():
    """The shift keeps distances exact to rounding; equal samples give exactly 1; the matrix is symmetric."""
    X = samples(50, 6, zeros=0.0) + 1e4
    X[31] = X[7]
    for precision, tol in (("float32", 1e-4), ("float64", 1e-10)):
        K = KernelMatrix(RBF(0.3), view_of(X), cache_bytes=1e6).block(np.arange(50), np.arange(50), precision)
        assert_allclose(K, RBF(0.3)(X - X.mean(axis=0)), atol=tol)
        assert K[31, 7] == 1
        assert_array_equal(np.diagonal(K), 1)
        assert_array_equal(K, K.T)


@pytest.mark.parametrize(("largest", "filled"), [(1, 0.1), (1, 0.6), (3, 0.2)])
def test_whole_numbers(each_set, largest, filled):
    """Their products are exact sums of bytes: only the last step, the power of two, is rounded."""
    random = np.random.default_rng(0)
    X = random.integers(1, largest + 1, (701, 101)) * (random.random((701, 101)) < filled)
    X[650] = X[3]
    X[7] = 0
    squares = np.square(X).sum(axis=1)
    distances = squares[:, None] + squares - 2 * X @ X.T
    exact = np.exp(-0.07 * distances)
    rows, columns = random.integers(0, 701, 33), random.permutation(701)[:130]
    coef = random.normal(size=(33, 2))
    for name in each_set:
        _hot.use_instruction_set(name)
        for precision, tol in (("float32", 2e-7), ("float64", 1e-15)):
            for layout in (X.astype(np.float32), X, *layouts(X.astype(np.float64))):
                matrix = KernelMatrix(RBF(0.07), view_of(layout), cache_bytes=1e8, precision=precision)
                assert matrix.native is not None
                assert matrix.native.formula == 4
                K = matrix.block(np.arange(701), np.arange(701))
                assert_allclose(K, exact, rtol=20 * tol)
                assert_array_equal(K, K.T)
                assert_array_equal(K[distances == 0], 1)
                assert_array_equal(matrix.block(rows, columns), K[np.ix_(rows, columns)])
                sums, near = exact[:, rows] @ coef, 30 * tol
                assert_allclose(matrix.product(rows, coef), sums, rtol=0, atol=near)
                assert_allclose(matrix.product(rows, coef, columns), sums[columns], rtol=0, atol=near)


def test_which_numbers_are_whole():
    X = np.zeros((20, 300))
    X[3, :255] = 1
    X[5, 7] = 15
    assert has_whole_numbers(view_of(X))
    assert has_whole_numbers(view_of(sparse.csr_array(X)))
    for place, value in (((3, 255), 1.0), ((5, 7), 16.0), ((19, 0), -1.0), ((19, 0), 0.5), ((19, 0), 1e300)):
        other = X.copy()
        other[place] = value
        assert not has_whole_numbers(view_of(other))
        assert not has_whole_numbers(view_of(sparse.csr_matrix(other)))
    # 10 + 10 in one place: 400, not 200.
    twice = sparse.csr_matrix((np.array([10.0, 10.0]), np.array([2, 2]), np.array([0, 2])), shape=(1, 300))
    assert not has_whole_numbers(view_of(twice))


@pytest.mark.parametrize("kind", [SVC, SVR, NuSVC])
def test_machines_of_whole_numbers(kind, monkeypatch):
    """The same machine as from other loops, for one thread and for two, dense or sparse."""
    model = kind(gamma=0.1, tol=1e-6)
    random = np.random.default_rng(0)
    X = random.integers(1, 3, (2300, 60)) * (random.random((2300, 60)) < 0.1).astype(float)
    y = np.sign(X @ random.normal(size=60) + 0.3 * random.normal(size=2300))
    found = []
    for threads, data in ((1, X), (2, X), (2, sparse.csr_matrix(X))):
        with at_most(threads):
            found.append(clone(model).fit(data, y))
    for other in found[1:]:
        assert_array_equal(other.support_, found[0].support_)
        coef = other.dual_coef_
        assert_array_equal(coef.toarray() if sparse.issparse(coef) else coef, found[0].dual_coef_)
    scores = found[0].predict(X) if kind is SVR else found[0].decision_function(X)
    monkeypatch.setattr(kernel_matrix, "has_whole_numbers", lambda samples: False)
    usual = clone(model).fit(X, y)
    expected = usual.predict(X) if kind is SVR else usual.decision_function(X)
    assert usual.certificate_.status == "converged"
    assert found[0].certificate_.status == "converged"
    assert_allclose(scores, expected, rtol=0, atol=1e-4)


def test_far_pairs_do_not_underflow_to_nonsense():
    X = np.array([[0.0], [1e3], [1e-3]])
    K = KernelMatrix(RBF(10.0), view_of(X), cache_bytes=1e6).block(np.arange(3), np.arange(3))
    assert_allclose(K, RBF(10.0)(X), atol=1e-12)


def test_samples_that_do_not_fit_packed(monkeypatch):
    """They are packed part by part, and the values are the same."""
    X = samples(1300, 3)
    rows, coef = np.arange(0, 1300, 2), np.random.default_rng(0).normal(size=(650, 2))
    expected = RBF(0.4)(X)
    monkeypatch.setattr(KernelMatrix, "_fits", lambda self, precision: False)
    matrix = KernelMatrix(RBF(0.4), view_of(X), cache_bytes=1e4)
    assert_allclose(matrix.product(rows, coef), expected[:, rows] @ coef, atol=1e-11)
    assert_allclose(matrix.product(rows, coef, rows + 1), expected[np.ix_(rows + 1, rows)] @ coef, atol=1e-11)
    assert_allclose(matrix.block(rows, rows[:9]), expected[np.ix_(rows, rows[:9])], atol=1e-14)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_do_not_matter(threads):
    X = samples(700, 9)
    rows, coef = np.arange(0, 700, 2), np.random.default_rng(0).normal(size=(350, 3))
    matrix = KernelMatrix(RBF(0.2), view_of(X), cache_bytes=1e6, precision="float32")
    with at_most(threads):
        products = matrix.product(rows, coef)
    with at_most(1):
        assert_array_equal(products, matrix.product(rows, coef))


def test_other_kernels():
    X = np.abs(samples(40, 3, zeros=0.0))
    kernel = CallableKernel(lambda A, B: np.minimum(A[:, None, :], B[None, :, :]).sum(axis=2))
    matrix = KernelMatrix(kernel, view_of(X), cache_bytes=1e6)
    assert native_of(kernel) is None
    assert_array_equal(matrix.block(np.arange(5), np.arange(40)), kernel(X[:5], X))
    assert_allclose(matrix.product(np.arange(5), np.ones((5, 1))), kernel(X, X[:5]).sum(axis=1)[:, None])
    given = KernelMatrix(Given(), view_of(kernel(X)), cache_bytes=1e6)
    assert_array_equal(given.diag, matrix.diag)
    rows, columns = np.array([3, 1]), np.array([0, 9, 3])
    assert_array_equal(given.block(rows, columns), kernel(X)[np.ix_(rows, columns)])


def test_other_kernels_are_asked_once_if_their_values_fit():
    X, asked = samples(30, 3), []

    def function(A, B):
        asked.append(len(A) * len(B))
        return A @ B.T

    matrix = KernelMatrix(CallableKernel(function), view_of(X), cache_bytes=1e6)
    first = len(asked)
    for _ in range(3):
        matrix.block(np.arange(10), np.arange(30))
    assert len(asked) == first + 1
    few = KernelMatrix(CallableKernel(function), view_of(X), cache_bytes=1e3)
    assert_allclose(few.block(np.arange(10), np.arange(30)), X[:10] @ X.T)
    assert asked[-1] == 300


def test_values_that_are_not_finite():
    X = samples(20, 2, zeros=0.0)
    X[4] = 1e200
    with pytest.raises(ValueError, match=r"sample 4 are not finite.*Scale"):
        KernelMatrix(Linear(), view_of(X), cache_bytes=1e6)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("columns", [1, 3, 10])
def test_scores(kernel, columns):
    support, X = samples(300, 6), samples(211, 6, seed=1)
    coef = np.random.default_rng(2).normal(size=(300, columns))
    coef[:256, 0] = 0
    coef[280:] = 0
    exact = kernel(X, support) @ coef
    for s, x in zip(layouts(support), layouts(X)[::-1], strict=True):
        assert_allclose(SupportSums(kernel, s, coef)(x), exact, atol=1e-12 * np.abs(exact).max())
    single = SupportSums(kernel, support.astype(np.float32), coef)(X.astype(np.float32))
    assert single.dtype == np.float64
    assert_allclose(single, exact, atol=1e-4 * np.abs(exact).max())


def test_scores_of_one_sample_are_those_of_many():
    support, X = samples(120, 5), samples(90, 5, seed=1)
    coef = np.random.default_rng(2).normal(size=(120, 2))
    many = SupportSums(RBF(0.5), support, coef)(X)
    for i in (0, 47, 89):
        assert_array_equal(SupportSums(RBF(0.5), support, coef)(X[i : i + 1])[0], many[i])


def test_scores_of_nothing_and_of_other_kernels():
    support, X = samples(30, 4), samples(20, 4, seed=1)
    coef = np.ones((30, 2))
    assert SupportSums(RBF(1.0), support, coef)(X[:0]).shape == (0, 2)
    assert not SupportSums(RBF(1.0), support[:0], coef[:0])(X).any()
    kernel = CallableKernel(lambda A, B: A @ B.T)
    assert_allclose(SupportSums(kernel, support, coef)(X), (X @ support.T) @ coef)
    K = X @ support.T
    assert_allclose(SupportSums(Given(), np.array([2, 5]), coef[:2])(K), K[:, [2, 5]] @ coef[:2])


def test_few_terms_are_summed_in_single_precision():
    """Of terms alike, sixteen at a time: partial sums of 1, 2, ... 16 are rounded, by half a unit at most."""
    X = np.random.default_rng(0).normal(size=(3000, 5)).astype(np.float32)
    matrix = KernelMatrix(RBF(0.02), view_of(X), cache_bytes=1e8)
    rows, coef = np.arange(3000), np.full((3000, 1), 10.0)
    single, twofold = (matrix.product(rows, coef, None, precision) for precision in ("float32", "float64"))
    rounding = 2.0**-24 * 10.0 * np.sqrt(np.square(np.arange(1, 17)).sum() * 3000 / 16)
    values = matrix.error("float32") * float(np.linalg.norm(coef))
    assert 0 < np.std(single - twofold) <= rounding + values
