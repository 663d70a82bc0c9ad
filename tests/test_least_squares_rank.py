"""Least squares of dependent features, in many units, of bad condition: the shortest solution."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from oracles import one_hot_solution
from problems import samples
from separatrix import LeastSquaresClassifier

ROUTES = ("primal", "dual", "svd", "cg")


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("n", [60, 4])
def test_shortest_solution(route, n):
    X, y = samples(n, 4, 2)
    X = np.column_stack([X, X[:, 0], 2 * X[:, 1] - X[:, 2], np.full(n, 0.1), np.zeros(n)])
    model = LeastSquaresClassifier(solver=route, tol=1e-24).fit(X, y)
    coef, _ = one_hot_solution(X, y)
    assert_allclose(model.class_coef_, coef, atol=1e-7 * np.abs(coef).max())
    assert_allclose(model.class_coef_[:, 6:], 0, atol=1e-12 if route == "cg" else 0)


@pytest.mark.parametrize("factor", [1e-8, 1e-3, 1e3, 1e8])
@pytest.mark.parametrize("route", ["primal", "dual", "svd"])
def test_shortest_solution_in_the_original_units(factor, route):
    """A column and its multiple share the weight β as (β, cβ)/(1 + c²)."""
    X, y = samples(60, 3)
    alone, _ = one_hot_solution(X, y)
    doubled = np.column_stack([X, factor * X[:, 0]])
    model = LeastSquaresClassifier(solver=route).fit(doubled, y)
    beta = alone[:, 0] / (1 + factor**2)
    assert_allclose(model.coef_[:, 0], beta, rtol=1e-6, atol=1e-16)  # as small as rounding other weights
    assert_allclose(model.coef_[:, 3], factor * beta, rtol=1e-6)
    assert_allclose(model.coef_[:, 1:3], alone[:, 1:], rtol=1e-6)


@pytest.mark.parametrize("route", ["primal", "dual", "svd"])
def test_units_do_not_matter(route):
    X, y = samples(100, 6)
    units = np.array([1e-8, 1e-4, 1.0, 1e3, 1e5, 1e8])
    model = LeastSquaresClassifier(solver=route).fit(X * units, y)
    assert_allclose(model.coef_ * units, one_hot_solution(X, y)[0], rtol=1e-6)


def shortest_exactly(A, B):
    """Shortest W with A W = B in rational arithmetic: Aᵀ (A Aᵀ)⁻¹ B."""
    A = [[Fraction(x) for x in row] for row in A]
    rows = [
        [sum(a * b for a, b in zip(left, right, strict=True)) for right in A] + [Fraction(b) for b in target]
        for left, target in zip(A, B.tolist(), strict=True)
    ]
    n = len(rows)
    for k in range(n):
        pivot = rows[k][k]
        rows[k] = [x / pivot for x in rows[k]]
        for i in range(n):
            if i != k:
                factor = rows[i][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    V = [row[n:] for row in rows]
    columns = list(zip(*A, strict=True))
    return np.array(
        [
            [float(sum(a * v[c] for a, v in zip(column, V, strict=True))) for column in columns]
            for c in range(B.shape[1])
        ]
    )


@pytest.mark.parametrize("span", [0, 3, 8])
def test_wide_data_in_many_units(span):
    X, y = samples(7, 16)
    X = X * 10.0 ** np.linspace(-span, span, 16)
    model = LeastSquaresClassifier().fit(X, y)
    # Differences of rows have no rounding error in rational arithmetic, and no intercept.
    exact = [[Fraction(a) - Fraction(b) for a, b in zip(row, X[0], strict=True)] for row in X[1:]]
    T = np.eye(3)[y]
    coef = shortest_exactly(exact, T[1:] - T[0])
    assert_allclose(model.coef_, coef, rtol=1e-6, atol=1e-6 * np.abs(coef).min(axis=0).max())


def categories(n, sizes, seed=0):
    """Coded categories beside two numbers: within each, the columns sum to 1."""
    random = np.random.default_rng(seed)
    coded = [np.eye(size)[random.integers(0, size, n)] for size in sizes]
    return np.hstack([random.normal(size=(n, 2)), *coded]), np.arange(n) % 3


@pytest.mark.parametrize("route", ["primal", "svd"])
@pytest.mark.parametrize("kind", ["dense", "csr", "float32", "weighted"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_coded_categories(route, kind, fit_intercept):
    X, y = categories(400, [3, 5, 4])
    s = np.random.default_rng(1).integers(0, 3, 400).astype(float) if kind == "weighted" else None
    given = {"csr": sparse.csr_array(X), "float32": X.astype(np.float32)}.get(kind, X)
    model = LeastSquaresClassifier(solver=route, fit_intercept=fit_intercept).fit(given, y, sample_weight=s)
    coef, _ = one_hot_solution(given, y, weights=s, fit_intercept=fit_intercept)
    assert model.solver_ == route  # the normal equations see the rank themselves
    assert_allclose(model.class_coef_, coef, atol=1e-6 if kind == "float32" else 1e-12)


@pytest.mark.parametrize("route", ["primal", "svd"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_coded_categories_in_many_units(route, seed, make):
    """Solutions differ by (1/u_j) for all columns j of a category; the shortest is orthogonal to that."""
    sizes = [3, 5, 4]
    X, y = categories(4000, sizes, seed)
    units = 10.0 ** np.random.default_rng(seed).uniform(-8, 8, X.shape[1])
    model = LeastSquaresClassifier(solver=route).fit(make(X * units), y)
    coef, intercept = one_hot_solution(X, y)
    assert_allclose(model.class_scores(make(X * units)), X @ coef.T + intercept, atol=1e-9)
    own, begin = coef / units, 2
    for size in sizes:
        group = slice(begin, begin + size)
        along = 1 / units[group]
        own[:, group] -= np.outer(own[:, group] @ along, along) / (along @ along)
        begin += size
    assert_allclose(model.class_coef_, own, rtol=0, atol=1e-6 * np.abs(own).max())


@pytest.mark.parametrize("distance", [1e-6, 1e-7, 1e-8])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_near_dependence_is_no_dependence(distance, make):
    """Beside a true dependence there is a near one, which the scatter cannot tell from it."""
    random = np.random.default_rng(3)
    X = random.normal(size=(300, 4))
    y = (random.normal(size=300) > 0).astype(int)
    X = np.column_stack([X, X[:, 0], X[:, 1] + distance * random.normal(size=300)])
    model = LeastSquaresClassifier(solver="primal").fit(make(X), y)
    coef, _ = one_hot_solution(X, y)
    assert np.abs(coef[:, 5]).max() > 1e-3 / distance  # it matters
    assert_allclose(model.class_coef_, coef, atol=1e-6 * np.abs(coef).max())


@pytest.mark.parametrize("condition", [1e3, 1e5, 1e7])
@pytest.mark.parametrize("route", ["primal", "dual", "svd"])
def test_bad_condition(condition, route):
    random = np.random.default_rng(2)
    U, _ = np.linalg.qr(random.normal(size=(200, 5)))
    V, _ = np.linalg.qr(random.normal(size=(5, 5)))
    X, y = U * np.geomspace(1, 1 / condition, 5) @ V.T, np.arange(200) % 3
    coef, _ = one_hot_solution(X, y)
    model = LeastSquaresClassifier(solver=route).fit(X, y)
    assert_allclose(model.coef_, coef, rtol=0, atol=1e-6 * np.abs(coef).max())


def test_large_means():
    X, y = samples(300, 4, offset=0.0)
    X = np.round(X * 1024) / 1024
    near = LeastSquaresClassifier().fit(X, y)
    far = LeastSquaresClassifier().fit(X + 1e8, y)
    assert_allclose(far.coef_, near.coef_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2])
def test_a_class_of_one_sample(n):
    X, y = samples(30, 3)
    keep = np.r_[np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:n]]
    coef, _ = one_hot_solution(X[keep], y[keep])
    assert_allclose(LeastSquaresClassifier().fit(X[keep], y[keep]).coef_, coef, atol=1e-10)
