"""How seconds and bytes are measured; which models and data, the cases say."""

import gc
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

MakeModel = Callable[[int], Any]
"""From a number of passes to an unfitted model that makes so many."""


@dataclass(frozen=True)
class PassTime:
    """Seconds of one pass, and what the model was worth after the longer fit.

    CPU seconds add up over threads. On a busy machine they tell more than the clock's.
    """

    seconds: float
    cpu_seconds: float
    spread: float
    fit_seconds: float
    passes: int
    training_error: float


def seconds_per_pass(models: Mapping[str, MakeModel], X: Any, y: np.ndarray, passes: tuple[int, int],
                     repeats: int) -> dict[str, PassTime]:
    """Median over `repeats` of (long fit - short fit) / passes between them, for each of `models`.

    The difference takes out what every fit does once (checks, label coding, the last count of errors). The
    models take turns within every repeat, so a slow moment of the machine hits all of them. A model that
    stopped early is divided by the passes that it made.
    """
    clock: dict[str, list[float]] = {label: [] for label in models}
    cpu: dict[str, list[float]] = {label: [] for label in models}
    longest: dict[str, list[float]] = {label: [] for label in models}
    last: dict[str, Any] = {}
    labels = list(models)
    for repeat in range(repeats):
        turn = repeat % len(labels)
        for label in labels[turn:] + labels[:turn]:
            short_times, short = _fit(models[label](passes[0]), X, y)
            long_times, last[label] = _fit(models[label](passes[1]), X, y)
            made = _passes(last[label]) - _passes(short)
            difference = (long_times - short_times) / made if made > 0 else np.full(2, np.nan)
            clock[label].append(float(difference[0]))
            cpu[label].append(float(difference[1]))
            longest[label].append(float(long_times[0]))
    results = {}
    for label, model in last.items():
        results[label] = PassTime(
            seconds=statistics.median(clock[label]),
            cpu_seconds=statistics.median(cpu[label]),
            spread=max(clock[label]) - min(clock[label]),
            fit_seconds=statistics.median(longest[label]),
            passes=_passes(model),
            training_error=float(np.mean(model.predict(X) != y)),
        )
    return results


def _fit(model: Any, X: Any, y: np.ndarray) -> tuple[np.ndarray, Any]:
    """Seconds by the clock and of the CPU, and the fitted model."""
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few passes are meant here, not a tolerance that was missed
        start = np.array([time.perf_counter(), time.process_time()])
        model.fit(X, y)
        return np.array([time.perf_counter(), time.process_time()]) - start, model


def _passes(model: Any) -> int:
    return int(np.max(model.n_iter_))


def process_seconds(programs: Mapping[str, list[str]], repeats: int) -> dict[str, list[float]]:
    """Wall-clock seconds of fresh Python processes that take turns; one run of each before does not count."""
    seconds: dict[str, list[float]] = {label: [] for label in programs}
    for repeat in range(repeats + 1):
        for label, arguments in programs.items():
            start = time.perf_counter()
            run_python(arguments)
            if repeat > 0:  # the first run fills the file cache and writes byte code
                seconds[label].append(time.perf_counter() - start)
    return seconds


def run_python(arguments: list[str]) -> str:
    """Output of a fresh Python process; its error text, should it fail."""
    done = subprocess.run([sys.executable, "-W", "ignore", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"python {' '.join(arguments)[:200]} failed:\n{done.stderr}")
    return done.stdout


def run_python_for_json(arguments: list[str]) -> Any:
    return json.loads(run_python(arguments))
