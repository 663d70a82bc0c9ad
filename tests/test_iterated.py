"""Newton's steps by conjugate gradients, and fits that a diagonal model would end too early."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from separatrix.data.memory import view_of
from separatrix.models.logistic import LogisticRegression
from separatrix.problem import Problem
from separatrix.solvers import _iterated, quasi_newton
from separatrix.solvers._descent import Flat
from separatrix.solvers._iterated import Iterated
from separatrix.solvers.curvature import moments
from separatrix.solvers.smooth import Point, SmoothObjective


def _objective(classes: int, l2: float, intercept: bool = True, weights: Any = None) -> SmoothObjective:
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(60, 7)) * np.logspace(-1, 1, 7) + 2.0
    y = np.arange(60) % classes
    joint = classes > 2
    codes = np.eye(classes, dtype=np.int8) * 2 - 1 if joint else np.array([[-1], [1]], dtype=np.int8)
    problem = Problem(
        view=view_of(X), classes=y, codes=codes, joint=joint, fit_intercept=intercept, weights=weights
    )
    return SmoothObjective(problem, l2)


def _numeric(objective: SmoothObjective, point: Point, flat: Flat) -> Any:
    """Return the Hessian in centred features from differences of gradients."""
    size = flat.gradient(point).shape[0]
    H = np.empty((size, size))
    for j in range(size):
        step = np.zeros(size)
        step[j] = 1e-5
        weights, intercepts = flat.step(step)
        ahead = objective.at(point.coef + weights, point.intercept + intercepts)
        behind = objective.at(point.coef - weights, point.intercept - intercepts)
        H[j] = (flat.gradient(ahead) - flat.gradient(behind)) / 2e-5
    return H


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_solves_with_the_hessian_and_bounds_what_is_missing(
    classes: int, intercept: bool, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = np.arange(60.0) % 4 if weighted else None
    objective = _objective(classes, 0.3, intercept, weights)
    rng = np.random.default_rng(0)
    P = objective.columns
    point = objective.at(rng.normal(size=(P, 7)) * 0.3, rng.normal(size=P) * intercept)
    whole = moments(objective)
    flat = Flat(whole.mean, P)
    g = flat.gradient(point)
    H = _numeric(objective, point, flat)
    if not intercept:
        H, right = H[:-P, :-P], g[:-P]
    else:
        right = g
    true = float(right @ np.linalg.lstsq(H, right, rcond=1e-9)[0])
    known = []
    for most in (1, 2, 4, 8, 40):
        monkeypatch.setattr(_iterated, "_MOST", most)
        model = Iterated(whole, objective, 0.0)
        monkeypatch.setattr(_iterated, "_MISSING", 0.0)
        model.refresh(point)
        V, shift = model.solve(*flat.split(g))
        solved = float(np.vdot(V, flat.split(g)[0]) + shift @ flat.split(g)[1])
        known.append(solved)
        assert solved <= true * (1 + 1e-6)
        assert 2 * model.most >= true * (1 - 1e-6)
    assert np.all(np.diff(known) >= -1e-12 * true)  # more steps know more, but for rounding
    assert known[-1] == pytest.approx(true, rel=1e-6)
    assert 2 * model.most == pytest.approx(true, rel=1e-6)


def _few_directions(n: int, d: int, classes: int, noise: float) -> tuple[Any, Any]:
    """Return samples with five large directions that say nothing, and small ones that tell the classes."""
    rng = np.random.default_rng(n)
    small = rng.normal(size=(n, d))
    y = np.argmax(small @ (0.1 * rng.normal(size=(classes, d))).T + rng.gumbel(size=(n, classes)), axis=1)
    return rng.normal(size=(n, 5)) @ rng.normal(size=(5, d)) + noise * small, y


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("shape", [(3000, 300), (500, 800), (100, 4000)])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_directions_that_hardly_bend_the_objective_count(
    shape: tuple[int, int], classes: int, C: float
) -> None:
    X, y = _few_directions(*shape, classes, 1e-2)
    fits = [LogisticRegression(C=C, tol=tol, max_iter=1000).fit(X, y) for tol in (1e-4, 1e-9)]
    rough, tight = (fit.certificate_ for fit in fits)
    assert rough.status == tight.status == "converged"
    assert rough.relative_gap <= 1e-4
    assert rough.primal <= tight.primal * (1 + 1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("coordinates", [True, False])
def test_rows_of_very_different_lengths(
    dtype: Any, coordinates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(60, 2500)) * 10.0 ** rng.uniform(-2, 2, size=(60, 1))).astype(dtype)
    y = rng.integers(0, 2, 60)
    if not coordinates:
        monkeypatch.setattr(quasi_newton, "_FEW", 0)
    model = LogisticRegression(max_iter=5000).fit(X, y)
    tight = LogisticRegression(max_iter=5000, tol=1e-9).fit(X.astype(np.float64), y)
    assert model.certificate_.status == "converged"
    assert model.certificate_.primal <= tight.certificate_.primal * (1 + 1e-4)


def test_long_ways_on_sparse_data_end_with_newtons_steps() -> None:
    rng = np.random.default_rng(5)
    X = sparse.random(3000, 5000, 0.01, format="csr", random_state=5)
    X = sparse.csr_matrix(X.multiply(10.0 ** rng.uniform(-2, 2, 5000)))
    y = (X @ rng.normal(size=5000) + rng.logistic(size=3000) > 0).astype(int)
    model = LogisticRegression(C=100.0, solver="quasi-newton", max_iter=3000, tol=1e-8).fit(X, y)
    other = LogisticRegression(C=100.0, solver="dual-coordinate", max_iter=20000, tol=1e-6).fit(X, y)
    assert model.certificate_.status == "converged"
    assert model.certificate_.primal <= other.certificate_.primal * (1 + 1e-8)


def test_the_bound_outlives_lost_orthogonality(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding turns directions where lengths of rows differ; gains of the steps do not suffer from it."""
    rng = np.random.default_rng(45)
    X = rng.normal(size=(139, 5)) @ rng.normal(size=(5, 35)) + 1e-2 * rng.normal(size=(139, 35))
    problem = Problem(
        view=view_of(X),
        classes=rng.integers(0, 2, 139),
        codes=np.array([[-1], [1]], dtype=np.int8),
        joint=False,
        fit_intercept=False,
    )
    objective = SmoothObjective(problem, 1e-5)
    point = objective.at(rng.normal(size=(1, 35)), np.zeros(1))
    p = 1.0 / (1.0 + np.exp(-(X @ point.coef[0])))
    H = (X * (p * (1.0 - p))[:, None]).T @ X + 1e-5 * np.eye(35)
    true = float(point.gradient[0] @ np.linalg.solve(H, point.gradient[0]))
    monkeypatch.setattr(_iterated, "_MISSING", 0.0)
    whole = moments(objective)
    assert not whole.mean.any()
    for most in (10, 30, 50, 70, 100, 150, 250):
        monkeypatch.setattr(_iterated, "_MOST", most)
        model = Iterated(whole, objective, 0.0)
        model.refresh(point)
        model.solve(point.gradient, np.zeros(1))
        assert 2 * model.most >= true * (1 - 1e-7)
    assert 2 * model.most <= true * (1 + 1e-4)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [1.0, 100.0, np.inf])
