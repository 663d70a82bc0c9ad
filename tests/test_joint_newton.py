"""Newton's method for the joint multiclass machine on data of any size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from separatrix import LinearSVC, _hot
from separatrix.data import room
from separatrix.data.memory import view_of
from separatrix.data.threads import asking
from separatrix.solvers import crammer_singer, joint_newton
from separatrix.solvers._loop import Below, OutOfTimeError, run
from separatrix.solvers._simplex import project
from separatrix.solvers.crammer_singer import LinearCrammerSinger
from separatrix.solvers.joint_newton import JointNewton, work
from test_crammer_singer import blobs, by_programme, objective, problem_of

LAYOUTS = [np.asarray, sparse.csr_matrix]


def _newton(X, y, cost, constant, rho=0.5, tol=1e-9):
    K = int(y.max()) + 1
    W, mu = np.zeros((K, X.shape[1] + (constant > 0))), np.eye(K)[y]
    return JointNewton(view_of(X), y, cost, constant, W, mu, rho, tol), W, mu


@pytest.mark.parametrize("make", LAYOUTS)
@pytest.mark.parametrize("constant", [0.0, 2.0])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("by_samples", [False, True])
def test_it_reaches_the_optimum_of_a_quadratic_programme(make, constant, C, by_samples, monkeypatch):
    X, y = blobs(60, 5, 4)
    cost = C * np.random.default_rng(1).uniform(0.5, 2.0, size=60)
    cost[3] = 0.0
    monkeypatch.setattr(joint_newton, "_by_samples", lambda *_: by_samples)
    keep = cost > 0
    best = by_programme((X @ X.T + constant**2)[np.ix_(keep, keep)], y[keep], cost[keep])
    newton, W, mu = _newton(make(X), y, cost, constant)
    newton.run(200)
    primal, dual, steps = newton.measure()
    assert not newton.stuck
    assert 0 < steps < 200
    assert primal - dual <= 1e-9 * primal
    assert primal == pytest.approx(best, rel=1e-6)
    extended = np.hstack([X, np.full((60, 1), constant)])[:, : W.shape[1]]
    h = extended @ W.T + 1.0
    h[np.arange(60), y] -= 1.0
    own = h[np.arange(60), y]
    assert primal == pytest.approx(0.5 * (W**2).sum() + cost @ (h.max(axis=1) - own))
    alpha = cost[:, None] * (np.eye(4)[y] - mu)
    bound = cost @ (1.0 - mu[np.arange(60), y]) - 0.5 * ((alpha.T @ extended) ** 2).sum()
    assert dual == pytest.approx(bound)


@pytest.mark.parametrize("make", LAYOUTS)
def test_both_systems_give_the_step_of_the_compiled_loop(make, monkeypatch):
    X, y = blobs(40, 3, 4)
    cost, rho = np.full(40, 2.0), 0.7
    W, mu = np.zeros((4, 3)), np.eye(4)[y]
    state = _hot.SmallJoint(x=X, classes=y, cost=cost, W=W, mu=mu, rho=rho, tol=1e-12)
    state.run(1)
    for by_samples in (False, True):
        monkeypatch.setattr(joint_newton, "_by_samples", lambda *_, chosen=by_samples: chosen)
        newton, own, _ = _newton(make(X), y, cost, 0.0, rho)
        newton.run(1)
        np.testing.assert_allclose(own, W, rtol=1e-9, atol=1e-12)


def test_large_weights_by_blocks(monkeypatch):
    X, y = blobs(300, 6, 5)
    found = []
    for block in (1 << 20, 64):
        monkeypatch.setattr(joint_newton, "_BLOCK", block)
        newton, W, _ = _newton(X, y, np.ones(300), 1.0)
        newton.run(3)
        found.append(W)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-12)


def test_what_is_too_large_is_left_alone(monkeypatch):
    X, y = blobs(200, 6, 5)
    newton, W, mu = _newton(X, y, np.ones(200), 1.0)
    assert np.isfinite(work(view_of(X), mu, W.size))
    with room.within(0.1):
        assert work(view_of(X), mu, W.size) == np.inf
    monkeypatch.setattr(joint_newton, "_MOST_FREE", 0)
    monkeypatch.setattr(joint_newton, "_MOST_WEIGHTS", 0)
    assert work(view_of(X), mu, W.size) == np.inf
    newton.run(5)
    assert newton.stuck
    assert newton.steps == 0


def test_projections_of_corners_and_others():
    Z = np.random.default_rng(0).normal(size=(200, 5)) * np.repeat([0.2, 1.0, 3.0, 1e6], 50)[:, None]
    np.testing.assert_allclose(joint_newton._projected(Z), project(Z), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [1.0, 1e6])
def test_epochs_that_crawl_are_finished(dtype, C, monkeypatch):
    """Features of very different size, on which coordinate descent crawls at any C."""
    monkeypatch.setattr(crammer_singer, "_NEWTON_SIZE", 0)
    monkeypatch.setattr(crammer_singer, "_NEWTON_WORK", 0)
    X, y = blobs(600, 12, 5)
    X = (X * np.logspace(-1.5, 1.5, 12)).astype(dtype)
    taken, run_ = [], JointNewton.run
    monkeypatch.setattr(JointNewton, "run", lambda *a: taken.append(1) or run_(*a))
    model = LinearSVC(multi_class="crammer_singer", C=C, tol=1e-4).fit(X, y)
    assert taken
    assert model.certificate_.status == "converged"
    value = objective(model.coef_.astype(float), model.intercept_.astype(float), X.astype(float), y, C)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


def test_cheap_epochs_are_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(crammer_singer, "_NEWTON_SIZE", 0)
    monkeypatch.setattr(crammer_singer, "_EPOCHS_SAVED", 0.0)
    X, y = blobs(400, 10, 5)
    solver = LinearCrammerSinger(problem_of(sparse.csr_matrix(X), y, "joint"), C=1.0, tol=1e-9)
    assert [solver._newton_fits(epoch) for epoch in (540, 599, 600)] == [False, False, True]
    monkeypatch.setattr(crammer_singer, "_RESCUE", 0.0)
    assert not solver._newton_fits(600)


def test_epochs_go_on_where_its_system_becomes_too_large(monkeypatch):
    monkeypatch.setattr(crammer_singer, "_NEWTON_SIZE", 0)
    monkeypatch.setattr(crammer_singer, "_NEWTON_WORK", 0)
    monkeypatch.setattr(crammer_singer, "_CRAWLING", 1)
    monkeypatch.setattr(JointNewton, "_direction", lambda *_: None)
    runs, run_ = [], JointNewton.run
    monkeypatch.setattr(JointNewton, "run", lambda *a: runs.append(1) or run_(*a))
    X, y = blobs(400, 10, 5)
    solver = LinearCrammerSinger(problem_of(X, y, "joint"), C=1.0, tol=1e-6)
    result = solver.finish(run(solver, Below(1e-6), max_iter=3000))
    assert len(runs) == 1
    assert result.certificate.status == "converged"


def test_time_ends_its_steps(monkeypatch):
    monkeypatch.setattr(crammer_singer, "_NEWTON_SIZE", 0)
    monkeypatch.setattr(crammer_singer, "_NEWTON_WORK", 0)
    monkeypatch.setattr(crammer_singer, "_CRAWLING", 1)
    X, y = blobs(400, 10, 5)
    solver = LinearCrammerSinger(problem_of(X, y, "joint"), C=1.0, tol=1e-12)
    outcome = run(solver, Below(1e-12), max_iter=4)
    result = solver.finish(outcome)
    assert outcome.iterations == 4
    assert outcome.status == "max_iter"
    assert result.certificate.primal == pytest.approx(objective(result.coef, result.intercept, X, y, 1.0))


@pytest.mark.parametrize("make", LAYOUTS)
def test_time_ends_it_within_a_step(make):
    """Whatever it has begun, weights and dual variables stay those of the last step."""
    X, y = blobs(200, 6, 5)
    newton, W, mu = _newton(make(X), y, np.ones(200), 1.0)
    newton.run(2)
    before = W.copy(), mu.copy()
    asked: list[int] = []

    def stop():
        asked.append(1)
        raise OutOfTimeError

    with pytest.raises(OutOfTimeError), asking(stop):
        newton.run(1)
    assert asked == [1]
    np.testing.assert_array_equal(W, before[0])
    np.testing.assert_array_equal(mu, before[1])


@pytest.mark.parametrize("length", [0.7, 1.0, 1.6])
def test_the_best_multiple_of_weights(length):
    X, y = blobs(80, 4, 3)
    solver = LinearCrammerSinger(problem_of(X, y, "joint"), C=50.0, tol=1e-9)
    newton, own, _ = _newton(X, y, np.full(80, 50.0), 1.0)
    newton.run(50)
    W, b = np.zeros((4, solver.padded)), np.zeros(solver.padded)
    W[:, :3], b[:3] = length * own[:, :4].T, length * own[:, 4]
    best = solver.objective.best_multiple(W, b)
    assert best == pytest.approx(1.0 / length, rel=1e-3)
    values = [solver.objective(s * W, s * b) for s in np.linspace(0.5, 2.0, 3001)]
    assert solver.objective(best * W, best * b) <= min(values) * (1 + 1e-12)
