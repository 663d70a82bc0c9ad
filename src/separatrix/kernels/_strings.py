"""What all kernels on strings share: texts as numbers, all pairs of them in threads, and normalisation."""

from abc import abstractmethod
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.texts import as_texts
from separatrix.data.threads import in_threads
from separatrix.kernels._base import Kernel, Rows

# Pairs of strings that one thread works on at a time, and fewer where all pairs are few.
_TASK_PAIRS = 1 << 14
_TASKS = 32
# Characters of the texts whose kernels with themselves are remembered, and of collections kept encoded.
_REMEMBERED = 1 << 24
_RECENT = 1 << 22


@dataclass(frozen=True, eq=False)
class Texts:
    """Strings as code points below ``alphabet``, one after the other."""

    codes: NDArray[Any]
    lengths: NDArray[Any]
    alphabet: int

    @classmethod
    def of(cls, texts: NDArray[Any]) -> "Texts":
        """Encode an array of strings."""
        strings = tuple(texts.tolist())
        # A solver asks for the same training texts again and again.
        return _recent(strings) if sum(map(len, strings)) <= _RECENT else _encode(strings)

    def __add__(self, other: "Texts") -> "Texts":
        codes = np.concatenate([self.codes, other.codes])
        lengths = np.concatenate([self.lengths, other.lengths])
        return Texts(codes, lengths, max(self.alphabet, other.alphabet))

    @property
    def starts(self) -> NDArray[Any]:
        """Where each text begins, and where the last one ends."""
        starts = np.zeros(self.lengths.shape[0] + 1, dtype=np.int64)
        np.cumsum(self.lengths, out=starts[1:])
        return starts


def _encode(texts: tuple[str, ...]) -> Texts:
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    if lengths.max(initial=0) >= 1 << 28:
        raise ValueError("a text has more than 268 million characters: cut it for a string kernel")
    # Lone surrogates are characters like others.
    joined = "".join(texts).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(joined, dtype="<i4").astype(np.int32, copy=False)
    return Texts(codes, lengths, int(codes.max(initial=0)) + 1)


_recent = lru_cache(maxsize=4)(_encode)


