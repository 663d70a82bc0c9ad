"""Pieces of the linear machines' Newton steps, each against a plain way to the same answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from oracles import quadratic_programme
from separatrix.data.memory import view_of
from separatrix.losses import LOSSES
from separatrix.models.linear_svm import LinearSVC
from separatrix.models.linear_svr import LinearSVR
from separatrix.problem import Problem
from separatrix.solvers import (
    _box_finish,
    _box_group,
    _newton_columns,
    box_coordinate,
    box_rounds,
    semismooth_newton,
)
from separatrix.solvers._cholesky import solver_of
from separatrix.solvers._hinge_interior import kinked_programme


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 7, 60])
def test_solver_of_multiplies_by_the_inverse(size: int, dtype: Any) -> None:
    random = np.random.default_rng(size)
    A = random.standard_normal((2 * size, size)).astype(dtype)
    H, right = A.T @ A + np.eye(size, dtype=dtype), random.standard_normal((size, 3))
    expected = np.linalg.solve(H.astype(float), right)
    rtol = 1e-3 if dtype == np.float32 else 1e-9
    found = solver_of(lambda: np.triu(H))(right)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    if size:
        np.testing.assert_allclose(solver_of(H.copy)(right[:, 0]), expected[:, 0], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_solver_of_bears_singular_and_infinite_matrices(dtype: Any) -> None:
    found = solver_of(lambda: np.ones((3, 3), dtype=dtype))(np.ones(3))
    np.testing.assert_allclose(found.sum(), 1.0, rtol=1e-2)
    assert solver_of(lambda: np.full((3, 3), np.nan, dtype=dtype))(np.ones(3)).shape == (3,)


def _data(n: int = 120, d: int = 6, classes: int = 3) -> tuple[Any, Any]:
    random = np.random.default_rng(3)
    X = random.standard_normal((n, d))
    return X, (X @ random.standard_normal((d, classes)) + random.gumbel(size=(n, classes))).argmax(axis=1)


@pytest.mark.parametrize("intercept", ["penalised", "free", "none"])
@pytest.mark.parametrize("rows", ["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_multipliers_lead_squared_losses_to_the_same_solution(
    intercept: str, rows: str, weighted: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    X = random.standard_normal((150, 40))
    scores = X @ random.standard_normal(40) + 0.3 * random.standard_normal(150)
    weight = random.integers(0, 3, 150) if weighted else None
    settings: dict[str, Any] = {"C": 1e3, "tol": 1e-9, "solver": "newton"}
    settings.update(fit_intercept=intercept != "none", penalize_intercept=intercept != "free")
    if kind == "classes":
        model, y = LinearSVC(loss="squared_hinge", **settings), scores > 1.0
    else:
        model, y = LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.2, **settings), scores
    softened = []
    soften = _newton_columns.Columns._soften
    monkeypatch.setattr(_newton_columns.Columns, "_soften", lambda *a: softened.append(1) or soften(*a))
    monkeypatch.setattr(semismooth_newton, "_SMALL", 0)
    monkeypatch.setattr(_newton_columns, "_HALTS", 10**9)
    plain = model.fit(X, y, sample_weight=weight).coef_.copy()
    assert not softened
    assert model.certificate_.relative_gap <= 1e-9
    # Whether or not the steps are short.
    monkeypatch.setattr(_newton_columns, "_HALTS", 1)
    monkeypatch.setattr(_newton_columns, "_HALTING", 10.0)
    model.fit(sparse.csr_array(X) if rows == "csr" else X, y, sample_weight=weight)
    assert softened
    assert model.certificate_.relative_gap <= 1e-9
    np.testing.assert_allclose(model.coef_, plain, atol=1e-4 * np.abs(plain).max())


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["penalised", "free", "none"])
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_compiled_steps_of_few_data_take_the_same_way(
    loss: str, intercept: str, multiclass: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = _data()
    model = LinearSVC(loss=loss, fit_intercept=intercept != "none", penalize_intercept=intercept != "free",
                      multiclass=multiclass, intercept_scaling=2.0)  # fmt: skip
    weight = np.random.default_rng(0).integers(0, 3, X.shape[0])
    model.fit(X, y, sample_weight=weight)
    compiled = model.history_, model.coef_, model.intercept_
    monkeypatch.setattr(semismooth_newton, "_SMALL", 0)
    model.fit(X, y, sample_weight=weight)
    first = [step["objective"] for step in compiled[0][:4]]
    np.testing.assert_allclose(first, [step["objective"] for step in model.history_[:4]], rtol=1e-9)
    np.testing.assert_allclose(compiled[1], model.coef_, atol=1e-3)
    np.testing.assert_allclose(compiled[2], model.intercept_, atol=1e-3)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_compiled_steps_of_few_numbers_take_the_same_way(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = _data()
    y = X[:, 0] - 2.0 * X[:, 1] + 0.3 * np.random.default_rng(1).standard_normal(X.shape[0])
    model = LinearSVR(loss=loss, epsilon=0.1).fit(X, y)
    compiled = model.coef_, model.certificate_
    monkeypatch.setattr(semismooth_newton, "_SMALL", 0)
    model.fit(X, y)
    np.testing.assert_allclose(compiled[0], model.coef_, atol=1e-3)
    assert compiled[1].primal == pytest.approx(model.certificate_.primal, rel=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
def test_hessians_of_changed_samples_are_those_of_all(
    rows: str, dtype: Any, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = _data(4000, 12, 2)
    X[X < 0.2] = 0.0
    X[:5] *= 1e5  # what they leave behind when they go is rounded
    data = sparse.csr_matrix(X.astype(dtype)) if rows == "sparse" else X.astype(dtype)
    seen = []
    kept = _newton_columns.Columns.gram

    def gram(self: Any, k: int) -> Any:
        found = kept(self, k)
        free = np.flatnonzero(self.inside[k])
        A = self.view.take(free)
        A = np.asarray(A.toarray() if sparse.issparse(A) else A, dtype=np.float64)
        A = np.column_stack([A, np.ones(len(A))])
        H = self.rho[k] * A.T @ (A * self.upper[free, None]) + np.eye(13) * np.append(np.ones(12), self.curve)
        scale = 1.0 / np.sqrt(np.diag(H))
        seen.append(np.abs(np.triu(scale[:, None] * (H - found) * scale)).max())
        return found

    monkeypatch.setattr(_newton_columns.Columns, "gram", gram)
    monkeypatch.setattr(semismooth_newton, "_SMALL", 0)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 4000) if weighted else None
    model = LinearSVC(C=0.1, tol=0.9).fit(data, y, sample_weight=weight)
    model.set_params(tol=1e-4).fit(data, y, sample_weight=weight)
    assert len(seen) > 3
    assert max(seen) < 1e-3
    assert model.certificate_.status == "converged"


def _uneven() -> tuple[Any, Any]:
    """Return sparse samples so uneven that coordinate descent is slow."""
    random = np.random.default_rng(5)
    X = sparse.random(1600, 3000, 0.005, format="csr", random_state=0)
    X.data = random.geometric(0.2, X.data.shape[0]).astype(float)
    return X, np.asarray(X @ random.standard_normal(3000)) > 0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_newton_finishes_what_descent_has_begun(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = _uneven()
    taken = []
    leap = _newton_columns.Columns._leap
    monkeypatch.setattr(_newton_columns.Columns, "_leap", lambda *a: taken.append(1) or leap(*a))
    monkeypatch.setattr(_box_group, "_EPOCHS", 5)
    monkeypatch.setattr(_box_group, "SLOW", 0)
    monkeypatch.setattr(_box_finish.Finish, "pays", True)
    monkeypatch.setattr(box_rounds, "suitable", lambda *_: False)
    model = LinearSVC(loss=loss, C=10.0, tol=1e-5).fit(X, y)
    assert taken
    assert model.certificate_.status == "converged"
    alone = LinearSVC(loss=loss, C=10.0, solver="newton", tol=1e-7).fit(X, y)
    assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["penalised", "free", "none"])
def test_steps_by_conjugate_gradients_lead_to_the_same_solution(
    loss: str, intercept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = _data(300, 20, 3)
    X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    model = LinearSVC(loss=loss, solver="newton", tol=1e-8, fit_intercept=intercept != "none",
                      penalize_intercept=intercept != "free")  # fmt: skip
    monkeypatch.setattr(semismooth_newton, "_SMALL", 0)
    expected = model.fit(X, y).coef_
    monkeypatch.setattr(_newton_columns, "_DENSE_RATE", 1e-9)
    iterated, taken = _newton_columns.Columns._iterated, []
    monkeypatch.setattr(_newton_columns.Columns, "_iterated", lambda *a: taken.append(1) or iterated(*a))
    model.fit(X, y)
    assert taken
    assert model.certificate_.relative_gap <= 1e-8
    np.testing.assert_allclose(model.coef_, expected, atol=1e-3 * np.abs(expected).max())


def test_many_free_samples_are_not_multiplied_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = _uneven()
    expected = LinearSVC(C=0.01, solver="newton").fit(X, y)
    monkeypatch.setattr(_newton_columns, "MOST_FREE", 10)
    model = LinearSVC(C=0.01, solver="newton").fit(X, y)
    assert model.certificate_.status == "converged"
    assert model.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=2e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n", [300, 3000])
def test_features_of_all_sizes_end_certified(loss: str, n: int) -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((n, 30))
    y = X @ random.standard_normal(30) + random.standard_normal(n) > 0
    model = LinearSVC(loss=loss).fit(X * 10.0 ** random.uniform(-4, 6, 30), y)
    assert model.certificate_.status == "converged"


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_stored_values_may_come_in_any_order(loss):
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.normal(size=(200, 8)) * (rng.random((200, 8)) < 0.7))
    y = rng.integers(0, 2, 200)
    turned = X.copy()
    for row in map(slice, X.indptr[:-1], X.indptr[1:]):
        turned.indices[row], turned.data[row] = X.indices[row][::-1].copy(), X.data[row][::-1].copy()
    turned.has_sorted_indices = False
    given = turned.indices.copy()
    models = [LinearSVC(loss=loss, tol=1e-8, dual=True).fit(A, y) for A in (X, turned)]
    assert [model.certificate_.status for model in models] == ["converged"] * 2
    assert abs(int(models[1].n_iter_) - int(models[0].n_iter_)) <= 2
    np.testing.assert_allclose(models[1].coef_, models[0].coef_, atol=1e-7)
    np.testing.assert_array_equal(turned.indices, given)  # the user's matrix is as it was


def _grey_values() -> tuple[Any, Any]:
    X, digits = load_digits(return_X_y=True)
    return X, np.where(digits == 4, 1, -1)


def test_columns_that_got_nowhere_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = _grey_values()
    model = LinearSVC(C=1e5, tol=1e-6)
    expected = model.fit(X, y).certificate_
    monkeypatch.setattr(semismooth_newton, "PATIENCE", 0)  # of the compiled steps
    found = model.fit(X, y).certificate_
    assert (expected.status, found.status) == ("converged", "converged")
    np.testing.assert_allclose(found.primal, expected.primal, rtol=1e-6)


def test_a_second_beginning_keeps_what_was_better_before(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = _grey_values()
    monkeypatch.setattr(semismooth_newton, "PATIENCE", 0)
    # Twelve steps lead to an objective of 2,643; the eight after them, from the beginning, to 779,125.
    with pytest.warns(ConvergenceWarning):
        model = LinearSVC(C=1e5, max_iter=20).fit(X, y)
    assert len(model.history_) == 20
    least = min(record["objective"] for record in model.history_[:12])
    assert model.history_[-1]["objective"] > least
    np.testing.assert_allclose(model.certificate_.primal, least, rtol=1e-9)


def _few_of_large_numbers() -> tuple[Any, Any]:
    X = 100.0 * sparse.random(300, 5000, density=0.02, format="csr", random_state=0)
    return X, np.random.default_rng(0).integers(2, size=300)


def test_shortfalls_of_large_numbers_are_seen_by_their_part_of_the_gap() -> None:
    # Shortfalls of 1e-8 cost C times as much, though their steps gain the dual less than rounding.
    X, y = _few_of_large_numbers()
    hard = LinearSVC(loss="hinge", C=1e9, solver="dual").fit(X, y)
    mild = LinearSVC(loss="hinge", C=1e3, solver="dual").fit(X, y)
    assert hard.certificate_.status == mild.certificate_.status == "converged"
    np.testing.assert_allclose(hard.certificate_.primal, mild.certificate_.primal, rtol=2e-4)


def test_newton_ends_what_no_step_of_descent_improves() -> None:
    X, y = _few_of_large_numbers()
    with pytest.warns(ConvergenceWarning, match="rounding"):
        model = LinearSVC(loss="hinge", C=1e3, tol=1e-15).fit(X, y)
    assert any("epoch" not in record for record in model.history_)
    assert model.certificate_.relative_gap < 1e-6
    with pytest.warns(ConvergenceWarning, match="solver='auto'"):
        LinearSVC(loss="hinge", C=1e3, tol=1e-15, solver="dual").fit(X, y)


def test_epochs_that_visit_few_samples_are_not_given_up_for_newton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_box_finish, "_EPOCH_NS", 0.0)  # which decides where data are few
    random = np.random.default_rng(0)
    X, y = sparse.random(400, 900, density=0.05, format="csr", random_state=1), random.integers(5, size=400)
    codes = np.where(np.eye(5, dtype=bool), 1, -1).astype(np.int8)
    problem = Problem(view_of(X), y, codes, loss=LOSSES["squared_hinge"], fit_intercept=False)
    zeros = {"coef": np.zeros((5, 900)), "intercept": np.zeros(5)}
    solver = box_coordinate.BoxCoordinate(
        problem, C=1.0, scaling=None, tol=1e-4, seed=0, newton=True, **zeros
    )
    (group,) = solver.groups
    group.v[:] = random.random(group.v.shape)
    group.count, group.ahead = 590, 2000.0
    assert _box_finish.Finish(solver, [group]).pays
    group.share = 1e-3
    assert not _box_finish.Finish(solver, [group]).pays
    # Epochs have not cost as much yet, whatever the last ones foretell.
    group.share, group.count = 1.0, 50
    assert not _box_finish.Finish(solver, [group]).pays
    group.share, group.count = 1e-3, 600  # enough of them
    assert _box_finish.Finish(solver, [group]).pays
    monkeypatch.setattr(_box_finish, "_RESCUE_NS", 0.0)
    assert not _box_finish.Finish(solver, [group]).pays


def test_a_gap_that_falls_late_is_waited_for() -> None:
    """Counts of words, more samples than features: the gap stays near 1 for long, and then falls."""
    random = np.random.default_rng(1)
    n, d, k = 4000, 3000, 15
    cells = np.repeat(np.arange(n), k), random.integers(0, d, n * k)
    X = sparse.csr_matrix((random.geometric(0.05, n * k).astype(float), cells), shape=(n, d))
    y = X @ random.normal(size=d) > 0
    model = LinearSVC(loss="hinge", C=100.0).fit(X, y)
    assert model.certificate_.status == "converged"
    assert all("epoch" in record for record in model.history_)


def _large_numbers(rows: int = 9000, features: int = 130) -> tuple[Any, Any]:
    """Numbers from 1 to thousands beside rare indicators: what single precision has no digits for."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, features)) * 10.0 ** rng.uniform(0, 3.5, features)
    X[:, features // 2 :] = rng.random((rows, features - features // 2)) < 0.01
    scores = X @ (rng.standard_normal(features) / np.maximum(X.std(axis=0), 0.1))
    return X, scores + 0.3 * scores.std() * rng.logistic(size=rows) > 0


@pytest.mark.parametrize("stiff", [1e8, np.inf])
def test_large_numbers_in_single_precision_are_solved_as_in_double(
    stiff: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Single precision ended at 24 times the minimum; by the infinite bound it is begun with and given up.
    X, y = _large_numbers()
    monkeypatch.setattr(semismooth_newton, "_STIFF", stiff)
    model = LinearSVC(C=100.0)
    exact = model.fit(X, y).certificate_
    found = model.fit(X.astype(np.float32), y).certificate_
    assert (found.status, exact.status) == ("converged", "converged")
    np.testing.assert_allclose(found.primal, exact.primal, rtol=1e-4)


@pytest.mark.parametrize("intercept", ["penalised", "free", "none"])
def test_interior_points_end_what_newton_leaves(intercept: str) -> None:
    # Newton's steps crawl here: the gap stayed at 1.
    X, y = _large_numbers()
    model = LinearSVC(
        loss="hinge",
        C=1e4,
        fit_intercept=intercept != "none",
        penalize_intercept=intercept == "penalised",
    ).fit(X, y)
    found = model.certificate_
    slacks = np.maximum(0.0, 1.0 - np.where(y, 1.0, -1.0) * model.decision_function(X))
    square = np.square(model.coef_).sum() + (intercept == "penalised") * model.intercept_[0] ** 2
    np.testing.assert_allclose(found.primal, 0.5 * square + 1e4 * slacks.sum(), rtol=1e-9)
    assert found.status == "converged"


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_interior_points_of_losses_with_kinks_solve_the_dual(kind: str, free: bool) -> None:
    rng = np.random.default_rng(1)
    X, upper = rng.standard_normal((60, 4)), rng.uniform(0.5, 2.0, 60)
    targets = X @ rng.standard_normal(4) + rng.standard_normal(60)
    codes = np.where(targets > 0, 1.0, -1.0) if kind == "classes" else None
    numbers, epsilon, square = (None, 0.0, 4.0) if codes is not None else (targets, 0.2, 4.0)
    square = 0.0 if free else square
    solved = kinked_programme(X, codes, numbers, upper, epsilon, square, free, lambda: False)
    assert solved is not None
    w, v = solved
    F = X if free else np.column_stack([X, np.full(60, 2.0)])
    np.testing.assert_allclose(v @ F, w, atol=1e-8)
    if free:
        assert abs(v.sum()) < 1e-8
    assert np.all(np.abs(v) <= upper)
    # The same dual in a, or in (a, a'), by a solver of quadratic programmes.
    signs = codes if codes is not None else np.repeat([1.0, -1.0], 60)
    rows = signs[:, None] * np.tile(F, (signs.size // 60, 1))
    target = codes if codes is not None else targets
    p = epsilon - signs * np.tile(target, signs.size // 60)
    A, b = (signs[None], np.zeros(1)) if free else (None, None)
    a = quadratic_programme(
        rows @ rows.T, p, A=A, b=b, lb=np.zeros(signs.size), ub=np.tile(upper, signs.size // 60)
    )
    least = 0.5 * a @ rows @ rows.T @ a + p @ a
    assert -(target @ v - epsilon * np.abs(v).sum() - 0.5 * w @ w) == pytest.approx(least, rel=1e-6)
