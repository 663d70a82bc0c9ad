"""Linear support vector machines: against LIBLINEAR, LIBSVM and plain NumPy, on every route."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR
from sklearn.svm import LinearSVC as PeerSVC
from sklearn.svm import LinearSVR as PeerSVR

from separatrix import _hot
from separatrix.data.memory import view_of
from separatrix.losses import LOSSES
from separatrix.models.linear_svm import LinearSVC
from separatrix.models.linear_svr import LinearSVR
from separatrix.problem import Problem
from separatrix.solvers import _box_finish, _box_group, box_rounds
from separatrix.solvers._box_dual import BoxDual
from separatrix.solvers._loop import Below, run
from separatrix.solvers.box_coordinate import BoxCoordinate
from separatrix.solvers.crammer_singer import LinearCrammerSinger
from separatrix.solvers.semismooth_newton import SemismoothNewton
from sklearn_checks import checked

IRIS, SPECIES = load_iris(return_X_y=True)
NUMBERS, TARGETS = load_diabetes(return_X_y=True)
NUMBERS, TARGETS = NUMBERS[:150] * 10, TARGETS[:150] / 50

ESTIMATORS = [
    LinearSVC(),
    LinearSVC(loss="hinge"),
    LinearSVC(penalty="l1"),
    LinearSVC(loss="hinge", multiclass="ovo", penalize_intercept=False),
    LinearSVC(multi_class="crammer_singer"),
    LinearSVC(solver="dual"),
    LinearSVC(probability=True),
    LinearSVR(),
    LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1),
]


def excuse(estimator, name):
    if "sample_weight_equivalence" not in name:
        return None
    if isinstance(estimator, LinearSVC) and estimator.solver == "dual":
        return "it compares to 1e-7; coordinate descent promises tol"
    if getattr(estimator, "probability", False):
        return "a repeated sample may lie in another fold than its twin"
    return None


@checked(ESTIMATORS, excuse)
def test_check_estimator(estimator, check):
    check(estimator)


def objective(model, X, y, C, *, loss, penalty="l2", scaling=1.0, weights=None, epsilon=None):
    """The objective of fitted weights, written out."""
    W, b = (
        np.atleast_2d(np.asarray(model.coef_, dtype=float)),
        np.atleast_1d(np.asarray(model.intercept_, dtype=float)),
    )
    F = np.asarray(X, dtype=float) @ W.T + b
    s = np.ones(len(y)) if weights is None else weights
    if epsilon is not None:
        short = np.maximum(np.abs(F[:, 0] - y) - epsilon, 0)[:, None]
    else:
        classes = np.unique(y)
        Y = (
            np.where(y[:, None] == classes, 1, -1)
            if len(classes) > 2
            else np.where(y == classes[1], 1, -1)[:, None]
        )
        short = np.maximum(1 - Y * F, 0)
    losses = (s @ (short if loss in ("hinge", "epsilon_insensitive") else short**2)).sum()
    if penalty == "l1":
        return np.abs(W).sum() + np.abs(b / scaling).sum() + C * losses
    return 0.5 * (W**2).sum() + (0 if scaling is None else 0.5 * ((b / scaling) ** 2).sum()) + C * losses


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("scaling", [None, 1.0, 5.0])
@pytest.mark.parametrize(
    ("loss", "penalty"), [("hinge", "l2"), ("squared_hinge", "l2"), ("squared_hinge", "l1")]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_objective_is_liblinears(loss, penalty, scaling, C):
    X, y = (IRIS - IRIS.mean(axis=0))[:, :3], SPECIES
    intercept = {"fit_intercept": False} if scaling is None else {"intercept_scaling": scaling}
    settings = {"loss": loss, "penalty": penalty, "C": C, **intercept}
    ours = LinearSVC(tol=1e-9, **settings).fit(X, y)
    peer = PeerSVC(tol=1e-10, max_iter=100000, dual=penalty == "l2", random_state=0, **settings).fit(X, y)
    values = [objective(m, X, y, C, loss=loss, penalty=penalty, scaling=scaling or 1.0) for m in (ours, peer)]
    assert values[0] <= values[1] * (1 + 1e-7)
    assert_allclose(values[0], values[1], rtol=1e-4 if penalty == "l1" else 1e-6)
    assert_allclose(ours.certificate_.primal, values[0], rtol=1e-9)
    assert ours.certificate_.status == "converged"
    assert ours.certificate_.dual <= values[0] * (1 + 1e-12)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_regression_is_liblinears(loss, C):
    settings = {"loss": loss, "C": C, "epsilon": 0.3}
    ours = LinearSVR(tol=1e-9, **settings).fit(NUMBERS, TARGETS)
    peer = PeerSVR(tol=1e-9, max_iter=100000, dual=True, random_state=0, **settings).fit(NUMBERS, TARGETS)
    values = [objective(m, NUMBERS, TARGETS, C, loss=loss, epsilon=0.3) for m in (ours, peer)]
    assert values[0] <= values[1] * (1 + 1e-7)
    assert_allclose(ours.coef_, peer.coef_, atol=1e-3 * np.abs(peer.coef_).max())
    assert_allclose(ours.certificate_.primal, values[0], rtol=1e-9)


@pytest.mark.parametrize("solver", ["newton", "dual"])
def test_textbook_problem_is_libsvms(solver):
    X, y = IRIS[50:], SPECIES[50:]
    ours = LinearSVC(loss="hinge", penalize_intercept=False, tol=1e-6, solver=solver, max_iter=20000).fit(
        X, y
    )
    peer = SVC(kernel="linear", tol=1e-8).fit(X, y)
    assert ours.certificate_.status == "converged"
    assert_allclose(ours.coef_, peer.coef_, atol=2e-2 if solver == "dual" else 1e-4)
    values = [objective(m, X, y, 1.0, loss="hinge", scaling=None) for m in (ours, peer)]
    assert_allclose(values[0], values[1], rtol=2e-6)


def test_textbook_regression_is_libsvms():
    ours = LinearSVR(epsilon=0.2, penalize_intercept=False, tol=1e-7).fit(NUMBERS, TARGETS)
    peer = SVR(kernel="linear", epsilon=0.2, tol=1e-8).fit(NUMBERS, TARGETS)
    assert_allclose(ours.coef_, peer.coef_.ravel(), atol=1e-4)
    assert_allclose(ours.intercept_, peer.intercept_, atol=1e-4)


LOSS_NAMES = ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive")


def problem_of(loss, *, n=60, d=5, csr=False, dtype=np.float64, fit_intercept=True, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)).astype(dtype)
    y = (X @ rng.normal(size=d) + rng.normal(size=n) > 0).astype(np.int32)
    view = view_of(sparse.csr_array(X) if csr else X)
    weights = rng.integers(0, 3, n).astype(float)
    if "epsilon" in loss:
        targets = X @ rng.normal(size=d) + 0.5 * rng.normal(size=n)
        codes, classes = np.ones((1, 1), dtype=np.int8), np.zeros(n, dtype=np.int32)
        row = LOSSES[loss].with_epsilon(0.2)
        return Problem(
            view, classes, codes, loss=row, weights=weights, targets=targets, fit_intercept=fit_intercept
        )
    codes = np.array([[-1], [1]], dtype=np.int8)
    return Problem(view, y, codes, loss=LOSSES[loss], weights=weights, fit_intercept=fit_intercept)


def solve(kind, problem, tol=1e-7, **options):
    d = problem.view.shape[1]
    zeros = {"coef": np.zeros((problem.columns, d)), "intercept": np.zeros(problem.columns)}
    solver = kind(problem, C=1.0, tol=tol, seed=0, **{"scaling": 1.0, **zeros, **options})
    return solver.finish(run(solver, Below(tol), max_iter=5000))


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("scaling", [None, 2.0])
@pytest.mark.parametrize("csr", [False, True])
def test_routes_meet(loss, scaling, csr):
    problem = problem_of(loss, csr=csr)
    newton = solve(SemismoothNewton, problem, scaling=scaling)
    dual = solve(BoxCoordinate, problem, tol=1e-6, scaling=scaling)
    assert newton.certificate.status == dual.certificate.status == "converged"
    assert_allclose(newton.certificate.primal, dual.certificate.primal, rtol=2e-6)


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("scaling", [None, 1.0])
def test_more_features_than_samples(loss, scaling):
    """Newton's steps then come from inner products of samples."""
    problem = problem_of(loss, n=30, d=80)
    newton = solve(SemismoothNewton, problem, scaling=scaling)
    dual = solve(BoxCoordinate, problem, tol=1e-5, scaling=scaling)
    assert newton.certificate.status == "converged"
    assert dual.certificate.relative_gap < 1e-3
    # Coordinate descent may stop early here, but never proves what is not so.
    assert (
        dual.certificate.dual * (1 - 1e-9)
        <= newton.certificate.primal
        <= dual.certificate.primal * (1 + 1e-7)
    )


