"""Many small dual problems at once: against the solver of single ones, closed forms and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn import svm as peers

from oracles import dual_meaning
from oracles_svm import exact_regression
from separatrix import _hot
from separatrix.data.memory import view_of
from separatrix.kernels import RBF, Linear
from separatrix.models.svc import SVC, NuSVC
from separatrix.models.svr import SVR, NuSVR
from separatrix.multiclass import Coding
from separatrix.solvers import small_problems
from separatrix.solvers._loop import Below, Control, run
from separatrix.solvers.dual_problems import DualProblems
from separatrix.solvers.kernel_matrix import KernelMatrix
from separatrix.solvers.machines import kkt_violation, machine, machines_of
from separatrix.solvers.out_of_fold import Folds, balanced, deal
from separatrix.solvers.platt import fit_sigmoids
from separatrix.solvers.small_problems import SmallProblems
from separatrix.solvers.smo import SequentialMinimal
from separatrix.solvers.svm import (
    SupportMachines,
    classification,
    nu_classification,
    nu_regression,
    regression,
)


def _classes(K: int, per: int, seed: int = 0, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    numbers = random.permutation(np.repeat(np.arange(K), per))
    return 1.5 * random.normal(size=(K, d))[numbers] + random.normal(size=(K * per, d)), numbers


def _matrix(X: np.ndarray, kernel: object = None) -> KernelMatrix:
    return KernelMatrix(kernel or RBF(0.3), view_of(X), cache_bytes=1e8, precision="float64")


def _problems(numbers: np.ndarray, coding: str, C: float = 2.0, nu: float | None = None) -> DualProblems:
    members = Coding.of(coding, int(numbers.max()) + 1).members(numbers)
    upper = np.full(members.rows.size, C)
    if nu is None:
        return classification(members.offsets, members.rows, members.signs, upper)
    return nu_classification(members.offsets, members.rows, members.signs, upper, nu)


def _solved(matrix: KernelMatrix, problems: DualProblems, tol: float = 1e-10) -> SmallProblems:
    solver = SmallProblems(matrix, problems, tol=tol, max_steps=100_000)
    run(solver, Below(-1.0), max_iter=np.inf)
    return solver


@pytest.mark.parametrize("nu", [None, 0.1])
def test_pauses_change_no_bit(monkeypatch, nu):
    X, numbers = _classes(3, 40)
    problems = _problems(numbers, "ovo", C=1e4, nu=nu)
    whole = _solved(_matrix(X), problems)
    pauses = []
    monkeypatch.setattr(small_problems, "_SLICE", -1.0)
    monkeypatch.setattr(SmallProblems, "_record", lambda self: pauses.append(1) or {})
    broken = _solved(_matrix(X), _problems(numbers, "ovo", C=1e4, nu=nu))
    assert len(pauses) > 3
    assert_array_equal(broken.solutions.alpha, whole.solutions.alpha)
    assert_array_equal(broken.solutions.steps, whole.solutions.steps)


def _objective(matrix: KernelMatrix, problem: object, alpha: np.ndarray) -> float:
    rows = problem.rows
    K = matrix.block(rows, rows, "float64")
    beta = problem.signs * alpha
    return float(0.5 * beta @ K @ beta + problem.linear @ alpha)


@pytest.mark.parametrize("coding", ["ovo", "ovr"])
@pytest.mark.parametrize("nu", [None, 0.3])
@pytest.mark.parametrize("kernel", [RBF(0.3), Linear()])
@pytest.mark.parametrize("name", _hot.instruction_sets())
def test_all_at_once_equals_one_by_one(coding: str, nu: float | None, kernel: object, name: str) -> None:
    X, numbers = _classes(5, 6)
    nu = 0.15 if nu and coding == "ovr" else nu
    before = _hot.instruction_set()
    try:
        _hot.use_instruction_set(name)
        matrix, problems = _matrix(X, kernel), _problems(numbers, coding, nu=nu)
        found = _solved(matrix, problems).solutions
    finally:
        _hot.use_instruction_set(before)
    single = SequentialMinimal(matrix, problems, tol=1e-10)
    run(single, Below(-1.0), max_iter=np.inf)
    for k, problem in enumerate(problems):
        here, there = found[k], single.solutions[k]
        K = matrix.block(problem.rows, problem.rows, "float64")
        gradient = problem.signs * (K @ (problem.signs * here.alpha)) + problem.linear
        assert here.status == "converged"
        assert_allclose(here.gradient, gradient, atol=1e-10)
        assert (here.alpha >= 0).all()
        assert (here.alpha <= problem.upper).all()
        for sign in (1, -1) if nu else (None,):
            group = slice(None) if sign is None else problem.signs == sign
            moved = problem.signs[group] @ (here.alpha - problem.start)[group]
            assert abs(moved) < 1e-12
        assert kkt_violation(problem, here.alpha, gradient) < 2e-10
        value = _objective(matrix, problem, there.alpha)
        assert_allclose(_objective(matrix, problem, here.alpha), value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_regression_with_a_singular_kernel_reaches_the_optimum(kernel: str, C: float) -> None:
    X, numbers = _classes(3, 15)
    y = numbers + 0.3 * np.random.default_rng(1).normal(size=numbers.size)
    for model in (SVR(kernel=kernel, C=C), NuSVR(kernel=kernel, C=C)):
        certificate = model.fit(X, y).certificate_
        assert certificate.status == "converged"
        # The certificate allows for what rounding errors may be; the machine itself is as close as this.
        primal, dual = exact_regression(model, X, y)
        assert primal - dual < 1e-9 * primal
        assert primal - dual <= certificate.gap
        assert certificate.iterations < 50_000


@pytest.mark.parametrize(("make", "extra"), [(regression, 0.1), (nu_regression, 0.4)])
def test_a_regression_has_each_sample_twice(make: object, extra: float) -> None:
    X, numbers = _classes(3, 10)
    matrix, rows = _matrix(X), np.arange(numbers.size)
    problems = DualProblems.of([make(rows, numbers.astype(float), np.full(rows.size, 3.0), extra)])
    solver = _solved(matrix, problems)
    assert solver.problems.copies == 2
    single = SequentialMinimal(matrix, problems, tol=1e-10)
    run(single, Below(-1.0), max_iter=np.inf)
    values = [_objective(matrix, problems[0], a) for a in (solver.solutions.alpha, single.solutions[0].alpha)]
    assert_allclose(*values, rtol=1e-9)


@pytest.mark.parametrize("kind", ["soft", "bounds", "separate", "weights", "hard", "vanishing"])
def test_what_dual_points_mean(kind: str) -> None:
    """Compiled sums against the formulas, at points that no solver has improved."""
    random = np.random.default_rng(len(kind))
    X, numbers = _classes(3, 12, seed=4)
    matrix, coding = _matrix(X), Coding.of("ovo", 3)
    members = coding.members(numbers)
    size = members.rows.size
    upper = np.full(size, np.inf if kind == "hard" else 2.0)
    if kind == "weights":
        upper = np.where(random.random(size) < 0.4, 0.0, random.random(size))
    a = np.minimum(upper, random.random(size) * (random.random(size) < 0.5))
    if kind in ("bounds", "vanishing"):
        a = np.where(random.random(size) < 0.5, 0.0, upper)
    linear = np.zeros(size) if kind in ("separate", "vanishing") else np.full(size, -1.0)
    problems = DualProblems(
        members.offsets, members.rows, members.signs, linear, upper, 0 * a, separate=kind == "separate"
    )
    gradient = random.normal(size=size) if kind != "vanishing" else 1e-12 * random.normal(size=size)
    if kind == "hard":
        gradient = np.abs(gradient) + 0.1
    violation = np.array([0.5, np.inf, 0.25])
    doubt = np.array([0.0, 1e-3, 0.1])
    found = machines_of(problems, a, gradient, violation, matrix, doubt)
    assert np.isinf(violation[1])
    assert not np.isinf(found.violation).any()
    assert kind == "separate" or found.vanishes.any() == (kind == "vanishing")
    assert kind == "vanishing" or found.indefinite.any() or (found.square > 0).all()
    for k, problem in enumerate(problems):
        part = problems.part(k)
        errors = matrix.relative_error(), doubt[k]
        wanted = dual_meaning(problem, a[part], gradient[part], matrix.diag, *errors)
        assert all(not np.isinf(wanted[name]) for name in ("primal", "gap")) or kind == "hard"
        for name, value in wanted.items():
            assert_allclose(getattr(found[k], name), value, rtol=1e-12, atol=1e-12, err_msg=name)


def test_machines_of_all_problems_are_those_of_each() -> None:
    X, numbers = _classes(6, 3)
    for nu in (None, 0.5):
        matrix, problems = _matrix(X), _problems(numbers, "ovo", C=0.5, nu=nu)
        found = _solved(matrix, problems).solutions
        every = machines_of(problems, found.alpha, found.gradient, found.violation, matrix, found.doubt)
        for k, problem in enumerate(problems):
            one = machine(problem, found[k], matrix)
            b, rho = one.intercept, one.rho
            h = found[k].gradient + problem.signs * b - rho
            assert_allclose(one.gap, found[k].alpha @ h + problem.upper @ np.maximum(-h, 0), atol=1e-12)
            assert_allclose(one.dual, -_objective(matrix, problem, found[k].alpha), rtol=1e-9)
            for name in ("intercept", "rho", "square", "primal", "dual", "violation"):
                assert_allclose(getattr(every, name)[k], getattr(one, name), rtol=1e-12, atol=1e-14)
            assert_array_equal(every[k].coef, one.coef)
    with pytest.raises(IndexError):
        every[len(every)]


def test_members_are_those_of_the_codes() -> None:
    numbers = np.array([2, 0, 1, 2, 0, 3])
    kept = np.array([True, True, True, True, False, True])
    for name in ("ovo", "ovr"):
        coding = Coding.of(name, 4)
        members = coding.members(numbers, kept)
        assert len(members) == coding.columns
        assert_array_equal(members.order[members.places], members.rows)
        assert (np.diff(numbers[members.order]) >= 0).all()
        assert sum(members.sizes) == members.rows.size
        for column, (rows, signs) in enumerate(members):
            classes = [k for k in range(4) if coding.codes[k, column]]
            expected = [i for k in classes for i in np.flatnonzero((numbers == k) & kept)]
            assert rows.tolist() == expected
            assert_array_equal(signs, coding.codes[numbers[rows], column])


def test_time_that_is_over_leaves_valid_machines() -> None:
    X, numbers = _classes(8, 4)
    matrix, problems = _matrix(X), _problems(numbers, "ovo", nu=0.5)
    solver = SupportMachines(matrix, problems, tol=1e-3, gap=1e-3)
    control = Control(0.0)
    assert control.expired()
    for k, found in enumerate(solver.machines):  # before the first step
        K = matrix.block(problems[k].rows, problems[k].rows, "float64")
        coef = problems[k].signs * problems[k].start
        assert_allclose(found.square, coef @ K @ coef, rtol=1e-9)
        assert np.isfinite(found.gap)
    run(solver, Below(-1.0), max_iter=np.inf)  # and it can go on from there
    assert (solver.solutions.violation <= 1e-3).all()


def test_many_classes_as_scikit_learn() -> None:
    X, numbers = _classes(20, 4)
    both = ((SVC(C=3), peers.SVC(C=3, tol=1e-8)), (NuSVC(nu=0.4), peers.NuSVC(nu=0.4, tol=1e-8)))
    for ours, theirs in both:
        for model in (ours, theirs):
            model.set_params(decision_function_shape="ovo").fit(X, numbers)
        assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
        assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


def test_folds_together_equal_fits_without_the_fold() -> None:
    X, numbers = _classes(4, 10)
    fold_of = deal(numbers, 5, np.random.RandomState(0))
    for nu in (None, 0.3):
        matrix, problems = _matrix(X), _problems(numbers, "ovo", nu=nu)
        found = _solved(matrix, problems).solutions
        scores = Folds(matrix, fold_of, tol=1e-10, nu=nu).scores(problems, found)
        for fold in range(5):
            rest = np.flatnonzero(fold_of != fold)
            part, others = _matrix(X[rest]), _problems(numbers[rest], "ovo", nu=nu)
            solver = SupportMachines(part, others, tol=1e-10, gap=1e-10)
            run(solver, Below(-1.0), max_iter=np.inf)
            for k, one in enumerate(solver.machines):
                held = problems.part(k).start + np.flatnonzero(fold_of[problems[k].rows] == fold)
                values = matrix.block(problems.rows[held], rest[others[k].rows], "float64")
                expected = (values @ one.coef + one.intercept) / (one.rho if nu else 1.0)
                assert_allclose(scores[held], expected, atol=1e-7)


def test_a_fold_without_one_class_says_the_other() -> None:
    X = np.array([[0.0], [1.0], [1.2], [5.0]])
    numbers, fold_of = np.array([0, 1, 1, 1]), np.array([0, 1, 2, 3])
    problems = _problems(numbers, "ovr")
    matrix = _matrix(X)
    scores = Folds(matrix, fold_of, tol=1e-9).scores(problems, _solved(matrix, problems).solutions)
    lonely = np.flatnonzero(problems.rows == 0)[0]
    assert scores[lonely] == 1.0  # without sample 0 there is only the other class


def test_balanced_multipliers_keep_their_bounds() -> None:
    random = np.random.default_rng(0)
    _, numbers = _classes(4, 5)
    problems = _problems(numbers, "ovo")
    a = random.uniform(size=problems.rows.size) * problems.upper
    for totals in (None, np.full(len(problems), 6.0)):
        found = balanced(problems, a, totals)
        assert (found >= 0).all()
        assert (found <= problems.upper).all()
        sums = [problems.sums(np.where(problems.signs == s, found, 0)) for s in (1, -1)]
        assert_allclose(sums[0], sums[1], atol=1e-12)
        if totals is not None:
            assert_allclose(sums[0], totals)


def test_sigmoids_of_several_machines_have_the_largest_likelihood() -> None:
    random = np.random.default_rng(2)
    offsets = np.array([0, 30, 33, 90])
    positive = random.random(90) < 0.4
    positive[[0, 30]], positive[[1, 31]] = True, False
    scores = random.normal(size=90) + np.where(positive, 1.0, -1.0)
    A, B = fit_sigmoids(scores, positive, offsets)
    for k in range(3):
        part = slice(offsets[k], offsets[k + 1])
        f, t = scores[part], positive[part]
        target = np.where(t, (t.sum() + 1) / (t.sum() + 2), 1 / ((~t).sum() + 2))

        def value(x: np.ndarray, f: np.ndarray = f, target: np.ndarray = target) -> float:
            z = x[0] * f + x[1]
            return float((np.logaddexp(0, z) - (1 - target) * z).sum())

        best = minimize(value, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14})
        assert value(np.array([A[k], B[k]])) <= best.fun + 1e-12
