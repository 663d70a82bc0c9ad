"""Data files: delimited text, LIBSVM text, Parquet, Arrow, JSON lines and NumPy's formats, compressed or not.

`read` gives features, their names and the target of a whole file; `open_source` reads the same files in
blocks, so that a file may be larger than the memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from separatrix.data.files._columns import MISSING_CATEGORY, Labels, Plan, choose_target
from separatrix.data.files._matrix import MatrixSource
from separatrix.data.files._origin import FORMATS, DataFileError, Reading, locate
from separatrix.data.files._tabular import Block, Table, TabularSource

__all__ = [
    "FORMATS",
    "MISSING_CATEGORY",
    "Block",
    "DataFileError",
    "Labels",
    "MatrixSource",
    "Plan",
    "Reading",
    "Table",
    "TabularSource",
    "choose_target",
    "open_source",
    "read",
]


def open_source(
    path: str | os.PathLike[str], reading: Reading | None = None, part: str = "train"
) -> TabularSource | MatrixSource:
    """Open a file (``-``: standard input) for reading as a whole or in blocks."""
    reading = reading or Reading()
    origin = locate(path, reading.format)
    if origin.format in ("svmlight", "npy", "npz"):
        return MatrixSource(origin, reading, part)
    if origin.format == "csv":
        from separatrix.data.files._csv import CsvSource

        return CsvSource(origin, reading)
    from separatrix.data.files._arrow import IpcSource, JsonSource, ParquetSource

    sources: dict[str, Callable[..., TabularSource]]
    sources = {"parquet": ParquetSource, "arrow": IpcSource, "jsonl": JsonSource}
    return sources[origin.format](origin, reading)


def read(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    features: Sequence[str] | None = None,
    ignore: Iterable[str] = (),
    categorical: Iterable[str] = (),
    missing: str = "refuse",
    format: str | None = None,  # noqa: A002
    delimiter: str | None = None,
    quote: str | None = '"',
    header: bool = True,
    index_base: int | None = None,
) -> Table:
    """Read a data file into ``(X, feature_names, y)``.

    The format is recognised by content and name: CSV or TSV, LIBSVM/SVMlight text, Parquet, Arrow (Feather),
    JSON lines, ``.npy`` and ``.npz``; text may be compressed (gzip, zstd, bz2). ``-`` is standard input.

    Parameters
    ----------
    path : str or path
        The file. Text is UTF-8.
    target : str, optional
        Name of the column to predict; without it ``y`` is None (LIBSVM text and ``.npz`` files bring their
        own). Its values become integers if all are whole numbers, floats if all are numbers, else text.
    features : sequence of str, optional
        The columns to read, in this order; others are ignored. Default: all but the target.
    ignore : iterable of str
        Columns to leave out, such as identifiers.
    categorical : iterable of str
        Columns to take as text, although they hold numbers or many different values.
    missing : {"refuse", "drop", "keep"}
        Rows with missing values (empty, ``?``, ``NA``, ``NaN``, ``null``) are refused with their number and
        the first place, left out, or kept as NaN and, in text columns, as the category ``?``.
    format : {"csv", "svmlight", "jsonl", "parquet", "arrow", "npy", "npz"}, optional
        The format, where content and name mislead.
    delimiter : str, optional
        What separates values in delimited text; found in the first line by default.
    quote : str or None
        The quotation mark of delimited text: between two of them, separators and line ends belong to the
        value. None: quotation marks are characters like others.
    header : bool
        Whether delimited text begins with the column names; without, columns are called ``"1"``, ``"2"``, ….
    index_base : {0, 1}, optional
        Index of the first feature in LIBSVM text; by default 0 if any index is 0, else 1.

    Returns
    -------
    Table
        Named tuple ``X, feature_names, y``. ``X`` is a float64 array; an Arrow table if some columns hold
        text (scikit-learn's ``ColumnTransformer`` takes it as it is); a CSR matrix or an array of its own
        type, and no names, where the file holds a matrix.

    Raises
    ------
    DataFileError
        If the file is missing, empty or damaged, a column is absent or named twice, or a value is missing or
        not a number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "flowers.csv")
    >>> _ = file.write_text("length,width,kind\\n1.5,2,rose\\n3,4,lily\\n")
    >>> X, names, y = read(file, target="kind")
    >>> X
    array([[1.5, 2. ],
           [3. , 4. ]])
    >>> names, y.tolist()
    (['length', 'width'], ['rose', 'lily'])
    >>> folder.cleanup()
    """
    if missing not in ("refuse", "drop", "keep"):
        raise ValueError(f"missing must be 'refuse', 'drop' or 'keep'; got {missing!r}")
    if index_base not in (None, 0, 1):
        raise ValueError(f"index_base must be 0, 1 or None; got {index_base!r}")
    reading = Reading(format, delimiter, header, tuple(categorical), index_base, missing, quote)
    return open_source(path, reading).read(target, features, tuple(ignore))
