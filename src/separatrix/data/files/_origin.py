"""Where data come from: a path or standard input, compressed or not, and in which format."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

# Bytes at the beginning that tell what a file is, whatever its name.
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\x93NUMPY": "npy", b"PK\x03\x04": "npz"}
# What people take for a table, by its first bytes: what it is, and what to do.
_AS_TEXT = "save the table as CSV or Parquet"
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": ("an Excel workbook", _AS_TEXT),
    b"\x89HDF": ("an HDF5 file", _AS_TEXT),
    b"SQLite format 3": ("a database", "export the table as CSV"),
    **dict.fromkeys((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), ("a pickle", _AS_TEXT + " or NPZ")),
    b"\x89PNG": ("a picture", "give a table"),
    b"\xff\xd8\xff": ("a picture", "give a table"),
    b"%PDF": ("a PDF document", "give a table"),
    b"\xff\xfe": ("text in UTF-16", "save it as UTF-8"),
    b"\xfe\xff": ("text in UTF-16", "save it as UTF-8"),
    b"<!doctype html": ("a web page", "download the data themselves"),
    b"<html": ("a web page", "download the data themselves"),
    b"@relation": ("an ARFF file", "save it as CSV"),
}
_SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv",
    ".svm": "svmlight", ".libsvm": "svmlight", ".svmlight": "svmlight",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".npy": "npy", ".npz": "npz",
}  # fmt: skip
#: The formats that `read` knows, as ``format=`` and ``--format`` take them.
FORMATS = ("csv", "svmlight", "jsonl", "parquet", "arrow", "npy", "npz")
_SVMLIGHT_LINE = re.compile(rb"[+-]?[\d.][^\s:,;]*((\s+qid:\S+)?(\s+\d+:\S+)+)?\s*(#.*)?")
_HEAD_BYTES = 1 << 18  # of the beginning, kept; a file that is no longer is read once


class DataFileError(ValueError):
    """A data file cannot be used; the message names the file, the place and the remedy."""


@dataclass(frozen=True)
class Reading:
    """How to read a file: what its bytes mean, and what is done about missing values."""

    format: str | None = None
    delimiter: str | None = None
    header: bool = True
    categorical: tuple[str, ...] = ()
    index_base: int | None = None
    missing: str = "refuse"
    quote: str | None = '"'

    def __post_init__(self) -> None:
        for name, mark, other in (
            ("delimiter", self.delimiter, "found in the first line where it is not given"),
            ("quote", self.quote, "none (quote=None) takes quotation marks as text"),
        ):
            if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in "\r\n\0"):
                raise DataFileError(
                    f"--{name} ({name}=) must be one character of ASCII within the lines, and {other}; "
                    f"got {mark!r}"
                )
        if self.quote is not None and self.quote == self.delimiter:
            raise DataFileError(
                f"separator and quotation mark are both {self.quote!r}; give --quote another character, or "
                "none (quote=None)"
            )


@dataclass(frozen=True)
class Origin:
    """A file that can be opened again and again."""

    name: str
    path: str
    compression: str | None
    format: str
    head: bytes = field(default=b"", repr=False)

    def stream(self) -> Any:
        """Open the bytes, decompressed, as an Arrow stream."""
        import pyarrow as pa

        return pa.input_stream(self.path, compression=self.compression)

    def open(self) -> IO[bytes]:
        """Open the bytes, decompressed, as a Python file."""
        if 0 < len(self.head) < _HEAD_BYTES:
            return io.BytesIO(self.head)
        if self.compression is None:
            return open(self.path, "rb")
        stream: IO[bytes] = self.stream()
        return stream


def locate(path: str | os.PathLike[str], format: str | None = None) -> Origin:  # noqa: A002
    """Find a file, and tell its compression and format; standard input (``-``) is copied to a file first."""
    name = os.fspath(path)
    if format is not None and format not in FORMATS:
        raise DataFileError(f"format {format!r} is unknown; choose one of {', '.join(FORMATS)}")
    shown = "standard input" if name == "-" else name
    if name != "-" and not os.path.exists(name):
        raise DataFileError(f"{name}: no such file; check the path (working directory: {os.getcwd()})")
    if os.path.isdir(name):
        raise DataFileError(f"{name}: is a directory; give the path of a file")
    # What is a pipe (also a shell's <(...)) can be read once only.
    real = name if os.path.isfile(name) else _copied(name)
    with open_errors(shown):
        with open(real, "rb") as file:
            head = file.read(_HEAD_BYTES)
        compression = next((kind for magic, kind in _COMPRESSIONS.items() if head.startswith(magic)), None)
        if compression is not None:
            with Origin(shown, real, compression, "").open() as file:
                head = file.read(_HEAD_BYTES)
        found = format or _format_of(name, compression, head)
    if compression is not None and found in ("parquet", "arrow", "npy", "npz"):
        raise DataFileError(f"{shown}: {found} within {compression}; decompress the file first")
    return Origin(shown, real, compression, found, head)


def _format_of(name: str, compression: str | None, head: bytes) -> str:
    _refuse_foreign(name, head)
    for magic, found in _MAGIC.items():
        if head.startswith(magic):
            return found
    base = name.casefold()
    if base.endswith(".sx") or (head[8:9] == b"{" and b'"__metadata__"' in head[:64]):
        raise DataFileError(f"{name}: a model file, not data; 'separatrix info' tells what is in it")
    for ending in (".gz", ".zst", ".bz2"):
        if base.endswith(ending):
            if compression is None:
                raise DataFileError(f"{name}: cannot read the file: it is not compressed as its name says")
            base = base.removesuffix(ending)
    suffix = os.path.splitext(base)[1]
    if suffix in _SUFFIXES:
        known = _SUFFIXES[suffix]
        if known in ("parquet", "arrow", "npy", "npz"):
            raise DataFileError(f"{name}: not a {known} file, or damaged at its beginning; write it again")
        return known
    lines = [line for line in head.split(b"\n", 20)[:20] if line.strip() and not line.startswith(b"#")]
    whole = lines[:-1] or lines
    if whole and whole[0].lstrip().startswith(b"{"):
        return "jsonl"
    # A column of numbers alone could be either; with a single index:value there is no doubt.
    if any(b":" in line for line in whole) and all(_SVMLIGHT_LINE.fullmatch(line.strip()) for line in whole):
        return "svmlight"
    return "csv"


def _refuse_foreign(name: str, head: bytes) -> None:
    """Refuse files that hold no table in a format known here."""
    begin = head[:64].lstrip().lower()
    for magic, (what, remedy) in _FOREIGN.items():
        if begin.startswith(magic.lower()):
            raise DataFileError(f"{name}: {what}, which is not read here; {remedy}")
    if name.casefold().endswith((".xlsx", ".xls", ".ods")) and head.startswith(b"PK"):
        raise DataFileError(f"{name}: a spreadsheet, which is not read here; {_AS_TEXT}")


@functools.cache
def _copied(name: str) -> str:
    """Copy a pipe to a temporary file, which can be read twice and may be larger than the memory."""
    import atexit

    handle, path = tempfile.mkstemp(prefix="separatrix-input-")
    atexit.register(_remove, path)
    with os.fdopen(handle, "wb") as file, contextlib.ExitStack() as stack:
        pipe = sys.stdin.buffer if name == "-" else stack.enter_context(open(name, "rb"))
        shutil.copyfileobj(pipe, file, 1 << 20)
    return path


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


@contextlib.contextmanager
def open_errors(name: str) -> Iterator[None]:
    """Give errors of the operating system, of Arrow and of text encoding the file's name."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"{name}: the text is not UTF-8 (byte {error.object[error.start]:#04x}); save the file as UTF-8"
        ) from None
    except csv.Error as error:
        advice = ""
        if "field limit" in str(error):
            advice = "; a quotation mark that is never closed? --quote none, quote=None, takes it as text"
        raise DataFileError(f"{name}: not a readable CSV file: {error}{advice}") from None
    except OSError as error:
        raise DataFileError(f"{name}: cannot read the file: {error.strerror or error}") from None


def quoted(names: Iterable[str], limit: int = 12) -> str:
    """List names for a message, the first of them."""
    listed = [repr(column) for column in names]
    rest = f" and {len(listed) - limit} more" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + rest
