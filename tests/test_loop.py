"""The one loop: budgets, Ctrl-C, progress, history, callbacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import separatrix
from separatrix import SVC, KernelPerceptron, Perceptron
from separatrix.models import kernel_svm
from separatrix.solvers._loop import Below, Control, NoImprovement, Step, run

X, Y = load_iris(return_X_y=True)
ENDLESS = dict(tol=None, max_iter=10**9)


class Counter:
    """A solver that counts; it is finished after `end` steps."""

    def __init__(self, end=10**9, pause=0.0):
        self.count, self.end, self.pause = 0, end, pause

    def steps(self, control):
        while True:
            time.sleep(self.pause)
            self.count += 1
            yield Step(
                {"count": self.count}, 1.0 / self.count, "separable" if self.count == self.end else None
            )


def test_ways_to_end():
    assert run(Counter(), Below(0.25), max_iter=100).status == "converged"
    assert run(Counter(), Below(0.25), max_iter=100).iterations == 4
    assert run(Counter(end=3), Below(0.0), max_iter=100).status == "separable"
    assert run(Counter(), Below(0.0), max_iter=7).status == "max_iter"
    slow = run(Counter(pause=0.01), Below(0.0), max_iter=10**6, max_time=0.05)
    assert slow.status == "max_time"
    assert slow.seconds < 10  # an endless loop, not a slow machine


class Witness:
    """Writes down what the loop tells and how far the solver is then; asks to stop at the count `stop`."""

    def __init__(self, solver, stop=None):
        self.solver, self.stop, self.heard = solver, stop, []

    def begin(self):
        self.heard.append(("begin", self.solver.count))

    def end(self):
        self.heard.append(("end", self.solver.count))
        return self.solver.count == self.stop


def test_an_observer_hears_of_an_iteration_before_and_after_it():
    stopped = Counter()
    witness = Witness(stopped, stop=2)
    assert run(stopped, Below(0.0), max_iter=9, observer=witness).iterations == 2
    assert witness.heard == [("begin", 0), ("end", 1), ("begin", 1), ("end", 2)]
    for most, rule, iterations in ((3, Below(0.0), 3), (9, Below(0.5), 2), (0, Below(0.0), 0)):
        solver = Counter()
        witness = Witness(solver)
        assert run(solver, rule, max_iter=most, observer=witness).iterations == iterations
        assert [what for what, _ in witness.heard] == ["begin", "end"] * iterations


def test_an_iteration_that_finds_nothing_to_do_is_ended_too():
    class Nothing:
        count = 0

        def steps(self, control):
            yield from ()

    witness = Witness(Nothing())
    assert run(Nothing(), Below(0.0), max_iter=9, observer=witness).status == "converged"
    assert witness.heard == [("begin", 0), ("end", 0)]


def test_no_improvement_rule():
    rule = NoImprovement(tol=0.1, patience=2)
    assert [rule(m) for m in (5.0, 4.0, 3.95, 3.5, 3.49, 3.48)] == [False, False, False, False, False, True]
    never = NoImprovement(tol=None, patience=1)
    assert not any(never(1.0) for _ in range(50))


def test_history_counts_iterations():
    outcome = run(Counter(), Below(0.0), max_iter=3)
    assert [h["iteration"] for h in outcome.history] == [1, 2, 3]
    assert all(
        a["seconds"] <= b["seconds"] for a, b in zip(outcome.history, outcome.history[1:], strict=False)
    )


def test_control_tells_the_reason():
    control = Control(None)
    assert not control.expired()
    control.interrupted = True
    assert control.reason() == "interrupted"
    assert Control(0.0).reason() == "max_time"


@pytest.mark.parametrize("make", [Perceptron, KernelPerceptron])
def test_max_time(make):
    with pytest.warns(ConvergenceWarning, match="max_time is over"):
        model = make(max_time=0.2, **ENDLESS).fit(X, Y)
    assert model.certificate_.status == "max_time"
    assert 0.2 <= model.certificate_.seconds < 10
    assert model.score(X, Y) > 0.5
    assert model.n_iter_ == len(model.history_)


@pytest.mark.parametrize("make", ["Perceptron", "KernelPerceptron"])
@pytest.mark.parametrize("when", [0.3, 1.0])
def test_kill_int_leaves_a_usable_model(make, when):
    program = textwrap.dedent(
        f"""
        import warnings, numpy as np
        from separatrix import {make}
        rng = np.random.default_rng(0)
        X = rng.standard_normal((3000, 20)); y = (X[:, 0] + rng.standard_normal(3000) > 0).astype(int)
        X[:300], y[:300] = X[300:600], 1 - y[300:600]  # which no kernel separates
        model = {make}(tol=None, max_iter=10**9)
        print("ready", flush=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        # Before the first pass is over (a busy machine) the model predicts, but need not be good.
        good = model.score(X, y) > 0.6 if model.n_iter_ else np.isfinite(model.decision_function(X)).all()
        print(model.certificate_.status, caught[0].category.__name__, good)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(when)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert output == "interrupted ConvergenceWarning True\n"
    assert process.returncode == 0


def test_handler_is_restored():
    before = signal.getsignal(signal.SIGINT)
    Perceptron().fit(X, Y)
    assert signal.getsignal(signal.SIGINT) is before


def test_fit_in_a_thread():
    done = []
    thread = threading.Thread(target=lambda: done.append(Perceptron().fit(X, Y)))
    thread.start()
    thread.join()
    assert done[0].score(X, Y) > 0.8


def test_own_handler_may_raise():
    def handler(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model = Perceptron(**ENDLESS).fit(X, Y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.certificate_.status == "interrupted"


def test_verbose(capsys):
    Perceptron(max_iter=3, tol=None, verbose=2).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("Perceptron 1/3: mistakes ")
    assert "left" in lines[0]
    assert lines[-1].startswith("Perceptron: max_iter after 3 iterations")
    Perceptron(max_iter=50, tol=None, verbose=1).fit(X, Y)
    assert len(capsys.readouterr().out.splitlines()) < 10


@pytest.mark.parametrize("make", [Perceptron, KernelPerceptron])
def test_progress_bar_shows(make, capsys):
    make(max_iter=5, tol=None).set_callbacks(ProgressBar()).fit(X, Y)
    shown = capsys.readouterr().out
    assert f"{make.__name__} - fit" in shown
    assert "100%" in shown


class Recorder:
    """Counts its calls; asks to stop after `stop` passes."""

    def __init__(self, stop=None):
        self.calls, self.scores, self.stop = [], [], stop

    def setup(self, estimator, context):
        self.calls.append("setup")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.calls.append(f"end {context.task_name}")
        if context.task_name == "pass":
            self.scores.append(fitted_estimator.score(X, y))
        return self.stop is not None and len(self.scores) >= self.stop

    def teardown(self, estimator, context):
        self.calls.append("teardown")


@pytest.mark.parametrize("make", [Perceptron, KernelPerceptron])
def test_callbacks(make):
    recorder = Recorder()
    make(max_iter=3, tol=None).set_callbacks(recorder).fit(X, Y)
    assert recorder.calls == [
        "setup",
        "begin fit",
        *["begin pass", "end pass"] * 3,
        "end fit",
        "teardown",
    ]
    assert len(recorder.scores) == 3


CALLED_BACK = [
    *(Perceptron, KernelPerceptron, separatrix.LogisticRegression, separatrix.SVC, separatrix.SVR),
    *(separatrix.NuSVC, separatrix.NuSVR, separatrix.OneClassSVM, separatrix.LinearSVC, separatrix.LinearSVR),
    *(separatrix.SGDClassifier, separatrix.SGDRegressor, separatrix.RidgeClassifier),
    *(separatrix.LeastSquaresClassifier, separatrix.GaussianClassifier),
]


@pytest.mark.parametrize("at", ["setup", "on_fit_task_begin", "on_fit_task_end"])
@pytest.mark.parametrize("make", CALLED_BACK)
def test_a_callback_that_fails_is_closed(make, at):
    recorder = Recorder()

    def fail(*given, **named):
        raise RuntimeError(f"{at} fails")

    setattr(recorder, at, fail)
    model = make().set_callbacks(recorder)
    with pytest.raises(RuntimeError, match=f"{at} fails"):
        model.fit(X, Y)
    assert recorder.calls[-1] == "teardown"
    assert not hasattr(model, "_callback_fit_ctx")


def test_callbacks_see_the_model_before_and_after_each_pass():
    seen = []

    class Watch(Recorder):
        def on_fit_task_begin(self, estimator, context, *, fitted_estimator=None):
            if context.task_name == "pass":
                seen.append(None if fitted_estimator is None else fitted_estimator.coef_)

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            if context.task_name == "pass":
                seen.append(fitted_estimator.coef_)

    options = dict(shuffle=False, tol=None, keep="last")
    Perceptron(max_iter=3, **options).set_callbacks(Watch()).fit(X, Y)
    with_passes = [Perceptron(max_iter=k, **options).fit(X, Y).coef_ for k in (1, 2, 3)]
    assert seen[0] is None
    assert_array_equal(seen[1:], np.repeat(with_passes, 2, axis=0)[:-1])


def test_callback_may_stop_the_fit():
    with pytest.warns(ConvergenceWarning):
        model = Perceptron(max_iter=100, tol=None).set_callbacks(Recorder(stop=4)).fit(X, Y)
    assert model.n_iter_ == 4


def test_scoring_monitor_and_grid_search():
    monitor = ScoringMonitor(scoring="accuracy")
    Perceptron(max_iter=4, tol=None).set_callbacks(monitor).fit(X, Y)
    search = GridSearchCV(Perceptron(max_iter=4, tol=None), {"margin": [0.0, 1.0]}, cv=2)
    search.set_callbacks(ProgressBar()).fit(X, Y)
    assert search.best_score_ > 0.5


def test_clone_and_history_are_plain():
    model = clone(Perceptron(max_iter=2, tol=None)).fit(X, Y)
    keys = {"iteration", "seconds", "mistakes", "margin_errors", "criterion", "norm", "training_errors"}
    assert set(model.history_[0]) == keys
    assert all(np.isfinite(h["norm"]) for h in model.history_)


@pytest.mark.parametrize("make", ["SVC(gamma=0.5, C=1e6)", "SVR(C=1e6)"])
def test_an_interrupt_before_the_first_step_leaves_a_usable_model(make):
    """In a fresh process, while the first fit of all still takes in the samples."""
    program = textwrap.dedent(
        f"""
        import os, signal, warnings, numpy as np
        from separatrix import {make.partition("(")[0]}
        rng = np.random.default_rng(0)
        X = rng.standard_normal((3000, 20)); y = (X[:, 0] + rng.standard_normal(3000) > 0).astype(int)
        class Samples:
            def __array__(self, dtype=None, copy=None):
                os.kill(os.getpid(), signal.SIGINT)
                return X
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = {make}.fit(Samples(), y)
        values = model.predict(X)
        print(model.certificate_.status, caught[0].category.__name__, np.isfinite(values).all())
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        """
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert found.stdout == "interrupted ConvergenceWarning True\nTrue\n"


def test_an_interrupt_after_the_last_step_leaves_the_model_whole(monkeypatch):
    certify = kernel_svm.certify

    def late(*given, **named):
        os.kill(os.getpid(), signal.SIGINT)
        return certify(*given, **named)

    monkeypatch.setattr(kernel_svm, "certify", late)
    model = SVC().fit(X, Y)
    assert model.certificate_.status == "converged"
    assert model.score(X, Y) > 0.8


def test_a_second_interrupt_before_the_first_step_raises():
    class Samples:
        def __array__(self, dtype=None, copy=None):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            return X

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        SVC().fit(Samples(), Y)
    assert signal.getsignal(signal.SIGINT) is before