@pytest.mark.parametrize("kind", [SemismoothNewton, BoxCoordinate])
@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_single_precision_stays(kind, loss):
    problem = problem_of(loss, dtype=np.float32)
    result = solve(kind, problem, tol=1e-4)
    assert result.coef.dtype == result.intercept.dtype == np.float32
    assert result.certificate.status == "converged"
    exact = solve(SemismoothNewton, problem_of(loss), tol=1e-9)
    assert_allclose(result.certificate.primal, exact.certificate.primal, rtol=2e-4)


@pytest.mark.parametrize("kind", [SemismoothNewton, BoxCoordinate])
@pytest.mark.parametrize("loss", LOSS_NAMES)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=6)
def test_bounds_hold(kind, loss, seed):
    """Whenever a fit stops, its bound is below and its objective above the optimum."""
    problem = problem_of(loss, n=25, d=3, seed=seed)
    d = problem.view.shape[1]
    best = solve(SemismoothNewton, problem, tol=1e-8).certificate
    for steps in (0, 1, 3):
        solver = kind(
            problem, C=1.0, scaling=1.0, coef=np.zeros((1, d)), intercept=np.zeros(1), tol=1e-8, seed=0
        )
        early = solver.finish(run(solver, Below(1e-8), max_iter=steps)).certificate
        slack = 1e-9 * (1 + best.primal)
        assert early.dual <= best.primal + slack
        assert early.primal >= best.dual - slack


