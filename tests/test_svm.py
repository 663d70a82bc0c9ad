"""The kernel machines against quadratic programmes, LIBSVM, and what theory promises."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning

import oracles_svm
from separatrix.data.threads import at_most
from separatrix.kernels import RBF, AnovaRBF, Bessel, Laplacian, Linear, Polynomial, Sigmoid, Spectrum
from separatrix.models.one_class import OneClassSVM
from separatrix.models.svc import SVC, NuSVC
from separatrix.models.svr import SVR, NuSVR
from separatrix.solvers import _loop

KERNELS = {
    "linear": dict(kernel="linear"),
    "rbf": dict(kernel="rbf", gamma=0.3),
    "poly": dict(kernel="poly", gamma=0.4, coef0=1.0, degree=3),
}
OBJECTS = {"linear": Linear(), "rbf": RBF(0.3), "poly": Polynomial(3, 0.4, 1.0)}


def overlapping(n=60, d=3, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.6 * random.normal(size=n) > 0.3, 1, -1)
    return X, y


def weights_for(n, seed=0):
    return np.random.default_rng(seed).choice([0.5, 1.0, 2.0], size=n)


def dual_value(K, model, p=1.0):
    """The dual objective of a fitted binary classifier, from its public attributes."""
    c = np.zeros(K.shape[0])
    c[model.support_] = model.dual_coef_[0]
    return p * np.abs(c).sum() - 0.5 * c @ K @ c


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
def test_classification_is_the_programme(name, C, weighted):
    X, y = overlapping()
    s = weights_for(60) if weighted else np.ones(60)
    value, scores = oracles_svm.classification(OBJECTS[name](X), y, C * s)
    model = SVC(C=C, tol=1e-8, **KERNELS[name]).fit(X, y, sample_weight=s)
    certificate = model.certificate_
    assert certificate.status == "converged"
    assert certificate.dual <= certificate.primal
    assert certificate.relative_gap < 1e-6
    assert_allclose(certificate.primal, value, rtol=1e-6)
    assert_allclose(model.decision_function(X), scores, atol=2e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_nu_classification_is_the_programme(name, weighted):
    X, y = overlapping(seed=1)
    s = weights_for(60, 1) if weighted else np.ones(60)
    value, scores = oracles_svm.nu_classification(OBJECTS[name](X), y, s, 0.4)
    model = NuSVC(nu=0.4, tol=1e-9, **KERNELS[name]).fit(X, y, sample_weight=s)
    assert_allclose(model.certificate_.primal, value, rtol=1e-6, atol=1e-9)
    assert_allclose(model.decision_function(X), scores, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_regressions_are_the_programmes(name, weighted):
    X, _ = overlapping(40, seed=2)
    t = np.sin(2 * X[:, 0]) + 0.2 * X[:, 1]
    s = weights_for(40, 2) if weighted else np.ones(40)
    K = OBJECTS[name](X)
    value, found = oracles_svm.regression(K, t, 2.0 * s, epsilon=0.15)
    model = SVR(C=2.0, epsilon=0.15, tol=1e-9, **KERNELS[name]).fit(X, t, sample_weight=s)
    assert_allclose(model.certificate_.primal, value, rtol=1e-6)
    assert_allclose(model.predict(X), found, atol=1e-3)
    value, found = oracles_svm.regression(K, t, 2.0 * s, nu=0.3)
    model = NuSVR(C=2.0, nu=0.3, tol=1e-9, **KERNELS[name]).fit(X, t, sample_weight=s)
    assert_allclose(model.certificate_.primal, value, rtol=1e-6)
    assert_allclose(model.predict(X), found, atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_one_class_is_the_programme(nu, weighted):
    X, _ = overlapping(50, seed=3)
    s = weights_for(50, 3) if weighted else np.ones(50)
    value, scores = oracles_svm.one_class(RBF(0.3)(X), s, nu)
    model = OneClassSVM(nu=nu, gamma=0.3, tol=1e-9).fit(X, sample_weight=s)
    assert_allclose(model.certificate_.primal, value, rtol=1e-6)
    assert_allclose(model.decision_function(X), scores, atol=1e-4)


DATA = {
    "iris": load_iris(return_X_y=True),
    "unbalanced": make_classification(400, 8, weights=[0.9], flip_y=0.05, random_state=0),
    "four classes": make_classification(300, 6, n_informative=4, n_classes=4, random_state=1),
    "beyond the small": make_classification(1200, 10, flip_y=0.1, random_state=2),
}


CASES = [
    (data, kernel, kind)
    for data in DATA
    for kernel in ("linear", "rbf", "poly", "sigmoid")
    for kind in ("dense", "csr", "float32")
    if data != "beyond the small" or (kernel == "rbf") or (kernel == "poly" and kind == "dense")
]


@pytest.mark.parametrize(("data", "kernel", "kind"), CASES)
def test_as_good_as_libsvm(data, kernel, kind):
    X, y = DATA[data]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    gamma, C, tol = 0.1 if kernel != "sigmoid" else 0.01, 2.0, 1e-6
    chosen = dict(kernel=kernel, gamma=gamma, coef0=0.5 if kernel == "poly" else 0.0, C=C, tol=tol)
    given = {"dense": X, "csr": sparse.csr_array(X), "float32": X.astype(np.float32)}[kind]
    ours, peer = SVC(**chosen).fit(given, y), svm.SVC(**chosen).fit(X, y)
    if kernel == "sigmoid":
        assert ours.certificate_.status in ("converged", "nonconvex")
    else:
        assert ours.certificate_.status == "converged"
        assert ours.certificate_.relative_gap < tol
    assert ours.dual_coef_.shape[0] == peer.dual_coef_.shape[0]
    assert_allclose(ours.decision_function(given), peer.decision_function(X), atol=5e-3)
    assert np.mean(ours.predict(given) == peer.predict(X)) > 0.995


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_dual_objective_is_not_below_libsvms(C):
    X, y = (part[:700] for part in DATA["beyond the small"])
    K = RBF(0.05)(X)
    peer = svm.SVC(C=C, gamma=0.05, tol=1e-6).fit(X, y)
    ours = SVC(C=C, gamma=0.05, tol=1e-6).fit(X, y)
    best = dual_value(K, peer)
    assert ours.certificate_.dual >= best - 1e-6 * abs(best)
    assert_allclose(dual_value(K, ours), ours.certificate_.dual, rtol=1e-6)
    assert ours.certificate_.relative_gap < 1e-6


@pytest.mark.parametrize("make", [SVR, NuSVR])
def test_regression_agrees_with_libsvm(make):
    X, t = load_diabetes(return_X_y=True)
    peer = {"SVR": svm.SVR, "NuSVR": svm.NuSVR}[make.__name__]
    for chosen in (dict(C=100.0), dict(kernel="linear", C=10.0), dict(kernel="poly", gamma=5.0, coef0=1.0)):
        ours, theirs = make(tol=1e-6, **chosen).fit(X, t), peer(tol=1e-6, **chosen).fit(X, t)
        assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5, atol=1e-3)
        assert ours.certificate_.relative_gap < 1e-6


def test_a_certificate_can_be_recomputed():
    X, y = overlapping(150, seed=4)
    model = SVC(C=3.0, gamma=0.4, tol=1e-6).fit(X, y)
    c = np.zeros(150)
    c[model.support_] = model.dual_coef_[0]
    K = RBF(0.4)(X)
    primal = 0.5 * c @ K @ c + 3.0 * np.maximum(0, 1 - y * (K @ c + model.intercept_)).sum()
    dual = np.abs(c).sum() - 0.5 * c @ K @ c
    assert_allclose([primal, dual], [model.certificate_.primal, model.certificate_.dual], rtol=1e-9)
    assert abs(c.sum()) < 1e-9
    assert np.all(np.abs(c) <= 3.0)
    assert "within" in model.certificate_.message


def test_several_problems_are_certified_together():
    X, y = DATA["iris"]
    three = SVC(tol=1e-6).fit(X, y)
    pairs = [SVC(tol=1e-6, gamma=three.kernel_.gamma).fit(X[y != k], y[y != k]) for k in (2, 1, 0)]
    assert_allclose(three.certificate_.primal, sum(m.certificate_.primal for m in pairs), rtol=1e-6)
    assert "the worst of 3 problems" in three.certificate_.message


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.05, 1.0, 20.0]),
    st.sampled_from(["linear", "rbf", "poly"]),
)
@settings(max_examples=30)
def test_optimality_conditions(seed, C, kernel):
    """``y f ≥ 1`` where ``α = 0``, ``= 1`` where it is free, ``≤ 1`` where it is at its bound."""
    X, y = overlapping(40, 2, seed)
    if abs(y.sum()) == 40:
        return
    model = SVC(C=C, kernel=kernel, gamma=0.5, coef0=1.0, tol=1e-5).fit(X, y)
    alpha = np.zeros(40)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    m = y * model.decision_function(X)
    free = (alpha > 0) & (alpha < C)
    assert np.all(m[alpha == 0] >= 1 - 2e-5)
    assert np.all(np.abs(m[free] - 1) <= 2e-5)
    assert np.all(m[alpha >= C] <= 1 + 2e-5)


def test_a_nu_without_margin_says_so():
    X, y = overlapping(seed=1)
    with pytest.warns(ConvergenceWarning, match=r"nu=0.1 leaves no margin.*larger nu"):
        model = NuSVC(nu=0.1, kernel="linear").fit(X, y)
    assert model.certificate_.status == "inseparable"
    assert np.isfinite(model.decision_function(X)).all()


@given(st.integers(0, 10**6), st.floats(0.1, 0.9))
@settings(max_examples=25)
def test_nu_property(seed, nu):
    """At most the fraction ν of the samples are margin errors, at least that fraction support vectors."""
    X, y = overlapping(50, 2, seed)
    most = 2 * min((y > 0).mean(), (y < 0).mean())
    if nu > most + 1e-9:
        with pytest.raises(ValueError, match=r"specified nu is infeasible.*Choose nu <= "):
            NuSVC(nu=nu).fit(X, y)
        return
    model = NuSVC(nu=nu, gamma=0.5, tol=1e-4).fit(X, y)
    errors = y * model.decision_function(X) < 1 - 1e-4
    assert errors.mean() <= nu + 1e-9
    assert model.n_support_.sum() / 50 >= nu - 1e-9
    outside = OneClassSVM(nu=nu, gamma=0.5, tol=1e-6).fit(X)
    assert (outside.decision_function(X) < -1e-4).mean() <= nu + 1e-9
    assert outside.n_support_[0] / 50 >= nu - 1e-9


@given(st.integers(0, 10**6), st.floats(0.05, 0.9))
@settings(max_examples=25)
def test_tube_property(seed, nu):
    """Samples strictly within the tube have no part; those outside are at their bound; ν bounds both."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(40, 2))
    t = np.sin(X[:, 0]) + 0.3 * random.normal(size=40)
    model = SVR(C=2.0, epsilon=0.2, gamma=0.5, tol=1e-6).fit(X, t)
    beta = np.zeros(40)
    beta[model.support_] = model.dual_coef_[0]
    error = t - model.predict(X)
    assert np.all(beta[np.abs(error) < 0.2 - 1e-5] == 0)
    beyond = np.abs(error) > 0.2 + 1e-5
    assert_allclose(beta[beyond], 2.0 * np.sign(error[beyond]))
    assert abs(beta.sum()) < 1e-9
    learnt = NuSVR(C=2.0, nu=nu, gamma=0.5, tol=1e-6).fit(X, t)
    error = np.abs(t - learnt.predict(X))
    assert learnt.epsilon_ >= -1e-6
    assert (error > learnt.epsilon_ + 1e-4).mean() <= nu + 1e-9


