"""Least squares: every route against closed forms, lstsq and scikit-learn."""

from __future__ import annotations

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeClassifier as PeerRidge

from separatrix import LeastSquaresClassifier, RidgeClassifier
from separatrix.data.memory import view_of
from separatrix.solvers import conjugate_gradient, least_squares
from separatrix.solvers.least_squares import choose_route
from separatrix.solvers.regression import Regression
from sklearn_checks import checked

ROUTES = ("primal", "dual", "svd", "cg")
SOLVERS = ("auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga")
IRIS, SPECIES = load_iris(return_X_y=True)

ESTIMATORS = (
    LeastSquaresClassifier(),
    LeastSquaresClassifier(solver="cg", alpha=0.1, tol=1e-20),
    RidgeClassifier(),
    RidgeClassifier(solver="sparse_cg", tol=1e-7),
)


def excuse(estimator, name):
    if name == "check_non_transformer_estimators_n_iter" and "RidgeClassifier()" in str(estimator):
        return "a closed form has no iterations: n_iter_ is None, as in scikit-learn's RidgeClassifier"
    return None


@checked(ESTIMATORS, excuse)
def test_check_estimator(estimator, check):
    check(estimator)


def samples(n, d, n_classes=3, seed=0, offset=2.0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return random.normal(size=(n, d)) + offset + 0.5 * np.eye(n_classes, d)[y], y


def one_hot_solution(X, y, alpha=0.0, weights=None, fit_intercept=True):
    """Shortest W, and b, by lstsq on the weighted centred data, one row per class."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    T = np.eye(y.max() + 1)[y]
    s = np.ones(len(y)) if weights is None else weights
    mean, t = (np.average(A, axis=0, weights=s) if fit_intercept else np.zeros(A.shape[1]) for A in (X, T))
    A, B = np.sqrt(s)[:, None] * (X - mean), np.sqrt(s)[:, None] * (T - t)
    A = np.vstack([A, np.sqrt(alpha) * np.eye(X.shape[1])])
    B = np.vstack([B, np.zeros((X.shape[1], T.shape[1]))])
    W = np.linalg.lstsq(A, B, rcond=None)[0]
    return W.T, t - mean @ W


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("shape", [(90, 6), (20, 40)])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["dense", "csr", "float32", "weighted"])
def test_routes_agree_with_lstsq(route, shape, alpha, fit_intercept, kind):
    X, y = samples(*shape)
    X = {"csr": sparse.csr_array, "float32": np.float32}.get(kind, np.asarray)(X)
    weights = None
    if kind == "weighted":
        weights = np.random.default_rng(1).integers(0, 3, shape[0]) + 0.5 * (y == 0)
        weights[:3] = 1
    model = LeastSquaresClassifier(alpha=alpha, fit_intercept=fit_intercept, solver=route, tol=1e-20)
    model.fit(X, y, sample_weight=weights)
    coef, intercept = one_hot_solution(X, y, alpha, weights, fit_intercept)
    tolerance = 1e-5 if kind == "float32" else 1e-8
    assert_allclose(model.coef_, coef, rtol=0, atol=tolerance * np.abs(coef).max())
    assert_allclose(model.intercept_, intercept, rtol=0, atol=10 * tolerance)
    assert model.coef_.dtype == (np.float32 if kind == "float32" else np.float64)
    assert model.certificate_.status == "converged"


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("shape", [(80, 5), (25, 60)])
def test_ridge_agrees_with_scikit_learn(solver, n_classes, shape):
    X, y = samples(*shape, n_classes)
    weights = np.random.default_rng(1).uniform(0.5, 2, shape[0])
    for fit_intercept in (True, False):
        keywords = {"alpha": 0.3, "class_weight": "balanced", "fit_intercept": fit_intercept}
        ours = RidgeClassifier(solver=solver, tol=1e-10, **keywords).fit(X, y, weights)
        peer = PeerRidge(solver="svd", **keywords).fit(X, y, weights)
        assert_allclose(ours.coef_, peer.coef_, rtol=1e-7, atol=1e-9)
        assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-7, atol=1e-9)
        assert ours.coef_.shape == peer.coef_.shape
        assert_array_equal(ours.predict(X), peer.predict(X))


def test_scikit_learns_interface():
    ours, peer = RidgeClassifier().get_params(), PeerRidge().get_params()
    assert {name: ours[name] for name in peer} == peer
    for y in (SPECIES, SPECIES == 0):
        ours, peer = RidgeClassifier().fit(IRIS, y), PeerRidge().fit(IRIS, y)
        for name in ("coef_", "intercept_", "classes_"):
            assert getattr(ours, name).shape == getattr(peer, name).shape
            assert getattr(ours, name).dtype == getattr(peer, name).dtype
        assert (ours.n_iter_, ours.solver_) == (peer.n_iter_, peer.solver_)
        assert ours.decision_function(IRIS).shape == peer.decision_function(IRIS).shape
        assert ours.signed_distance(IRIS).shape == ours.decision_function(IRIS).shape
    iterated = RidgeClassifier(solver="lsqr").fit(IRIS, SPECIES)
    assert iterated.n_iter_.shape == (3,)
    assert iterated.solver_ == "lsqr"
    again = pickle.loads(pickle.dumps(iterated))
    assert_array_equal(again.predict(IRIS), iterated.predict(IRIS))
    assert clone(iterated).get_params() == iterated.get_params()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("route", ROUTES)
def test_scores_sum_to_one(dtype, route):
    X, y = samples(60, 8, 4, offset=100.0)
    X[:, 0] *= 1e4
    X = X.astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LeastSquaresClassifier(solver=route, max_iter=5).fit(X, y)
    sizes = np.abs(X) @ np.abs(model.class_coef_).T + np.abs(model.class_intercept_)
    error = np.abs(model.class_scores(X).astype(np.float64).sum(axis=1) - 1)
    assert np.all(error <= 8 * np.finfo(dtype).eps * sizes.sum(axis=1))


def test_two_classes():
    X, y = samples(50, 3, 2)
    model = LeastSquaresClassifier().fit(X, y)
    assert_allclose(model.coef_, model.class_coef_[1:] - model.class_coef_[:1])
    assert_allclose(model.class_scores(X).sum(axis=1), 1)
    assert_array_equal(model.predict(X), np.argmax(model.class_scores(X), axis=1))
    # Fisher: with codes −1 and +1 the same boundary comes from ridge without a penalty.
    ridge = RidgeClassifier(alpha=0).fit(X, y)
    assert_allclose(ridge.coef_, model.coef_[0])
    assert_allclose(ridge.intercept_, model.intercept_, atol=1e-12)


# Rank, units and conditioning


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


# Weights, layouts, precision


@given(st.integers(0, 2**32 - 1), st.sampled_from(ROUTES))
def test_weights_are_repetitions(seed, route):
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(24, 3)), np.arange(24) % 3
    weights = random.integers(0, 4, 24)
    weights[:3] = 1
    model = RidgeClassifier if route == "cg" else LeastSquaresClassifier
    options = {"solver": "sparse_cg", "tol": 1e-9} if route == "cg" else {"solver": route}
    weighted = model(**options).fit(X, y, sample_weight=weights)
    repeated = model(**options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-7)
    assert_allclose(weighted.certificate_.primal, repeated.certificate_.primal, rtol=1e-9)


def test_class_weights_are_sample_weights():
    X, y = samples(60, 4)
    by_class = LeastSquaresClassifier(class_weight={0: 3.0}).fit(X, y)
    by_sample = LeastSquaresClassifier().fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
    assert_allclose(by_class.coef_, by_sample.coef_, atol=1e-12)


@pytest.mark.parametrize("route", ROUTES)
def test_layouts(route):
    X = np.random.default_rng(0).integers(0, 3, size=(70, 9))
    y = np.arange(70) % 3
    wanted = LeastSquaresClassifier(solver=route, alpha=1.0).fit(X.astype(float), y)
    for other in (X, np.asfortranarray(X, dtype=float), sparse.csr_matrix(X), sparse.csc_array(X * 1.0)):
        model = LeastSquaresClassifier(solver=route, alpha=1.0).fit(other, y)
        assert_allclose(model.coef_, wanted.coef_, atol=1e-6 if route == "cg" else 1e-10)
        assert_array_equal(model.predict(other), wanted.predict(X))


def test_several_blocks(monkeypatch):
    """Sums over blocks and threads give what one block gives."""
    X, y = samples(500, 7)
    whole = {route: LeastSquaresClassifier(solver=route, alpha=0.1).fit(X, y).coef_ for route in ROUTES}
    monkeypatch.setattr("separatrix.data.memory.BLOCK_BYTES", 2048)
    monkeypatch.setattr("separatrix.solvers.normal_equations._PANEL_BYTES", 4096)
    for data in (X, sparse.csr_array(X)):
        assert len(view_of(data).parts()) > 5
        for route in ROUTES:
            model = LeastSquaresClassifier(solver=route, alpha=0.1).fit(data, y)
            assert_allclose(model.coef_, whole[route], atol=1e-6 if route == "cg" else 1e-10)


def test_the_input_is_left_alone():
    X, y = samples(40, 5)
    copy, rows = X.copy(), sparse.csr_array(X)
    for route in ROUTES:
        LeastSquaresClassifier(solver=route).fit(X, y)
        LeastSquaresClassifier(solver=route).fit(rows, y)
    RidgeClassifier(copy_X=False, positive=True).fit(X, y)
    assert_array_equal(X, copy)
    assert_array_equal(rows.toarray(), copy)


# Ridge: penalties, signs, several labels


def test_a_penalty_for_each_target():
    X, y = samples(60, 5)
    alpha = np.array([0.1, 2.0, 30.0])
    for solver in ("cholesky", "svd", "sparse_cg"):
        model = RidgeClassifier(alpha, solver=solver, tol=1e-9).fit(X, y)
        for k in range(3):
            alone = PeerRidge(alpha[k]).fit(X, y)
            assert_allclose(model.coef_[k], alone.coef_[k], atol=1e-8)
    wide, few = samples(9, 20)
    assert_allclose(RidgeClassifier(alpha).fit(wide, few).coef_, PeerRidge(alpha).fit(wide, few).coef_)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(60, 6), (8, 15)])
def test_positive_is_exact(alpha, fit_intercept, shape):
    X, y = samples(*shape)
    weights = np.random.default_rng(1).uniform(0.5, 2, shape[0])
    model = RidgeClassifier(alpha, positive=True, fit_intercept=fit_intercept).fit(X, y, weights)
    assert model.coef_.min() >= 0
    assert model.solver_ == "lbfgs"
    # The optimality conditions, from the data.
    Y = 2.0 * np.eye(3)[y] - 1
    E = (Y - X @ model.coef_.T - model.intercept_) * weights[:, None]
    slope = X.T @ E - alpha * model.coef_.T
    if fit_intercept:
        assert_allclose(E.sum(axis=0), 0, atol=1e-10)
    assert slope.max() < 1e-9
    assert_allclose(slope[model.coef_.T > 0], 0, atol=1e-9)
    assert np.any(model.coef_ == 0)
    assert model.certificate_.kkt_violation < 1e-9
    if alpha:
        assert model.certificate_.relative_gap < 1e-12
    csr = RidgeClassifier(alpha, positive=True, fit_intercept=fit_intercept)
    assert_allclose(csr.fit(sparse.csr_array(X), y, weights).coef_, model.coef_, atol=1e-9)


def test_several_labels_per_sample():
    X, Y = make_multilabel_classification(n_samples=80, n_classes=4, random_state=0)
    for solver in ("auto", "svd", "sparse_cg"):
        ours, peer = RidgeClassifier(solver=solver, tol=1e-8).fit(X, Y), PeerRidge().fit(X, Y)
        assert_allclose(ours.coef_, peer.coef_, atol=1e-8)
        assert_array_equal(ours.predict(X), peer.predict(X))
        assert_array_equal(ours.classes_, peer.classes_)
        assert ours.decision_function(X).shape == (80, 4)
        assert ours.score(X, Y) == peer.score(X, Y)
    weights = np.arange(80) % 3
    balanced = {"class_weight": "balanced"}
    ours, peer = RidgeClassifier(**balanced).fit(X, Y, weights), PeerRidge(**balanced).fit(X, Y, weights)
    assert_allclose(ours.coef_, peer.coef_, atol=1e-8)
    given_sparse = RidgeClassifier().fit(X, sparse.csr_matrix(Y)).predict(X)
    assert sparse.issparse(given_sparse)
    assert_array_equal(given_sparse.toarray(), PeerRidge().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="one label per sample"):
        ours.geometric_margin(X, Y)


# The certificate


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_certificate_can_be_recomputed(route, alpha):
    X, y = samples(60, 5)
    weights = np.random.default_rng(0).uniform(0.5, 2, 60)
    model = LeastSquaresClassifier(alpha=alpha, solver=route).fit(X, y, weights)
    certificate = model.certificate_
    E = np.eye(3)[y] - model.class_scores(X)
    primal = weights @ np.square(E).sum(axis=1) + alpha * np.square(model.coef_).sum()
    assert_allclose(certificate.primal, primal, rtol=1e-12)
    assert certificate.training_errors == weights[model.predict(X) != y].sum()
    assert certificate.samples == 60
    coef, intercept = one_hot_solution(X, y, alpha, weights)
    E = np.eye(3)[y] - X @ coef.T - intercept
    best = weights @ np.square(E).sum(axis=1) + alpha * np.square(coef).sum()
    if route == "cg" and alpha == 0:
        assert certificate.dual is None
        assert_allclose(primal, best, rtol=1e-9)
    else:
        assert certificate.dual <= best * (1 + 1e-12)
        assert certificate.gap == pytest.approx(certificate.primal - certificate.dual, abs=1e-12)
        assert certificate.relative_gap < 1e-9


def test_the_gap_bounds_what_is_missing():
    X, y = samples(200, 40, offset=0.0)
    X[:, :10] *= 30
    coef, intercept = one_hot_solution(X, y, 0.5)
    best = np.square(np.eye(3)[y] - X @ coef.T - intercept).sum() + 0.5 * np.square(coef).sum()
    for steps in (1, 3, 6):
        model = LeastSquaresClassifier(alpha=0.5, solver="cg", max_iter=steps)
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            model.fit(X, y)
        certificate = model.certificate_
        assert certificate.status == "max_iter"
        assert certificate.primal > best
        assert certificate.dual <= best * (1 + 1e-12)
        assert len(model.history_) == model.n_iter_ == steps


def test_time_limit_leaves_a_model():
    X, y = samples(300, 60)
    model = LeastSquaresClassifier(solver="cg", max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X, y)
    assert model.certificate_.status == "max_time"
    assert_allclose(model.class_scores(X).sum(axis=1), 1)


def test_routes_by_shape():
    def route(X):
        y = np.arange(X.shape[0]) % 2
        return choose_route(Regression(view_of(X), y, np.eye(2), np.zeros(2)))

    assert route(np.zeros((1000, 20))) == "primal"
    assert route(np.zeros((50, 2000))) == "dual"
    assert route(np.zeros((5000, 5000), dtype=np.float32)) == "cg"
    columns = np.random.default_rng(0).integers(0, 50_000, size=80_000)
    text = sparse.csr_array((np.ones(80_000), columns, np.arange(0, 80_001, 10)), shape=(8000, 50_000))
    assert route(text) == "cg"
    assert route(sparse.csr_array((5000, 100))) == "primal"


@pytest.mark.parametrize("shape", [(400, 120), (120, 400)])
@pytest.mark.parametrize("hopeless", [False, True])
def test_closed_form_takes_over_where_iterations_are_many(shape, hopeless, monkeypatch):
    random = np.random.default_rng(0)
    columns = random.integers(0, shape[1], size=(shape[0], 4))
    values, starts = random.standard_normal(columns.size), np.arange(0, columns.size + 1, 4)
    X = sparse.csr_array((values, columns.ravel(), starts), shape=shape)
    X.sum_duplicates()
    X = X @ sparse.diags_array(10.0 ** random.uniform(-2, 2, shape[1]))
    y = random.integers(0, 3, shape[0])
    model = RidgeClassifier(alpha=1e-3).fit(X, y)
    assert model.solver_ == "cholesky"  # at once: all is small
    expected = model.coef_
    monkeypatch.setattr(least_squares, "_FEW", 0.0)
    # Foreseen early, or seen when they are done.
    monkeypatch.setattr(conjugate_gradient, "_EARLY", 3 if hopeless else 10**9)
    model.fit(X, y)
    assert model.solver_ == "cholesky"
    assert model.n_iter_ is None
    assert model.certificate_.status == "converged"
    assert_allclose(model.coef_, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    assert len(model.history_) > 1
    monkeypatch.setattr(least_squares, "_closed_form", lambda problem: ("primal", 1e9))
    monkeypatch.setattr(conjugate_gradient, "_EARLY", 10**9)
    assert model.set_params(tol=1e-10).fit(X, y).solver_ == "sparse_cg"
    assert_allclose(model.coef_, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": [0.1, 0.2]}, "alpha has 2 values, but there are 3 targets"),
        ({"alpha": [0.1, -0.2, 1.0]}, "not negative"),
        ({"solver": "newton"}, "solver"),
        ({"solver": "lbfgs"}, "only when positive=True"),
        ({"solver": "svd", "positive": True}, "set the solver to 'auto' or 'lbfgs'"),
        ({"tol": -1.0}, "tol"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        RidgeClassifier(**options).fit(IRIS, SPECIES)


@pytest.mark.parametrize("make", [LeastSquaresClassifier, RidgeClassifier])
def test_bad_data(make):
    with pytest.raises(ValueError, match=r"class 1 have weight 0.*positive"):
        make().fit(IRIS, SPECIES, sample_weight=SPECIES != 1)
    with pytest.raises(ValueError, match="only one class"):
        make().fit(IRIS, np.ones(150))
    with pytest.raises(ValueError, match="Unknown label type"):
        make().fit(IRIS, IRIS[:, 0])


def test_too_large_for_a_closed_form():
    X = sparse.csr_array((20_000, 20_000))
    y = np.arange(20_000) % 2
    with pytest.raises(ValueError, match="solver='cg'"):
        LeastSquaresClassifier(solver="primal").fit(X, y)
    with pytest.raises(ValueError, match="SelectKBest"):
        RidgeClassifier(positive=True).fit(X, y)


def test_rows_of_y_must_match():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        RidgeClassifier().fit(IRIS, np.tile([0, 1], (7, 1)))


def test_weights_beyond_the_largest_number_are_refused():
    X = (np.random.default_rng(0).standard_normal((5, 3)) * 1e-40).astype(np.float32)
    message = "Floating-point under-/overflow .* StandardScaler .*Classifier's weights do not fit in float32"
    with pytest.raises(ValueError, match=message), np.errstate(over="ignore", invalid="ignore"):
        LeastSquaresClassifier().fit(X, np.arange(5) % 2)