def slow_response(f, target, code, U, v0, rho, epsilon, bounded):
    """One sample's dual variable and whether it is free, by the formula."""
    high = (U if bounded else np.inf) if code is None or code > 0 else 0.0
    low = -(U if bounded else np.inf) if code is None or code < 0 else 0.0
    if U == 0:
        low = high = 0.0
    z = v0 - rho * U * (f - target)
    soft = np.sign(z) * max(abs(z) - rho * U * epsilon, 0.0)
    return min(max(soft, low), high), low < soft < high and soft != 0


@pytest.mark.parametrize("name", _hot.instruction_sets())
@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize("n", [1, 7, 20])
def test_response_is_the_formula(name, bounded, numbers, n):
    rng = np.random.default_rng(n)
    f, q, U = rng.normal(size=n), rng.normal(size=n), rng.integers(0, 3, n).astype(float)
    codes, targets = rng.integers(-1, 2, n).astype(np.int8), rng.normal(size=n)
    v0 = U * rng.random(n) * (1 if numbers else codes)
    epsilon, rho, t = (0.1 if numbers else 0.0), 1.5, 0.3
    v, inside = np.empty(n), np.empty(n, dtype=np.uint8)
    chosen = _hot.instruction_set()
    _hot.use_instruction_set(name)
    try:
        sums = _hot.respond(
            f,
            q,
            t,
            None if numbers else codes,
            targets if numbers else None,
            U,
            v0,
            rho,
            epsilon,
            bounded,
            v,
            inside,
        )
    finally:
        _hot.use_instruction_set(chosen)
    at = f + t * q
    U = U if numbers else np.where(codes != 0, U, 0.0)
    target = targets if numbers else codes.astype(float)
    expected = [
        slow_response(at[i], target[i], None if numbers else codes[i], U[i], v0[i], rho, epsilon, bounded)
        for i in range(n)
    ]
    values, free = (np.array(part) for part in zip(*expected, strict=True))
    assert_allclose(v, values, atol=1e-12)
    assert_array_equal(inside.astype(bool), free)
    short = np.maximum(np.abs(at - target) - epsilon if numbers else 1 - codes * at, 0) * (U > 0)
    losses = U @ (short if bounded else short**2)
    linear = values @ target - epsilon * np.abs(values).sum()
    square = sum(a**2 / (4 * u) for a, u in zip(values, U, strict=True) if u > 0)
    assert_allclose(sums, [values @ q, (rho * U * q**2)[free].sum(), losses, linear, square], atol=1e-10)


