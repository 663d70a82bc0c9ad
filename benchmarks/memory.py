"""How much memory a fit takes on top of its input: no copy of float32 or float64 data."""

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.cases import PEER, PEERS
from benchmarks.timing import run_python_for_json

_PROGRAM = """
import json, resource, sys
import numpy as np
from {module} import {name}

rows, features, dtype, layout = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
options = json.loads(sys.argv[5])
rng = np.random.default_rng(0)

def block(count):
    return rng.standard_normal((count, features)).astype(dtype)

def peak():
    try:  # not ru_maxrss: on Linux a process starts with that of the one that started it
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) * 1024
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

warm = block(max(200, 4 * features))  # what the first fit loads and keeps does not count
{name}(**options).fit(warm, (warm[:, 0] > 0).astype(int))
X = np.empty((rows, features), dtype=dtype, order=layout)
for start in range(0, rows, 1000):
    X[start:start + 1000] = block(min(1000, rows - start))
y = (X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(rows) > 0).astype(int)
try:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # Linux: the peak starts anew from here
except OSError:
    pass
before = peak()
{name}(**options).fit(X, y)
print(json.dumps({{"input": X.nbytes, "growth": peak() - before}}))
"""
_PERCEPTRON = {"max_iter": 3, "tol": None}
_MEGABYTES = 200e6
# Measured below, or not made for so many rows.
_OTHERS = ("Perceptron", "SVC", "SVR", "KNeighborsClassifier")
_COPIES = {"LogisticRegression": 1}  # iterative fits may pack their input once


def _growth(module: str, name: str, rows: int, dtype: str, layout: str,
            options: Mapping[str, Any]) -> dict[str, Any]:
    found = run_python_for_json(["-c", _PROGRAM.format(module=module, name=name), str(rows), "100", dtype,
                                 layout, json.dumps(options)])
    label = name if module == "separatrix" else f"{PEER} {name}"
    return {"case": f"{rows:,} × 100 {dtype}, {layout} order", "model": label, **found,
            "share": found["growth"] / found["input"], "target": None, "met": True}


def measure(quick: bool, only: str = "") -> list[dict[str, Any]]:
    """Growth of the peak resident memory during a fit, as bytes and as a share of the input.

    Each new estimator on 1,000,000 rows beside its peer, against what is promised; the perceptron on both
    layouts and precisions.
    """
    results = []
    for name, (module, theirs) in PEERS.items():
        if only not in name or name in _OTHERS:
            continue
        rows = 100_000 if quick else 1_000_000
        ours = _growth("separatrix", name, rows, "float32", "C", {})
        ours["target"] = _MEGABYTES + _COPIES.get(name, 0) * ours["input"]
        ours["met"] = ours["growth"] < ours["target"]
        results.append(ours)
        if name == theirs:
            results.append(_growth(module, theirs, rows, "float32", "C", {}))
    if only in "Perceptron":
        for dtype in ("float32", "float64"):
            for layout in ("C", "F"):
                for module in ("separatrix", PEERS["Perceptron"][0]):
                    results.append(_growth(module, "Perceptron", 100_000 if quick else 500_000, dtype, layout,
                                           _PERCEPTRON))
    return results
