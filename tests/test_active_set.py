"""Proofs of large machines: E computed in double near the margin, where violation and gap hang on it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from separatrix.data.memory import view_of
from separatrix.kernels import RBF, Laplacian
from separatrix.solvers import active_set
from separatrix.solvers._dual import Work
from separatrix.solvers._dual_problem import DualProblem, DualSolution
from separatrix.solvers._loop import Below, run
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.smo import SequentialMinimal
from separatrix.solvers.svm import nu_regression, regression

KERNEL = RBF(0.5)


def two_classes(n, C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    signs = np.where(X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, DualProblem(np.arange(n), signs, np.full(n, -1.0), np.full(n, C), np.zeros(n))


def solve(X, problem, tol):
    matrix = KernelMatrix(KERNEL, view_of(X), cache_bytes=1e8, precision="float32")
    solver = SequentialMinimal(matrix, [problem], tol=tol, direct=20, active=200)
    run(solver, Below(tol), max_iter=10**6)
    return solver.solutions[0]


def exact_gradient(X, problem, alpha):
    K = np.asarray(KERNEL(X))[np.ix_(problem.rows, problem.rows)]
    return problem.signs * (K @ (problem.signs * alpha)) + problem.linear


def exact_violation(problem, a, gradient):
    E, s, u = problem.signs * gradient, problem.signs, problem.upper
    up, low = np.where(s > 0, a < u, a > 0), np.where(s > 0, a > 0, a < u)
    return float(E[low].max() - E[up].min())


@pytest.mark.parametrize("C", [0.3, 1.0, 3.0, 10.0])
def test_violation_that_is_told_counts_rounding_errors_that_stay(C):
    """Errors of less than a tenth of the tolerance are not worth double precision, but the worst add up."""
    X, problem = two_classes(1500, C)
    matrix = KernelMatrix(KERNEL, view_of(X), cache_bytes=1e8, precision="float32")
    error = matrix.error("float32") * float(np.linalg.norm(solve(X, problem, 1e-3).alpha))
    tol = error / 0.095
    found = solve(X, problem, tol)
    violation = exact_violation(problem, found.alpha, exact_gradient(X, problem, found.alpha))
    assert found.status == "converged"
    assert violation <= found.violation <= tol


@pytest.mark.parametrize("C", [0.3, 1.0, 3.0, 10.0])
def test_violation_is_true_at_the_tolerance_of_single_precision(C, monkeypatch):
    """Rounding errors of a tenth to a quarter of the tolerance: what is told is proven near the margin."""
    X, problem = two_classes(1500, C)
    sharpened = []
    sharpen = Work.sharpen
    monkeypatch.setattr(Work, "sharpen", lambda self, width: (sharpened.append(width), sharpen(self, width)))
    matrix = KernelMatrix(KERNEL, view_of(X), cache_bytes=1e8, precision="float32")
    loose = solve(X, problem, 1e-3)
    error = matrix.error("float32") * float(np.linalg.norm(loose.alpha))
    tol = error / 0.17
    found = solve(X, problem, tol)
    gradient = exact_gradient(X, problem, found.alpha)
    violation = exact_violation(problem, found.alpha, gradient)
    assert found.status == "converged"
    assert sharpened
    assert violation <= tol
    assert found.violation == pytest.approx(violation, abs=0.02 * tol)
    assert np.abs(found.gradient - gradient).max() <= tol


def test_wide_gap_of_a_kernel_without_compiled_loops(monkeypatch):
    """Its free variables take their last step, too, though no packed samples are at hand."""
    X, problem = two_classes(600, 1e4)
    polished, polish = [], active_set.newton
    monkeypatch.setattr(active_set, "newton", lambda *a, **k: polished.append(k) or polish(*a, **k))
    matrix = KernelMatrix(Laplacian(0.5), view_of(X), cache_bytes=1e8)
    solver = SequentialMinimal(matrix, [problem], tol=1e-2, gap=1e-9, direct=20, active=200)
    run(solver, Below(1e-2), max_iter=10**6)
    found = solver.solutions[0]
    assert {"whatever_it_costs": True, "exact": True} in polished
    assert Work(matrix, problem, found).relative_gap() <= 1e-9


@pytest.mark.parametrize("make", [regression, nu_regression])
def test_sharpen_twofold_variables(make):
    """A regression's variables share points: E of both is computed anew, of those near the margin alone."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    problem = make(np.arange(200), np.sin(X[:, 0]), np.full(200, 2.0), 0.1)
    matrix = KernelMatrix(KERNEL, view_of(X), cache_bytes=1e8)
    alpha = np.where(rng.random(400) < 0.5, 0.0, np.where(rng.random(400) < 0.5, 2.0, 1.0))
    alpha[:200] *= alpha[200:] == 0  # never both of one point
    gradient = exact_gradient(X, problem, alpha)
    work = Work(matrix, problem, DualSolution(alpha, gradient + 1e-3 * rng.normal(size=400)))
    before = work.E.copy()
    near = work.scores()[0] > -0.05
    assert 0 < near.sum() < near.size
    work.sharpen(0.05)
    exact = Work(matrix, problem, DualSolution(alpha, gradient)).E
    every = np.tile(near, work.copies)
    assert_allclose(work.E[every], exact[every], atol=1e-12)
    assert_array_equal(work.E[~every], before[~every])
    assert work.error("float32") == 0.0
    # A point that comes near the margin later has not been computed anew.
    work.E[np.flatnonzero(~every)] = np.median(exact)
    assert work.error("float32") == pytest.approx(matrix.error("float32") * np.linalg.norm(work.alpha))


def test_worst_violators_take_part():
    """However many are free, and however many violate: the worst are among the active points."""
    X, problem = two_classes(400, 1.0)
    matrix = KernelMatrix(KERNEL, view_of(X), cache_bytes=1e8, precision="float32")
    work = Work(matrix, problem, DualSolution(np.full(400, 0.0), problem.linear.copy()))
    work.alpha[:100] = 0.5
    rounds = active_set.ActiveSet(work, precision="float32", tol=1e-3, gap=np.inf, max_steps=-1, least=120)
    score = np.random.default_rng(2).uniform(0.1, 1.0, 400)
    score[:100], score[399] = np.inf, 50.0
    chosen = rounds._choose(score, 60.0)
    assert np.isin(np.arange(100), chosen).all()
    assert 399 in chosen
    assert 100 < chosen.size < 400
