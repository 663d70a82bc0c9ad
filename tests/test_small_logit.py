"""Compiled steps of logistic regression on few data, against the solvers for data of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from separatrix import _hot
from separatrix.data.memory import view_of
from separatrix.models.logistic import LogisticRegression
from separatrix.problem import Problem
from separatrix.solvers._loop import Below, run
from separatrix.solvers.small_logit import SmallLogit, is_small


def samples(n=60, d=4, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.argmax(X @ rng.standard_normal((d, classes)) + rng.gumbel(size=(n, classes)), axis=1)
    y[:classes] = np.arange(classes)
    return X, y


def objective(X, y, coef, intercept, C, ratio, weights=None):
    """Return the objective as the estimator states it, term by term."""
    coef = np.asarray(coef, dtype=np.float64)
    scores = X @ coef.T + intercept
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    losses = logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]
    penalty = ratio * np.abs(coef).sum() + 0.5 * (1 - ratio) * np.square(coef).sum()
    return C * np.sum(losses * (1.0 if weights is None else weights)) + penalty


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ratio", [0.0, 0.4, 1.0])
def test_the_objective_is_that_of_the_solver_for_any_size(classes, intercept, ratio):
    X, y = samples(classes=classes)
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    weights[:classes] = 1.0
    common = {"C": 0.7, "l1_ratio": ratio, "fit_intercept": intercept, "tol": 1e-8}
    small = LogisticRegression(**common).fit(X, y, weights)
    solver = "working-set" if ratio > 0 else "newton"
    large = LogisticRegression(solver=solver, **common).fit(X, y, weights)
    proof = small.certificate_
    assert proof.status == "converged"
    assert proof.relative_gap <= 1e-8
    assert proof.dual <= large.certificate_.primal * (1 + 1e-12)
    assert proof.primal == pytest.approx(objective(X, y, small.coef_, small.intercept_, 0.7, ratio, weights))
    assert proof.primal == pytest.approx(large.certificate_.primal, rel=1e-9)
    assert proof.samples == np.count_nonzero(weights)


def test_smooth_minimum_agrees_with_a_general_minimiser():
    X, y = samples(classes=2)
    model = LogisticRegression(C=2.0, tol=1e-10).fit(X, y)

    def value(v):
        return objective(X, y, v[None, :-1], v[-1], 2.0, 0.0)

    found = minimize(value, np.zeros(X.shape[1] + 1), method="BFGS", options={"gtol": 1e-8})
    assert model.certificate_.primal <= found.fun * (1 + 1e-12)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), found.x, atol=1e-5)


def test_one_versus_rest_is_one_binary_fit_per_class():
    X, y = samples()
    model = LogisticRegression(multiclass="ovr", l1_ratio=0.5, C=0.5).fit(X, y)
    for k in range(3):
        alone = LogisticRegression(l1_ratio=0.5, C=0.5).fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], atol=1e-6)
        np.testing.assert_allclose(model.intercept_[k], alone.intercept_[0], atol=1e-6)


def test_weights_that_do_not_matter_are_exactly_zero():
    X, y = samples(n=100, d=8, classes=3)
    model = LogisticRegression(l1_ratio=1.0, C=0.05).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < model.coef_.size
    strong = LogisticRegression(l1_ratio=1.0, C=1e-6).fit(X, y)
    assert not strong.coef_.any()
    assert strong.certificate_.status == "converged"


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([1e-3, 1.0, 1e3]))
def test_bounds_hold_whatever_the_scale_of_the_features(seed, ratio, C):
    rng = np.random.default_rng(seed)
    n, d, classes = (int(rng.integers(*bounds)) for bounds in ((5, 60), (1, 6), (2, 4)))
    X, y = samples(n, d, classes, seed)
    X = X * 10.0 ** rng.uniform(-4, 4, X.shape[1]) + rng.standard_normal(X.shape[1])
    proof = LogisticRegression(C=C, l1_ratio=ratio).fit(X, y).certificate_
    assert proof.status == "converged"
    assert proof.dual is None or proof.dual <= proof.primal * (1 + 1e-12)


def test_single_precision_is_kept_and_judged_as_returned():
    X, y = samples()
    X = X.astype(np.float32)
    model = LogisticRegression().fit(X, y)
    assert model.coef_.dtype == np.float32
    value = objective(X.astype(float), y, model.coef_, model.intercept_.astype(float), 1.0, 0.0)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-12)


def test_a_warm_start_goes_on_from_the_last_solution():
    X, y = samples()
    model = LogisticRegression(warm_start=True).fit(X, y)
    first = model.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] < first


@pytest.mark.parametrize("instructions", _hot.instruction_sets())
def test_instruction_sets_agree(instructions):
    X, y = samples()
    expected = LogisticRegression(l1_ratio=0.5).fit(X, y)
    before = _hot.instruction_set()
    try:
        _hot.use_instruction_set(instructions)
        model = LogisticRegression(l1_ratio=0.5).fit(X, y)
    finally:
        _hot.use_instruction_set(before)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)


def test_where_steps_end_the_other_solver_goes_on():
    X, y = samples(classes=2)
    problem = Problem(view_of(X), y.astype(np.int32), np.array([[-1], [1]], dtype=np.int8))
    given = {}

    class Other:
        def steps(self, control):
            yield from ()

        def finish(self, outcome):
            return "its result"

    def otherwise(coef, intercept):
        given["coef"] = coef
        return Other()

    zero = {"coef": np.zeros((1, 4)), "intercept": np.zeros(1)}
    solver = SmallLogit(problem, l1=0.0, l2=1.0, tol=-1.0, otherwise=otherwise, **zero)
    assert solver.finish(run(solver, Below(-1.0), max_iter=1000)) == "its result"
    exact = LogisticRegression(tol=1e-12).fit(X, y)
    np.testing.assert_allclose(given["coef"], exact.coef_, atol=1e-7)


def test_what_is_small():
    def problem(n, d):
        return Problem(view_of(np.ones((n, d))), np.zeros(n, dtype=np.int32), np.array([[-1], [1]]))

    assert is_small(problem(500, 30))
    assert not is_small(problem(100_000, 30))
    assert not is_small(problem(10, 2000))


@pytest.mark.parametrize("classes", [2, 3])
def test_maximum_likelihood_is_found_or_separation_is_named(classes):
    X, y = samples(n=200, classes=classes)
    model = LogisticRegression(C=np.inf).fit(X, y)
    exact = LogisticRegression(C=np.inf, solver="newton", tol=1e-10).fit(X, y)
    assert model.certificate_.status == "converged"
    assert model.separation_ is None
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-5)
    apart = np.argmax(X[:, :classes], axis=1)
    with pytest.warns(ConvergenceWarning, match="separate"):
        model.fit(X, apart)
    assert model.certificate_.status == "separable"
    assert model.separation_.kind == "complete"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["auto", "dual-coordinate", "quasi-newton"])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_what_is_proven_to_the_tolerance_is_converged(solver, l1_ratio):
    """Small fits go for more digits than were asked for; these need not be reached."""
    if l1_ratio and solver != "auto":
        return
    rng = np.random.default_rng(5)
    y = np.arange(40) % 3
    X = rng.standard_normal((40, 6)) + 0.5 * y[:, None]
    for max_iter in range(1, 40):
        model = LogisticRegression(C=10, solver=solver, l1_ratio=l1_ratio, tol=1e-2, max_iter=max_iter)
        found = model.fit(X, y).certificate_
        if found.dual is not None:
            assert (found.status == "converged") == (found.relative_gap <= 1e-2)


@pytest.mark.parametrize("solver", ["auto", "quasi-newton"])
def test_an_estimate_counts_what_single_precision_takes(solver):
    """Where features are far from 0, rounding the weights is all that keeps a fit from its minimum."""
    y = np.arange(6) % 3
    X = (np.random.default_rng(47).standard_normal((6, 7)) + 1e3).astype(np.float32)
    model = LogisticRegression(C=2.5, fit_intercept=False, tol=1e-7, solver=solver).fit(X, y)
    best = LogisticRegression(C=2.5, fit_intercept=False, tol=1e-12).fit(X.astype(np.float64), y)
    distance = model.certificate_.primal - best.certificate_.primal
    assert model.certificate_.status == "converged"
    assert 2 * model.certificate_.gap > distance > 0
    with pytest.warns(ConvergenceWarning, match=r"above tol=1e-07: single precision ends here"):
        model.fit(1e3 * (X + np.float32(1e4)), y)
    assert model.certificate_.status == "max_iter"


@pytest.mark.parametrize(
    "options", [*({"solver": "saga", "l1_ratio": r} for r in (0.0, 0.5, 1.0)), {"dual": True}]
)
def test_intercepts_of_all_classes_sum_to_zero(options):
    """Softmax does not see a constant that all classes share: it must not depend on the order of the rows."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 90)
    X = rng.standard_normal((90, 6)) + 1.6 * np.eye(3, 6)[y]
    order = rng.permutation(90)
    model = LogisticRegression(**options, tol=1e-9).fit(X, y)
    other = LogisticRegression(**options, tol=1e-9).fit(X[order], y[order])
    assert abs(model.intercept_.sum()) < 1e-12
    np.testing.assert_allclose(other.intercept_, model.intercept_, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_was_stopped_early_claims_no_more_than_is_true(classes):
    """Far from the minimum the Newton decrement is far too small: 0.02 where a third was still to gain."""
    stopped = 0
    for seed in range(20):
        X, y = samples(n=20, d=5, classes=classes, seed=seed)
        X = X * 10.0 ** np.random.default_rng(seed).uniform(-3, 3, 5)
        for C in (1.0, 1e4):
            found = LogisticRegression(C=C, max_iter=2).fit(X, y).certificate_
            least = LogisticRegression(C=C, tol=1e-8).fit(X, y).certificate_.primal
            if found.status == "max_iter":
                stopped += 1
                assert found.gap >= (found.primal - least) * (1 - 1e-6)
                assert found.relative_gap <= 1.0
    assert stopped >= 20
