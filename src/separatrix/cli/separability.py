"""``separatrix separability``: whether there is a hyperplane between the classes."""

from __future__ import annotations

from typing import Any

from separatrix.cli.inputs import DataOptions, load_labelled
from separatrix.cli.prepare import prepare
from separatrix.cli.screen import facts, print_json


def run(options: DataOptions, *, as_json: bool) -> None:
    """Read the table, encode texts, ask for the verdict."""
    import separatrix

    data = load_labelled(options)
    X: Any = data.X
    steps = prepare(X, data.names, standardize=False, scale=False, impute=options.missing == "mean").steps()
    for _, step in steps:
        X = step.fit_transform(X)
    verdict = separatrix.separability(X, data.y)
    if as_json:
        content = verdict.as_dict() if hasattr(verdict, "as_dict") else {"verdict": str(verdict)}
        print_json({"data": str(options.path), "target": data.target, "rows": len(data.y), **content})
        return
    facts(
        [
            (
                "data",
                f"{options.path}: {len(data.y):,} rows, {data.features:,} features, target {data.target}",
            ),
            ("verdict", str(verdict)),
        ]
    )
