"""``separatrix fit``: from a table to a scored, certified and saved model."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.cli import metrics
from separatrix.cli.families import build_model, family_of, parse_settings
from separatrix.cli.hold_out import Parts, hold_out
from separatrix.cli.inputs import DataOptions, Labelled, load_labelled
from separatrix.cli.outputs import check_output, check_picture, check_seed, write_picture
from separatrix.cli.prepare import Preparation, fit_steps, nameless, prepare
from separatrix.cli.screen import CommandError, class_table, facts, note, print_json
from separatrix.persistence import save

_ROWS = 1 << 16


@dataclass(frozen=True)
class FitRequest:
    """What the user asked for."""

    data: DataOptions
    model: str
    settings: list[str]
    test_size: float
    standardize: bool | None
    save: Path | None
    plot: Path | None
    seed: int
    max_time: float | None
    json: bool
    quiet: bool


def run(request: FitRequest) -> None:
    """Read, split, fit, score, save, draw, report; what can be refused is refused before the long part."""
    _check(request)
    estimator = build_model(request.model, parse_settings(request.settings), request.seed, request.max_time)
    data = load_labelled(request.data, quiet=request.quiet)
    if request.plot is not None:
        _check_drawable(request, data)
    preparation = prepare(
        data.X,
        data.names,
        standardize=request.standardize,
        scale=family_of(request.model).scale,
        impute=request.data.missing == "mean",
    )
    parts = hold_out(data, request.test_size, request.seed, request.data.path)
    # Nothing below needs the table as a whole: what was copied into the parts is freed.
    data = replace(data, X=parts.X[:0], y=parts.y[:0])
    shown = (parts.X_held, parts.y_held)
    if request.plot is not None and not len(parts.y_held):
        shown = (parts.X.copy(), parts.y)  # the fit scales rows where they lie
    model, notes = _fit(preparation, estimator, parts, data.names, request)
    report = _report(request, data, preparation, parts, estimator, model)
    report["notes"] = notes
    if request.save is not None:
        save(model, request.save)
    if request.plot is not None:
        _draw(model, data, *shown, bool(len(parts.y_held)), request.plot)
    if request.json:
        print_json(report)
    elif not request.quiet:
        _print(request, report, data, preparation, estimator)


def _check(request: FitRequest) -> None:
    if not 0.0 <= request.test_size < 1.0:
        raise CommandError(f"--test-size must be at least 0 and below 1; got {request.test_size}")
    check_seed(request.seed)
    check_output("--save", request.save, request.data.path)
    check_picture("--plot", request.plot, request.data.path)


def _check_drawable(request: FitRequest, data: Labelled) -> None:
    if hasattr(data.X, "schema") or hasattr(data.X, "indptr"):
        raise CommandError("--plot draws boundaries of number columns; with text or sparse data leave it out")
    if data.features < 2:
        path = request.data.path
        raise CommandError(f"--plot needs two features or more, and {path} has one; leave --plot out")


def _fit(
    preparation: Preparation,
    estimator: Any,
    parts: Parts,
    names: list[str] | None,
    request: FitRequest,
) -> tuple[Any, list[str]]:
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(sys.stderr),  # results only on standard output, also with --set verbose=1
        _progress(estimator, request),
    ):
        warnings.simplefilter("always")
        try:
            model = fit_steps(preparation.steps(), estimator, parts.X, parts.y, names)
        except (ValueError, MemoryError) as error:
            raise CommandError(f"{request.model}: {error or 'not enough memory'}") from None
    return model, list(dict.fromkeys(str(warning.message) for warning in caught))


@contextlib.contextmanager
def _progress(estimator: Any, request: FitRequest) -> Iterator[None]:
    """Show a progress bar on standard error while a fit runs, if somebody is there to see it."""
    if request.quiet or request.json or not sys.stderr.isatty() or not hasattr(estimator, "set_callbacks"):
        yield
        return
    import rich
    from sklearn.callback import ProgressBar

    # The bar writes to rich's global console, which is standard output unless told otherwise.
    rich.reconfigure(stderr=True)
    try:
        estimator.set_callbacks(ProgressBar())
        yield
    finally:
        estimator.set_callbacks()
        rich.reconfigure(stderr=False)


def _report(
    request: FitRequest,
    data: Labelled,
    preparation: Preparation,
    parts: Parts,
    estimator: Any,
    model: Any,
) -> dict[str, Any]:
    report: dict[str, Any] = {
        "data": str(request.data.path),
        "target": data.target,
        "features": data.names,
        "n_features": data.features,
        "classes": estimator.classes_,
        "rows": len(parts.y) + len(parts.y_held),
        "rows_fitted": len(parts.y),
        "rows_held_out": len(parts.y_held),
        "seed": request.seed,
        "standardized": preparation.standardize,
        "one_hot": list(preparation.texts),
        "imputed": preparation.impute,
        "model": type(estimator).__name__,
        "parameters": estimator.get_params(deep=False),
        "accuracy": None,
        "per_class": [],
        "certificate": estimator.certificate_.as_dict(),
        "saved": None if request.save is None else str(request.save),
        "picture": None if request.plot is None else str(request.plot),
    }
    if len(parts.y_held):
        predicted = _predicted(model, parts.X_held)
        classes = estimator.classes_
        truth = np.searchsorted(classes, parts.y_held)
        counts = metrics.confusion(truth, np.searchsorted(classes, predicted), len(classes))
        report |= {"accuracy": metrics.summary(counts, None)["accuracy"]}
        report["per_class"] = metrics.per_class(counts, classes)
    return report


def _predicted(model: Any, X: Any) -> NDArray[Any]:
    """Return the classes of rows; of many rows by blocks, as scaled ones are copies."""
    rows = int(X.shape[0])
    with nameless():
        parts = [model.predict(X[start : start + _ROWS]) for start in range(0, rows, _ROWS)]
    return np.concatenate(parts)


def _draw(model: Any, data: Labelled, X: Any, y: NDArray[Any], held_out: bool, path: Path) -> None:
    from separatrix.plot import boundary

    estimator = model.steps[-1][1] if hasattr(model, "steps") else model
    title = f"{type(estimator).__name__}, {len(y):,} {'held-out rows' if held_out else 'rows of the fit'}"
    if data.features > 2:
        title += f"\na cut through {data.features} dimensions, rows projected onto it"
    with nameless():
        axes = boundary(model, X, y, names=data.names)
        axes.set_title(title, fontsize="medium")
        write_picture(axes, path)


def _print(
    request: FitRequest, report: dict[str, Any], data: Labelled, preparation: Preparation, estimator: Any
) -> None:
    for text in report["notes"]:
        note(text)
    held_out = report["rows_held_out"]
    split = (
        f"{report['rows_fitted']:,} rows to fit, {held_out:,} held out "
        f"(every class in proportion, seed {request.seed})"
        if held_out
        else f"all {report['rows']:,} rows to fit, none held out"
    )
    lines = [
        ("data", data.sentence(request.data.path, report["rows"], len(report["classes"]))),
        ("split", split),
        ("columns", preparation.sentence()),
        ("model", repr(estimator)),
    ]
    if held_out:
        correct = sum(row["correct"] for row in report["per_class"])
        share = f"{report['accuracy']:.4f} held out ({correct:,} of {held_out:,} rows right)"
        lines.append(("accuracy", share))
    lines.append(("certificate", str(estimator.certificate_)))
    lines += [(name, report[name]) for name in ("saved", "picture") if report[name]]
    facts(lines)
    if held_out:
        print()
        class_table(report["per_class"])
