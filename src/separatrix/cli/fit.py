"""``separatrix fit``: from a table to a scored, certified and saved model."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.cli.screen import CommandError, facts, note, print_json, table
from separatrix.cli.settings import build_model, parse_settings
from separatrix.data.files import Table, read_table
from separatrix.persistence import atomic_write, save

_PICTURES = (".png", ".svg", ".pdf", ".jpg", ".jpeg")


@dataclass(frozen=True)
class FitRequest:
    """What the user asked for."""

    data: Path
    target: str
    model: str
    settings: list[str]
    ignore: list[str]
    test_size: float
    standardize: bool
    save: Path | None
    plot: Path | None
    seed: int
    max_time: float | None
    json: bool
    quiet: bool


def run(request: FitRequest) -> None:
    """Read, split, fit, score, save, draw, report; what can be refused is refused before the long part."""
    _check_outputs(request)
    settings = parse_settings(request.settings)
    if request.max_time is not None:
        settings.setdefault("max_time", request.max_time)
    estimator = build_model(request.model, settings)
    if "random_state" in estimator.get_params(deep=False) and "random_state" not in settings:
        estimator.set_params(random_state=request.seed)  # a closed form draws nothing
    data = read_table(request.data, request.target, ignore=request.ignore)
    if request.plot is not None and len(data.feature_names) < 2:
        raise CommandError(f"--plot needs two features or more, and {request.data} has one; leave --plot out")
    train, test = _split(data, request)
    assert data.y is not None  # a target was asked for
    model, notes = _fit(estimator, data.X[train], data.y[train], data.feature_names, request)
    report = _report(request, data, train, test, estimator, model)
    report["notes"] = notes
    if request.save is not None:
        save(model, request.save)
    if request.plot is not None:
        shown = test if len(test) else train
        kind = "held-out rows" if len(test) else "rows of the fit"
        title = f"{type(estimator).__name__}, {len(shown):,} {kind}"
        if len(data.feature_names) > 2:
            title += f"\na cut through {len(data.feature_names)} dimensions, rows projected onto it"
        _draw(model, data.X[shown], data.y[shown], data.feature_names, title, request.plot)
    if request.json:
        print_json(report)
    elif not request.quiet:
        _print(request, report, estimator)


def _check_outputs(request: FitRequest) -> None:
    if not 0.0 <= request.test_size < 1.0:
        raise CommandError(f"--test-size must be at least 0 and below 1; got {request.test_size}")
    if not 0 <= request.seed < 2**32:
        raise CommandError(f"--seed must be between 0 and 4294967295; got {request.seed}")
    for option, path in (("--save", request.save), ("--plot", request.plot)):
        if path is None:
            continue
        folder = path.resolve().parent
        if not folder.is_dir():
            raise CommandError(f"{option} {path}: there is no directory {folder}; create it first")
        if path.is_dir() or not os.access(folder, os.W_OK):
            raise CommandError(f"{option} {path}: cannot write there; choose another path")
        if path.exists() and path.samefile(request.data):
            raise CommandError(f"{option} {path}: is the data file; choose another path")
    if request.plot is not None:
        if request.plot.suffix.lower() not in _PICTURES:
            raise CommandError(f"--plot {request.plot}: the name must end in one of {', '.join(_PICTURES)}")
        if importlib.util.find_spec("matplotlib") is None:
            raise CommandError("--plot needs matplotlib; install it with: pip install 'separatrix[plot]'")


def _split(data: Table, request: FitRequest) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows to fit on and the rows held out, every class in both."""
    from sklearn.model_selection import train_test_split

    assert data.y is not None
    classes, counts = np.unique(data.y, return_counts=True)
    place = f"{request.data}: target column {request.target!r}"
    if len(classes) < 2:
        raise CommandError(f"{place} holds only the class {classes[0]!s}; at least two are needed")
    if data.y.dtype.kind == "f" and not np.all(np.equal(np.mod(classes, 1), 0)):
        raise CommandError(
            f"{place} holds fractions such as {classes[np.mod(classes, 1) != 0][0]}; classes are whole "
            "numbers or text: choose another column, or turn the numbers into classes first"
        )
    rows = np.arange(len(data.y))
    if request.test_size == 0.0:
        return rows, rows[:0]
    if counts.min() < 2:
        raise CommandError(
            f"{place}: class {classes[counts.argmin()]!s} has a single row, which cannot be both fitted and "
            "held out; add rows, or use --test-size 0"
        )
    try:
        train, test = train_test_split(
            rows, test_size=request.test_size, random_state=request.seed, stratify=data.y
        )
    except ValueError as error:
        raise CommandError(
            f"{request.data}: cannot hold out {request.test_size:g} of {len(rows)} rows with all "
            f"{len(classes)} classes on both sides ({error}); change --test-size"
        ) from None
    return np.sort(train), np.sort(test)


