"""Data like LIBSVM's heart_scale, and its own programs where they are installed."""

import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_iris


@pytest.fixture(scope="session")
def heart():
    """270 samples of 13 features in [−1, 1], some exactly 0, labels ±1 that overlap."""
    random = np.random.default_rng(3)
    X = random.uniform(-1, 1, size=(270, 13)).round(4)
    X[random.random(X.shape) < 0.2] = 0.0
    y = np.where(X @ random.normal(size=13) + random.normal(size=270) > 0, 1, -1)
    return X, y


@pytest.fixture(scope="session")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y + 1


@pytest.fixture
def write(tmp_path):
    """Write samples as LIBSVM text and return the path."""

    def call(X, y, name="data.txt"):
        path = tmp_path / name
        lines = [
            " ".join([repr(label), *(f"{j + 1}:{v!r}" for j, v in enumerate(row) if v)])
            for label, row in zip(y.tolist(), X.tolist(), strict=True)
        ]
        path.write_text("\n".join(lines) + "\n")
        return path

    return call


@pytest.fixture
def program():
    """Run one of LIBSVM's or LIBLINEAR's programs and return what it printed; skip if it is not installed."""

    def call(name, *arguments):
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"{name} is not installed: run scripts/system-packages.sh")
        done = subprocess.run([found, *map(str, arguments)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call
