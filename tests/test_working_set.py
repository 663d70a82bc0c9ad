"""L1 and elastic-net penalised logistic and softmax regression, against independent answers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from oracles import penalised_logistic, penalised_objective
from separatrix import _hot
from separatrix.data.memory import view_of
from separatrix.losses import LOSSES
from separatrix.multiclass import Coding
from separatrix.problem import Problem
from separatrix.solvers import _l1_part
from separatrix.solvers._logit import Curvature, SoftmaxTerms, best_intercept, stationary
from separatrix.solvers._loop import Below, Control, run
from separatrix.solvers._model_gram import GramModel, _best_length, violation
from separatrix.solvers.working_set import WorkingSet

KINDS = ("whole", "blocks", "sparse", "columns")


def problem_of(X, y, coding, weights=None, fit_intercept=True):
    """The problem of a coding."""
    classes = np.unique(y, return_inverse=True)[1].astype(np.int32)
    codes = Coding.of(coding, int(classes.max()) + 1).codes
    return Problem(view_of(X), classes, codes, joint=coding == "joint", loss=LOSSES["logistic"],
                   weights=weights, fit_intercept=fit_intercept)  # fmt: skip


def l1_max(problem):
    """The smallest λ₁ at which all weights are 0, whatever λ₂ is: the largest |Xᵀθ| at the best intercept."""
    codes = problem.codes[problem.classes]
    s = (1.0 if problem.weights is None else problem.weights[:, None]) * (codes != 0)
    chance = 1 / problem.columns if problem.joint else 0.5
    p = (s * (codes > 0)).sum(axis=0) / s.sum(axis=0) if problem.fit_intercept else chance
    return float(np.abs(problem.view.transposed(s * (p - (codes > 0)))).max())


def solve(problem, l1, l2=0.0, tol=1e-10, start=None, max_iter=200, max_time=None):
    """Result of the solver from zero weights, or from a start."""
    P, d = problem.columns, problem.view.shape[1]
    coef, intercept = (np.zeros((P, d)), np.zeros(P)) if start is None else start
    solver = WorkingSet(problem, l1=l1, l2=l2, coef=coef, intercept=intercept, tol=tol)
    return solver.finish(run(solver, Below(tol), max_iter=max_iter, max_time=max_time))


def data(n=90, d=12, K=3, seed=0):
    """Overlapping classes, features of different scales and means."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.argmax(X[:, :K] + random.normal(size=(n, K)), axis=1)
    return X * np.geomspace(0.3, 3.0, d) + np.linspace(-2, 2, d), y


@pytest.fixture
def kind(request, monkeypatch):
    """Force one of the models."""
    choose = _l1_part.Part._kind

    def forced(self, features):
        natural = choose(self, features)
        if request.param == "sparse" and not sparse.issparse(self.view.array):
            return natural
        return "whole" if self.terms.columns == 1 and request.param == "blocks" else request.param

    monkeypatch.setattr(_l1_part.Part, "_kind", forced)
    return request.param


@cache
def oracle(joint, l1, l2, fit_intercept):
    """The least objective of the data of the next test."""
    X, y = data(K=3 if joint else 2)
    X[np.abs(X) < 0.7] = 0.0
    return penalised_logistic(X, y, l1, l2, joint, fit_intercept)


