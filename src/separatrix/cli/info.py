"""``separatrix info``: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from separatrix.cli.prepare import fills_missing, plan_of
from separatrix.cli.screen import facts, megabytes, print_json
from separatrix.persistence import describe, load


def run(path: Path, *, as_json: bool) -> None:
    """Load the file, which checks it as a whole, and print what it says."""
    content = _collect(path)
    if as_json:
        print_json(content)
        return
    shown, classes = content["features"], content["classes"]
    features = f"{content['n_features']}" + (f": {', '.join(shown)}" if shown else " (no names)")
    sizes = [f"{name} {' x '.join(map(str, shape))}" for name, shape in content["sizes"].items()]
    facts(
        [
            ("file", f"{path} ({megabytes(content['file_bytes'])}, format {content['format']})"),
            ("model", content["model"]),
            ("steps", " -> ".join(content["steps"])),
            (
                "parameters",
                fill(", ".join(f"{name}={value!r}" for name, value in content["parameters"].items()), 96),
            ),
            ("features", fill(features, 96)),
            *([("as text", fill(", ".join(content["texts"]), 96))] if content["texts"] else []),
            ("classes", "none" if classes is None else fill(", ".join(str(label) for label in classes), 96)),
            ("sizes", ", ".join(sizes)),
            ("certificate", content["certificate_text"]),
            ("versions", ", ".join(f"{name} {version}" for name, version in content["versions"].items())),
        ]
    )


def _collect(path: Path) -> dict[str, Any]:
    model = load(path)
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    final = steps[-1]
    names = getattr(model, "feature_names_in_", None)
    certificate, plan = getattr(final, "certificate_", None), plan_of(model)
    return {
        "file": str(path),
        **describe(path),
        "model": type(final).__name__,
        "steps": [type(step).__name__ for step in steps],
        "parameters": final.get_params(deep=False),
        "n_features": int(model.n_features_in_),
        "features": None if names is None else [str(name) for name in names],
        "texts": [] if plan is None else [name for name in plan.names if name in plan.texts],
        "fills_missing": fills_missing(model),
        "classes": getattr(final, "classes_", None),
        "certificate": None if certificate is None else certificate.as_dict(),
        "certificate_text": "none" if certificate is None else str(certificate),
        "sizes": {
            name: list(np.shape(value))
            for name, value in sorted(vars(final).items())
            if name.endswith("_") and np.ndim(value) and hasattr(value, "shape") and name != "classes_"
        },
        "passes_recorded": len(vars(final).get("history_", [])),
    }
