"""How much memory a fit takes on top of its input, in fresh processes: no copy of float32 or float64 data."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from benchmarks.cases import PEER, PEERS
from benchmarks.contest import Row
from benchmarks.tiers import Plan
from benchmarks.timing import run_python

_PROGRAM = """
import json, resource, sys
import numpy as np
from {module} import {name}

rows, features, dtype, layout = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
options = json.loads(sys.argv[5])
rng = np.random.default_rng(0)

def block(count):
    return rng.standard_normal((count, features), dtype=np.float32).astype(dtype, copy=False)

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
CLOSED = (
    "RidgeClassifier",
    "LeastSquaresClassifier",
    "LinearDiscriminantAnalysis",
    "QuadraticDiscriminantAnalysis",
    "GaussianClassifier",
)
ITERATIVE = ("LogisticRegression", "LinearSVC", "SGDClassifier")
_PASSES = {"max_iter": 3, "tol": None}


def items(plan: Plan) -> list[tuple[str, Callable[[], list[Row]]]]:
    """Each estimator on 1,000,000 rows, the perceptron in both layouts and precisions, a large machine."""
    rows = 50_000 if plan.small else 1_000_000
    size = f"{rows:,} × 100 float32"
    found = [
        (f"{size}: {name}", partial(_pair, f"{size}: {name}", name, rows, "float32", "C", {}, plan.large))
        for name in (*CLOSED, *ITERATIVE)
        if not plan.small or name in ("RidgeClassifier", *ITERATIVE)
    ]
    rows = 50_000 if plan.small else 500_000
    for dtype in ("float32", "float64"):
        for layout in ("C",) if plan.small else ("C", "F"):
            case = f"{rows:,} × 100 {dtype}, {layout} order: Perceptron"
            found.append((case, partial(_pair, case, "Perceptron", rows, dtype, layout, _PASSES, plan.large)))
    if not plan.small:
        case = "200,000 × 20 float32: SVC, cache_size 1,000"
        options = {"cache_size": 1000, "max_time": 8.0}
        found.append(
            (case, partial(_pair, case, "SVC", 200_000, "float32", "C", options, False, features=20))
        )
    return found


def _pair(
    case: str,
    name: str,
    rows: int,
    dtype: str,
    layout: str,
    options: Mapping[str, Any],
    with_peer: bool,
    features: int = 100,
) -> list[Row]:
    """Growth of the peak resident memory during a fit; the peer's beside it if asked for."""

    def growth(module: str, of: str) -> dict[str, Any]:
        program = _PROGRAM.format(module=module, name=of)
        return json.loads(
            run_python(["-c", program, str(rows), str(features), dtype, layout, json.dumps(options)])
        )

    found, (module, theirs) = growth("separatrix", name), PEERS[name]
    beside = growth(module, theirs) if with_peer and name == theirs else None
    return [
        {
            "case": case,
            "call": "memory",
            "ours": name,
            "input": found["input"],
            "growth": found["growth"],
            "peer": f"{PEER} {theirs}" if beside else None,
            "peer_growth": None if beside is None else beside["growth"],
        }
    ]