@pytest.mark.parametrize("make", [SVC, SVR, OneClassSVM])
def test_weight_two_is_twice_and_zero_is_absent(make):
    X, y = overlapping(50, seed=5)
    s = np.random.default_rng(5).integers(0, 4, size=50)
    many = np.repeat(np.arange(50), s)
    weighted, repeated = make().fit(X, y, sample_weight=s), make().fit(X[many], y[many])
    apply = "predict" if make is SVR else "decision_function"
    assert_allclose(getattr(weighted, apply)(X), getattr(repeated, apply)(X), atol=1e-6)
    assert np.all(s[weighted.support_] > 0)
    assert weighted.certificate_.samples == np.count_nonzero(s)


def test_negative_weights_are_absent_as_in_scikit_learn():
    X, y = overlapping(30, seed=6)
    s = np.ones(30)
    s[:5] = -1.0
    assert_allclose(
        SVC(gamma=0.5).fit(X, y, sample_weight=s).decision_function(X),
        SVC(gamma=0.5).fit(X[5:], y[5:]).decision_function(X),
        atol=1e-7,
    )


def test_class_weights():
    X, y = overlapping(80, seed=7)
    s = np.where(y > 0, 3.0, 0.5)
    for make in (SVC, lambda **kw: NuSVC(nu=0.2, **kw)):
        by_class = make(gamma=0.5, class_weight={1: 3.0, -1: 0.5}).fit(X, y)
        by_sample = make(gamma=0.5).fit(X, y, sample_weight=s)
        assert_allclose(by_class.decision_function(X), by_sample.decision_function(X), atol=1e-6)
        assert_array_equal(by_class.class_weight_, [0.5, 3.0])
    # Balanced classes make every nu feasible.
    unbalanced = np.flatnonzero((y > 0) | (np.arange(80) % 4 == 0))
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        NuSVC(nu=0.95).fit(X[unbalanced], y[unbalanced])
    NuSVC(nu=0.95, class_weight="balanced").fit(X[unbalanced], y[unbalanced])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("nu", [0.15, 0.3])
