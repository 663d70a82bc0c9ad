"""Passes that are made several at a time are the same as those made one by one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris, load_wine

from separatrix import Perceptron, SGDClassifier
from separatrix.data.memory import view_of
from separatrix.problem import Problem
from separatrix.solvers import perceptron, sgd
from separatrix.solvers._loop import NoImprovement, Step, run

X, Y = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)
CONTAINERS = [np.asarray, lambda X: X.astype(np.float32), sparse.csr_array]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def one_by_one(monkeypatch, model, X, y, **given):
    with monkeypatch.context() as patch:
        for solver in (perceptron, sgd):
            patch.setattr(solver, "at_one_go", lambda *_: False)
        return model.fit(X, y, **given)


def assert_same(ours, expected):
    assert_array_equal(ours.coef_, expected.coef_)
    assert_array_equal(ours.intercept_, expected.intercept_)
    assert ours.n_iter_ == expected.n_iter_ == len(ours.history_)
    assert ours.certificate_.status == expected.certificate_.status
    for found, wanted in zip(ours.history_, expected.history_, strict=True):
        assert found.keys() == wanted.keys()
        for name in found.keys() - {"seconds"}:
            if wanted[name] is None:
                assert found[name] is None
            else:
                assert_allclose(found[name], wanted[name], rtol=1e-12)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("coding", ["ovr", "ovo", "joint"])
@pytest.mark.parametrize("keep", ["best", "last", "average"])
@pytest.mark.parametrize("stop", [{"tol": None, "max_iter": 70}, {"tol": 1e-3}, {"max_iter": 2}])
def test_perceptrons_are_the_same(monkeypatch, container, coding, keep, stop):
    options = dict(multiclass=coding, keep=keep, random_state=3, **stop)
    given = dict(sample_weight=np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], 150))
    ours, expected = Perceptron(**options), Perceptron(**options)
    one_by_one(monkeypatch, expected, container(X), Y, **given)
    assert_same(ours.fit(container(X), Y, **given), expected)


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_warm_perceptron_competes_with_its_start(monkeypatch, shuffle):
    options = dict(warm_start=True, shuffle=shuffle, max_iter=4, tol=None)
    ours, expected = (Perceptron(**options).fit(X, Y == 1) for _ in range(2))
    assert_same(ours.fit(X, Y == 1), one_by_one(monkeypatch, expected, X, Y == 1))


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("average", [False, 200])
@pytest.mark.parametrize("penalty", ["l2", "l1", None])
@pytest.mark.parametrize("rate", ["optimal", "adaptive"])
@pytest.mark.parametrize("tol", [None, 1e-2])
def test_gradient_descents_are_the_same(monkeypatch, container, average, penalty, rate, tol):
    X, y = WINE[0] / WINE[0].std(axis=0), WINE[1]
    options = dict(penalty=penalty, average=average, learning_rate=rate, eta0=0.1, tol=tol, random_state=1)
    ours, expected = (SGDClassifier(max_iter=70, **options) for _ in range(2))
    assert_same(ours.fit(container(X), y), one_by_one(monkeypatch, expected, container(X), y))


def test_an_observer_sees_every_pass():
    problem = Problem(view_of(X), (Y == 1).astype(np.int64), np.array([[-1], [1]]))
    solver = perceptron.PerceptronSolver(problem, np.zeros((1, 4)), np.zeros(1), eta=1.0, margin=0.0)
    norms = []

    class Watch:
        def begin(self):
            pass

        def end(self):
            norms.append(np.sqrt((solver.coef**2).sum() + (solver.intercept**2).sum()))
            return len(norms) == 6

    outcome = run(solver, NoImprovement(None, 1), max_iter=20, observer=Watch())
    assert outcome.iterations == 6
    assert_allclose(norms, [record["norm"] for record in outcome.history])


@pytest.mark.parametrize("kind", [Perceptron, SGDClassifier])
def test_time_is_looked_at(kind):
    fitted = kind(tol=None, max_iter=10**9, max_time=0.05).fit(X, Y == 1)
    assert fitted.certificate_.status == "max_time"
    assert len(fitted.history_) == fitted.n_iter_
    ends = [record["seconds"] for record in fitted.history_]
    assert ends == sorted(ends)


def test_what_was_made_at_one_go_is_not_stopped_within():
    class Solver:
        def steps(self, control):
            while True:
                made = int(min(control.ahead(), 4))
                for number in range(made):
                    self.last = number + 1 == made
                    yield Step({}, 0.0, None, 0.0, not self.last)

    for tol, most, expected in ((None, 10, 10), (0.1, 100, 8), (None, 3, 3)):
        solver = Solver()
        assert run(solver, NoImprovement(tol, 7), max_iter=most).iterations == expected
        assert solver.last
    assert run(Solver(), NoImprovement(None, 1), max_iter=100, max_time=0.0).iterations == 4


@pytest.mark.parametrize("model", [Perceptron(eta0=1e30), SGDClassifier(learning_rate="constant", eta0=1e30)])
def test_weights_that_overflow_are_refused(model):
    with pytest.raises(ValueError, match="overflow"):
        model.fit(X.astype(np.float32) * 1e8, Y)
