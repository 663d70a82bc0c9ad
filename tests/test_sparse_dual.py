"""Ridge in the samples' coordinates, preconditioned in single precision: against dense closed forms."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from separatrix import LeastSquaresClassifier, RidgeClassifier, _hot
from separatrix.solvers import conjugate_gradient, least_squares, sample_factor, sparse_dual
from separatrix.solvers.sample_factor import SampleFactor


@pytest.fixture(autouse=True)
def _few_samples_are_many(monkeypatch):
    monkeypatch.setattr(least_squares, "_MANY_SAMPLES", 1)


def counts(n=90, d=400, seed=0, rate=6.0):
    """Bags of words with raw counts: few words are in nearly all samples, most in hardly any."""
    random = np.random.default_rng(seed)
    words = np.minimum(random.zipf(1.3, size=(n, 40)) - 1, d - 1)
    rows = np.repeat(np.arange(n), 40)
    values = np.ceil(random.gamma(0.2, rate, words.size))
    X = sparse.csr_array(sparse.coo_array((values, (rows, words.ravel())), shape=(n, d)))
    X.sum_duplicates()
    return X, np.arange(n) % 3


def exact(X, T, alpha, weights=None, fit_intercept=True):
    """Solve the dense dual system in double precision; return W, b and the objective."""
    X = X.toarray().astype(np.float64)
    s = np.ones(len(T)) if weights is None else weights
    mean, t = (np.average(A, axis=0, weights=s) if fit_intercept else np.zeros(A.shape[1]) for A in (X, T))
    A, Z = np.sqrt(s)[:, None] * (X - mean), np.sqrt(s)[:, None] * (T - t)
    W = A.T @ np.linalg.solve(A @ A.T + alpha * np.eye(len(A)), Z)
    return W.T, t - mean @ W, np.square(Z - A @ W).sum() + alpha * np.square(W).sum()


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_products_of_sparse_rows(index):
    X, _ = counts(31)
    parts = [
        (A.data, A.indices.astype(index), A.indptr.astype(index)) for A in (X[5:11], sparse.csr_array(X.T))
    ]
    out = np.ones((6, 17))
    _hot.add_gram_rows(*parts[0], *parts[1], 9, out)
    assert_allclose(out, 1.0 + (X[5:11] @ X[9:26].T).toarray(), rtol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 63, 64, 65, 90, 131])
@pytest.mark.parametrize("ridges", [(0.0,), (1e-3,)])
@pytest.mark.parametrize(("rows", "frequent"), [(256, 0.1), (7, 0.1), (16, 2.0), (16, -1.0)])
def test_factor_solves_roughly(n, ridges, rows, frequent, monkeypatch):
    monkeypatch.setattr(sample_factor, "_RIDGES", ridges)
    monkeypatch.setattr(sample_factor, "_ROWS", rows)
    monkeypatch.setattr(sample_factor, "_FREQUENT", frequent)
    X, _ = counts(n)
    random = np.random.default_rng(n)
    root, mean = random.uniform(0, 2, n), np.asarray(X.mean(axis=0)).ravel()
    factor = SampleFactor(X, root, mean, 2.0, lambda: False)
    assert factor.sound
    A = root[:, None] * (X.toarray() - mean)
    M = A @ A.T + 2.0 * np.eye(n)
    M += ridges[0] * np.diag(np.diag(M))
    B = random.normal(size=(n, 4))
    assert_allclose(M @ factor.solve(B), B, atol=2e-3)


@pytest.mark.parametrize("n", [89, 90])
@pytest.mark.parametrize("kind", ["plain", "float32", "weighted", "no intercept", "two classes"])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e4])
def test_agrees_with_a_dense_solution(n, kind, alpha):
    X, y = counts(n)
    y = y % 2 if kind == "two classes" else y
    X = X.astype(np.float32) if kind == "float32" else X
    s = np.random.default_rng(1).integers(0, 3, n).astype(float) if kind == "weighted" else None
    intercept = kind != "no intercept"
    model = RidgeClassifier(alpha=alpha, solver="cholesky", fit_intercept=intercept).fit(X, y, s)
    T = 2.0 * np.eye(3)[y] - 1 if y.max() > 1 else (2.0 * y - 1)[:, None]
    W, b, objective = exact(X, T, alpha, s, intercept)
    assert model.solver_ == "cholesky"
    assert "measure" in model.history_[0]  # by the iterations tested here
    rtol = 1e-6 if kind == "float32" else 1e-9
    assert_allclose(np.atleast_2d(model.coef_), W, atol=rtol * np.abs(W).max())
    if intercept:
        assert_allclose(model.intercept_, b, atol=rtol * 10)
    certificate = model.certificate_
    assert certificate.status == "converged"
    assert_allclose(certificate.primal, objective, rtol=1e-9)
    assert certificate.dual <= objective * (1 + 1e-12)
    assert certificate.relative_gap < 1e-9


def test_classes_whose_targets_depend_on_each_other():
    X, y = counts(150)
    y = np.arange(150) % 25  # 24 directions, which are fewer registers than 25 columns
    model = RidgeClassifier(alpha=0.5, solver="cholesky").fit(X, y)
    W, b, objective = exact(X, 2.0 * np.eye(25)[y] - 1, 0.5)
    assert_allclose(model.coef_, W, atol=1e-9 * np.abs(W).max())
    assert_allclose(model.intercept_, b, atol=1e-8)
    assert_allclose(model.certificate_.primal, objective, rtol=1e-9)


def test_the_bound_holds_wherever_the_fit_ends():
    X, y = counts(120)
    optimum = exact(X, np.eye(3)[y], 1e-2)[2]
    gaps = []
    for most in (1, 2, 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LeastSquaresClassifier(alpha=1e-2, solver="dual", max_iter=most).fit(X, y)
        certificate = model.certificate_
        assert certificate.primal >= optimum * (1 - 1e-12)
        assert certificate.dual <= optimum * (1 + 1e-12)
        gaps.append(certificate.gap)
    assert gaps[0] > gaps[-1]


def test_double_precision_takes_over(monkeypatch):
    """A penalty far below what single precision sees of these counts."""
    monkeypatch.setattr(sparse_dual, "_PATIENCE", 3)
    X, y = counts(90, 4000)
    X = sparse.csr_array(X + sparse.csr_array(([1e4], ([0], [0])), shape=X.shape))
    model = RidgeClassifier(alpha=1e-5, solver="cholesky").fit(X, y)
    W, _, objective = exact(X, 2.0 * np.eye(3)[y] - 1, 1e-5)
    assert "objective" in model.history_[-1]
    assert len(model.history_) >= 3
    assert_allclose(model.certificate_.primal, objective, rtol=1e-6)
    assert_allclose(model.coef_, W, atol=1e-6 * np.abs(W).max())


def test_a_singular_factor_is_helped(monkeypatch):
    """Copies of samples and a tiny penalty: no factor without a ridge."""
    X, y = counts(60)
    X, y = sparse.csr_array(sparse.vstack([X, X, X])), np.tile(y, 3)
    monkeypatch.setattr(sparse_dual, "_PATIENCE", 400)
    model = LeastSquaresClassifier(alpha=1e-4, solver="dual").fit(X, y)
    W, _, objective = exact(X, np.eye(3)[y], 1e-4)
    assert_allclose(model.class_coef_, W, atol=1e-6 * np.abs(W).max())
    assert_allclose(model.certificate_.primal, objective, rtol=1e-8)


def test_time_limit_leaves_a_model():
    X, y = counts(200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RidgeClassifier(solver="cholesky", max_time=1e-9).fit(X, y)
    assert model.certificate_.status == "max_time"
    assert np.all(np.isfinite(model.coef_))


def test_a_factor_that_fails_leaves_the_rest_to_another_route(monkeypatch):
    """Where none is found, small data go to double precision and large ones to iterations on the features."""
    never = property(lambda self: False, lambda self, value: None)
    monkeypatch.setattr(sample_factor.SampleFactor, "sound", never, raising=False)
    X, y = counts(90)
    W, _, _ = exact(X, 2.0 * np.eye(3)[y] - 1, 1.0)
    model = RidgeClassifier(solver="cholesky").fit(X, y)
    assert_allclose(model.coef_, W, atol=1e-9 * np.abs(W).max())
    monkeypatch.setattr(least_squares, "LARGEST_DOUBLE", 10)
    model = RidgeClassifier(solver="cholesky", tol=1e-8).fit(X, y)
    assert model.solver_ == "sparse_cg"
    assert_allclose(model.coef_, W, atol=1e-5 * np.abs(W).max())


def test_solutions_that_are_not_finite_end_in_double_precision(monkeypatch):
    X, y = counts(90)
    monkeypatch.setattr(SampleFactor, "solve", lambda self, R: np.full_like(R, np.nan))
    model = RidgeClassifier(solver="cholesky").fit(X, y)
    W, _, objective = exact(X, 2.0 * np.eye(3)[y] - 1, 1.0)
    assert_allclose(model.coef_, W, atol=1e-9 * np.abs(W).max())
    assert model.certificate_.status == "converged"
    assert_allclose(model.certificate_.primal, objective, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_classes_that_need_many_iterations_share_directions(weighted):
    X, _ = counts(150)
    y = np.arange(150) % 20  # two groups of columns
    s = np.random.default_rng(2).uniform(0.5, 2, 150) if weighted else None
    W, b, objective = exact(X, 2.0 * np.eye(20)[y] - 1, 1e-2, s)
    lengths = {}
    for hard in (16, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(conjugate_gradient, "_HARD", hard)
            model = RidgeClassifier(alpha=1e-2, solver="sparse_cg", tol=1e-9).fit(X, y, s)
        lengths[hard] = len(model.history_)
        assert model.certificate_.status == "converged"
        assert_allclose(model.certificate_.primal, objective, rtol=1e-9)
        assert_allclose(model.coef_, W, atol=1e-6 * np.abs(W).max())
        assert_allclose(model.intercept_, b, atol=1e-5)
    assert 16 < lengths[16] < 0.7 * lengths[10**9]


@pytest.mark.parametrize("most", [4.0, 1e9])
def test_a_few_columns_foretell_too_many_iterations(most, monkeypatch):
    X, _ = counts(150)
    y = np.arange(150) % 20  # columns 0 … 15 and 16 … 19
    W, b, objective = exact(X, 2.0 * np.eye(20)[y] - 1, 1.0)
    monkeypatch.setattr(least_squares, "choose_route", lambda problem: "cg, or dual")
    monkeypatch.setattr(least_squares, "_closed_form", lambda problem: ("dual", most))
    widths, curve = [], conjugate_gradient.ConjugateGradient._curve

    def spy(self, group, alpha, dtype):
        widths.append(group.P.shape[1])
        return curve(self, group, alpha, dtype)

    monkeypatch.setattr(conjugate_gradient.ConjugateGradient, "_curve", spy)
    model = RidgeClassifier(alpha=1.0, tol=1e-7).fit(X, y)
    assert (set(widths) == {4}) == (most == 4.0)
    assert ("conjugate" in model.certificate_.message) == (most != 4.0)
    assert model.certificate_.status == "converged"
    assert_allclose(model.certificate_.primal, objective, rtol=1e-9)
    assert_allclose(model.coef_, W, atol=1e-6 * np.abs(W).max())
    assert_allclose(model.intercept_, b, atol=1e-5)