@pytest.mark.parametrize("kind", KINDS, indirect=True)
@pytest.mark.parametrize(("l1", "l2"), [(1.0, 0.0), (8.0, 0.0), (2.0, 1.0)])
@pytest.mark.parametrize("coding", ["ovr", "joint"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_model_meets_the_oracle(kind, coding, l1, l2, fit_intercept):
    dense, y = data(K=3 if coding == "joint" else 2)
    dense[np.abs(dense) < 0.7] = 0.0
    X = sparse.csr_array(dense) if kind == "sparse" else dense
    result = solve(problem_of(X, y, coding, fit_intercept=fit_intercept), l1, l2, tol=1e-8)
    certificate = result.certificate
    assert certificate.status == "converged"
    assert certificate.relative_gap <= 1e-8
    best = oracle(coding == "joint", l1, l2, fit_intercept)
    ours = penalised_objective(dense, y, result.coef, result.intercept, l1, l2, coding == "joint")
    assert ours == pytest.approx(certificate.primal, rel=1e-12)
    assert ours <= best * (1 + 1e-8)
    assert certificate.dual <= best * (1 + 1e-12)


@pytest.mark.parametrize(("coding", "ratio"), [("ovr", 1.0), ("ovr", 0.5), ("joint", 1.0), ("joint", 0.7)])
def test_scikit_learn_finds_no_better_weights(coding, ratio):
    from sklearn.linear_model import LogisticRegression

    # (With an even number of classes the L1 weights of a softmax need not be unique.)
    X, y = data(n=60, d=8, K=3 if coding == "joint" else 2, seed=3)
    C = 0.3
    peer = LogisticRegression(solver="saga", C=C, l1_ratio=ratio, tol=1e-10, max_iter=100_000).fit(X, y)
    l1, l2 = ratio / C, (1 - ratio) / C
    result = solve(problem_of(X, y, coding), l1, l2)
    assert result.certificate.relative_gap <= 1e-10
    theirs = penalised_objective(X, y, peer.coef_, peer.intercept_, l1, l2, coding == "joint")
    assert result.certificate.primal <= theirs * (1 + 1e-9)
    assert result.coef == pytest.approx(peer.coef_, abs=2e-4)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 40),
    d=st.integers(1, 12),
    K=st.integers(2, 4),
    share=st.floats(0.02, 1.2),
    l2=st.sampled_from([0.0, 0.0, 1.0]),
    coding=st.sampled_from(["ovr", "ovo", "joint"]),
    fit_intercept=st.booleans(),
)
def test_optimality_conditions(seed, n, d, K, share, l2, coding, fit_intercept):
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(n, d)) + random.normal(size=d), random.permutation(np.arange(n) % K)
    problem = problem_of(X, y, coding, random.integers(1, 3, size=n) * 1.0, fit_intercept)
    l1 = share * max(l1_max(problem), 1e-3)
    result = solve(problem, l1, l2, tol=1e-9)
    assert result.certificate.relative_gap <= 1e-9
    F = X @ result.coef.T + result.intercept
    codes = problem.codes[problem.classes]
    if problem.joint:
        p = np.exp(F - F.max(axis=1, keepdims=True))
        residual = (codes > 0) - p / p.sum(axis=1, keepdims=True)
    else:
        residual = codes / (1 + np.exp(codes * F))
    residual = residual * problem.weights[:, None]
    slope = (X.T @ residual).T - l2 * result.coef
    small = 3e-3 * l1
    assert np.all(np.abs(slope) <= l1 + small)
    used = np.abs(result.coef) > 1e-6
    assert np.abs(slope[used] - l1 * np.sign(result.coef[used])).max(initial=0.0) <= small
    if fit_intercept:
        assert np.abs(residual.sum(axis=0)).max() <= 1e-5 * n


