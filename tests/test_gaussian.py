"""Gaussian models: against the formulas and scikit-learn, stable, mergeable, honest about bad input."""

import warnings
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn import covariance as peer_covariance
from sklearn import discriminant_analysis as peer
from sklearn.naive_bayes import GaussianNB

from gaussians import FORMS, MODELS, make, named
from separatrix.models.discriminant import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from separatrix.models.gaussian import GaussianClassifier
from separatrix.persistence import load, save
from sklearn_checks import checked


def joint_log_likelihood(X, y, classes, priors, means, covariances):
    """Sum of log(pi_k N(x; mu_k, Sigma_k)), straight from SciPy."""
    total = 0.0
    for k, label in enumerate(classes):
        own = X[y == label]
        total += np.log(priors[k]) * len(own)
        total += multivariate_normal(means[k], covariances[k]).logpdf(own).sum()
    return total


def matrices(model):
    """The covariance matrix of each class."""
    K, d = model.means_.shape
    given = model.covariance_
    return {
        "shared": lambda: np.broadcast_to(given, (K, d, d)),
        "full": lambda: given,
        "diagonal": lambda: np.array([np.diag(v) for v in given]),
        "spherical": lambda: np.array([v * np.eye(d) for v in given]),
    }[model.covariance]()


CHECKED = [
    GaussianClassifier(),
    GaussianClassifier("full", shrinkage=0.1),
    GaussianClassifier("diagonal"),
    GaussianClassifier("spherical"),
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
    QuadraticDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
]
#: Data of these checks have classes of one sample, or that do not vary in a direction; models with a
#: covariance per class refuse them.
SINGULAR = {
    "check_sample_weights_shape",
    "check_sample_weights_not_overwritten",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


@checked(CHECKED)
def test_check_estimator(estimator, check):
    own = getattr(estimator, "covariance", "") in FORMS[1:] or isinstance(
        estimator, QuadraticDiscriminantAnalysis
    )
    if own and getattr(check, "func", check).__name__ in SINGULAR:
        with suppress(np.linalg.LinAlgError):
            check(estimator)
        return
    check(estimator)


# Formulas of the model -------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_maximum_likelihood_formulas(form, n_classes):
    X, y = make(n_classes)
    model = GaussianClassifier(form).fit(X, y)
    own = [X[y == label] for label in model.classes_]
    assert_allclose(model.priors_, [len(part) / len(X) for part in own], rtol=1e-14)
    assert_allclose(model.means_, [part.mean(axis=0) for part in own], rtol=1e-12)
    S = np.array([np.cov(part.T, bias=True) for part in own])
    expected = {
        "shared": np.tensordot(model.priors_, S, 1),
        "full": S,
        "diagonal": np.einsum("kjj->kj", S),
        "spherical": np.trace(S, axis1=1, axis2=2) / 4,
    }[form]
    assert_allclose(model.covariance_, expected, rtol=1e-11, atol=1e-13)
    densities = np.column_stack(
        [multivariate_normal(m, C).logpdf(X) for m, C in zip(model.means_, matrices(model), strict=True)]
    )
    assert_allclose(model.class_log_density(X), densities, rtol=1e-10, atol=1e-10)
    joint = densities + np.log(model.priors_)
    evidence = np.log(np.exp(joint).sum(axis=1))
    assert_allclose(model.log_density(X), evidence, rtol=1e-10)
    assert_allclose(model.predict_log_proba(X), joint - evidence[:, None], rtol=1e-8, atol=1e-10)
    assert_allclose(model.predict_proba(X), np.exp(joint - evidence[:, None]), rtol=1e-8, atol=1e-12)
    assert_array_equal(model.predict(X), model.classes_[joint.argmax(axis=1)])
    likelihood = joint_log_likelihood(X, y, model.classes_, model.priors_, model.means_, matrices(model))
    assert model.certificate_.status == "converged"
    assert model.certificate_.primal == pytest.approx(-likelihood / len(X), rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_likelihood_is_maximal(form, seed):
    """No small change of priors, means or covariances within the form makes the samples likelier."""
    X, y = make(3, n=60, d=3)
    model = GaussianClassifier(form).fit(X, y)
    best = joint_log_likelihood(X, y, model.classes_, model.priors_, model.means_, matrices(model))
    random = np.random.default_rng(seed)
    step = 10.0 ** random.uniform(-4, -1)
    priors = model.priors_ * np.exp(step * random.normal(size=3))
    changed = GaussianClassifier(form).fit(X, y)
    changed.means_ = model.means_ + step * random.normal(size=(3, 3))
    if form in ("shared", "full"):
        A = np.eye(3) + step * random.normal(size=(*model.covariance_.shape[:-2], 3, 3))
        changed.covariance_ = A @ model.covariance_ @ np.swapaxes(A, -1, -2)
    else:
        changed.covariance_ = model.covariance_ * np.exp(step * random.normal(size=model.covariance_.shape))
    priors /= priors.sum()
    worse = joint_log_likelihood(X, y, model.classes_, priors, changed.means_, matrices(changed))
    assert worse <= best + 1e-9 * abs(best)


def test_two_classes_are_logistic():
    """p(1|x) = sigma(a.x + b) with a, b of the method; sigma(-r) = 1 - sigma(r); r = ln(sigma/(1-sigma))."""
    X, y = make(2)
    model = GaussianClassifier(priors=[0.3, 0.7]).fit(X, y)
    m0, m1 = model.means_
    P = np.linalg.inv(model.covariance_)
    assert_allclose(model.coef_, [P @ (m1 - m0)], rtol=1e-10)
    assert_allclose(model.intercept_, [0.5 * (m0 @ P @ m0 - m1 @ P @ m1) + np.log(0.7 / 0.3)], rtol=1e-10)
    r = X @ model.coef_[0] + model.intercept_[0]
    assert_allclose(model.decision_function(X), r, rtol=1e-10, atol=1e-12)
    p = model.predict_proba(X)
    assert_allclose(p[:, 1], 1 / (1 + np.exp(-r)), rtol=1e-10)
    assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    logs = model.predict_log_proba(X)
    assert_allclose(logs[:, 1] - logs[:, 0], r, rtol=1e-10, atol=1e-12)
    swapped = GaussianClassifier(priors=[0.7, 0.3]).fit(X, np.where(y == "a", "b", "a"))
    assert_allclose(swapped.predict_proba(X)[:, ::-1], p, rtol=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=named)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_nothing_overflows(model, n_classes):
    """Scores of 1e4 and far beyond: probabilities 0 and 1, finite logarithms, no warning."""
    X, y = make(n_classes)
    far = X[:20] * np.array([[1e2], [1e3], [1e4], [1e5]]).repeat(5, axis=0)
    model.fit(X, y)
    logs, p = model.predict_log_proba(far), model.predict_proba(far)
    assert np.abs(model.decision_function(far)).max() > 1e4
    assert np.isfinite(logs).all()
    assert logs.min() < -1e4
    assert_allclose(p.sum(axis=1), 1.0)
    assert np.isfinite(model.log_density(far)).all()


@pytest.mark.parametrize("form", ["shared", "full"])
def test_divisor_and_priors(form):
    X, y = make(3)
    model = GaussianClassifier(form, divisor="unbiased", priors=[0.2, 0.5, 0.3]).fit(X, y)
    S = np.array([np.cov(X[y == label].T) * (sum(y == label) - 1) for label in model.classes_])
    expected = S.sum(axis=0) / (len(X) - 3) if form == "shared" else S / 79
    assert_allclose(model.covariance_, expected, rtol=1e-10, atol=1e-12)
    likelihood = joint_log_likelihood(X, y, model.classes_, model.priors_, model.means_, matrices(model))
    assert model.certificate_.primal == pytest.approx(-likelihood / len(X), rel=1e-12)


@pytest.mark.parametrize("rule", ["ledoit-wolf", "oas", 0.3])
def test_shrinkage(rule):
    """The rules of scikit-learn's covariance module, on each class or on what is left of the class means."""
    X, y = make(3, n=45)

    def shrink(A, **options):
        if rule == "ledoit-wolf":
            return peer_covariance.ledoit_wolf(A, **options)
        if rule == "oas":
            return peer_covariance.oas(A, **options)
        S = A.T @ A / len(A) if options else np.cov(A.T, bias=True)
        return peer_covariance.shrunk_covariance(S, rule), rule

    full = GaussianClassifier("full", shrinkage=rule).fit(X, y)
    for k, label in enumerate(full.classes_):
        cov, amount = shrink(X[y == label])
        assert full.shrinkage_[k] == pytest.approx(amount)
        assert_allclose(full.covariance_[k], cov, rtol=1e-9)
    shared = GaussianClassifier("shared", shrinkage=rule).fit(X, y)
    cov, amount = shrink(X - shared.means_[np.searchsorted(shared.classes_, y)], assume_centered=True)
    assert shared.shrinkage_ == pytest.approx(amount)
    assert_allclose(shared.covariance_, cov, rtol=1e-9)
    for model in (full, shared):
        likelihood = joint_log_likelihood(X, y, model.classes_, model.priors_, model.means_, matrices(model))
        assert model.certificate_.primal == pytest.approx(-likelihood / len(X), rel=1e-12)


def test_diagonal_is_naive_bayes():
    X, y = make(4)
    ours = GaussianClassifier("diagonal").fit(X, y)
    theirs = GaussianNB(var_smoothing=0.0).fit(X, y)
    assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-8, atol=1e-10)


# scikit-learn's classes ------------------------------------------------------------------------


def same_up_to_sign(ours, theirs, **tolerance):
    signs = np.sign((ours * theirs).sum(axis=0))
    assert_allclose(ours * signs, theirs, **tolerance)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("priors", [None, "given"])
@pytest.mark.parametrize(
    "options",
    [
        {"solver": "svd"},
        {"solver": "svd", "store_covariance": True, "n_components": 1},
        {"solver": "lsqr"},
        {"solver": "lsqr", "shrinkage": 0.4},
        {"solver": "lsqr", "shrinkage": "auto"},
        {"solver": "lsqr", "covariance_estimator": peer_covariance.OAS()},
        {"solver": "eigen"},
        {"solver": "eigen", "shrinkage": 0.4},
        {"solver": "eigen", "shrinkage": "auto"},
        {"solver": "eigen", "covariance_estimator": peer_covariance.LedoitWolf()},
    ],
    ids=str,
)
def test_lda_agrees(options, priors, n_classes):
    X, y = make(n_classes, d=5)
    given = None if priors is None else np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum()
    ours = LinearDiscriminantAnalysis(priors=given, **options).fit(X, y)
    theirs = peer.LinearDiscriminantAnalysis(priors=given, **options).fit(X, y)
    names = {name for name in vars(theirs) if name.endswith("_")}
    assert names <= set(vars(ours))
    for name in names - {"scalings_", "classes_", "n_features_in_"}:
        assert getattr(ours, name).shape == getattr(theirs, name).shape, name
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-9, err_msg=name)
    if "scalings_" in names:
        kept = min(n_classes - 1, 5)
        assert ours.scalings_.shape == theirs.scalings_.shape
        same_up_to_sign(ours.scalings_[:, :kept], theirs.scalings_[:, :kept], rtol=1e-7, atol=1e-8)
        same_up_to_sign(ours.transform(X), theirs.transform(X), rtol=1e-7, atol=1e-8)
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        assert_allclose(getattr(ours, method)(X), getattr(theirs, method)(X), rtol=1e-7, atol=1e-8)
    assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reg_param": 0.3, "store_covariance": True},
        {"priors": "given"},
        {"solver": "eigen", "store_covariance": True},
        {"solver": "eigen", "shrinkage": 0.4},
        {"solver": "eigen", "shrinkage": "auto", "store_covariance": True},
        {"solver": "eigen", "covariance_estimator": peer_covariance.OAS()},
    ],
    ids=str,
)
def test_qda_agrees(options, n_classes):
    X, y = make(n_classes)
    if "priors" in options:
        options = {"priors": np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum()}
    ours = QuadraticDiscriminantAnalysis(**options).fit(X, y)
    theirs = peer.QuadraticDiscriminantAnalysis(**options).fit(X, y)
    assert {name for name in vars(theirs) if name.endswith("_")} <= set(vars(ours))
    stored = ["covariance_"] if "store_covariance" in options else []
    for name in ("means_", "priors_", "scalings_", *stored):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-12, err_msg=name)
    for k in range(n_classes):
        same_up_to_sign(ours.rotations_[k], theirs.rotations_[k], rtol=1e-8, atol=1e-8)
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        assert_allclose(getattr(ours, method)(X), getattr(theirs, method)(X), rtol=1e-8, atol=1e-9)
    assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("name", ["LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"])
