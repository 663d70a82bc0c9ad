"""``separatrix compare``: every family on the same folds, one table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.cli.families import build_model, families, family_of
from separatrix.cli.inputs import DataOptions, Labelled, load_labelled
from separatrix.cli.outputs import check_output, check_picture, check_seed, write_picture
from separatrix.cli.prepare import Preparation, fit_steps, prepare
from separatrix.cli.screen import CommandError, facts, note, print_json, progress, table
from separatrix.cli.validation import (
    Outcome,
    Prepared,
    criterion,
    cross_validate,
    make_folds,
    merged,
    plus_minus,
    seconds_text,
)


@dataclass(frozen=True)
class CompareRequest:
    """What the user asked for."""

    data: DataOptions
    models: list[str]
    folds: int
    by: str
    standardize: bool | None
    save: Path | None
    plot: Path | None
    seed: int
    max_time: float | None
    json: bool
    quiet: bool


def run(request: CompareRequest) -> None:
    """Cross-validate every family, print the table, save the best."""
    check_seed(request.seed)
    check_output("--save", request.save, request.data.path)
    check_picture("--plot", request.plot, request.data.path)
    key, more = criterion(request.by)
    names = request.models or list(families())
    estimators = {name: build_model(name, {}, request.seed, request.max_time) for name in names}
    data = load_labelled(request.data, quiet=request.quiet)
    folds = make_folds(data, request.folds, request.seed, request.data.path)
    prepared = Prepared(data, folds)
    outcomes: dict[str, Outcome] = {}
    with progress(len(names), not (request.json or request.quiet)) as step:
        for name in names:
            step(name)
            outcomes[name] = cross_validate(prepared, _preparation(name, data, request), estimators[name])
    order = sorted(outcomes, key=lambda name: outcomes[name].place(key, more))
    best = order[0] if outcomes[order[0]].mean(key) is not None else None
    if request.save is not None:
        if best is None:
            raise CommandError(f"no model has a {request.by}; nothing is saved")
        _save(best, data, request)
    report = {
        "data": str(request.data.path),
        "target": data.target,
        "rows": len(data.y),
        "folds": request.folds,
        "seed": request.seed,
        "by": request.by,
        "baseline_accuracy": _baseline(data),
        "best": best,
        "models": [{"model": name, **outcomes[name].as_dict()} for name in order],
        "saved": None if request.save is None else str(request.save),
        "picture": None if request.plot is None else str(request.plot),
    }
    if request.plot is not None:
        from separatrix.plot._compare import comparison

        shown = {name: outcomes[name] for name in order if outcomes[name].mean(key) is not None}
        rows = [
            (name, outcome.values[key], float(np.mean(outcome.seconds))) for name, outcome in shown.items()
        ]
        title = f"{request.data.path.name}: {len(data.y):,} rows, {request.folds} folds"
        axes = comparison(rows, label=request.by, title=title, best_high=more, baseline=_baseline(data))
        write_picture(axes, request.plot)
    if request.json:
        print_json(report)
    elif not request.quiet:
        _print(request, data, report, outcomes, order)


def _preparation(name: str, data: Labelled, request: CompareRequest) -> Preparation:
    scale, impute = family_of(name).scale, request.data.missing == "mean"
    return prepare(data.X, data.names, standardize=request.standardize, scale=scale, impute=impute)


def _baseline(data: Labelled) -> float:
    """Return the accuracy of always naming the largest class."""
    _, counts = np.unique(data.y, return_counts=True)
    return float(counts.max() / counts.sum())


def _save(name: str, data: Labelled, request: CompareRequest) -> None:
    from separatrix.persistence import save

    assert request.save is not None
    estimator = build_model(name, {}, request.seed, request.max_time)
    steps = _preparation(name, data, request).steps()
    save(fit_steps(steps, estimator, data.X, data.y, data.names), request.save)


def _print(
    request: CompareRequest,
    data: Labelled,
    report: dict[str, Any],
    outcomes: dict[str, Outcome],
    order: list[str],
) -> None:
    facts(
        [
            ("data", data.sentence(request.data.path, len(data.y), len(np.unique(data.y)))),
            (
                "folds",
                f"{request.folds}, the same for every model (every class in proportion, seed {request.seed})",
            ),
            ("baseline", f"accuracy {report['baseline_accuracy']:.4f} by always naming the largest class"),
        ]
    )
    print()
    rows: list[tuple[str, ...]] = []
    for name in order:
        outcome = outcomes[name]
        if outcome.error:
            rows.append((name, "failed", "", "", ""))
            continue
        cells = (plus_minus(outcome, key) for key in ("accuracy", "balanced_accuracy", "log_loss"))
        rows.append((name, *cells, seconds_text(float(np.mean(outcome.seconds)))))
    table(("model", "accuracy", "balanced accuracy", "log-loss", "time of a fit"), rows)
    for name in order:
        if outcomes[name].error:
            note(f"{name} failed: {outcomes[name].error}")
        for text in merged(outcomes[name].notes):
            note(f"{name}: {text}")
    if report["best"]:
        print()
        command = f"separatrix fit {request.data.words()} --model {report['best']} --save …"
        lines = [("best", f"{report['best']} by {request.by}")]
        lines.append(
            ("saved", f"{request.save}, fitted on all rows") if request.save else ("keep it", command)
        )
        facts(lines + ([("picture", str(request.plot))] if request.plot else []))
