"""Dual problems whose kernel matrix has a low rank: against quadratic programming, and the primal problem."""

from __future__ import annotations

import numpy as np
import pytest
import qpsolvers
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from separatrix.data.memory import view_of
from separatrix.kernels import RBF, Kernel, Linear, Polynomial
from separatrix.models.one_class import OneClassSVM
from separatrix.models.svc import SVC, NuSVC
from separatrix.models.svr import SVR, NuSVR
from separatrix.solvers import _box_programme, _interior, _loop, active_set
from separatrix.solvers._box_programme import Rows, box_programme
from separatrix.solvers._dual import Work
from separatrix.solvers._dual_problem import DualProblem, DualSolution
from separatrix.solvers._interior import LowRank, rank_bound
from separatrix.solvers.kernel_matrix import KernelMatrix


def noisy(n=400, d=5, seed=0):
    return make_classification(
        n, d, n_informative=3, n_redundant=0, flip_y=0.2, n_clusters_per_class=1, random_state=seed
    )


def work_of(X, kernel: Kernel, signs=None) -> Work:
    n = len(X)
    signs = np.ones(n) if signs is None else signs
    problem = DualProblem(np.arange(n), signs, -np.ones(n), np.ones(n), np.zeros(n))
    matrix = KernelMatrix(kernel, view_of(X), cache_bytes=1e8)
    return Work(matrix, problem, DualSolution(np.zeros(n), -np.ones(n)))


@pytest.mark.parametrize("sums", [1, 2])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_box_programme_agrees_with_quadratic_programming(sums: int, C: float) -> None:
    random = np.random.default_rng(3)
    m, r = 60, 4
    G, p = np.sqrt(C) * random.standard_normal((m, r)), random.standard_normal(m)
    u = random.uniform(0.2, 1.0, m)
    A = np.where(np.arange(m) % sums == np.arange(sums)[:, None], random.choice([-1.0, 1.0], m), 0.0)
    b = A @ (0.4 * u)
    a = box_programme(Rows(G, np.ones(m)), p, u, A, b)
    P = G @ G.T
    expected = qpsolvers.solve_qp(
        sparse.csc_matrix(P), p, A=sparse.csc_matrix(A), b=b, lb=np.zeros(m), ub=u, solver="clarabel"
    )
    assert expected is not None
    assert (a >= 0).all()
    assert (a <= u).all()
    assert_allclose(A @ a, b, atol=1e-6)

    def value(x):
        return 0.5 * x @ P @ x + p @ x

    assert_allclose(value(a), value(expected), rtol=1e-5)
    # Of those that the rank and the sums leave to no bound there are few.
    assert np.count_nonzero((a > 0) & (a < u)) <= 2 * (r + sums)


@pytest.mark.parametrize(("kernel", "rank"), [(Linear(), 5), (Polynomial(2, 0.5, 1.0), 21)])
def test_the_factor_has_the_rank_of_the_kernel(kernel: Kernel, rank: int) -> None:
    X = np.random.default_rng(0).standard_normal((80, 5))
    work = work_of(X, kernel)
    factor = LowRank(work, 1e-9)
    assert not factor.grow(rank - 3 if rank > 16 else 2) or factor.columns.shape[1] == rank
    assert factor.grow(rank)
    assert factor.columns.shape[1] == rank == rank_bound(work)
    assert_allclose(factor.columns @ factor.columns.T, kernel(X, X), atol=1e-10)


def test_a_factor_of_full_rank_is_not_complete() -> None:
    work = work_of(np.random.default_rng(0).standard_normal((80, 5)), RBF(1.0))
    assert not LowRank(work, 1e-9).grow(32)
    assert rank_bound(work) == np.inf


