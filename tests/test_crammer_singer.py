"""The joint multiclass SVM: against a quadratic programme, LIBLINEAR, and a readable loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.svm import LinearSVC

from oracles import crammer_singer_epoch, quadratic_programme
from problems import problem_of
from separatrix import _hot
from separatrix.data.memory import view_of
from separatrix.kernels import RBF, CallableKernel, Linear
from separatrix.multiclass import Coding
from separatrix.problem import Problem
from separatrix.solvers import crammer_singer
from separatrix.solvers._kernel_blocks import KernelBlocks
from separatrix.solvers._loop import Below, run
from separatrix.solvers._simplex import newton_direction, project
from separatrix.solvers.crammer_singer import LinearCrammerSinger
from separatrix.solvers.kernel_crammer_singer import KernelCrammerSinger


def blobs(n=60, d=3, K=3, spread=1.2, seed=0):
    random = np.random.default_rng(seed)
    y = (np.arange(n) % K).astype(np.int32)
    return random.normal(size=(n, d)) * spread + 2 * random.normal(size=(K, d))[y], y


def fit(X, y, C=1.0, tol=1e-8, weights=None, fit_intercept=True, max_iter=5000, **options):
    problem = problem_of(X, y, "joint", weights=weights, fit_intercept=fit_intercept)
    solver = LinearCrammerSinger(problem, C=C, tol=tol, **options)
    return solver.finish(run(solver, Below(tol), max_iter=max_iter)), solver


def objective(W, b, X, y, C, weights=None, scaling=1.0):
    h = np.asarray(X @ W.T, dtype=float) + b + 1.0
    every = np.arange(len(y))
    h[every, y] -= 1.0
    s = np.ones(len(y)) if weights is None else weights
    return C * s @ (h.max(axis=1) - h[every, y]) + 0.5 * (W**2).sum() + 0.5 * (b**2).sum() / scaling**2


def by_programme(gram, y, cost):
    """The primal as a quadratic programme in weights and losses ξ_i ≥ h_ik − h_ic; returns its value."""
    n, K = len(y), int(y.max()) + 1
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-10 * values[-1]
    X = vectors[:, kept] * np.sqrt(values[kept])
    r = X.shape[1]
    rows, bounds = [], []
    for i, k in np.ndindex(n, K):
        w, xi = np.zeros((K, r)), np.zeros(n)
        w[k] += X[i]
        w[y[i]] -= X[i]
        xi[i] = -1.0
        rows.append(np.concatenate([w.ravel(), xi]))
        bounds.append(0.0 if k == y[i] else -1.0)
    P = np.diag(np.repeat([1.0, 0.0], [K * r, n]))
    z = quadratic_programme(
        P,
        np.repeat([0.0, 1.0], [K * r, n]) * np.append(np.zeros(K * r), cost),
        np.array(rows),
        np.array(bounds),
    )
    return 0.5 * z @ P @ z + cost @ z[K * r :]


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("scaling", [0.0, 1.0, 10.0])
def test_linear_reaches_the_optimum_of_a_quadratic_programme(C, scaling):
    X, y = blobs(40)
    weights = np.random.default_rng(1).integers(0, 4, size=40).astype(float)
    keep = weights > 0
    best = by_programme(X[keep] @ X[keep].T + scaling**2, y[keep], C * weights[keep])
    options = {"intercept_scaling": scaling} if scaling else {"fit_intercept": False}
    result, _ = fit(X, y, C, weights=weights, **options)
    certificate = result.certificate
    assert certificate.status == "converged"
    assert certificate.dual <= best * (1 + 1e-6)
    assert certificate.primal == pytest.approx(best, rel=1e-6)
    assert certificate.gap >= 0
    assert certificate.primal == pytest.approx(
        objective(result.coef, result.intercept, X, y, C, weights, scaling or 1.0), rel=1e-12
    )


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layouts_and_precisions_agree(make, dtype):
    X, y = blobs(90, 5, 4)
    X[np.abs(X) < 0.5] = 0.0
    reference, _ = fit(X, y, 0.3, tol=1e-10)
    result, _ = fit(make(X.astype(dtype)), y, 0.3, tol=1e-6)
    assert result.coef.dtype == dtype
    assert result.certificate.primal == pytest.approx(reference.certificate.primal, rel=2e-6)
    np.testing.assert_allclose(result.coef, reference.coef, atol=2e-3)


@pytest.mark.parametrize(("n", "d", "K", "C"), [(150, 4, 3, 1.0), (200, 30, 12, 0.1), (120, 40, 25, 1.0)])
def test_objective_is_that_of_liblinear(n, d, K, C):
    X, y = blobs(n, d, K, seed=5)
    peer = LinearSVC(multi_class="crammer_singer", C=C, tol=1e-9, max_iter=100_000, random_state=0).fit(X, y)
    result, _ = fit(X, y, C, tol=1e-8)
    ours = objective(result.coef, result.intercept, X, y, C)
    assert ours <= objective(peer.coef_, peer.intercept_, X, y, C) * (1 + 1e-7)
    np.testing.assert_allclose(result.coef, peer.coef_, atol=1e-3 * np.abs(peer.coef_).max())


def test_two_classes_are_a_binary_svm():
    X, y = blobs(50, 3, 2)
    result, _ = fit(X, y, 0.5)
    w, b = result.coef[1] - result.coef[0], result.intercept[1] - result.intercept[0]
    np.testing.assert_allclose(result.coef.sum(axis=0), 0.0, atol=1e-8)
    # ½‖w₀‖² + ½‖w₁‖² = ¼‖w‖², and the margin is y w·x: the binary problem with 2C.
    peer = LinearSVC(loss="hinge", C=1.0, tol=1e-9, max_iter=100_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(w, peer.coef_[0], atol=1e-3)
    assert b == pytest.approx(peer.intercept_[0], abs=1e-3)


@given(st.integers(0, 1000), st.sampled_from([0.01, 1.0, 30.0]))
@settings(max_examples=15)
def test_weights_are_repetitions(seed, C):
    X, y = blobs(30, 3, 3, seed=seed)
    times = np.random.default_rng(seed).integers(0, 3, size=30)
    weighted, _ = fit(X, y, C, weights=times.astype(float))
    repeated, _ = fit(np.repeat(X, times, axis=0), np.repeat(y, times), C)
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=1e-7)
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-3 * np.abs(repeated.coef).max())


def test_warm_start_and_rows_of_zeros():
    X, y = blobs(120, 4, 3)
    X[::10] = 0.0
    first, solver = fit(X, y, 1.0, fit_intercept=False)
    assert first.certificate.relative_gap <= 1e-8
    again, _ = fit(X, y, 1.0, fit_intercept=False, start=solver.mu, max_iter=30)
    assert again.certificate.primal == pytest.approx(first.certificate.primal, rel=1e-7)
    assert again.iterations <= first.iterations


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e4])
def test_newton_steps_at_once_or_late_and_epochs_alone_agree(C, monkeypatch):
    X, y = blobs(90, 4, 4, seed=3)
    X = X * np.array([1.0, 3.0, 0.3, 1.0])
    weights = np.random.default_rng(1).integers(0, 3, size=90).astype(float)
    found = [fit(X, y, C, weights=weights)[0]]
    assert found[0].iterations <= 5  # some Newton steps each
    monkeypatch.setattr(crammer_singer, "_NEWTON_WORK", 0)
    for begin in (1, -1):
        monkeypatch.setattr(crammer_singer, "_CRAWLING", begin)
        found.append(fit(X, y, C, weights=weights)[0])
    for result in found:
        assert result.certificate.status == "converged"
        assert result.certificate.primal == pytest.approx(found[0].certificate.primal, rel=1e-7)
        np.testing.assert_allclose(result.coef, found[0].coef, atol=1e-3 * np.abs(found[0].coef).max())


def test_a_newton_step_is_that_of_its_formula():
    X, y = blobs(40, 3, 4)
    n, D, K, C, rho = 40, 3, 4, 2.0, 0.7
    own, cost = np.eye(K)[y], np.full(n, C)

    def mu_of(W):
        return project(own + rho * (X @ W.T + 1.0 - own))

    mu, W = own.copy(), np.zeros((K, D))
    state = _hot.SmallJoint(x=X, classes=y, cost=cost, W=W, mu=mu, rho=rho, tol=1e-12)
    state.run(0)
    np.testing.assert_allclose(mu, mu_of(np.zeros((K, D))), atol=1e-14)
    gradient = -C * (own - mu).T @ X
    H = np.eye(K * D)
    for x, m in zip(X, mu, strict=True):
        used = (m > 0).astype(float)
        H += C * rho * np.kron(np.diag(used) - np.outer(used, used) / used.sum(), np.outer(x, x))
    step = np.linalg.solve(H, -gradient.ravel()).reshape(K, D)
    state.run(1)
    part = float(W.ravel() @ step.ravel() / (step.ravel() @ step.ravel()))
    assert part in (1.0, 0.5, 0.25, 0.125) or part == pytest.approx(1.0)
    np.testing.assert_allclose(W, part * step, atol=1e-10)
    np.testing.assert_allclose(mu, mu_of(W), atol=1e-12)
    primal, dual, steps = state.measure()
    h = X @ W.T + 1.0 - own
    v = C * (own - mu)
    assert steps == 1
    assert primal == pytest.approx(0.5 * (W**2).sum() + C * (h.max(axis=1) - h[np.arange(n), y]).sum())
    assert dual == pytest.approx(C * (1.0 - mu[np.arange(n), y]).sum() - 0.5 * ((v.T @ X) ** 2).sum())


def test_however_it_ends_the_model_and_its_gap_are_sound():
    X, y = blobs(3000, 10, 5)
    solver = LinearCrammerSinger(problem_of(X, y, "joint"), C=1e6, tol=1e-9)
    result = solver.finish(run(solver, Below(1e-9), max_iter=3))
    assert result.certificate.status == "max_iter"
    assert np.isfinite(result.coef).all()
    assert 0 <= result.certificate.dual <= result.certificate.primal
    solver = LinearCrammerSinger(problem_of(X, y, "joint"), C=1.0, tol=1e-9)
    outcome = run(solver, Below(1e-9), max_iter=3, max_time=1e-9)
    assert outcome.status == "max_time"
    assert solver.finish(outcome).certificate.relative_gap <= 1.0


def test_epochs_lose_nothing_that_newton_steps_found():
    X, y = load_wine(return_X_y=True)
    y = y.astype(np.int32)
    before, _ = fit(X, y, C=1e6, tol=1e-6, max_iter=200)
    # No step can prove so small a gap: epochs take over, which unscaled features defeat.
    after, _ = fit(X, y, C=1e6, tol=1e-15, max_iter=30)
    assert before.certificate.status == "converged"
    assert after.certificate.status == "max_iter"
    assert after.certificate.relative_gap < 1e-6
    value = objective(after.coef, after.intercept, X, y, 1e6)
    rounding = 1e6 * len(X) * np.finfo(float).eps * np.abs(X @ after.coef.T).max()
    assert abs(after.certificate.primal - value) <= rounding


def test_threads_do_not_matter():
    X, y = blobs(3000, 10, 40)
    one, two = (fit(X, y, 0.1, tol=1e-3, threads=threads)[0] for threads in (1, 2))
    np.testing.assert_array_equal(one.coef, two.coef)


def test_refusals():
    X, y = blobs(20)
    one = Problem(view_of(X), y, Coding.of("ovr", 3).codes)
    with pytest.raises(ValueError, match="joint"):
        LinearCrammerSinger(one, C=1.0, tol=1e-3)
    with pytest.raises(ValueError, match="finite C"):
        LinearCrammerSinger(problem_of(X, y, "joint"), C=np.inf, tol=1e-3)
    with pytest.raises(ValueError, match="finite"):
        KernelCrammerSinger(KernelBlocks(Linear(), X), y, np.full(20, np.inf), tol=1e-3)


@pytest.mark.parametrize("name", _hot.instruction_sets())
@pytest.mark.parametrize("S", [np.float32, np.float64])
@pytest.mark.parametrize("T", [np.float32, np.float64])
@pytest.mark.parametrize("index", [None, np.int32, np.int64])
def test_loop_against_a_readable_one(name, S, T, index):
    X, y = blobs(40, 5, 11)
    X = X.astype(T)
    cost = np.random.default_rng(2).uniform(0.1, 1.0, size=40)
    norms = np.einsum("ij,ij->i", X, X, dtype=np.float64) + 0.25
    arrays = {
        "classes": y,
        "cost": cost,
        "norms": norms,
        "weights": np.zeros((6, 16), dtype=S),
        "mu": np.zeros((40, 16), dtype=S),
        "asleep": np.zeros(40, dtype=np.uint8),
        "scratch": np.zeros(32, dtype=S),
        "tally": np.zeros(4),
    }
    arrays["mu"][np.arange(40), y] = 1.0
    kind = _hot.CrammerSingerFloat32 if np.float32 == S else _hot.CrammerSingerFloat64
    state = kind(**arrays, columns=11, constant=0.5)
    order = np.random.default_rng(3).permutation(40)
    before = _hot.instruction_set()
    try:
        _hot.use_instruction_set(name)
        for _ in range(3):
            if index is None:
                state.run_dense(X, order, 0, 40, -1)
            else:
                part = sparse.csr_array(X)
                places = (part.indices.astype(index), part.indptr.astype(index))
                state.run_csr(part.data, *places, 5, order, 0, 40, -1)
    finally:
        _hot.use_instruction_set(before)
    mu, W, dual = crammer_singer_epoch(X, y, cost, 0.5, np.tile(order, 3))
    close = {"atol": 1e-9 if np.float64 == S else 2e-4}
    np.testing.assert_allclose(arrays["mu"][:, :11], mu, **close)
    np.testing.assert_allclose(arrays["weights"][:, :11], W, **close)
    assert not arrays["mu"][:, 11:].any()
    assert arrays["tally"][0] == pytest.approx(dual, rel=1e-4)


@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([0.01, 1.0, 1e6]))
@settings(max_examples=60)
def test_projection_onto_the_simplex(seed, K, scale):
    V = np.random.default_rng(seed).normal(size=(4, K)) * scale
    P = project(V)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-9 * scale)
    # The residual is constant on the support and no larger off it.
    for v, p in zip(V, P, strict=True):
        assert (v - p).max() - (v - p)[p > 0].min() <= 1e-9 * scale


def test_newton_direction_is_feasible_and_rises():
    X, _ = blobs(30, 2, 4)
    random = np.random.default_rng(0)
    mu = random.dirichlet(np.ones(4), size=30)
    h = random.normal(size=(30, 4))
    d = newton_direction(mu, h, np.ones(30), X @ X.T)
    assert (mu + d >= -1e-12).all()
    np.testing.assert_allclose(d.sum(axis=1), 0.0, atol=1e-12)
    assert (d * h).sum() > 0


@pytest.mark.parametrize("kernel", [RBF(0.5), Linear()])
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_kernel_reaches_the_optimum_of_a_quadratic_programme(kernel, C, constant):
    X, y = blobs(36)
    cost = C * np.random.default_rng(1).uniform(0.5, 2.0, size=36)
    cost[3] = 0.0
    gram = np.asarray(kernel(X, X)) + constant**2
    keep = cost > 0
    best = by_programme(gram[np.ix_(keep, keep)], y[keep], cost[keep])
    solver = KernelCrammerSinger(KernelBlocks(kernel, X), y, cost, tol=1e-9, constant=constant)
    outcome = run(solver, Below(1e-9), max_iter=300)
    solver.refresh()
    assert outcome.status == "converged"
    assert solver.gap <= 1e-8 * solver.primal
    assert solver.primal == pytest.approx(best, rel=1e-5)
    alpha, K = solver.coef, solver.coef.shape[0]
    np.testing.assert_allclose(alpha.sum(axis=0), 0.0, atol=1e-9 * C)
    assert (alpha <= cost * np.eye(K)[y].T + 1e-9 * C).all()
    scores = np.asarray(kernel(X, X)) @ alpha.T + solver.intercept
    np.testing.assert_allclose(scores, solver.scores, atol=1e-8 * max(1.0, np.abs(scores).max()))
    assert solver.primal - solver.dual == pytest.approx(solver.gap, abs=1e-9 * solver.primal)


def test_kernel_and_linear_solver_agree():
    X, y = blobs(100, 4, 5)
    linear, _ = fit(X, y, 0.5)
    solver = KernelCrammerSinger(KernelBlocks(Linear(), X), y, np.full(100, 0.5), tol=1e-8, constant=1.0)
    run(solver, Below(1e-8), max_iter=100)
    assert solver.primal == pytest.approx(linear.certificate.primal, rel=1e-7)
    np.testing.assert_allclose(solver.coef @ X, linear.coef, atol=1e-4)
    np.testing.assert_allclose(solver.intercept, linear.intercept, atol=1e-4)


def test_kernel_working_sets(monkeypatch):
    X, y = blobs(300, 2, 4, spread=1.5)
    results = []
    for size in (1000, 40):
        monkeypatch.setattr("separatrix.solvers.kernel_crammer_singer._WORKING", size)
        solver = KernelCrammerSinger(KernelBlocks(RBF(1.0), X), y, np.full(300, 5.0), tol=1e-6)
        outcome = run(solver, Below(1e-6), max_iter=500)
        assert outcome.status == "converged"
        results.append(solver.primal)
    assert results[0] == pytest.approx(results[1], rel=3e-6)


def test_indefinite_kernel_ends():
    X, y = blobs(60, 2, 3)
    kernel = CallableKernel(lambda A, B: np.tanh(A @ B.T - 1.0))
    solver = KernelCrammerSinger(KernelBlocks(kernel, X), y, np.full(60, 10.0), tol=1e-6)
    outcome = run(solver, Below(1e-6), max_iter=100)
    assert solver.nonconvex
    assert np.isfinite(solver.coef).all()
    assert outcome.iterations <= 100


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_epochs_end_where_only_rounding_or_digits_beyond_those_asked_for_are_left(dtype):
    random = np.random.default_rng(5)
    X = (0.05 * random.normal(size=(100, 60))).astype(np.float32)
    y = random.integers(0, 13, 100).astype(np.int32)
    options = {"C": 100.0, "intercept_scaling": 10.0}
    result, _ = fit(X.astype(dtype), y, tol=1e-12, enough=1e-9, **options)
    exact, _ = fit(X.astype(np.float64), y, tol=1e-10, **options)
    found, best = result.certificate, exact.certificate
    # Rounding the weights to single precision costs more than the tolerance; steps cannot win it back.
    assert found.status == ("max_iter" if dtype == np.float32 else "converged")
    assert found.iterations < 500  # of 5000
    assert found.relative_gap <= (1e-6 if dtype == np.float32 else 1e-9)
    assert found.dual <= best.primal <= found.primal * (1 + 1e-9)
