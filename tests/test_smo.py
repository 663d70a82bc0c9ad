"""The dual problems of support vector machines: against quadratic programming, KKT and a slow SMO."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import qpsolvers
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from oracles import slow_smo
from separatrix import _hot
from separatrix.data.memory import view_of
from separatrix.data.threads import at_most
from separatrix.kernels import RBF, CallableKernel, Linear, Polynomial
from separatrix.solvers import _newton, small_problems, smo, svm
from separatrix.solvers._dual import Work
from separatrix.solvers._dual_problem import DualSolution
from separatrix.solvers._loop import Below, run
from separatrix.solvers.active_set import ActiveSet, at_bounds
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.machines import machine
from separatrix.solvers.smo import DualProblem, SequentialMinimal


def two_classes(n=120, d=3, seed=0, noise=0.4):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    signs = np.where(X[:, 0] * X[:, -1] + noise * random.standard_normal(n) > 0, 1.0, -1.0)
    return X, signs


def classification(signs, C, rows=None):
    m = signs.size
    rows = np.arange(m) if rows is None else rows
    return DualProblem(rows, signs, -np.ones(m), np.broadcast_to(C, m).astype(float), np.zeros(m))


def regression(y, C, epsilon=0.1):
    n = y.size
    rows, signs = np.tile(np.arange(n), 2), np.repeat([1.0, -1.0], n)
    linear = np.concatenate([epsilon - y, epsilon + y])
    return DualProblem(rows, signs, linear, np.full(2 * n, C), np.zeros(2 * n))


def one_class(n, nu):
    start = np.clip(nu * n - np.arange(n), 0.0, 1.0)
    return DualProblem(np.arange(n), np.ones(n), np.zeros(n), np.ones(n), start)


def nu_classification(signs, nu):
    m, start = signs.size, np.zeros(signs.size)
    for sign in (1, -1):
        mine = np.flatnonzero(signs == sign)
        start[mine] = np.clip(nu * m / 2 - np.arange(mine.size), 0.0, 1.0)
    return DualProblem(np.arange(m), signs, np.zeros(m), np.ones(m), start, separate=True)


def nu_regression(y, C, nu):
    n = y.size
    start = np.tile(np.clip(nu * n / 2 - np.arange(n), 0.0, 1.0) * C, 2)
    rows, signs = np.tile(np.arange(n), 2), np.repeat([1.0, -1.0], n)
    return DualProblem(rows, signs, np.concatenate([-y, y]), np.full(2 * n, C), start, separate=True)


def solve(
    kernel,
    X,
    *problems,
    tol=1e-8,
    cache_bytes=1e8,
    precision=None,
    max_time=None,
    max_iter=10**6,
    **settings,
):
    matrix = KernelMatrix(kernel, view_of(X), cache_bytes=cache_bytes, precision=precision)
    solver = SequentialMinimal(matrix, problems, tol=tol, **settings)
    outcome = run(solver, Below(tol), max_iter=max_iter, max_time=max_time)
    return solver, outcome


def hessian(kernel, X, problem):
    K = np.asarray(kernel(X), dtype=np.float64)[np.ix_(problem.rows, problem.rows)]
    return problem.signs[:, None] * K * problem.signs


def check(kernel, X, problem, solution, tol, status="converged"):
    """Feasible, its gradient right, the violation what it says; return the objective."""
    Q, a, s = hessian(kernel, X, problem), solution.alpha, problem.signs
    assert solution.status == status
    assert (a >= 0).all()
    assert (a <= problem.upper).all()
    size = max(1.0, float(np.abs(a).sum()))
    assert abs(s @ a - s @ problem.start) <= 1e-12 * size
    if problem.separate:
        assert abs(a.sum() - problem.start.sum()) <= 1e-12 * size
    gradient = Q @ a + problem.linear
    scale = max(1.0, float(np.abs(np.diagonal(Q)).max())) * size
    known = slice(None) if solution.known is None else solution.known
    assert_allclose(solution.gradient[known], gradient[known], rtol=0, atol=max(0.3 * tol, 1e-13 * scale))
    E, worst = s * gradient, 0.0
    up, low = np.where(s > 0, a < problem.upper, a > 0), np.where(s > 0, a > 0, a < problem.upper)
    for group in (s > 0, s < 0) if problem.separate else (s != 0,):
        if (up & group).any() and (low & group).any():
            worst = max(worst, float(E[low & group].max() - E[up & group].min()))
    if status == "converged":
        assert worst <= 1.6 * tol
        assert solution.violation <= tol
    return float(0.5 * a @ Q @ a + problem.linear @ a)


def by_quadratic_programming(kernel, X, problem):
    Q, m = hessian(kernel, X, problem), problem.signs.size
    A, b = problem.signs[None, :], np.array([problem.signs @ problem.start])
    if problem.separate:
        A, b = np.vstack([A, np.ones(m)]), np.append(b, problem.start.sum())
    P, A = sparse.csc_matrix(Q + 1e-13 * np.eye(m)), sparse.csc_matrix(A)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*AlmostSolved")
        # An interior point that is almost at the tolerance asked for is near enough for the ones below.
        programme = qpsolvers.Problem(P, problem.linear, A=A, b=b, lb=np.zeros(m), ub=problem.upper)
        options = dict(tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        a = qpsolvers.solve_problem(programme, solver="clarabel", **options).x
    return float(0.5 * a @ Q @ a + problem.linear @ a)


X, SIGNS = two_classes()
Y = X[:, 0] + np.sin(2 * X[:, 1])
WEIGHTS = np.random.default_rng(3).uniform(0.1, 5.0, SIGNS.size)
PROBLEMS = {
    "C=0.1": classification(SIGNS, 0.1),
    "C=1": classification(SIGNS, 1.0),
    "C=100": classification(SIGNS, 100.0),
    "weights": classification(SIGNS, WEIGHTS),
    "some without weight": classification(SIGNS, np.where(np.arange(SIGNS.size) % 3, WEIGHTS, 0.0)),
    "unbalanced": classification(np.where(X[:, 0] > 1.5, 1.0, -1.0), 10.0),
    "regression": regression(Y, 1.0),
    "regression, C=50": regression(Y, 50.0),
    "one class": one_class(SIGNS.size, 0.3),
    "nu": nu_classification(SIGNS, 0.4),
    "nu regression": nu_regression(Y, 1.0, 0.5),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("kernel", [RBF(0.5), Linear(), Polynomial(2, 0.5, 1.0)], ids=repr)
def test_against_quadratic_programming(kernel, name):
    problem = PROBLEMS[name]
    solver, outcome = solve(kernel, X, problem)
    assert outcome.status == "converged"
    value = check(kernel, X, problem, solver.solutions[0], 1e-8)
    exact = by_quadratic_programming(kernel, X, problem)
    assert value <= exact + 1e-7 * max(1.0, abs(exact))
    assert outcome.history[-1]["dual"] == pytest.approx(-value, rel=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_active_sets(name, precision):
    """The same problems with a part of the variables at a time, from a sample or not."""
    kernel, problem = RBF(0.5), PROBLEMS[name]
    solver, _ = solve(kernel, X, problem, precision=precision, tol=1e-6, direct=20, active=24)
    value = check(kernel, X, problem, solver.solutions[0], 1e-6)
    exact = by_quadratic_programming(kernel, X, problem)
    assert value == pytest.approx(exact, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", PROBLEMS)
def test_single_precision_rows(name):
    """Rows in float32 lead to the tolerance all the same: the gradient is computed anew in double."""
    kernel, problem = RBF(0.5), PROBLEMS[name]
    solver, _ = solve(kernel, X, problem, precision="float32", tol=1e-7)
    value = check(kernel, X, problem, solver.solutions[0], 1e-7)
    assert value == pytest.approx(by_quadratic_programming(kernel, X, problem), rel=1e-6, abs=1e-6)


def test_steps_are_those_of_the_oracle():
    """Until rounding makes a difference, pair by pair, on every instruction set."""
    chosen = _hot.instruction_set()
    for problem in PROBLEMS.values():
        alpha, steps = slow_smo(RBF(0.5)(X), problem, tol=1e-2, max_steps=30)
        for name in _hot.instruction_sets():
            _hot.use_instruction_set(name)
            solver, _ = solve(RBF(0.5), X, problem, tol=1e-2, max_steps=30)
            assert solver.solutions[0].steps == steps
            assert_allclose(solver.solutions[0].alpha, alpha, atol=1e-9)
    _hot.use_instruction_set(chosen)


@pytest.mark.parametrize("direct", [20, 6000])
def test_layouts_and_threads_do_not_matter(direct):
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, X.shape[0])
    problems = []
    for a in range(4):
        for b in range(a + 1, 4):
            rows = np.flatnonzero((labels == a) | (labels == b))
            problems.append(classification(np.where(labels[rows] == a, 1.0, -1.0), 5.0, rows))
    found = []
    for data in (X, np.asfortranarray(X), sparse.csr_array(X)):
        for threads in (1, 2):
            with at_most(threads):
                solver, _ = solve(RBF(0.5), data, *problems, tol=1e-4, direct=direct, active=24)
            found.append(np.concatenate([s.alpha for s in solver.solutions]))
    assert_array_equal(found[0], found[1])
    for problem, solution in zip(problems, solver.solutions, strict=True):
        check(RBF(0.5), X, problem, solution, 1e-4)
    for other in found[2:]:
        assert_allclose(other, found[0], atol=0.2)


def loop_on(work, memory=None, tol=1e-3, **settings):
    """One loop over all points in single precision, from zero; return its state once it has converged."""
    work.alpha[:], work.E[:] = 0.0, work.linear
    state = work.state("float32", tol=tol, max_steps=-1, row_bytes=1e8, **settings)
    if memory is not None:
        again = {**state.kept, "memory": memory}
        state.loop = _hot.SmoFloat32(alpha=state.alpha, E=state.E, **again)
    _hot.run_smo([state.loop], 60.0)
    assert state.status == "converged"
    return state


def work_of(X, problem):
    matrix = KernelMatrix(RBF(0.5), view_of(X), cache_bytes=1e8)
    return Work(matrix, problem, DualSolution(problem.start.copy(), problem.linear.copy()))


@pytest.mark.parametrize("name", ["C=100", "regression", "weights"])
def test_rows_given_and_rows_asked_for_are_alike(name):
    """Some rows computed before, all, or none: the same steps to the bit."""
    work, everyone, found = work_of(X, PROBLEMS[name]), np.arange(X.shape[0]), []
    values = work.matrix.block(everyone, everyone, "float32")
    for some in (None, everyone[::3].copy(), everyone):
        rows = {} if some is None else {"values": values[some].copy(), "given": some}
        state = loop_on(work, points=everyone, **rows)
        found.append((state.alpha.copy(), state.loop.steps))
    for alpha, steps in found[1:]:
        assert_array_equal(alpha, found[0][0])
        assert steps == found[0][1] > 0


def test_row_memory_is_handed_on():
    """A problem that finds the rows of another in its memory is solved as if there were none."""
    memory, found = _hot.RowMemory(), []
    for shared in (None, memory, memory):
        for n, C in ((120, 100.0), (80, 10.0), (300, 1.0)):
            samples, signs = two_classes(n, seed=n)
            state = loop_on(work_of(samples, classification(signs, C)), shared)
            found.append(state.alpha.copy())
    for k in range(3):
        assert_array_equal(found[3 + k], found[k])
        assert_array_equal(found[6 + k], found[k])


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_steps_in_single_precision_drift_no_further_than_said(C):
    samples, signs = two_classes(400, seed=5)
    work = work_of(samples, classification(signs, C))
    state = loop_on(work, tol=1e-5)
    exact = work.linear + np.asarray(RBF(0.5)(samples)) @ (signs * state.alpha)
    error = np.abs(state.E - exact).max()
    assert 0 < error <= 4 * (state.drift() + work.error("float32"))
    state.exact_at = state.loop.steps
    assert state.drift() == 0.0


def test_the_same_points_go_on_near_the_solution(monkeypatch):
    """Rounds that need no other points keep their kernel rows, and the solution is the same optimum."""
    samples, signs = two_classes(600, seed=1)
    problem, made = classification(signs, 10.0), []
    renew = ActiveSet._renew
    monkeypatch.setattr(ActiveSet, "_renew", lambda self, *of: (made.append(of[0].size), renew(self, *of)))
    solver, outcome = solve(RBF(0.5), samples, problem, precision="float32", tol=1e-7, direct=20, active=200)
    value = check(RBF(0.5), samples, problem, solver.solutions[0], 1e-7)
    assert value == pytest.approx(by_quadratic_programming(RBF(0.5), samples, problem), rel=1e-6)
    assert 0 < len(made) < outcome.iterations


def test_little_memory():
    """Rows that do not fit are computed again: the same solution to the bit."""
    problem = PROBLEMS["C=100"]
    rich, _ = solve(RBF(0.5), X, problem, tol=1e-4)
    poor, _ = solve(RBF(0.5), X, problem, tol=1e-4, cache_bytes=8 * 120 * 10)
    assert_allclose(poor.solutions[0].alpha, rich.solutions[0].alpha, atol=1e-9)
    assert poor.matrix.entries > rich.matrix.entries


def test_other_kernels():
    kernel = CallableKernel(lambda A, B: np.exp(-np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2)))
    for direct in (20, 6000):
        solver, _ = solve(kernel, X, PROBLEMS["C=1"], tol=1e-6, direct=direct, active=24)
        check(kernel, X, PROBLEMS["C=1"], solver.solutions[0], 1e-6)


def test_values_far_from_one():
    """Samples far from the origin: inner products of 1e8 whose differences matter."""
    far = X * [1.0, 30.0, 1.0] + 1e4
    solver, _ = solve(Linear(), np.tile(far, (6, 1)), classification(np.tile(SIGNS, 6), 1e-3), tol=1e-3)
    solution = solver.solutions[0]
    assert solver.precision == "float64"
    assert solution.status == "converged"


def test_hard_margin():
    separable = np.where(X[:, 0] > 0, 1.0, -1.0)
    apart = X + separable[:, None] * [0.5, 0.0, 0.0]
    for direct in (20, 6000):
        problem = classification(separable, np.inf)
        solver, _ = solve(Linear(), apart, problem, tol=1e-6, direct=direct, active=60)
        value = check(Linear(), apart, problem, solver.solutions[0], 1e-6)
        assert value == pytest.approx(by_quadratic_programming(Linear(), apart, problem), rel=1e-6)


@pytest.mark.parametrize("direct", [20, 6000])
def test_inseparable_without_bound(direct):
    """Points of both classes in one place: the dual grows for ever, and that is said."""
    both = X.copy()
    both[1] = both[0]
    signs = SIGNS.copy()
    signs[:2] = 1, -1
    solver, outcome = solve(RBF(0.5), both, classification(signs, np.inf), direct=direct, active=24)
    solution = solver.solutions[0]
    assert solution.status == outcome.status == "unbounded"
    assert np.isfinite(solution.alpha).all()
    assert (solution.alpha >= 0).all()


def test_equal_samples_of_both_classes():
    both, signs = np.repeat(X[:40], 2, axis=0), np.tile([1.0, -1.0], 40)
    for direct in (10, 6000):
        solver, _ = solve(RBF(0.5), both, classification(signs, 1e6), direct=direct, active=24, tol=1e-3)
        assert_allclose(solver.solutions[0].alpha, 1e6)


def test_indefinite_kernel_ends():
    kernel = CallableKernel(lambda A, B: np.tanh(2.0 * A @ B.T - 1.0))
    for direct in (20, 6000):
        solver, _ = solve(kernel, X, PROBLEMS["C=100"], tol=1e-3, direct=direct, active=60, max_steps=3000)
        solution = solver.solutions[0]
        assert solution.status in ("nonconvex", "max_iter")
        assert (solution.alpha >= 0).all()
        assert (solution.alpha <= 100).all()


def test_max_steps_and_time():
    solver, outcome = solve(RBF(0.5), X, PROBLEMS["C=100"], max_steps=7)
    assert outcome.status == "max_iter"
    assert solver.solutions[0].steps == 7
    check(RBF(0.5), X, PROBLEMS["C=100"], solver.solutions[0], 1e-8, status="max_iter")
    for direct in (20, 6000):
        limits = dict(tol=1e-14, max_time=0.0, direct=direct, active=24)
        solver, outcome = solve(RBF(0.5), X, PROBLEMS["C=100"], **limits)
        assert outcome.status in ("max_time", "converged")
        assert (solver.solutions[0].alpha <= 100).all()


@pytest.mark.parametrize("kernel", [RBF(0.5), Linear(), Polynomial(3, 0.5, 1.0)], ids=repr)
@pytest.mark.parametrize("direct", [20, 6000])
def test_tight_tolerance_means_a_small_gap(kernel, direct):
    problem = classification(SIGNS, 1000.0)
    solver, _ = solve(kernel, X, problem, tol=1e-6, direct=direct, active=60)
    solution = solver.solutions[0]
    check(kernel, X, problem, solution, 1e-6)
    E, a = SIGNS * solution.gradient, solution.alpha
    free = (a > 0) & (a < 1000)
    f = SIGNS * (solution.gradient + 1) - E[free].mean()
    primal = 0.5 * a @ (solution.gradient + 1) + 1000 * np.maximum(0, 1 - SIGNS * f).sum()
    dual = a.sum() - 0.5 * a @ (solution.gradient + 1)
    assert -1e-9 <= (primal - dual) / primal <= 1e-6


@settings(max_examples=60)
@given(n=st.integers(2, 40), seed=st.integers(0, 10**6), rank=st.integers(1, 50), few=st.booleans())
def test_newton_step(n, seed, rank, few):
    """It never increases the objective, and keeps the box and the sums, for singular matrices too."""
    random = np.random.default_rng(seed)
    A = random.normal(size=(n, rank))
    K, E = A @ A.T, random.normal(size=n)
    low, high = -random.random(n), random.random(n)
    value = low + (high - low) * random.uniform(0.01, 0.99, n)
    groups = np.array([np.arange(n) % 2 == 0, np.arange(n) % 2 == 1])[: 1 + n % 2]
    step = _newton._from_bound_to_bound if few else _newton._clipped
    after = step(K, E, value, low, high, groups)
    if after is None:
        assert not few or n < 4 or len(groups) == 2
        return
    assert (after >= low - 1e-12).all()
    assert (after <= high + 1e-12).all()
    change = after - value
    assert_allclose(groups @ change, 0, atol=1e-9)
    assert E @ change + 0.5 * change @ K @ change <= 1e-9


@pytest.mark.parametrize("name", ["C=100", "regression", "nu"])
@pytest.mark.parametrize("max_iter", [1, 2, 3, 5, 8])
def test_stopped_at_any_time(name, max_iter, monkeypatch):
    """Feasible, and the gradient belongs to the variables."""
    monkeypatch.setattr(smo, "_SLICE", 0.0)
    for direct in (20, 6000):
        solver, _ = solve(RBF(0.5), X, PROBLEMS[name], direct=direct, active=24, max_iter=max_iter)
        solution = solver.solutions[0]
        check(RBF(0.5), X, PROBLEMS[name], solution, 1e-8, status=solution.status)


@pytest.mark.parametrize("direct", [20, 6000])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.8])
def test_one_variable_per_sample_of_a_regression(epsilon, direct, monkeypatch):
    """``β = a − a*`` instead of both: the same optimum, where weights differ, too."""
    problem = regression(Y, 1.0, epsilon)
    problem = replace(problem, upper=np.tile(WEIGHTS, 2))
    one, _ = solve(RBF(0.5), X, problem, direct=direct, active=24)
    alpha = one.solutions[0].alpha.reshape(2, -1)
    assert (alpha.min(axis=0) == 0).all()
    assert work_of(X, problem).alpha.size == Y.size
    monkeypatch.setattr(Work, "_mirrored", lambda self: False)
    two, _ = solve(RBF(0.5), X, problem, direct=direct, active=24)
    assert work_of(X, problem).alpha.size == 2 * Y.size
    found = [check(RBF(0.5), X, problem, solver.solutions[0], 1e-8) for solver in (one, two)]
    assert_allclose(found[0], found[1], rtol=1e-7)


def test_only_mirror_images_become_one_variable():
    """Bounds that differ between the two variables of a sample, or a negative price, need both."""
    problem = regression(Y, 1.0)
    wider = replace(problem, upper=np.repeat([1.0, 2.0], Y.size))
    negative = regression(Y, 1.0, -0.1)
    for other in (wider, negative):
        assert work_of(X, other).price is None
        solver, _ = solve(RBF(0.5), X, other, tol=1e-6)
        found = check(RBF(0.5), X, other, solver.solutions[0], 1e-6)
        assert_allclose(found, by_quadratic_programming(RBF(0.5), X, other), rtol=1e-5)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_all_points_become_active_where_most_are_free(tol, monkeypatch):
    problem, sizes, renew = regression(Y, 1000.0, 0.01), [], ActiveSet._renew

    def spy(self, points, score):
        sizes.append(points.size)
        renew(self, points, score)

    monkeypatch.setattr(ActiveSet, "_renew", spy)
    for precision in ("float32", "float64"):
        solver, _ = solve(RBF(2.0), X, problem, tol=tol, direct=20, active=24, precision=precision)
        check(RBF(2.0), X, problem, solver.solutions[0], tol)
    assert sizes[0] < X.shape[0]
    assert X.shape[0] in sizes


def test_warm_start():
    problem = PROBLEMS["C=100"]
    cold, _ = solve(RBF(0.5), X, problem, tol=1e-6)
    again = DualProblem(problem.rows, problem.signs, problem.linear, problem.upper, cold.solutions[0].alpha)
    warm, _ = solve(RBF(0.5), X, again, tol=1e-6)
    assert warm.solutions[0].steps == 0
    assert_array_equal(warm.solutions[0].alpha, cold.solutions[0].alpha)


@settings(max_examples=40)
@given(
    n=st.integers(2, 40),
    seed=st.integers(0, 10**6),
    C=st.floats(1e-3, 1e3),
    separate=st.booleans(),
    direct=st.sampled_from([4, 1000]),
)
def test_always_feasible(n, seed, C, separate, direct):
    random = np.random.default_rng(seed)
    X = np.round(random.normal(size=(n, 2)), 1)
    signs = np.where(random.random(n) < 0.5, 1.0, -1.0)
    upper = C * random.integers(0, 3, n)
    start = np.zeros(n)
    if separate:
        start = upper * random.random(n)
    problem = DualProblem(np.arange(n), signs, -np.ones(n), upper, start, separate=separate)
    solver, _ = solve(RBF(1.0), X, problem, tol=1e-6, direct=direct, active=4)
    check(RBF(1.0), X, problem, solver.solutions[0], 1e-6 * max(1.0, C))


@given(
    n=st.integers(1, 30),
    seed=st.integers(0, 10**6),
    ramp=st.floats(1e-6, 1.0),
)
def test_at_bounds_keeps_the_sum(n, seed, ramp):
    random = np.random.default_rng(seed)
    signs, score = np.where(random.random(n) < 0.5, 1.0, -1.0), random.normal(size=n)
    upper = random.uniform(0, 2, n)
    total = float(signs @ (upper * random.random(n)))
    alpha = at_bounds(signs, score, upper, total, ramp)
    assert abs(signs @ alpha - total) < 1e-12
    assert (alpha >= 0).all()
    assert (alpha <= upper).all()


@pytest.mark.parametrize("name", ["C=100", "regression"])
@pytest.mark.parametrize("spare", [0.0, 1e8])
def test_what_a_change_adds_is_summed_with_rows_kept_or_not(name, spare):
    work = work_of(X, PROBLEMS[name])
    work.matrix.memory.spare = spare
    state = loop_on(work)
    points, change = np.array([3, 17, 100]), np.array([0.5, -2.0, 1.0])
    values = work.matrix.block(points, np.arange(X.shape[0]), "float32").astype(np.float64)
    expected = np.tile(change[0] * values[0] + change[1] * values[1] + change[2] * values[2], work.copies)
    assert_array_equal(state.product(points, change), expected)


def test_the_gradient_is_retraced_from_where_it_was_exact():
    work = work_of(X, PROBLEMS["C=100"])
    state = loop_on(work)
    work.recompute("float64")
    before = work.error("float32")
    assert before == 0.0
    i, j = np.flatnonzero((work.alpha > 1e-3) & (work.alpha < 99.0) & (SIGNS > 0))[:2]
    work.alpha[i] += 1e-4
    work.alpha[j] -= 1e-4
    assert 0.0 < work.error("float32") < 1e-10
    work.E += 1.0
    work.retrace(state)
    exact = work.linear + np.asarray(RBF(0.5)(X)) @ (SIGNS * work.alpha)
    assert_allclose(work.E, exact, rtol=0, atol=1e-10)


@pytest.mark.parametrize("cheap", [0.0, np.inf])
def test_a_wide_gap_asks_for_more_steps(monkeypatch, cheap):
    """With a large C a small violation leaves a wide gap; steps of pairs or of free variables close it."""
    monkeypatch.setattr(smo, "_CHEAP", cheap)
    monkeypatch.setattr(smo, "_WHOLE", 0)
    samples, signs = two_classes(600, d=6, noise=0.0)
    problem = classification(signs, 1e4)
    wide, _ = solve(RBF(0.1), samples, problem, tol=1e-2, precision="float32")
    narrow, _ = solve(RBF(0.1), samples, problem, tol=1e-2, precision="float32", gap=1e-3)
    gaps = []
    for solver in (wide, narrow):
        check(RBF(0.1), samples, problem, solver.solutions[0], 1e-2)
        work = Work(solver.matrix, problem, solver.solutions[0])
        work.recompute("float64")
        gaps.append(work.relative_gap())
    assert gaps[0] > 1e-2
    assert gaps[1] <= 1.2e-3


@pytest.mark.parametrize("slices", [0.05, 0.0])
@pytest.mark.parametrize("kind", ["classification", "regression", "nu"])
def test_hard_problems_go_on_with_all_kernel_values(kind, slices, monkeypatch):
    """Steps of pairs take long here; those of free variables end at the solution, in slices or at once."""
    samples, signs = two_classes(520, d=4, noise=0.3)
    for name, value in (("_LEAST_QUOTA", 100), ("_QUOTA", 1), ("_WHOLE_QUOTAS", 1000)):
        monkeypatch.setattr(smo, name, value)
    monkeypatch.setattr(small_problems, "_SLICE", slices)
    targets = np.sin(samples[:, 0]) + 0.5 * samples[:, 1] * samples[:, 3] + 0.3 * signs
    upper = np.full(520, 10.0)
    problem = {
        "classification": lambda: classification(signs, 100.0),
        "regression": lambda: svm.regression(np.arange(520), targets, upper, 0.1),
        "nu": lambda: svm.nu_regression(np.arange(520), targets, upper, 0.3),
    }[kind]()
    solver, _ = solve(RBF(0.5), samples, problem, tol=1e-3)
    solution = solver.solutions[0]
    check(RBF(0.5), samples, problem, solution, 1e-3)
    assert machine(problem, solution, solver.matrix).relative_gap <= 1e-6


def test_steps_with_all_kernel_values_stay_counted(monkeypatch):
    """They are part of what the problem took, whoever ends it."""
    samples, signs = two_classes(520, d=4, noise=0.3)
    for name, value in (("_LEAST_QUOTA", 100), ("_QUOTA", 1), ("_WHOLE_QUOTAS", 2)):
        monkeypatch.setattr(smo, name, value)
    taken, advance = [], small_problems.SmallProblems.advance

    def counted(problems, *given):
        done = advance(problems, *given)
        if done:
            taken.append(int(problems.solutions.steps[0]))
        return done

    monkeypatch.setattr(small_problems.SmallProblems, "advance", counted)
    loops, make = [], Work.state

    def kept(work, *given, **named):
        loops.append(make(work, *given, **named))
        return loops[-1]

    monkeypatch.setattr(Work, "state", kept)
    problem = classification(signs, 100.0)
    solver, _ = solve(RBF(0.5), samples, problem, tol=1e-3)
    check(RBF(0.5), samples, problem, solver.solutions[0], 1e-3)
    assert len(taken) >= 1
    assert taken[0] > 0
    assert solver.solutions[0].steps == sum(taken) + sum(state.loop.steps for state in loops)


@pytest.mark.parametrize(("trace", "vanishes"), [(0.0, True), (1e-29, True), (1e-3, False)])
def test_fixed_sums_of_samples_at_the_origin_vanish(trace, vanishes):
    """They have no length that traces of others could be compared with."""
    signs = np.repeat([1.0, -1.0], 4)
    samples = np.array([0.0, 0.0, 1.0, 2.0, 0.0, 0.0, -1.0, -3.0])[:, None]
    alpha = np.array([0.5 - trace, 0.5, trace, 0.0, 0.5 - trace, 0.5, trace, 0.0])
    problem = replace(nu_classification(signs, 0.25), start=alpha)
    solution = DualSolution(alpha, hessian(Linear(), samples, problem) @ alpha, 0.0)
    matrix = KernelMatrix(Linear(), view_of(samples), cache_bytes=1e6)
    assert Work(matrix, problem, solution).vanishes() == vanishes
    found = machine(problem, solution, matrix)
    assert found.vanishes == vanishes
    assert not found.indefinite


def gap_by_formula(middle, signs, upper, price, linear, alpha, E):
    """Gap, objective and bounds of free variables, with one variable for each sign of a priced one."""
    free = (alpha != 0) & (np.abs(alpha) < upper)
    objective = 0.5 * alpha @ (signs * (E + linear)) + (0.0 if price is None else price @ np.abs(alpha))
    freedom = upper[free & np.isfinite(upper)].sum()
    group = np.arange(alpha.size) < middle
    if price is not None:
        alpha = np.concatenate([np.maximum(alpha, 0), np.maximum(-alpha, 0)])
        E, upper, group = np.concatenate([E + price, E - price]), np.tile(upper, 2), np.tile(group, 2)
        signs = np.repeat([1.0, -1.0], price.size)
    gap = 0.0
    for own in (group, ~group):
        a, u, s, e = alpha[own], upper[own], signs[own], E[own]
        between = (a > 0) & (a < u)
        if between.any():
            level = e[between].mean()
        else:
            ends = [e[np.where(s > 0, a < u, a > 0)].min(initial=np.inf)]
            ends.append(e[np.where(s > 0, a > 0, a < u)].max(initial=-np.inf))
            finite = [end for end in ends if np.isfinite(end)]
            level = np.mean(finite) if finite else 0.0
        v, room = s * (e - level), np.where(np.isinf(u), a, u - a)
        gap += (a * np.maximum(v, 0) + room * np.maximum(-v, 0)).sum()
    return gap, objective, freedom


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("kind", ["one sum", "two sums", "priced", "unbounded"])
def test_gap_of_a_dual_point(kind, free):
    random = np.random.default_rng(3)
    n = 23
    signs, upper = random.choice([-1.0, 1.0], n), random.uniform(0.5, 2.0, n)
    alpha = upper * random.choice([0.0, 0.3, 1.0] if free else [0.0, 1.0], n)
    E, linear, price, middle = random.standard_normal(n), random.standard_normal(n), None, n
    if kind == "two sums":
        middle = 9
        signs = np.where(np.arange(n) < middle, 1.0, -1.0)
    elif kind == "priced":
        signs, price = np.ones(n), random.uniform(0, 0.5, n)
        alpha *= random.choice([-1.0, 1.0], n)
    elif kind == "unbounded":
        upper = np.full(n, np.inf)
    point = middle, signs, upper, price, linear, alpha, E
    assert_allclose(_hot.dual_gap(*point), gap_by_formula(*point), rtol=1e-12)
