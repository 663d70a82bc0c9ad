"""scikit-learn's own checks and conventions."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import Perceptron as PeerPerceptron
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from separatrix import (
    KernelPerceptron,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    Perceptron,
    SGDClassifier,
    SGDRegressor,
)
from sklearn_checks import checked

X, Y = load_iris(return_X_y=True)
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]

ESTIMATORS = [
    Perceptron(),
    Perceptron(multiclass="joint"),
    Perceptron(multiclass="ovo"),
    Perceptron(keep="last", shuffle=False),
    Perceptron(keep="average"),
    KernelPerceptron(),
    KernelPerceptron(multiclass="joint", keep="average"),
    LogisticRegression(),
    LogisticRegression(multiclass="ovr"),
    LogisticRegression(l1_ratio=0.5),
    LogisticRegression(solver="quasi-newton", C=100.0),
    LogisticRegression(dual=True),
]


def excuse(estimator, name):
    equivalence = "sample_weight_equivalence" in name
    if equivalence and not getattr(estimator, "shuffle", True):
        return "it reorders the rows, and shuffle=False asks for their order"
    if name == "check_class_weight_classifiers" and str(estimator) == "Perceptron(keep='average')":
        return "it wants a class of weight 1e-4 given up, but the mean remembers the steps before that"
    if equivalence and getattr(estimator, "dual", False):
        return "it compares to 1e-7; coordinate descent promises tol (test_logistic.py compares as much)"
    return None


@checked(ESTIMATORS, excuse)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "model",
    [
        Perceptron(penalty="l2", alpha=1e-3),
        SGDClassifier(random_state=0),
        SGDRegressor(random_state=0, eta0=1e-3),
        LogisticRegression(),
        LinearSVC(),
        LinearSVR(),
    ],
    ids=str,
)
def test_parameters_may_be_numpys(model, fit_intercept):
    given = {name: value for name, value in model.get_params().items() if type(value) is float}
    given["fit_intercept"] = fit_intercept
    plain = clone(model).set_params(**given).fit(X, Y)
    grid = clone(model).set_params(**{k: np.array([v])[0] for k, v in given.items()}).fit(X, Y)
    assert_array_equal(grid.coef_, plain.coef_)


def test_parameters_of_scikit_learn_are_there():
    ours, peer = Perceptron().get_params(), PeerPerceptron().get_params()
    assert {name: ours[name] for name in peer} == peer


def test_attributes_have_scikit_learns_shapes():
    for y in (Y, Y == 0):
        ours, peer = Perceptron().fit(X, y), PeerPerceptron().fit(X, y)
        for name in ("coef_", "intercept_", "classes_"):
            assert getattr(ours, name).shape == getattr(peer, name).shape
            assert getattr(ours, name).dtype == getattr(peer, name).dtype
        assert ours.t_ == ours.n_iter_ * 150 + 1
        assert ours.decision_function(X).shape == peer.decision_function(X).shape


@pytest.mark.parametrize("make", [Perceptron, KernelPerceptron, LogisticRegression])
def test_tools_of_scikit_learn(make):
    model = make_pipeline(StandardScaler(), make())
    assert cross_val_score(model, X, Y, cv=3).mean() > 0.85
    fitted = make().fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.predict(X), fitted.predict(X))
    assert clone(fitted).get_params() == fitted.get_params()


def test_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            Perceptron().set_fit_request(sample_weight=True),
        )
        model.fit(X, Y, sample_weight=np.ones(150))


TABLES = {
    "pandas": pd.DataFrame(X, columns=NAMES),
    "polars": pl.DataFrame(X, schema=NAMES),
    "arrow": pa.table(dict(zip(NAMES, X.T, strict=True))),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("make", [Perceptron, KernelPerceptron])
def test_tables(kind, make):
    table = TABLES[kind]
    model = make().fit(table, Y)
    assert list(model.feature_names_in_) == NAMES
    assert_array_equal(model.predict(table), make().fit(X, Y).predict(X))
    reordered = table.select(NAMES[::-1]) if kind != "pandas" else table[NAMES[::-1]]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(reordered)
    fewer = table.select(NAMES[:3]) if kind != "pandas" else table[NAMES[:3]]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(fewer)


def test_labels_of_any_kind():
    words = np.array(["setosa", "versicolor", "virginica"])[Y]
    for labels in (words, list(words), words.astype(object), pd.Series(words), pd.Categorical(words)):
        assert set(Perceptron().fit(X, labels).predict(X)) <= set(words)
    assert Perceptron().fit(X, Y == 1).classes_.dtype == bool
    assert_array_equal(Perceptron().fit(X, Y - 7.0).classes_, [-7.0, -6.0, -5.0])


def test_input_is_left_alone():
    A, y = X.copy(), Y.copy()
    S = sparse.csr_array(X)
    Perceptron(penalty="l1").fit(A, y)
    Perceptron(penalty="l1").fit(S, y)
    assert_array_equal(A, X)
    assert_array_equal(S.toarray(), X)
    A.setflags(write=False)
    Perceptron().fit(A, y)


def test_memory_map(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_array_equal(Perceptron().fit(mapped, Y).coef_, Perceptron().fit(X, Y).coef_)


def test_random_state_decides_the_order():
    fits = [
        Perceptron(random_state=seed, max_iter=3, tol=None, keep="last").fit(X, Y).coef_ for seed in (0, 0, 1)
    ]
    assert_array_equal(fits[0], fits[1])
    assert np.any(fits[0] != fits[2])
