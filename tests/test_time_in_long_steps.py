"""Closed forms, descents and questions of separability ask the clock, and leave what is true when it ends."""

import os
import signal
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from separatrix import LeastSquaresClassifier, LinearSVC, LogisticRegression, RidgeClassifier, separability
from separatrix.data import memory
from separatrix.data.memory import view_of
from separatrix.data.threads import asking, at_most, question
from separatrix.kernels import resolve_kernel
from separatrix.models import separability as reports
from separatrix.solvers import _kernel_blocks, _loop, least_squares, normal_equations
from separatrix.solvers._descent import Descent
from separatrix.solvers._kernel_blocks import KernelBlocks
from separatrix.solvers._loop import Below, Control, OutOfTimeError, run
from separatrix.solvers._min_norm import MinNorm, Vectors
from separatrix.solvers.hulls import LinearRows, NearestPoints
from separatrix.solvers.least_squares import solver_of
from separatrix.solvers.normal_equations import Dual
from separatrix.solvers.regression import Regression

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def clock(clock_of_asks, monkeypatch):
    """Return what sets how often a fit may ask before its time is up; data come in many small blocks."""
    monkeypatch.setattr(memory, "BLOCK_BYTES", 1 << 12)
    return clock_of_asks


def samples(n=600, d=20, K=3, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % K
    X = random.standard_normal((n, d))
    X[:, :K] += 1.5 * np.eye(K)[y][:, :d]
    return X, y


def test_a_sum_over_blocks_asks_before_each_of_them(monkeypatch):
    monkeypatch.setattr(memory, "BLOCK_BYTES", 1 << 12)
    view, asked = view_of(samples()[0]), []
    with asking(lambda: asked.append(1)):
        view.column_sums()
        assert len(asked) == len(view.parts()) > 10
        list(view.blocks())
    assert len(asked) == 2 * len(view.parts())
    question()()  # nobody asks outside
    assert len(asked) == 2 * len(view.parts())


FITS = {
    "primal": (LeastSquaresClassifier(solver="primal"), {}),
    "svd": (LeastSquaresClassifier(solver="svd", alpha=0.5), {}),
    "cg": (LeastSquaresClassifier(solver="cg", alpha=0.5), {}),
    "dual": (LeastSquaresClassifier(solver="dual", alpha=0.5), {"n": 60, "d": 400}),
    "sparse dual": (LeastSquaresClassifier(solver="dual", alpha=0.5), {"n": 60, "d": 400}),
    "positive": (RidgeClassifier(positive=True, alpha=0.5), {}),
}


@pytest.mark.parametrize("name", FITS)
def test_least_squares_ends_in_any_pass_with_a_true_certificate(name, clock, monkeypatch):
    monkeypatch.setattr(normal_equations, "PANEL_BYTES", 1 << 12)
    monkeypatch.setattr(normal_equations, "_PAIRS", 100.0)
    model, shape = FITS[name]
    X, y = samples(**shape)
    if name.startswith("sparse"):
        X = sparse.csr_array(np.where(np.abs(X) > 1.5, X, 0.0))
    best = model.fit(X, y).certificate_
    ended = 0
    for asks in (0, 1, 3, 10, 25):
        asked = clock(asks)
        with at_most(1):  # each thread asks for itself
            found = model.fit(X, y).certificate_
        assert len(asked) <= asks + 8
        ended += found.status == "max_time"
        assert found.status in ("max_time", "converged")
        codes = np.eye(3)[y] if name != "positive" else 2 * np.eye(3)[y] - 1
        scores = X @ model.coef_.T + model.intercept_
        penalty = model.alpha * np.square(model.coef_).sum()
        assert_allclose(found.primal, np.square(codes - scores).sum() + penalty, rtol=1e-9)
        assert found.gap is not None or name in ("cg", "primal")
        if found.dual is not None:
            assert 0 <= found.dual <= best.primal * (1 + 1e-9)
    assert ended > 1


def test_least_squares_without_time_for_a_factor_iterates(monkeypatch):
    """Time is left, but less than the factor seems to take: the same solution on another way."""
    X, y = samples(n=60, d=400)
    exact = LeastSquaresClassifier(solver="dual").fit(X, y)
    monkeypatch.setattr(_loop.Control, "left", lambda control: 1e-9)
    found = LeastSquaresClassifier(solver="dual", tol=1e-20).fit(X, y)
    assert (exact.solver_, found.solver_) == ("dual", "cg")
    assert found.certificate_.status == "converged"
    assert_allclose(found.coef_, exact.coef_, atol=1e-7)


def test_a_limit_below_the_price_of_a_closed_form_chooses_iterations(monkeypatch):
    X, y = samples(n=60, d=400)
    problem = Regression(view_of(X), y, np.eye(3), np.zeros(3))
    assert solver_of(problem, "auto", 1e-12).route == "svd"  # its name before it has begun
    assert isinstance(solver_of(problem, "auto", 1e-12, max_time=60.0), Dual)
    monkeypatch.setattr(least_squares, "_RATE", 1.0)
    assert solver_of(problem, "auto", 1e-12, max_time=60.0).route == "cg"
    assert isinstance(solver_of(problem, "auto", 1e-12), Dual)
    assert isinstance(solver_of(problem, "dual", 1e-12, max_time=60.0), Dual)  # as it was named


def test_products_of_sparse_samples_are_the_same_in_pieces(monkeypatch):
    X = sparse.random_array((80, 300), density=0.1, rng=np.random.default_rng(0), format="csr")
    found, asked = [], []
    for pairs in (1.0, 500.0, 1e9):
        monkeypatch.setattr(normal_equations, "_PAIRS", pairs)
        solver = Dual(Regression(view_of(X), np.arange(80) % 2, np.eye(2), np.ones(2)))
        solver.kept, solver.root = np.arange(80), np.ones(80)
        with asking(partial(asked.append, pairs)):
            found.append(solver._sparse_gram())
    assert asked.count(1.0) > asked.count(500.0) > asked.count(1e9) == 1
    assert_array_equal(found[0], found[2])
    assert_array_equal(found[1], found[2])
    empty = Dual(Regression(view_of(sparse.csr_array((5, 3))), np.arange(5) % 2, np.eye(2), np.ones(2)))
    empty.kept, empty.root = np.arange(5), np.ones(5)
    assert not empty._sparse_gram().any()


@pytest.mark.parametrize("C", [np.inf, 1.0])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_descent_ends_before_its_first_step_and_after_any(C, form, clock, monkeypatch):
    measure = Descent._measure
    measured = []  # after so many questions
    monkeypatch.setattr(Descent, "_measure", lambda descent: measured.append(len(asked)) or measure(descent))
    asked = []
    X, y = samples(n=900, d=60)
    model = LogisticRegression(C=C, solver="quasi-newton", tol=1e-10)
    best = model.fit(form(X), y).certificate_.primal
    values = []
    for asks in (0, 1, 2, 5, 9):
        asked = clock(asks)
        measured.clear()
        found = model.fit(form(X), y).certificate_
        assert len(asked) <= asks + 5
        assert max(measured, default=0) <= asks  # nobody estimates for long what is left
        assert found.status == "max_time"
        assert (found.iterations == 0) == (asks == 0)
        values.append(found.primal)
        assert found.primal >= best * (1 - 1e-9)
        if found.dual is not None:
            assert 0 <= found.dual <= best * (1 + 1e-9)
        assert all(0 <= record["relative_gap"] < np.inf for record in model.history_)
        assert np.isfinite(model.predict_proba(X[:5])).all()
    assert not model.set_params(max_iter=0).fit(form(X), y).coef_.any()  # the clock has nothing to end there
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_products_of_dense_samples_ask_between_panels(monkeypatch):
    X, y = samples(n=60, d=400)
    monkeypatch.setattr(normal_equations, "PANEL_BYTES", 1 << 15)  # ten rows
    solver = Dual(Regression(view_of(X), y, np.eye(3), np.ones(3)))
    solver.kept, solver.root, solver._only = np.arange(60), np.ones(60), None
    asked = []
    with asking(lambda: asked.append(1)):
        assert_allclose(solver._gram(), X @ X.T, atol=1e-10)
    assert len(asked) == 6 * 7 / 2


def test_a_descent_whose_time_ends_in_a_search_keeps_the_point_and_estimates_nothing(monkeypatch):
    X, y = samples(n=900, d=60)
    over, late, search, measure = [], [], Descent._search, Descent._measure

    def searched(descent, *given):
        found = search(descent, *given)
        over.append(found)
        return found

    monkeypatch.setattr(Descent, "_search", searched)
    monkeypatch.setattr(Descent, "_measure", lambda descent: late.append(len(over)) or measure(descent))
    monkeypatch.setattr(_loop.Control, "reason", lambda control: "max_time" if len(over) == 2 else None)
    model = LogisticRegression(C=np.inf, solver="quasi-newton").fit(X, y)
    assert max(late) == 1
    assert_array_equal(model.coef_, over[1].coef)
    assert (model.certificate_.status, model.certificate_.iterations) == ("max_time", 2)
    assert model.history_[-1]["relative_gap"] == 1.0  # no loss is below 0: nothing else is known


class Expiring(Control):
    """Expires after so many questions."""

    def __init__(self, asks):
        super().__init__(None)
        self.asks = asks

    def reason(self):
        """Return whether the questions are used up."""
        self.asks -= 1
        return "max_time" if self.asks < 0 else None


@pytest.mark.parametrize("asks", range(0, 45, 2))
def test_an_active_set_that_time_ends_anywhere_is_feasible_and_no_worse(asks):
    random = np.random.default_rng(8)  # samples leave at once, and one after the other
    V = random.standard_normal((120, 30)) + 0.3
    groups = np.arange(120) % 2
    late = []

    class Counting(Vectors):
        def factor(self, used, E):
            late.append(control.asks < 0)
            return super().factor(used, E)

    solver = MinNorm(Counting(V), groups, tol=1e-12, zero=1e-12)
    control = Expiring(asks)
    start, a = np.arange(20), np.full(20, 0.1)
    used, weights = solver.solve(start, a, control)
    assert control.asks < 0  # it takes more questions than that
    assert sum(late) <= 1
    assert (weights >= 0).all()
    assert_allclose(np.bincount(groups[used], weights, 2), 1.0, rtol=1e-9)
    assert np.square(weights @ V[used]).sum() <= np.square(a @ V[start]).sum() * (1 + 1e-9)


def test_kernel_values_of_all_samples_are_made_between_questions(monkeypatch):
    monkeypatch.setattr(_kernel_blocks, "BLOCK_BYTES", 1 << 9)
    X, blocks = samples()[0], []

    def values(A, B):
        blocks.append(len(A))
        return A @ B.T

    matrix = KernelBlocks(resolve_kernel(values, X=X), X)
    blocks.clear()  # of the diagonal
    with pytest.raises(OutOfTimeError), asking(Expiring(2).ask):
        matrix.product(np.arange(9), np.ones((9, 1)))
    assert blocks == [64, 64]


@pytest.mark.parametrize("asks", [1, 2, 4, 7])
def test_hulls_keep_true_bounds_and_do_not_claim_an_end(asks, clock):
    X, y = samples(n=400, d=30, K=2)
    X[:, 0] += 9.0 * y
    first, second = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    whole = NearestPoints(LinearRows(view_of(X)), first, second)
    assert run(whole, Below(1e-10), max_iter=100).status == "converged"
    clock(asks)
    search = NearestPoints(LinearRows(view_of(X)), first, second)
    assert run(search, Below(1e-10), max_iter=100).status == "max_time"
    assert search.lower <= whole.upper * (1 + 1e-9)
    assert search.upper >= whole.lower * (1 - 1e-9)
    w = search.matrix.weights(search.index, search.signs * search.a)
    assert_allclose(search.upper, np.linalg.norm(w), rtol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_separability_says_unknown_of_what_it_had_no_time_for(kernel, clock, monkeypatch):
    """Whenever it ends; and as many answers are made as questions were asked, not one for each pair."""
    X, y = samples(n=400, d=5, K=40)
    made = []
    report = reports._Question._report
    monkeypatch.setattr(reports._Question, "_report", lambda *given: made.append(1) or report(*given))
    for asks in (0, 5, 30, 200):
        made.clear()
        asked = clock(asks)
        found = separability(X, y, kernel=kernel)
        assert len(asked) <= asks + 50  # one for each class and the rest
        assert len(made) <= 42 + asks
        assert len(found.pairs) == len(list(found.pairs)) == 780
        assert list(found.pairs)[:2] == [(0, 1), (0, 2)]
        last = found.pairs[38, 39]
        assert (last.verdict, last.classes, last.widest) == ("unknown", ((38,), (39,)), np.inf)
        assert found.verdict in ("unknown", "inseparable")
        assert "of 780 pairs separable" in str(found)
        assert len(found.table().splitlines()) == 41
        for pair in list(found.pairs.values())[:3]:
            if pair.verdict != "unknown":
                assert pair.verify(X, y)
        for wrong in ((1, 0), (0, 0), (0, 99)):
            with pytest.raises(KeyError):
                found.pairs[wrong]


def test_one_interrupt_ends_all_questions_of_separability():
    X, y = samples(n=60, K=4)
    calls = []

    def kernel(A, B):
        calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return A @ B.T

    found = separability(X, y, kernel=kernel)
    assert found.verdict == "unknown"
    assert {pair.verdict for pair in list(found.pairs.values())[1:]} == {"unknown"}
    assert len(calls) < 12


@pytest.mark.parametrize("make", [LinearSVC, LogisticRegression])
def test_a_path_whose_fits_have_no_time_has_a_model_for_each_value(make, clock):
    X, y = samples()
    clock(0)
    with pytest.warns(ConvergenceWarning):
        path = make.path(X, y, [0.1, 1.0, 10.0])
    assert path.coefs.shape == (3, 3, 20)
    assert {found.status for found in path.certificates} <= {"max_time", "converged"}
    assert path.margins.shape == (3, 3)
    expected = 2.0 / np.maximum(np.linalg.norm(path.coefs, axis=2), 1e-300)
    assert_allclose(np.minimum(path.margins, 1e300), np.minimum(expected, 1e300))


@pytest.mark.parametrize("make", [LinearSVC, LogisticRegression])
def test_one_interrupt_ends_a_path(make, monkeypatch):
    X, y = samples(n=3000)
    fits = []
    fit = make.fit

    def interrupted(self, *given, **named):
        fits.append(1)
        if len(fits) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return fit(self, *given, **named)

    monkeypatch.setattr(make, "fit", interrupted)
    with pytest.warns(ConvergenceWarning, match="fit again"):
        path = make.path(X, y, [0.1, 1.0, 10.0, 100.0])
    assert [found.status for found in path.certificates] == ["converged", "interrupted"]
    assert len(fits) == len(path.Cs) == len(path.coefs) == 2
