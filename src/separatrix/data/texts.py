"""Samples that are texts, for kernels on strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from separatrix.data.view import Array, DataView

#: Texts in one block.
_BLOCK_TEXTS = 1024


def as_texts(samples: Any, name: str = "X") -> Array:
    """Return samples as a one-dimensional array of Python strings, or say which of them is none.

    Parameters
    ----------
    samples : sequence of str, or an array of one dimension or one column
        The texts.
    name : str
        What the message calls them.

    Examples
    --------
    >>> as_texts(["cat", "car"])
    array(['cat', 'car'], dtype=object)
    """
    if isinstance(samples, str):
        raise TypeError(f"{name} must be a list of texts, not one text; write [{name}] for a list of one")
    if isinstance(samples, np.ndarray) and samples.dtype == object and samples.ndim == 1:
        texts = samples
    else:
        given = np.asarray(samples) if hasattr(samples, "__array__") or hasattr(samples, "dtype") else samples
        if isinstance(given, np.ndarray):
            if given.dtype.kind in "fiubcSmM":
                raise TypeError(
                    f"{name} must hold texts (Python strings) for a string kernel, not {given.dtype}; use a "
                    "kernel on vectors such as 'rbf' for numbers, and decode bytes"
                )
            if given.ndim == 2 and given.shape[1] == 1:
                given = given[:, 0]
            if given.ndim != 1:
                raise ValueError(
                    f"{name} must hold texts in one dimension, not in shape {given.shape}: a string kernel "
                    "compares one text per sample; choose one column"
                )
            given = given.tolist()
        texts = np.empty(len(given), dtype=object)
        texts[:] = given
    for number, text in enumerate(texts):
        # A subclass such as numpy.str_ is a string too.
        if not isinstance(text, str):
            raise TypeError(
                f"{name} must hold texts (Python strings) for a string kernel, but sample {number} is "
                f"{_shown(text)}; use a kernel on vectors such as 'rbf' for numbers, decode bytes, and leave "
                "out missing texts"
            )
    return texts


def holds_texts(samples: Any) -> bool:
    """Tell whether samples are texts in one dimension, judged by the first of them.

    Examples
    --------
    >>> holds_texts(["cat"]), holds_texts([["cat"]]), holds_texts([[1.0]])
    (True, False, False)
    """
    if isinstance(samples, list | tuple):
        return len(samples) > 0 and isinstance(samples[0], str)
    if getattr(samples, "ndim", 0) != 1 or sparse.issparse(samples) or len(samples) == 0:
        return False
    return isinstance(np.asarray(samples)[0], str)


def _shown(value: Any) -> str:
    return f"{str(value)[:40]} of type {type(value).__name__}"


class TextView(DataView):
    """View of texts: rows without features, read by blocks; kernels on strings compare them.

    Examples
    --------
    >>> view = TextView(as_texts(["cat", "car", "bar"]))
    >>> view.shape, view.take(np.array([2, 0])).tolist()
    ((3, 1), ['bar', 'cat'])
    """

    sparse = False

    def __init__(self, texts: Array) -> None:
        self.array = texts
        self.shape = (texts.shape[0], 1)
        self.dtype = np.dtype(np.float64)

    def parts(self) -> list[slice]:
        """Return the rows of each block, in order."""
        n = self.shape[0]
        return [slice(begin, min(begin + _BLOCK_TEXTS, n)) for begin in range(0, n, _BLOCK_TEXTS)]

    def read(self, rows: slice) -> Array:
        """Return neighbouring texts."""
        return np.asarray(self.array[rows])

    def take(self, rows: Array) -> Array:
        """Return the given texts, in the given order."""
        return np.asarray(self.array[rows])