@pytest.mark.parametrize("coding", ["ovr", "joint"])
def test_weights_are_repetitions(coding):
    X, y = data()
    s = np.random.default_rng(1).integers(0, 3, size=len(y))
    weighted = solve(problem_of(X, y, coding, weights=s.astype(float)), 2.0, 0.5)
    repeated = solve(problem_of(np.repeat(X, s, axis=0), np.repeat(y, s), coding), 2.0, 0.5)
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=1e-9)
    assert weighted.coef == pytest.approx(repeated.coef, abs=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("coding", ["ovr", "joint"])
def test_layouts_and_precisions_agree(coding, dtype):
    X, y = data()
    X = np.where(np.abs(X) > 0.5, X, 0.0).astype(dtype)
    first = solve(problem_of(X, y, coding), 2.0, tol=1e-7)
    for other in (np.asfortranarray(X), sparse.csr_array(X)):
        second = solve(problem_of(other, y, coding), 2.0, tol=1e-7)
        assert second.coef.dtype == dtype
        assert second.certificate.relative_gap <= 1e-7
        assert second.certificate.primal == pytest.approx(first.certificate.primal, rel=2e-7)


def test_joint_intercepts_are_unique():
    """Softmax does not see what all intercepts share: their sum is 0, whatever the start and the layout."""
    X, y = data()
    start = np.zeros((3, 12)), np.array([5.0, 5.0, 5.0])
    found = [solve(problem_of(A, y, "joint"), 2.0, start=begin)
             for A in (X, np.asfortranarray(X), sparse.csr_matrix(X)) for begin in (None, start)]  # fmt: skip
    for result in found:
        np.testing.assert_allclose(result.intercept, found[0].intercept, atol=1e-6)
        assert abs(result.intercept.sum()) < 1e-14


def test_two_classes_jointly_are_the_binary_problem():
    X, y = data(K=2)
    binary = solve(problem_of(X, y, "ovr"), 2.0, 1.0)
    joint = solve(problem_of(X, y, "joint"), 2.0, 2.0)
    assert joint.certificate.primal == pytest.approx(binary.certificate.primal, rel=1e-9)
    assert joint.coef[1] - joint.coef[0] == pytest.approx(binary.coef[0], abs=1e-4)


@pytest.mark.parametrize("coding", ["ovr", "joint"])
def test_a_large_penalty_ends_at_once(coding):
    X, y = data()
    problem = problem_of(X, y, coding)
    largest = l1_max(problem)
    result = solve(problem, largest * (1 + 1e-9), start=(np.ones((3, X.shape[1])), np.ones(3)))
    assert result.iterations == 1
    assert not result.coef.any()
    shares = np.bincount(y) / len(y)
    expected = np.log(shares / (1 - shares)) if coding == "ovr" else np.log(shares) - np.log(shares).mean()
    assert result.intercept == pytest.approx(expected, abs=1e-9)
    assert solve(problem, largest * 0.99).coef.any()


@pytest.mark.parametrize("coding", ["ovr", "joint"])
def test_a_warm_start_at_the_solution_is_done(coding):
    X, y = data()
    problem = problem_of(X, y, coding)
    first = solve(problem, 1.0)
    again = solve(problem, 1.0, start=(first.coef, first.intercept))
    assert again.iterations <= 2
    assert again.certificate.relative_gap <= 1e-10


@pytest.mark.parametrize("coding", ["ovr", "joint"])
def test_bad_scales_constants_and_copies(coding):
    random = np.random.default_rng(5)
    X = random.normal(size=(80, 6))
    y = np.argmax(X[:, :3] + random.normal(size=(80, 3)), axis=1)
    y[y == 2] = 1
    y[0] = 2  # a class with one sample
    X = np.column_stack([X[:, :1] * 1e-8, X[:, 1:2] * 1e8, X, X[:, 2], np.full(80, 7.0), np.zeros(80)])
    for layout in (X, sparse.csr_array(X)):
        result = solve(problem_of(layout, y, coding), 0.5, tol=1e-6)
        assert result.certificate.status == "converged"
        assert not result.coef[:, -2:].any()


class _Unhurried:
    def expired(self):
        return False


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dependent_features_of_unequal_size_do_not_slow_the_model(l2, dtype):
    """More features than samples: along most directions the Hessian does not bend, and sweeps crawl."""
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(40, 200)) * 10.0 ** rng.uniform(-3, 3, 200)).astype(dtype)
    ones = Curvature(np.ones((40, 1)), None)
    model = GramModel(view_of(X), ones, np.arange(200), np.zeros(200), False, "whole", False)
    exact = X.astype(np.float64)
    W, G = np.zeros((1, 200)), -(exact.T @ rng.normal(size=40))[None]
    D, _ = model.minimise(W, G, np.zeros(1), 0.5, l2, 1e-14, _Unhurried())  # as where steps got nowhere
    assert violation(W + D, G + D @ exact.T @ exact, 0.5, l2).max() <= 1e-5 * 0.5
    assert l2 > 0 or np.count_nonzero(D) <= 40


def test_the_best_length_of_a_step_is_that_of_a_fine_grid():
    rng = np.random.default_rng(0)
    for _ in range(50):
        now, move = rng.normal(size=6), rng.normal(size=6)
        now[0] = 0.0 if rng.random() < 0.2 else now[0]
        now[now == 0] = 0.1
        curve, l1 = rng.uniform(0.1, 3.0), rng.uniform(0.1, 2.0)
        slope = -rng.uniform(0.1, 8.0)
        smooth = slope - l1 * float(np.sign(now) @ move)
        t, zero = _best_length(now, move, l1, slope, curve)

        def value(t, smooth=smooth, curve=curve, l1=l1, now=now, move=move):
            return smooth * t + 0.5 * curve * t * t + l1 * float(np.abs(now + t * move).sum())

        assert value(t) <= min(value(each) for each in np.linspace(0, 3 * t + 1, 500)) + 1e-12
        assert zero < 0 or abs(now[zero] + t * move[zero]) < 1e-12


