"""``separatrix predict``: classes, scores and probabilities for every row, block by block."""

from __future__ import annotations

import contextlib
import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from separatrix.cli.inputs import DataOptions, load_model, model_blocks, noted
from separatrix.cli.outputs import check_output
from separatrix.cli.prepare import nameless
from separatrix.cli.screen import CommandError, plain, print_json
from separatrix.persistence import atomic_write

_FORMATS = {
    "": "csv",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}


@dataclass(frozen=True)
class PredictRequest:
    """What the user asked for."""

    model: Path
    data: DataOptions
    output: Path | None
    scores: bool
    probabilities: bool
    json: bool


def run(request: PredictRequest) -> None:
    """Load, then read, predict and write block by block: the file may be larger than the memory."""
    check_output("--output", request.output, request.model, request.data.path)
    if request.output is not None and not request.json and request.output.suffix.lower() not in _FORMATS:
        known = ", ".join(filter(None, _FORMATS))
        raise CommandError(f"--output {request.output}: the name must end in one of {known}")
    model = load_model(request.model, request.data.path)
    if request.scores and not hasattr(model, "decision_function"):
        raise CommandError("--scores: this model has no decision function; use --probabilities")
    if request.probabilities and not hasattr(model, "predict_proba"):
        raise CommandError(
            "--probabilities: this model gives none; use --scores, or fit logistic, lda or gaussian"
        )
    with noted():
        blocks, _ = model_blocks(model, request.data, labelled=False)
        answers = _answers(model, blocks, request)
        if request.json:
            _write_document(request, model, answers)
            return
        with _writer(request.output) as writer:
            for titles, columns in answers:
                writer.write(titles, columns)


def _answers(
    model: Any, blocks: Any, request: PredictRequest
) -> Iterator[tuple[list[str], list[NDArray[Any]]]]:
    """Yield titles and columns for each block of rows."""
    for block in blocks:
        titles = ["prediction"]
        if not len(block.rows):  # every row of the block was left out
            continue
        with nameless():
            columns = [model.predict(block.X)]
            if request.scores:
                values = np.asarray(model.decision_function(block.X))
                titles += _score_names(model.classes_, values)
                columns += list(values.T) if values.ndim == 2 else [values]
            if request.probabilities:
                titles += [f"probability {label}" for label in model.classes_]
                columns += list(model.predict_proba(block.X).T)
        if request.data.missing == "drop":
            titles, columns = ["row", *titles], [block.row_numbers() + 1, *columns]
        yield titles, columns


def _score_names(classes: NDArray[Any], values: NDArray[Any]) -> list[str]:
    """Name the columns of the decision function: one per class, or one per pair of classes."""
    if values.ndim == 1:
        return [f"score {classes[-1]}"]  # positive values speak for the second class
    if values.shape[1] == len(classes):
        return [f"score {label}" for label in classes]
    return [f"score {second} over {first}" for first, second in combinations(classes, 2)]


def _write_document(request: PredictRequest, model: Any, answers: Any) -> None:
    titles: list[str] = []
    parts: list[list[NDArray[Any]]] = []
    for titles, columns in answers:  # noqa: B007
        parts.append(columns)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    content: dict[str, Any] = {"model": str(request.model), "data": str(request.data.path)}
    numbers = {}
    if titles[:1] == ["row"]:
        titles, numbers, columns = titles[1:], {"row_numbers": columns[0]}, columns[1:]
    classes = getattr(model, "classes_", None)
    first = columns[0] if columns else np.empty(0)
    content |= {"rows": len(first), "classes": classes, **numbers, "predictions": first}
    for word, key in (("score", "scores"), ("probability", "probabilities")):
        chosen = [number for number, title in enumerate(titles) if number and title.startswith(f"{word} ")]
        if chosen:
            table = np.column_stack([columns[number] for number in chosen])
            content |= {f"{word}_names": [titles[number] for number in chosen]}
            content[key] = table[:, 0] if len(chosen) == 1 else table
    if request.output is None:
        print_json(content)
        return
    with atomic_write(request.output) as temporary, open(temporary, "w", encoding="utf-8") as file:
        json.dump(plain(content), file, ensure_ascii=False, allow_nan=False)


class _Writer(Protocol):
    def write(self, titles: list[str], columns: list[NDArray[Any]]) -> None: ...


@contextlib.contextmanager
def _writer(output: Path | None) -> Iterator[_Writer]:
    if output is None:
        yield _CsvWriter(sys.stdout)
        sys.stdout.flush()
        return
    kind = _FORMATS[output.suffix.lower()]
    with atomic_write(output) as temporary:
        if kind == "parquet":
            writer = _ParquetWriter(temporary)
            yield writer
            writer.close()
            return
        with open(temporary, "w", encoding="utf-8", newline="") as file:
            yield _JsonWriter(file) if kind == "jsonl" else _CsvWriter(file, "\t" if kind == "tsv" else ",")


class _CsvWriter:
    def __init__(self, file: IO[str], delimiter: str = ",") -> None:
        self.writer, self.begun = csv.writer(file, delimiter=delimiter, lineterminator="\n"), False

    def write(self, titles: list[str], columns: list[NDArray[Any]]) -> None:
        if not self.begun:
            self.writer.writerow(titles)
            self.begun = True
        self.writer.writerows(zip(*(column.tolist() for column in columns), strict=True))


class _JsonWriter:
    def __init__(self, file: IO[str]) -> None:
        self.file = file

    def write(self, titles: list[str], columns: list[NDArray[Any]]) -> None:
        for row in zip(*(column.tolist() for column in columns), strict=True):
            record = plain(dict(zip(titles, row, strict=True)))
            self.file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


class _ParquetWriter:
    def __init__(self, path: str) -> None:
        self.path = path
        self.writer: Any = None

    def write(self, titles: list[str], columns: list[NDArray[Any]]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table([pa.array(column.tolist()) for column in columns], names=titles)
        if self.writer is None:
            self.writer = pq.ParquetWriter(self.path, table.schema)
        self.writer.write_table(table)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
