"""Fits that run several solvers: one Ctrl-C ends them all, and they share ``max_time``."""

import os
import signal
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from separatrix import SVC, LinearSVC, NuSVC
from separatrix.models import _linear_svm
from separatrix.solvers import joint_machine, out_of_fold

CLASSES = 3


@pytest.fixture
def samples():
    random = np.random.default_rng(0)
    y = np.arange(90) % CLASSES
    return random.normal(size=(90, 4)) + y[:, None], y


class Runs:
    """Stands for ``run`` of a module: counts calls, and presses Ctrl-C before one of them."""

    def __init__(self, monkeypatch, module, press=None):
        self.run, self.press = module.run, press
        self.limits, self.outcomes = [], []
        monkeypatch.setattr(module, "run", self)

    def __call__(self, *given, **named):
        self.limits.append(named["max_time"])
        if len(self.limits) == self.press:
            os.kill(os.getpid(), signal.SIGINT)
        self.outcomes.append(self.run(*given, **named))
        return self.outcomes[-1]


def check_probabilities(model, X):
    found = model.predict_proba(X)
    assert found.shape == (len(X), CLASSES)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[found.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize(
    ("make", "module", "press", "runs"),
    [
        (lambda: SVC(multiclass="joint", probability=True), joint_machine, 1, 1),
        (lambda: SVC(multiclass="joint", probability=True), joint_machine, 3, 3),
        (lambda: LinearSVC(probability=True), _linear_svm, 2, 2),
        (lambda: LinearSVC(probability=True), _linear_svm, 4, 4),
        (lambda: LinearSVC(probability=True, loss="hinge"), _linear_svm, 3, 3),
    ],
)
def test_one_interrupt_ends_all_folds_behind_the_probabilities(
    make, module, press, runs, monkeypatch, samples
):
    X, y = samples
    plain = make().set_params(probability=False).fit(X, y)
    seen = Runs(monkeypatch, module, press)
    with pytest.warns(ConvergenceWarning, match=r"folds behind .*\(interrupted\).*fit again"):
        model = make().fit(X, y)
    assert len(seen.limits) == runs
    assert model.certificate_.status == "converged"
    assert model.certificate_.message.endswith("ended early (interrupted)")
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    check_probabilities(model, X)


@pytest.mark.parametrize("make", [lambda: SVC(C=100, gamma=20.0), lambda: NuSVC(nu=0.3, gamma=20.0)])
def test_an_interrupt_of_warm_started_folds_keeps_the_machine(make, monkeypatch):
    random = np.random.default_rng(1)
    X, y = random.normal(size=(6000, 3)), np.arange(6000) % CLASSES
    X[:, 0] += 2 * y
    plain = make().fit(X, y)
    Runs(monkeypatch, out_of_fold, 1)
    with pytest.warns(ConvergenceWarning, match=r"folds behind the probabilities.*\(interrupted\)"):
        model = make().set_params(probability=True).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    check_probabilities(model, X)


def test_an_interrupted_machine_has_no_folds_solved_for_it(monkeypatch, samples):
    X, y = samples
    seen = Runs(monkeypatch, _linear_svm, 1)
    with pytest.warns(ConvergenceWarning, match="stopped before convergence"):
        model = LinearSVC(probability=True).fit(X, y)
    assert [outcome.status for outcome in seen.outcomes] == ["interrupted"] * 2
    assert model.certificate_.status == "interrupted"
    check_probabilities(model, X)


def test_one_interrupt_ends_all_columns_with_weights_of_their_own(monkeypatch, samples):
    X, y = samples
    seen = Runs(monkeypatch, _linear_svm, 2)
    with pytest.warns(ConvergenceWarning, match="stopped before convergence"):
        model = LinearSVC(class_weight="balanced").fit(X, y)
    assert [outcome.status for outcome in seen.outcomes[1:]] == ["interrupted"] * (CLASSES - 1)
    assert model.certificate_.status == "interrupted"
    assert model.coef_.shape == (CLASSES, 4)


def test_one_interrupt_ends_a_path(monkeypatch, samples):
    X, y = samples
    Runs(monkeypatch, _linear_svm, 3)
    with pytest.warns(ConvergenceWarning, match="stopped before convergence"):
        path = LinearSVC.path(X, y, [0.01, 0.1, 1.0, 10.0])
    assert path.Cs.tolist() == [0.01, 0.1, 1.0]
    assert [c.status for c in path.certificates] == ["converged", "converged", "interrupted"]
    assert len(path.coefs) == len(path.margins) == len(path.objectives) == 3


@pytest.mark.parametrize(
    ("make", "module", "folds_from"),
    [
        (lambda: LinearSVC(probability=True), _linear_svm, 1),
        (lambda: SVC(multiclass="joint", probability=True), joint_machine, 0),
    ],
)
def test_folds_share_what_is_left_of_max_time(make, module, folds_from, monkeypatch, samples):
    X, y = samples
    seen = Runs(monkeypatch, module)
    make().set_params(max_time=1000.0).fit(X, y)
    folds = seen.limits[folds_from:]
    assert len(folds) == 5
    # What a fold leaves over is for the others: a fifth at first, all of it for the last one.
    np.testing.assert_allclose(folds, 1000.0 / np.arange(5, 0, -1), rtol=0.1)


@pytest.mark.parametrize("make", [LinearSVC, lambda **given: SVC(multiclass="joint", **given)])
def test_time_that_is_over_is_told_of_the_probabilities(make, samples):
    X, y = samples
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = make(probability=True, max_time=1e-9).fit(X, y)
    assert model.certificate_.message.endswith("the folds behind the probabilities ended early (max_time)")
    assert [w.category for w in told] == [ConvergenceWarning]
    check_probabilities(model, X)