def test_weights_of_a_nu_machine(classes, nu):
    """Sample weights are scikit-learn's; class weights, which it leaves out, multiply them."""
    X, y = overlapping(90, seed=8)
    y = np.digitize(X[:, 0], [-0.4, 0.5]) if classes == 3 else y
    s = np.random.default_rng(8).uniform(0.3, 2.0, 90)
    ours, theirs = NuSVC(nu=nu, gamma=0.5, tol=1e-9), svm.NuSVC(nu=nu, gamma=0.5, tol=1e-9)
    for weights in (None, s):
        scores = theirs.fit(X, y, sample_weight=weights).decision_function(X)
        assert_allclose(ours.fit(X, y, sample_weight=weights).decision_function(X), scores, atol=1e-4)
    per_class = dict(zip(np.unique(y), [0.6, 1.0, 1.5], strict=False))
    scores = theirs.fit(X, y, sample_weight=s * [per_class[label] for label in y]).decision_function(X)
    by_class = clone(ours).set_params(class_weight=per_class).fit(X, y, sample_weight=s)
    assert_allclose(by_class.decision_function(X), scores, atol=1e-4)
    if classes == 2:
        upper = s * [per_class[label] for label in y]
        value, scores = oracles_svm.nu_classification(RBF(0.5)(X), y, upper, nu)
        assert_allclose(by_class.certificate_.primal, value, rtol=1e-6)
        assert_allclose(by_class.decision_function(X), scores, atol=1e-3)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_each_machine_is_trained_as_asked(multiclass):
    X, y = DATA["four classes"]
    model = SVC(multiclass=multiclass, gamma=0.2, tol=1e-6, break_ties=True).fit(X, y)
    columns = model._score_columns(X)
    coding = model._coding
    for column in range(coding.columns):
        codes = coding.codes[y, column]
        own = SVC(gamma=0.2, tol=1e-6).fit(X[codes != 0], codes[codes != 0])
        assert_allclose(columns[:, column], own.decision_function(X), atol=1e-4)
    assert model.margin_width_.shape == (coding.columns,)
    assert_array_equal(model.predict(X), model.classes_[np.argmax(model.decision_function(X), axis=1)])