def test_parameters_of_scikit_learn(name):
    ours = {
        "LinearDiscriminantAnalysis": LinearDiscriminantAnalysis,
        "QuadraticDiscriminantAnalysis": QuadraticDiscriminantAnalysis,
    }[name]
    assert ours().get_params() == {**getattr(peer, name)().get_params(), "max_memory": None}


def test_svd_lda_is_the_shared_gaussian():
    X, y = make(3)
    lda, gaussian = LinearDiscriminantAnalysis().fit(X, y), GaussianClassifier().fit(X, y)
    assert_allclose(lda.coef_, gaussian.coef_, rtol=1e-8)
    assert_allclose(lda.log_density(X), gaussian.log_density(X), rtol=1e-10)
    assert lda.certificate_.primal == pytest.approx(gaussian.certificate_.primal, rel=1e-12)


def test_geometry_of_linear_boundaries():
    X, y = make(3)
    for model in (LinearDiscriminantAnalysis(), GaussianClassifier()):
        model.fit(X, y)
        assert model.boundaries() == [("a", "b"), ("a", "c"), ("b", "c")]
        on = model.project(X, boundary=1)
        assert_allclose(model.signed_distance(on)[:, 1], 0.0, atol=1e-9)
        assert model.geometric_margin(X, y) < 0
    assert not hasattr(GaussianClassifier("full"), "signed_distance")
    assert not hasattr(QuadraticDiscriminantAnalysis(), "project")


