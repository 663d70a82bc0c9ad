"""Gram matrices of string kernels: seconds, and cells of dynamic programming per second.

A pair of texts has ``length · |s| · |t|`` cells.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contest import Row
from benchmarks.rows import timed
from benchmarks.tiers import Plan

_LENGTH = 1000
_ALPHABETS = {"DNA": "acgt", "letters": " etaoinshrdlcumwfgypbvkjxqz"}


_SUBSTRINGS = ("Spectrum(4)", "BoundedRange(5)", "ConstantSubstring()", "ExponentialSubstring(2.0)")
_SUBSEQUENCE = "Subsequence(5, 0.5)"


def texts(count: int, alphabet: str) -> list[str]:
    """Texts of about 1,000 characters, the n-th letter n times as rare as the first."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, len(alphabet) + 1)
    sizes = rng.integers(_LENGTH * 9 // 10, _LENGTH * 11 // 10, count)
    return ["".join(rng.choice(list(alphabet), size, p=share / share.sum())) for size in sizes]


def items(plan: Plan) -> list[tuple[str, Callable[[], list[Row]]]]:
    """Each kernel on DNA and on letters; the subsequence kernel on an eighth of the texts."""
    count = 1000 // plan.tier.shrink
    sizes = [(kernel, count) for kernel in _SUBSTRINGS] + [(_SUBSEQUENCE, count // 8)]
    if plan.large:
        sizes.append((_SUBSEQUENCE, count))
    found = []
    for name in _ALPHABETS:
        for kernel, several in sizes:
            case = f"{several:,} texts of 1,000 characters, {name}: {kernel}"
            found.append((case, partial(measure, case, name, kernel, several, 1 if several > 500 else 3)))
    return found


def measure(case: str, alphabet: str, kernel: str, count: int, repeats: int) -> list[Row]:
    """Time one Gram matrix; what kernels remember is forgotten before."""
    from separatrix import kernels
    from separatrix.kernels import _strings

    name, _, settings = kernel.removesuffix(")").partition("(")
    made: Any = getattr(kernels, name)(
        *(float(word) if "." in word else int(word) for word in settings.split(", ") if word)
    )
    samples = texts(count, _ALPHABETS[alphabet])
    wall, cores = [], []
    for _ in range(repeats):
        _strings._known.clear()
        _strings._recent.cache_clear()
        start = time.perf_counter(), time.process_time()
        made(samples)
        wall.append(time.perf_counter() - start[0])
        cores.append(time.process_time() - start[1])
    lengths = np.array([len(text) for text in samples], dtype=float)
    pairs = (lengths.sum() ** 2 + (lengths**2).sum()) / 2
    cells = made.length * pairs if kernel.startswith("Subsequence") else None
    notes = (
        []
        if cells is None
        else [f"{cells / min(wall) / 1e9:.1f}·10⁹ cells/s, {cells / min(cores) / 1e9:.1f} per core"]
    )
    return [
        timed(
            case,
            "Gram matrix",
            kernel,
            wall,
            size=f"{count:,} texts",
            core_seconds=min(cores),
            cells=cells,
            rate=None if cells is None else cells / min(cores),
            notes=notes,
        )
    ]
