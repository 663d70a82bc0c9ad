"""Extrapolation of the joint machine's coordinate descent, against the formulas."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from problems import problem_of
from separatrix import LinearSVC
from separatrix.solvers import crammer_singer
from separatrix.solvers._loop import Control
from separatrix.solvers.crammer_singer import LinearCrammerSinger
from test_crammer_singer import blobs

LAYOUTS = [np.asarray, sparse.csr_array]


def _solver(make, tol, constant=True):
    X, y = blobs(80, 5, 4)
    X = X * np.geomspace(1.0, 10.0, 5)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=80)
    problem = problem_of(make(X), y, "joint", weights=weights, fit_intercept=constant)
    solver = LinearCrammerSinger(problem, C=0.02, tol=tol, intercept_scaling=1.5)
    solver.order = solver.order[:80].copy()  # one visit of each
    return solver, np.hstack([X, np.full((80, 1), 1.5 if constant else 0.0)])


def _alpha(solver, mu):
    alpha = -solver.gap.scale[:, None] * mu
    alpha[np.arange(80), solver.gap.classes] += solver.gap.scale
    return alpha


def _dual(solver, rows, mu):
    W = rows.T @ _alpha(solver, mu)
    return solver.gap.scale @ (1.0 - mu[np.arange(80), solver.gap.classes]) - 0.5 * (W**2).sum()


@pytest.mark.parametrize("make", LAYOUTS)
@pytest.mark.parametrize("tol", [1e-4, 1e-9])  # single and double precision
@pytest.mark.parametrize("constant", [True, False])
def test_the_point_is_the_best_of_the_plane_or_none(make, tol, constant, monkeypatch):
    monkeypatch.setattr(crammer_singer, "_CREEPING", 10**9)
    solver, rows = _solver(make, tol, constant)
    close = 1e-3 if solver.dtype == np.float32 else 1e-9
    extrapolation, points, taken = solver.extrapolation, [], 0
    for _ in range(12):
        solver._epoch(Control(None), 0.0)
        mu, weights = solver._arrays["mu"], solver._arrays["weights"]
        before, reach = mu.astype(np.float64), extrapolation.reach
        gain = extrapolation.step(mu, weights)
        after = mu.astype(np.float64)
        old, new = _dual(solver, rows, before), _dual(solver, rows, after)
        assert gain >= 0
        assert_allclose(new - old, gain, atol=0.01 * close * abs(old))
        assert_allclose(weights, rows.T @ _alpha(solver, after), rtol=close, atol=close)
        assert_allclose(after.sum(axis=1), 1.0, rtol=1e-5)
        if gain > close * old:  # less is rounding
            taken += 1
            a, b = before - points[-1], points[-1] - points[-2]
            tau = reach * _best(solver, rows, before, a, b)
            expected = np.maximum(before + tau[0] * a + tau[1] * b, 0.0)
            expected /= expected.sum(axis=1, keepdims=True)
            assert_allclose(after, expected, atol=10 * close * np.abs(a).max())
        elif gain == 0:
            assert_array_equal(after, before)
        points.append(after)
    assert taken > 2


def _best(solver, rows, mu, a, b):
    """The multiples of both ways where the dual's quadratic is largest, by values of the dual."""
    value = lambda s, t: _dual(solver, rows, mu + s * a + t * b)  # noqa: E731
    f = value(0, 0)
    slope = np.array([value(1, 0) - value(-1, 0), value(0, 1) - value(0, -1)]) / 2
    H = np.array([[value(1, 0) + value(-1, 0) - 2 * f, 0.0], [0.0, value(0, 1) + value(0, -1) - 2 * f]])
    H[0, 1] = H[1, 0] = (value(1, 1) - value(1, -1) - value(-1, 1) + value(-1, -1)) / 4
    return np.linalg.solve(-H, slope)


def test_nothing_moves_where_nothing_has_moved():
    solver, _ = _solver(np.asarray, 1e-9)
    mu, weights = solver._arrays["mu"], solver._arrays["weights"]
    for _ in range(4):
        assert solver.extrapolation.step(mu, weights) == 0.0
    assert_array_equal(weights, 0.0)


def test_creeping_descent_ends_sooner(monkeypatch):
    random = np.random.default_rng(5)
    X = sparse.random(2000, 1500, 0.01, format="csr", random_state=0)
    X.data = random.geometric(0.1, X.data.shape[0]).astype(float)
    y = random.integers(0, 3, 2000)
    model = LinearSVC(multi_class="crammer_singer", C=1.0, max_iter=5000)
    quick = model.fit(X, y).n_iter_
    assert model.certificate_.status == "converged"
    primal = model.certificate_.primal
    monkeypatch.setattr(crammer_singer, "_CREEPING", 10**9)
    assert model.fit(X, y).n_iter_ > 1.5 * quick
    assert primal == pytest.approx(model.certificate_.primal, rel=2e-4)
