"""Dual coordinate descent for softmax regression: objective, certificate and the laws of weights and data."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from separatrix import _hot
from separatrix.data.memory import view_of
from separatrix.multiclass import Coding
from separatrix.problem import Problem
from separatrix.solvers import dual_coordinate
from separatrix.solvers._loop import Below, Control, run
from separatrix.solvers.dual_coordinate import SoftmaxDual


def solver(X, y, C=1.0, tol=1e-9, *, weights=None, fit_intercept=True, start=None, threads=1, seed=0):
    classes = len(np.unique(y))
    coding = Coding.of("joint" if classes > 2 else "ovr", classes)
    problem = Problem(
        view_of(X),
        np.asarray(y, dtype=np.int32),
        coding.codes,
        joint=coding.joint,
        weights=weights,
        fit_intercept=fit_intercept,
    )
    P, d = problem.columns, X.shape[1]
    coef, intercept = (np.zeros((P, d)), np.zeros(P)) if start is None else start
    return SoftmaxDual(problem, C=C, coef=coef, intercept=intercept, tol=tol, seed=seed, threads=threads)


def fit(X, y, C=1.0, tol=1e-9, max_iter=5000, **options):
    machine = solver(X, y, C, tol, **options)
    return machine.finish(run(machine, Below(tol), max_iter=max_iter))


def objective(X, y, coef, intercept, C, weights=None):
    """The problem as its formula has it, sample by sample."""
    X = X.toarray() if sparse.issparse(X) else X
    F = X.astype(float) @ coef.T.astype(float) + intercept
    if F.shape[1] == 1:
        F = np.column_stack([np.zeros(len(F)), F])
    loss = logsumexp(F, axis=1) - F[np.arange(len(F)), y]
    s = np.ones(len(F)) if weights is None else weights
    return C * (s @ loss) + 0.5 * np.sum(coef.astype(float) ** 2)


def blobs(n, d, classes, seed=0, spread=1.0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return random.normal(size=(n, d)) + random.normal(size=(classes, d))[y] * spread, y


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("n", "d", "classes", "C"),
    [
        (60, 5, 3, 1.0),
        (40, 90, 4, 1.0),
        (50, 4, 2, 1.0),
        (30, 60, 2, 10.0),
        (70, 3, 9, 0.1),
        (45, 6, 3, 90.0),
    ],
)
def test_objective_is_that_of_scikit_learn(n, d, classes, C, fit_intercept):
    X, y = blobs(n, d, classes)
    result = fit(X, y, C, fit_intercept=fit_intercept)
    peer = LogisticRegression(C=C, tol=1e-12, max_iter=100_000, fit_intercept=fit_intercept).fit(X, y)
    intercept = peer.intercept_ if fit_intercept else np.zeros(peer.coef_.shape[0])
    best = objective(X, y, peer.coef_, intercept, C)
    mine = objective(X, y, result.coef, result.intercept, C)
    assert result.certificate.status == "converged"
    assert mine <= best * (1 + 1e-9)
    assert mine >= best * (1 - 1e-8)
    np.testing.assert_allclose(result.certificate.primal, mine, rtol=1e-12)
    if not fit_intercept:
        assert not np.any(result.intercept)


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1e2, 1e4])
@pytest.mark.parametrize("classes", [2, 4])
def test_any_C_reaches_the_gap(C, classes):
    X, y = blobs(80, 3, classes, spread=0.5)
    result = fit(X, y, C, tol=1e-7)
    proof = result.certificate
    assert proof.status == "converged"
    assert proof.dual <= proof.primal
    assert proof.gap <= 1e-7 * proof.primal
    peer = LogisticRegression(C=C, tol=1e-12, max_iter=100_000).fit(X, y)
    best = objective(X, y, peer.coef_, peer.intercept_, C)
    assert proof.dual <= best * (1 + 1e-12)
    assert proof.primal <= best * (1 + 1e-7)


@pytest.mark.parametrize("classes", [2, 5])
def test_the_lower_bound_holds_before_convergence(classes):
    X, y = blobs(60, 20, classes, spread=0.3)
    best = fit(X, y, 1.0).certificate.primal
    for epochs in (1, 2, 4):
        proof = fit(X, y, 1.0, max_iter=epochs).certificate
        assert proof.dual <= best <= proof.primal * (1 + 1e-12)


@pytest.mark.parametrize("classes", [2, 3, 11])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tol", [1e-4, 1e-6])
def test_every_layout_gives_the_same_objective(classes, dtype, tol):
    X, y = blobs(70, 12, classes)
    X[np.abs(X) < 0.8] = 0.0
    X = X.astype(dtype)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    layouts = [X, np.asfortranarray(X), sparse.csr_array(X), wide, np.repeat(X, 2, axis=0)[::2]]
    results = [fit(layout, y, tol=tol) for layout in layouts]
    values = [r.certificate.primal for r in results]
    np.testing.assert_allclose(values, values[0], rtol=2 * tol)
    assert all(r.coef.dtype == dtype and r.intercept.dtype == dtype for r in results)
    assert all(r.certificate.status == "converged" for r in results)


def test_integers_are_read_block_by_block():
    random = np.random.default_rng(3)
    X = random.integers(0, 4, size=(50, 8))
    y = np.arange(50) % 3
    np.testing.assert_allclose(fit(X, y).coef, fit(X.astype(float), y).coef, atol=1e-4)


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 4), fit_intercept=st.booleans())
def test_weights_are_repetitions(seed, classes, fit_intercept):
    random = np.random.default_rng(seed)
    X, y = blobs(24, 5, classes, seed)
    weights = random.integers(0, 4, 24).astype(float)
    weights[:classes] = 1.0
    times = weights.astype(int)
    weighted = fit(X, y, weights=weights, tol=1e-10, fit_intercept=fit_intercept)
    repeated = fit(np.repeat(X, times, axis=0), np.repeat(y, times), tol=1e-10, fit_intercept=fit_intercept)
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-4)
    np.testing.assert_allclose(weighted.certificate.primal, repeated.certificate.primal, rtol=1e-9)
    kept = fit(X[times > 0], y[times > 0], weights=weights[times > 0], tol=1e-10, fit_intercept=fit_intercept)
    np.testing.assert_allclose(weighted.coef, kept.coef, atol=1e-4)


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_renaming_classes_permutes_the_columns(seed):
    X, y = blobs(30, 4, 4, seed)
    name = np.random.default_rng(seed).permutation(4)
    one, other = fit(X, y, tol=1e-10), fit(X, name[y], tol=1e-10)
    np.testing.assert_allclose(other.coef[name], one.coef, atol=1e-4)


def test_two_columns_are_one_with_twice_the_C():
    # Softmax with w₁ = −w₀ = w/2 has the penalty ¼‖w‖².
    X, y = blobs(50, 6, 2)
    problem = Problem(view_of(X), y.astype(np.int32), Coding.of("joint", 2).codes, joint=True)
    machine = SoftmaxDual(
        problem, C=0.5, coef=np.zeros((2, 6)), intercept=np.zeros(2), tol=1e-10, seed=0, threads=1
    )
    both = machine.finish(run(machine, Below(1e-10), max_iter=2000))
    single = fit(X, y, C=1.0, tol=1e-10)
    np.testing.assert_allclose(both.coef[1] - both.coef[0], single.coef[0], atol=1e-5)
    np.testing.assert_allclose(both.coef[0], -both.coef[1], atol=1e-10)
    np.testing.assert_allclose(2 * both.certificate.primal, single.certificate.primal, rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_duplicated_rows_with_different_labels(classes):
    X, y = blobs(20, 4, classes)
    X, y = np.vstack([X] * classes), np.concatenate([(y + k) % classes for k in range(classes)])
    result = fit(X, y, C=1.0)
    # Every row has every label: nothing can be learnt but equal shares.
    np.testing.assert_allclose(result.coef, 0.0, atol=1e-4)
    np.testing.assert_allclose(result.certificate.primal, len(y) * np.log(classes), rtol=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("size", [1e-8, 1e4, 1e8])
def test_scaled_features(classes, size):
    X, y = blobs(40, 3, classes, spread=0.2)
    C = 1.0 if size > 1 else 1e16
    result = fit(X * size, y, C / size**2 if size > 1 else C, tol=1e-7)
    peer = fit(X, y, C if size > 1 else C * size**2, tol=1e-7)
    # f depends on (size·w) only, and C/size² keeps the balance.
    np.testing.assert_allclose(result.certificate.primal * size**2, peer.certificate.primal, rtol=1e-6)


@pytest.mark.parametrize("classes", [2, 4])
def test_scores_of_ten_thousand(classes):
    X, y = blobs(40, 5, classes)
    X *= 1e3
    result = fit(X, y, C=1.0, tol=1e-4, max_iter=300)
    assert np.isfinite(result.coef).all()
    assert np.isfinite(result.certificate.primal)
    assert result.certificate.dual <= result.certificate.primal
    columns = result.coef.shape[0]
    start = (np.full((columns, 5), 5.0) * np.arange(1, 6), np.zeros(columns))
    assert np.isfinite(fit(X, y, C=1.0, tol=1e-3, start=start, max_iter=200).coef).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_a_start_at_the_optimum_stays_there(classes):
    X, y = blobs(60, 8, classes)
    first = fit(X, y, tol=1e-9)
    again = fit(X, y, tol=1e-7, start=(first.coef, first.intercept))
    assert again.iterations < first.iterations
    other = fit(X, y, C=3.0, tol=1e-9, start=(first.coef, first.intercept))
    np.testing.assert_allclose(other.certificate.primal, fit(X, y, C=3.0).certificate.primal, rtol=1e-8)


@pytest.mark.parametrize("classes", [2, 10])
def test_threads_and_seeds(classes):
    X, y = blobs(90, 30, classes)
    X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    one, two = fit(X, y, threads=1), fit(X, y, threads=3)
    np.testing.assert_array_equal(one.coef, two.coef)
    np.testing.assert_array_equal(one.intercept, two.intercept)
    other = fit(X, y, seed=7)
    np.testing.assert_allclose(one.certificate.primal, other.certificate.primal, rtol=1e-8)


@pytest.mark.parametrize("name", _hot.instruction_sets())
@pytest.mark.parametrize("tol", [1e-4, 1e-9])
def test_every_instruction_set_reaches_the_gap(name, tol):
    X, y = blobs(60, 20, 12)
    before = _hot.instruction_set()
    try:
        _hot.use_instruction_set(name)
        result = fit(X, y, tol=tol)
    finally:
        _hot.use_instruction_set(before)
    assert result.certificate.status == "converged"
    best = objective(X, y, result.coef, result.intercept, 1.0)
    np.testing.assert_allclose(best, fit(X, y, tol=1e-9).certificate.primal, rtol=2 * tol)


def test_single_precision_gives_way_to_double():
    # A tolerance that float32 parameters cannot prove, asked for as if they could.
    X, y = blobs(200, 4, 3, spread=0.2)
    machine = solver(X, y, C=1e3, tol=1e-5)
    machine.tol = 1e-10
    result = machine.finish(run(machine, Below(1e-10), max_iter=3000))
    assert result.certificate.status == "converged"


def test_history_and_certificate():
    X, y = blobs(60, 5, 3)
    result = fit(X, y)
    assert result.iterations == len(result.history) == result.history[-1]["epoch"]
    assert result.history[-1]["relative_gap"] == result.certificate.relative_gap <= 1e-9
    assert result.certificate.samples == 60


def test_time_and_interruption_leave_a_valid_model():
    X, y = blobs(3000, 400, 10, spread=0.05)
    machine = solver(X, y, C=1e3, tol=0.0)
    begun = time.process_time()  # of this process alone: a busy machine costs it nothing
    outcome = run(machine, Below(0.0), max_iter=10**6, max_time=0.2)
    result = machine.finish(outcome)
    assert outcome.status == "max_time"
    assert time.process_time() - begun < 20
    assert np.isfinite(result.coef).all()
    assert result.certificate.dual <= result.certificate.primal
    stopped = Control(None)
    stopped.interrupted = True
    machine = solver(X, y)
    assert list(machine.steps(stopped)) == []
    assert np.isfinite(objective(X, y, machine.finish(outcome).coef, np.zeros(10), 1.0))


def test_what_it_refuses():
    X, y = blobs(20, 3, 3)
    with pytest.raises(ValueError, match="finite C"):
        solver(X, y, C=np.inf)
    with pytest.raises(ValueError, match="leave the class out"):
        solver(X, y, weights=np.where(y == 1, 0.0, 1.0))
    problem = Problem(view_of(X), y.astype(np.int32), Coding.of("ovr", 3).codes)
    with pytest.raises(ValueError, match="jointly"):
        SoftmaxDual(problem, C=1.0, coef=np.zeros((3, 3)), intercept=np.zeros(3), tol=1e-4, seed=0)


def word_counts(n, d, classes):
    random = np.random.default_rng(0)
    words = 1.0 / np.arange(1, d + 1)
    lengths = np.exp(random.normal(5.0, 1.0, n)).astype(int) + 2
    X = np.stack([random.multinomial(length, words / words.sum()) for length in lengths]).astype(float)
    y = random.integers(0, classes, n)
    X[np.arange(n), 5 + y] += random.integers(0, 3, n)
    return sparse.csr_array(X), y


def test_acceleration_that_leads_away_is_calmed(monkeypatch):
    """Long rows with an intercept: one epoch solves too little of a much damped problem."""
    X, y = word_counts(200, 1000, 10)
    calmed = fit(X, y, C=30.0, tol=1e-4, max_iter=1000)
    assert calmed.certificate.status == "converged"
    monkeypatch.setattr(dual_coordinate, "_WORSE", np.inf)
    wild = fit(X, y, C=30.0, tol=1e-4, max_iter=1000)
    assert wild.certificate.status == "max_iter"
    # Whatever it ends with is the best of what was seen.
    seen = [record["objective"] for record in wild.history if record["objective"] is not None]
    np.testing.assert_allclose(wild.certificate.primal, min(seen))
    np.testing.assert_allclose(objective(X, y, wild.coef, wild.intercept, 30.0), wild.certificate.primal)


def test_the_best_point_is_kept_without_an_intercept(monkeypatch):
    X, y = word_counts(200, 1000, 10)
    monkeypatch.setattr(dual_coordinate, "_KAPPA", 10.0)
    monkeypatch.setattr(dual_coordinate, "_WORSE", np.inf)
    found = fit(X, y, C=30.0, tol=1e-12, max_iter=45, fit_intercept=False)
    np.testing.assert_allclose(objective(X, y, found.coef, found.intercept, 30.0), found.certificate.primal)
