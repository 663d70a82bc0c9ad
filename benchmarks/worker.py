"""A model in a process of its own, so that models take turns with undisturbed threads and can be stopped.

Threads of one library slow down those of another in the same process (each BLAS has its own pool, and idle
workers spin); a fit that takes too long can be ended only from outside.
"""

import contextlib
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
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.checks import CHECKS
from benchmarks.datasets import Dataset

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
    """One process with one model on one data set."""

    def __init__(self, spec: Spec, data: Callable[[], Dataset | None]) -> None:
        context = multiprocessing.get_context("spawn")  # a fork of threaded libraries may hang
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, spec, data), daemon=True)
        self._process.start()
        theirs.close()

    def describe(self) -> dict[str, Any] | None:
        """Shape and kind of the data; None where they are not there."""
        return self._ask(("describe", None), None)

    def seconds(self, call: str, limit: float) -> float:
        """Seconds of one `call`: ``fit``, ``fit + predict``, or a method of the fitted model."""
        time.sleep(_BETWEEN_TURNS)
        return float(self._ask(("seconds", call), limit))

    def check(self, name: str) -> float:
        """What the fitted model is worth, by one of `CHECKS`."""
        return float(self._ask(("check", name), None))

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def _ask(self, question: tuple[str, Any], limit: float | None) -> Any:
        try:
            self._pipe.send(question)
            if not self._pipe.poll(limit):
                self.close()
                raise TooSlowError(f"> {limit:.3g} s")
            done, answer = self._pipe.recv()
        except (EOFError, ConnectionError):
            raise BrokenError("its process died") from None
        if not done:
            raise BrokenError(answer)
        return answer


class _Bench:
    """What the process holds: data, and the model fitted last."""

    def __init__(self, spec: Spec, data: Dataset | None) -> None:
        self.spec, self.data, self.model = spec, data, None

    def describe(self, _: None) -> dict[str, Any] | None:
        if self.data is None:
            return None
        X, y = self.data.X, self.data.y
        return {"shape": X.shape, "classes": len(np.unique(y)), "sparse": sparse.issparse(X),
                "about": self.data.about}

    def seconds(self, call: str) -> float:
        if not call.startswith("fit") and self.model is None:
            self._do("fit")
        gc.collect()
        first = self._clock(call, 1)
        return first if first >= _SHORTEST else self._clock(call, math.ceil(_SHORTEST / first))

    def check(self, name: str) -> float:
        return CHECKS[name].value(self.model, self.data.X, self.data.y)

    def _clock(self, call: str, times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            self._do(call)
        return (time.perf_counter() - start) / times

    def _do(self, call: str) -> None:
        if not call.startswith("fit"):
            getattr(self.model, call)(self.data.X)
            return
        self.model = self.spec.make()
        self.model.fit(self.data.X, self.data.y)
        if call == "fit + predict":
            self.model.predict(self.data.X)


def _serve(pipe: Connection, spec: Spec, data: Callable[[], Dataset | None]) -> None:
    warnings.simplefilter("ignore")  # an iteration limit that was reached shows in the objective
    with contextlib.suppress(Exception):  # imports before the clock starts; a call tells what is wrong
        spec.make()
    bench = _Bench(spec, data())
    while True:
        try:
            question, argument = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((True, getattr(bench, question)(argument)))
        except Exception as problem:  # anything a library raises is an answer, not an end
            pipe.send((False, f"{type(problem).__name__}: {problem}"))
