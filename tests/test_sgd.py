"""Stochastic gradient descent against a slow loop, scikit-learn, exact optima and scikit-learn's checks."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier as PeerClassifier
from sklearn.linear_model import SGDRegressor as PeerRegressor
from sklearn.svm import SVC
from sklearn.utils._testing import ignore_warnings

from separatrix import SGDClassifier, SGDRegressor, _hot
from separatrix.data.memory import view_of
from separatrix.losses import get_loss
from separatrix.problem import Penalty, Problem
from separatrix.solvers import _duality, _order
from separatrix.solvers._loop import Control
from separatrix.solvers._sgd_columns import shares
from separatrix.solvers.sgd import RATES, SGD_LOSSES, SgdSolver, StepRule
from sklearn_checks import checked

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
RNG = np.random.default_rng(0)
SPARSE = np.where(RNG.random(X.shape) < 0.4, 0.0, X)
SPARSE[:, 0] = X[:, 0]  # no row of zeros, which a passive-aggressive step would have to skip
NUMBERS = X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * RNG.standard_normal(150) + 1.0
NAMES = {"logistic": "log_loss"}
PENALTIES = ["l2", "l1", "elasticnet", None]


def slow_sgd(
    X, y, loss, *, l1=0.0, l2=0.0, rule, passes=1, average=0, sparse_rows=False, weights=None, intercept=True
):
    """Return weights and intercept after some passes in the order of the rows, written from the formulas."""
    w, b, owed, paid = np.zeros(X.shape[1]), 0.0, 0.0, np.zeros(X.shape[1])
    t, sums = 1, []
    for x, target, s in itertools.islice(
        itertools.cycle(zip(X, y, np.ones(len(y)) if weights is None else weights, strict=True)),
        passes * len(y),
    ):
        f = w @ x + b
        of_margin = loss.of == "margin"
        argument = target * f if of_margin else f - target
        slope = float(loss.slope(argument)) * (target if of_margin else 1.0)
        eta = {
            "optimal": lambda t=t: 1.0 / (rule.alpha * (rule.alpha**-0.75 + t - 1)),
            "pegasos": lambda t=t: 1.0 / (rule.alpha * t),
            "invscaling": lambda t=t: rule.eta0 / t**rule.power,
        }.get(rule.name, lambda: rule.eta0)()
        step = -eta * slope * s
        if rule.name in ("pa1", "pa2"):
            size, norm = float(loss.value(argument)), x @ x
            size = min(rule.eta0, size / norm) if rule.name == "pa1" else size / (norm + 0.5 / rule.eta0)
            step = -np.sign(slope) * size * s
        w = w * max(0.0, 1.0 - eta * l2) + step * x
        b += step * (0.01 if sparse_rows else 1.0) * intercept
        if average and t >= average:
            sums.append((w.copy(), b))
        if l1 > 0:
            owed += eta * l1
            for j in np.flatnonzero(x) if sparse_rows else range(len(x)):
                before = w[j]
                if w[j] > 0:
                    w[j] = max(0.0, w[j] - (owed + paid[j]))
                elif w[j] < 0:
                    w[j] = min(0.0, w[j] + (owed - paid[j]))
                paid[j] += w[j] - before
        t += 1
    if sums:
        return np.mean([w for w, _ in sums], axis=0), np.mean([b for _, b in sums])
    return w, b


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", SGD_LOSSES)
def test_every_step_is_that_of_the_slow_loop(name, rate, penalty):
    loss = get_loss(name)
    if rate in ("pa1", "pa2") and name not in ("hinge", "epsilon_insensitive"):
        return
    if rate == "pegasos" and penalty in ("l1", None):
        return
    rule, A = StepRule(rate, eta0=0.02, power=0.3, alpha=0.3), 0.3 * SPARSE
    ratio = {"l1": 1.0, "l2": 0.0, "elasticnet": 0.3, None: 0.0}[penalty]
    strength = Penalty(0.3, ratio) if penalty else Penalty()
    codes = np.array([[-1], [1]], dtype=np.int8)
    numbers = (Y == 1).astype(np.int32)
    weights = np.linspace(0.5, 2.0, 150)
    for container, average in itertools.product((np.asarray, sparse.csr_array), (0, 1, 100)):
        problem = Problem(view_of(container(A)), numbers, codes, loss=loss, penalty=strength, weights=weights)
        solver = SgdSolver(
            problem, np.zeros((1, 4)), np.zeros(1), rule=rule, shuffle=False, average_from=average
        )
        steps = solver.steps(Control(None))
        for _ in range(2):
            next(steps)
        w, b = slow_sgd(
            A,
            2.0 * numbers - 1,
            loss,
            l1=strength.l1,
            l2=strength.l2,
            rule=rule,
            passes=2,
            average=average,
            sparse_rows=container is sparse.csr_array,
            weights=weights,
        )
        coef, intercept = solver.mean() if average else (solver.coef, solver.intercepts)
        size = max(1.0, np.abs(w).max())
        assert_allclose(coef[0], w, rtol=1e-8, atol=1e-10 * size)
        assert_allclose(intercept[0], b, rtol=1e-8, atol=1e-10 * size)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_what_columns_learn_does_not_depend_on_the_threads_that_share_them(
    container, dtype, penalty, average, monkeypatch
):
    monkeypatch.setattr("separatrix.solvers.sgd._THREAD_WORK", 0.0)
    monkeypatch.setattr("separatrix.solvers.sgd.at_one_go", lambda *_: False)
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(600, 40)) * (rng.random((600, 40)) < 0.3)
    X, y = container(dense.astype(dtype)), rng.integers(13, size=600)

    def fit(n_jobs):
        model = SGDClassifier(
            penalty=penalty, average=average, max_iter=3, tol=None, random_state=0, n_jobs=n_jobs
        )
        return model.fit(X, y)

    alone = fit(1)
    assert np.abs(alone.coef_).max() > 0
    for n_jobs in (2, 3):
        shared = fit(n_jobs)
        assert_array_equal(shared.coef_, alone.coef_)
        assert_array_equal(shared.intercept_, alone.intercept_)
        assert [record["objective"] for record in shared.history_] == [
            record["objective"] for record in alone.history_
        ]
        for model in (shared, alone):
            model.partial_fit(X, y)
        assert_array_equal(shared.coef_, alone.coef_)
        alone = fit(1)


def test_columns_are_shared_out_whole():
    for columns, threads in itertools.product((1, 2, 7, 8, 9, 31, 105), (1, 2, 3, 16)):
        parts = shares(columns, threads)
        assert np.concatenate([np.arange(columns)[own] for own in parts]).tolist() == list(range(columns))
        assert len(parts) <= threads
        assert len(parts) == 1 or min(own.stop - own.start for own in parts) > 1


@pytest.mark.parametrize("name", SGD_LOSSES)
def test_compiled_losses_are_those_of_the_table(name):
    """One sample, weights 0, a first score of b: the first step and loss tell slope and value."""
    loss = get_loss(name).with_epsilon(0.3)
    for b in (-750.0, -20.0, -1.0, -0.4, 0.0, 0.2, 1.0, 1.3, 30.0, 750.0):
        problem = Problem(
            view_of(np.ones((1, 1))),
            np.zeros(1, dtype=np.int32),
            np.ones((1, 1), dtype=np.int8),
            loss=loss,
            targets=np.ones(1),
        )
        solver = SgdSolver(
            problem, np.zeros((1, 1)), np.full(1, b), rule=StepRule("constant", 1.0), shuffle=False
        )
        record = next(solver.steps(Control(None))).record
        argument = b if loss.of == "margin" else b - 1.0
        assert record["objective"] == pytest.approx(float(loss.value(argument)), rel=1e-12, abs=1e-300)
        assert -solver.coef[0, 0] == pytest.approx(float(loss.slope(argument)), rel=1e-14, abs=1e-300)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("rate", ["optimal", "constant", "invscaling", "adaptive", "pa1", "pa2"])
def test_classifier_follows_scikit_learn(rate, penalty, container):
    losses = ["hinge"] if rate.startswith("pa") else [NAMES.get(name, name) for name in SGD_LOSSES[:-1]]
    for loss, y in itertools.product(losses, (Y, Y == 1)):
        for average in (False, True, 200) if penalty in ("l2", None) else (False,):
            parameters = dict(
                loss=loss, penalty=penalty, learning_rate=rate, average=average, alpha=0.02, eta0=0.01
            )
            parameters |= dict(shuffle=False, max_iter=3, tol=None, class_weight={0: 1.0, 1: 2.0, 2: 0.5})
            if len(set(y)) == 2:
                parameters |= dict(shuffle=True, random_state=5, class_weight="balanced")
            ours = SGDClassifier(**parameters).fit(container(SPARSE), y)
            peer = PeerClassifier(**parameters).fit(container(SPARSE), y)
            assert_allclose(ours.coef_, peer.coef_, rtol=1e-7, atol=1e-9)
            assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-7, atol=1e-9)
            assert (ours.n_iter_, ours.t_) == (peer.n_iter_, peer.t_)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_regressor_follows_scikit_learn(container):
    for loss, rate, average in itertools.product(
        ["squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"],
        ["optimal", "constant", "invscaling", "adaptive", "pa1", "pa2"],
        [False, 10],
    ):
        if rate.startswith("pa") and loss != "epsilon_insensitive":
            continue
        parameters = dict(loss=loss, learning_rate=rate, average=average, alpha=0.5, epsilon=0.2)
        parameters |= dict(shuffle=True, random_state=5, max_iter=3, tol=None)
        s = np.linspace(0.1, 1.5, 150)
        ours = SGDRegressor(**parameters).fit(container(SPARSE), NUMBERS, sample_weight=s)
        peer = PeerRegressor(**parameters).fit(container(SPARSE), NUMBERS, sample_weight=s)
        assert_allclose(ours.coef_, peer.coef_, rtol=1e-7, atol=1e-9)
        assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-7, atol=1e-9)
        assert ours.coef_.shape == peer.coef_.shape
        assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("loss", ["log_loss", "modified_huber"])
def test_probabilities_follow_scikit_learn(loss):
    for y in (Y, Y == 2):
        parameters = dict(loss=loss, shuffle=False, max_iter=3, tol=None)
        ours, peer = SGDClassifier(**parameters).fit(X, y), PeerClassifier(**parameters).fit(X, y)
        for far in (X, 100 * X):
            assert_allclose(ours.predict_proba(far), peer.predict_proba(far), rtol=1e-6, atol=1e-9)
        assert_array_equal(ours.predict(X), peer.predict(X))
        with np.errstate(divide="ignore"):
            expected = peer.predict_log_proba(X)
        assert_allclose(ours.predict_log_proba(X), expected, rtol=1e-6, atol=1e-9)
    assert not hasattr(SGDClassifier("hinge"), "predict_proba")
    # all columns say no: equal probabilities, as in scikit-learn
    model = SGDClassifier("modified_huber").fit(X, Y)
    model.intercept_ = np.full(3, -1e6)
    assert_allclose(model.predict_proba(X[:2]), 1 / 3)


def test_parameters_are_scikit_learns():
    for ours, peer in ((SGDClassifier(), PeerClassifier()), (SGDRegressor(), PeerRegressor())):
        expected = peer.get_params()
        assert {name: ours.get_params()[name] for name in expected} == expected
        assert set(ours.get_params()) - set(expected) == {"max_time"}


def objective(W, y, loss, alpha):
    return get_loss(loss).value(y * (X @ W[:4] + W[4])).mean() + 0.5 * alpha * W[:4] @ W[:4]


def exact(y, loss, alpha):
    """The minimum, by a quasi-Newton method or (hinge) from a solver of the dual problem."""
    if loss != "hinge":
        return minimize(objective, np.zeros(5), (y, loss, alpha), method="BFGS", options={"gtol": 1e-8}).fun
    peer = SVC(kernel="linear", C=1 / (alpha * len(y)), tol=1e-10).fit(X, y)
    return objective(np.append(peer.coef_[0], peer.intercept_), y, loss, alpha)


@pytest.mark.parametrize("rate", ["optimal", "pegasos"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log_loss"])
def test_objective_approaches_the_exact_minimum(loss, rate):
    # A squared loss with steps 1/(alpha t) first runs far away, unless alpha is not small.
    alpha, y = 0.5 if loss == "squared_hinge" else 0.05, np.where(Y == 1, 1.0, -1.0)
    table = NAMES.get(loss, loss).replace("log_loss", "logistic")
    best = exact(y, table, alpha)
    model = SGDClassifier(
        loss, alpha=alpha, learning_rate=rate, max_iter=400, tol=None, average=150 * 200, random_state=0
    ).fit(X, y)
    certificate = model.certificate_
    W = np.append(model.coef_[0], model.intercept_)
    assert certificate.primal == pytest.approx(objective(W, y, table, alpha), rel=1e-12)
    assert best - 1e-6 <= certificate.primal <= best * 1.002
    assert certificate.dual <= best + 1e-6
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual)
    if loss != "hinge":
        assert certificate.relative_gap < 0.02
    objectives = [record["objective"] for record in model.history_]
    assert len(objectives) == 400
    assert objectives[-1] < objectives[0]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
@pytest.mark.parametrize("loss", SGD_LOSSES)
def test_bound_holds_for_any_weights_and_closes_at_the_minimum(loss, penalty, fit_intercept):
    row = get_loss(loss)
    ratio = {"l1": 1.0, "l2": 0.0, "elasticnet": 0.3}[penalty]
    codes, numbers = np.array([[-1], [1]], dtype=np.int8), (Y == 1).astype(np.int32)
    s = np.linspace(0.0, 2.0, 150)
    for targets in (None, NUMBERS) if row.of == "residual" else (None,):
        problem = Problem(
            view_of(X),
            numbers,
            codes if targets is None else np.ones((1, 1), dtype=np.int8),
            loss=row,
            penalty=Penalty(0.1, ratio),
            weights=s,
            fit_intercept=fit_intercept,
            targets=targets,
        )

        def primal(W, problem=problem):
            return _duality.measure(problem, W[None, :4], W[4:] * problem.fit_intercept, bound=False).primal

        found = minimize(primal, np.zeros(5), method="BFGS", options={"maxiter": 40})
        rng = np.random.default_rng(1)
        for _ in range(5):
            coef, intercept = rng.standard_normal((1, 4)), rng.standard_normal(1) * fit_intercept
            measured = _duality.measure(problem, coef, intercept)
            assert 0.0 <= measured.dual <= found.fun + 1e-9
            assert measured.samples == 149
        if row.smooth and penalty == "l2":
            at = _duality.measure(problem, found.x[None, :4], found.x[4:] * fit_intercept)
            assert at.primal - at.dual <= 0.02 * max(at.primal, 1e-3)


def test_no_penalty_no_bound():
    certificate = SGDClassifier(penalty=None, max_iter=5, tol=None).fit(X, Y).certificate_
    assert certificate.dual is None
    assert certificate.gap is None
    assert certificate.primal > 0


def test_certificate_counts_errors_and_columns_add_up():
    model = SGDClassifier("log_loss", alpha=0.01, random_state=0).fit(X, Y)
    assert model.certificate_.training_errors == np.sum(model.predict(X) != Y)
    parts = 0.0
    for k in range(3):
        W = np.append(model.coef_[k], model.intercept_[k])
        parts += objective(W, np.where(k == Y, 1.0, -1.0), "logistic", 0.01)
    assert model.certificate_.primal == pytest.approx(parts, rel=1e-12)
    assert model.certificate_.status == "converged"


def test_columns_learn_as_if_alone():
    """One sweep for all classes gives each the weights that a problem of its own gives, stops included."""
    for parameters in (dict(tol=1e-3), dict(tol=0.01, learning_rate="adaptive", eta0=0.1)):
        whole = SGDClassifier(shuffle=False, alpha=0.01, **parameters).fit(X, Y)
        alone = [SGDClassifier(shuffle=False, alpha=0.01, **parameters).fit(X, k == Y) for k in range(3)]
        assert_allclose(whole.coef_, np.concatenate([model.coef_ for model in alone]), rtol=1e-9)
        assert whole.n_iter_ == max(model.n_iter_ for model in alone)
        assert min(model.n_iter_ for model in alone) < whole.n_iter_


@pytest.mark.parametrize("average", [False, True, 100])
def test_partial_fit_goes_on(average):
    parameters = dict(average=average, shuffle=False, alpha=0.01)
    whole = SGDClassifier(max_iter=1, tol=None, **parameters).fit(X, Y)
    batches, peer = SGDClassifier(**parameters), PeerClassifier(**parameters)
    for part in np.array_split(np.arange(150), 7):
        for model in (batches, peer):
            model.partial_fit(X[part], Y[part], classes=[0, 1, 2])
    assert_allclose(batches.coef_, whole.coef_, rtol=1e-9)
    if not average:  # scikit-learn forgets the intercept between the batches of an average
        assert_allclose(batches.coef_, peer.coef_, rtol=1e-9)
    assert batches.t_ == whole.t_ == peer.t_ == 151
    assert len(batches.history_) == 7
    again = pickle.loads(pickle.dumps(batches))
    assert_array_equal(again.partial_fit(X, Y).coef_, batches.partial_fit(X, Y).coef_)
    regressor = SGDRegressor(average=average, shuffle=False)
    for part in np.array_split(np.arange(150), 7):
        regressor.partial_fit(X[part], NUMBERS[part])
    expected = SGDRegressor(average=average, shuffle=False, max_iter=1, tol=None).fit(X, NUMBERS)
    assert_allclose(regressor.coef_, expected.coef_, rtol=1e-9)


def test_warm_start_begins_with_the_last_weights():
    parameters = dict(shuffle=False, max_iter=2, tol=None, learning_rate="constant")
    warm = SGDClassifier(warm_start=True, **parameters).fit(X, Y).fit(X, Y)
    once = SGDClassifier(**parameters).fit(X, Y)
    given = SGDClassifier(**parameters).fit(X, Y, coef_init=once.coef_, intercept_init=once.intercept_)
    assert_array_equal(warm.coef_, given.coef_)
    assert np.any(warm.coef_ != once.coef_)
    with pytest.raises(ValueError, match=r"coef_init.*\(2, 4\).*need \(3, 4\)"):
        once.fit(X, Y, coef_init=np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"coef_init.*\(1, 3\).*need \(1, 4\)"):
        SGDRegressor().fit(X, NUMBERS, coef_init=np.zeros(3))


@pytest.mark.parametrize("average", [True, 15])
def test_a_regressor_s_warm_start_goes_on_with_the_last_weights_not_with_their_mean(average):
    parameters = dict(shuffle=False, tol=None, max_iter=2, warm_start=True, average=average)
    ours, peer = SGDRegressor(**parameters).fit(X, NUMBERS), PeerRegressor(**parameters).fit(X, NUMBERS)
    before = peer.coef_.copy()
    ours.fit(X, NUMBERS)
    peer.fit(X, NUMBERS)
    # scikit-learn adds the former mean to the sum of the new visits, without counting it.
    visits = 2 * len(X) - int(average) + 1
    assert_allclose(ours.coef_, peer.coef_ - before / visits, rtol=1e-10)
    assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-10)
    # Without an average the model goes on with what it returned.
    parameters.update(average=False)
    start = dict(coef_init=ours.coef_, intercept_init=ours.intercept_)
    given = SGDRegressor(**parameters).fit(X, NUMBERS, **start)
    assert_array_equal(ours.set_params(average=False).fit(X, NUMBERS).coef_, given.coef_)


def test_early_stopping_learns_nothing_from_held_out_samples():
    parameters = dict(early_stopping=True, random_state=3, shuffle=False, tol=1e-3)
    for model, y in ((SGDClassifier(**parameters), Y), (SGDRegressor(**parameters), NUMBERS)):
        model.fit(X, y)
        assert model.certificate_.samples == 135
        assert all(-1 < record["validation_score"] <= 1 for record in model.history_)
        assert model.n_iter_ < 1000


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "options", [{"tol": None, "max_iter": 7}, {"tol": None, "max_iter": 5, "average": 40}, {"penalty": None}]
)
def test_early_stopping_keeps_scikit_learns_order(container, options):
    for seed in range(3):
        given = dict(early_stopping=True, random_state=seed, **options)
        for ours, peer, y in (
            (SGDClassifier(**given), PeerClassifier(**given), Y == 1),
            (SGDRegressor(**given), PeerRegressor(**given), NUMBERS),
        ):
            rows = container(SPARSE)
            with ignore_warnings(category=ConvergenceWarning):
                ours.fit(rows, y)
                peer.fit(rows, y)
            assert ours.n_iter_ == peer.n_iter_
            assert_allclose(ours.coef_, peer.coef_, rtol=1e-6, atol=1e-8)


def test_weight_zero_is_absence():
    s = np.repeat([1.0, 0.0, 2.0], 50)
    for shuffle in (True, False):
        parameters = dict(shuffle=shuffle, random_state=0, max_iter=4, tol=None)
        whole = SGDClassifier(**parameters).fit(X, Y == 2, sample_weight=s)
        part = SGDClassifier(**parameters).fit(X[s > 0], (Y == 2)[s > 0], sample_weight=s[s > 0])
        assert_array_equal(whole.coef_, part.coef_)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_random_orders_are_scikit_learns(container, dtype):
    """In fits, batches and warm starts, whatever gives the seed; of several classes that of the first."""
    rows, exact = container(SPARSE.astype(dtype)), 1e-8 if dtype == np.float64 else 1e-4
    columns = [SGDClassifier(random_state=seed, max_iter=1, tol=None).fit(X, Y).coef_ for seed in (0, 1)]
    assert np.any(columns[0] != columns[1])
    for seed in (0, 1, 2**32 - 1, "state"):

        def fitted(kind, y, warm, seed=seed):
            state = np.random.RandomState(4) if seed == "state" else seed
            model = kind(random_state=state, max_iter=7, tol=None, warm_start=warm, alpha=0.01)
            model.fit(rows, y)
            return model.fit(rows, y) if warm else model.partial_fit(rows[:40], y[:40])

        for ours, peer, y in (
            (SGDClassifier, PeerClassifier, Y == 1),
            (SGDClassifier, PeerClassifier, Y),
            (SGDRegressor, PeerRegressor, NUMBERS),
        ):
            for warm in (False, True):
                found, expected = fitted(ours, y, warm), fitted(peer, y, warm)
                first = slice(0, 1) if found.coef_.ndim == 2 else slice(None)
                assert_allclose(found.coef_[first], expected.coef_[first], rtol=exact, atol=exact)
                assert_allclose(found.intercept_[:1], expected.intercept_[:1], rtol=exact, atol=exact)


def test_blocks_are_many(monkeypatch):
    """Else the order would hardly be random: much hangs on the block that a pass ends with."""
    monkeypatch.setattr(_order, "CONTENT_BYTES", 0)
    rows = sparse.random(3000, 50, 0.1, format="csr", random_state=np.random.RandomState(0))
    visits = _order.Visits(view_of(rows), np.arange(3000) % 2, None, shuffle=True, seed=1, content=False)
    visits.next_pass()
    assert_array_equal(np.sort(visits.order), np.arange(3000))
    assert 100 <= np.count_nonzero(np.diff(visits.order) != 1) <= 150


def test_large_data_are_visited_in_scikit_learns_order_where_neighbours_are_alike(monkeypatch):
    rng = np.random.default_rng(0)
    rows, y = rng.standard_normal((3000, 6)), np.arange(3000) // 1500
    monkeypatch.setattr(_order, "CONTENT_BYTES", 0)
    parameters = dict(random_state=0, max_iter=3, tol=None)
    expected = PeerClassifier(**parameters).fit(rows, y).coef_
    assert_allclose(SGDClassifier(**parameters).fit(rows, y).coef_, expected, rtol=1e-8)
    mixed = rng.permutation(3000)
    blocks = SGDClassifier(**parameters).fit(rows[mixed], y[mixed]).coef_
    assert np.abs(blocks - PeerClassifier(**parameters).fit(rows[mixed], y[mixed]).coef_).max() > 1e-3


@pytest.mark.parametrize("n_classes", [2, 3, 11])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bits_on_every_instruction_set(n_classes, dtype):
    rng = np.random.default_rng(n_classes)
    A = np.where(rng.random((60, 37)) < 0.4, 0.0, rng.standard_normal((60, 37))).astype(dtype)
    y = np.arange(60) % n_classes
    chosen = _hot.instruction_set()
    wide = sparse.csr_array(A)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    try:
        for parameters in (
            dict(loss="log_loss", penalty="elasticnet", average=True),
            dict(loss="hinge"),
            dict(loss="hinge", learning_rate="pa1"),
        ):
            for group in ([A, np.asfortranarray(A)], [sparse.csr_array(A), wide]):
                fits = []
                for name in _hot.instruction_sets():
                    _hot.use_instruction_set(name)
                    for data in group:
                        model = SGDClassifier(max_iter=4, tol=None, random_state=0, alpha=0.01, **parameters)
                        fits.append(model.fit(data, y).coef_)
                for other in fits[1:]:
                    assert_array_equal(other, fits[0])
                assert fits[0].dtype == dtype
    finally:
        _hot.use_instruction_set(chosen)


@pytest.mark.parametrize("average", [False, True])
def test_dense_and_sparse_agree_without_an_intercept(average):
    parameters = dict(fit_intercept=False, max_iter=5, tol=None, shuffle=False, average=average, alpha=0.01)
    dense = SGDClassifier("log_loss", **parameters).fit(SPARSE, Y)
    csr = SGDClassifier("log_loss", **parameters).fit(sparse.csr_array(SPARSE), Y)
    assert_allclose(csr.coef_, dense.coef_, rtol=1e-6)
    single = SGDClassifier("log_loss", **parameters).fit(SPARSE.astype(np.float32), Y)
    assert single.coef_.dtype == single.intercept_.dtype == np.float32
    assert_allclose(single.coef_, dense.coef_, rtol=1e-3, atol=1e-3)


def test_strong_decay_stays_finite():
    for average in (False, True):
        for parameters in (dict(alpha=1e3, learning_rate="constant"), dict(learning_rate="pegasos")):
            model = SGDClassifier(max_iter=3, tol=None, average=average, **parameters).fit(X, Y)
            assert np.all(np.isfinite(model.coef_))


def test_overflow_is_an_error_with_a_remedy():
    for container in (np.asarray, sparse.csr_array):
        with pytest.raises(ValueError, match=r"under-/overflow occurred at epoch #\d+.*StandardScaler.*eta0"):
            SGDRegressor(max_iter=50, tol=None).fit(container(1e200 * X), NUMBERS)


def test_time_and_interruption_leave_a_model():
    A = np.tile(X, (2000, 1))
    with pytest.warns(ConvergenceWarning, match="max_time is over"):
        model = SGDClassifier(max_time=0.05, max_iter=10**6, tol=None).fit(A, np.tile(Y, 2000))
    assert model.certificate_.status == "max_time"
    assert model.certificate_.seconds < 5
    assert model.predict(X).shape == (150,)
    with pytest.warns(ConvergenceWarning, match="Consider increasing max_iter"):
        SGDClassifier(max_iter=2).fit(X, Y)


BAD = [
    (dict(loss="hinges"), "'loss' parameter"),
    (dict(alpha=-1.0), "'alpha' parameter"),
    (dict(eta0=0.0), "'eta0' parameter"),
    (dict(alpha=0.0), r"alpha must be > 0 since learning_rate is 'optimal'.*another learning_rate"),
    (dict(alpha=0.0, learning_rate="pegasos"), "alpha must be > 0"),
    (dict(penalty="l1", learning_rate="pegasos"), "needs the L2 penalty.*choose penalty='l2'"),
    (dict(loss="log_loss", learning_rate="pa1"), "only works with loss 'hinge'"),
    (dict(penalty="elasticnet", l1_ratio=None), "l1_ratio must be set"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD, ids=str)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        SGDClassifier(**parameters).fit(X, Y)


def test_bad_calls_are_named():
    with pytest.raises(ValueError, match="early_stopping should be False with partial_fit"):
        SGDClassifier(early_stopping=True).partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"'balanced' is not supported .*compute_class_weight"):
        SGDClassifier(class_weight="balanced").partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="only works with loss 'epsilon_insensitive'"):
        SGDRegressor(learning_rate="pa2").fit(X, NUMBERS)
    with pytest.raises(ValueError, match=r"predicts numbers.*SGDClassifier"):
        SGDRegressor().fit(X, np.repeat(["a", "b", "c"], 50))
    with pytest.raises(ValueError, match="probability estimates are not available") as error:
        try:
            _ = SGDClassifier("hinge").predict_proba
        except AttributeError as refusal:
            raise ValueError(str(refusal.__cause__)) from None
    assert "log_loss" in str(error.value)
    with pytest.warns(FutureWarning, match="power_t"):
        SGDRegressor(power_t=-0.1, max_iter=2, tol=None).fit(X, NUMBERS)


def test_sparsify_and_clone():
    model = SGDRegressor(penalty="l1", alpha=0.1, random_state=0).fit(X, NUMBERS)
    before = model.predict(X)
    assert sparse.issparse(model.sparsify().coef_)
    assert_allclose(model.predict(X), before)
    assert clone(model).get_params() == model.get_params()


ESTIMATORS = [
    SGDClassifier(),
    SGDClassifier("log_loss", average=True),
    SGDClassifier("modified_huber", penalty="elasticnet", learning_rate="adaptive", eta0=0.1),
    SGDRegressor(),
    SGDRegressor("epsilon_insensitive", learning_rate="pa1"),
]


def excuse(estimator, name):
    if "sample_weight_equivalence" in name:
        return "a weight multiplies a sample's gradient, while a repeated sample also takes another step"
    return None


@checked(ESTIMATORS, excuse)
def test_check_estimator(estimator, check):
    check(estimator)
