"""Long pieces of work within a step ask whether time is up, and leave a model that claims what is known."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from separatrix import NuSVC, NuSVR, OneClassSVM
from separatrix.data.memory import view_of
from separatrix.kernels import RBF
from separatrix.solvers import _loop, kernel_matrix, svm
from separatrix.solvers._dual import DualProblem, DualSolution, Work
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.machines import machine


@pytest.fixture
def clock(monkeypatch):
    """Return what sets how often a fit may ask before its time is up; its parts are small, and asks many."""

    def after(asks):
        asked = []

        def reason(control):
            asked.append(control)
            return "max_time" if len(asked) > asks else None

        monkeypatch.setattr(_loop.Control, "reason", reason)
        return asked

    monkeypatch.setattr(kernel_matrix, "_WORK", 1.0)
    monkeypatch.setattr(svm, "_LOOK", 0.0)
    return after


def samples(n, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    return random.standard_normal((n, 3)) + y[:, None], y


def nu_problem(n, positive, nu=0.1):
    """Return a ν-classification of few positive samples, its start in the first of either sign."""
    signs = np.where(np.arange(n) % (n // positive) == 0, 1.0, -1.0)
    start = np.zeros(n)
    for sign in (1, -1):
        mine = np.flatnonzero(signs == sign)
        start[mine] = np.clip(0.5 * nu * n - np.arange(mine.size), 0.0, 1.0)
    return DualProblem(np.arange(n), signs, np.zeros(n), np.ones(n), start, separate=True)


@pytest.mark.parametrize("n", [600, 6500])
@pytest.mark.parametrize("make", [NuSVC, NuSVR, OneClassSVM])
def test_nu_machines_honour_time_from_the_first_kernel_value_on(make, n, clock):
    """Whether it ends in the first scores, in the sample that gives a start, or in the scores of that."""
    X, y = samples(n)
    proven = set()
    for asks in (0, 1, 5, 40):
        asked = clock(asks)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = make(nu=0.3).fit(X, y)
        assert len(asked) <= asks + 5  # then it does not go on for long
        found = model.certificate_
        if found.status == "converged":  # few samples may not need to ask as often
            assert asks > 0 or make is NuSVR
            continue
        proven.add(found.gap is not None)
        assert found.status == "max_time"
        assert [warning.category for warning in caught] == [ConvergenceWarning]
        assert np.isfinite(model.predict(X[:9])).all()
        assert model.fit_status_ == 1
        assert np.min(model.n_iter_) >= 0
        if found.gap is None:
            assert found.primal is found.dual is found.relative_gap is found.kkt_violation is None
            assert "too early" in found.message
        else:
            assert found.gap >= 0
            assert found.dual <= found.primal
        assert all(record["dual"] is None or np.isfinite(record["dual"]) for record in model.history_)
    assert (False in proven) == (make is not NuSVR)  # whose start has no weights: its scores are known


def test_what_is_not_known_has_no_width(clock):
    X, y = samples(600)
    clock(0)
    with pytest.warns(ConvergenceWarning):
        model = NuSVC(nu=0.3).fit(X, y)
    assert np.isnan(model.margin_width_).all()


def test_a_start_that_takes_one_look_is_known_even_without_time():
    problem = nu_problem(700, 100)
    matrix = KernelMatrix(RBF(0.5), view_of(samples(700)[0]), cache_bytes=1e8)
    solution = DualSolution(problem.start.copy(), problem.linear.copy(), known=np.empty(0, dtype=np.int64))
    work = Work(matrix, problem, solution)
    work.expired = lambda: True
    assert work.begin("float64")
    assert solution.known is None


@pytest.mark.parametrize("glance", [False, True])
def test_a_start_known_in_part(glance, monkeypatch):
    """The known part is exact, has samples of either sign however rare, and gives a finite intercept."""
    monkeypatch.setattr(kernel_matrix, "_WORK", 1.0)
    n = 700
    X, problem = samples(n)[0], nu_problem(n, 2, nu=2 / n)
    matrix = KernelMatrix(RBF(0.5), view_of(X), cache_bytes=1e8)
    solution = DualSolution(problem.start.copy(), problem.linear.copy(), known=np.empty(0, dtype=np.int64))
    work = Work(matrix, problem, solution)
    work.expired = lambda: True
    assert not work.begin("float64", glance=glance)
    known = solution.known
    assert 0 < known.size < n
    assert np.unique(known).size == known.size
    assert set(problem.signs[known]) == {-1.0, 1.0}
    Q = problem.signs[:, None] * RBF(0.5)(X) * problem.signs
    assert_allclose(solution.gradient[known], (Q @ problem.start)[known], rtol=1e-12)
    assert solution.violation == np.inf
    found = machine(problem, solution, matrix)
    assert np.isfinite([found.intercept, found.rho]).all()
    assert (found.primal, found.dual, found.gap) == (np.inf, -np.inf, np.inf)
    assert np.isfinite(found.slack[known]).all()
    assert np.isnan(np.delete(found.slack, known)).all()
    work.expired = lambda: False
    assert work.begin("float64")
    assert solution.known is None
    assert_allclose(solution.gradient, Q @ problem.start, rtol=1e-12)


@pytest.mark.parametrize(
    "compute", [lambda work: work.recompute("float64"), lambda work: work.sharpen(np.inf)]
)
def test_scores_computed_anew_are_all_or_none(compute, monkeypatch):
    monkeypatch.setattr(kernel_matrix, "_WORK", 1.0)
    n = 300
    problem = nu_problem(n, 100)
    matrix = KernelMatrix(RBF(0.5), view_of(samples(n)[0]), cache_bytes=1e8)
    work = Work(matrix, problem, DualSolution(problem.start.copy(), np.ones(n)))
    before = work.E.copy()
    asked = []
    work.expired = lambda: asked.append(None) or len(asked) > 1
    assert not compute(work)
    assert len(asked) == 2
    assert (before == work.E).all()
    assert work.exact is work.sharp is None
    work.expired = lambda: False
    assert compute(work)
    assert (before != work.E).any()
