"""Models of neighbours: votes, means, graphs, scikit-learn's interface, errors."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import BallTree, KDTree, kneighbors_graph
from sklearn.neighbors import KNeighborsClassifier as PeerClassifier
from sklearn.neighbors import KNeighborsRegressor as PeerRegressor
from sklearn.neighbors._base import KNeighborsMixin

from oracles import by_row_order, squared_distances
from separatrix import persistence
from separatrix.kernels import RBF
from separatrix.models.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn_checks import checked

X, Y = load_iris(return_X_y=True)


ESTIMATORS = [
    KNeighborsClassifier(),
    KNeighborsClassifier(algorithm="kd_tree", weights="distance"),
    KNeighborsClassifier(metric="cosine"),
    KNeighborsRegressor(),
    KNeighborsRegressor(metric="manhattan", weights="distance"),
]


@checked(ESTIMATORS)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("weights", ["uniform", "distance", None, lambda D: np.exp(-D)])
@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree", "ball_tree"])
def test_models_agree_with_scikit_learn(weights, algorithm):
    random = np.random.default_rng(12)
    A, Q = random.normal(size=(500, 5)), random.normal(size=(80, 5))
    y = (A[:, 0] + A[:, 1] > 0).astype(int) + (A[:, 2] > 0)
    arguments = {"n_neighbors": 7, "weights": weights, "algorithm": algorithm}
    ours, peer = KNeighborsClassifier(**arguments).fit(A, y), PeerClassifier(**arguments).fit(A, y)
    assert_array_equal(ours.predict(Q), peer.predict(Q))
    assert_allclose(ours.predict_proba(Q), peer.predict_proba(Q))
    assert ours.score(Q, peer.predict(Q)) == 1.0
    for target in (A[:, 0], A[:, :2], y):
        ours, peer = (
            KNeighborsRegressor(**arguments).fit(A, target),
            PeerRegressor(**arguments).fit(A, target),
        )
        assert_allclose(ours.predict(Q), peer.predict(Q))
        assert ours.predict(Q).dtype == peer.predict(Q).dtype
    for first, second in zip(ours.kneighbors(Q), peer.kneighbors(Q), strict=True):
        assert_allclose(first, second)


def test_parameters_and_attributes_of_scikit_learn():
    for ours, peer in ((KNeighborsClassifier, PeerClassifier), (KNeighborsRegressor, PeerRegressor)):
        assert ours().get_params() == peer().get_params()
        for arguments in ({}, {"p": 1}, {"p": np.inf}, {"p": 3}, {"metric": "cosine"}):
            first, second = ours(**arguments).fit(X, Y), peer(**arguments).fit(X, Y)
            for name in ("effective_metric_", "effective_metric_params_", "n_samples_fit_", "n_features_in_"):
                assert getattr(first, name) == getattr(second, name)
    assert not KNeighborsClassifier().fit(X, Y).outputs_2d_


def test_several_outputs():
    words = np.array([["low", "a"], ["high", "b"]])
    y = words[(X[:, 0] > 5.8).astype(int), 0], words[(Y > 0).astype(int), 1]
    both = KNeighborsClassifier().fit(X, np.stack(y, axis=1))
    assert both.outputs_2d_
    singles = [KNeighborsClassifier().fit(X, column) for column in y]
    assert_array_equal(both.predict(X), np.stack([model.predict(X) for model in singles], axis=1))
    for shares, model in zip(both.predict_proba(X), singles, strict=True):
        assert_array_equal(shares, model.predict_proba(X))
    indicator = sparse.csr_array(np.stack([Y == 1, X[:, 0] > 5.8], axis=1).astype(int))
    assert_array_equal(KNeighborsClassifier(1).fit(X, indicator).score(X, indicator.toarray()), 1.0)
    with pytest.warns(Warning, match="column-vector y"):
        KNeighborsClassifier().fit(X, Y[:, None])


def test_votes():
    """Equal votes by class order; a neighbour at distance 0 counts alone."""
    A, y = [[0.0], [1.0], [2.0], [3.0]], ["b", "b", "a", "a"]
    assert KNeighborsClassifier(4).fit(A, y).predict([[0.0]]).tolist() == ["a"]
    assert KNeighborsClassifier(4, weights="distance").fit(A, y).predict([[0.0]]).tolist() == ["b"]
    assert KNeighborsRegressor(4, weights="distance").fit(A, [5.0, 1, 1, 1]).predict([[0.0]]).tolist() == [
        5.0
    ]
    with pytest.raises(ValueError, match=r"zero weights.*row 1"):
        KNeighborsClassifier(2, weights=lambda D: D < 1.5).fit(A, y).predict([[0.0], [9.0]])
    with pytest.raises(ValueError, match="one weight for each distance"):
        KNeighborsClassifier(2, weights=lambda D: D[0]).fit(A, y).predict([[0.0]])


def test_without_itself():
    for algorithm in ("brute", "kd_tree"):
        model = KNeighborsClassifier(3, algorithm=algorithm).fit(X, Y)
        D = squared_distances(X, X)
        np.fill_diagonal(D, np.inf)
        assert_array_equal(model.kneighbors(return_distance=False), by_row_order(D, 3)[1])
        assert model.score(None, Y) == cross_val_score(model, X, Y, cv=LeaveOneOut()).mean()
    same = KNeighborsClassifier(2).fit(np.ones((5, 2)), np.arange(5))
    assert_array_equal(same.kneighbors(return_distance=False), [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]])


def test_graph():
    model = KNeighborsClassifier(3).fit(X, Y)
    graph = model.kneighbors_graph(X[:5])
    assert graph.shape == (5, 150)
    assert_array_equal(graph.sum(axis=1).ravel(), np.full((1, 5), 3.0))
    far = model.kneighbors_graph(X[:5], 2, mode="distance")
    assert_array_equal(far.data.reshape(5, 2), model.kneighbors(X[:5], 2)[0])
    with pytest.raises(ValueError, match="Unsupported mode"):
        model.kneighbors_graph(X, mode="width")


@pytest.mark.parametrize("make", [KNeighborsClassifier, KNeighborsRegressor])
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_pickle_clone_and_file(monkeypatch, tmp_path, make, layout):
    monkeypatch.setitem(persistence.MODELS, make.__name__, "separatrix.models.neighbors")
    monkeypatch.setitem(persistence._HIDDEN_STATE, make.__name__, ("_fit_X", "_y"))
    for arguments in ({}, {"metric": "cosine"}, {"metric": RBF(0.3)}):
        for y in (Y, np.stack([Y, Y % 2], axis=1)):
            model = make(**arguments).fit(layout(X.astype(np.float32)), y)
            expected = model.predict(X)
            assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)
            assert clone(model).get_params() == model.get_params()
            persistence.save(model, tmp_path / "model.sx")
            again = persistence.load(tmp_path / "model.sx")
            assert_array_equal(again.predict(X), expected)
            assert again._fit_X.dtype == np.float32
            assert str(again.certificate_) == str(model.certificate_)


def test_input_is_neither_copied_nor_changed():
    for dtype in (np.float32, np.float64, np.uint8):
        A = (X * 10).astype(dtype)
        before = A.copy()
        A.setflags(write=False)
        model = KNeighborsClassifier().fit(A, Y)
        model.predict(A)
        assert model._fit_X is A
        assert_array_equal(A, before)


@pytest.mark.parametrize("make", [KNeighborsClassifier, KNeighborsRegressor])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_neighbors": -1}, "n_neighbors"),
        ({"metric": "euclid"}, "must be a str among .*euclidean"),
        ({"p": 0}, "'p' parameter"),
        ({"p": -1}, "'p' parameter"),
        ({"p": None}, "p must be a positive number"),
        ({"leaf_size": 0}, "leaf_size"),
        ({"algorithm": "tree"}, "algorithm"),
        ({"weights": "near"}, "weights"),
        (
            {"metric": "cosine", "algorithm": "kd_tree"},
            "not valid for algorithm='kd_tree': choose algorithm='auto'",
        ),
        ({"metric": "canberra", "algorithm": "kd_tree"}, "not valid for algorithm='kd_tree'"),
        ({"metric": max, "algorithm": "kd_tree"}, "does not support callable metric"),
        ({"p": 0.5, "algorithm": "ball_tree"}, "does not support 0 < p < 1.*set p >= 1"),
        ({"metric_params": {"w": [1, 1, 1, 1]}, "algorithm": "kd_tree"}, "weight parameter 'w'"),
        ({"metric": "euclidean", "metric_params": {"V": 1}}, "metric_params holds 'V'.*takes: none"),
        ({"metric": "seuclidean"}, "variances"),
        ({"metric": "mahalanobis"}, "covariance"),
    ],
)
def test_bad_parameters(make, parameters, message):
    with pytest.raises(ValueError, match=message):
        make(**parameters).fit(X, Y)


def test_bad_input():
    model = KNeighborsClassifier(10).fit(X[:8], Y[:8])
    with pytest.raises(ValueError, match=r"n_neighbors = 10, n_samples_fit = 8.*lower n_neighbors"):
        model.predict(X)
    with pytest.raises(ValueError, match="Expected n_neighbors < n_samples_fit"):
        model.kneighbors(n_neighbors=8)
    with pytest.raises(ValueError, match="Expected n_neighbors > 0"):
        model.kneighbors(X, n_neighbors=0)
    with pytest.raises(TypeError, match="integer"):
        model.kneighbors(X, n_neighbors=2.5)
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.predict(X[:, :3])
    hole = X.copy()
    hole[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN: row 3, column 2"):
        model.predict(hole)
    with pytest.raises(ValueError, match="NaN: row 3, column 2"):
        model.fit(hole, Y)
    with pytest.raises(ValueError, match="requires y"):
        model.fit(X, None)


def test_warnings():
    with pytest.warns(UserWarning, match="0 < p < 1"):
        model = KNeighborsClassifier(p=0.5).fit(X, Y)
    expected = by_row_order(cdist(X[:9], X, "minkowski", p=0.5), 5)[1]
    assert_array_equal(model.kneighbors(X[:9])[1], expected)
    with pytest.warns(SyntaxWarning, match="metric_params"):
        KNeighborsClassifier(metric_params={"p": 3}).fit(X, Y)
    with pytest.warns(UserWarning, match="tree with sparse input"):
        KNeighborsClassifier(algorithm="kd_tree").fit(sparse.csr_array(X), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KNeighborsClassifier(metric_params={"p": 3}, p=None).fit(X, Y).predict(X)


GIVEN = {
    "model of scikit-learn": lambda A, y: PeerClassifier(metric="manhattan").fit(A, y),
    "model": lambda A, y: KNeighborsRegressor(metric="manhattan").fit(A, y),
    "k-d tree": lambda A, y: KDTree(A, metric="manhattan"),
    "ball tree": lambda A, y: BallTree(A, metric="manhattan"),
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("make", [KNeighborsClassifier, KNeighborsRegressor])
def test_what_is_fitted_stands_for_its_samples_and_its_metric(make, given):
    model = make(3).fit(GIVEN[given](X, Y), Y)
    expected = make(3, metric="manhattan").fit(X, Y)
    for copy in (model, pickle.loads(pickle.dumps(model))):
        for ours, theirs in zip(copy.kneighbors(X), expected.kneighbors(X), strict=True):
            assert_array_equal(ours, theirs)
        assert_array_equal(copy.predict(X), expected.predict(X))
    assert (model.n_features_in_, model.effective_metric_) == (4, "manhattan")


@pytest.mark.parametrize("make", [KNeighborsClassifier, KNeighborsRegressor])
def test_functions_of_scikit_learn_take_fitted_models(make):
    A = np.random.default_rng(15).normal(size=(150, 4))
    model = make(3).fit(A, Y)
    assert isinstance(model, KNeighborsMixin)
    graph = kneighbors_graph(model, 3, mode="distance")
    assert_allclose(graph.toarray(), kneighbors_graph(A, 3, mode="distance").toarray())


@pytest.mark.parametrize("make", [KNeighborsClassifier, KNeighborsRegressor])
def test_a_wrong_argument_names_the_model(make):
    with pytest.raises(TypeError, match=rf"^{make.__name__}\.__init__\(\).*'neighbours'"):
        make(neighbours=3)
