"""Kernels by name, as objects and as functions: what an estimator's parameters resolve to."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

from separatrix.kernels import (
    RBF,
    AnovaRBF,
    Bessel,
    CallableKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    resolve_kernel,
)


def test_resolve_names():
    X = np.array([[0.0, 2.0], [4.0, 6.0]])
    assert resolve_kernel("linear", gamma="scale", degree=3, coef0=0.0, X=X) == Linear()
    assert resolve_kernel("rbf", gamma="auto", degree=3, coef0=0.0, X=X) == RBF(0.5)
    assert resolve_kernel("rbf", gamma="scale", degree=3, coef0=0.0, X=X) == RBF(1 / (2 * 5.0))
    assert resolve_kernel("poly", gamma=0.3, degree=2, coef0=1, X=X) == Polynomial(2, 0.3, 1.0)
    assert resolve_kernel(RBF(0.1), gamma=5.0, degree=3, coef0=0.0, X=X) == RBF(0.1)


@pytest.mark.parametrize(
    "make",
    [
        lambda X: X,
        lambda X: np.asfortranarray(X),
        lambda X: X.astype(np.float32),
        lambda X: sparse.csr_matrix(X),
        lambda X: sparse.csr_array(X.astype(np.float32)),
        lambda X: np.rint(X * 5).astype(np.int32),
        lambda X: np.full_like(X, 2.0),
        lambda X: X.tolist(),
    ],
    ids=["C", "F", "float32", "csr", "csr float32", "int", "constant", "list"],
)
def test_gamma_scale_is_that_of_scikit_learn(make):
    rng = np.random.default_rng(5)
    X = rng.normal(loc=2, size=(60, 3))
    X[rng.random(X.shape) < 0.5] = 0
    given = make(X)
    peer = SVC(gamma="scale").fit(given, rng.integers(2, size=60))
    assert resolve_kernel("rbf", gamma="scale", X=given).gamma == pytest.approx(peer._gamma, rel=1e-5)


def test_gamma_scale_sums_duplicate_entries():
    doubled = sparse.csr_array((np.array([1.0, 1.0]), np.array([0, 0]), np.array([0, 2, 2])), shape=(2, 1))
    assert resolve_kernel("rbf", gamma="scale", X=doubled) == RBF(1.0)  # entries 2 and 0: variance 1
    assert doubled.nnz == 2


def test_gamma_scale_far_from_the_origin_and_without_a_copy():
    X = np.random.default_rng(0).normal(size=(200_000, 20)).astype(np.float32)
    tracemalloc.start()
    gamma = resolve_kernel("rbf", gamma="scale", X=X).gamma
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert gamma == pytest.approx(1 / (20 * X.astype(float).var()), rel=1e-9)
    assert peak < X.nbytes
    far = np.array([[1e8], [1e8 + 2]])
    assert resolve_kernel("rbf", gamma="scale", X=far) == RBF(1.0)


def test_callables_are_wrapped_and_checked():
    def overlap(A, B):
        return np.minimum(A[:, None, :], B[None, :, :]).sum(axis=2)

    A = np.random.default_rng(0).random((70, 3))
    kernel = resolve_kernel(overlap, X=A)
    assert isinstance(kernel, CallableKernel)
    np.testing.assert_allclose(kernel(A, A[:4]), overlap(A, A[:4]))
    np.testing.assert_allclose(kernel.diag(A), A.sum(axis=1))
    assert kernel.diag(A[:0]).shape == (0,)
    assert kernel == resolve_kernel(overlap, X=A)
    assert kernel(A.astype(np.float32)).dtype == np.float32
    assert CallableKernel(lambda A, B: sparse.csr_array(A @ B.T))(A).shape == (70, 70)
    assert CallableKernel(lambda A, B: np.ones((len(A), len(B)), dtype=int))(A).dtype == np.float64


def test_callable_mistakes_are_named():
    def lopsided(A, B):
        return A @ A.T

    def holey(A, B):
        return np.where(np.arange(len(B)) == 1, np.nan, 1.0) * np.ones((len(A), 1))

    A, B = np.ones((3, 2)), np.ones((4, 2))
    with pytest.raises(ValueError, match=r"lopsided returned shape \(3, 3\).*must return shape \(3, 4\)"):
        CallableKernel(lopsided)(A, B)
    with pytest.raises(ValueError, match=r"holey returned nan at row 0, column 1 .*\(3, 4\).*finite"):
        CallableKernel(holey)(A, B)
    with pytest.raises(TypeError, match="returned complex128 values"):
        CallableKernel(lambda A, B: np.ones((3, 4), dtype=complex))(A, B)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": "gauss"}, ValueError, "unknown kernel 'gauss'; choose one of linear, poly"),
        ({"kernel": None}, TypeError, "kernel must be one of linear, poly, rbf.*not None"),
        ({"kernel": RBF}, TypeError, r"not the class RBF; write kernel=RBF\(\.\.\.\)"),
        ({"kernel": "rbf", "gamma": "wide"}, ValueError, "unknown gamma 'wide'; choose 'scale', 'auto'"),
        ({"kernel": "rbf", "gamma": -1}, ValueError, "gamma must be positive, not -1"),
        ({"kernel": "rbf", "gamma": None}, TypeError, "gamma must be .*positive number, not None"),
        ({"kernel": "rbf", "gamma": True}, TypeError, "gamma must be a number, not True"),
        ({"kernel": "poly", "degree": -1}, ValueError, "degree must be at least 0"),
    ],
)
def test_resolve_refuses_by_name(options, error, message):
    with pytest.raises(error, match=message):
        resolve_kernel(**options, X=np.ones((3, 2)))


def test_resolve_more_names():
    X = np.array([[0.0, 2.0], [4.0, 6.0]])
    assert resolve_kernel("sigmoid", gamma="auto", coef0=0.5, X=X) == Sigmoid(0.5, 0.5)
    assert resolve_kernel("laplacian", gamma=0.3, X=X) == Laplacian(0.3)
    assert resolve_kernel("anova", gamma=0.3, degree=2, X=X) == AnovaRBF(0.3, 2)
    assert resolve_kernel("bessel", gamma=0.25, degree=2, X=X) == Bessel(0.5, order=1, degree=2)
    assert resolve_kernel("bessel", gamma=0.25, degree=1, X=np.ones((3, 10))) == Bessel(0.5, order=4)
    assert resolve_kernel("precomputed", X=X) == Precomputed()


def test_text_for_a_kernel_on_numbers():
    message = r"must hold real numbers, not text such as 'cat': use a string kernel.*Spectrum\(3\)"
    for kernel in (RBF(), Laplacian() + Linear(), Precomputed()):
        for texts in (["cat", "car"], np.array(["cat", "car"]), np.array(["cat"], dtype=object)):
            with pytest.raises(TypeError, match=message):
                kernel(texts)
