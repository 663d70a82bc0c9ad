"""Steps in rounds: regressions and nu-machines of many samples, against the conditions of optimality."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from separatrix import _hot
from separatrix.data.memory import view_of
from separatrix.data.threads import at_most
from separatrix.kernels import RBF, CallableKernel, Kernel, Linear, Polynomial, Sigmoid
from separatrix.solvers._dual import Work, run_loops
from separatrix.solvers._dual_problem import DualProblem, DualSolution
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.svm import nu_classification, nu_regression, regression

N, TOL = 2200, 1e-3
ROWS = np.arange(N)
random = np.random.default_rng(0)
FEW = random.standard_normal((N, 3))
WIDE = np.hstack([FEW, 0.05 * random.standard_normal((N, 150))])
TARGETS = np.sin(2 * FEW[:, 0]) + FEW[:, 1] * FEW[:, 2] + 0.2 * random.standard_normal(N)
SIGNS = np.where(TARGETS > 0.1, 1.0, -1.0)
KERNEL = RBF(0.3)


def nu_classes() -> DualProblem:
    return nu_classification(np.array([0, N]), ROWS, SIGNS, np.ones(N), 0.4)[0]


def unequal() -> DualProblem:
    """Different upper bounds, some of them 0."""
    return regression(ROWS, TARGETS, random.integers(0, 4, N).astype(float), 0.2)


def alike() -> DualProblem:
    """Most targets are the same, and the least: the worst violators of one side are all alike."""
    return regression(ROWS, np.where(TARGETS < 1.5, -1.0, TARGETS), np.full(N, 5.0), 0.1)


CASES: dict[str, tuple[np.ndarray, Kernel, DualProblem]] = {
    "regression": (FEW, KERNEL, regression(ROWS, TARGETS, np.full(N, 10.0), 0.1)),
    "a wide tube": (FEW, KERNEL, regression(ROWS, TARGETS, np.full(N, 10.0), 1.5)),
    "no tube": (FEW, KERNEL, regression(ROWS, TARGETS, np.full(N, 1.0), 0.0)),
    "many features": (WIDE, KERNEL, regression(ROWS, TARGETS, np.full(N, 3.0), 0.1)),
    "unequal": (FEW, KERNEL, unequal()),
    "alike": (FEW, KERNEL, alike()),
    "nu-regression": (FEW, KERNEL, nu_regression(ROWS, TARGETS, np.full(N, 5.0), 0.4)),
    "nu-classification": (FEW, KERNEL, nu_classes()),
}


def made(name: str, precision: str = "float32", row_bytes: float = 1e8, most_steps: int = -1):
    X, kernel, problem = CASES[name]
    matrix = KernelMatrix(kernel, view_of(X), cache_bytes=4e8)
    work = Work(matrix, problem, DualSolution(problem.start.copy(), problem.linear.copy()))
    if problem.start.any():
        work.recompute("float64")
    state = work.state(precision, tol=TOL, max_steps=most_steps, row_bytes=row_bytes)
    assert state.loop.in_rounds
    return work, state


def solved(name: str, **options):
    work, state = made(name, **options)
    while state.status == "running":
        run_loops([state.loop], 10.0)
    return work, state


def check(name: str, work: Work, alpha: np.ndarray, E: np.ndarray, tol: float = TOL) -> None:
    """The variables are feasible, E is theirs, and they meet the conditions of optimality."""
    X, kernel, problem = CASES[name]
    K, s = kernel(X, X), problem.signs
    work.read(alpha, E, 0.0)
    a = work.solution.alpha
    assert (a >= 0).all()
    assert (a <= problem.upper).all()
    weights = np.bincount(problem.rows, s * a, N)
    exact = (K @ weights)[problem.rows] + s * problem.linear
    groups = [s > 0, s < 0] if problem.separate else [s != 0]
    for group in groups:
        assert_allclose((s * a)[group].sum(), (s * problem.start)[group].sum(), atol=1e-8)
        up = group & np.where(s > 0, a < problem.upper, a > 0)
        low = group & np.where(s > 0, a > 0, a < problem.upper)
        assert exact[low].max() - exact[up].min() <= 1.05 * tol
    sums = K[np.ix_(work.points, work.points)] @ work.weights(alpha)
    assert_allclose(E, work.linear + np.tile(sums, work.copies), atol=1e-4)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_solutions_are_optimal(name, precision):
    work, state = solved(name, precision=precision)
    assert state.status == "converged"
    assert state.loop.violation <= TOL
    check(name, work, state.alpha, state.E)


def test_rows_that_are_no_longer_kept_are_computed_again():
    """Memory for little more than the rows of a round."""
    work, state = solved("regression", row_bytes=4.0 * 2208 * 2060)
    check("regression", work, state.alpha, state.E)
    assert state.loop.entries > 0


@pytest.mark.parametrize("name", ["regression", "many features", "nu-regression", "nu-classification"])
def test_threads_and_pauses_do_not_matter(name):
    found = []
    for threads, seconds in ((1, 10.0), (2, 10.0), (2, 1e-4)):
        _, state = made(name)
        with at_most(threads):
            while state.status == "running":
                run_loops([state.loop], seconds)
        found.append((state.alpha, state.E, state.loop.steps))
    for alpha, E, steps in found[1:]:
        assert steps == found[0][2]
        assert_array_equal(alpha, found[0][0])
        assert_array_equal(E, found[0][1])


def test_every_instruction_set():
    chosen = _hot.instruction_set()
    try:
        for name in _hot.instruction_sets():
            _hot.use_instruction_set(name)
            work, state = solved("unequal")
            check("unequal", work, state.alpha, state.E)
    finally:
        _hot.use_instruction_set(chosen)


def test_values_that_are_given():
    """All rows are there from the beginning."""
    X, kernel, problem = CASES["regression"]
    matrix = KernelMatrix(kernel, view_of(X), cache_bytes=4e8)
    work = Work(matrix, problem, DualSolution(problem.start.copy(), problem.linear.copy()))
    state = work.state("float64", values=kernel(X, X), tol=TOL, max_steps=-1, row_bytes=1e8)
    assert state.loop.in_rounds
    run_loops([state.loop], 60.0)
    check("regression", work, state.alpha, state.E)


@pytest.mark.parametrize(
    ("kernel", "definite"),
    [
        (Linear(), True),
        (Polynomial(3, 1.0, 0.5), True),
        (Polynomial(3, 1.0, -0.5), False),
        (Sigmoid(1.0, 0.0), False),
        (CallableKernel(lambda A, B: KERNEL(A, B)), False),
    ],
)
def test_kernels_that_may_be_indefinite_are_left_to_steps_among_all(kernel, definite):
    """Only these are sure to meet a direction of negative curvature, and so to call an optimum local."""
    matrix = KernelMatrix(kernel, view_of(FEW), cache_bytes=4e8)
    problem = CASES["regression"][2]
    work = Work(matrix, problem, DualSolution(problem.start.copy(), problem.linear.copy()))
    assert work.in_rounds == definite


def test_steps_are_counted():
    work, state = made("regression", most_steps=700)
    run_loops([state.loop], 60.0)
    assert state.status == "max_iter"
    assert state.loop.steps == 700
    check("regression", work, state.alpha, state.E, tol=np.inf)
    state.loop.most_steps = -1
    run_loops([state.loop], 60.0)
    assert state.status == "converged"
    check("regression", work, state.alpha, state.E)


def test_several_problems_in_rounds():
    """Threads that have no problem of their own help with those of others."""
    both = [made("regression"), made("nu-classification")]
    run_loops([state.loop for _, state in both], 60.0, threads=2)
    for name, (work, state) in zip(("regression", "nu-classification"), both, strict=True):
        check(name, work, state.alpha, state.E)
        assert_array_equal(state.alpha, solved(name)[1].alpha)
