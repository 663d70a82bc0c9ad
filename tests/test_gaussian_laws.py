"""Gaussian models: streams, weights and layouts give the same model; hard data do not break it."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import discriminant_analysis as peer
from sklearn.exceptions import NotFittedError

from gaussians import MODELS, make, named
from separatrix.models.discriminant import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from separatrix.models.gaussian import GaussianClassifier
from separatrix.solvers.covariance import factorise

# Laws ------------------------------------------------------------------------------------------


def assert_same_model(one, two, X, rtol=1e-9):
    for name in ("means_", "priors_"):
        assert_allclose(getattr(one, name), getattr(two, name), rtol=rtol)
    assert_allclose(one.predict_log_proba(X), two.predict_log_proba(X), rtol=rtol, atol=1e-8)
    assert_allclose(one.log_density(X), two.log_density(X), rtol=rtol)
    assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=rtol)


@pytest.mark.parametrize("model", MODELS, ids=named)
@pytest.mark.parametrize("order", ["mixed", "by class"])
def test_streams_give_the_model_of_one_fit(model, order):
    X, y = make(3)
    if order == "by class":
        X, y = X[np.argsort(y, kind="stable")], np.sort(y)
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    whole = pickle.loads(pickle.dumps(model.fit(X, y, sample_weight=weights)))
    model = type(model)(**model.get_params())
    for begin in range(0, len(y), 50):
        rows = slice(begin, begin + 50)
        model.partial_fit(X[rows], y[rows], classes=["a", "b", "c"], sample_weight=weights[rows])
        model = pickle.loads(pickle.dumps(model))
    assert_same_model(model, whole, X)
    # A fit is the first batch of a stream, too.
    again = type(model)(**model.get_params()).fit(X[:200], y[:200], sample_weight=weights[:200])
    if order == "mixed":
        assert_same_model(again.partial_fit(X[200:], y[200:], sample_weight=weights[200:]), whole, X)


def test_a_stream_says_what_it_waits_for():
    X, y = make(2)
    model = QuadraticDiscriminantAnalysis()
    model.partial_fit(X[:2], ["a", "b"], classes=["a", "b"])
    with pytest.raises(NotFittedError, match="needs more samples before it can predict: y has only 1 sample"):
        model.predict(X)
    model.partial_fit(X[2:], y[2:])
    assert model.predict(X).shape == y.shape
    one = GaussianClassifier().partial_fit(X[y == "b"], y[y == "b"], classes=["a", "b"])
    assert set(one.predict(X)) == {"b"}
    assert_array_equal(one.predict_proba(X)[:, 0], 0.0)
    for waiting in (GaussianClassifier(shrinkage="ledoit-wolf"),
                    LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")):  # fmt: skip
        with pytest.raises(ValueError, match="does not go with partial_fit"):
            waiting.partial_fit(X, y, classes=["a", "b"])
    half = GaussianClassifier(priors=[0.5, 0.5]).partial_fit(X[y == "b"], y[y == "b"], classes=["a", "b"])
    with pytest.raises(NotFittedError, match="has a prior but no samples"):
        half.predict(X)


RULES = [
    GaussianClassifier("full", shrinkage="ledoit-wolf"),
    LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
]


@pytest.mark.parametrize("model", [*MODELS, *RULES], ids=named)
def test_weights_are_repetitions(model):
    X, y = make(3)
    times = np.random.default_rng(2).integers(0, 4, len(y))
    weighted = pickle.loads(pickle.dumps(model.fit(X, y, sample_weight=times)))
    repeated = model.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_same_model(weighted, repeated, X)


@pytest.mark.parametrize("model", [*MODELS, *RULES], ids=named)
def test_sparse_is_dense(model):
    X, y = make(3)
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    dense = pickle.loads(pickle.dumps(model.fit(X, y)))
    S = sparse.csr_array(X)
    model.fit(S, y)
    assert_same_model(model, dense, X)
    assert_allclose(model.decision_function(S), dense.decision_function(X), rtol=1e-9, atol=1e-9)
    assert_allclose(model.log_density(S), dense.log_density(X), rtol=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_float32_stays_float32(model):
    X, y = make(3)
    double = pickle.loads(pickle.dumps(model.fit(X.astype(np.float32).astype(float), y)))
    model.fit(X.astype(np.float32), y)
    for name, value in vars(model).items():
        if name in ("means_", "priors_", "coef_", "intercept_", "covariance_", "scalings_", "rotations_",
                    "whitening_", "xbar_", "explained_variance_ratio_"):  # fmt: skip
            for array in value if isinstance(value, list) else [value]:
                assert array.dtype == np.float32, name
    assert_allclose(model.predict_proba(X.astype(np.float32)), double.predict_proba(X), rtol=2e-4, atol=1e-5)


# Hard data -------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_far_from_the_origin(model):
    """Data of mean 1e8: the scores keep the digits that the data have (1e-8)."""
    X, y = make(2)
    X = np.rint(X * 2**20) / 2**20  # such that the shift costs no digits of the data
    shift = 2.0**26
    near = pickle.loads(pickle.dumps(model.fit(X, y)))
    model.fit(X + shift, y)
    assert_allclose(model.decision_function(X + shift), near.decision_function(X), rtol=1e-5, atol=1e-5)
    assert_allclose(model.log_density(X + shift), near.log_density(X), rtol=1e-6)


UNITS = 10.0 ** np.array([-8, 8, 0, 3])


LINEAR = [model for model in MODELS if hasattr(model, "project")]


@pytest.mark.parametrize("model", [*LINEAR, *MODELS[1:3]], ids=named)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_units_do_not_matter(model, n_classes):
    """Features in units of 1e-8 and 1e8: the same posterior."""
    X, y = make(n_classes)
    expected = model.fit(X, y).predict_log_proba(X)
    assert_allclose(model.fit(X * UNITS, y).predict_log_proba(X * UNITS), expected, rtol=1e-7, atol=1e-9)


def test_units_of_qda():
    X, y = make(2)
    expected = QuadraticDiscriminantAnalysis().fit(X, y).predict_log_proba(X)
    model = QuadraticDiscriminantAnalysis(tol=0.0).fit(X * UNITS, y)
    assert_allclose(model.predict_log_proba(X * UNITS), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("model", LINEAR, ids=named)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_collinear_and_constant_features(model, n_classes, dtype):
    """Features that add nothing change no posterior, and no warning is given."""
    X, y = make(n_classes)
    X = X.astype(dtype)
    expected = model.fit(X, y).predict_log_proba(X)
    wide = np.column_stack([X, X[:, 0], 2 * X[:, 1], np.full(len(X), 0.1), np.zeros(len(X))]).astype(dtype)
    model.fit(wide, y)
    tolerance = 1e-8 if dtype == np.float64 else 2e-3
    assert_allclose(model.predict_log_proba(wide), expected, rtol=tolerance, atol=tolerance)
    assert model.whitening_.shape == (8, 4)
    drawn, _ = model.sample(50, random_state=0)
    assert_allclose(drawn[:, 0], drawn[:, 4], atol=1e-4)
    assert_allclose(drawn[:, 6], 0.1, rtol=1e-6)


def test_collinear_as_scikit_learn():
    X, y = make(3)
    wide = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 2]])
    for solver in ("svd", "lsqr"):
        ours = LinearDiscriminantAnalysis(solver=solver).fit(wide, y)
        theirs = peer.LinearDiscriminantAnalysis(solver=solver).fit(wide, y)
        assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7, atol=1e-9)
        assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-7)


def test_pseudo_inverse():
    """The factor is that of the pseudo-inverse in the features' own units, with the pseudo-determinant."""
    random = np.random.default_rng(0)
    B = random.normal(size=(6, 4)) * np.array([[1e-3, 1, 1e2, 1, 5, 1]]).T
    factor = factorise(B @ B.T, own_units=True)
    assert factor.rank == 4
    assert_allclose(factor.whitening @ factor.whitening.T, np.linalg.pinv(B @ B.T, hermitian=True), rtol=1e-6)
    assert factor.log_det == pytest.approx(np.linalg.slogdet(B.T @ B)[1])
    scaled = factorise(B @ B.T)
    assert_allclose(B.T @ scaled.whitening @ scaled.whitening.T @ B, np.eye(4), atol=1e-8)
    assert scaled.log_det == pytest.approx(factor.log_det)
    assert factorise(np.zeros((3, 3))).rank == 0


@pytest.mark.parametrize("solver", ["svd", "lsqr", "eigen"])
def test_a_class_of_one_sample(solver):
    X, y = make(3)
    keep = (y != "c") | (np.arange(len(y)) == np.flatnonzero(y == "c")[0])
    X, y = X[keep], y[keep]
    for model in (GaussianClassifier(), LinearDiscriminantAnalysis(solver=solver)):
        assert set(model.fit(X, y).predict(X)) == {"a", "b", "c"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's covariance of one sample warns
        theirs = peer.LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    assert_allclose(model.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-7, atol=1e-8)
    for form, why in [("full", "rank 0 in 4"), ("diagonal", "feature 0"), ("spherical", "feature 0")]:
        message = rf"class 'c' is singular.*{why}.*covariance='shared'"
        with pytest.raises(np.linalg.LinAlgError, match=message):
            GaussianClassifier(form).fit(X, y)
    with pytest.raises(ValueError, match="only 1 sample in class c"):
        QuadraticDiscriminantAnalysis().fit(X, y)
