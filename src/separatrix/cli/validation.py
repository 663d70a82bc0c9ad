"""Cross-validation for `compare` and `tune`: the same folds for every model."""

from __future__ import annotations

import contextlib
import math
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.cli import metrics
from separatrix.cli.inputs import Labelled
from separatrix.cli.prepare import Preparation, fit_columns, fit_steps, nameless, take
from separatrix.cli.screen import CommandError

#: Criteria by their names on the command line: key in a fold's results, and whether more is better.
CRITERIA = {
    "accuracy": ("accuracy", True),
    "balanced-accuracy": ("balanced_accuracy", True),
    "log-loss": ("log_loss", False),
}

Fold = tuple[NDArray[Any], NDArray[Any]]


@dataclass
class Outcome:
    """What one model did on all folds, or why it failed."""

    values: dict[str, list[float]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: str | None = None

    def mean(self, key: str) -> float | None:
        """Return the mean over the folds."""
        return float(np.mean(self.values[key])) if self.values.get(key) else None

    def deviation(self, key: str) -> float | None:
        """Return the standard deviation between the folds."""
        return float(np.std(self.values[key], ddof=1)) if len(self.values.get(key, ())) > 1 else None

    def place(self, key: str, more: bool) -> float:
        """Return what sorts outcomes, the best first; those without a value come last."""
        mean = self.mean(key)
        return math.inf if mean is None else -mean if more else mean

    def as_dict(self) -> dict[str, Any]:
        """Return means, deviations and the values of the folds."""
        content: dict[str, Any] = {"error": self.error, "notes": self.notes}
        for key in ("accuracy", "balanced_accuracy", "log_loss"):
            content[key] = {
                "mean": self.mean(key),
                "deviation": self.deviation(key),
                "folds": self.values.get(key, []),
            }
        content["fit_seconds"] = float(np.mean(self.seconds)) if self.seconds else None
        return content


def make_folds(data: Labelled, count: int, seed: int, path: Any) -> list[Fold]:
    """Split the rows into folds, every class in proportion."""
    from sklearn.model_selection import StratifiedKFold

    classes, counts = np.unique(data.y, return_counts=True)
    if count < 2:
        raise CommandError(f"--folds must be at least 2; got {count}")
    if counts.min() < count:
        raise CommandError(
            f"{path}: class {classes[counts.argmin()]!s} has {counts.min()} rows, too few for {count} folds; "
            f"add rows, or use --folds {max(2, counts.min())}"
            if counts.min() > 1
            else f"{path}: class {classes[counts.argmin()]!s} has a single row; add rows or remove it"
        )
    splitter = StratifiedKFold(count, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros(len(data.y)), data.y))


class Prepared:
    """Data prepared once per fold and shared by all models that want the same preparation."""

    def __init__(self, data: Labelled, folds: Sequence[Fold]) -> None:
        self.data, self.folds = data, folds
        self._cache: dict[tuple[Preparation, int], tuple[Any, Any]] = {}

    def fold(self, preparation: Preparation, number: int) -> tuple[Any, Any]:
        """Return what the model sees of the rows to fit and of those held out."""
        key = (preparation, number)
        if key not in self._cache:
            train, test = (take(self.data.X, rows) for rows in self.folds[number])
            for _, step in preparation.steps():
                fitted = fit_columns(step, train) if hasattr(train, "schema") else step.fit_transform(train)
                train, test = fitted, step.transform(test)
            self._cache[key] = (train, test)
        return self._cache[key]


class _CtrlC:
    """While it is entered, Ctrl-C means the command: fits that end with what they have do not hide it."""

    pressed = False
    previous: Any = None

    def __enter__(self) -> _CtrlC:
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self.previous = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def _on_signal(self, number: int, frame: Any) -> None:
        self.pressed = True
        raise KeyboardInterrupt

    def __exit__(self, *error: object) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)
        if self.pressed:
            raise KeyboardInterrupt


def cross_validate(prepared: Prepared, preparation: Preparation, estimator: Any) -> Outcome:
    """Fit a model on every fold and judge it on the rest; an error ends it with a reason, not the command."""
    from sklearn.base import clone

    outcome = Outcome()
    y, classes = prepared.data.y, np.unique(prepared.data.y)
    for number, (train, test) in enumerate(prepared.folds):
        model = clone(estimator)
        try:
            with (
                _CtrlC() as keys,
                warnings.catch_warnings(record=True) as caught,
                contextlib.redirect_stdout(sys.stderr),
                nameless(),
            ):
                warnings.simplefilter("always")
                X, X_test = prepared.fold(preparation, number)
                begin = time.perf_counter()
                fit_steps([], model, X, y[train], None)
                seconds = time.perf_counter() - begin
                status = getattr(getattr(model, "certificate_", None), "status", "")
                if keys.pressed or status == "interrupted":
                    raise KeyboardInterrupt
                predicted = model.predict(X_test)
                probabilities = model.predict_proba(X_test) if hasattr(model, "predict_proba") else None
        except (ValueError, MemoryError, ArithmeticError, np.linalg.LinAlgError) as error:
            outcome.error = " ".join(str(error).split()) or type(error).__name__
            return outcome
        truth = np.searchsorted(classes, y[test])
        counts = metrics.confusion(truth, np.searchsorted(classes, predicted), len(classes))
        total = None if probabilities is None else metrics.log_losses(truth, probabilities)
        found = metrics.summary(counts, total)
        for key in ("accuracy", "balanced_accuracy", "log_loss"):
            if found[key] is not None:
                outcome.values.setdefault(key, []).append(found[key])
        outcome.seconds.append(seconds)
        texts = (str(warning.message) for warning in caught)
        outcome.notes += dict.fromkeys(texts)
    return outcome


def plus_minus(outcome: Outcome, key: str) -> str:
    """Return mean ± deviation for a table."""
    mean, deviation = outcome.mean(key), outcome.deviation(key)
    if mean is None:
        return "-"
    return f"{mean:.4f}" + ("" if deviation is None else f" ± {deviation:.4f}")


def merged(texts: Sequence[str]) -> list[str]:
    """Return notes that differ in their numbers only as one, with their count."""
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(re.sub(r"[\d.,]*\d", "#", text), []).append(text)
    return [
        same[0] + (f" ({len(same)} times, numbers differ)" if len(same) > 1 else "")
        for same in groups.values()
    ]


def criterion(name: str) -> tuple[str, bool]:
    """Return the key of a criterion and whether more is better."""
    if name not in CRITERIA:
        raise CommandError(f"--by must be one of {', '.join(CRITERIA)}; got {name!r}")
    return CRITERIA[name]


def seconds_text(seconds: float) -> str:
    """Return a time for a table."""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
