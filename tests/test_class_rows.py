"""Kernel rows that pairs of classes share: the same steps as with rows of their own, at fewer entries."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from separatrix.data.memory import view_of
from separatrix.data.threads import at_most
from separatrix.kernels import RBF, CallableKernel, Kernel, Polynomial
from separatrix.multiclass import Coding
from separatrix.solvers import _class_rows
from separatrix.solvers._class_rows import ClassRows
from separatrix.solvers._dual import Work
from separatrix.solvers._dual_problem import DualSolution
from separatrix.solvers._loop import Below, run
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.smo import SequentialMinimal
from separatrix.solvers.svm import classification, nu_classification

SIZES = (30, 171, 255, 48)


@pytest.fixture(autouse=True)
def cheap_entries_too(monkeypatch):
    monkeypatch.setattr(_class_rows, "_FEATURES", 5)


def samples(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes of very different sizes, in no order."""
    random = np.random.default_rng(0)
    labels = random.permutation(np.repeat(np.arange(len(SIZES)), SIZES))
    centres = random.standard_normal((len(SIZES), d))
    return centres[labels] + random.standard_normal((labels.size, d)), labels


def pairs(labels: np.ndarray, nu: float | None = None, name: str = "ovo"):
    members = Coding.of(name, len(SIZES)).members(labels)
    given = members.offsets, members.rows, members.signs
    if nu is not None:
        return nu_classification(*given, np.ones(members.rows.size), nu)
    return classification(*given, np.full(members.rows.size, 10.0))


def one(rows, signs, upper):
    """Return the problem of two classes alone."""
    return classification(np.array([0, rows.size]), rows, signs, upper)[0]


def solve(X, problems, threads=1, *, kernel: Kernel | None = None, cache_bytes=1e8, precision="float32"):
    matrix = KernelMatrix(
        kernel or RBF(0.5 / X.shape[1]), view_of(X), cache_bytes=cache_bytes, precision=precision
    )
    with at_most(threads):
        solver = SequentialMinimal(matrix, problems, tol=1e-4)
        assert run(solver, Below(1e-4), max_iter=10_000).status == "converged"
    return np.concatenate([s.alpha for s in solver.solutions]), matrix.entries


@pytest.mark.parametrize("d", [5, 70, 200])
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("nu", [None, 0.1])
def test_shared_rows_lead_the_same_way(monkeypatch, d, precision, nu):
    """To the bit, with one thread and two, and with about half of the entries among the classes."""
    X, labels = samples(d)
    problems = pairs(labels, nu)
    for data in (X, sparse.csr_array(X)):
        with monkeypatch.context() as patch:
            patch.setattr(_class_rows, "_LEAST", np.inf)
            whole, more = solve(data, problems, precision=precision)
        for threads in (1, 2):
            alpha, entries = solve(data, problems, threads, precision=precision)
            assert_array_equal(alpha, whole)
            assert entries < 0.95 * more


def test_other_kernels_share_rows_too(monkeypatch):
    X, labels = samples(6)
    kernel = Polynomial(degree=2, gamma=0.2, coef0=1.0)
    alpha, entries = solve(X, pairs(labels), kernel=kernel)
    monkeypatch.setattr(_class_rows, "_LEAST", np.inf)
    whole, more = solve(X, pairs(labels), kernel=kernel)
    assert_array_equal(whole, alpha)
    assert entries < more


def shared_by(X, problems, cache_bytes=1e8, kernel=None):
    matrix = KernelMatrix(kernel or RBF(0.1), view_of(X), cache_bytes=cache_bytes)
    works = [Work(matrix, p, DualSolution(p.start.copy(), p.linear.copy())) for p in problems]
    shared = ClassRows(matrix, works, "float32")
    return [work in shared for work in works]


def test_only_classes_that_others_share_and_that_fit():
    X, labels = samples(5)
    problems = pairs(labels)
    assert all(shared_by(X, problems))
    assert not any(shared_by(X, problems, cache_bytes=1e6))
    assert not any(shared_by(X, problems[:2]))
    assert not any(shared_by(X[:, :4], problems))
    assert not any(shared_by(X, pairs(labels, name="ovr")))
    assert not any(shared_by(X, problems, kernel=CallableKernel(lambda A, B: A @ B.T)))
    # Another choice of samples of the same number between the same ends is another class.
    rows = problems[0].rows.copy()
    rows[1:3] = rows[2], rows[1]
    changed = [one(rows, problems[0].signs, problems[0].upper), *problems[1:]]
    assert shared_by(X, changed)[0] is not all(shared_by(X, problems))


def test_problems_in_which_signs_alternate_keep_whole_rows():
    X, labels = samples(5)
    problems = []
    for p in pairs(labels):
        order = np.argsort(p.rows)
        problems.append(one(p.rows[order], p.signs[order], p.upper[order]))
    assert not any(shared_by(X, problems))


@pytest.mark.parametrize("cache_bytes", [1e8, 4e6])
def test_exact_gradients_share_what_is_within_classes(cache_bytes):
    """As each problem alone; and to the bit, whatever the order in which problems ask."""
    X, labels = samples(70)
    problems = list(pairs(labels))
    matrix = KernelMatrix(RBF(0.01), view_of(X), cache_bytes=cache_bytes)
    random, found = np.random.default_rng(1), []
    sizes = [p.rows.size for p in problems]
    starts = [random.uniform(0.0, 10.0, m) * (random.uniform(size=m) < 0.3) for m in sizes]
    for order in (1, -1):
        works = [Work(matrix, p, DualSolution(a, p.linear)) for p, a in zip(problems, starts, strict=True)]
        shared, before = ClassRows(matrix, works, "float32"), matrix.entries
        for work in works[::order]:
            shared.recompute(work)
        found.append([work.E.copy() for work in works])
        spent = matrix.entries - before
    for work, first, second in zip(works, *found, strict=True):
        assert_array_equal(first, second)
        assert work.error("float32") == 0.0
        before = matrix.entries
        work.recompute("float64")
        spent -= matrix.entries - before
        assert_allclose(first, work.E, rtol=0, atol=1e-11)
    assert spent < 0 if cache_bytes == 1e8 else spent == 0