@pytest.mark.parametrize("weighted", [False, True])
def test_joint_is_the_programme(weighted):
    X, y = (part[100:140] for part in DATA["four classes"])
    s = weights_for(40, 4) if weighted else np.ones(40)
    value, scores = oracles_svm.joint(RBF(0.2)(X), y, 3.0 * s)
    model = SVC(multiclass="joint", C=3.0, gamma=0.2, tol=1e-8).fit(X, y, sample_weight=s)
    assert_allclose(model.certificate_.primal, value, rtol=1e-6)
    assert model.certificate_.relative_gap < 1e-6
    assert_allclose(model.decision_function(X), scores, atol=1e-3)
    assert_array_equal(model.intercept_, np.zeros(4))
    assert model.dual_coef_.shape == (4, model.support_.size)
    assert_array_equal(model.predict(X), model.classes_[np.argmax(model.decision_function(X), axis=1)])
    # Slacks and the squared weights make the primal.
    coef = np.zeros((4, 40))
    coef[:, model.support_] = model.dual_coef_
    slack = model.margin_report(X, y).slack
    primal = 0.5 * np.trace(coef @ RBF(0.2)(X) @ coef.T) + 3.0 * (s * slack).sum()
    assert_allclose(primal, model.certificate_.primal, rtol=1e-9)


