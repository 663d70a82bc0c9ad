"""What the first call costs: fits in fresh processes, and the program itself, import included."""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.cases import PEER, PEERS
from benchmarks.contest import Row
from benchmarks.rows import timed
from benchmarks.tiers import Plan
from benchmarks.timing import process_seconds

_PROGRAM = """
import sys
import numpy as np
from {module} import {name}
stored = np.load(sys.argv[1])
model = {name}().fit(stored["X"], stored["y"])
assert len(model.predict(stored["X"])) == len(stored["y"])
"""
_PROMISED = ("Perceptron", "SVC")


def items(plan: Plan) -> list[tuple[str, Callable[[], list[Row]]]]:
    """First fits on iris (one also on wine; in a small run those with a target), then the program itself."""
    found = []
    for source in ("iris", "wine"):
        for name in _PROMISED if plan.small else PEERS:
            if source == "iris" or (name == "SVC" and not plan.small):
                repeats = (7 if name in _PROMISED else 3) if not plan.small else 2
                found.append((f"{source}: {name}", partial(_first_fit, source, name, repeats)))
    repeats = 2 if plan.small else 7
    found.append(("separatrix --help", partial(_help, repeats)))
    found.append(("separatrix fit on iris", partial(_fit, repeats)))
    return found


def _first_fit(source: str, name: str, repeats: int) -> list[Row]:
    import sklearn.datasets

    module, theirs = PEERS[name]
    X, y = getattr(sklearn.datasets, f"load_{source}")(return_X_y=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, X=X, y=y)
        seconds = process_seconds(
            {
                "ours": [sys.executable, "-c", _PROGRAM.format(module="separatrix", name=name), str(path)],
                "peer": [sys.executable, "-c", _PROGRAM.format(module=module, name=theirs), str(path)],
            },
            repeats,
        )
    return [
        timed(
            f"{source}: {name}",
            "first fit",
            name,
            seconds["ours"],
            f"{PEER} {theirs}",
            seconds["peer"],
            size=f"{X.shape[0]:,} × {X.shape[1]:,}",
        )
    ]


def _help(repeats: int) -> list[Row]:
    seconds = process_seconds(
        {"ours": [*program(), "--help"], "peer": [sys.executable, "-c", "pass"]}, repeats
    )
    return [
        timed(
            "separatrix --help",
            "process",
            "separatrix --help",
            seconds["ours"],
            "python -c pass",
            seconds["peer"],
        )
    ]


def _fit(repeats: int) -> list[Row]:
    from sklearn.datasets import load_iris

    iris = load_iris()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "iris.csv"
        names = ["sepal_length", "sepal_width", "petal_length", "petal_width", "species"]
        lines = [
            ",".join((*(f"{value:g}" for value in row), str(iris.target_names[label])))
            for row, label in zip(iris.data, iris.target, strict=True)
        ]
        path.write_text("\n".join([",".join(names), *lines]) + "\n")
        command = [*program(), "fit", str(path), "--target", "species", "--save", str(Path(folder, "m.sx"))]
        seconds = process_seconds(
            {"ours": command, "peer": [sys.executable, "-c", "import sklearn.svm"]}, repeats
        )
    return [
        timed(
            "separatrix fit on iris",
            "process",
            "separatrix fit",
            seconds["ours"],
            "import sklearn.svm",
            seconds["peer"],
        )
    ]


def program() -> list[str]:
    """The installed program where there is one; its module, which takes as long, where there is not."""
    script = Path(sys.executable).with_name("separatrix")
    return [str(script)] if script.exists() else [sys.executable, "-m", "separatrix"]
