"""How much memory a fit takes on top of its input: no copy of float32 or float64 data."""

from typing import Any

from benchmarks.timing import run_python_for_json

_PROGRAM = """
import json, os, resource, sys
import numpy as np
from {module} import Perceptron

rows, features, dtype, layout = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
rng = np.random.default_rng(0)

def block(count):
    return rng.standard_normal((count, features)).astype(dtype)

warm = block(200)  # what the first fit loads and keeps does not count
Perceptron(max_iter=2, tol=None).fit(warm, (warm[:, 0] > 0).astype(int))
X = np.empty((rows, features), dtype=dtype, order=layout)
for start in range(0, rows, 1000):
    X[start:start + 1000] = block(min(1000, rows - start))
y = (X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(rows) > 0).astype(int)
try:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # Linux: the peak starts anew from here
except OSError:
    pass
unit = 1 if sys.platform == "darwin" else 1024
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
Perceptron(max_iter=3, tol=None).fit(X, y)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
print(json.dumps({{"input": X.nbytes, "growth": after - before}}))
"""
_MODULES = {"separatrix": "separatrix", "scikit-learn": "sklearn.linear_model"}


def measure(quick: bool) -> list[dict[str, Any]]:
    """Growth of the peak resident memory during a fit, as bytes and as a share of the input."""
    rows, features = (100_000 if quick else 500_000), 100
    results = []
    for dtype in ("float32", "float64"):
        for layout in ("C", "F"):
            for label, module in _MODULES.items():
                found = run_python_for_json(["-c", _PROGRAM.format(module=module), str(rows), str(features),
                                             dtype, layout])
                results.append({"case": f"{rows:,} × {features} {dtype}, {layout} order", "model": label,
                                **found, "share": found["growth"] / found["input"]})
    return results