def test_two_classes_jointly_are_one_machine_without_intercept():
    X, y = overlapping(60, seed=13)
    model = SVC(multiclass="joint", C=1.0, kernel="linear", tol=1e-8).fit(X, y)
    assert model.decision_function(X).shape == (60,)
    assert model.coef_.shape == (1, 3)
    # The difference w of the two vectors solves ½‖w/√2‖² + C Σ max(0, 1 − y w·x).
    f = model.decision_function(X)
    assert_allclose(
        model.certificate_.primal, 0.25 * (model.coef_**2).sum() + np.maximum(0, 1 - y * f).sum(), rtol=1e-6
    )


def test_one_vs_one_scores_for_many_classes_are_those_of_all_pairs():
    X, y = make_classification(400, 8, n_informative=6, n_classes=7, n_clusters_per_class=1, random_state=3)
    model = SVC(decision_function_shape="ovo", gamma=0.2).fit(X, y)
    K = model.kernel_(X, model.support_vectors_)
    assert_allclose(
        model.decision_function(X), K @ model._pair_columns(model.dual_coef_) + model.intercept_, atol=1e-6
    )
    peer = svm.SVC(decision_function_shape="ovo", gamma=0.2).fit(X, y)
    assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("break_ties", [False, True])
def test_equal_votes_go_to_the_first_class_or_to_the_larger_sum_of_scores(break_ties):
    X, y = DATA["four classes"]
    model = SVC(gamma=0.3, break_ties=break_ties).fit(X, y)
    grid = np.random.default_rng(0).normal(size=(500, 6))
    scores = model._score_columns(grid)
    codes = model._coding.codes
    votes = (scores >= 0) @ (codes > 0).T.astype(int) + (scores < 0) @ (codes < 0).T.astype(int)
    sums = break_ties * (scores @ codes.T)
    expected = np.lexsort((-np.arange(4)[None, :].repeat(500, 0), sums, votes), axis=1)[:, -1]
    assert np.any((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1)
    assert_array_equal(model.predict(grid), model.classes_[expected])


@pytest.mark.parametrize("n", [300, 3000])
def test_same_model_for_any_number_of_threads(n):
    X, y = make_classification(n, 10, n_informative=5, n_classes=3, flip_y=0.1, random_state=4)
    fits = []
    for threads in (1, 2):
        with at_most(threads):
            model = SVC(C=5.0).fit(X, y)
            fits.append((model.dual_coef_, model.intercept_, model.decision_function(X[:50])))
    for one, two in zip(*fits, strict=True):
        assert_array_equal(one, two)


def test_kernels_of_every_kind():
    X, y = overlapping(50, seed=8)
    K = Laplacian(0.3)(X)
    expected = SVC(kernel=Laplacian(0.3)).fit(X, y).decision_function(X)
    for kernel, A in (
        ("laplacian", X),
        (lambda A, B: Laplacian(0.3)(A, B), X),
        ("precomputed", K),
        (0.5 * Laplacian(0.3) + 0.5 * Laplacian(0.3), X),
    ):
        model = SVC(kernel=kernel, gamma=0.3).fit(A, y)
        assert_allclose(model.decision_function(A), expected, atol=1e-6)
    assert model.support_vectors_.shape == (model.support_.size, 3)


def test_texts():
    texts = ["abracadabra", "abrakadabra", "cadabra", "hello world", "hello there", "world, hello"]
    y = ["spell"] * 3 + ["greeting"] * 3
    model = SVC(kernel=Spectrum(2)).fit(texts, y)
    assert list(model.predict(["abra", "hello"])) == ["spell", "greeting"]
    assert model.__sklearn_tags__().input_tags.string
    assert model.__sklearn_tags__().input_tags.two_d_array is False
    own = SVC(kernel=lambda A, B: Spectrum(2)(A, B)).fit(texts, y)
    assert_allclose(own.decision_function(texts), model.decision_function(texts), atol=1e-9)
    assert SVR(kernel=Spectrum(2)).fit(texts, range(6)).predict(["abra"]).shape == (1,)
    assert OneClassSVM(kernel=Spectrum(2)).fit(texts).predict(texts).shape == (6,)


@pytest.mark.parametrize("make", [SVC, SVR])
def test_max_time_leaves_a_usable_model(make):
    X, y = make_classification(3000, 10, flip_y=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time is over"):
        model = make(C=1e4, max_time=1e-4, tol=1e-9).fit(X, y)
    assert model.certificate_.status == "max_time"
    assert model.fit_status_ == 1
    assert np.isfinite(model.predict(X[:9])).all()
    assert model.certificate_.gap > 0


@pytest.mark.parametrize("make", [SVC, SVR])
def test_no_step_at_all_leaves_the_whole_gap(make):
    """Without weights the dual is 0, the primal is not: all of it is gap, whatever the best weights are."""
    X, y = make_classification(60, 5, flip_y=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="within 1 of the minimum"):
        model = make(max_iter=0).fit(X, y)
    assert model.support_.size == 0
    assert model.certificate_.dual == 0
    assert model.certificate_.relative_gap == 1


def test_time_that_is_up_leaves_no_more_gap_than_there_is(monkeypatch):
    """Steps in single precision leave scores vague; the certificate tells those of the model."""
    random = np.random.default_rng(0)
    X = random.standard_normal((1800, 4))
    y = np.sin(X[:, 0]) + 0.5 * random.standard_normal(1800)
    asked = []

    def reason(control):
        asked.append(control)
        return "max_time" if len(asked) > 2 else None

    monkeypatch.setattr(_loop.Control, "reason", reason)
    with pytest.warns(ConvergenceWarning, match="max_time is over"):
        model = SVR(C=1e4, gamma=0.1).fit(X, y)
    scores, coef = model.predict(X), model.dual_coef_[0]
    square = coef @ (scores[model.support_] - model.intercept_)
    primal = 0.5 * square + 1e4 * np.maximum(np.abs(scores - y) - 0.1, 0).sum()
    dual = coef @ y[model.support_] - 0.1 * np.abs(coef).sum() - 0.5 * square
    assert_allclose(model.certificate_.primal, primal, rtol=1e-6)
    assert_allclose(model.certificate_.dual, dual, rtol=1e-6)
    assert_allclose(model.certificate_.gap, primal - dual, rtol=1e-6)


def test_interrupt_leaves_a_usable_model():
    X, y = make_classification(4000, 10, flip_y=0.3, random_state=0)

    def interrupt():  # once the loop has taken over Ctrl-C: before, it would end the tests
        while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            time.sleep(1e-3)
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Thread(target=interrupt)
    timer.start()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = SVC(C=1e5, tol=1e-12).fit(X, y)
    timer.join()
    assert model.certificate_.status == "interrupted"
    assert model.predict(X[:5]).shape == (5,)


def test_max_iter_counts_steps_and_warns_as_scikit_learn_does():
    X, y = overlapping(60, seed=9)
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=3\).  Consider"):
        model = SVC(max_iter=3).fit(X, y)
    assert_array_equal(model.n_iter_, [3])
    assert model.certificate_.status == "max_iter"


@pytest.mark.parametrize("kernel", [AnovaRBF(), Bessel(), RBF(0.1) + 0.5 * Polynomial(3)], ids=repr)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_few_samples_in_single_precision_have_kernel_values_in_double(kernel, layout):
    """As scikit-learn's machines, which take them for double ones: the optimum is the same."""
    X, y = overlapping(80, seed=3)
    X = X.astype(np.float32)
    single, double = (
        SVC(kernel=kernel, C=100.0, tol=1e-6).fit(layout(A), y) for A in (X, X.astype(np.float64))
    )
    assert_allclose(single.certificate_.dual, double.certificate_.dual, rtol=1e-9)


@pytest.mark.parametrize("make", [SVC, SVR, NuSVR])
def test_a_huge_C_gets_advice(make):
    X, y = overlapping(200, seed=10)
    y = np.where(y == y[0], 1.0, -1.0)
    with pytest.warns(ConvergenceWarning, match=r"lower C, .* is (9e\+03|1e\+04) times the targets"):
        make(C=1e4, max_iter=5).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        make(C=1.0, max_iter=5).fit(X, y)


def test_large_kernel_values_get_advice():
    X, y = overlapping(200, seed=10)
    X *= 100
    with pytest.warns(ConvergenceWarning, match=r"standardise the features, .*, or lower C: k\(x, x\) is up"):
        SVC(kernel="poly", gamma=1.0, C=0.1, max_iter=5).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="lower C, the larger the slower"):
        SVC(kernel="precomputed", C=0.1, max_iter=5).fit((X @ X.T) ** 3, y)


