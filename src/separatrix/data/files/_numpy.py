"""NumPy's ``.npy`` and ``.npz``: matrices without names, dense or as the parts of a CSR matrix."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from separatrix.data.files._origin import DataFileError, Origin, open_errors, quoted

_CSR = ("data", "indices", "indptr", "shape")


def read_numpy(origin: Origin, target: str | None, part: str = "train") -> tuple[Any, Any]:
    """Return matrix and target (None if there is none).

    An ``.npz`` holds ``X`` and ``y`` (dense, or ``X_data, X_indices, X_indptr, X_shape``), or ``Xtr, ytr``
    and ``Xte, yte``; codes in ``y`` are looked up in ``classes`` if there are any. An ``.npy`` holds a
    matrix, whose column ``target`` (a number, from 0) is the target.
    """
    with open_errors(origin.name):
        try:
            if origin.format == "npy":
                return _split(origin.name, np.load(origin.path, mmap_mode="r", allow_pickle=False), target)
            return _read_npz(origin, target, part)
        except (DataFileError, OSError):
            raise
        except Exception as error:
            # Headers are Python expressions, archives may be compressed: damage shows in errors of any kind.
            reason = str(error) or type(error).__name__
            if "allow_pickle" in reason or "Python objects" in reason:
                reason = "it holds Python objects, which are not loaded because they could run code"
            raise DataFileError(
                f"{origin.name}: damaged, or not numbers of NumPy: {reason}; save it again with numpy.savez"
            ) from None


def _read_npz(origin: Origin, target: str | None, part: str) -> tuple[Any, Any]:
    name = origin.name
    # NumPy allocates what an array's header says before it reads: the archive knows the true sizes.
    with zipfile.ZipFile(origin.path) as archive:
        sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()}
    with np.load(origin.path, allow_pickle=False) as archive:
        keys = list(archive.keys())

        def get(key: str) -> Any:
            _check_size(name, origin, key, sizes)
            return archive[key]

        if part == "test" and ("Xte" in keys or "Xte_data" in keys):
            names = ("Xte", "yte")
        elif "Xtr" in keys or "Xtr_data" in keys:
            names = ("Xtr", "ytr")
        else:
            names = ("X", target if target is not None and target in keys else "y")
        X = _matrix(name, keys, get, names[0])
        y = get(names[1]) if names[1] in keys else None
        if target not in (None, "y", names[1]) or (y is None and target is not None):
            raise DataFileError(f"{name}: no target {target!r}; the arrays are {quoted(keys)}")
        if y is not None:
            if y.shape != (X.shape[0],):
                raise DataFileError(
                    f"{name}: {names[1]} has shape {y.shape} and {names[0]} {X.shape[0]:,} rows"
                )
            if "classes" in keys and y.dtype.kind in "iu":
                classes = get("classes")
                if classes.ndim == 1 and len(y) and y.min() >= 0 and y.max() < len(classes):
                    y = classes[y]
        return X, y


def _check_size(name: str, origin: Origin, key: str, sizes: dict[str, int]) -> None:
    with zipfile.ZipFile(origin.path) as archive, archive.open(f"{key}.npy") as file:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(file)
    promised = dtype.itemsize * int(np.prod([int(length) for length in shape], dtype=object))
    if not dtype.hasobject and promised > sizes[key]:
        raise DataFileError(f"{name}: array {key!r} is shorter than its header says; the file is damaged")


def _matrix(name: str, keys: list[str], get: Callable[[str], Any], key: str) -> Any:
    from scipy import sparse

    if key in keys:
        X = get(key)
    elif all(f"{key}_{part}" in keys for part in _CSR):
        parts = [get(f"{key}_{part}") for part in _CSR]
        X = _csr(name, parts)
    elif set(_CSR) <= set(keys):  # scipy.sparse.save_npz
        if "format" in keys and get("format").item() not in (b"csr", "csr"):
            raise DataFileError(f"{name}: a sparse matrix that is not CSR; save X.tocsr()")
        X = _csr(name, [get(part) for part in _CSR])
    else:
        raise DataFileError(
            f"{name}: no array {key!r}; the arrays are {quoted(keys)}: save the features as {key!r}"
        )
    if X.ndim != 2:
        raise DataFileError(f"{name}: {key} has {X.ndim} dimensions; a matrix has 2")
    if X.dtype.kind not in "fiub" or X.dtype.itemsize > 8:
        raise DataFileError(f"{name}: {key} holds values of type {X.dtype}; numbers are needed")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise DataFileError(f"{name}: {key} is empty (shape {X.shape})")
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        whole = X.dtype.kind != "f" or bool(np.isfinite(np.sum(values))) or bool(np.isfinite(values).all())
    if not whole:
        rows = np.flatnonzero(~np.isfinite(values if values.ndim == 1 else values.sum(axis=1)))
        first = "" if sparse.issparse(X) else f", the first in row {rows[0]:,} (from 0)"
        raise DataFileError(
            f"{name}: {key} holds NaN or infinite values{first}; fill them in or remove the rows"
        )
    return X


def _csr(name: str, parts: list[Any]) -> Any:
    from scipy import sparse

    data, indices, indptr, shape = parts
    rows, columns = (int(length) for length in shape)
    if any(part.ndim != 1 for part in (data, indices, indptr)) or len(indptr) != rows + 1:
        raise DataFileError(f"{name}: the parts of the sparse matrix do not fit together; save it again")
    X = sparse.csr_array((data, indices, indptr), shape=(rows, columns))
    X.check_format(full_check=True)
    return X


def _split(name: str, array: Any, target: str | None) -> tuple[Any, Any]:
    X = _matrix(name, ["X"], lambda key: array, "X")
    if target is None:
        return X, None
    try:
        column = int(target)
        y = np.asarray(X[:, column])
    except (ValueError, IndexError):
        raise DataFileError(
            f"{name}: no column {target!r}; the {X.shape[1]} columns of a .npy file are called 0, 1, … "
        ) from None
    whole = y.dtype.kind != "f" or bool(np.all(y == np.floor(y)))
    return np.delete(X, column, axis=1), y.astype(np.int64) if whole else y
