"""Active sets that finish coordinate descent of linear machines, and the sparse products they need."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from oracles import quadratic_programme
from separatrix import LinearSVC, LinearSVR
from separatrix.data import room
from separatrix.data.memory import view_of
from separatrix.kernels import Linear
from separatrix.losses import LOSSES
from separatrix.problem import Problem
from separatrix.solvers import _box_finish, _box_group, box_rounds
from separatrix.solvers._box_dual import LOSS_NAMES, BoxDual
from separatrix.solvers._loop import Control
from separatrix.solvers._sparse_products import SparseProducts
from separatrix.solvers.box_rounds import BoxRounds
from separatrix.solvers.kernel_matrix import KernelMatrix

ROWS, FEATURES, COLUMNS = 80, 120, 3


def _samples(seed=0, n=ROWS, d=FEATURES):
    """Sparse samples, two of whose features nearly all samples have."""
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density=0.08, format="lil", random_state=seed)
    X[:, 3], X[:, 50] = rng.uniform(1.0, 2.0, (n, 1)), rng.normal(size=(n, 1))
    return sparse.csr_matrix(X)


def _problem(loss, weights=None, fit_intercept=True, csr=None):
    X = _samples() if csr is None else csr
    rng, n = np.random.default_rng(1), X.shape[0]
    loss_object, targets = LOSSES[loss], None
    classes = rng.integers(0, COLUMNS, n).astype(np.int32)
    codes = np.where(np.eye(COLUMNS, dtype=bool), 1, -1)
    if "epsilon" in loss:
        targets, classes, codes = rng.normal(size=n), np.zeros(n, dtype=np.int32), np.ones((1, 1))
        loss_object = loss_object.with_epsilon(0.1)
    return Problem(
        view_of(X),
        classes,
        codes.astype(np.int8),
        targets=targets,
        loss=loss_object,
        weights=weights,
        fit_intercept=fit_intercept,
    )


def _least(dual, k):
    """The minimum of a column's objective, from its dual as a quadratic programme in ``v = p − q``."""
    X = dual.view.read(slice(0, dual.view.shape[0])).toarray().astype(np.float64)
    rows, codes = dual.counted(k)
    X, upper = X[rows], dual.upper[rows]
    t = dual.numbers[rows] if codes is None else codes
    K = X @ X.T + dual.square
    if dual.squared:
        K[np.diag_indices_from(K)] += 0.5 / upper
    P = np.block([[K, -K], [-K, K]])
    P[np.diag_indices_from(P)] += 1e-12
    q = np.concatenate([dual.epsilon - t, dual.epsilon + t])
    ends = np.full(rows.size, np.inf) if dual.squared else upper
    above, below = ends, ends
    if codes is not None:
        above, below = np.where(codes > 0, ends, 0.0), np.where(codes < 0, ends, 0.0)
    balance = {"A": np.concatenate([np.ones(rows.size), -np.ones(rows.size)])[None], "b": np.zeros(1)}
    x = quadratic_programme(
        P, q, lb=np.zeros(q.size), ub=np.concatenate([above, below]), **(balance if dual.free else {})
    )
    return -float(0.5 * x @ P @ x + q @ x)


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize(("scaling", "fit_intercept"), [(1.5, True), (None, True), (None, False)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.3, 1e4])
def test_each_column_has_the_minimum_of_its_dual_programme(loss, scaling, fit_intercept, weighted, C):
    rng = np.random.default_rng(2)
    weights = rng.choice([0.0, 0.5, 2.0], ROWS) if weighted else None
    dual = BoxDual(_problem(loss, weights, fit_intercept), C, scaling)
    K, tol = dual.columns, 1e-7
    coef, intercept, V = np.zeros((K, FEATURES)), np.zeros(K), np.zeros((K, ROWS))
    rounds = BoxRounds(dual, tol=tol, columns=np.arange(K), coef=coef, intercept=intercept, V=V)
    assert list(rounds.steps(Control(None))) == list(range(K - 1, -1, -1))
    found = dual.evaluate(coef, intercept, V)
    for k in range(K):
        least = _least(dual, k)
        assert_allclose(found.primal[k], least, rtol=1e-5)
        assert found.primal[k] - found.dual[k] <= 1.01 * tol * found.primal[k]
        assert_allclose([rounds.primal[k], rounds.gap[k]], [found.primal[k], found.primal[k] - found.dual[k]],
                        rtol=1e-6, atol=1e-9 * least)  # fmt: skip
    if weights is not None:
        assert not V[:, weights == 0].any()


def test_columns_that_are_not_asked_for_stay():
    dual = BoxDual(_problem("hinge"), 1.0, 1.0)
    coef, intercept, V = np.full((COLUMNS, FEATURES), 7.0), np.full(COLUMNS, 7.0), np.zeros((COLUMNS, ROWS))
    rounds = BoxRounds(dual, tol=1e-5, columns=np.array([1]), coef=coef, intercept=intercept, V=V)
    assert list(rounds.steps(Control(None))) == [0]
    assert np.all(coef[[0, 2]] == 7.0)
    assert np.all(intercept[[0, 2]] == 7.0)
    assert np.any(V[1])
    assert not V[[0, 2]].any()


