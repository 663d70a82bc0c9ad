"""Long pieces of work within a step ask whether time is up, and leave a model that claims what is known."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from separatrix import SVC, LinearSVC, LogisticRegression, NuSVC, NuSVR, OneClassSVM
from separatrix.data.memory import view_of
from separatrix.kernels import RBF, Subsequence
from separatrix.solvers import _loop, kernel_crammer_singer, kernel_matrix, out_of_fold, svm
from separatrix.solvers._dual import Work
from separatrix.solvers._dual_problem import DualProblem, DualSolution
from separatrix.solvers.kernel_crammer_singer import KernelCrammerSinger
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.machines import machine


@pytest.fixture
def clock(clock_of_asks, monkeypatch):
    """Return what sets how often a fit may ask before its time is up; its parts are small, and asks many."""
    monkeypatch.setattr(kernel_matrix, "_WORK", 1.0)
    monkeypatch.setattr(svm, "_LOOK", 0.0)
    return clock_of_asks


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


def test_a_joint_round_that_is_not_told_to_all_samples_has_not_been(monkeypatch):
    """Variables and scores are those before it: the certificate is that of the model."""
    monkeypatch.setattr(kernel_crammer_singer, "_ENTRIES", 1 << 12)
    monkeypatch.setattr(kernel_crammer_singer, "_WORKING", 20)
    random = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = random.standard_normal((300, 2)) + y[:, None]
    matrix = KernelMatrix(RBF(0.5), view_of(X), cache_bytes=1e8)
    solver = KernelCrammerSinger(matrix, y, np.ones(300), tol=1e-6)
    control = _loop.Control(None)
    steps = solver.steps(control)
    next(steps)
    before, primal, dual = solver.coef, solver.primal, solver.dual
    product, calls = matrix.product, []

    def interrupted(*given):
        control.interrupted = True
        calls.append(given)
        return product(*given)

    monkeypatch.setattr(matrix, "product", interrupted)
    next(steps)
    assert len(calls) == 1
    assert_allclose(solver.coef, before, rtol=0, atol=1e-15)
    monkeypatch.undo()
    solver.refresh()
    assert_allclose([solver.primal, solver.dual], [primal, dual], rtol=1e-10)


@pytest.mark.parametrize("asks", [0, 3, 30])
@pytest.mark.parametrize("make", [SVC, lambda **given: NuSVC(nu=0.6, **given)])
def test_probabilities_of_folds_that_time_ends_anywhere(make, asks, monkeypatch):
    """In their first scores, in their steps or in their last scores: what is there gives the sigmoid."""
    X, y = samples(3000)
    model = make(probability=True)
    fit = out_of_fold.run

    def run(*given, **named):  # the machine itself has all its time
        monkeypatch.setattr(kernel_matrix, "_WORK", 1.0)
        asked = []

        def reason(control):
            asked.append(control)
            return "max_time" if len(asked) > asks else None

        monkeypatch.setattr(_loop.Control, "reason", reason)
        return fit(*given, **named)

    monkeypatch.setattr(out_of_fold, "run", run)
    with pytest.warns(ConvergenceWarning, match=r"folds behind the probabilities ended early \(max_time\)"):
        model.fit(X, y)
    assert model.certificate_.status == "converged"
    found = model.predict_proba(X)
    assert_allclose(found.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[found.argmax(axis=1)], model.predict(X))
    assert model.probA_[0] < 0


def test_blocks_of_many_problems_are_not_all_made_when_time_is_up(monkeypatch):
    """One-vs-one with a kernel that Python computes: a block for each pair, and the clock between them."""
    random = np.random.default_rng(0)
    y = np.arange(2400) % 4
    X = random.standard_normal((2400, 2)) + y[:, None]
    sizes = []

    def kernel(A, B):
        sizes.append(len(A) * len(B))
        return np.exp(-0.5 * np.square(A[:, None] - B).sum(axis=2))

    monkeypatch.setattr(_loop.Control, "reason", lambda control: "max_time")
    with pytest.warns(ConvergenceWarning, match="max_time is over"):
        model = SVC(kernel=kernel, cache_size=40).fit(X, y)
    assert sum(sizes) < 2 * 1200**2
    assert model.predict(X[:5]).shape == (5,)
    assert 0 < model.certificate_.relative_gap <= 2


@pytest.mark.parametrize("asks", [0, 2])
@pytest.mark.parametrize("make", [SVC, lambda **given: SVC(probability=True, **given), NuSVC, OneClassSVM])
@pytest.mark.parametrize("n", [90, 700])
def test_texts_are_not_all_compared_when_time_is_up(n, make, asks, clock, monkeypatch):
    """However few they are: a pair of texts may take as long as thousands of vectors."""
    random = np.random.default_rng(0)
    y = np.arange(n) % 2
    texts = ["".join(random.choice(list("ab" if label else "bc"), 6)) for label in y]
    pairs = []

    class Counting(Subsequence):
        def _pairs(self, texts, first, second):
            pairs.append(first.shape[0])
            return super()._pairs(texts, first, second)

    monkeypatch.setattr(kernel_matrix, "_TEXT_PIECE", 4 * n)
    monkeypatch.setattr(kernel_matrix, "_QUICK", 0.0)
    clock(asks)
    with pytest.warns(ConvergenceWarning, match="max_time is over"):
        model = make(kernel=Counting(2)).fit(texts, y)
    assert sum(pairs) < 0.8 * n * n
    assert model.certificate_.status == "max_time"
    assert model.predict(texts[:5]).shape == (5,)


@pytest.mark.parametrize(
    "make", [lambda: LinearSVC(penalty="l1", dual=False), lambda: LogisticRegression(l1_ratio=1.0)]
)
def test_columns_without_their_turn_have_no_weights_and_a_true_gap(make, clock):
    """One-vs-rest by working sets: a column that no pass has read is bounded by 0, its conditions unknown."""
    random = np.random.default_rng(0)
    y = np.arange(900) % 6
    X = random.standard_normal((900, 300))
    X[:, :6] += np.eye(6)[y]
    clock(2)
    model = make().set_params(max_iter=20)
    if isinstance(model, LogisticRegression):
        model.set_params(multiclass="ovr")
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X, y)
    found = model.certificate_
    assert found.status == "max_time"
    assert found.kkt_violation is None
    assert 0 <= found.dual < found.primal
    codes = np.where(y[:, None] == np.arange(6), 1.0, -1.0)
    margins = codes * (X @ model.coef_.T + model.intercept_)
    loss = np.maximum(0, 1 - margins) ** 2 if isinstance(model, LinearSVC) else np.logaddexp(0, -margins)
    assert_allclose(found.primal, loss.sum() + np.abs(model.coef_).sum(), rtol=1e-9)