def test_unscaled_features_get_advice():
    X, y = overlapping(200, seed=10)
    X[:, 2] *= 1e6
    with pytest.warns(ConvergenceWarning, match=r"the features differ in scale by 1e\+06: standardise them"):
        SVC(kernel="linear", C=100.0, max_iter=50).fit(X, y)


def test_duplicates_with_opposite_labels_end():
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 2)), 2, axis=0)
    y = np.tile([0, 1], 30)
    model = SVC(C=1e6).fit(X, y)
    assert model.certificate_.status == "converged"
    assert np.isfinite(model.decision_function(X)).all()


def test_indefinite_kernels_end_and_say_so():
    X, y = overlapping(60, seed=11)
    model = SVC(kernel="sigmoid", gamma=3.0, coef0=-1.0).fit(X, y)
    assert model.certificate_.status == "nonconvex"
    assert "only local" in model.certificate_.message
    assert model.certificate_.gap is None
    assert np.all(np.abs(model.dual_coef_) <= 1.0)


@pytest.mark.parametrize("machine", [SVC(C=100.0), NuSVC(nu=0.3), SVR(C=100.0), OneClassSVM(nu=0.3)])
def test_weights_of_negative_length_prove_a_kernel_indefinite(machine):
    """Then nothing is blamed on rounding errors or on nu, and no weights are called 0."""
    random = np.random.default_rng(11)
    X = random.normal(size=(60, 3))
    y = np.where(X[:, 0] + random.normal(size=60) > 0, 1, -1)
    model = clone(machine).set_params(kernel="sigmoid", gamma=0.1).fit(X, y)
    support, coef = X[model.support_], model.dual_coef_[0]
    assert coef @ np.tanh(0.1 * support @ support.T) @ coef < -1e-3
    assert model.certificate_.status == "nonconvex"
    assert model.certificate_.gap is None


def test_a_gap_is_proven_only_of_kernels_that_are_known_to_be_definite():
    X, y = overlapping(60, seed=11)
    for kernel in ("rbf", Laplacian(0.3), RBF(0.5) + 0.1 * Polynomial(2), Polynomial(3, 0.1, 1.0)):
        assert "if the kernel" not in SVC(kernel=kernel).fit(X, y).certificate_.message
    doubtful = "(duality gap, if the kernel is positive semidefinite)"
    values = RBF(0.3)(X)
    assert doubtful in SVC(kernel="precomputed").fit(values, y).certificate_.message
    assert doubtful in SVC(kernel=lambda A, B: np.exp(A @ B.T / 4)).fit(X, y).certificate_.message
    assert not (RBF(0.5) * Sigmoid(0.1)).definite
    assert not Polynomial(3, 0.1, -1.0).definite


def test_verbose_tells_what_is_needed_before(capsys):
    X, y = overlapping(60, seed=12)
    SVC(verbose=True, cache_size=100).fit(X, y)
    first, *_, last = capsys.readouterr().out.strip().splitlines()
    assert "60 samples, 1 problem" in first
    assert "cache_size=100" in first
    assert "converged" in last
