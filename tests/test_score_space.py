"""The Hessian along the scores, beside a model that all classes share."""

from __future__ import annotations

import numpy as np
import pytest

from separatrix import LogisticRegression
from separatrix.data.memory import view_of
from separatrix.losses import softmax
from separatrix.multiclass import Coding
from separatrix.problem import Problem
from separatrix.solvers import _descent
from separatrix.solvers._factor import Factor
from separatrix.solvers._score_space import AlongScores
from separatrix.solvers.curvature import Shared, moments
from separatrix.solvers.quasi_newton import QuasiNewton
from separatrix.solvers.smooth import SmoothObjective

K, D = 4, 7


@pytest.fixture(params=[np.float64, np.float32])
def problem(request):
    rng = np.random.default_rng(3)
    X = (rng.exponential(size=(500, D)) + rng.normal(size=(500, 1))).astype(request.param)
    classes = (X @ rng.normal(size=(D, K)) + rng.normal(size=(500, K))).argmax(axis=1)
    weights = rng.uniform(0.5, 2.0, size=500)
    return Problem(
        view_of(X), classes.astype(np.int32), Coding.of("joint", K).codes, joint=True, weights=weights
    )


def model_at(problem, W, b, l2=0.3):
    objective = SmoothObjective(problem, l2)
    shared = Shared(moments(objective), objective, objective)
    shared.refresh(objective.at(np.zeros_like(W), np.zeros_like(b)))
    model = AlongScores(shared)
    model.refresh(objective.at(W, b))
    return model


def hessian_times(problem, W, b, mean, step, shifts, l2=0.3):
    """The Hessian in centred features times a step, sample by sample."""
    gradient, slopes = l2 * step, np.zeros(K)
    for x, s in zip(np.asarray(problem.view.array, dtype=np.float64), problem.weights, strict=True):
        p = softmax((W @ x + b)[None])[0]
        change = s * (np.diag(p) - np.outer(p, p)) @ (step @ (x - mean) + shifts)
        gradient, slopes = gradient + np.outer(change, x - mean), slopes + change
    return gradient, slopes


def test_steps_along_the_weights_meet_the_whole_hessian(problem):
    rng = np.random.default_rng(0)
    W, b, mix, shifts = (rng.normal(size=size) for size in ((K, D), K, (K, K), K))
    W, mix, shifts = W - W.mean(axis=0), mix - mix.mean(axis=0), shifts - shifts.mean()
    model = model_at(problem, W, b)
    step = mix @ W
    gradient, slopes = hessian_times(problem, W, b, model.mean, step, shifts)
    found, found_shifts = model.solve(gradient, slopes)
    # What lies along the weights is what a product with G Wᵀ shows.
    show = model.shared.factor.times(W.T)
    np.testing.assert_allclose(found @ show, step @ show, rtol=2e-5, atol=2e-5 * np.abs(step @ show).max())
    np.testing.assert_allclose(found_shifts, shifts, rtol=2e-5, atol=2e-5)


def test_the_model_is_symmetric_and_positive(problem):
    rng = np.random.default_rng(1)
    model = model_at(problem, rng.normal(size=(K, D)), rng.normal(size=K))
    gradients, slopes = rng.normal(size=(2, K, D)), rng.normal(size=(2, K))
    gradients -= gradients.mean(axis=1, keepdims=True)
    slopes -= slopes.mean(axis=1, keepdims=True)
    steps, shifts = model.solve(gradients, slopes)
    products = np.einsum("akj,bkj->ab", gradients, steps) + slopes @ shifts.T
    assert products[0, 1] == pytest.approx(products[1, 0], rel=1e-6)
    assert np.all(np.linalg.eigvalsh((products + products.T) / 2) > 0)


def test_times_undoes_solve():
    rng = np.random.default_rng(2)
    half, right = rng.normal(size=(30, 5)), rng.normal(size=(5, 2))
    factor = Factor(half.T @ half)
    np.testing.assert_allclose(factor.solve(factor.times(right)), right, atol=1e-9)
    np.testing.assert_allclose(factor.times(right), half.T @ half @ right, atol=1e-8)


def test_it_saves_sweeps_and_ends_as_near(monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6000, _descent.DEAR)).astype(np.float32)
    y = (X @ rng.normal(size=(_descent.DEAR, 5)) / 16 + 0.3 * rng.normal(size=(6000, 5))).argmax(axis=1)
    least = LogisticRegression(tol=1e-8).fit(X.astype(np.float64), y).certificate_.primal
    model = LogisticRegression().fit(X, y)
    monkeypatch.setattr(_descent, "_EARLY", ())
    without = LogisticRegression().fit(X, y)
    assert model.history_[-1]["sweeps"] < 0.8 * without.history_[-1]["sweeps"]
    assert model.certificate_.primal <= least * (1 + 1e-4)


def test_a_foreseen_gain_proves_nothing_where_gains_hardly_fall(problem):
    solver = QuasiNewton(problem, l2=0.3, coef=np.zeros((K, D)), intercept=np.zeros(K), tol=1e-4)
    descent = _descent.Descent(solver, solver.objective, solver.objective, *solver.start, later=False)
    descent.model = Shared(solver.whole, solver.objective, solver.objective)
    descent.model.refresh(descent.point)
    descent.foreseen = 1e9
    descent.gains = [2e9, 1.1e9, 1.05e9, 1e9]
    assert descent.distance() > 10e9
    descent.gains = [2e12, 1e11, 1e10, 1e9]
    assert descent.distance() < 1e9
