"""What is wrong with samples and labels that could not be converted: which entry, and what to do."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from separatrix.data.texts import holds_texts
from separatrix.data.view import Array
from separatrix.models._labels import missing_label, shown

#: How errors about labels begin. Not all name ``y``, but samples are not yet searched for NaN then.
_OF_LABELS = ("Input y contains", "Input contains NaN", "boolean value of NA is ambiguous")


def explained(estimator: Any, X: Any, y: Any, error: Exception) -> Exception:
    """Return the error with the place of the first bad entry and the remedy, where one can be told."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    if y is not None and str(error).startswith(_OF_LABELS) and (told := missing_label(y)):
        named = str(error).startswith("Input y")
        return ValueError(f"{error if named else 'Input y contains missing labels.'} {told}")
    if str(error).startswith("Input y contains infinity"):
        rows = np.nonzero(np.isinf(np.asarray(y, dtype=float)))[0]
        return ValueError(f"{error} The first is in row {rows[0]}: leave such samples out, or correct them.")
    if isinstance(X, (str, PathLike)):
        return kind(f"{error} X is a name, not samples: read a file first, for example with separatrix.read.")
    if holds_texts(X):
        return kind(
            f"{error} X holds texts: turn them into numbers, for example with "
            "sklearn.feature_extraction.text.TfidfVectorizer, or use SVC with a kernel on texts."
        )
    if isinstance(X, (list, tuple)) and (told := _ragged(X)):
        return kind(f"{error} {told}")
    if (told := _dates(estimator, X)) is not None:
        return TypeError(told)
    table = text_table(X)
    place = None if table is None else first_text(table, getattr(X, "columns", None))
    if place is None:
        return error
    return kind(
        f"{error} ({place}). X must hold numbers: encode text columns first, for example with "
        "sklearn.preprocessing.OneHotEncoder."
    )


def refused_dates(estimator: Any, what: str) -> str:
    """Return the message for samples with dates or durations among them."""
    return (
        f"X holds dates or durations ({what}), which {type(estimator).__name__} cannot compare as they are: "
        "turn them into numbers of a unit that you choose, for example days since the first date."
    )


def text_table(X: Any) -> Array | None:
    """Return samples among which there may be texts as an array, or None where there are none."""
    try:
        array = np.asarray(X)
    except Exception:  # whatever a foreign container raises: the caller goes on with its own error
        return None
    return array if array.ndim == 2 and array.dtype.kind in "OUS" else None


def first_text(table: Array, names: Any = None) -> str | None:
    """Name the first entry of an object or text array that is not a number."""
    for (row, column), value in np.ndenumerate(table):
        try:
            float(value)
        except (TypeError, ValueError):
            name = "" if names is None else f" ({shown(names[column])})"
            return f"row {row}, column {column}{name} holds {shown(value)}"
    return None


def _ragged(rows: list[Any] | tuple[Any, ...]) -> str | None:
    """Name the first row that is not as long as those before it."""
    lengths = [len(row) if isinstance(row, (list, tuple, np.ndarray)) else None for row in rows]
    for number, length in enumerate(lengths):
        if length != lengths[0]:
            told = ["no row" if size is None else f"{size} value(s)" for size in (lengths[0], length)]
            return f"X[0] has {told[0]}, X[{number}] has {told[1]}: give every sample the same features."
    return None


def _dates(estimator: Any, X: Any) -> str | None:
    """Return the message for the first column of a table that holds dates or durations."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return None
    for name, kind in zip(X.columns, X.dtypes, strict=False):
        if str(kind).lower().startswith(("datetime", "timedelta", "period", "date", "time", "duration")):
            return refused_dates(estimator, f"column {shown(name)}, {kind}")
    return None