# Samples ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_samples_have_the_moments_of_the_model(model):
    X, y = make(3)
    model.fit(X, y)
    drawn, labels = model.sample(30_000, random_state=3)
    assert drawn.shape == (30_000, 4)
    again = type(model)(**model.get_params()).fit(drawn, labels)
    assert_allclose(again.priors_, model.priors_, atol=0.02)
    assert_allclose(again.means_, model.means_, atol=0.1)
    assert_allclose(again.log_density(X), model.log_density(X), atol=0.3)
    assert_array_equal(model.sample(5, random_state=3)[0], model.sample(5, random_state=3)[0])
    assert model.sample(0)[0].shape == (0, 4)
    with pytest.raises(ValueError, match="whole number"):
        model.sample(-1)


# Bad input -------------------------------------------------------------------------------------


def test_priors_are_checked():
    X, y = make(3)
    for model in (GaussianClassifier, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis):
        with pytest.raises(ValueError, match="one probability per class, 3 here"):
            model(priors=[0.5, 0.5]).fit(X, y)
        with pytest.raises(ValueError, match="priors must be non-negative"):
            model(priors=[0.5, 1.0, -0.5]).fit(X, y)
    with pytest.raises(ValueError, match=r"priors must sum to 1; they sum to 1\.5"):
        GaussianClassifier(priors=[0.5, 0.5, 0.5]).fit(X, y)
    for model in (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis):
        with pytest.warns(UserWarning, match="priors do not sum to 1"):
            assert_allclose(model(priors=[0.5, 0.5, 0.5]).fit(X, y).priors_, 1 / 3)


