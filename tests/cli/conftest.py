"""Helpers to run the command line in this process, and files for it to work on."""

import shutil
from typing import NamedTuple

import numpy as np
import pytest

from separatrix.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Run the command line as the process would, and return exit code and output."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture
def refused(run):
    """Run a command that must fail with one message, and return that message."""

    def call(*arguments):
        outcome = run(*arguments)
        assert outcome.code == 2
        assert outcome.out == ""
        assert outcome.err.startswith("separatrix: error: ")
        assert "Traceback" not in outcome.err
        assert outcome.err.count("\n") == 1, "one message"
        return outcome.err

    return call


@pytest.fixture
def banknote(root, tmp_path):
    """A copy of the example data."""
    return shutil.copy(root / "examples" / "data" / "banknote.csv", tmp_path / "banknote.csv")


@pytest.fixture
def flowers(tmp_path):
    """Three well separated classes, two features, an identifier and text labels."""
    random = np.random.default_rng(0)
    lines = ["id,length,width,kind"]
    for number in range(90):
        kind = number % 3
        length, width = np.array([[0, 0], [8, 0], [0, 8]])[kind] + random.normal(size=2)
        lines.append(
            f"{number},{length:.4f},{width:.4f},{('lily', 'rose', 'oak, tree')[kind]!r}".replace("'", '"')
        )
    path = tmp_path / "flowers.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def no_leftovers(tmp_path):
    """After the test, no temporary file may be left beside the results."""
    yield
    assert [path.name for path in tmp_path.rglob(".*")] == []


@pytest.fixture
def data(root, tmp_path):
    """A function that copies a file of tests/data to a folder of its own."""
    return lambda name: shutil.copy(root / "tests" / "data" / name, tmp_path / name)


@pytest.fixture
def iris(data):
    """A copy of the table of irises."""
    return data("iris.csv")
