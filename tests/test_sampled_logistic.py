"""Logistic regression on samples of the rows: models of the Hessian, certificates, rare features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from separatrix import LogisticRegression
from separatrix.data.memory import view_of
from separatrix.multiclass import Coding
from separatrix.problem import Problem
from separatrix.solvers import curvature
from separatrix.solvers._descent import Descent
from separatrix.solvers._smooth_certificate import _bend
from separatrix.solvers.curvature import Coupled, diagonal, moments
from separatrix.solvers.quasi_newton import QuasiNewton
from separatrix.solvers.smooth import SmoothObjective


def rare_features(n, d, K, seed):
    random = np.random.default_rng(seed)
    X = (random.random((n, d)) < np.geomspace(1e-4, 0.5, d)).astype(np.float64)
    scores = (X - X.mean(axis=0)) @ random.standard_normal((d, K)) * (4.0 / np.sqrt(d))
    return X, (scores + random.gumbel(size=(n, K))).argmax(axis=1)


@pytest.mark.parametrize(("K", "seed"), [(5, 0), (5, 1), (3, 2), (2, 3)])
def test_samples_without_some_features_end_where_they_say(K, seed):
    X, y = rare_features(80_000, 50, K, seed)
    model = LogisticRegression().fit(X, y)
    tight = LogisticRegression(tol=1e-9).fit(X, y)
    assert model.certificate_.status == "converged"
    assert any(record["samples"] < 80_000 for record in model.history_)
    assert model.certificate_.primal <= tight.certificate_.primal * (1 + 1e-4)


def softmax_objective(X, classes, K, l2=1.0):
    problem = Problem(view_of(X), classes.astype(np.int32), Coding.of("joint", K).codes, joint=True)
    return SmoothObjective(problem, l2)


def test_a_feature_that_is_constant_in_the_sample_is_led_by_no_class_alone():
    # Three rows tell all about feature 0; elsewhere it is the intercept once more, and so is its gradient.
    # Where a class is out of the question in those rows, its weight must hardly move.
    random = np.random.default_rng(0)
    X, y = random.standard_normal((4000, 3)), random.integers(0, 3, 4000)
    X[:, 0] = -0.001
    X[:3, 0], y[:3] = 400.0, 1
    objective = softmax_objective(X, y, 3)
    whole = moments(objective)
    intercept = np.array([0.5, 0.0, -0.5])
    coef = np.zeros((3, 3))
    coef[:, 0] = [-0.04, 0.02, 0.02]
    point = objective.at(coef, intercept - coef @ whole.mean)
    centred = point.gradient - point.gradient_intercept[:, None] * whole.mean
    gains = []
    for rows in (objective.sample(np.arange(100, 2100)), objective):
        model = Coupled(whole, rows, objective)
        model.refresh(point)
        weights, slopes = model.solve(centred, point.gradient_intercept)
        weights, slopes = weights - weights.mean(axis=0), slopes - slopes.mean()
        ahead = objective.at(point.coef - weights, point.intercept - slopes + weights @ whole.mean)
        gains.append(point.value - ahead.value)
    assert gains[1] > 0
    assert gains[0] > 0.9 * gains[1]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_diagonal_of_some_features(form):
    random = np.random.default_rng(1)
    X, y = random.standard_normal((300, 6)), random.integers(0, 3, 300)
    objective = softmax_objective(form(X), y, 3)
    coef, intercept, mean = random.standard_normal((3, 6)), random.standard_normal(3), X.mean(axis=0)
    scores = X @ coef.T + intercept
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    expected = (p * (1 - p)).T @ np.square(X - mean)
    found = diagonal(objective, objective.at(coef, intercept), mean, np.array([4, 1]))
    np.testing.assert_allclose(found, expected[:, [4, 1]], rtol=1e-5)


@pytest.mark.parametrize(("shift", "single"), [(0.0, True), (1e5, False)])
def test_samples_of_doubles_are_single_where_that_shows_what_they_are_like(monkeypatch, shift, single):
    random = np.random.default_rng(2)
    X = random.standard_normal((40_000, 20))
    y = (X @ random.standard_normal(20) + random.logistic(size=40_000) > 0).astype(int)
    X[:, 3] += shift
    kinds, sample = [], SmoothObjective.sample

    def watched(self, rows, **options):
        drawn = sample(self, rows, **options)
        kinds.append(drawn.view.dtype)
        return drawn

    monkeypatch.setattr(SmoothObjective, "sample", watched)
    model = LogisticRegression(solver="quasi-newton").fit(X, y)
    assert kinds
    assert (np.float32 in kinds) == single
    tight = LogisticRegression(tol=1e-10).fit(X, y)
    assert model.certificate_.primal <= tight.certificate_.primal * (1 + 1e-4)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("K", [2, 4])
def test_single_precision_data_need_no_evaluation_after_the_last_step(monkeypatch, form, K):
    random = np.random.default_rng(3)
    X = random.standard_normal((30_000, 40)).astype(np.float32)
    y = (X @ random.standard_normal((40, K)) + random.gumbel(size=(30_000, K))).argmax(axis=1)
    calls, at, finish = [], SmoothObjective.at, QuasiNewton.finish

    def watched(self, *of, **options):
        calls.append("at")
        return at(self, *of, **options)

    monkeypatch.setattr(SmoothObjective, "at", watched)
    monkeypatch.setattr(QuasiNewton, "finish", lambda *of: calls.append("end") or finish(*of))
    model = LogisticRegression().fit(form(X), y)
    assert model.certificate_.dual is None
    assert calls.count("end") == 1
    assert calls[-1] == "end"


@pytest.mark.parametrize("tol", [1e-4, 0.05])
def test_a_hessian_of_a_sample_leads_newton_on_all_rows_but_ends_nothing(monkeypatch, tol):
    random = np.random.default_rng(0)
    X = sparse.random_array((60_000, 30), density=0.2, format="csr", rng=random)
    y = X @ random.standard_normal(30) + random.logistic(size=60_000) > 0
    formed, grams = [], curvature.bordered_grams

    def counted(view, *rest):
        formed.append(view.shape[0])
        return grams(view, *rest)

    monkeypatch.setattr(curvature, "bordered_grams", counted)
    model = LogisticRegression(tol=tol).fit(X, y)
    whole = [record for record in model.history_ if record["samples"] == 60_000]
    assert formed[0] == 7500
    assert 0 < formed.count(60_000) < len(whole)
    tight = LogisticRegression(tol=1e-9).fit(X, y)
    assert model.certificate_.primal <= tight.certificate_.primal * (1 + tol)


def test_a_rough_way_waits_for_the_duality_gap(monkeypatch):
    """Some steps more cost less than the Hessian that would prove them unnecessary."""
    X, y = rare_features(20_000, 40, 5, 0)
    X = ((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)).astype(np.float32)
    waited, waits = [], Descent._waits
    monkeypatch.setattr(Descent, "_waits", lambda self: waited.append(waits(self)) or waited[-1])
    certificate = LogisticRegression().fit(X, y).certificate_
    assert waited[0]
    assert not waited[-1]
    assert certificate.status == "converged"
    assert certificate.dual is not None
    tight = LogisticRegression(tol=1e-9).fit(X.astype(np.float64), y).certificate_
    assert certificate.dual <= tight.primal <= certificate.primal <= tight.primal * (1 + 1e-4)


@pytest.mark.parametrize("joint", [True, False])
def test_bend_of_the_intercepts_over_several_pieces(joint):
    random = np.random.default_rng(0)
    n, K = 9000, 3
    classes, s = random.integers(0, K, n).astype(np.int32), random.integers(0, 3, n).astype(np.float64)
    X, W = random.standard_normal((n, 4)), random.standard_normal((K, 4))
    codes = Coding.of("joint" if joint else "ovr", K).codes
    objective = SmoothObjective(Problem(view_of(X), classes, codes, joint=joint, weights=s), 1.0)
    kept = np.empty((n, K))
    objective.at(W, np.zeros(K), residuals=kept)
    p = np.exp(X @ W.T)
    p = p / p.sum(axis=1, keepdims=True) if joint else p / (1 + p)
    expected = np.diag(s @ p) - (s[:, None] * p).T @ p if joint else np.diag(s @ (p * (1 - p)))
    np.testing.assert_allclose(_bend(objective, kept), expected, rtol=1e-10, atol=1e-10)