def test_a_class_without_weight_is_left_out():
    X, y = data()
    s = np.where(y == 1, 0.0, 1.0)
    result = solve(problem_of(X, y, "joint", weights=s), 1.0)
    alone = solve(problem_of(X[y != 1], y[y != 1], "joint"), 1.0)
    assert result.certificate.relative_gap <= 1e-10
    assert result.certificate.primal == pytest.approx(alone.certificate.primal, rel=1e-9)
    assert not result.coef[1].any()
    one_sided = solve(problem_of(X, y, "ovr", weights=s), 1.0)
    assert not one_sided.coef[1].any()
    assert one_sided.intercept[1] < -20


def test_wide_data_by_both_layouts():
    random = np.random.default_rng(2)
    X = random.normal(size=(60, 3000)) * (random.random((60, 3000)) < 0.1)
    y = np.arange(60) % 3
    X[:, :3] += 2 * np.eye(3)[y]
    dense, compressed = (
        solve(problem_of(layout, y, "joint"), 2.0, tol=1e-8) for layout in (X, sparse.csr_array(X))
    )
    assert dense.certificate.relative_gap <= 1e-8
    assert compressed.certificate.primal == pytest.approx(dense.certificate.primal, rel=2e-8)


def test_time_and_interrupts_leave_valid_weights():
    X, y = data()
    problem = problem_of(X, y, "joint")
    result = solve(problem, 0.1, tol=1e-15, max_time=0.0)
    assert result.certificate.status == "max_time"
    assert "raise max_time, scale the features" in result.certificate.message
    assert np.isfinite(result.coef).all()
    solver = WorkingSet(problem, l1=0.1, l2=0.0, coef=np.zeros((3, 12)), intercept=np.zeros(3), tol=1e-15)
    control = Control(None)
    steps = solver.steps(control)
    next(steps)
    control.interrupted = True
    assert next(steps).finished == "interrupted"
    assert list(steps) == []


def test_refuses_what_it_cannot_solve():
    X, y = data()
    problem = problem_of(X, y, "joint")
    with pytest.raises(ValueError, match="not both 0"):
        solve(problem, 0.0, 0.0)
    with pytest.raises(ValueError, match="logistic or squared hinge loss"):
        WorkingSet(Problem(problem.view, problem.classes, problem.codes), l1=1.0, l2=0.0,
                   coef=np.zeros((3, 12)), intercept=np.zeros(3), tol=1e-4)  # fmt: skip


def test_stationary_vectors():
    random = np.random.default_rng(0)
    rates = random.random((6, 6)) * np.geomspace(1e-12, 1, 6)
    a = stationary(rates)
    np.fill_diagonal(rates, 0.0)
    assert a.max() == 1.0
    assert a * rates.sum(axis=1) == pytest.approx(a @ rates, rel=1e-12)
    assert not stationary(np.array([[0.0, 1.0], [0.0, 0.0]])).any()


@pytest.mark.parametrize("kind", ["columns", "whole"], indirect=True)
def test_same_bits_in_every_instruction_set(kind):
    X, y = data(d=9)
    results = []
    used = _hot.instruction_set()
    try:
        for name in _hot.instruction_sets():
            _hot.use_instruction_set(name)
            results += [solve(problem_of(X, y, coding), 1.0).coef for coding in ("ovr",)]
    finally:
        _hot.use_instruction_set(used)
    for other in results[1:]:
        assert np.array_equal(other, results[0])


def texts(n=300, d=4000, stored=30, seed=0):
    """Separable sparse samples, some features in many of them."""
    random = np.random.default_rng(seed)
    places = np.minimum((d * random.random(n * stored) ** 3).astype(int), d - 1)
    X = sparse.csr_array((random.poisson(1.0, n * stored) + 1.0, places, np.arange(n + 1) * stored), (n, d))
    X.sum_duplicates()
    return X, (X @ random.normal(size=d) > 0).astype(int)