@pytest.mark.parametrize("name", _hot.instruction_sets())
@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("csr", [False, True])
def test_one_epoch_is_the_formula(name, loss, csr):
    """The compiled pass against one written out, for one column and for several."""
    problem = problem_of(loss, n=20, d=6, csr=csr)
    columns = 1 if problem.targets is not None else 3
    if columns > 1:
        rng = np.random.default_rng(1)
        classes = rng.integers(0, 3, 20).astype(np.int32)
        codes = (2 * np.eye(3, dtype=np.int8) - 1).astype(np.int8)
        problem = Problem(problem.view, classes, codes, loss=problem.loss, weights=problem.weights)
    chosen = _hot.instruction_set()
    _hot.use_instruction_set(name)
    try:
        zeros = {"coef": np.zeros((columns, 6)), "intercept": np.zeros(columns)}
        solver = BoxCoordinate(problem, C=1.0, scaling=1.0, tol=1e-9, seed=0, **zeros)
        group = solver.groups[0]
        run(solver, Below(0.0), max_iter=1)
    finally:
        _hot.use_instruction_set(chosen)
    dual, X = BoxDual(problem, 1.0, 1.0), problem.view.array
    X = np.column_stack([X.toarray() if csr else X, np.ones(20)])
    W, V = np.zeros((columns, 7)), np.zeros((columns, 20))
    for i in group.awake:
        U = dual.upper[i]
        delta = 0.5 / U if dual.squared else 0.0
        h = X[i] @ X[i] + delta
        for k in range(columns):
            code = None if problem.targets is not None else problem.codes[problem.classes[i], k]
            target = problem.targets[i] if code is None else code
            z = V[k, i] - (W[k] @ X[i] - target + delta * V[k, i]) / h
            z = np.sign(z) * max(abs(z) - dual.epsilon / h, 0.0)
            end = np.inf if dual.squared else U
            z = np.clip(
                z, -end if code is None or code < 0 else 0.0, end if code is None or code > 0 else 0.0
            )
            W[k] += (z - V[k, i]) * X[i]
            V[k, i] = z
    assert_allclose(group.v[:, :columns].T, V, atol=1e-12)
    assert_allclose(group.weights[:, :columns].T, W[:, :-1], atol=1e-12)
    assert_allclose(group.offsets[:columns], W[:, -1], atol=1e-12)


