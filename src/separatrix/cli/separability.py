"""``separatrix separability``: whether there is a hyperplane between the classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.cli.inputs import DataOptions, load_labelled
from separatrix.cli.prepare import prepare
from separatrix.cli.screen import facts, print_json


def run(options: DataOptions, *, max_time: float | None, as_json: bool) -> None:
    """Read the table, encode texts, ask for the verdict."""
    import separatrix

    data = load_labelled(options)
    X: Any = data.X
    steps = prepare(X, data.names, standardize=False, scale=False, impute=options.missing == "mean").steps()
    for _, step in steps:
        X = step.fit_transform(X)
    verdict = separatrix.separability(X, data.y, max_time=max_time)
    if as_json:
        report = {"data": str(options.path), "target": data.target, "rows": len(data.y), **_content(verdict)}
        print_json(report)
        return
    facts(
        [
            ("data", data.sentence(options.path, len(data.y), len(np.unique(data.y)))),
            ("verdict", str(verdict)),
        ]
    )


def _content(verdict: Any) -> dict[str, Any]:
    """Return a verdict about two classes, or about several with all their pairs."""
    content = {"verdict": verdict.verdict, "text": str(verdict)}
    if not hasattr(verdict, "pairs"):
        return content | {"width": verdict.width, "widest": verdict.widest}
    pairs = [{"classes": pair, **_content(found)} for pair, found in verdict.pairs.items()]
    rest = [{"class": label, **_content(found)} for label, found in verdict.one_vs_rest.items()]
    return content | {"pairs": pairs, "one_vs_rest": rest}