def test_what_is_too_large_is_left_to_others():
    dual = BoxDual(_problem("hinge"), 1.0, 1.0)
    assert box_rounds.suitable(dual, 10)
    assert not box_rounds.suitable(dual, 0)
    assert not box_rounds.suitable(dual, 10**6)
    with room.within(100):
        assert not box_rounds.suitable(dual, 10)
    dense = BoxDual(_problem("hinge", csr=_samples().toarray()), 1.0, 1.0)
    assert not box_rounds.suitable(dense, 10)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dense_bytes", [0.0, 1e6])
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_products_of_sparse_samples(index, dense_bytes, kind):
    X = kind(_samples(n=200))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    rng, K = np.random.default_rng(0), (X @ X.T).toarray()
    products = SparseProducts(X, dense_bytes)
    some, others = rng.permutation(200)[:150], rng.permutation(200)[:70]
    assert_allclose(products.block(some, others), K[np.ix_(some, others)], rtol=1e-13, atol=1e-13)
    same = products.block(some, some)
    assert_allclose(same, K[np.ix_(some, some)], rtol=1e-13, atol=1e-13)
    assert_array_equal(same, same.T)
    coef = rng.normal(size=(150, 2))
    assert_allclose(products.sums(some, coef, others), K[np.ix_(others, some)] @ coef, rtol=1e-10)
    assert_allclose(products.sums(some, coef, None), K[:, some] @ coef, rtol=1e-10)


def test_the_linear_kernel_of_wide_sparse_samples_has_their_products():
    X = _samples(n=60, d=20_000)
    matrix = KernelMatrix(Linear(), view_of(X), cache_bytes=1e5)
    assert matrix.native is None
    rows, columns, K = np.arange(5, 60, 3), np.arange(40), (X @ X.T).toarray()
    assert_allclose(matrix.block(rows, columns, "float64"), K[np.ix_(rows, columns)], rtol=1e-12, atol=1e-12)
    coef = np.random.default_rng(0).normal(size=(rows.size, 1))
    assert_allclose(matrix.product(rows, coef, columns, "float64"), K[np.ix_(columns, rows)] @ coef)


def _hard(n=400, d=900, seed=3):
    """Counts of words of very different frequency, and labels that they do not explain."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.pareto(1.2, d) * 0.05, (n, d)) * rng.integers(1, 4, (n, 1))
    return sparse.csr_matrix(counts.astype(np.float64)), rng.integers(0, 3, n)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("penalize_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_c_on_counts_converges_by_rounds(loss, penalize_intercept, dtype, monkeypatch):
    taken = []
    solve = BoxRounds._solve
    monkeypatch.setattr(BoxRounds, "_solve", lambda *a: taken.append(1) or solve(*a))
    monkeypatch.setattr(_box_finish.Finish, "pays", True)
    monkeypatch.setattr(_box_group, "SLOW", 0)
    X, y = _hard()
    model = LinearSVC(loss=loss, C=1e6, penalize_intercept=penalize_intercept, tol=1e-4).fit(
        X.astype(dtype), y
    )
    assert taken
    assert model.certificate_.status == "converged"


def test_regression_goes_by_rounds_too(monkeypatch):
    taken = []
    solve = BoxRounds._solve
    monkeypatch.setattr(BoxRounds, "_solve", lambda *a: taken.append(1) or solve(*a))
    monkeypatch.setattr(_box_finish.Finish, "pays", True)
    monkeypatch.setattr(_box_group, "SLOW", 0)
    X, _ = _hard()
    t = np.random.default_rng(0).normal(size=X.shape[0])
    for loss in ("epsilon_insensitive", "squared_epsilon_insensitive"):
        model = LinearSVR(loss=loss, C=1e4, epsilon=0.1, tol=1e-4).fit(X, t)
        assert model.certificate_.status == "converged"
    assert taken


def test_time_ends_rounds_with_a_model_that_is_no_worse(monkeypatch):
    dual = BoxDual(_problem("hinge"), 1e4, 1.0)
    coef, intercept, V = np.zeros((COLUMNS, FEATURES)), np.zeros(COLUMNS), np.zeros((COLUMNS, ROWS))
    rounds = BoxRounds(dual, tol=1e-7, columns=np.arange(COLUMNS), coef=coef, intercept=intercept, V=V)
    control = Control(None)
    steps = rounds.steps(control)
    assert next(steps) == COLUMNS - 1
    monkeypatch.setattr(control, "expired", lambda: True)
    assert list(steps) == []
    found = dual.evaluate(coef, intercept, V)
    assert found.primal[0] - found.dual[0] <= 1.01e-7 * found.primal[0]
    assert_array_equal(coef[1:], 0.0)


@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_the_best_multiple_of_weights(loss):
    dual = BoxDual(_problem(loss), 30.0, 1.5)
    rng, K = np.random.default_rng(4), dual.columns
    W, b = rng.normal(size=(K, FEATURES)) * 0.3, rng.normal(size=K) * 0.3
    F = dual.view.scores(W, b).T
    s, primal = dual.best_multiple(F, np.arange(K), dual.lengths(W), b)
    grid = np.linspace(0.5, 2.0, 3001)
    values = np.array([dual.evaluate(g * W, g * b, np.zeros((K, ROWS))).primal for g in grid])
    assert_allclose(primal, dual.evaluate(s[:, None] * W, s * b, np.zeros((K, ROWS))).primal, rtol=1e-10)
    assert np.all(primal <= values.min(axis=0) * (1 + 1e-12))
    assert_allclose(s, grid[values.argmin(axis=0)], atol=1e-3)
