"""Logistic and softmax regression: agreement, laws, certificates, separation, hard cases, errors."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as PeerLogisticRegression

from separatrix import LogisticRegression, _hot
from separatrix.certificate import Certificate
from separatrix.data.memory import view_of
from separatrix.losses import LOSSES
from separatrix.models._start import judged
from separatrix.multiclass import Coding
from separatrix.problem import Problem
from separatrix.solvers._loop import Control
from separatrix.solvers.curvature import Blocks, Coupled, Diagonal, Pairs, Shared, moments
from separatrix.solvers.quasi_newton import QuasiNewton
from separatrix.solvers.smooth import SmoothObjective

TIGHT = 1e-10


def made(n=200, d=5, K=2, seed=0, dtype=np.float64, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    scores = X @ rng.standard_normal((d, K)) + noise * rng.gumbel(size=(n, K))
    return X, scores.argmax(axis=1)


def objective(model, X, y, C=1.0, weights=None, ratio=0.0):
    """C Σ s ℓ + r‖W‖₁ + (1 − r)/2 ‖W‖², straight from the formula."""
    W, b = np.asarray(model.coef_, dtype=np.float64), np.asarray(model.intercept_, dtype=np.float64)
    F = np.asarray(X @ W.T) + b
    numbers = np.searchsorted(model.classes_, y)
    if W.shape[0] == 1:
        F = np.column_stack([np.zeros(len(F)), F[:, 0]])
    losses = -log_softmax(F, axis=1)[np.arange(len(F)), numbers]
    s = np.ones(len(F)) if weights is None else weights
    return C * (s @ losses) + ratio * np.abs(W).sum() + 0.5 * (1 - ratio) * np.square(W).sum()


def peer(X, y, weights=None, **parameters):
    return PeerLogisticRegression(**{"tol": 1e-12, "max_iter": 100_000, **parameters}).fit(X, y, weights)


@pytest.mark.parametrize("K", [2, 3, 6])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", [True, False])
def test_agrees_with_scikit_learn(K, C, intercept):
    X, y = made(K=K, seed=K)
    weights = np.random.default_rng(1).random(len(y))
    ours = LogisticRegression(C=C, tol=TIGHT, fit_intercept=intercept).fit(X, y, weights)
    theirs = peer(X, y, weights, C=C, fit_intercept=intercept, solver="newton-cholesky")
    assert objective(ours, X, y, C, weights) <= objective(theirs, X, y, C, weights) * (1 + 1e-9)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("solver", ["newton", "quasi-newton", "dual-coordinate"])
@pytest.mark.parametrize("K", [2, 4])
def test_solvers_agree(solver, K):
    X, y = made(n=150, d=4, K=K, seed=3)
    named = LogisticRegression(solver=solver, tol=1e-9, max_iter=5000).fit(X, y)
    exact = peer(X, y)
    assert objective(named, X, y) <= objective(exact, X, y) * (1 + 1e-8)
    assert_allclose(named.coef_, exact.coef_, atol=1e-3)


def test_one_against_the_rest_is_a_binary_fit_for_each_class():
    X, y = made(K=3, seed=5)
    model = LogisticRegression(multiclass="ovr", tol=TIGHT).fit(X, y)
    for k in range(3):
        single = LogisticRegression(tol=TIGHT).fit(X, y == k)
        assert_allclose(model.coef_[k], single.coef_[0], atol=1e-6)
    shares = model.predict_proba(X)
    assert_allclose(shares.sum(axis=1), 1.0)
    assert_array_equal(shares.argmax(axis=1), model.predict(X))


@pytest.mark.parametrize("ratio", [0.3, 1.0])
@pytest.mark.parametrize("K", [2, 3])
def test_l1_and_elastic_net(ratio, K):
    X, y = made(n=120, K=K, seed=7)
    ours = LogisticRegression(C=0.2, l1_ratio=ratio, tol=1e-9).fit(X, y)
    theirs = peer(X, y, C=0.2, l1_ratio=ratio, solver="saga")
    assert objective(ours, X, y, 0.2, ratio=ratio) <= objective(theirs, X, y, 0.2, ratio=ratio) * (1 + 1e-9)
    assert ours.certificate_.relative_gap < 1e-8


def test_liblinear_penalises_the_intercept():
    X, y = made(seed=9)
    X = X + 3.0
    for scaling in (1.0, 50.0):
        ours = LogisticRegression(solver="liblinear", intercept_scaling=scaling, tol=TIGHT).fit(X, y)

        def value(w, scaling=scaling):
            m = (2 * y - 1) * (X @ w[:-1] + scaling * w[-1])
            return np.logaddexp(0, -m).sum() + 0.5 * w @ w

        best = minimize(value, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).x
        assert_allclose(ours.coef_[0], best[:-1], atol=1e-4)
        assert_allclose(ours.intercept_, scaling * best[-1], atol=1e-3)


# ------------------------------------------------------------------------------------------------ laws


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_weight_two_is_the_sample_twice_and_zero_its_absence(seed, K):
    X, y = made(n=60, d=3, K=K, seed=seed)
    counts = np.random.default_rng(seed).integers(0, 3, len(y))
    if len(np.unique(y[counts > 0])) < len(np.unique(y)) or len(np.unique(y)) < 2:
        return
    weighted = LogisticRegression(tol=TIGHT).fit(X, y, counts.astype(float))
    repeated = LogisticRegression(tol=TIGHT).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


@pytest.mark.parametrize("parameters", [{"l1_ratio": 0.5}, {"l1_ratio": 1.0}, {"dual": True}])
def test_weights_count_as_repetitions_for_every_method(parameters):
    X, y = made(n=60, d=3, K=3, seed=1)
    counts = np.random.default_rng(1).integers(0, 3, len(y))
    twin = np.repeat(X, counts, axis=0), np.repeat(y, counts)
    weighted = LogisticRegression(tol=1e-6, **parameters).fit(X, y, counts.astype(float))
    repeated = LogisticRegression(tol=1e-6, **parameters).fit(*twin)
    ratio = parameters.get("l1_ratio", 0.0)
    values = [objective(model, *twin, ratio=ratio) for model in (weighted, repeated)]
    assert values[0] == pytest.approx(values[1], rel=1e-8)
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-3)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_relabelling_permutes_and_rows_may_come_in_any_order(seed):
    X, y = made(n=80, d=3, K=3, seed=seed)
    if len(np.unique(y)) < 3:
        return
    rng = np.random.default_rng(seed)
    order, names = rng.permutation(len(y)), rng.permutation(3)
    first = LogisticRegression(tol=TIGHT).fit(X, y)
    second = LogisticRegression(tol=TIGHT).fit(X[order], names[y[order]])
    assert_allclose(second.coef_[names], first.coef_, atol=1e-6)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_form_of_data_gives_the_same(K, dtype):
    X, y = made(n=300, d=7, K=K, dtype=dtype)
    X[np.abs(X) < 0.5] = 0
    dense = LogisticRegression(tol=1e-8).fit(X, y)
    assert dense.coef_.dtype == dense.intercept_.dtype == dtype
    forms = [np.asfortranarray(X), sparse.csr_matrix(X), sparse.csc_array(X), np.repeat(X, 2, axis=0)[::2]]
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for form in [*forms, wide]:
        other = LogisticRegression(tol=1e-8).fit(form, y)
        assert_allclose(other.coef_, dense.coef_, atol=2e-4 if dtype == np.float32 else 2e-6)
    whole = np.round(X * 3).astype(np.int16)
    assert_allclose(
        LogisticRegression(tol=1e-8).fit(whole, y).coef_,
        LogisticRegression(tol=1e-8).fit(whole.astype(float), y).coef_,
    )


def test_threads_do_not_change_the_result():
    X, y = made(n=40_000, d=30, K=3)
    one, two = (LogisticRegression(n_jobs=n, solver="quasi-newton").fit(X, y) for n in (1, 2))
    assert_array_equal(one.coef_, two.coef_)


# ------------------------------------------------------------------------------------- solver's parts


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_sweep_gives_value_and_gradient(joint, form):
    X, y = made(n=50, d=4, K=3, seed=2)
    weights = np.random.default_rng(0).random(50)
    codes = Coding.of("joint" if joint else "ovo", 3).codes
    problem = Problem(view_of(form(X)), y.astype(np.int32), codes, joint=joint, weights=weights)
    smooth = SmoothObjective(problem, 0.7)
    rng = np.random.default_rng(1)
    W, b = rng.standard_normal((problem.columns, 4)), rng.standard_normal(problem.columns)
    point = smooth.at(W, b)
    scores = X @ W.T + b
    if joint:
        expected = -(weights @ log_softmax(scores, axis=1)[np.arange(50), y])
    else:
        margins = codes[y] * scores
        expected = float((weights @ (LOSSES["logistic"].value(margins) * (codes[y] != 0))).sum())
    assert point.loss == pytest.approx(expected, rel=1e-13)
    assert point.value == pytest.approx(expected + 0.35 * np.square(W).sum(), rel=1e-13)
    step = 1e-6
    for k in range(problem.columns):
        for j in range(4):
            ahead, behind = W.copy(), W.copy()
            ahead[k, j] += step
            behind[k, j] -= step
            slope = (smooth.at(ahead, b).value - smooth.at(behind, b).value) / (2 * step)
            assert point.gradient[k, j] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("joint", [True, False])
def test_models_of_the_hessian(joint):
    X, y = made(n=400, d=3, K=3, seed=4)
    codes = Coding.of("joint" if joint else "ovr", 3).codes
    problem = Problem(view_of(X), y.astype(np.int32), codes, joint=joint)
    smooth = SmoothObjective(problem, 2.0)
    whole = moments(smooth)
    rng = np.random.default_rng(1)
    point = smooth.at(0.3 * rng.standard_normal((3, 3)), np.zeros(3))
    g, h = rng.standard_normal((3, 3)), rng.standard_normal(3)
    g, h = g - g.mean(axis=0), h - h.mean()
    exact = Coupled(whole, smooth, smooth) if joint else Blocks(whole, smooth, smooth)
    exact.refresh(point)
    step, slope = exact.solve(g, h)
    # H times the step, by differences of the gradient along it (in centred features).
    t = 1e-6
    move = slope - step @ whole.mean
    ahead = smooth.at(point.coef + t * step, point.intercept + t * move)
    behind = smooth.at(point.coef - t * step, point.intercept - t * move)
    product = (ahead.gradient - behind.gradient) / (2 * t)
    slopes = (ahead.gradient_intercept - behind.gradient_intercept) / (2 * t)
    assert_allclose(product - np.outer(slopes, whole.mean), g, atol=1e-5)
    assert_allclose(slopes, h, atol=1e-5)
    for model in (Blocks(whole, smooth, smooth, share=0.9), Shared(whole, smooth, smooth), Diagonal(whole)):
        model.refresh(point)
        near, near_slope = model.solve(g, h)
        assert np.vdot(near, g) + near_slope @ h > 0
        assert 0.2 < np.linalg.norm(near) / np.linalg.norm(step) < 5
    # From a sample without the rare feature 0: the diagonal of all rows knows it.
    X[:, 0] = np.where(np.arange(400) < 8, 40.0, 0.0)
    smooth = SmoothObjective(problem, 2.0)
    whole = moments(smooth)
    point = smooth.at(0.01 * rng.standard_normal((3, 3)), np.zeros(3))
    sample = smooth.sample(np.arange(100, 300))
    for kind in (Blocks, Shared, *([Coupled] if joint else [])):
        model = kind(whole, sample, smooth)
        model.refresh(point)
        exact.__init__(whole, smooth, smooth)
        exact.refresh(point)
        sizes = [np.abs(one.solve(g, h)[0][:, 0]).max() for one in (model, exact)]
        assert 0.2 < sizes[0] / sizes[1] < 5


@pytest.mark.parametrize("K", [2, 5])
def test_growing_samples_lead_to_the_same_solution(K):
    X, y = made(n=40_000, d=12, K=K, dtype=np.float32)
    model = LogisticRegression(solver="quasi-newton", tol=1e-7).fit(X, y)
    solver_rows = [record["samples"] for record in model.history_]
    assert solver_rows[0] < 40_000
    assert solver_rows[-1] == 40_000
    theirs = peer(X.astype(np.float64), y, solver="newton-cholesky")
    assert objective(model, X, y) <= objective(theirs, X, y) * (1 + 1e-7)


def test_certificate_can_be_recomputed():
    X, y = made(n=300, K=3, seed=8)
    C = 5.0
    model = LogisticRegression(C=C, tol=1e-6).fit(X, y)
    found = model.certificate_
    assert found.primal == pytest.approx(objective(model, X, y, C), rel=1e-12)
    assert found.dual <= peer_value(X, y, C) + 1e-9
    assert found.gap == pytest.approx(found.primal - found.dual)
    assert found.relative_gap <= 1e-6
    assert found.status == "converged"
    assert "duality gap" in found.message


def peer_value(X, y, C):
    theirs = peer(X, y, C=C, solver="newton-cholesky")
    return objective(theirs, X, y, C)


def test_a_named_dual_that_crawls_names_the_solver_that_does_not():
    X = np.random.default_rng(0).normal(size=(30, 3)) * [30.0, 1.0, 0.03]
    for named in ({"solver": "dual-coordinate"}, {"dual": True}):
        with pytest.warns(ConvergenceWarning, match="choose solver='auto' and dual=False"):
            LogisticRegression(C=1e3, max_iter=20, **named).fit(X, np.arange(30) % 2)


def test_more_iterations_are_no_advice_where_single_precision_ended_the_fit():
    words = "relative duality gap 0.3, above tol=1e-05: raise max_iter; 4 of 5 weights are not 0"
    found = Certificate(status="max_iter", message=words, iterations=25, dual=0.7, relative_gap=0.3)
    told = judged(found, 1e-4, np.float32, 1000).message
    assert told == (
        "relative duality gap 0.3, above tol=0.0001: single precision ends here, pass X as float64; "
        "4 of 5 weights are not 0"
    )
    assert judged(found, 1e-4, np.float64, 1000) is judged(found, 1e-4, np.float32, 25) is found


def test_warm_start_goes_on_and_refuses_other_shapes():
    X, y = made(n=500, K=3)
    model = LogisticRegression(warm_start=True, tol=1e-6, C=1.0).fit(X, y)
    cold = model.n_iter_[0]
    model.fit(X, y)
    assert model.n_iter_[0] <= min(cold, 1)
    with pytest.raises(ValueError, match="warm_start=True goes on from coef_ of shape"):
        model.fit(X[:, :2], y)


# ------------------------------------------------------------------------------------------ separation


@pytest.mark.parametrize("K", [2, 3])
def test_separable_data_have_no_maximum_of_the_likelihood(K):
    X, y = (load_iris if K == 3 else load_wine)(return_X_y=True)
    if K == 2:
        X, y = X[y < 2], y[y < 2]
    else:
        rng = np.random.default_rng(0)
        y = np.arange(90) % 3
        X = 8.0 * np.array([[0, 0], [1, 0], [0, 1]])[y] + rng.standard_normal((90, 2))
    with pytest.warns(ConvergenceWarning, match="finite C"):
        model = LogisticRegression(C=np.inf).fit(X, y)
    assert model.n_iter_[0] < 40
    assert model.certificate_.status == "separable"
    assert model.certificate_.separable is True
    direction = model.separation_
    scores = X @ direction.coef.T + direction.intercept
    if K == 2:
        assert np.all((2 * y - 1) * scores[:, 0] > 0)
    else:
        assert_array_equal(scores.argmax(axis=1), y)
    assert_array_equal(model.predict(X), y)


def test_plain_maximum_likelihood_where_it_exists():
    X, y = made(n=300, d=3, noise=3.0, seed=11)
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    theirs = peer(X, y, C=np.inf, solver="newton-cholesky")
    assert_allclose(model.coef_, theirs.coef_, rtol=1e-6)
    assert model.separation_ is None
    assert "an estimated" in model.certificate_.message
    assert "Newton decrement" in model.certificate_.message


def test_float32_certificate_is_of_the_rounded_parameters():
    """Long enough that the descent begins in single precision; one sweep in double ends it."""
    X, y = made(n=30_000, d=12, K=3, dtype=np.float32)
    model = LogisticRegression(tol=1e-6).fit(X, y)
    coef, scores = model.coef_.astype(float), X.astype(float) @ model.coef_.T.astype(float) + model.intercept_
    loss = (logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]).sum()
    assert_allclose(model.certificate_.primal, 0.5 * np.sum(coef**2) + loss, rtol=1e-12)


# ------------------------------------------------------------------------------------------ hard cases


@pytest.mark.parametrize("K", [2, 3])
def test_scales_from_tiny_to_huge(K):
    X, y = made(n=200, d=4, K=K, seed=13)
    scaled = X * np.array([1e-8, 1e-3, 1e3, 1e8])
    model = LogisticRegression(C=np.inf, tol=1e-8).fit(scaled, y)
    plain = LogisticRegression(C=np.inf, tol=1e-8).fit(X, y)
    assert_allclose(model.predict_proba(scaled), plain.predict_proba(X), atol=2e-3)
    assert model.certificate_.status == "converged"


@pytest.mark.parametrize("C", [1.0, 1e6])
def test_collinear_and_constant_features_and_a_class_of_one_sample(C):
    X, y = made(n=100, d=3, K=2, seed=14)
    X = np.column_stack([X, X[:, 0] * 2, np.ones(100), np.zeros(100)])
    y[0] = 2
    model = LogisticRegression(C=C).fit(X, y)
    theirs = peer(X, y, C=C, solver="newton-cholesky")
    assert objective(model, X, y, C) <= objective(theirs, X, y, C) * (1 + 1e-6)
    assert model.certificate_.status == "converged"


def test_scores_of_ten_thousand_do_not_overflow():
    X = np.array([[-1e4], [-5e3], [5e3], [1e4]])
    y = np.array([0, 0, 1, 1])
    model = LogisticRegression(C=100.0).fit(X, y)
    model.coef_ = np.array([[1.0]])
    model.intercept_ = np.zeros(1)
    assert_array_equal(model.predict_proba(X), [[1, 0], [1, 0], [0, 1], [0, 1]])
    logs = model.predict_log_proba(X)
    assert logs[0, 1] == -1e4
    assert logs[3, 0] == -1e4
    three = LogisticRegression().fit(np.vstack([X, [[0.0]]]), [0, 0, 1, 1, 2])
    three.coef_ = np.array([[-1.0], [1.0], [0.0]])
    assert np.all(np.isfinite(three.predict_log_proba(X)))
    assert_allclose(three.predict_proba(X).sum(axis=1), 1.0)


def test_far_means_do_not_spoil_the_fit():
    X, y = made(n=300, d=3, seed=15)
    far = X + np.array([1e6, 0.0, -1e6])
    near, moved = (LogisticRegression(tol=1e-8).fit(data, y) for data in (X, far))
    assert_allclose(moved.coef_, near.coef_, atol=1e-4)


def test_wide_data():
    X, y = made(n=40, d=300, K=3, seed=16)
    for form in (X, sparse.csr_array(X)):
        model = LogisticRegression(tol=1e-8).fit(form, y)
        assert objective(model, X, y) <= objective(peer(X, y), X, y) * (1 + 1e-8)


def test_probabilities_follow_the_identities():
    X, y = made(seed=17)
    model = LogisticRegression().fit(X, y)
    shares, scores = model.predict_proba(X), model.decision_function(X)
    assert_allclose(shares[:, 0], 1.0 / (1.0 + np.exp(scores)))
    assert_allclose(np.log(shares[:, 1] / shares[:, 0]), scores, atol=1e-9)


# ------------------------------------------------------------------------------- stops, errors, warnings


def test_stops_leave_a_model():
    X, y = made(n=5000, d=40, K=5)
    with pytest.warns(ConvergenceWarning, match="failed to converge"):
        short = LogisticRegression(max_iter=2, tol=1e-12).fit(X, y)
    assert short.n_iter_[0] == 2
    assert short.certificate_.status == "max_iter"
    with pytest.warns(ConvergenceWarning, match="max_time is over"):
        quick = LogisticRegression(max_time=1e-9, tol=1e-12).fit(X, y)
    assert quick.certificate_.status == "max_time"
    assert quick.predict(X).shape == y.shape
    with pytest.warns(ConvergenceWarning):
        none = LogisticRegression(max_iter=0).fit(X, y)
    assert not none.coef_.any()
    assert_allclose(none.predict_proba(X), 0.2)


@pytest.mark.parametrize("solver", ["newton", "quasi-newton", "dual-coordinate"])
@pytest.mark.parametrize("asked", range(8))
def test_time_may_be_over_at_any_place(solver, asked, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 200)) * np.geomspace(1, 300, 200), rng.integers(3, size=80)
    left = iter(range(asked))
    monkeypatch.setattr(Control, "reason", lambda self: None if next(left, None) is not None else "max_time")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(solver=solver, C=1e4).fit(X, y)
    assert model.certificate_.status in ("max_time", "converged")
    assert np.isfinite(model.predict_proba(X)).all()


def test_interrupt_leaves_a_model():
    code = (
        "import numpy as np, warnings, signal, os, threading, time\n"
        "def interrupt():\n"  # once the loop has taken over Ctrl-C: before, it ends the program
        "    while signal.getsignal(signal.SIGINT) is signal.default_int_handler: time.sleep(1e-3)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "warnings.simplefilter('ignore')\n"
        "from separatrix import LogisticRegression\n"
        "rng = np.random.default_rng(0)\n"
        "X = rng.standard_normal((60000, 60)); y = rng.integers(0, 12, 60000)\n"
        "threading.Thread(target=interrupt).start()\n"
        "model = LogisticRegression(C=1e6, tol=0.0, max_iter=100000).fit(X, y)\n"
        "print(model.certificate_.status, model.predict(X).shape)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "interrupted (60000,)", done.stderr


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "'C' parameter"),
        ({"C": -1.0}, "'C' parameter"),
        ({"solver": "newton", "l1_ratio": 1.0}, "Solver newton supports only 'l2' or None.*working-set"),
        ({"dual": True, "l1_ratio": 0.5}, "with dual=True supports only"),
        ({"solver": "lbfgs", "dual": True}, "supports only dual=False"),
        ({"solver": "dual-coordinate", "C": np.inf}, "needs a penalty"),
        ({"solver": "working-set"}, "needs an L1 part"),
        ({"solver": "liblinear"}, "does not support multiclass"),
        ({"solver": "sgd"}, "'solver' parameter"),
    ],
)
def test_refuses_with_a_remedy(parameters, message):
    X, y = made(n=30, K=3)
    with pytest.raises(ValueError, match=message):
        LogisticRegression(**parameters).fit(X, y)


def test_a_class_without_weight_is_refused():
    X, y = made(n=30, K=3)
    with pytest.raises(ValueError, match=r"all samples of class 1 have weight 0.*positive weight"):
        LogisticRegression().fit(X, y, (y != 1).astype(float))


def test_old_names_of_penalties_still_work():
    X, y = made()
    with pytest.warns(FutureWarning, match="'penalty' was deprecated"):
        old = LogisticRegression(penalty="l2").fit(X, y)
    assert_allclose(old.coef_, LogisticRegression().fit(X, y).coef_)
    with pytest.warns(FutureWarning, match="C=np.inf"):
        free = LogisticRegression(penalty=None).fit(X, y)
    assert np.linalg.norm(free.coef_) > np.linalg.norm(old.coef_)


def test_single_precision_sweeps_only_lead_the_way():
    X, y = made(n=20_000, d=30, K=3)
    problem = Problem(view_of(X), y.astype(np.int32), Coding.of("joint", 3).codes, joint=True)
    smooth = SmoothObjective(problem, 1.0)
    W, b = np.random.default_rng(0).standard_normal((3, 30)), np.zeros(3)
    quick, exact = smooth.at(W, b, single=True), smooth.at(W, b)
    assert quick.value == pytest.approx(exact.value, rel=1e-5)
    assert quick.value != exact.value
    solver = QuasiNewton(problem, l2=1.0, coef=W * 0, intercept=b, tol=1e-9, method="quasi-newton")
    assert solver.method == "blocks"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("instructions", _hot.instruction_sets())
def test_sums_of_columns_and_of_their_squares(dtype, weighted, instructions):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((603, 9)).astype(dtype)[:, :7]  # rows that are no neighbours
    s = rng.random(603) if weighted else None
    w = np.ones(603) if s is None else s
    sums = np.ones((2, 7))
    before = _hot.instruction_set()
    try:
        _hot.use_instruction_set(instructions)
        _hot.column_sums(X, s, sums)
    finally:
        _hot.use_instruction_set(before)
    wide = X.astype(np.float64)
    expected = 1.0 + np.stack([w @ wide, w @ np.square(wide)])
    np.testing.assert_allclose(sums, expected, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-4)


def test_a_rough_way_is_judged_by_the_whole_hessian(monkeypatch):
    """Where gains have risen again and again, no estimate ends a fit: the exact decrement or the gap does."""
    random = np.random.default_rng(5)
    rare = random.random((6000, 30)) < np.geomspace(0.3, 0.002, 30)
    X = (rare - rare.mean(axis=0)) / rare.std(axis=0)
    y = (X[:, :4] @ random.standard_normal((4, 3)) + random.gumbel(size=(6000, 3))).argmax(axis=1)
    formed = []
    exact = QuasiNewton.exact_curvature
    monkeypatch.setattr(QuasiNewton, "exact_curvature", lambda *of: formed.append(1) or exact(*of))
    monkeypatch.setattr("separatrix.solvers._descent._ROUGH", 0)
    proven = LogisticRegression(solver="quasi-newton", C=10.0).fit(X, y).certificate_
    assert not formed
    assert proven.primal - proven.dual <= 1e-4 * proven.primal
    rough = LogisticRegression(solver="quasi-newton", C=np.inf).fit(X, y)
    monkeypatch.setattr("separatrix.solvers._descent._ROUGH", 10**9)
    count = len(formed)
    tight = LogisticRegression(solver="newton", C=np.inf, tol=1e-10).fit(X, y)
    assert count > 0
    assert len(formed) == count
    assert rough.certificate_.status == "converged"
    assert rough.certificate_.primal <= tight.certificate_.primal * (1 + 1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_first_sums_tell_whether_many_samples_are_finite(value):
    X = np.zeros((1 << 17, 32), dtype=np.float32)
    X[::3, 0], X[777, 13] = 1.0, value
    with pytest.raises(ValueError, match="row 777, column 13"):
        LogisticRegression().fit(X, np.arange(1 << 17) % 2)


def test_weights_of_pairs_are_made_when_asked_for():
    rng = np.random.default_rng(0)
    p, s = rng.dirichlet(np.ones(3), size=50), rng.random(50)
    pairs = Pairs(p, s)
    whole = s[:, None, None] * (p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None, :])
    expected = np.stack([np.abs(whole[:, k, l]) for k, l in pairs.pairs], axis=1)
    assert_allclose(pairs[10:40], expected[10:40], rtol=1e-12)
    assert_allclose(pairs.sum(), expected.sum(axis=0), rtol=1e-12)
    assert pairs.shape == (50, 6)


@pytest.mark.parametrize("joint", [True, False])
def test_rounded_residuals_give_no_negative_curvature(joint):
    """In single precision 1 − (1 − p) may be below 0; the Gram matrix takes roots of weights."""
    X, y = made(n=6, d=2, K=3)
    codes = Coding.of("joint" if joint else "ovr", 3).codes
    problem = Problem(view_of(X), y.astype(np.int32), codes, joint=joint)
    smooth = SmoothObjective(problem, 1.0)
    residuals = np.where(np.arange(3) == y[:, None], -1.0 - 6e-8, 1.0 + 6e-8)
    p, each = smooth.from_residuals(residuals)
    assert p.min() >= 0
    assert p.max() <= 1
    assert each.min() >= 0


def test_a_failed_model_is_not_convergence(monkeypatch):
    from separatrix.solvers._descent import Descent

    monkeypatch.setattr(Descent, "_solve", lambda self, flat: np.full_like(flat, np.nan))
    X, y = made(n=3000, d=120, K=3)
    with pytest.warns(ConvergenceWarning):
        fitted = LogisticRegression(solver="lbfgs").fit(X, y)
    assert fitted.certificate_.status == "max_iter"