def test_fits_that_end_early_tell_a_bound(classes: int, C: float) -> None:
    """Only a diagonal is known there, which sees little of what is left to gain."""
    rng = np.random.default_rng(5)
    X = sparse.random(6000, 900, 0.01, format="csr", random_state=5)
    X = sparse.csr_matrix(X.multiply(10.0 ** rng.uniform(-1, 1, 900)))
    y = np.argmax(0.1 * (X @ rng.normal(size=(900, classes))) + rng.gumbel(size=(6000, classes)), axis=1)
    tight = LogisticRegression(C=C, tol=1e-8, max_iter=3000).fit(X, y).certificate_
    assert tight.status == "converged"
    for most in (1, 3):
        with pytest.warns(ConvergenceWarning, match="duality gap"):
            early = LogisticRegression(C=C, tol=1e-8, max_iter=most, solver="quasi-newton").fit(X, y)
        found = early.certificate_
        assert found.status == "max_iter"
        assert found.dual is not None
        assert found.primal - found.gap <= tight.primal
        assert found.relative_gap <= 1.0


@pytest.mark.parametrize("solver", ["newton", "quasi-newton"])
def test_weights_that_all_classes_share_at_the_start_are_left(solver: str) -> None:
    """They change no probability, but the penalty counts them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 40))
    y = np.argmax(X @ rng.normal(size=(40, 4)) + rng.gumbel(size=(3000, 4)), axis=1)
    model = LogisticRegression(C=0.01, solver=solver, warm_start=True).fit(X, y)
    before = model.certificate_.primal
    model.coef_ = model.coef_ + 3.0
    assert model.fit(X, y).certificate_.status == "converged"
    assert model.certificate_.primal <= before * (1 + 1e-6)