def test_errors_name_the_remedy():
    X, y = make(2)
    weights = np.where(y == "a", 0.0, 1.0)
    with pytest.raises(ValueError, match="all samples of class 'a' have weight 0"):
        GaussianClassifier().fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="'covariance' parameter of GaussianClassifier must be"):
        GaussianClassifier("round").fit(X, y)
    with pytest.raises(ValueError, match=r"'shrinkage' parameter .* must be .* \[0.0, 1.0\]"):
        GaussianClassifier(shrinkage=1.5).fit(X, y)
    with pytest.raises(ValueError, match="give a number, or choose covariance='full'"):
        GaussianClassifier("diagonal", shrinkage="oas").fit(X, y)
    with pytest.raises(ValueError, match="needs a weight above 1"):
        GaussianClassifier("full", divisor="unbiased").fit(X, y, sample_weight=np.full(len(y), 1e-3))
    with pytest.raises(ValueError, match="does not take sample weights"):
        LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=peer_covariance.OAS()).fit(
            X, y, sample_weight=np.arange(len(y))
        )
    wide = np.column_stack([X, X[:, 0]])
    with pytest.raises(np.linalg.LinAlgError, match=r"class a is not full rank.*`reg_param`.*1 of its 5"):
        QuadraticDiscriminantAnalysis().fit(wide, y)
    with pytest.raises(np.linalg.LinAlgError, match=r"class 'a' is singular: the class has rank 4 in 5"):
        GaussianClassifier("full").fit(wide, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GaussianClassifier("full", shrinkage=0.1).fit(wide, y)
        QuadraticDiscriminantAnalysis(reg_param=0.1).fit(wide, y)


def test_wide_sparse_text():
    """50,000 sparse features: one variance each, and a clear refusal of a matrix."""
    random = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(60), 20), random.integers(0, 50_000, 1200)
    X = sparse.csr_array((np.ones(1200), (rows, columns)), shape=(60, 50_000))
    y = np.arange(60) % 2
    model = GaussianClassifier("diagonal", shrinkage=0.5).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.9
    with pytest.raises(ValueError, match="50,000 features need"):
        LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("dtype", "shift", "within"), [(np.float64, 1e8, 1e-5), (np.float32, 1e4, 1e-2)])