@pytest.mark.parametrize("C", [1e2, 1e4, 1e8])
@pytest.mark.parametrize("n", [700, 3500])
def test_noisy_linear_machines_end_soon_whatever_C(C: float, n: int) -> None:
    X, y = noisy(n)
    model = SVC(kernel="linear", C=C, max_iter=-1).fit(X, y)
    certificate = model.certificate_
    assert certificate.status == "converged"
    assert certificate.relative_gap < 1e-4
    assert certificate.iterations < 200_000  # pairs alone take millions
    # The objective of the primal problem, from the weights alone.
    w, b, s = model.coef_[0], model.intercept_[0], np.where(y == 1, 1.0, -1.0)
    primal = 0.5 * w @ w + C * np.maximum(0.0, 1 - s * (X @ w + b)).sum()
    assert_allclose(primal, certificate.primal, rtol=1e-5)
    assert primal <= certificate.dual * (1 + 1e-4)


def test_it_leads_where_steps_of_pairs_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy(600)
    t = X[:, 0] - 2 * X[:, 1] + np.random.default_rng(0).standard_normal(len(X))
    models = [
        SVC(kernel="linear", C=100.0, tol=1e-6, class_weight={0: 1.0, 1: 3.0}),
        SVC(kernel="poly", degree=2, C=100.0, tol=1e-6),
        NuSVC(kernel="linear", nu=0.6, tol=1e-8),
        SVR(kernel="linear", C=100.0, tol=1e-6),
        NuSVR(kernel="linear", C=100.0, tol=1e-6),
    ]
    for model in models:
        target = t if isinstance(model, SVR | NuSVR) else y
        found = {}
        for most in (0, 10**9):
            with monkeypatch.context() as patch:
                patch.setattr(_interior, "_STEPS_PER_SQUARE", 1e-3 if most else 1e18)
                found[most] = model.fit(X, target).certificate_
        assert {c.status for c in found.values()} == {"converged"}
        assert_allclose(found[0].primal, found[10**9].primal, rtol=2e-6)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_large_problems_of_low_rank_are_solved_at_once(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy(9600, 3)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = SVC(kernel=kernel, degree=2, C=1.0, tol=1e-5)
    certificate = model.fit(X, y, sample_weight=weights).certificate_
    assert certificate.iterations < 100
    monkeypatch.setattr(active_set, "_RANK", 0)
    expected = model.fit(X, y, sample_weight=weights).certificate_
    assert expected.iterations > 100
    assert_allclose(certificate.dual, expected.dual, rtol=1e-5)


def test_weights_that_cancel_are_no_reason_to_go_on() -> None:
    X, y = noisy(1000, 8)
    with pytest.warns(UserWarning, match="leaves no margin"):
        model = NuSVC(kernel="linear", nu=0.2).fit(X, y)
    assert model.certificate_.status == "inseparable"
    assert model.certificate_.iterations < 100_000


def test_steps_from_bound_to_bound_are_bounded(monkeypatch):
    """Of a thousand variables and columns each takes seconds, and there may be as many."""
    solved, shortest = [], _interior._shortest
    monkeypatch.setattr(_interior, "_shortest", lambda *given: solved.append(0) or shortest(*given))
    random = np.random.default_rng(0)
    work = work_of(random.standard_normal((200, 1)), RBF(5.0), random.choice([-1.0, 1.0], 200))
    factor = LowRank(work, 1e-6)
    assert factor.grow(200)
    for operations, few in ((1e10, False), (1.0, True)):
        monkeypatch.setattr(_interior, "_OPERATIONS", operations)
        solved.clear()
        work.alpha[:] = 0.5
        work.recompute("float64")
        assert _interior._settle(work, factor.columns, 1e-6)
        assert (len(solved) <= 2) == few


def test_a_factor_leaves_no_more_than_it_says_of_a_smooth_kernel() -> None:
    # Pivots that are small beside what others leave would spread their rounding errors.
    X = np.random.default_rng(0).standard_normal((1600, 2))
    kernel = RBF(0.5)
    factor = LowRank(work_of(X, kernel), 1e-18)
    assert factor.grow(400)
    assert np.abs(kernel(X, X) - factor.columns @ factor.columns.T).max() <= 1.1e-13


def test_a_factor_is_as_long_as_the_tolerance_asks() -> None:
    work = work_of(np.random.default_rng(0).standard_normal((300, 2)), RBF(0.5))
    coarse, fine = (LowRank(work, tol) for tol in (1e-3, 1e-9))
    assert coarse.grow(300)
    assert fine.grow(300)
    assert coarse.columns.shape[1] < fine.columns.shape[1]
    assert coarse.rest.max() <= 1e-4 / np.sqrt(300)


def test_the_system_of_a_late_step_keeps_its_digits() -> None:
    # Weights of free variables that are twelve decades beyond those of the others.
    random = np.random.default_rng(1)
    F, signs = random.standard_normal((60, 5)), np.repeat([1.0, -1.0], 60)
    G, theta = signs[:, None] * np.tile(F, (2, 1)), np.full(120, 1e3)
    theta[[3, 10, 40, 77]] = 1e-9
    A, r = random.standard_normal((1, 120)), random.standard_normal(120)
    system = _box_programme._System(Rows(F, signs), theta, A, lambda: False)
    assert system.sound
    assert system.few.tolist() == [3, 10, 40, 77]
    d, y = system.solve(r, np.array([0.5]))
    assert_allclose(theta * d + G @ (G.T @ d) - A.T @ y, r, atol=1e-9)
    assert_allclose(A @ d, 0.5, atol=1e-12)


def test_noise_at_a_huge_C_is_solved() -> None:
    random = np.random.default_rng(0)
    X, y = random.standard_normal((1400, 2)), random.integers(0, 2, 1400)
    certificate = SVC(C=1e8).fit(X, y).certificate_
    assert certificate.status == "converged"
    assert certificate.relative_gap < 1e-4
    assert 0 < certificate.iterations < 2_000_000


@pytest.mark.parametrize("when", [1, 3, 8])
def test_time_that_is_up_leaves_the_point_as_it_was(when: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy(300)
    work = work_of(X, RBF(0.2), np.where(y == 1, 1.0, -1.0))
    state = work.state("float64", tol=1e-3, max_steps=0, row_bytes=0.0)
    asked = []

    def expired() -> bool:
        asked.append(len(asked))
        return len(asked) >= when + 20  # within the factor, or the programme

    work.expired = expired
    assert not _interior.interior(work, state, 300)
    assert len(asked) >= when + 20
    assert not work.alpha.any()
    assert (work.linear == work.E).all()
    work.expired = lambda: False
    assert _interior.interior(work, state, 300)
    assert work.scores()[1] <= 1e-3


def test_max_time_ends_the_method_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock of the fit, which stands still until the method is at work.
    reached = []
    monkeypatch.setattr(_interior, "_STEPS_PER_SQUARE", 1e-9)
    steps, inner = _loop.Control.reason, _interior.box_programme

    def solve(*given):
        reached.append("programme")
        return inner(*given)

    monkeypatch.setattr(_interior, "box_programme", solve)
    monkeypatch.setattr(_loop.Control, "reason", lambda self: "max_time" if reached else steps(self))
    X, y = noisy(1600)
    with pytest.warns(ConvergenceWarning, match="max_time is over"):
        model = SVC(C=1e4, gamma=0.5, max_time=1e6).fit(X, y)
    assert reached == ["programme"]
    assert model.certificate_.status == "max_time"
    assert model.certificate_.gap >= 0
    assert model.predict(X).shape == y.shape


def test_a_minimum_of_zero_has_a_gap_but_none_relative_to_it() -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 3))
    model = OneClassSVM(kernel="linear", nu=0.5).fit(X)
    certificate = model.certificate_
    assert certificate.status == "converged"
    assert "the best weights are 0" in certificate.message
    assert certificate.relative_gap is None
    # What the gap is small beside: the squared length of the parts of w, which cancel.
    length = model.dual_coef_[0] @ np.linalg.norm(X[model.support_], axis=1)
    assert 0 <= certificate.gap < 1e-12 * length**2
