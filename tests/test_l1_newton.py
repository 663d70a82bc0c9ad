"""The squared hinge with an L1 penalty by proximal Newton steps, against plain ways to the same answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import StandardScaler

from separatrix import _hot
from separatrix.losses import LOSSES
from separatrix.models import _linear_svm, linear_svm
from separatrix.models.linear_svm import LinearSVC
from separatrix.models.linear_svr import LinearSVR
from separatrix.solvers import semismooth_newton
from separatrix.solvers.semismooth_newton import SemismoothNewton


def _data(n: int = 150, d: int = 8, classes: int = 3) -> tuple[Any, Any]:
    random = np.random.default_rng(5)
    X = random.standard_normal((n, d)) * (random.random((n, d)) < 0.6)
    return X, (X @ random.standard_normal((d, classes)) + random.gumbel(size=(n, classes))).argmax(axis=1)


def _slow_model(H: Any, lam: Any, w: Any, g: Any) -> Any:
    """Coordinate descent on g·(z − w) + ½ (z − w)·H·(z − w) + Σ λ|z|, until nothing moves."""
    z = w.copy()
    for _ in range(20_000):
        before = z.copy()
        for j in range(len(z)):
            slope = g[j] + H[j] @ (z - w)
            u = H[j, j] * z[j] - slope
            z[j] = np.sign(u) * max(abs(u) - lam[j], 0.0) / H[j, j]
        if np.abs(z - before).max() < 1e-13:
            break
    return z


@pytest.mark.parametrize("name", _hot.instruction_sets())
@pytest.mark.parametrize("rank", [3, 9, 40])
def test_model_with_an_l1_penalty_agrees_with_plain_coordinate_descent(name: str, rank: int) -> None:
    random = np.random.default_rng(rank)
    A = random.standard_normal((rank, 9))
    H, w = A.T @ A, np.round(random.standard_normal(9), 1) * (random.random(9) < 0.5)
    g, lam = A.T @ random.standard_normal(rank) * 3, np.append(np.full(8, 0.7), 0.2)

    def value(z: Any) -> float:
        return float(g @ (z - w) + 0.5 * (z - w) @ H @ (z - w) + lam @ np.abs(z))

    z, slopes = w.copy(), g.copy()
    before = _hot.instruction_set()
    try:
        _hot.use_instruction_set(name)
        _hot.l1_model(H, lam, z, slopes, 1e-14)
    finally:
        _hot.use_instruction_set(before)
    expected = _slow_model(H, lam, w, g)
    assert_allclose(value(z), value(expected), rtol=1e-8, atol=1e-8)
    assert_allclose(slopes, g + H @ (z - w), atol=1e-8)
    # 0 is in the subdifferential.
    inactive = z == 0
    assert np.all(np.abs(slopes[inactive]) <= lam[inactive] + 1e-5)
    assert_allclose(slopes[~inactive], -(lam * np.sign(z))[~inactive], atol=1e-5)


def test_model_with_few_samples_of_dependent_features_reaches_its_optimum() -> None:
    # Weights that a Newton step makes 0 came back in the next sweep, again and again.
    X, y = load_breast_cancer(return_X_y=True)
    A = np.column_stack([StandardScaler().fit_transform(X), np.ones(len(X))])
    start = LinearSVC(penalty="l1", C=164.0).fit(A[:, :-1], y)
    w = np.append(start.coef_[0], start.intercept_)
    sign = np.where(y > 0, 1.0, -1.0)
    short = np.maximum(0.0, 1.0 - sign * (A @ w))
    free = A[short > 0]
    assert len(free) < len(w)
    H, g = 656.0 * free.T @ free, -656.0 * A.T @ (sign * short)
    z, slopes = w.copy(), g.copy()
    _hot.l1_model(H, np.ones(len(w)), z, slopes, 1e-12)
    slope = g + H @ (z - w)
    assert np.abs(slope).max() < 1.0 + 1e-6
    assert np.abs(slope + np.sign(z))[z != 0].max() < 1e-6


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("load", "scaled", "C"), [(load_wine, False, 100.0), (load_breast_cancer, True, 1e3)]
)
def test_classes_that_can_be_separated_are_no_hindrance(
    load: Any, scaled: bool, C: float, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # There fewer samples are free than weights are not 0: next to nothing bends the pieces.
    if not compiled:
        monkeypatch.setattr(semismooth_newton, "_SMALL", 0)
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X) if scaled else X
    model = LinearSVC(penalty="l1", C=C).fit(X, y)
    assert model.certificate_.status == "converged"
    assert model.certificate_.relative_gap <= 1e-4
    positive = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    codes = np.where(y[:, None] == positive, 1.0, -1.0)
    loss = np.square(np.maximum(0.0, 1.0 - codes * (X @ model.coef_.T + model.intercept_))).sum()
    value = np.abs(model.coef_).sum() + np.abs(model.intercept_).sum() + C * loss
    assert_allclose(model.certificate_.primal, value, rtol=1e-9)


def test_search_ends_where_the_objective_is_least() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        X, y = random.standard_normal((30, 4)), np.where(random.random(30) < 0.5, 1, -1).astype(np.int8)
        w, z = random.standard_normal(4) * 0.1, random.standard_normal(4) * 3
        z[0] = 0.0
        upper, lam = random.random(30) + 0.1, np.full(4, 0.5)

        def value(t: float, X: Any = X, y: Any = y, w: Any = w, z: Any = z, upper: Any = upper) -> float:
            at = w + t * (z - w)
            return float(upper @ np.square(np.maximum(1 - y * (X @ at), 0)) + 0.5 * np.abs(at).sum())

        start = (value(1e-7) - value(0.0)) / 1e-7
        if start >= 0:
            continue
        t = _hot.l1_search(X @ w, X @ (z - w), y, upper, w, z, lam, start)
        best = min(value(s) for s in np.linspace(0, 1, 2001))
        assert 0 < t <= 1
        assert value(t) - best <= 0.02 * (value(0.0) - best) + 1e-9


def _objective(model: Any, X: Any, y: Any, C: float, scale: float, weight: Any) -> float:
    signs = np.where(y[:, None] == model.classes_, 1, -1)
    short = np.maximum(1 - signs * (X @ model.coef_.T + model.intercept_), 0)
    penalty = np.abs(model.coef_).sum() + np.abs(model.intercept_).sum() / scale
    return float(penalty + C * (weight @ np.square(short)).sum())


@pytest.mark.parametrize("intercept", ["penalised", "free", "none"])
@pytest.mark.parametrize("kind", ["dense", "csr", "float32"])
@pytest.mark.parametrize("C", [0.02, 1.0, 100.0])
def test_all_ways_to_an_l1_penalty_agree(
    kind: str, intercept: str, C: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = _data()
    weight = np.random.default_rng(0).integers(0, 3, X.shape[0]).astype(float)
    given = {"dense": X, "csr": sparse.csr_array(X), "float32": X.astype(np.float32)}[kind]
    model = LinearSVC(penalty="l1", C=C, fit_intercept=intercept != "none", intercept_scaling=2.0,
                      penalize_intercept=intercept != "free")  # fmt: skip
    scale = np.inf if intercept == "free" else 2.0
    values, zeros = [], []
    for way in ("compiled", "columns", "working set"):
        if way == "columns":
            monkeypatch.setattr(semismooth_newton, "_SMALL", 0)
        if way == "working set":
            monkeypatch.setattr(linear_svm, "L1_FEATURES", 0)
            monkeypatch.setattr(_linear_svm, "L1_FEATURES", 0)
        model.fit(given, y, sample_weight=weight)
        assert model.certificate_.status == "converged"
        values.append(_objective(model, X, y, C, scale, weight))
        zeros.append(np.count_nonzero(model.coef_ == 0))
        assert_allclose(model.certificate_.primal, values[-1], rtol=1e-5)
        assert model.certificate_.dual <= values[-1] * (1 + 1e-6)
    assert_allclose(values, values[-1], rtol=1e-5)
    assert len(set(zeros)) == 1


def test_features_that_depend_on_each_other_do_not_hinder() -> None:
    random = np.random.default_rng(2)
    groups = random.integers(0, 4, (400, 5))
    X = (groups[:, :, None] == np.arange(4)).reshape(400, 20).astype(float)
    y = (X @ random.standard_normal(20) + random.logistic(size=400) > 0).astype(int)
    model = LinearSVC(penalty="l1", C=1000.0).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-8
    assert model.n_iter_ < 40


def test_an_l1_penalty_goes_with_a_squared_loss() -> None:
    X, y = _data(classes=2)
    model = LinearSVC(loss="hinge")
    problem = model._problem(X, y.astype(np.int32), linear_svm.Coding.of("ovr", 2), None)
    assert problem.loss is LOSSES["hinge"]
    with pytest.raises(ValueError, match="squared loss"):
        SemismoothNewton(problem, C=1.0, scaling=1.0, coef=np.zeros((1, 8)), intercept=np.zeros(1), tol=1e-4,
                         l1=True)  # fmt: skip


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_compiled_steps_on_sparse_rows_in_any_order(loss: str) -> None:
    X, y = _data()
    rows = sparse.coo_array(X)
    # Every value in two halves, the features in disorder.
    order = np.random.default_rng(0).permutation(2 * rows.nnz)
    i, j = (np.tile(part, 2)[order] for part in rows.coords)
    by_row = np.argsort(i, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=X.shape[0]))])
    halves = np.tile(rows.data / 2, 2)[order][by_row]
    messy = sparse.csr_array((halves, j[by_row], starts), shape=X.shape)
    assert not messy.has_canonical_format
    dense, other = LinearSVC(loss=loss, tol=1e-6).fit(X, y), LinearSVC(loss=loss, tol=1e-6).fit(messy, y)
    assert_allclose(other.coef_, dense.coef_, rtol=1e-4, atol=1e-5)
    assert messy.nnz == 2 * rows.nnz  # the caller's matrix is as it was


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_compiled_steps_on_sparse_rows_of_a_regression(loss: str) -> None:
    X, _ = _data()
    t = X @ np.arange(8.0) + np.random.default_rng(0).standard_normal(150)
    dense, other = (LinearSVR(loss=loss, epsilon=0.2, tol=1e-6).fit(A, t) for A in (X, sparse.csr_array(X)))
    assert_allclose(other.coef_, dense.coef_, rtol=1e-4, atol=1e-5)


def test_a_model_that_ends_nowhere_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """With C so large that nothing bends the model its solution overflowed, and the fit was refused."""
    random = np.random.default_rng(2)
    X = random.standard_normal((150, 6))
    y = X[:, 0] + 0.5 * random.standard_normal(150) > 0
    monkeypatch.setattr(semismooth_newton, "_SMALL", 0)
    expected = LinearSVC(penalty="l1", tol=1e-8).fit(X, y)
    solve, calls = _hot.l1_model, []

    def overflowing(H: Any, factors: Any, z: Any, *others: Any) -> None:
        solve(H, factors, z, *others)
        calls.append(None)
        if len(calls) == 2:
            z[:] = np.nan

    monkeypatch.setattr(_hot, "l1_model", overflowing)
    found = LinearSVC(penalty="l1", tol=1e-8).fit(X, y)
    assert len(calls) > 2
    assert found.certificate_.status == "converged"
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-5, atol=1e-6)
