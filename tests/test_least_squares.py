"""Least squares: every route against closed forms, lstsq and scikit-learn."""

from __future__ import annotations

import pickle
import warnings

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

from oracles import one_hot_solution
from problems import samples
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
    monkeypatch.setattr("separatrix.solvers.normal_equations.PANEL_BYTES", 4096)
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
    with pytest.raises(ValueError, match="Unknown label type"):
        make().fit(IRIS, IRIS[:, 0])


def test_one_class():
    with pytest.raises(ValueError, match="only one class"):
        LeastSquaresClassifier().fit(IRIS, np.ones(150))


@pytest.mark.parametrize("options", [{}, {"alpha": 0.0}, {"solver": "lsqr"}, {"positive": True}])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_ridge_of_one_class_is_scikit_learns(options, kind):
    X, y = kind(IRIS[:60]), np.array(["a"] * 60)
    model, theirs = RidgeClassifier(**options).fit(X, y), PeerRidge(**options).fit(X, y)
    assert_allclose(model.coef_, theirs.coef_, atol=1e-12)
    assert_allclose(model.intercept_, theirs.intercept_)
    assert model.decision_function(X).shape == theirs.decision_function(X).shape == (60,)
    assert (model.predict(X) == "a").all()


def test_ridge_of_one_class_predicts_it_whatever_the_score():
    X = np.array([[1.0], [-2.0], [3.0]])
    model = RidgeClassifier(fit_intercept=False).fit(X, [7, 7, 7])  # (scikit-learn's has no answer)
    assert set(model.decision_function(X) >= 0) == {False, True}
    assert model.predict(X).tolist() == [7, 7, 7]
    assert model.certificate_.training_errors == 0


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
