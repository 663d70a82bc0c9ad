"""First fit on iris in a fresh process, import included."""

import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import PEER, PEERS
from benchmarks.timing import process_seconds

_PROGRAM = """
import sys
import numpy as np
from {module} import {name}
stored = np.load(sys.argv[1])
model = {name}().fit(stored["X"], stored["y"])
assert model.predict(stored["X"]).shape == (150,)
"""
_BARE = "import numpy only"


def measure(quick: bool, only: str = "") -> list[dict[str, Any]]:
    """Median wall-clock seconds of whole processes, and of one that only imports NumPy for comparison."""
    from sklearn.datasets import load_iris

    chosen = {name: peer for name, peer in PEERS.items() if only in name}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "iris.npz"
        X, y = load_iris(return_X_y=True)
        np.savez(path, X=X, y=y)

        def program(module: str, name: str) -> list[str]:
            return ["-c", _PROGRAM.format(module=module, name=name), str(path)]

        # A peer of several of ours is measured once: the programs are named by what they run.
        programs = {_BARE: ["-c", "import numpy"]}
        for name, (module, theirs) in chosen.items():
            programs[name] = program("separatrix", name)
            programs[f"{PEER} {theirs}"] = program(module, theirs)
        seconds = process_seconds(programs, repeats=3 if quick else 7)
    median = {label: statistics.median(values) for label, values in seconds.items()}
    spread = {label: max(values) - min(values) for label, values in seconds.items()}
    rows = []
    for name, (_, theirs) in chosen.items():
        peer = f"{PEER} {theirs}"
        ratio = median[peer] / median[name]
        rows.append({"case": "first fit on iris, fresh process", "model": name, "peer": peer,
                     "seconds": median[name], "spread": spread[name], "peer_seconds": median[peer],
                     "peer_spread": spread[peer], "numpy_seconds": median[_BARE], "ratio": ratio,
                     "target": 1.0, "met": ratio >= 1.0})
    return rows
