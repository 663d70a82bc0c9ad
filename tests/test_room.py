"""The parameter ``max_memory``: methods that keep to it, refusals before the fit, and what fits take."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import separatrix as sx
from separatrix.data.memory import view_of
from separatrix.data.room import NoRoomError, allowed, demand, within
from separatrix.solvers._room import descent_bytes, machine_bytes, working_set_bytes
from separatrix.solvers.least_squares import bytes_of
from separatrix.solvers.regression import Regression

MODELS = {
    "LeastSquaresClassifier": {},
    "RidgeClassifier": {},
    "RidgeClassifier, positive": {"positive": True},
    "LinearDiscriminantAnalysis": {},
    "QuadraticDiscriminantAnalysis": {"reg_param": 0.1},
    "GaussianClassifier": {"covariance": "full", "shrinkage": 0.1},
    "LogisticRegression": {},
    "LogisticRegression, newton": {"solver": "newton"},
    "LogisticRegression, l1": {"l1_ratio": 1.0},
    "LinearSVC": {},
    "LinearSVC, newton": {"solver": "newton"},
    "LinearSVC, l1": {"penalty": "l1"},
    "LinearSVC, joint": {"multi_class": "crammer_singer"},
    "LinearSVR": {"C": 0.01},
}


def make(name, **more):
    return getattr(sx, name.partition(",")[0])(**MODELS[name], **more)


def blobs(n=600, d=60, classes=3, dtype=np.float64):
    rng = np.random.default_rng(5)
    y = rng.integers(classes, size=n)
    return (rng.standard_normal((n, d)) + rng.standard_normal((classes, d))[y]).astype(dtype), y


def needed(name, X, y):
    """Return the megabytes that the refusal of a tiny limit asks for."""
    with pytest.raises(MemoryError, match=r"besides its input, but max_memory=0\.001 allows less") as error:
        make(name, max_memory=0.001).fit(X, y)
    return float(re.search(r"max_memory to at least (\d+)", str(error.value)).group(1))


@pytest.mark.parametrize("name", MODELS)
def test_a_limit_too_small_is_refused_before_the_fit_and_the_number_it_names_suffices(name):
    X, y = blobs()
    model = make(name, max_memory=0.001)
    with pytest.raises(MemoryError, match="Set max_memory to at least"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    enough = make(name, max_memory=needed(name, X, y)).fit(X, y)
    free = make(name).fit(X, y)
    assert np.mean(enough.predict(X) == free.predict(X)) > 0.99 or name == "LinearSVR"
    assert allowed() == np.inf  # the limit ends with the fit


@pytest.mark.parametrize("name", ["LeastSquaresClassifier", "RidgeClassifier"])
def test_least_squares_iterate_where_a_matrix_has_no_room(name):
    X, y = blobs(n=2600, d=2400, dtype=np.float32)
    problem = Regression(view_of(X), y, np.eye(3), np.full(3, 100.0))
    with within(10**6):  # as many threads as with the limit
        iterated, factorised = bytes_of(problem, "cg"), bytes_of(problem, "primal")
    assert 1.01 * iterated < factorised
    closed = make(name, alpha=100.0).fit(X, y)
    limited = make(name, alpha=100.0, max_memory=1.01 * iterated / 2**20).fit(X, y)
    assert closed.solver_ != limited.solver_ in ("cg", "sparse_cg")
    assert limited.certificate_.primal == pytest.approx(closed.certificate_.primal, rel=1e-6)


def test_a_singular_matrix_is_not_factorised_otherwise_where_that_has_no_room():
    # Normal equations find dependent features; the factorisation that would settle them takes more memory.
    X, y = blobs(n=2000, d=700)
    X[:, 600:] = X[:, :100] + 1e-9 * X[:, 600:]
    problem = Regression(view_of(X), y, np.eye(3), np.zeros(3))
    assert sx.LeastSquaresClassifier(solver="primal").fit(X, y).solver_ == "svd"
    with within(10**6):
        enough = 1.01 * bytes_of(problem, "primal")
        assert enough < bytes_of(problem, "svd")
    model = sx.LeastSquaresClassifier(solver="primal", max_memory=enough / 2**20).fit(X, y)
    assert model.solver_ == "cg"
    assert model.certificate_.status in ("converged", "max_iter")
    free = sx.LeastSquaresClassifier(solver="svd").fit(X, y)
    null = 2000 * 2 / 3  # without weights; what iterations miss of nearly dependent features is little of it
    assert model.certificate_.primal <= free.certificate_.primal + 2e-3 * null


def test_logistic_regression_forms_no_hessian_that_has_no_room():
    X, y = blobs(n=4000, d=400)
    view, solved = view_of(X), sx.LogisticRegression(tol=1e-6).fit(X, y)
    with within(10**6):
        limit = descent_bytes(view, 3, "diagonal", coupled=True, pairs=4)
        assert descent_bytes(view, 3, "blocks", coupled=True, pairs=4) > 1.01 * limit
    limited = sx.LogisticRegression(tol=1e-6, max_memory=1.01 * limit / 2**20).fit(X, y)
    assert limited.certificate_.status == "converged"
    assert limited.certificate_.primal <= solved.certificate_.primal * (1 + 2e-6)


def test_the_dual_of_sparse_data_gives_way_to_a_descent_that_takes_less():
    rng = np.random.default_rng(0)
    X = sparse.random(300, 30_000, density=1e-3, random_state=rng, format="csr")
    y = np.asarray(X[:, :15_000].sum(axis=1)).ravel() > np.asarray(X[:, 15_000:].sum(axis=1)).ravel()
    free = sx.LogisticRegression(tol=1e-6).fit(X, y)
    limited = sx.LogisticRegression(tol=1e-6, max_memory=needed_by_descent(X)).fit(X, y)
    assert limited.certificate_.primal == pytest.approx(free.certificate_.primal, rel=3e-6)


def needed_by_descent(X):
    with within(10**6):
        return 1.01 * descent_bytes(view_of(X), 1, "diagonal", coupled=False, pairs=4) / 2**20


def test_machines_descend_in_the_dual_alone_where_newton_has_no_room():
    X, y = blobs(n=1500, d=500)
    dual, newton = (machine_bytes(view_of(X), 3, method) / 2**20 for method in ("dual", "newton"))
    assert dual < newton
    free = sx.LinearSVC(C=0.01).fit(X, y)
    limited = sx.LinearSVC(C=0.01, max_memory=1.01 * dual).fit(X, y)
    assert limited.certificate_.primal == pytest.approx(free.certificate_.primal, rel=2e-4)
    with pytest.raises(MemoryError, match="choose solver='auto'"):
        sx.LinearSVC(solver="newton", max_memory=1.01 * dual).fit(X, y)


def test_batches_of_gaussian_models_keep_to_the_limit_too():
    X, y = blobs()
    model = sx.GaussianClassifier(max_memory=0.01)
    with pytest.raises(MemoryError, match="60 features"):
        model.partial_fit(X, y, classes=[0, 1, 2])


def test_estimates_grow_with_what_they_count():
    small, large = view_of(np.zeros((100, 20))), view_of(np.zeros((200, 40)))
    for estimate in (
        lambda view, k: descent_bytes(view, k, "blocks", coupled=True, pairs=5),
        lambda view, k: machine_bytes(view, k, "newton"),
        lambda view, k: working_set_bytes(view, k, joint=True),
    ):
        assert estimate(small, 2) < estimate(large, 2) < estimate(large, 9)


def test_limits_nest_and_end_with_an_error():
    with within(100):
        with pytest.raises(NoRoomError), within(1):
            demand(2**21, "two megabytes")
        assert allowed() == 100 * 2**20
        demand(2**21, "two megabytes")
    with pytest.raises(MemoryError, match=r"at least 1300, or go by train\.$"), within(10):
        demand(1234 << 20, "walking", "go by train")


@pytest.mark.parametrize("value", [0, -1.0, "1 GB"])
@pytest.mark.parametrize("name", ["LogisticRegression", "LinearSVC", "LinearDiscriminantAnalysis"])
def test_max_memory_is_a_positive_number(name, value):
    with pytest.raises(ValueError, match="'max_memory' parameter of"):
        make(name, max_memory=value).fit(*blobs())


def test_scores_of_single_precision_rows_by_double_weights_convert_a_block_at_a_time():
    view = view_of(np.ones((40_000, 200), dtype=np.float32))
    weights = np.ones((1, 200))
    view.scores(weights)
    tracemalloc.start()
    scores = view.scores(weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert scores[0, 0] == 200.0
    assert peak < view.array.nbytes  # all rows in double precision would be twice that


_PROGRAM = """
import json, sys, warnings
import numpy as np
from scipy import sparse
import separatrix as sx

