"""Certificates of sparse fits, which read rows where they lie, against dense ones and plain formulas."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from separatrix.data.memory import view_of
from separatrix.data.view import by_feature, padding
from separatrix.losses import get_loss
from separatrix.models._start import seed_of
from separatrix.models.neighbors import KNeighborsClassifier
from separatrix.models.perceptron import Perceptron
from separatrix.models.sgd import SGDClassifier
from separatrix.multiclass import Coding
from separatrix.problem import Penalty, Problem
from separatrix.solvers import _duality, _products
from separatrix.solvers._judge import judge_linear


def _samples(n, d, K, density=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    return X, rng.integers(K, size=n).astype(np.int32), rng


@pytest.mark.parametrize("layout", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("K", [2, 3, 9, 40])
def test_products_are_those_of_dense_rows(K, layout, monkeypatch):
    monkeypatch.setattr("separatrix.data.memory.BLOCK_BYTES", 1 << 12)  # many blocks
    X, _, rng = _samples(300, 7, K)
    X = (4 * X).astype(layout)
    view, columns = view_of(sparse.csr_matrix(X)), 1 if K == 2 else K
    W, R = rng.normal(size=(columns, 7)), np.zeros((300, padding(columns)))
    R[:, :columns] = rng.normal(size=(300, columns))
    weights = by_feature(view, W)
    scores = np.concatenate([_products.sparse_scores(view, rows, weights) for rows in view.parts()])
    scores = scores[:, :columns]
    np.testing.assert_allclose(scores, X @ W.T, atol=1e-12)
    np.testing.assert_allclose(_products.sparse_transposed(view, R), X.T.astype(float) @ R, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "columns"), [(40, 1), (40, 3), (30_000, 8), (30_000, 11)])
def test_normal_products_of_sparse_rows(n, columns, dtype, weighted):
    rng = np.random.default_rng(n + columns)
    X = sparse.random(n, 37, density=0.3, format="csr", random_state=1, dtype=dtype)
    P, along = rng.standard_normal((37, columns)), rng.standard_normal(columns)
    weights = rng.random(n) if weighted else None
    product, sums = _products.sparse_normal(view_of(X), P, along, weights)
    Q = (X.toarray().astype(float) @ P - along) * (1.0 if weights is None else weights[:, None])
    np.testing.assert_allclose(product, X.toarray().astype(float).T @ Q, atol=1e-8)
    np.testing.assert_allclose(sums, Q.sum(axis=0), atol=1e-8)


def test_few_rows_of_many_features_leave_the_weights_as_they_are():
    X, _, rng = _samples(4, 500, 3, density=0.01)
    view, W = view_of(sparse.csr_array(X)), rng.normal(size=(3, 500))
    weights = by_feature(view, W)
    assert weights.shape == (500, 3)
    np.testing.assert_allclose(_products.sparse_scores(view, slice(0, 4), weights), X @ W.T, atol=1e-12)


@pytest.mark.parametrize("penalty", [Penalty(0.01, 0.0), Penalty(0.01, 1.0), Penalty(0.01, 0.3), Penalty()])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("K", [2, 5])
def test_the_objective_and_its_bound_do_not_depend_on_the_layout(K, intercept, penalty, monkeypatch):
    X, classes, rng = _samples(200, 30, K)
    coding = Coding.of("ovr", K)
    weights, W = rng.random(200), 0.1 * rng.normal(size=(coding.columns, 30))
    b = rng.normal(size=coding.columns) if intercept else np.zeros(coding.columns)
    found = []
    for data, kept in ((X, 1 << 20), (sparse.csr_array(X), 1 << 20), (sparse.csr_array(X), 0)):
        monkeypatch.setattr(_duality, "_KEPT_BYTES", kept)
        problem = Problem(
            view_of(data),
            classes,
            coding.codes,
            loss=get_loss("logistic"),
            penalty=penalty,
            weights=weights,
            fit_intercept=intercept,
        )
        found.append(_duality.measure(problem, W, b))
    f = X @ W.T + b
    losses = weights[:, None] * np.logaddexp(0.0, -coding.codes[classes] * f)
    assert found[0].primal == pytest.approx(losses.sum() / 200 + penalty.value(W), rel=1e-12)
    for other in found[1:]:
        assert other.primal == pytest.approx(found[0].primal, rel=1e-12)
        assert other.mistakes == pytest.approx(found[0].mistakes)
        if penalty:
            assert other.dual == pytest.approx(found[0].dual, rel=1e-9, abs=1e-12)
            assert other.dual <= other.primal
        else:
            assert other.dual is None


@pytest.mark.parametrize("name", ["ovr", "ovo", "joint"])
def test_judging_does_not_depend_on_the_layout(name):
    X, classes, rng = _samples(200, 30, 4)
    coding = Coding.of(name, 4)
    W, b = rng.normal(size=(coding.columns, 30)), rng.normal(size=coding.columns)
    dense, csr = (
        judge_linear(Problem(view_of(data), classes, coding.codes, joint=coding.joint), W, b, 0.5)
        for data in (X, sparse.csr_array(X))
    )
    np.testing.assert_array_equal(csr.errors, dense.errors)
    assert (csr.mistakes, csr.samples) == (dense.mistakes, dense.samples)
    assert csr.criterion == pytest.approx(dense.criterion)
    assert csr.smallest == pytest.approx(dense.smallest)
    assert csr.distance == pytest.approx(dense.distance)


@pytest.mark.parametrize("model", [SGDClassifier, Perceptron])
def test_batches_with_labels_that_are_floats(model):
    X, classes, _ = _samples(60, 5, 2, density=1.0)
    y = classes + 0.0
    fitted = model(random_state=0).partial_fit(X[:30], y[:30], classes=[0.0, 1.0]).partial_fit(X[30:], y[30:])
    assert len(fitted.history_) == 2
    with pytest.raises(ValueError, match="not among the classes"):
        fitted.partial_fit(X, y + 1.0)
    with pytest.raises(ValueError, match="Unknown label type"):
        fitted.partial_fit(X, y + 0.5)


def test_a_kept_seed_is_the_one_that_is_drawn():
    drawn = np.random.RandomState(7).randint(np.iinfo(np.int32).max)
    assert seed_of(7) == seed_of(7) == seed_of(np.int64(7)) == drawn
    state = np.random.RandomState(7)
    assert seed_of(state) == drawn
    assert seed_of(state) != drawn


@pytest.mark.parametrize("p", [3, 4, 5.0, 6])
def test_minkowski_distances_of_whole_p(p):
    X, classes, rng = _samples(80, 6, 2, density=1.0)
    queries = rng.normal(size=(9, 6))
    model = KNeighborsClassifier(n_neighbors=3, algorithm="brute", p=p).fit(X, classes)
    distances, rows = model.kneighbors(queries)
    expected = cdist(queries, X, "minkowski", p=p)
    np.testing.assert_array_equal(rows, np.argsort(expected, axis=1, kind="stable")[:, :3])
    np.testing.assert_allclose(distances, np.sort(expected, axis=1)[:, :3], rtol=1e-13)
