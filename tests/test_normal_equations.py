"""Normal equations from products of four digits: the solution, its proof, and where they give way."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from separatrix import LeastSquaresClassifier, RidgeClassifier
from separatrix.data.threads import at_most
from separatrix.data.view import DataView
from separatrix.solvers import normal_equations

CLASSES = 3


@pytest.fixture
def sums(monkeypatch):
    """Lets few data be summed with four digits; lists what is summed how."""
    monkeypatch.setattr(normal_equations, "_LARGE", 0)
    monkeypatch.setattr(normal_equations, "_MANY_COARSE", 8)
    monkeypatch.setattr(normal_equations, "_MORE_COARSE", 0)
    kinds, products = [], DataView.class_products

    def spy(self, *given, precision="double", **options):
        kinds.append("coarse" if precision == "coarse" else "exact")
        return products(self, *given, precision=precision, **options)

    monkeypatch.setattr(DataView, "class_products", spy)
    return kinds


def solution(X, T, alpha, s, fit_intercept):
    """Shortest solution by lstsq on the weighted centred data above the penalty's rows."""
    X = X.astype(np.float64)
    mean, t = (np.average(A, axis=0, weights=s) if fit_intercept else np.zeros(A.shape[1]) for A in (X, T))
    A, B = np.sqrt(s)[:, None] * (X - mean), np.sqrt(s)[:, None] * (T - t)
    A = np.vstack([A, np.sqrt(alpha) * np.eye(X.shape[1])])
    W = np.linalg.lstsq(A, np.vstack([B, np.zeros((X.shape[1], T.shape[1]))]), rcond=None)[0]
    return W.T, t - mean @ W


def make(kind, n=900, d=40):
    random = np.random.default_rng(5)
    y = np.arange(n) % CLASSES
    X = random.normal(size=(n, d)) + 0.5 * np.eye(CLASSES, d)[y]
    if kind == "correlated":
        X = X @ (np.eye(d) + 0.9 * np.eye(d, k=1)) * np.logspace(-6, 6, d)
    elif kind == "outliers":
        X = random.standard_cauchy(size=(n, d))
    elif kind == "huge means":
        X += 1e4
    elif kind == "rare":
        X[:, :10] = random.random((n, 10)) < 0.01
        X[0, :10] = 1.0
    elif kind == "one of a class":
        y = np.where(np.arange(n) == 7, 2, np.arange(n) % 2)
    return X, y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["plain", "correlated", "outliers", "huge means", "rare", "one of a class"])
