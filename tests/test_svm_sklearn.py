"""The kernel machines under scikit-learn's own checks and conventions."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from separatrix.models.one_class import OneClassSVM
from separatrix.models.svc import SVC, NuSVC
from separatrix.models.svr import SVR, NuSVR
from sklearn_checks import checked

X, Y = load_iris(return_X_y=True)
MODELS = {"SVC": SVC, "NuSVC": NuSVC, "SVR": SVR, "NuSVR": NuSVR, "OneClassSVM": OneClassSVM}
ESTIMATORS = [
    SVC(),
    SVC(probability=True),
    NuSVC(nu=0.3),
    SVR(),
    NuSVR(nu=0.3),
    OneClassSVM(),
]


def excuse(estimator, name):
    if isinstance(estimator, NuSVC) and name == "check_class_weight_classifiers":
        return "weights of 1000 and 0.0001 leave no feasible nu; scikit-learn's NuSVC ignores them"
    if "sample_weight_equivalence" in name and getattr(estimator, "probability", False):
        return "the folds of the probabilities are drawn from other samples"
    return None


@checked(ESTIMATORS, excuse)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_of_scikit_learn_are_there(name):
    ours, peer = MODELS[name]().get_params(), getattr(svm, name)().get_params()
    # scikit-learn gives up probability=; it stays here, and "deprecated" means False.
    peer = {key: False if value == "deprecated" else value for key, value in peer.items()}
    assert {key: ours[key] for key in peer} == peer
    assert set(ours) - set(peer) <= {"max_time", "multiclass"}


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("name", MODELS)
def test_attributes_are_scikit_learns(name, kind):
    given = X if kind == "dense" else sparse.csr_array(X)
    for y in (Y, Y == 1):
        for kernel in ("linear", "rbf"):
            if name in ("NuSVC", "NuSVR") and kernel == "linear" and y is not Y:
                continue  # no margin: LIBSVM divides by almost 0 there
            settings = dict(kernel=kernel, tol=1e-6)
            ours, peer = MODELS[name](**settings).fit(given, y), getattr(svm, name)(**settings).fit(given, y)
            for attribute in vars(peer):
                if attribute.endswith("_") and not attribute.startswith("_"):
                    assert hasattr(ours, attribute), attribute
            unique = kernel == "rbf" or name == "SVC"
            for attribute in ("support_", "n_support_"):
                assert getattr(ours, attribute).dtype == getattr(peer, attribute).dtype
                if unique:
                    assert_array_equal(getattr(ours, attribute), getattr(peer, attribute))
            for attribute in ("support_vectors_", "dual_coef_", "intercept_"):
                assert type(getattr(ours, attribute)) is type(getattr(peer, attribute))
                if unique:
                    assert getattr(ours, attribute).shape == getattr(peer, attribute).shape
            assert_allclose(ours.intercept_, peer.intercept_, atol=1e-3)
            assert type(ours.n_iter_) is type(peer.n_iter_)
            assert np.shape(ours.n_iter_) == np.shape(peer.n_iter_)
            assert (ours.shape_fit_, ours.fit_status_) == (peer.shape_fit_, peer.fit_status_)
            assert hasattr(ours, "coef_") == hasattr(peer, "coef_")
            if kernel == "linear":
                assert type(ours.coef_) is type(peer.coef_)
                assert ours.coef_.shape == peer.coef_.shape
            if hasattr(peer, "decision_function"):
                assert ours.decision_function(given).shape == peer.decision_function(given).shape


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_decision_functions_are_scikit_learns(shape):
    for kernel in ("rbf", "linear"):
        settings = dict(kernel=kernel, tol=1e-8, decision_function_shape=shape)
        ours, peer = SVC(**settings).fit(X, Y), svm.SVC(**settings).fit(X, Y)
        assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=2e-4)


def test_coef_is_read_only():
    model = SVC(kernel="linear").fit(X, Y)
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 0.0
    with pytest.raises(AttributeError, match="only available when using a linear kernel"):
        SVC().fit(X, Y).coef_  # noqa: B018


@pytest.mark.parametrize("name", MODELS)
def test_tools_of_scikit_learn(name):
    fitted = MODELS[name]().fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.predict(X), fitted.predict(X))
    assert clone(fitted).get_params() == fitted.get_params()
    table = pd.DataFrame(X, columns=list("abcd"))
    named = MODELS[name]().fit(table, Y)
    assert list(named.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(table[list("dcba")])


def test_pipelines_and_searches():
    assert cross_val_score(make_pipeline(StandardScaler(), SVC()), X, Y, cv=3).mean() > 0.9
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "kernel": ["rbf", "linear"]}, cv=3).fit(X, Y)
    assert search.best_score_ > 0.95
    # A precomputed matrix is cut on both sides by cross-validation.
    assert cross_val_score(SVC(kernel="precomputed"), X @ X.T, Y, cv=3).mean() > 0.9


def test_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), SVC().set_fit_request(sample_weight=True)
        )
        model.fit(X, Y, sample_weight=np.ones(150))


def test_callbacks(capsys):
    SVC().set_callbacks(ProgressBar()).fit(X, Y)
    SVR().set_callbacks(ProgressBar()).fit(X, Y)


def test_float32_and_integers_are_not_copied_to_double():
    half = X.astype(np.float32)
    model = SVC().fit(half, Y)
    assert model.support_vectors_.dtype == np.float32
    assert_array_equal(model.support_vectors_, half[model.support_])
    whole = np.round(10 * X).astype(np.int64)
    integers, floats = SVC().fit(whole, Y), SVC().fit(1.0 * whole, Y)
    assert_allclose(integers.decision_function(whole), floats.decision_function(whole), atol=1e-6)


def test_input_is_left_alone():
    A, S = X.copy(), sparse.csr_array(X)
    A.setflags(write=False)
    for name in MODELS:
        MODELS[name]().fit(A, Y).predict(A)
        MODELS[name]().fit(S, Y).predict(S)
    assert_array_equal(S.toarray(), X)


def test_dense_models_take_sparse_samples_and_the_reverse():
    dense, csr = SVC().fit(X, Y), SVC().fit(sparse.csr_array(X), Y)
    assert_array_equal(dense.predict(sparse.csr_array(X)), dense.predict(X))
    assert_array_equal(csr.predict(X), dense.predict(X))