@pytest.mark.parametrize("solver", ["newton", "dual"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_same_bits_for_any_number_of_threads(solver, loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 12))
    y = np.argmax(X @ rng.normal(size=(12, 20)) + rng.gumbel(size=(20000, 20)), axis=1)
    settings = {"loss": loss, "solver": solver, "max_iter": 6}
    fits = [LinearSVC(n_jobs=jobs, **settings).fit(X, y) for jobs in (1, 2)]
    assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert_array_equal(fits[0].intercept_, fits[1].intercept_)


def test_coordinate_descent_that_crawls_names_the_solver_that_does_not():
    settings = {"loss": "hinge", "C": 1e4, "penalize_intercept": False}
    with pytest.warns(ConvergenceWarning, match="solver='auto'"):
        crawling = LinearSVC(solver="dual", max_iter=50, **settings).fit(IRIS, SPECIES)
    found = LinearSVC(solver="auto", max_iter=200, **settings).fit(IRIS, SPECIES).certificate_
    assert found.status == "converged"
    assert found.primal < crawling.certificate_.primal


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("tol", [1e-4, 1e-9])
def test_coordinate_descent_moves_samples_of_zeros(columns, tol):
    random = np.random.default_rng(3)
    X, y = sparse.random(120, 400, 0.004, "csr", random_state=3), random.integers(columns, size=120)
    assert (np.diff(X.indptr) == 0).sum() > 10
    common = {"loss": "hinge", "fit_intercept": False, "tol": tol}
    dual, newton = (LinearSVC(solver=solver, **common).fit(X, y) for solver in ("dual", "newton"))
    assert dual.certificate_.status == "converged"
    assert dual.n_iter_ < 100
    assert_allclose(dual.certificate_.primal, newton.certificate_.primal, rtol=2 * tol)
    numbers = random.normal(size=120)
    machine = LinearSVR(solver="dual", epsilon=0.3, fit_intercept=False, tol=tol).fit(X, numbers)
    assert machine.certificate_.status == "converged"


@pytest.mark.parametrize("l1", [False, True])
def test_dual_variables_that_overflow_prove_nothing(l1):
    classes = (SPECIES > 0).astype(np.int32)
    problem = Problem(view_of(IRIS), classes, np.array([[-1], [1]]), loss=LOSSES["squared_hinge"])
    dual = BoxDual(problem, 1.0, None, l1=l1)
    V = np.where(SPECIES > 0, 1e200, -1e200)[None]
    with np.errstate(over="ignore", invalid="ignore"):
        found = dual.evaluate(np.zeros((1, 4)), np.zeros(1), V)
    assert_array_equal(found.dual, [0.0])
    assert found.relative_gap == 1.0


def test_samples_of_rows_show_the_way_only():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30000, 4))
    y = X @ rng.normal(size=4) + rng.logistic(size=30000) > 0
    for loss in ("hinge", "squared_hinge"):
        cold = LinearSVC(loss=loss, tol=1e-8).fit(X, y)
        warm = cold.set_params(warm_start=True).fit(X, y)
        assert cold.certificate_.status == "converged"
        assert_allclose(objective(cold, X, y, 1.0, loss=loss), warm.certificate_.primal, rtol=1e-7)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("change", ["large C", "unscaled", "both", "wide"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hard_problems_end(loss, change):
    X, y, C = IRIS.copy(), SPECIES, 1.0
    if change in ("unscaled", "both"):
        X = X * np.array([1e6, 1.0, 1e-3, 1e3]) + np.array([0.0, 1e3, 0.0, 0.0])
    if change in ("large C", "both"):
        C = 1e6
    if change == "wide":
        X, y, C = np.random.default_rng(0).normal(size=(40, 3000)), np.arange(40) % 2, 1e6
    model = LinearSVC(loss=loss, C=C, max_time=20).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.certificate_.relative_gap < 1e-3
    assert model.score(X, y) > 0.7


def test_no_time_leaves_a_model():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 50)), rng.integers(0, 3, 5000)
    for solver in ("newton", "dual"):
        with pytest.warns(ConvergenceWarning, match="max_time"):
            model = LinearSVC(loss="hinge", solver=solver, max_time=1e-6, tol=1e-9).fit(X, y)
        assert model.certificate_.status == "max_time"
        assert model.predict(X).shape == (5000,)
        assert model.certificate_.dual <= model.certificate_.primal


def test_multiclass_codings():
    for name, columns in (("ovr", 3), ("ovo", 3), ("joint", 3)):
        model = LinearSVC(multiclass=name, C=10.0).fit(IRIS, SPECIES)
        assert model.coef_.shape == (columns, 4)
        assert model.score(IRIS, SPECIES) > 0.93
    pair = LinearSVC(multiclass="ovo", loss="hinge", tol=1e-7).fit(IRIS, SPECIES)
    alone = LinearSVC(loss="hinge", tol=1e-7).fit(IRIS[SPECIES != 1], SPECIES[SPECIES != 1])
    assert_allclose(
        pair.coef_[1], -alone.coef_[0], atol=1e-5
    )  # pairs have the first class on the positive side


def test_joint_is_liblinears():
    ours = LinearSVC(multi_class="crammer_singer", tol=1e-7).fit(IRIS, SPECIES)
    peer = PeerSVC(multi_class="crammer_singer", tol=1e-6, max_iter=100000, random_state=0).fit(IRIS, SPECIES)
    assert_allclose(ours.coef_, peer.coef_, atol=2e-3)


def test_weight_two_is_twice_and_weight_zero_absent():
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, 150)
    rows = np.repeat(np.arange(150), weights)
    for loss in ("hinge", "squared_hinge"):
        weighted = LinearSVC(loss=loss, tol=1e-8).fit(IRIS, SPECIES, sample_weight=weights)
        repeated = LinearSVC(loss=loss, tol=1e-8).fit(IRIS[rows], SPECIES[rows])
        assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)


