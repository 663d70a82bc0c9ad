"""What the readers of LIBSVM's and LIBLINEAR's text files share: a header of names and values, checked."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.persistence._container import ModelFileError

#: Longest header, in lines: a file of another kind is refused before it is read as a whole.
_LONGEST_HEADER = 64
_WHOLE = re.compile(rb"[+-]?\d{1,18}")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,5})?")


class Header:
    """The lines ``name value …`` before the numbers of a model file, and where these begin.

    Parameters
    ----------
    path : str or path
        The file.
    end : bytes
        The line that ends the header.
    known : sequence of str
        Names that may come before; others are refused, since they could change what the numbers mean.
    kind : str
        What the file should be, for messages.
    """

    def __init__(self, path: str | os.PathLike[str], end: bytes, known: Sequence[str], kind: str) -> None:
        self.name, self.kind = os.fspath(path), kind
        if not os.path.exists(self.name):
            raise FileNotFoundError(f"{self.name}: no such file; check the path")
        if not os.path.isfile(self.name):
            raise ModelFileError(f"{self.name}: not a regular file; give the path of a {kind} model file")
        self._fields: dict[str, tuple[int, list[bytes]]] = {}
        with open(self.name, "rb") as file:
            for number in range(1, _LONGEST_HEADER + 1):
                # One number for each pair of a thousand classes takes megabytes.
                line = file.readline(1 << 28)
                words = line.split()
                if words == [end]:
                    self.lines, self.body = number, file.read()
                    return
                if not line.endswith(b"\n") or not words:
                    raise self.error(number, f"a line 'name value …' or {end.decode()!r} is expected here")
                key = words[0].decode("ascii", "replace")
                if key not in known:
                    raise self.error(number, f"{_shown(words[0])} is unknown")
                if key in self._fields:
                    raise self.error(number, f"{_shown(words[0])} for the second time")
                self._fields[key] = (number, words[1:])
        raise self.error(_LONGEST_HEADER, f"no line {end.decode()!r} so far")

    def error(self, line: int, reason: str) -> ModelFileError:
        """Return the error that refuses the file."""
        return ModelFileError(
            f"{self.name}: line {line:,}: {reason}; not a {self.kind} model file, or damaged: write it again"
        )

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def word(self, key: str, choices: Sequence[str]) -> str:
        """Return the one word of a line, which must be among the choices."""
        line, words = self._words(key, 1)
        found = words[0].decode("ascii", "replace")
        if found not in choices:
            raise self.error(line, f"{key} {found[:40]!r} is not one of {', '.join(choices)}")
        return found

    def whole(self, key: str, least: int, most: int) -> int:
        """Return the one whole number of a line."""
        line, words = self._words(key, 1)
        number = int(words[0]) if _WHOLE.fullmatch(words[0]) else None
        if number is None or not least <= number <= most:
            raise self.error(
                line, f"{key} must be a whole number from {least:,} to {most:,}, not {_shown(words[0])}"
            )
        return number

    def wholes(self, key: str, count: int, least: int = -(2**31), most: int = 2**31 - 1) -> list[int]:
        """Return the whole numbers of a line."""
        line, words = self._words(key, count)
        for word in words:
            if not _WHOLE.fullmatch(word) or not least <= int(word) <= most:
                raise self.error(line, f"{key} must hold whole numbers, not {_shown(word)}")
        return [int(word) for word in words]

    def numbers(self, key: str, count: int) -> NDArray[np.float64]:
        """Return the numbers of a line."""
        line, words = self._words(key, count)
        return self.floats(words, line, key)

    def floats(self, words: Sequence[bytes], line: int, what: str) -> NDArray[np.float64]:
        """Return words as finite numbers."""
        for word in words:
            if not _NUMBER.fullmatch(word) or not math.isfinite(float(word)):
                raise self.error(line, f"{what}: {_shown(word)} is not a finite number")
        return np.array([float(word) for word in words])

    def _words(self, key: str, count: int) -> tuple[int, list[bytes]]:
        if key not in self._fields:
            raise self.error(self.lines, f"the header has no line {key!r}")
        line, words = self._fields[key]
        if len(words) != count:
            raise self.error(line, f"{key} needs {count:,} values, not {len(words):,}")
        return line, words


def _shown(word: bytes) -> str:
    return repr(word[:40].decode("utf-8", "replace"))


def whole_labels(classes: Any, kind: str) -> list[int]:
    """Return class labels as the whole numbers that these files can hold, or say what to do."""
    labels = np.asarray(classes)
    small = labels.dtype.kind in "iufb" and bool(np.all(np.abs(labels.astype(np.float64)) < 2**31))
    if not small or np.any(labels.astype(np.float64) % 1):
        raise ModelFileError(
            f"{kind} model files know labels that are whole numbers only, not {labels.ravel()[0]!r}: fit the "
            "model with numbers, for example sklearn.preprocessing.LabelEncoder().fit_transform(y)"
        )
    return [int(label) for label in labels]


def last_step(model: Any, kind: str) -> Any:
    """Return a fitted model without steps before it, which these files cannot hold."""
    from sklearn.utils.validation import check_is_fitted

    if hasattr(model, "steps"):
        if len(model.steps) > 1:
            names = ", ".join(type(step).__name__ for _, step in model.steps[:-1])
            raise ModelFileError(
                f"{kind} model files cannot hold the steps before the model ({names}): transform the data "
                "first and export the last step, or export to ONNX"
            )
        model = model.steps[-1][1]
    check_is_fitted(model)
    return model
