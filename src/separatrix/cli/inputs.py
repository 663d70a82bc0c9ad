"""Data files as the commands take them: whole tables to learn from, blocks of rows to predict."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.cli.prepare import fills_missing, plan_of
from separatrix.cli.screen import CommandError, available_memory, counted, megabytes, note
from separatrix.data.files import (
    Block,
    MatrixSource,
    Plan,
    Reading,
    Table,
    TabularSource,
    choose_target,
    open_source,
)

_LONG_BYTES = 100_000_000  # a file that takes a second to read, or more
_VECTORS = 8  # as long as a matrix is wide, that a fit holds at least
MISSING = ("refuse", "drop", "mean")


@dataclass(frozen=True)
class DataOptions:
    """Which file, which columns, and how to read them."""

    path: Path
    target: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    missing: str = "refuse"
    format: str | None = None
    delimiter: str | None = None
    quote: str = '"'
    header: bool = True
    index_base: int | None = None

    def words(self) -> str:
        """Return the words of a command line that read the same file in the same way."""
        words = [str(self.path)]
        for option, value in (
            ("target", self.target),
            ("format", self.format),
            ("delimiter", self.delimiter),
        ):
            words += [] if value is None else [f"--{option}", value]
        words += [] if self.missing == "refuse" else ["--missing", self.missing]
        words += [] if self.quote == '"' else ["--quote", self.quote]
        words += [] if self.header else ["--no-header"]
        words += [] if self.index_base is None else ["--index-base", str(self.index_base)]
        for option, names in (("ignore", self.ignore), ("categorical", self.categorical)):
            words += [word for name in names for word in (f"--{option}", name)]
        return shlex.join(words)

    def reading(self) -> Reading:
        """Return how the file is read."""
        if self.missing not in MISSING:
            raise CommandError(f"--missing must be one of {', '.join(MISSING)}; got {self.missing!r}")
        if self.index_base not in (None, 0, 1):
            raise CommandError(f"--index-base must be 0 or 1; got {self.index_base}")
        delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(self.delimiter or "", self.delimiter)
        quote = None if self.quote.casefold() == "none" else self.quote
        kept = "keep" if self.missing == "mean" else self.missing
        return Reading(self.format, delimiter, self.header, self.categorical, self.index_base, kept, quote)


@dataclass(frozen=True)
class Labelled:
    """A table to learn from: features, names (None for a matrix), classes, and what to call the target."""

    X: Any
    names: list[str] | None
    y: NDArray[Any]
    target: str
    chosen: bool

    @property
    def features(self) -> int:
        """Number of columns before any encoding."""
        return int(self.X.shape[1])

    def sentence(self, path: Any, rows: int, classes: int) -> str:
        """Return what was read, in the words of every report."""
        assumed = "" if self.chosen or self.names is None else " (assumed; --target names another)"
        return (
            f"{path}: {rows:,} rows, {counted(self.features, 'feature')}, target {self.target} with "
            f"{classes} classes{assumed}"
        )


@contextmanager
def noted() -> Iterator[None]:
    """Print warnings of the readers as notes."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:  # what was noticed may explain an error
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            note(text)


def load_model(path: Path, data: Path) -> Any:
    """Load the model of a command that also takes data, and tell if the two were confused."""
    from separatrix.persistence import ModelFileError, load

    try:
        return load(path)
    except ModelFileError:
        if data.suffix.lower() == ".sx" and path.suffix.lower() != ".sx":
            raise CommandError(
                f"{path} is no model file, and {data} seems to be one: the model comes first, then the data"
            ) from None
        raise


def load_labelled(options: DataOptions, *, quiet: bool = False) -> Labelled:
    """Read a table whose rows have a class, and check that there are classes to tell apart."""
    with noted():
        source = open_source(options.path, options.reading())
        if not quiet:
            _announce(source)
        target, chosen = options.target, options.target is not None
        if target is None and source.names is not None:
            target = choose_target(
                [name for name in source.names if name not in options.ignore] or source.names
            )
        X, names, y = source.read(target, None, options.ignore)
    place = options.path if target is None else f"{options.path}: target column {target!r}"
    if y is None:
        remedy = "the file holds no target array 'y'; name one with --target"
        if source.origin.format == "npy":
            last = X.shape[1] - 1
            remedy = f"say which column is the target; --target {last} is the last (they count from 0)"
        raise CommandError(f"{options.path}: {remedy}")
    _check_classes(str(place), y)
    _check_width(str(options.path), X)
    return Labelled(X, names, y, target or "y", chosen)