def test_probabilities():
    model = LinearSVC(probability=True).fit(IRIS, SPECIES)
    p = model.predict_proba(IRIS)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(p.argmax(axis=1), model.predict(IRIS))
    assert -np.log(p[np.arange(150), SPECIES]).mean() < 0.5
    assert_allclose(model.predict_log_proba(IRIS), np.log(p))
    again = LinearSVC(probability=True).fit(IRIS, SPECIES)
    assert_array_equal(again.predict_proba(IRIS), p)
    pairs = LinearSVC(probability=True, multiclass="ovo").fit(IRIS, SPECIES)
    assert_array_equal(pairs.predict_proba(IRIS).argmax(axis=1), pairs.predict(IRIS))
    two = LinearSVC(probability=True).fit(IRIS, SPECIES == 0)
    assert two.predict_proba(IRIS).shape == (150, 2)
    assert not hasattr(LinearSVC().fit(IRIS, SPECIES), "predict_proba")
    with pytest.raises(ValueError, match="only one sample"):
        LinearSVC(probability=True).fit(IRIS[:101], SPECIES[:101])


def test_warm_start_goes_on():
    model = LinearSVC(loss="hinge", warm_start=True).fit(IRIS, SPECIES)
    first = model.n_iter_
    assert model.fit(IRIS, SPECIES).n_iter_ < first
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(IRIS[:, :2], SPECIES)
    sparse_model = LinearSVC(solver="dual", warm_start=True, tol=1e-5, max_iter=5000).fit(IRIS, SPECIES)
    first = sparse_model.n_iter_
    assert sparse_model.fit(IRIS, SPECIES).n_iter_ <= first


@pytest.mark.parametrize("by_rounds", [False, True])
def test_others_finish_what_is_slow(by_rounds, monkeypatch):
    monkeypatch.setattr(_box_group, "_EPOCHS", 5)
    monkeypatch.setattr(_box_group, "SLOW", 0)
    monkeypatch.setattr(_box_finish.Finish, "pays", True)
    monkeypatch.setattr(box_rounds, "suitable", lambda *_: by_rounds)
    rng = np.random.default_rng(0)
    X = sparse.random_array((150, 300), density=0.1, rng=rng, format="csr") * 30.0
    y = rng.integers(0, 3, 150)
    problem = Problem(
        view_of(X), y.astype(np.int32), (2 * np.eye(3) - 1).astype(np.int8), loss=LOSSES["hinge"]
    )
    result = solve(BoxCoordinate, problem, tol=1e-8, newton=True)
    assert result.certificate.status == "converged"
    assert any("epoch" not in record for record in result.history)


def test_bad_input_is_refused_by_name():
    for parameters, words in (
        ({"penalty": "l1", "loss": "hinge"}, "Unsupported set of arguments.*pairs that exist"),
        ({"penalty": "l1", "dual": True}, "Unsupported set of arguments.*dual='auto'"),
        ({"loss": "hinge", "dual": False}, "Unsupported set of arguments.*dual='auto'"),
        ({"penalty": "l1", "solver": "newton"}, "working-set"),
        ({"solver": "working-set"}, "penalty='l1'"),
        ({"multi_class": "crammer_singer", "multiclass": "ovo"}, "contradict"),
        ({"multiclass": "joint", "penalty": "l1"}, "L2 penalty only"),
        ({"multiclass": "joint", "penalize_intercept": False}, "intercept_scaling"),
        ({"C": -1.0}, "'C'"),
    ):
        with pytest.raises(ValueError, match=words):
            LinearSVC(**parameters).fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match="'epsilon'"):
        LinearSVR(epsilon=-0.1).fit(NUMBERS, TARGETS)
    with pytest.raises(ValueError, match="belong to the same class"):
        LinearSVC().fit(IRIS, SPECIES, sample_weight=(SPECIES == 0).astype(float))
    with pytest.raises(ValueError, match="one of the losses"):
        BoxDual(
            Problem(view_of(IRIS), SPECIES.astype(np.int32), np.eye(3), loss=LOSSES["logistic"]), 1.0, 1.0
        )


def test_scikit_learns_parameters_and_attributes():
    for ours, peer in ((LinearSVC(), PeerSVC()), (LinearSVR(), PeerSVR())):
        parameters = ours.get_params()
        assert {name: parameters[name] for name in peer.get_params()} == peer.get_params()
    for y in (SPECIES, SPECIES == 0):
        ours, peer = LinearSVC().fit(IRIS, y), PeerSVC(random_state=0).fit(IRIS, y)
        for name in ("coef_", "intercept_", "classes_"):
            assert getattr(ours, name).shape == getattr(peer, name).shape
        assert isinstance(ours.n_iter_, int)
    ours, peer = LinearSVR().fit(NUMBERS, TARGETS), PeerSVR(random_state=0).fit(NUMBERS, TARGETS)
    assert ours.coef_.shape == peer.coef_.shape
    assert np.shape(ours.intercept_) == np.shape(peer.intercept_)


