"""``separatrix predict``: classes, and scores if asked for, for every row of a table."""

from __future__ import annotations

import csv
import sys
import warnings
from itertools import combinations
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.cli.screen import CommandError, note, plain, print_json
from separatrix.data.files import read_table
from separatrix.persistence import atomic_write, load


def run(model_path: Path, data_path: Path, *, output: Path | None, scores: bool, as_json: bool) -> None:
    """Load, read, predict, write."""
    if output is not None and output.exists():
        for path in (model_path, data_path):
            if path.exists() and output.samefile(path):
                raise CommandError(f"--output {output}: would overwrite an input file; choose another path")
    model = load(model_path)
    X = _features(model, data_path)
    with warnings.catch_warnings():
        # The matrix has no names, but its columns are already in the model's order.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        predicted = model.predict(X)
        values = np.asarray(model.decision_function(X)) if scores else None
    titles, columns = ["prediction"], [predicted]
    if values is not None:
        names = _score_names(model.classes_, values)
        titles += names
        columns += list(values.T) if values.ndim == 2 else [values]
    if as_json:
        content: dict[str, Any] = {"model": str(model_path), "data": str(data_path), "rows": len(X)}
        content |= {"classes": model.classes_, "predictions": predicted}
        if values is not None:
            content |= {"score_names": titles[1:], "scores": values}
        if output is None:
            print_json(content)
            return
        with atomic_write(output) as temporary, open(temporary, "w", encoding="utf-8") as file:
            import json

            json.dump(plain(content), file, ensure_ascii=False, allow_nan=False)
        return
    if output is None:
        _write(sys.stdout, titles, columns)
        sys.stdout.flush()
        return
    with atomic_write(output) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        _write(file, titles, columns)


def _features(model: Any, path: Path) -> NDArray[np.float64]:
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return read_table(path, features=[str(name) for name in names]).X
    X, columns, _ = read_table(path)
    if len(columns) != model.n_features_in_:
        raise CommandError(
            f"{path}: the model was fitted without column names on {model.n_features_in_} features, and the "
            f"file has {len(columns)} columns; give a file with just those columns, in the order of the fit"
        )
    note("the model knows no column names; columns are taken in the order of the file")
    return X


def _score_names(classes: NDArray[Any], values: NDArray[Any]) -> list[str]:
    """Name the columns of the decision function: one per class, or one per pair of classes."""
    if values.ndim == 1:
        return [f"score {classes[-1]}"]  # positive values speak for the second class
    if values.shape[1] == len(classes):
        return [f"score {label}" for label in classes]
    return [f"score {second} over {first}" for first, second in combinations(classes, 2)]


def _write(file: IO[str], titles: list[str], columns: list[NDArray[Any]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
