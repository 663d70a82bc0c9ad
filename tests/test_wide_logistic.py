"""Logistic regression on few samples of many features, solved in the coordinates of the samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression as Reference

from separatrix.certificate import Certificate
from separatrix.data.memory import view_of
from separatrix.models._start import judged
from separatrix.models.logistic import LogisticRegression
from separatrix.solvers import quasi_newton
from separatrix.solvers._sample_coordinates import SampleCoordinates


def _data(n: int, d: int, classes: int, *, mean: float = 0.0, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    return rng.normal(size=(n, d)) + 0.1 * rng.normal(size=(classes, d))[y] + mean, y


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_agrees_with_scikit_learn(classes: int, intercept: bool) -> None:
    X, y = _data(60, 4000, classes)
    model = LogisticRegression(C=0.1, tol=1e-10, fit_intercept=intercept).fit(X, y)
    other = Reference(C=0.1, tol=1e-10, max_iter=5000, fit_intercept=intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)
    if classes == 2:
        np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-5)
    assert model.certificate_.relative_gap <= 1e-10
    assert len(model.history_) == model.n_iter_[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [90, 400])
def test_same_solution_as_without_coordinates(dtype: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = _data(n, 2 * n + 1500, 3, mean=5.0)
    X = X.astype(dtype)
    weights = np.random.default_rng(1).integers(0, 3, n).astype(float)
    weights[:3] = 1.0
    fits = []
    for few in (1000, 0):
        monkeypatch.setattr(quasi_newton, "_FEW", few)
        fits.append(LogisticRegression(C=0.01, tol=1e-7).fit(X, y, sample_weight=weights))
    through, directly = fits
    assert through.coef_.dtype == dtype
    assert through.certificate_.status == "converged"
    assert through.certificate_.primal == pytest.approx(directly.certificate_.primal, rel=3e-7)
    np.testing.assert_allclose(through.decision_function(X), directly.decision_function(X), atol=5e-3)


def test_samples_that_depend_on_each_other() -> None:
    X, y = _data(40, 4000, 2)
    twice = LogisticRegression(tol=1e-10).fit(np.vstack([X, X]), np.concatenate([y, y]))
    once = LogisticRegression(C=2.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(twice.coef_, once.coef_, atol=1e-6)


def test_warm_start_has_nothing_left_to_do() -> None:
    X, y = _data(80, 3000, 2)
    model = LogisticRegression(warm_start=True, tol=1e-6).fit(X, y)
    before = model.coef_.copy()
    model.fit(X, y)
    assert model.n_iter_[0] <= 3
    np.testing.assert_allclose(model.coef_, before, atol=1e-5)


@pytest.mark.parametrize("solver", ["newton", "quasi-newton", "lbfgs", "newton-cholesky"])
def test_every_name_of_a_method(solver: str) -> None:
    X, y = _data(50, 3000, 2)
    model = LogisticRegression(solver=solver, tol=1e-8).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-8


def test_max_iter_is_obeyed() -> None:
    X, y = _data(200, 3000, 3)
    with pytest.warns(UserWarning, match="failed to converge"):
        model = LogisticRegression(max_iter=2).fit(X, y)
    assert model.n_iter_[0] == 2
    assert model.certificate_.primal == pytest.approx(model.history_[-1]["objective"], rel=1e-6)


@settings(deadline=None, max_examples=25)
@given(n=st.integers(1, 12), extra=st.integers(0, 30), rank=st.integers(1, 12), seed=st.integers(0, 2**16))
@example(n=2, extra=24, rank=2, seed=28377)
def test_coordinates_keep_inner_products_and_weights(n: int, extra: int, rank: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = n + extra
    X = rng.normal(size=(n, min(rank, n))) @ rng.normal(size=(min(rank, n), d))
    mean = X.mean(axis=0)
    samples = SampleCoordinates(view_of(X), mean)
    centred = X - mean
    assert samples.rows.shape[1] <= min(rank, n)
    scale = max(1.0, float(np.abs(centred @ centred.T).max()))
    np.testing.assert_allclose(samples.rows @ samples.rows.T, centred @ centred.T, atol=1e-9 * scale)
    V = rng.normal(size=(2, samples.rows.shape[1]))
    W = samples.weights(V)
    np.testing.assert_allclose(np.linalg.norm(W), np.linalg.norm(V), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(centred @ W.T, samples.rows @ V.T, atol=1e-6 * scale)
    np.testing.assert_allclose(samples.coordinates(W), V, atol=1e-4)


def test_products_in_single_precision_lead_the_way() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3000)) + 5.0
    exact, single = (SampleCoordinates(view_of(X), X.mean(axis=0), single=s).rows for s in (False, True))
    gram = (X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T
    assert np.abs(exact @ exact.T - gram).max() < 1e-9 * gram.max()
    assert 0 < np.abs(single @ single.T - gram).max() < 2e-5 * gram.max()


@pytest.mark.parametrize("C", [10.0, 1e3])
@pytest.mark.parametrize("seed", [2, 3, 5, 7, 10, 13])
def test_a_fit_that_ends_by_its_duality_gap_has_it(seed: int, C: float) -> None:
    # Of samples that are nearly sure the intercept bends the objective little, and may leave much to gain.
    random = np.random.default_rng(seed)
    n, d, K = 60, 500, 3 + seed % 3
    X = sparse.csr_array((random.random((n, d)) < np.geomspace(2 / n, 0.5, d)).astype(float))
    y = random.integers(0, K, n)
    y[:K] = range(K)
    certificate = LogisticRegression(C=C, solver="quasi-newton").fit(X, y).certificate_
    assert certificate.status == "converged"
    assert certificate.relative_gap <= 1e-4


@pytest.mark.parametrize("K", [2, 3])
def test_few_samples_of_features_of_all_sizes(K: int) -> None:
    random = np.random.default_rng(K)
    X = random.standard_normal((60, 800)) * 10 ** random.uniform(-4, 4, 800)
    y = np.arange(60) % K
    certificate = LogisticRegression(C=1e4, tol=1e-6, max_iter=100).fit(X, y).certificate_
    assert certificate.status == "converged"
    assert certificate.relative_gap <= 1e-6


@pytest.mark.parametrize(
    ("dtype", "gap", "remedy"),
    [
        (np.float64, 7.5e-4, "above tol=1e-06: rounding errors are larger, scale the features"),
        (np.float32, 7.5e-4, "above tol=1e-06: single precision ends here, pass X as float64"),
        (np.float64, 9e-7, None),
    ],
)
def test_a_fit_that_finds_no_way_further_down_is_not_called_converged(dtype, gap, remedy) -> None:
    ended = Certificate("converged", "no way down", 3, 0.1, relative_gap=gap)
    found = judged(ended, 1e-6, dtype, 1000)
    if remedy is None:
        assert found == ended
    else:
        assert found.status == "max_iter"
        assert remedy in found.message