warnings.simplefilter("ignore")
name, options, (n, d, classes, stored) = json.loads(sys.argv[1])
rng = np.random.default_rng(0)

def samples(n):
    if stored:
        places = rng.integers(d, size=n * stored)
        X = sparse.csr_array((rng.random(n * stored), places, np.arange(n + 1) * stored), shape=(n, d))
        X.sum_duplicates()
    else:
        X = rng.standard_normal((n, d), dtype=np.float32)
    return X, np.asarray(X @ rng.standard_normal((d, classes)).astype(np.float32)).argmax(axis=1)

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) / 1024

model = getattr(sx, name)(**options)
model.fit(*samples(300))  # what the first fit loads and keeps does not count
X, y = samples(n)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = peak()
model.fit(X, y)
print(peak() - before)
"""


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks are read where Linux tells them"
)
@pytest.mark.parametrize(
    ("name", "options", "limit", "shape"),
    [
        ("RidgeClassifier", {"alpha": 100.0}, 90, (2200, 2600, 3, 0)),  # the closed form takes 100
        ("LogisticRegression", {}, 150, (4000, 3000, 4, 0)),
        ("LogisticRegression", {}, 120, (400_000, 40, 2, 0)),
        ("LogisticRegression", {"l1_ratio": 1.0, "C": 0.01}, 180, (200_000, 40, 2, 0)),
        ("LinearSVC", {}, 140, (200_000, 60, 2, 0)),
        ("LinearSVC", {}, 110, (20_000, 30_000, 3, 30)),
        ("LinearDiscriminantAnalysis", {}, 200, (20_000, 1000, 3, 0)),
    ],
)
def test_fits_take_no_more_than_they_may(name, options, limit, shape):
    case = json.dumps([name, {**options, "max_memory": limit}, shape])
    two = {**os.environ, "OMP_NUM_THREADS": "2"}  # whatever the machine
    run = subprocess.run([sys.executable, "-c", _PROGRAM, case], capture_output=True, text=True, env=two)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) <= limit


@pytest.mark.parametrize("name", ["LinearSVC, newton", "LinearSVC, l1"])
@pytest.mark.parametrize(("shape", "classes"), [((60_000, 80), 2), ((3000, 500), 6)])
def test_what_takes_a_share_of_the_limit_fits_into_the_number_that_is_asked_for(name, shape, classes):
    # Samples that show the way, and sums that are kept, take more of a larger limit.
    X, y = blobs(*shape, classes, dtype=np.float32)
    model = make(name, tol=0.1, max_memory=needed(name, X, y)).fit(X, y)
    assert model.score(X, y) > 0.9