def _fit(
    estimator: Any, X: NDArray[Any], y: NDArray[Any], names: list[str], request: FitRequest
) -> tuple[Any, list[str]]:
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler() if request.standardize else None
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(sys.stderr),  # results only on standard output, also with --set verbose=1
        _progress(estimator, request),
    ):
        warnings.simplefilter("always")
        try:
            # Step by step, so that the progress bar is that of the model and not of a pipeline around it.
            estimator.fit(X if scaler is None else scaler.fit_transform(X), y)
        except ValueError as error:
            raise CommandError(f"{request.model}: {error}") from None
    # Kept with the model, so that `predict` finds the columns by name wherever they stand.
    first = estimator if scaler is None else scaler
    first.feature_names_in_ = np.array(names, dtype=object)
    model = estimator if scaler is None else Pipeline([("scale", scaler), ("model", estimator)])
    return model, list(dict.fromkeys(str(warning.message) for warning in caught))


@contextlib.contextmanager
def _progress(estimator: Any, request: FitRequest) -> Iterator[None]:
    """Show a progress bar on standard error while a fit runs, if somebody is there to see it."""
    if request.quiet or request.json or not sys.stderr.isatty():
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
    request: FitRequest, data: Table, train: NDArray[Any], test: NDArray[Any], estimator: Any, model: Any
) -> dict[str, Any]:
    assert data.y is not None
    report: dict[str, Any] = {
        "data": str(request.data),
        "target": request.target,
        "features": data.feature_names,
        "classes": estimator.classes_,
        "rows": len(data.y),
        "rows_fitted": len(train),
        "rows_held_out": len(test),
        "seed": request.seed,
        "standardized": request.standardize,
        "model": type(estimator).__name__,
        "parameters": estimator.get_params(deep=False),
        "accuracy": None,
        "per_class": [],
        "certificate": estimator.certificate_.as_dict(),
        "saved": None if request.save is None else str(request.save),
        "picture": None if request.plot is None else str(request.plot),
    }
    if len(test):
        truth, predicted = data.y[test], _predict(model, data.X[test])
        report["accuracy"] = float(np.mean(truth == predicted))
        for label in estimator.classes_:
            found = int(np.sum((truth == label) & (predicted == label)))
            rows, named = int(np.sum(truth == label)), int(np.sum(predicted == label))
            report["per_class"].append(
                {
                    "class": label,
                    "rows": rows,
                    "predicted": named,
                    "correct": found,
                    "precision": found / named if named else None,
                    "recall": found / rows if rows else None,
                }
            )
    return report


def _predict(model: Any, X: NDArray[Any]) -> NDArray[Any]:
    with warnings.catch_warnings():
        # The matrix has no names, but its columns come from the file in the model's order.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        predicted: NDArray[Any] = model.predict(X)
    return predicted


def _draw(model: Any, X: NDArray[Any], y: NDArray[Any], names: list[str], title: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")  # a picture goes to a file; no window system is needed
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    from separatrix.plot import boundary

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        axes = boundary(model, X, y, names=names)
        axes.set_title(title, fontsize="medium")
        figure = axes.figure
        assert isinstance(figure, Figure)  # not a part of a larger one, since no axes were handed in
        try:
            with atomic_write(path) as temporary:
                figure.savefig(temporary, dpi=150, bbox_inches="tight")
        finally:
            pyplot.close(figure)


def _print(request: FitRequest, report: dict[str, Any], estimator: Any) -> None:
    for text in report["notes"]:
        note(text)
    held_out = report["rows_held_out"]
    split = (
        f"{report['rows_fitted']:,} rows to fit, {held_out:,} held out "
        f"(every class in proportion, seed {request.seed})"
        if held_out
        else f"all {report['rows']:,} rows to fit, none held out"
    )
    scaling = (
        "features scaled to mean 0, standard deviation 1 (--no-standardize leaves them as they are)"
        if request.standardize
        else "features as they are (--standardize scales them)"
    )
    lines = [
        (
            "data",
            f"{request.data}: {report['rows']:,} rows, {len(report['features'])} features, "
            f"target {request.target} with {len(report['classes'])} classes",
        ),
        ("split", split),
        ("scaling", scaling),
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
        table(
            ("class", "rows", "predicted", "correct", "precision", "recall"),
            [
                (
                    str(row["class"]),
                    f"{row['rows']:,}",
                    f"{row['predicted']:,}",
                    f"{row['correct']:,}",
                    _share(row["precision"]),
                    _share(row["recall"]),
                )
                for row in report["per_class"]
            ],
        )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
