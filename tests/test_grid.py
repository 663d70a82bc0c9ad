"""Whole numbers of a fraction: which data are such, and what least squares of them gives."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from separatrix import LeastSquaresClassifier, RidgeClassifier, _hot
from separatrix.data.memory import view_of
from separatrix.data.threads import at_most
from separatrix.data.view import DataView
from separatrix.solvers import grid


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("values", "steps"),
    [
        (np.arange(-50, 400), 1),
        (np.zeros(9), 1),
        (np.array([]), 1),
        (np.arange(-8, 9) / 16, 16),
        (np.arange(-255, 256) / 255, 255),
        (np.array([40, 51, 85]) / 255, 255),
        (np.array([3.35, 12.01, 199.99]), 100),
        (np.arange(2000) / 1000, 1000),
        (np.array([1 / 3, 0.5]), 6),
        (np.array([1 / 32749, 0.5]), None),
        (np.array([0.1, 1e-9]), None),
        (np.array([1.0, 1e9]), None),
        (np.array([0.5, np.nan]), None),
        (np.array([0.5, np.inf]), None),
        (np.random.default_rng(0).normal(size=500), None),
        (np.random.default_rng(0).random(500), None),
        (np.sqrt(np.arange(500)), None),
    ],
)
def test_common_steps(values, steps, dtype):
    assert grid.common_steps(values.astype(dtype)) == steps


def test_which_data_are_worth_it(monkeypatch):
    X = np.arange(70 * 900).reshape(900, 70) % 200 / 100
    assert grid.grid_of(view_of(X), None) is None  # few
    monkeypatch.setattr(grid, "_LARGE", 0)
    found = grid.grid_of(view_of(X), None)
    assert (found.steps, found.blur) == (100, 0.0)
    assert 0 < grid.grid_of(view_of(X.astype(np.float32)), None).blur < 2e-7
    assert grid.grid_of(view_of((X * 25).astype(np.float32)), None).blur == 0.0  # quarters
    assert grid.grid_of(view_of(X), np.ones(900)) is None
    assert grid.grid_of(view_of(X[:, :60]), None) is None
    assert grid.grid_of(view_of(np.asfortranarray(X)), None) is None


@pytest.fixture
def kinds(monkeypatch):
    """Lets few data count as many; lists what is summed how."""
    if _hot.instruction_set() not in ("baseline", "v3", "v4"):
        pytest.skip("products of 16-bit integers are made on x86 only")
    monkeypatch.setattr(grid, "_LARGE", 0)
    kinds, products = [], DataView.class_products

    def spy(self, *given, precision="double", **options):
        kinds.append(precision)
        return products(self, *given, precision=precision, **options)

    monkeypatch.setattr(DataView, "class_products", spy)
    return kinds


def make(dtype, n=5000, d=70, steps=255):
    random = np.random.default_rng(7)
    y = np.arange(n) % 3
    number = random.poisson(random.gamma(2.0, 20.0, d), size=(n, d)) + 9 * (random.random((n, 1)) < 0.5)
    number[:, :3] += 20 * np.eye(3, dtype=int)[y]
    return (np.minimum(number, 255) / steps).astype(dtype), y


def optimum(X, T, alpha, fit_intercept):
    X = X.astype(np.float64)
    mean, t = (A.mean(axis=0) if fit_intercept else np.zeros(A.shape[1]) for A in (X, T))
    A = np.vstack([X - mean, np.sqrt(alpha) * np.eye(X.shape[1])])
    W = np.linalg.lstsq(A, np.vstack([T - t, np.zeros((X.shape[1], T.shape[1]))]), rcond=None)[0]
    b = t - mean @ W
    return W, b, objective(X, T, alpha, W, b)


def objective(X, T, alpha, W, b):
    return np.square(T - X.astype(np.float64) @ W - b).sum() + alpha * np.square(W.astype(np.float64)).sum()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("steps", [1, 64, 255])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_sums_need_no_correction(kinds, dtype, alpha, steps, fit_intercept):
    X, y = make(dtype, steps=steps)
    T = np.eye(3)[y]
    W, b, best = optimum(X, T, alpha, fit_intercept)
    model = LeastSquaresClassifier(alpha=alpha, fit_intercept=fit_intercept, solver="primal").fit(X, y)
    assert kinds == ["whole"]
    assert model.n_iter_ == 1
    tol = 1e-6 if dtype == np.float32 else 1e-10
    assert_allclose(model.coef_.T, W, rtol=0, atol=tol * np.abs(W).max())
    assert_allclose(model.intercept_, b, rtol=0, atol=tol)
    certificate = model.certificate_
    reached = objective(X, T, alpha, model.coef_.T.astype(np.float64), model.intercept_.astype(np.float64))
    assert certificate.status == "converged"
    assert_allclose(certificate.primal, reached, rtol=1e-7 if dtype == np.float32 else 1e-12)
    assert reached - best <= certificate.gap + 1e-12 * best
    assert certificate.relative_gap < (1e-6 if dtype == np.float32 else 1e-12)
    residual = T - X.astype(np.float64) @ model.coef_.T.astype(np.float64) - model.intercept_
    centred = X - X.mean(axis=0, dtype=np.float64) if fit_intercept else X.astype(np.float64)
    slope = centred.T @ residual - alpha * model.coef_.T.astype(np.float64)
    assert np.abs(slope).max() <= certificate.kkt_violation * (1 + 1e-6) + 1e-9 * np.abs(centred.T @ T).max()


def test_one_value_off_the_grid(kinds):
    X, y = make(np.float64)
    X[4321, 5] += 1e-6
    W = optimum(X, np.eye(3)[y], 1.0, True)[0]
    model = LeastSquaresClassifier(alpha=1.0, solver="primal").fit(X, y)
    assert kinds[0] == "whole"
    assert kinds[-1] != "whole"
    assert_allclose(model.coef_.T, W, rtol=0, atol=1e-10 * np.abs(W).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nearly_dependent_features_are_corrected_on_the_samples(kinds, dtype):
    X, y = make(np.float64)
    X[:, 9] = X[:, 8]
    X[::1000, 9] += 2 / 255
    X = X.astype(dtype)
    W, _, best = optimum(X, np.eye(3)[y], 1e-4, True)
    model = LeastSquaresClassifier(alpha=1e-4, solver="primal").fit(X, y)
    assert kinds == ["whole"]
    assert (model.certificate_.training_errors is None) == (dtype == np.float64)
    assert_allclose(model.coef_.T, W, rtol=0, atol=(1e-6 if dtype == np.float32 else 1e-9) * np.abs(W).max())
    assert abs(model.certificate_.primal - best) <= 1e-7 * best


@pytest.mark.parametrize("steps", [1, 255])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dependent_features_without_a_penalty(kinds, dtype, steps):
    X, y = make(dtype, steps=steps)
    X[:, 9], X[:, 10] = X[:, 8], X[0, 10]
    W = optimum(X, np.eye(3)[y], 0.0, True)[0]
    model = LeastSquaresClassifier(solver="primal").fit(X, y)
    assert kinds == ["whole"]
    # Samples that are not quite on the grid, or whose means are large, are judged themselves.
    assert (model.certificate_.training_errors is None) == (dtype == np.float64 and steps == 255)
    assert_allclose(model.coef_.T, W, rtol=0, atol=(2e-6 if dtype == np.float32 else 1e-9) * np.abs(W).max())


def test_not_a_number_is_blamed(kinds):
    X, y = make(np.float32)
    X[4321, 5] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*4321"):
        RidgeClassifier().fit(X, y)


def test_the_same_for_any_number_of_threads(kinds):
    X, y = make(np.float32, n=40_000)
    found = []
    for threads in (1, 2):
        with at_most(threads):
            found.append(RidgeClassifier().fit(X, y))
    assert kinds == ["whole", "whole"]
    assert_array_equal(found[0].coef_, found[1].coef_)
