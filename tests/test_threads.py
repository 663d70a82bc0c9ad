"""How many threads a process may use: its processors, a container's share of them, what joblib left it."""

import os

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

from separatrix import SVC, LinearSVC, LogisticRegression
from separatrix.data import threads


@pytest.fixture
def eight(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(threads, "_container_share", lambda: 100)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("told", "expected"), [(None, 8), ("3", 3), ("4,2", 4), ("64", 8), ("0", 8), ("", 8), ("many", 8)]
)
def test_omp_num_threads_is_an_upper_bound(eight, told, expected):
    if told is not None:
        eight.setenv("OMP_NUM_THREADS", told)
    assert threads.thread_count(None) == threads.thread_count(-1) == expected
    assert threads.thread_count(5) == 5


def test_a_container_gets_its_share(eight):
    eight.setattr(threads, "_container_share", lambda: 2)
    assert threads.thread_count(None) == 2


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "200000 100000"}, 2),
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu.max": ""}, None),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({}, None),
    ],
)
def test_the_share_is_read_from_either_version_of_control_groups(tmp_path, files, expected):
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = threads._container_share(str(tmp_path))
    assert found == expected if expected is not None else found > 1_000_000


class _Watched(SVC):
    """Fails unless its process may use one thread only."""

    def fit(self, X, y):
        assert threads.thread_count(None) == 1
        return super().fit(X, y)


def test_workers_of_joblib_share_the_processors():
    X, y = load_iris(return_X_y=True)
    processors = threads.thread_count(None)
    assert cross_val_score(_Watched(), X, y, cv=2, n_jobs=processors, error_score="raise").min() > 0.9


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (LogisticRegression(C=4.0, fit_intercept=False), (234, 264)),
        (LogisticRegression(C=5.0, l1_ratio=0.4, fit_intercept=False), (129, 282)),
        (LogisticRegression(C=5.0, l1_ratio=0.4), (200, 300)),
        (LinearSVC(C=5.0, penalty="l1"), (129, 282)),
        (LinearSVC(C=5.0), (234, 264)),
        (LinearSVC(C=5.0, loss="hinge"), (234, 264)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_of_the_linear_algebra_library_do_not_change_small_fits(model, shape, dtype):
    """Few numbers, whose products with each other are still many enough to be shared out."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=shape).astype(dtype)
    y = rng.integers(0, 2, shape[0])
    fits = []
    for count in (1, 2):
        with threads._controller().limit(limits=count, user_api="blas"):
            fits.append(model.fit(X, y).coef_)
    np.testing.assert_array_equal(*fits)