@pytest.mark.parametrize("coding", ["ovr", "joint"])
def test_a_very_small_penalty_is_approached_by_larger_ones(coding, monkeypatch):
    problem = problem_of(*texts(), coding)
    l1 = 1e-7 * l1_max(problem)
    found = solve(problem, l1, tol=1e-6, max_iter=400)
    assert found.certificate.relative_gap <= (1e-6 if coding == "ovr" else 1e-3)  # rounding hides the rest
    monkeypatch.setattr(_l1_part, "_SMALL", 0.0)
    at_once = solve(problem, l1, tol=1e-6, max_iter=found.iterations)
    assert found.certificate.primal <= at_once.certificate.primal * (1 + 1e-6)


@pytest.mark.parametrize("max_iter", [1, 4, 9])
def test_a_fit_that_ends_on_the_way_is_judged_by_its_own_penalty(max_iter):
    problem = problem_of(*texts(), "ovr")
    l1 = 1e-7 * l1_max(problem)
    found = solve(problem, l1, l2=0.5 * l1, tol=1e-9, max_iter=max_iter)
    assert found.certificate.status == "max_iter"
    X, own = problem.view.array.toarray(), (found.coef, found.intercept)
    value = penalised_objective(X, problem.classes, *own, l1, 0.5 * l1, joint=False)
    assert found.certificate.primal == pytest.approx(value, rel=1e-9)
    best = solve(problem, l1, l2=0.5 * l1, tol=1e-9, max_iter=1000).certificate.primal
    assert found.certificate.dual <= best * (1 + 1e-9)


def test_steps_that_crawl_end_and_say_so(monkeypatch):
    monkeypatch.setattr(_l1_part, "_CRAWLING", 1)
    monkeypatch.setattr(_l1_part, "_SLOWEST", 1e-9)  # no step is quick enough
    problem = problem_of(*texts(), "ovr")
    found = solve(problem, 1e-3 * l1_max(problem), tol=1e-9, max_iter=1000)
    assert found.certificate.status == "max_iter"
    assert found.iterations < 10
    assert "steps crawl: lower C" in found.certificate.message


def test_blocks_give_way_to_the_whole_hessian_where_features_are_alike(monkeypatch):
    random = np.random.default_rng(0)
    X, y = data(n=400, d=15, K=4)
    problem = problem_of(X @ (np.eye(15) + 2 * random.normal(size=(15, 15))), y, "joint")
    l1 = 1e-3 * l1_max(problem)
    best = solve(problem, l1)
    monkeypatch.setattr(_l1_part, "_WHOLE_WORK", 0.0)
    found = solve(problem, l1)
    monkeypatch.setattr(_l1_part, "_MOST_WORK", 0.0)
    blocks = solve(problem, l1)
    assert found.certificate.relative_gap <= 1e-10
    assert found.certificate.primal == pytest.approx(best.certificate.primal, rel=1e-9)
    assert found.iterations < blocks.iterations


def test_intercepts_of_a_softmax_keep_no_part_that_all_classes_share():
    random = np.random.default_rng(0)
    classes = random.integers(3, size=500)
    F, intercept = 5 * random.normal(size=(500, 3)), np.array([1e9, 1e9 + 1, 1e9 - 1])
    F += intercept
    shift = np.ptp(F - intercept)
    terms = SoftmaxTerms(classes, 3, np.ones(500))
    best_intercept(terms, F, intercept)
    assert np.abs(intercept).max() < 100
    assert abs(intercept.sum()) < 1e-9
    assert np.abs(terms.theta.sum(axis=0)).max() < 1e-11
    assert np.abs(F).max() < 100 + shift


def test_the_best_intercept_does_not_search_where_rounding_hides_all_gain():
    random = np.random.default_rng(0)
    terms = SoftmaxTerms(random.integers(3, size=2000), 3, np.ones(2000))
    F, intercept = random.normal(size=(2000, 3)) + 1e7 * random.random((2000, 1)), np.zeros(3)
    best_intercept(terms, F, intercept)
    asked = []
    value = terms.value
    terms.value = lambda scores: asked.append(1) or value(scores)
    for size in (1e-6, 1e-7, 1e-8):
        off = size * np.array([1.0, -1.0, 0.0])
        F += off
        intercept += off
        best_intercept(terms, F, intercept)
        assert np.abs(terms.theta.sum(axis=0)).max() < 1e-7
    assert len(asked) <= 3