@pytest.mark.parametrize(
    ("shape", "density", "loss", "method"),
    [
        ((300, 40), None, "hinge", "newton"),
        ((40, 300), None, "squared_hinge", "newton"),
        ((40, 300), None, "hinge", "auto"),
        ((20, 300), None, "hinge", "newton"),
        ((300, 400), None, "squared_hinge", "auto"),
        ((300, 40), 0.1, "hinge", "newton"),
        ((100, 900), 0.02, "squared_hinge", "auto"),
        ((1200, 2000), 0.002, "hinge", "auto"),
    ],
)
def test_the_method_follows_the_shape(shape, density, loss, method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    if density is not None:
        X = sparse.random_array(shape, density=density, rng=rng, format="csr")
    problem = Problem(view_of(X), np.zeros(shape[0], dtype=np.int32), np.array([[-1], [1]]))
    assert LinearSVC(loss=loss)._method(problem) == method
    assert LinearSVC(loss=loss, solver="dual")._method(problem) == "dual"


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_more_features_than_samples_are_no_obstacle_at_a_large_c(loss):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((250, 600))
    y = rng.integers(0, 2, 250)
    found = LinearSVC(loss=loss, C=100.0).fit(X, y).certificate_
    assert found.status == "converged"
    assert found.relative_gap <= 1e-4


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_two_classes_learnt_jointly_are_one_hinge(storage, fit_intercept):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((120, 6)), rng.integers(0, 2, 120)
    s = rng.integers(0, 3, 120).astype(float)
    settings = {"multi_class": "crammer_singer", "C": 0.7, "fit_intercept": fit_intercept}
    model = LinearSVC(**settings, intercept_scaling=2.0, tol=1e-7).fit(storage(X), y, sample_weight=s)
    # Of the joint problem itself, by the solver of any number of classes.
    problem = Problem(
        view_of(storage(X)),
        y.astype(np.int32),
        (2 * np.eye(2) - 1).astype(np.int8),
        joint=True,
        loss=LOSSES["hinge"],
        weights=s,
        fit_intercept=fit_intercept,
    )
    solver = LinearCrammerSinger(problem, C=0.7, tol=1e-8, intercept_scaling=2.0, seed=0)
    expected = solver.finish(run(solver, Below(1e-8), max_iter=100_000))
    found = model.certificate_
    assert found.status == "converged"
    assert found.dual <= expected.certificate.primal * (1 + 1e-9)
    assert_allclose(found.primal, expected.certificate.primal, rtol=1e-6)
    assert_allclose(model.coef_[0], expected.coef[1] - expected.coef[0], atol=1e-3)
    assert_allclose(model.history_[-1]["objective"], found.primal, rtol=1e-6)
    # And by its formula, from what the model gives away.
    w, b = model.coef_[0] / 2, model.intercept_[0] / 2
    margins = np.where(y == 1, 1, -1) * 2 * (X @ w + b)
    primal = w @ w + (b / 2.0) ** 2 + 0.7 * s @ np.maximum(0, 1 - margins)
    assert_allclose(primal, found.primal, rtol=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_few_samples_of_large_weight_do_not_lead_multipliers_astray(seed):
    # Separable, C times the weights up to 1e5: the gap is far above the bound until the last.
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((220, 60))
    y = X @ rng.standard_normal(60) + 0.3 * rng.standard_normal(220) > 0
    weights = 10.0 ** rng.uniform(-2, 2, 220)
    options = {"loss": "hinge", "C": 1e3, "tol": 1e-6}
    fast = LinearSVC(**options, solver="newton").fit(X, y, sample_weight=weights)
    slow = LinearSVC(**options, solver="dual", max_iter=100_000).fit(X, y, sample_weight=weights)
    assert fast.certificate_.status == slow.certificate_.status == "converged"
    assert fast.certificate_.primal == pytest.approx(slow.certificate_.primal, rel=2e-6)


def test_a_gap_that_single_precision_cannot_close_is_told_as_such():
    rng = np.random.default_rng(0)
    X = (1000 + rng.standard_normal((60, 3))).astype(np.float32)
    y = X[:, 0] - X[:, 1] > 0
    with pytest.warns(ConvergenceWarning, match=r"above tol=1e-12: single precision ends here: .* float64"):
        LinearSVC(loss="hinge", C=100.0, tol=1e-12, max_iter=10_000).fit(X, y)


def test_single_precision_ends_a_fit_whose_weights_cannot_be_better():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(multi_class="crammer_singer", tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"above tol=1e-09: single precision ends here: .* float64"):
        model.fit(X.astype(np.float32), y)
    assert model.n_iter_ < 100
    assert model.certificate_.status == "max_iter"
    assert model.certificate_.relative_gap < 1e-6
    better = model.fit(X.astype(np.float32).astype(np.float64), y)
    assert better.certificate_.status == "converged"


@pytest.mark.parametrize(
    "parameters",
    [
        dict(),
        dict(loss="hinge", solver="dual"),
        dict(multiclass="ovo"),
        dict(penalty="l1"),
        dict(class_weight={0: 2.0, 1: 1.0, 2: 1.0}),
    ],
)
def test_several_columns_tell_the_gap_of_the_worst_one(parameters):
    X, y = load_iris(return_X_y=True)
    found = LinearSVC(C=0.1, tol=1e-2, **parameters).fit(X, y).certificate_
    assert found.relative_gap - 1e-12 <= found.worst_relative_gap <= 1.0
    assert "worst column" in str(found)
    assert LinearSVC().fit(X, y == 0).certificate_.worst_relative_gap is None
    # Stopped at once, the columns are far from their minima, each by its own part.
    with pytest.warns(ConvergenceWarning, match="worst column"):
        early = LinearSVC(C=1e4, tol=1e-9, max_iter=1, **parameters).fit(X, y).certificate_
    assert early.worst_relative_gap > early.relative_gap > 1e-9


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize(
    "loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "hinge", "squared_hinge"]
)
def test_coordinate_descent_finds_a_free_intercept_at_a_small_C(C, loss):
    random = np.random.default_rng(3)
    X = random.normal(size=(40, 5))
    numbers = X @ random.normal(size=5) + random.normal(size=40) + 3.0
    kind, y = (LinearSVR, numbers) if loss.endswith("insensitive") else (LinearSVC, numbers > 2.0)
    parameters = dict(loss=loss, C=C, tol=1e-5, penalize_intercept=False)
    model, exact = (kind(solver=s, **parameters).fit(X, y) for s in ("dual", "newton"))
    # The intercept crosses the scores soon, however little each sample may pull, and ends no fit too early.
    found = model.certificate_
    assert found.status == "converged"
    assert found.relative_gap <= 1e-5
    assert_allclose(found.primal, exact.certificate_.primal, rtol=1.1e-5)


@pytest.mark.parametrize("C", [1e4, 1e6])
def test_a_fit_that_rounding_halts_at_its_minimum_is_done(C):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    parameters = dict(loss="squared_epsilon_insensitive", C=C, epsilon=0.1, tol=1e-8)
    model = LinearSVR(penalize_intercept=False, **parameters).fit(X, X @ random.normal(size=2))
    found = model.certificate_
    assert found.status == "converged"
    assert found.relative_gap <= 1e-8
    assert model.history_[-1]["relative_gap"] <= 1e-8


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", [0, 10])
def test_an_unfinished_joint_fit_returns_the_weights_that_it_certifies(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(8, 80)) * 10 ** random.uniform(-4, 4, 80)
    y, C, every = np.arange(8) % 4, 1e5, np.arange(8)
    joint = dict(loss="hinge", multiclass="joint", fit_intercept=False)
    model = LinearSVC(C=C, tol=1e-8, max_iter=200, **joint).fit(X, y)
    W = model.coef_
    shortfall = X @ W.T - np.einsum("ij,ij->i", X, W[y])[:, None] + 1.0
    shortfall[every, y] = 0.0
    objective = 0.5 * np.vdot(W, W) + C * shortfall.max(axis=1).sum()
    rounding = 8 * C * np.finfo(float).eps * (abs(X) @ abs(W.T)).max()
    assert_allclose(model.certificate_.primal, objective, rtol=1e-3, atol=rounding)