def test_four_digits_lead_to_the_closed_form(sums, kind, fit_intercept, weighted, dtype):
    X, y = make(kind)
    if kind == "huge means" and not fit_intercept:
        return  # the condition is bad, which is another test
    X = X.astype(dtype)
    s = np.random.default_rng(1).gamma(0.5, size=len(y)) + 0.01 if weighted else np.ones(len(y))
    alpha = 2.0
    coef, intercept = solution(X, np.eye(CLASSES)[y], alpha, s, fit_intercept)
    model = LeastSquaresClassifier(alpha=alpha, fit_intercept=fit_intercept, solver="primal")
    model.fit(X, y, sample_weight=s if weighted else None)
    size = X.astype(np.float64).std(axis=0)  # units in which weights compare
    tol = 1e-9 if dtype == np.float64 else 2e-6
    assert_allclose(model.coef_ * size, coef * size, rtol=0, atol=tol * np.abs(coef * size).max())
    assert_allclose(model.intercept_, intercept, rtol=tol, atol=tol * max(1.0, np.abs(X @ coef.T).max()))
    assert sums == ["coarse"]
    certificate = model.certificate_
    assert certificate.status == "converged"
    E = np.eye(CLASSES)[y] - X.astype(np.float64) @ model.coef_.T.astype(np.float64) - model.intercept_
    primal = float(s @ np.square(E).sum(axis=1) + alpha * np.square(model.coef_.astype(np.float64)).sum())
    assert_allclose(certificate.primal, primal, rtol=1e-6 if dtype == np.float32 else 1e-10)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_ridge_with_class_weights(sums, class_weight):
    X, y = make("correlated")
    y = np.where(y == 2, 0, y)
    hasty = RidgeClassifier(class_weight=class_weight, solver="cholesky").fit(X, y)
    assert sums == ["coarse"]
    exact = RidgeClassifier(class_weight=class_weight, solver="svd").fit(X, y)
    expected = exact.coef_ * X.std(axis=0)
    assert_allclose(hasty.coef_ * X.std(axis=0), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_dependent_features_are_summed_again(sums):
    X, y = make("plain")
    X[:, 3] = X[:, 1] - 2 * X[:, 2]
    X[:, 4] = 5.0
    coef, intercept = solution(X, np.eye(CLASSES)[y], 0.0, np.ones(len(y)), True)
    model = LeastSquaresClassifier(solver="primal").fit(X, y)
    assert sums[:2] == ["coarse", "exact"]
    assert_allclose(model.coef_, coef, atol=1e-10)
    assert_allclose(model.intercept_, intercept, atol=1e-10)


def test_a_constant_feature_is_no_reason_to_sum_again(sums):
    X, y = make("plain")
    X[:, 4] = 0.0
    model = LeastSquaresClassifier(solver="primal").fit(X, y)
    assert sums == ["coarse"]
    assert_array_equal(model.coef_[:, 4], 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slow_corrections_end_in_exact_sums(sums, monkeypatch, dtype):
    X, y = make("plain")
    X = X.astype(dtype)
    coef, _ = solution(X, np.eye(CLASSES)[y], 0.0, np.ones(len(y)), True)
    products = DataView.class_products

    def poor(self, *given, precision, **options):
        scatter, by_class = products(self, *given, precision=precision, **options)
        return scatter * (1 + 0.04 * (precision == "coarse") * np.eye(len(scatter))), by_class

    monkeypatch.setattr(DataView, "class_products", poor)
    model = LeastSquaresClassifier(solver="primal").fit(X, y)
    assert sums[0] == "coarse"
    assert sums[-1] == "exact"
    assert model.certificate_.status == "converged"
    assert_allclose(model.coef_, coef, atol=(1e-10 if dtype == np.float64 else 1e-6) * np.abs(coef).max())


def test_the_gap_holds_on_the_way(sums):
    X, y = make("correlated")
    X = X / X.std(axis=0)
    coef, intercept = solution(X, np.eye(CLASSES)[y], 1.0, np.ones(len(y)), True)
    best = np.square(np.eye(CLASSES)[y] - X @ coef.T - intercept).sum() + np.square(coef).sum()
    with pytest.warns(UserWarning, match="max_iter"):
        model = LeastSquaresClassifier(alpha=1.0, solver="primal", max_iter=1).fit(X, y)
    assert sums == ["coarse"]
    assert model.certificate_.primal > best
    assert model.certificate_.dual <= best * (1 + 1e-14)


def test_the_same_for_any_number_of_threads(sums):
    X, y = make("plain", n=40_000)
    found = []
    for n_jobs in (1, 2, 3):
        with at_most(n_jobs):
            found.append(RidgeClassifier().fit(X.astype(np.float32), y).coef_)
    assert set(sums) == {"coarse"}
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_named(sums, bad):
    X, y = make("plain")
    X[700, 30] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        RidgeClassifier().fit(X, y)


def test_values_too_small_for_their_squares(sums):
    X, y = make("plain")
    X = (X * 1e-40).astype(np.float32)
    message = "do not fit in float32"
    with pytest.raises(ValueError, match=message), np.errstate(over="ignore", invalid="ignore"):
        LeastSquaresClassifier(solver="primal").fit(X, y)
    assert sums == ["coarse", "exact"]
