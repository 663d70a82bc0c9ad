"""Hard margins, margin reports, probabilities, and messages for bad input."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.datasets import load_iris, make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from separatrix.kernels import Spectrum
from separatrix.models.one_class import OneClassSVM
from separatrix.models.svc import SVC, NuSVC
from separatrix.models.svr import SVR, NuSVR
from separatrix.solvers.platt import agree, couple, fit_sigmoid

IRIS = load_iris(return_X_y=True)


def two_classes(n=100, seed=0):
    X, y = make_classification(n, 6, flip_y=0.15, random_state=seed)
    return X, y


# --- hard margin -----------------------------------------------------------------------------------------


def test_hard_margin_is_the_limit_of_large_c(separable):
    X, y = separable
    hard, soft = SVC(C=np.inf, kernel="linear").fit(X, y), svm.SVC(C=1e8, kernel="linear", tol=1e-9).fit(X, y)
    assert_allclose(hard.coef_, soft.coef_, rtol=1e-6)
    assert_allclose(hard.intercept_, soft.intercept_, rtol=1e-6)
    assert hard.certificate_.separable is True
    assert hard.certificate_.status == "converged"
    margins = np.where(y == 1, 1, -1) * hard.decision_function(X)
    assert_allclose(margins.min(), 1.0, rtol=1e-9)
    assert_allclose(hard.margin_width_[0], 2 / np.linalg.norm(hard.coef_), rtol=1e-9)
    assert_allclose(hard.certificate_.primal, 0.5 * (hard.coef_**2).sum(), rtol=1e-9)


def test_hard_margin_of_several_classes():
    X, y = make_blobs(90, centers=4, cluster_std=0.3, random_state=0)
    model = SVC(C=np.inf, kernel="linear").fit(X, y)
    assert model.certificate_.separable is True
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_hard_margin_has_a_witness(kernel):
    X, y = IRIS
    if kernel == "rbf":  # opposite labels of one point are beyond any kernel
        X, y = np.vstack([X, X[:1]]), np.append(y, 1)
    with pytest.warns(ConvergenceWarning, match=r"no hyperplane separates class .* finite C"):
        model = SVC(C=np.inf, kernel=kernel).fit(X, y)
    assert model.certificate_.status == "inseparable"
    assert model.certificate_.separable is False
    for witness in model.witness_:
        assert_allclose([witness.first_weights.sum(), witness.second_weights.sum()], 1.0)
        assert np.all(y[witness.first] == witness.classes[0])
        assert np.all(y[witness.second] == witness.classes[1])
        if kernel == "linear":
            gap = witness.first_weights @ X[witness.first] - witness.second_weights @ X[witness.second]
            assert np.abs(gap).max() < 1e-10
        assert "coincide" in str(witness)
    assert np.isfinite(model.decision_function(X)).all()


def test_a_tube_that_no_function_fits_says_so():
    X = np.array([[0.0], [0.0], [1.0]])
    with pytest.warns(ConvergenceWarning, match="every target must lie within the tube"):
        model = SVR(C=np.inf, epsilon=0.1).fit(X, [0.0, 1.0, 0.0])
    assert model.certificate_.status == "inseparable"
    assert np.isfinite(model.predict(X)).all()


# --- reports ---------------------------------------------------------------------------------------------


def test_slacks_and_width_make_the_primal():
    X, y = two_classes()
    s = np.random.default_rng(0).choice([0.5, 1.0, 3.0], size=100)
    model = SVC(C=2.0, tol=1e-8).fit(X, y, sample_weight=s)
    report = model.margin_report(X, y)
    primal = 0.5 * (2 / report.width) ** 2 + 2.0 * (s * report.slack).sum()
    assert_allclose(primal, model.certificate_.primal, rtol=1e-6)


def test_places_of_training_samples():
    X, y = two_classes()
    model = SVC(C=2.0).fit(X, y)
    report = model.margin_report(X, y)
    masks = [report.outside, report.on, report.inside, report.misclassified]
    assert_array_equal(np.sum(masks, axis=0), np.ones(100))
    assert_array_equal(report.misclassified, model.predict(X) != y)
    alpha = np.zeros(100)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    assert np.all(alpha[report.outside] == 0)
    assert np.all(report.on[(alpha > 0) & (alpha < 2.0)])
    assert str(report).startswith(f"margin width {report.width:.6g}: {report.outside.sum()} outside")


def test_reports_of_several_machines():
    X, y = IRIS
    model = SVC().fit(X, y)
    report = model.margin_report(X, y)
    assert report.slack.shape == (150, 3)
    assert_array_equal(np.isnan(report.slack), model._coding.codes[y] == 0)
    assert report.width.shape == (3,)
    with pytest.raises(ValueError, match="150 samples but y has 10 labels"):
        model.margin_report(X, y[:10])


def test_leave_one_out_bound():
    X, y = two_classes(60)
    model = SVC(gamma=0.2).fit(X, y)
    assert model.loo_bound_ == model.support_.size / 60
    every = np.arange(60)
    errors = [
        SVC(gamma=0.2).fit(X[every != i], y[every != i]).predict(X[i : i + 1])[0] != y[i] for i in range(60)
    ]
    assert np.mean(errors) <= model.loo_bound_


# --- probabilities ---------------------------------------------------------------------------------------


def test_sigmoid_is_a_logistic_regression_on_smoothed_targets():
    random = np.random.default_rng(0)
    f = random.normal(size=200)
    positive = random.random(200) < 1 / (1 + np.exp(-2 * f + 0.5))
    A, B = fit_sigmoid(f, positive)
    more, less = positive.sum(), (~positive).sum()
    t = np.where(positive, (more + 1) / (more + 2), 1 / (less + 2))
    # Each sample once as positive with weight t, once as negative with weight 1 − t.
    peer = LogisticRegression(C=np.inf, tol=1e-12).fit(
        np.concatenate([f, f])[:, None], np.repeat([1, 0], 200), sample_weight=np.concatenate([t, 1 - t])
    )
    assert_allclose([A, B], [-peer.coef_[0, 0], -peer.intercept_[0]], atol=1e-5)


def test_sigmoid_takes_weights_and_extremes():
    f, positive = np.array([-1.0, 0.5, 2.0, -0.3]), np.array([False, True, True, True])
    weighted = fit_sigmoid(f, positive, np.array([2.0, 1.0, 3.0, 1.0]))
    assert_allclose(weighted, fit_sigmoid(np.repeat(f, [2, 1, 3, 1]), np.repeat(positive, [2, 1, 3, 1])))
    for scores in (np.array([-1e8, 1e8]), np.zeros(2)):
        assert np.isfinite(fit_sigmoid(scores, np.array([False, True]))).all()


@given(st.integers(0, 10**6), st.integers(2, 6))
@settings(max_examples=30)
def test_coupling_recovers_consistent_probabilities(seed, K):
    p = np.random.default_rng(seed).dirichlet(np.ones(K), size=5) + 1e-3
    p /= p.sum(axis=1, keepdims=True)
    pairs = np.column_stack([p[:, i] / (p[:, i] + p[:, j]) for i in range(K) for j in range(i + 1, K)])
    assert_allclose(couple(pairs, K), p, atol=1e-8)


@given(
    arrays.arrays(np.float64, (7, 4), elements=st.floats(0, 1)),
    arrays.arrays(np.intp, 7, elements=st.integers(0, 3)),
)
@settings(max_examples=40)
def test_agreement_is_the_nearest_point(raw, chosen):
    p = (raw + 1e-3) / (raw + 1e-3).sum(axis=1, keepdims=True)
    q = agree(p, chosen)
    assert_array_equal(np.argmax(q, axis=1), chosen)
    assert_allclose(q.sum(axis=1), 1.0)
    right = p.max(axis=1) == p[np.arange(7), chosen]
    assert_allclose(q[right], p[right], atol=1e-5)
    # No point on the way to another one with the property is nearer.
    corners = np.eye(4)[chosen]
    for step in (0.01, 0.3):
        other = (1 - step) * q + step * corners
        assert np.all(np.square(q - p).sum(axis=1) <= np.square(other - p).sum(axis=1) + 1e-4)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("make", [SVC, NuSVC])
def test_probabilities_agree_with_predictions(make, multiclass):
    X, y = make_classification(300, 6, n_informative=4, n_classes=4, random_state=0)
    settings = dict(nu=0.3) if make is NuSVC else dict(C=5.0)
    model = make(probability=True, multiclass=multiclass, **settings).fit(X, y)
    grid = np.random.default_rng(0).normal(size=(400, 6)) * 2
    p = model.predict_proba(grid)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(model.classes_[np.argmax(p, axis=1)], model.predict(grid))
    assert_allclose(np.exp(model.predict_log_proba(grid)), p)


def test_two_classes_agree_even_with_shifted_sigmoids():
    X, y = make_classification(400, 5, weights=[0.9], random_state=1)
    model = SVC(probability=True, class_weight="balanced").fit(X, y)
    p, f = model.predict_proba(X)[:, 1], model.decision_function(X)
    assert_array_equal(p > 0.5, f >= 0)
    order = np.argsort(f)
    assert np.all(np.diff(p[order]) >= 0)
    assert roc_auc_score(y, p) == pytest.approx(roc_auc_score(y, f))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_probabilities_are_as_good_as_libsvms():
    X, y = make_classification(600, 8, n_informative=5, n_classes=3, flip_y=0.1, random_state=2)
    ours = SVC(probability=True).fit(X[:300], y[:300])
    peer = svm.SVC(probability=True, random_state=0).fit(X[:300], y[:300])
    losses = [log_loss(y[300:], model.predict_proba(X[300:])) for model in (ours, peer)]
    assert losses[0] < 1.03 * losses[1]
    assert_allclose(ours.probA_, peer.probA_, rtol=0.3)
    two, its = (make(probability=True, random_state=0).fit(X[:300], y[:300] > 0) for make in (SVC, svm.SVC))
    assert_allclose([two.probA_, two.probB_], [its.probA_, its.probB_], atol=0.3)


def test_probabilities_repeat_in_any_thread():
    X, y = IRIS

    def fit(seed):
        return SVC(probability=True, random_state=seed).fit(X, y).predict_proba(X)

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(fit, [0, 0, 0, None])
    for other in others:
        assert_array_equal(first, other)
    assert np.any(fit(1) != first)


def test_folds_without_a_class_still_give_probabilities():
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.array([0] * 11 + [1])
    p = SVC(probability=True).fit(X, y).predict_proba(X)
    assert np.isfinite(p).all()


def test_probabilities_only_where_asked():
    X, y = IRIS
    assert not hasattr(SVC(), "predict_proba")
    model = SVC().fit(X, y)
    assert model.probA_.size == model.probB_.size == 0
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        model.set_params(probability=True).predict_proba(X)


# --- bad input -------------------------------------------------------------------------------------------

X, Y = two_classes(20)
BAD = {
    "negative C": (SVC(C=-1.0), X, Y, "'C' parameter of SVC must be"),
    "zero C": (SVR(C=0.0), X, Y, "'C' parameter of SVR must be"),
    "infeasible nu": (NuSVC(nu=0.9), X[:12], [0] * 10 + [1] * 2, "nu is infeasible.*Choose nu <= 0.33"),
    "nu of 0": (OneClassSVM(nu=0.0), X, Y, "'nu' parameter of OneClassSVM must be"),
    "infinite C": (NuSVR(C=np.inf), X, Y, r"C must be finite.*SVR\(C=inf\)"),
    "gamma of 0": (SVC(gamma=0.0), X, Y, "'gamma' parameter of SVC must be"),
    "negative gamma": (SVC(gamma=-0.5), X, Y, "'gamma' parameter of SVC must be"),
    "not square": (SVC(kernel="precomputed"), X, Y, "must be a square matrix. Input is a 20x6"),
    "not symmetric": (
        SVC(kernel="precomputed"),
        np.eye(20) + np.eye(20, k=1),
        Y,
        r"not symmetric: entry \(\d+, \d+\)",
    ),
    "lopsided callable": (
        SVC(kernel=lambda A, B: A @ np.triu(np.ones((6, 6))) @ B.T),
        X,
        Y,
        r"is not symmetric: .* at row \d+, column \d+.*0\.5 \* \(k\(A, B\) \+ k\(B, A\)\.T\)",
    ),
    "random callable": (
        SVR(kernel=lambda A, B: np.random.default_rng(0).standard_normal((len(A), len(B)))),
        X,
        Y,
        "is not symmetric.*leave out what is random",
    ),
    "wrong shape": (SVC(kernel=lambda A, B: A), X, Y, r"returned shape .* must return shape"),
    "NaN": (SVC(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)), X, Y, "nan"),
    "one class": (SVC(), X, np.zeros(20), "only one class: 0.0"),
    "all weights 0": (SVC(), X, Y, "all samples have zero or negative weights"),
    "joint nu": (NuSVC(multiclass="joint"), X, Y, r"choose SVC\(multiclass='joint'\)"),
    "joint hard margin": (SVC(multiclass="joint", C=np.inf), X, Y, "needs a finite C"),
    "pairs of ovr": (
        SVC(multiclass="ovr", decision_function_shape="ovo"),
        X,
        Y,
        "choose decision_function_shape='ovr' or multiclass='ovo'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    model, A, y, message = BAD[name]
    weights = np.zeros(20) if name == "all weights 0" else None
    with pytest.raises(ValueError, match=message):
        model.fit(A, y, sample_weight=weights)


def test_samples_of_the_wrong_kind():
    with pytest.raises(TypeError, match=r"holds texts, but kernel='rbf'.*Spectrum"):
        SVC().fit(["a", "b"], [0, 1])
    with pytest.raises(TypeError, match="must hold texts"):
        SVC(kernel=Spectrum(2)).fit(X, Y)
    model = SVC(kernel="precomputed").fit(X @ X.T, Y)
    with pytest.raises(ValueError, match=r"X.shape\[1\] = 6 should be equal to 20"):
        model.predict(X)
    with pytest.raises(ValueError, match="break_ties must be False"):
        SVC(break_ties=True, decision_function_shape="ovo").fit(*IRIS).predict(IRIS[0])


def test_huge_values_are_refused():
    huge = np.finfo(np.float64).max * np.random.default_rng(0).random((10, 2))
    with pytest.raises(ValueError, match=r"not finite.*StandardScaler"):
        SVC().fit(huge, np.arange(10) % 2)