def _announce(source: TabularSource | MatrixSource) -> None:
    """Say what a long load needs, before it begins."""
    size = os.path.getsize(source.origin.path)
    if size < _LONG_BYTES or not isinstance(source, TabularSource):
        return
    rows = source.rows_expected()
    if rows is None:
        return
    needed = 8 * rows * len(source.names)
    available = available_memory()
    short = "" if available is None or needed < available else f", and only {megabytes(available)} are free"
    note(
        f"reading {source.name} ({megabytes(size)}): about {float(f'{rows:.2g}'):,.0f} rows, "
        f"{counted(len(source.names), 'column')}, {megabytes(needed)} of memory as numbers{short}"
    )


def _check_classes(place: str, y: NDArray[Any]) -> None:
    classes = np.unique(y)
    if len(classes) < 2:
        raise CommandError(f"{place} holds only the class {classes[0]!s}; at least two are needed")
    if y.dtype.kind == "f" and not np.all(np.equal(np.mod(classes, 1), 0)):
        raise CommandError(
            f"{place} holds fractions such as {classes[np.mod(classes, 1) != 0][0]}; classes are whole "
            "numbers or text: choose another column with --target, or turn the numbers into classes first"
        )
    if len(classes) > 50 and 2 * len(classes) > len(y):
        raise CommandError(
            f"{place} holds {len(classes):,} different values in {len(y):,} rows, hardly classes; "
            "choose another column with --target"
        )


def _check_width(place: str, X: Any) -> None:
    """Refuse a sparse matrix so wide that the weights of its columns alone would fill the memory."""
    available = available_memory()
    needed = _VECTORS * 8 * int(X.shape[1])
    if hasattr(X, "indptr") and available is not None and needed > available:
        raise CommandError(
            f"{place}: the largest index makes {X.shape[1]:,} columns, whose weights need "
            f"{megabytes(needed)} of memory, and {megabytes(available)} are free; is an index wrong?"
        )


def model_blocks(model: Any, options: DataOptions, *, labelled: bool) -> tuple[Iterator[Block], str | None]:
    """Return the rows of a file as a model reads them, block by block, and the name of the target."""
    reading = options.reading()
    if fills_missing(model):
        if reading.missing == "refuse":
            reading = replace(reading, missing="keep")
    elif options.missing == "mean":
        raise CommandError(
            "--missing mean: the model was fitted without means for missing values; fit it "
            "with --missing mean, or use drop"
        )
    source = open_source(options.path, reading, part="test")
    plan = plan_of(model)
    if isinstance(source, MatrixSource):
        if plan is not None:
            raise CommandError(
                f"{options.path}: a matrix without column names, and the model reads columns by name; "
                "give a table such as CSV"
            )
        return source.matrix_blocks(int(model.n_features_in_), options.target), options.target
    target = options.target
    if plan is None:
        plan = _by_position(model, source.names, options, labelled)
        target = plan.target
    elif labelled:
        used = set(plan.names)
        if target in used:
            raise CommandError(
                f"--target {target}: the model reads this column as a feature; name the one with the classes"
            )
        rest = [name for name in source.names if name not in used]
        if target is None and not rest:
            raise CommandError(
                f"{options.path}: no column is left for the true classes; name one with --target"
            )
        target = target or choose_target(rest)
        plan = replace(plan, target=target)
    # Before anything is computed: are the columns there?
    from separatrix.data.files._columns import choose_columns

    choose_columns(source.name, source.names, plan.target, plan.names, ())
    return source.blocks(replace(plan, fixed=True)), target


def _by_position(model: Any, names: list[str], options: DataOptions, labelled: bool) -> Plan:
    target = (options.target or choose_target(names)) if labelled else None
    chosen = [name for name in names if name != target and name not in options.ignore]
    if len(chosen) != model.n_features_in_:
        raise CommandError(
            f"{options.path}: the model was fitted without column names on {model.n_features_in_} "
            "features, and "
            f"the file has {len(chosen)} columns; give a file with just those columns, in the order of "
            "the fit"
        )
    note("the model knows no column names; columns are taken in the order of the file")
    return Plan(tuple(chosen), frozenset(), target)


__all__ = ["DataOptions", "Labelled", "Table", "load_labelled", "load_model", "model_blocks", "noted"]