def test_sparse_features_far_from_zero_keep_their_digits(form, dtype, shift, within):
    random = np.random.default_rng(5)
    X, y = random.normal(size=(300, 4)), random.integers(3, size=300)
    X[:, :2] += shift
    X[:, 2:] *= random.random((300, 2)) < 0.5
    X = X.astype(dtype)
    rows, model = sparse.csr_array(X), GaussianClassifier(form).fit(X, y)
    assert_allclose(model.class_log_density(rows), model.class_log_density(X), rtol=0, atol=within)
    again = GaussianClassifier(form).fit(rows, y)
    assert_allclose(again.class_log_density(rows), model.class_log_density(X), rtol=0, atol=within)


@pytest.mark.parametrize("weighted", [False, True])
def test_few_samples_of_many_features_need_no_covariance(weighted, tmp_path):
    """The directions of a wide problem are those that the covariance itself gives."""
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 12)
    X = random.standard_normal((36, 120)) * 10.0 ** random.uniform(-3, 3, 120) + y[:, None]
    X[:, 7] = 3.0
    s = random.uniform(0.5, 2.0, 36) if weighted else None
    wide = LinearDiscriminantAnalysis().fit(X, y, sample_weight=s)
    whole = LinearDiscriminantAnalysis(store_covariance=True).fit(X, y, sample_weight=s)
    assert "rows" in wide._state
    assert "scatter" in whole._state
    assert_allclose(wide.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-7)
    assert_allclose(np.abs(wide.transform(X)), np.abs(whole.transform(X)), rtol=1e-7, atol=1e-7)
    assert_allclose(wide.log_det_, whole.log_det_)
    assert_allclose(wide.log_density(X), whole.log_density(X), rtol=1e-7)
    assert_allclose(wide.certificate_.primal, whole.certificate_.primal)
    (root,), (other,) = wide._roots(), whole._roots()
    assert_allclose(root @ root.T, other @ other.T, rtol=1e-6, atol=1e-9 * np.abs(other).max() ** 2)
    save(wide, tmp_path / "wide.sx")
    again = load(tmp_path / "wide.sx")
    assert_array_equal(again.predict_proba(X), wide.predict_proba(X))
    more = [model.partial_fit(X + 0.1, y, sample_weight=s) for model in (again, whole)]
    assert_allclose(more[0].coef_, more[1].coef_, rtol=1e-6, atol=1e-9)


def test_the_memory_of_a_wide_fit_is_that_of_its_samples():
    """A covariance of 30,000 features would take 7 GB."""
    random = np.random.default_rng(1)
    y = np.arange(20) % 2
    X = random.standard_normal((20, 30_000)) + y[:, None]
    model, other = LinearDiscriminantAnalysis().fit(X, y), peer.LinearDiscriminantAnalysis().fit(X, y)
    assert model.whitening_.shape == (30_000, 18)
    assert_allclose(model.decision_function(X), other.decision_function(X), atol=1e-8)
