"""The kernel perceptron: references, memory, prediction."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris, make_circles
from sklearn.metrics.pairwise import rbf_kernel

from separatrix import KernelPerceptron, load, save
from separatrix.kernels import RBF, ConstantSubstring, Polynomial, Precomputed, Spectrum, Subsequence
from separatrix.solvers.kernel_perceptron import KernelRows

IRIS = load_iris(return_X_y=True)


def slow_dual(K, y, passes, weights=None, margin=0.0):
    """Binary dual perceptron straight from method 2.3, with a constant term."""
    alpha = np.zeros(len(y))
    for _ in range(passes):
        for i in range(len(y)):
            left = 1.0 if weights is None else weights[i]
            while left > 0:
                m = y[i] * (alpha * y) @ (K[i] + 1)
                if m <= 0 or m < margin:
                    alpha[i] += min(1.0, left)
                left -= min(1.0, left)
    return alpha


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("margin", [0.0, 0.6])
def test_against_slow_dual(weighted, margin):
    X, y = IRIS
    X, y = X[50:][::3], np.where(y[50:][::3] == 2, 1, -1)
    s = np.arange(len(y)) % 5 / 2 if weighted else None
    alpha = slow_dual(rbf_kernel(X, gamma=0.7), y, 4, s, margin)
    model = KernelPerceptron(
        kernel=RBF(0.7), margin=margin, shuffle=False, tol=None, max_iter=4, keep="last"
    ).fit(X, y, sample_weight=s)
    assert_array_equal(model.support_, np.flatnonzero(alpha))
    assert_allclose(model.dual_coef_[0], (alpha * y)[alpha > 0])
    assert_allclose(model.intercept_, [(alpha * y).sum()])
    expected = rbf_kernel(X, X, gamma=0.7) @ (alpha * y) + (alpha * y).sum()
    assert_allclose(model.decision_function(X), expected, atol=1e-10)


def test_circles_are_separable_by_rbf_only():
    X, y = make_circles(200, noise=0.02, factor=0.4, random_state=0)
    curved = KernelPerceptron(gamma=2.0).fit(X, y)
    assert curved.certificate_.status == "separable"
    assert curved.score(X, y) == 1
    straight = KernelPerceptron(kernel="linear", max_iter=30, tol=None).fit(X, y)
    assert straight.certificate_.separable is None


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", RBF(0.2), Polynomial(2, 0.5, 1.0), rbf_kernel])
@pytest.mark.parametrize("name", ["ovr", "ovo", "joint"])
def test_kernels_and_codings(kernel, name):
    X, y = IRIS
    model = KernelPerceptron(kernel=kernel, multiclass=name, max_iter=40, tol=None).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.decision_function(X).shape == (150, 3)
    assert_array_equal(model.support_vectors_, X[model.support_])


def test_sparse_is_dense():
    X, y = IRIS
    dense = KernelPerceptron(max_iter=5, tol=None).fit(X, y)
    thin = KernelPerceptron(max_iter=5, tol=None).fit(sparse.csr_array(X), y)
    assert sparse.issparse(thin.support_vectors_)
    assert_allclose(thin.decision_function(sparse.csr_array(X)), dense.decision_function(X), atol=1e-8)


def test_small_cache_changes_nothing():
    X, y = IRIS
    free = KernelPerceptron(max_iter=5, tol=None).fit(X, y)
    tight = KernelPerceptron(max_iter=5, tol=None, cache_size=0.003).fit(X, y)
    none = KernelPerceptron(max_iter=5, tol=None, cache_size=0).fit(X, y)
    assert_array_equal(free.dual_coef_, tight.dual_coef_)
    assert_array_equal(free.dual_coef_, none.dual_coef_)


def test_cache_stays_within_its_budget():
    from separatrix.data.memory import view_of
    from separatrix.problem import Problem

    X, y = IRIS
    problem = Problem(view_of(X), y.astype(np.int32), np.array([[-1], [1]], dtype=np.int8), kernel=RBF(1.0))
    rows = KernelRows(problem, budget=5000)
    for i in [*range(20), 19, 0]:
        assert_allclose(rows[i], rbf_kernel(X[i : i + 1], X, gamma=1.0)[0])
        assert rows.used == sum(row.nbytes for row in rows.rows.values()) <= 5000
    assert list(rows.rows) == [17, 18, 19, 0]


def test_average_and_pocket_scores_are_those_of_the_returned_model():
    X, y = IRIS
    for keep in ("average", "best"):
        model = KernelPerceptron(keep=keep, max_iter=7, tol=None).fit(X, y)
        assert model.certificate_.training_errors == np.sum(model.predict(X) != y)


def test_callable_of_wrong_shape_is_named():
    def broken(A, B):
        return np.ones((len(A), 3))

    with pytest.raises(ValueError, match=r"broken.*shape"):
        KernelPerceptron(kernel=broken).fit(*IRIS)


WORDS = ["banana", "ananas", "bandana", "cabana", "kiwi", "kiwis", "lychee", "\U0001f95d kiwi", ""]


@pytest.mark.parametrize("kernel", [Spectrum(2), Subsequence(2, 0.4) + ConstantSubstring()], ids=repr)
def test_texts(kernel, tmp_path):
    y = np.array(["a"] * 4 + ["i"] * 5)
    model = KernelPerceptron(kernel=kernel).fit(WORDS, y)
    assert model.certificate_.status == "separable"
    assert_array_equal(model.predict(np.array(WORDS)), y)
    assert set(model.support_vectors_) <= set(WORDS)
    expected = kernel(WORDS, model.support_vectors_) @ model.dual_coef_[0] + model.intercept_
    assert_allclose(model.decision_function(WORDS), expected, rtol=1e-12)
    assert not hasattr(model, "n_features_in_")
    # Neither the order of the texts nor a repetition instead of a weight changes the model.
    order = np.random.default_rng(0).permutation(9)
    again = KernelPerceptron(kernel=kernel).fit([WORDS[i] for i in order], y[order])
    assert_array_equal(again.decision_function(WORDS), model.decision_function(WORDS))
    save(model, tmp_path / "texts.sx")
    assert_array_equal(load(tmp_path / "texts.sx").decision_function(WORDS), model.decision_function(WORDS))


@pytest.mark.parametrize(
    ("kernel", "X", "error", "message"),
    [
        ("rbf", WORDS, TypeError, r"compares numbers: use a string kernel, for example .*Spectrum\(3\)"),
        (RBF(), np.array(WORDS), TypeError, "X holds texts, but kernel=RBF"),
        (Spectrum(2), np.eye(9), TypeError, "must hold texts .*not float64"),
        (Spectrum(2), [*WORDS[:8], None], TypeError, "sample 8 is None"),
        (Spectrum(2), WORDS[:5], ValueError, "inconsistent numbers of samples"),
        (Spectrum(2), [], ValueError, "0 sample"),
        (Precomputed(), np.eye(9), ValueError, "computes its kernel values itself"),
    ],
)
def test_texts_and_numbers_are_kept_apart(kernel, X, error, message):
    with pytest.raises(error, match=message):
        KernelPerceptron(kernel=kernel).fit(X, [0, 1, 1, 0, 1, 0, 1, 0, 1])
