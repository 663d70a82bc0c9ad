"""Each library in a process of its own, so that models take turns undisturbed and can be stopped.

Threads of one library slow down those of another in the same process (each BLAS has its own pool, and idle
workers spin); a fit that takes too long can be ended only from outside.
"""

import functools
import gc
import importlib
import math
import multiprocessing
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

from benchmarks.checks import CHECKS
from benchmarks.datasets import Dataset
from benchmarks.machine import peak_memory

_SHORTEST = 0.05  # seconds; a quicker call is repeated until it takes so long
_BETWEEN_TURNS = 0.05  # seconds; idle BLAS threads of the last one stop spinning meanwhile


@dataclass(frozen=True)
class Spec:
    """How a process makes a model: class by name, so that only that process imports it."""

    module: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> Any:
        return getattr(importlib.import_module(self.module), self.name)(**self.options)


class SquareProduct:
    """Not a model: its fit multiplies two square matrices, the work that processors do fastest."""

    side = 2000
    flops = 2 * side**3

    def fit(self, X: Any, y: np.ndarray) -> None:
        square, result = _squares(self.side, X.dtype)
        np.matmul(square, square, out=result)


@functools.cache  # new pages would cost a tenth of the product's time
def _squares(side: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    return np.full((side, side), 0.5, dtype=dtype), np.zeros((side, side), dtype=dtype)


class TooSlowError(Exception):
    """The time allowed is over; the process has been ended."""


class BrokenError(Exception):
    """The model cannot do what it was asked."""


class Worker:
    """A process with one data set, started when first needed and again after it had to be ended."""

    def __init__(self, data: Callable[[], Dataset | None]) -> None:
        self._data = data
        self._process: BaseProcess | None = None

    def describe(self) -> dict[str, Any] | None:
        """Shape and kind of the data; None where they are not there."""
        return self._ask(None, "describe")

    def seconds(self, spec: Spec, call: str, limit: float) -> float:
        """Seconds of one `call`: ``fit``, ``fit + predict``, or a method of the last fitted model."""
        self._ask(None, "prepare", spec)
        time.sleep(_BETWEEN_TURNS)
        return float(self._ask(limit, "seconds", spec, call))

    def peak(self) -> float:
        """Most bytes of memory that the process has had so far."""
        return float(self._ask(None, "peak"))

    def check(self, spec: Spec, name: str) -> float:
        """What the model that was fitted last is worth, by one of `CHECKS`."""
        return float(self._ask(None, "check", spec, name))

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork of threaded libraries may hang
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._data), daemon=True)
        self._process.start()
        theirs.close()

    def _ask(self, limit: float | None, *question: Any) -> Any:
        if self._process is None:
            self._start()
        try:
            self._pipe.send(question)
            if not self._pipe.poll(limit):
                self.close()
                raise TooSlowError(f"> {limit:.3g} s")
            done, answer = self._pipe.recv()
        except (EOFError, ConnectionError):
            self.close()
            raise BrokenError("the process died") from None
        if not done:
            raise BrokenError(answer)
        return answer


class _Bench:
    """What the process holds: data, and of each kind the model that was fitted last."""

    def __init__(self, data: Dataset | None) -> None:
        self.data = data
        self.models: dict[str, Any] = {}

    def describe(self) -> dict[str, Any] | None:
        if self.data is None:
            return None
        X, y = self.data.X, self.data.y
        return {"shape": X.shape, "classes": len(np.unique(y)), "about": self.data.about}

    def prepare(self, spec: Spec) -> None:
        """Import what the model needs: that is not what its calls take."""
        spec.make()

    def seconds(self, spec: Spec, call: str) -> float:
        if not call.startswith(("fit", "warm")) and repr(spec) not in self.models:
            self._do(spec, "fit")
        gc.collect()
        first = self._clock(spec, call, 1)
        return first if first >= _SHORTEST else self._clock(spec, call, math.ceil(_SHORTEST / first))

    def peak(self) -> float:
        return peak_memory()

    def check(self, spec: Spec, name: str) -> float:
        return CHECKS[name].value(self.models[repr(spec)], self.data.X, self.data.y)

    def _clock(self, spec: Spec, call: str, times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            self._do(spec, call)
        return (time.perf_counter() - start) / times

    def _do(self, spec: Spec, call: str) -> None:
        if not call.startswith(("fit", "warm")):
            queries = self.data.X if self.data.queries is None else self.data.queries
            getattr(self.models[repr(spec)], call)(queries)
            return
        model = spec.make()
        X, y = self.data.X, self.data.y
        if call == "warm up":  # loads what the first fit needs
            X, y = X[:200], y[:200]
        model.fit(X, y)
        if call == "fit + predict":
            model.predict(self.data.X)
        self.models[repr(spec)] = model


def _serve(pipe: Connection, data: Callable[[], Dataset | None]) -> None:
    warnings.simplefilter("ignore")  # an iteration limit that was reached shows in the objective
    bench = _Bench(data())
    while True:
        try:
            question, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((True, getattr(bench, question)(*arguments)))
        except Exception as problem:  # anything a library raises is an answer, not an end
            pipe.send((False, f"{type(problem).__name__}: {problem}"))


class Workers:
    """The processes of one data set, one for each library; another data set ends them."""

    def __init__(self) -> None:
        self._data: Callable[[], Dataset | None] | None = None
        self._workers: dict[str, Worker] = {}

    def worker(self, spec: Spec, data: Callable[[], Dataset | None]) -> Worker:
        if data is not self._data:
            self.close()
            self._data = data
        return self._workers.setdefault(spec.module.partition(".")[0], Worker(data))

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()
        self._workers = {}
