"""The intercept of a perceptron on rows of many features that are mostly 0."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.linear_model import Perceptron as PeerPerceptron

from separatrix import Perceptron
from separatrix.data.memory import view_of
from separatrix.solvers.perceptron import intercept_step

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def words(rows, features, classes, seed=0):
    """Return unit rows with words drawn by Zipf's law, and classes by random linear scores."""
    rng = np.random.default_rng(seed)
    drawn = np.exp(rng.random((rows, 40)) * np.log(features)).astype(np.int64).clip(max=features - 1)
    places = drawn.ravel().astype(np.int32), np.arange(rows + 1, dtype=np.int32) * 40
    X = sparse.csr_array((np.ones(drawn.size), *places), shape=(rows, features))
    X.sum_duplicates()
    X.data /= np.repeat(np.sqrt((X.multiply(X)).sum(axis=1)), np.diff(X.indptr))
    return X, (X @ rng.normal(size=(features, classes))).argmax(axis=1)


X, Y = words(400, 500, 5)


def test_the_intercept_takes_small_steps():
    x, y = X.toarray(), np.where(Y == 1, 1.0, -1.0)
    w, b = np.zeros(500), 0.0
    for row, sign in zip(np.vstack([x, x]), np.tile(y, 2), strict=True):
        if sign * (w @ row + b) <= 0:
            w, b = w + sign * row, b + 0.01 * sign
    model = Perceptron(shuffle=False, max_iter=2, tol=None, keep="last").fit(X, Y == 1)
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-12)


@pytest.mark.parametrize("keep", ["best", "last", "average"])
@pytest.mark.parametrize("coding", ["ovr", "ovo", "joint"])
def test_how_rows_are_stored_does_not_matter(coding, keep):
    options = dict(multiclass=coding, keep=keep, max_iter=5, tol=None)
    dense, csr = (Perceptron(**options).fit(data, Y) for data in (X.toarray(), X))
    assert_array_equal(dense.coef_, csr.coef_)
    assert_array_equal(dense.intercept_, csr.intercept_)


@pytest.mark.parametrize("alpha", [1e-4, 0.1])  # the second lets a scale fall so low that it is multiplied in
@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
@pytest.mark.parametrize("coding", ["ovr", "joint", "binary"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_how_rows_are_stored_does_not_matter_to_a_penalty(coding, penalty, alpha, dtype):
    # Whole numbers bring scores that are 0 or at the margin, which quick sums leave open.
    rows = sparse.csr_array(np.round(4 * X.toarray()).astype(dtype))
    options = dict(penalty=penalty, alpha=alpha, margin=1.0, max_iter=5, tol=None)
    options["multiclass"] = "ovr" if coding == "binary" else coding
    classes = Y == 1 if coding == "binary" else Y
    dense, csr = (Perceptron(**options).fit(data, classes) for data in (rows.toarray(), rows))
    assert_array_equal(dense.coef_, csr.coef_)
    assert_array_equal(dense.intercept_, csr.intercept_)
    counts = ("mistakes", "margin_errors", "training_errors")
    assert [[h[c] for c in counts] for h in dense.history_] == [[h[c] for c in counts] for h in csr.history_]


def test_a_joint_fit_takes_whole_steps():
    model = Perceptron(multiclass="joint", max_iter=3, tol=None, keep="last").fit(X, Y)
    assert np.any(model.intercept_)
    assert_array_equal(model.intercept_, np.round(model.intercept_))


def test_what_rows_hold_decides():
    full = np.ones((30, 64))
    few = full * (np.arange(64) < 6)
    stored = sparse.csr_array(full)
    stored.data[:] = few.ravel()
    for data in (few, few.astype(np.float32), sparse.csr_array(few), stored):
        assert intercept_step(view_of(data), None) == 0.01
    assert intercept_step(view_of(full), None) == 1.0
    assert intercept_step(view_of(few[:, :63]), None) == 1.0
    assert intercept_step(view_of(0 * few), None) == 1.0
    mixed, weights = np.vstack([few, full]), np.repeat([20.0, 0.0], 30)
    assert intercept_step(view_of(mixed), None) == 1.0
    assert intercept_step(view_of(mixed), weights) == 0.01
    assert intercept_step(view_of(mixed), np.repeat([1.0, 2.0], 30)) == 1.0


def test_after_a_few_passes_as_good_as_the_peer():
    (X, y), few = words(1500, 2000, 8), dict(max_iter=4, tol=None)
    ours, theirs = (
        np.mean([np.mean(kind(random_state=seed, **few).fit(X, y).predict(X) != y) for seed in range(6)])
        for kind in (Perceptron, PeerPerceptron)
    )
    assert ours <= theirs + 0.03