@dataclass(frozen=True, repr=False)
class StringKernel(Kernel):
    """A kernel on Python strings: a subclass gives ``_pairs`` and ``_shortest``.

    Samples are texts in a list or an array of one dimension; every Unicode character counts as one.
    Normalised, a kernel is ``k(s, t) / sqrt(k(s, s) k(t, t))``: the cosine of the angle between the feature
    vectors. A text too short to have any feature (``k(s, s) = 0``) then has the kernel 0 with all texts,
    itself included.
    """

    normalize: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.normalize, (bool, np.bool_)):
            raise TypeError(f"normalize must be True or False, not {self.normalize!r}")
        object.__setattr__(self, "normalize", bool(self.normalize))

    def __repr__(self) -> str:
        # The field of this base class comes last.
        names = sorted((item.name for item in fields(self)), key="normalize".__eq__)
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    @property
    def samples(self) -> str:
        """What it compares: "texts"."""
        return "texts"

    @property
    @abstractmethod
    def _shortest(self) -> int:
        """Characters that a text must have for its kernel with itself to be positive."""

    @abstractmethod
    def _pairs(self, texts: Texts, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        """Return a multiple, always the same, of the kernel of each pair; equal `second` are neighbours."""

    def _unscaled(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the kernel's values from those multiples."""
        return values

    def __call__(self, A: Rows, B: Rows | None = None) -> NDArray[Any]:
        """Kernel values between the texts of `A` (n) and of `B` (m; `A` itself if None), shape (n, m)."""
        own = as_texts(A, "A")
        if B is None:
            values = self._symmetric(Texts.of(own))
            return _cosines(values, np.diagonal(values).copy()) if self.normalize else self._unscaled(values)
        other = as_texts(B, "B")
        values = self._rectangle(Texts.of(own) + Texts.of(other), own.shape[0])
        if not self.normalize:
            return self._unscaled(values)
        return _cosines(values, self._own(own), self._own(other))

    def diag(self, A: Rows) -> NDArray[Any]:
        """Kernel value of each text of `A` with itself, shape (n,)."""
        texts = as_texts(A, "A")
        if self.normalize:
            lengths = np.array([len(text) for text in texts], dtype=np.int64)
            return (lengths >= self._shortest).astype(np.float64)
        return self._unscaled(self._own(texts))

    def _own(self, texts: NDArray[Any]) -> NDArray[Any]:
        """Return the multiple of each text's kernel with itself.

        They are remembered: a solver asks for the same training texts with every block.
        """
        known = _known.get(self, {})
        new = list({text for text in texts if text not in known})
        if new:
            fresh = Texts.of(np.array([*new, ""], dtype=object)[:-1])
            numbers = _by_length(fresh.lengths)
            values = np.empty(len(new))
            tasks = np.array_split(numbers, max(1, min(_TASKS, len(new) // 8)))
            own = in_threads(lambda k: self._pairs(fresh, tasks[k], tasks[k]), len(tasks))
            for part, found in zip(tasks, own, strict=True):
                values[part] = found
            fetched = dict(zip(new, values.tolist(), strict=True))
            known = known | fetched
            _remember(self, fetched)
        return np.array([known[text] for text in texts], dtype=np.float64)

    def _symmetric(self, texts: Texts) -> NDArray[Any]:
        order = _by_length(texts.lengths)
        n = order.shape[0]
        values = np.empty((n, n))

        def write(number: int) -> None:
            columns = tasks[number]
            second = np.repeat(order[columns], columns + 1)
            first = np.concatenate([order[: column + 1] for column in columns])
            found = self._pairs(texts, first, second)
            values[first, second] = found
            values[second, first] = found

        # The longest texts, with the most partners, first: at the end no thread waits for another.
        tasks = np.array_split(np.arange(n)[::-1], _task_count(n, max(1, n // 2))) if n else []
        for _ in in_threads(write, len(tasks)):
            pass
        return values

    def _rectangle(self, texts: Texts, n: int) -> NDArray[Any]:
        """Kernel multiples between the first `n` texts and the others."""
        m = texts.lengths.shape[0] - n
        if not n or not m:
            return np.empty((n, m))
        rows, columns = _by_length(texts.lengths[:n]), n + _by_length(texts.lengths[n:])
        # The side with fewer texts gives the columns, of which each is prepared once.
        if swapped := m > n:
            rows, columns = columns, rows
        values = np.empty((n, m))

        def write(number: int) -> None:
            part = tasks[number]
            first, second = np.tile(rows, part.shape[0]), np.repeat(part, rows.shape[0])
            found = self._pairs(texts, first, second)
            if swapped:
                first, second = second, first
            values[first, second - n] = found

        tasks = np.array_split(columns, _task_count(columns.shape[0], rows.shape[0]))
        for _ in in_threads(write, len(tasks)):
            pass
        return values


_known: dict[StringKernel, dict[str, float]] = {}


def _remember(kernel: StringKernel, fetched: dict[str, float]) -> None:
    """Keep values of texts, but forget all earlier ones where these would hold too much memory."""
    added = sum(map(len, fetched))
    if added > _REMEMBERED:
        return
    if added + sum(len(text) for texts in list(_known.values()) for text in texts) > _REMEMBERED:
        _known.clear()
    # A new dictionary: another thread may be reading the old one.
    _known[kernel] = _known.get(kernel, {}) | fetched


def _by_length(lengths: NDArray[Any]) -> NDArray[Any]:
    """Order of texts in which neighbours are about equally long: they share a register."""
    return np.argsort(lengths, kind="stable")


def _task_count(columns: int, partners: int) -> int:
    fit = -(-columns * partners // _TASK_PAIRS)
    return min(columns, max(fit, min(_TASKS, columns * partners // 64), 1))


def _cosines(values: NDArray[Any], own: NDArray[Any], other: NDArray[Any] | None = None) -> NDArray[Any]:
    """Divide kernel values, in place, by the roots of both texts' values; 0 where one of these is 0.

    Powers of two, which cost no digit, first bring all numbers near 1: no product then leaves the range of
    floating-point numbers, and a text's value with itself is 1 exactly.
    """
    scale, near = _near_one(own)
    other_scale, other_near = (scale, near) if other is None else _near_one(other)
    values *= scale[:, None]
    values *= other_scale
    for value, number in zip(values, near, strict=True):
        value /= np.sqrt(number * other_near)
    np.minimum(values, 1.0, out=values)
    return values


def _near_one(own: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return powers of two ``f`` and the numbers ``f^2 own`` in [1/2, 2); 0 and 1 for 0."""
    exponents = np.frexp(own)[1] // 2
    scale = np.ldexp(1.0, -exponents)
    near = own * scale * scale
    empty = own == 0
    return np.where(empty, 0.0, scale), np.where(empty, 1.0, near)
