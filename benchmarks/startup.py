"""First fit on iris in a fresh process, import included."""

import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import process_seconds

_PROGRAM = """
import sys
import numpy as np
from {module} import Perceptron
stored = np.load(sys.argv[1])
model = Perceptron().fit(stored["X"], stored["y"])
assert model.predict(stored["X"]).shape == (150,)
"""
_MODULES = {"separatrix": "separatrix", "scikit-learn": "sklearn.linear_model"}


def measure(quick: bool) -> list[dict[str, Any]]:
    """Median wall-clock seconds of whole processes, and of one that only imports NumPy for comparison."""
    from sklearn.datasets import load_iris

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "iris.npz"
        X, y = load_iris(return_X_y=True)
        np.savez(path, X=X, y=y)
        programs = {label: ["-c", _PROGRAM.format(module=module), str(path)]
                    for label, module in _MODULES.items()}
        programs["import numpy only"] = ["-c", "import numpy"]
        seconds = process_seconds(programs, repeats=3 if quick else 7)
    medians = {label: statistics.median(values) for label, values in seconds.items()}
    return [{"case": "first fit on iris, fresh process", "model": label, "seconds": median,
             "spread": max(seconds[label]) - min(seconds[label]),
             "ratio": medians["scikit-learn"] / median} for label, median in medians.items()]
