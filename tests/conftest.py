"""Settings shared by all tests, and the small data sets that many of them use."""

import os
import signal
from pathlib import Path

# Pictures are drawn into memory: no test may need a screen. Set before anything imports matplotlib.
os.environ["MPLBACKEND"] = "Agg"

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Ctrl-C is tested by signals, which a run in the background would have inherited as ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A first call may import scikit-learn or load the compiled core: deadlines would only measure that.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# In CI the same examples run each time, so that a failure there can be repeated here.
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def root():
    """The folder of the project."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def separable():
    """Two classes in the plane, a wide gap along the diagonal between them: X, y in {0, 1}."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    y = (np.arange(60) % 2).astype(int)
    X += np.where(y == 1, 4.0, -4.0)[:, None]
    return X, y


@pytest.fixture(scope="session")
def three_classes():
    """Three overlapping classes in four dimensions, with names for labels: X, y."""
    random = np.random.default_rng(1)
    y = np.repeat(["blue", "green", "red"], 40)
    X = random.normal(size=(120, 4)) + np.repeat(np.eye(3, 4) * 2.0, 40, axis=0)
    order = random.permutation(120)
    return X[order], y[order]


@pytest.fixture
def path(tmp_path):
    """Where a model is saved; no temporary file may stay beside it."""
    yield tmp_path / "model.sx"
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


@pytest.fixture
def clock_of_asks(monkeypatch):
    """Return what sets how often a fit may ask before its time is up; it returns the list of asks."""
    from separatrix.solvers import _loop

    def after(asks):
        asked = []

        def reason(control):
            asked.append(control)
            return "max_time" if len(asked) > asks else None

        monkeypatch.setattr(_loop.Control, "reason", reason)
        return asked

    return after
