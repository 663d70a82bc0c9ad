"""Gram matrices of string kernels: seconds, and cells of dynamic programming per second.

Run with ``python -m benchmarks.strings``. A pair of texts has ``length · |s| · |t|`` cells.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from separatrix.data.threads import thread_count
from separatrix.kernels import (
    BoundedRange,
    ConstantSubstring,
    ExponentialSubstring,
    Spectrum,
    StringKernel,
    Subsequence,
    _strings,
)

_LENGTH = 1000


def texts(count: int, alphabet: str) -> list[str]:
    """Texts of about 1,000 characters, the n-th letter n times as rare as the first."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, len(alphabet) + 1)
    sizes = rng.integers(_LENGTH * 9 // 10, _LENGTH * 11 // 10, count)
    return ["".join(rng.choice(list(alphabet), size, p=share / share.sum())) for size in sizes]


def best_of(repeats: int, call: Callable[[], Any]) -> tuple[float, float]:
    """Shortest wall-clock seconds, and seconds of all cores; what kernels remember is forgotten before."""
    wall, cores = [], []
    for _ in range(repeats):
        _strings._known.clear()
        _strings._recent.cache_clear()
        start = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - start[0])
        cores.append(time.process_time() - start[1])
    return min(wall), min(cores)


def measure(count: int, repeats: int) -> list[dict[str, Any]]:
    """Time every kernel on DNA and on letters; the subsequence kernel on an eighth of the texts."""
    rows = []
    for name, alphabet in (("DNA", "acgt"), ("letters", " etaoinshrdlcumwfgypbvkjxqz")):
        samples = texts(count, alphabet)
        substrings: list[StringKernel] = [
            Spectrum(4), BoundedRange(5), ConstantSubstring(), ExponentialSubstring(2.0)
        ]
        for kernel in (*substrings, *(Subsequence(length, 0.5) for length in (2, 3, 5, 8))):
            chosen = samples[: count // 8] if isinstance(kernel, Subsequence) else samples
            seconds, of_cores = best_of(repeats, lambda kernel=kernel, chosen=chosen: kernel(chosen))
            lengths = np.array([len(text) for text in chosen], dtype=float)
            pairs = (lengths.sum() ** 2 + (lengths**2).sum()) / 2
            cells = kernel.length * pairs if isinstance(kernel, Subsequence) else None
            rows.append({"data": name, "texts": len(chosen), "kernel": repr(kernel), "seconds": seconds,
                         "core_seconds": of_cores, "cells": cells})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strings", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="texts (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="the best counts (default: %(default)s)")
    arguments = parser.parse_args()
    table = Table(title=f"String kernels: Gram matrices of texts of about {_LENGTH:,} characters, "
                  f"{thread_count(None)} threads")
    for heading in ("data", "texts", "kernel"):
        table.add_column(heading)
    for heading in ("seconds", "of all cores", "10⁹ cells/s", "per core"):
        table.add_column(heading, justify="right")
    for row in measure(arguments.count, arguments.repeats):
        times = row["seconds"], row["core_seconds"]
        rates = ["" if row["cells"] is None else f"{row['cells'] / spent / 1e9:.1f}" for spent in times]
        table.add_row(row["data"], f"{row['texts']:,}", row["kernel"], *(f"{spent:.2f}" for spent in times),
                      *rates)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
