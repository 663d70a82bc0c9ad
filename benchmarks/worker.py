"""Each library in a process of its own, so that models take turns undisturbed and can be stopped.

Threads of one library slow down those of another in the same process (each BLAS has its own pool, and idle
workers spin); a fit that takes too long can be ended only from outside.
"""

import functools
import gc
import importlib
import math
import multiprocessing
import sys
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
from benchmarks.machine import forget_peak_memory, peak_memory

_SHORTEST = 0.05  # seconds; a quicker call is repeated until it takes so long
_GLANCE, _IDLE = 0.01, 0.1  # seconds, and the share of them that a process at rest may use
_LONGEST_REST = 1.0  # seconds
_FIRST_PASSES, _PASSES = 1, 4  # a pass is the difference of fits with so many
_MOST_PASSES = 1024
_CHECK_SECONDS = 0.5  # for orders of visit beyond those asked for, where their values differ much


@dataclass(frozen=True)
class Spec:
    """How a process makes a model: class by name, so that only that process imports it."""

    module: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def variant(self) -> str:
        """The solver, form or number of threads, by which specs of one library differ."""
        if "threads" in self.options:
            return f"{self.options['threads'] or 'all'}-threaded"
        if self.options.get("dual") in (True, False):
            return "dual" if self.options["dual"] else "primal"
        return str(self.options.get("solver", ""))

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

    def bring(self, data: Callable[[], Dataset | None]) -> None:
        """Go on with other data, in the same process."""
        if data is not self._data:
            self._data = data
            if self._process is not None:
                self._ask(None, "bring", data)

    def describe(self) -> dict[str, Any] | None:
        """Shape and kind of the data; None where they are not there."""
        return self._ask(None, "describe")

    def seconds(self, spec: Spec, call: str, limit: float) -> float:
        """Seconds of one `call`: ``fit``, ``fit + predict``, ``pass``, or a method of the last model."""
        self._ask(None, "prepare", spec)
        return float(self._ask_and_rest(limit, "seconds", spec, call))

    def growth(self, spec: Spec) -> float | None:
        """Bytes by which the process grew at most in fits of the model; None where that cannot be told."""
        return self._ask(None, "growth", spec)

    def accuracy(self, spec: Spec, rows: int, limit: float) -> float | None:
        """Part of the held-out rows, at most so many, that are right; R² for a regression."""
        return self._ask_and_rest(limit, "accuracy", spec, rows)

    def check(self, spec: Spec, name: str) -> float:
        """What the model that was fitted last is worth, by one of `CHECKS`."""
        return float(self._ask_and_rest(None, "check", spec, name))

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

    def _ask_and_rest(self, limit: float | None, *question: Any) -> Any:
        """The answer, once the process is at rest: its threads would slow down whoever comes next."""
        answer = self._ask(limit, *question)
        self._ask(None, "rest")
        return answer

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


_FITS = ("fit", "fit + predict", "warm up")


class _Bench:
    """What the process holds: data, and of each kind the model that was fitted last."""

    def __init__(self, data: Callable[[], Dataset | None]) -> None:
        self.modules = 0  # so many were loaded when garbage was last looked for everywhere
        self.bring(data)

    def bring(self, data: Callable[[], Dataset | None]) -> None:
        self.data: Any = None  # its memory is free before the next data take theirs
        self.models: dict[str, Any] = {}
        self.grown: dict[str, float] = {}
        self.passes: dict[str, int] = {}  # of the longer fit, so many that a difference is above the noise
        self.data = data()

    def describe(self) -> dict[str, Any] | None:
        if self.data is None:
            return None
        X, y = self.data.X, self.data.y
        return {"shape": X.shape, "classes": len(np.unique(y)), "about": self.data.about}

    def prepare(self, spec: Spec) -> None:
        """Import what the model needs, and bring data into its own form: that is not what its calls take."""
        model = spec.make()
        if len(sys.modules) != self.modules:
            # What modules hold is never garbage: to look through it takes longer than most calls.
            self.modules = len(sys.modules)
            gc.collect()
            gc.freeze()
        if hasattr(model, "prepare"):
            model.prepare(self.data.X, self.data.y)

    def seconds(self, spec: Spec, call: str) -> float:
        if call not in (*_FITS, "pass") and repr(spec) not in self.models:
            self._do(spec, "fit")
        gc.collect()
        before = peak_memory() if call != "warm up" and forget_peak_memory() else None
        first = self._pass(spec) if call == "pass" else self._clock(spec, call, 1)
        if before is not None and call in (*_FITS, "pass"):
            self.grown[repr(spec)] = max(self.grown.get(repr(spec), 0.0), peak_memory() - before)
        if call == "pass":
            return first
        return first if first >= _SHORTEST else self._clock(spec, call, math.ceil(_SHORTEST / first))

    def rest(self) -> None:
        """Return once idle threads no longer spin: those of OpenBLAS do for a tenth of a second."""
        end = time.perf_counter() + _LONGEST_REST
        while (start := time.perf_counter()) < end:
            used = time.process_time()
            time.sleep(_GLANCE)
            if time.process_time() - used < _IDLE * (time.perf_counter() - start):
                return

    def growth(self, spec: Spec) -> float | None:
        return self.grown.get(repr(spec))

    def accuracy(self, spec: Spec, rows: int) -> float | None:
        model = self.models.get(repr(spec))
        if self.data.test is None or model is None:
            return None
        X, y = (part[:rows] for part in self.data.test)
        found = model.predict(X)
        if np.issubdtype(y.dtype, np.floating):
            return 1.0 - float(np.mean((found - y) ** 2) / np.var(y))
        return float(np.mean(found == y))

    def _pass(self, spec: Spec) -> float:
        """Seconds of one pass over the data: what a fit with more of them takes longer, for each.

        The difference takes out what every fit does once: checks, label coding, the last count of errors.
        """
        passes = self.passes.get(repr(spec), _PASSES)
        while True:
            times, made = [], []
            for count in (_FIRST_PASSES, passes):
                model = Spec(spec.module, spec.name, {**spec.options, "max_iter": count}).make()
                gc.collect()
                start = time.perf_counter()
                model.fit(self.data.X, self.data.y)
                times.append(time.perf_counter() - start)
                made.append(int(np.max(model.n_iter_)))
            self.passes[repr(spec)] = passes
            if passes == _PASSES:  # what is checked and compared has made the same passes on both sides
                self.models[repr(spec)] = model
            more = made[1] - made[0]
            if more <= 0:
                raise ValueError("the first pass was the last")
            longer = times[1] - times[0]
            if longer >= _SHORTEST:
                return longer / more
            if passes >= _MOST_PASSES or more < passes - _FIRST_PASSES:
                if longer < _SHORTEST / 10:
                    raise ValueError("passes are too short for the clock")
                return longer / more
            passes = min(4 * passes, _MOST_PASSES)

    def check(self, spec: Spec, name: str) -> float:
        check, X, y = CHECKS[name], self.data.X, self.data.y
        values, start, seed = [check.value(self.models[repr(spec)], X, y)], time.perf_counter(), 0
        while len(values) < check.orders or (
            not check.known(values) and time.perf_counter() - start < _CHECK_SECONDS
        ):
            seed += 1
            options = {**spec.options, "max_iter": _PASSES, "random_state": seed}
            values.append(check.value(Spec(spec.module, spec.name, options).make().fit(X, y), X, y))
        return float(np.mean(values))

    def _clock(self, spec: Spec, call: str, times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            self._do(spec, call)
        return (time.perf_counter() - start) / times

    def _do(self, spec: Spec, call: str) -> None:
        if call not in _FITS:
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
    bench = _Bench(data)
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
    """The processes, one for each library.

    Another data set ends them, so that no call finds memory that an earlier one left; with `stay` they go on,
    which saves a run on small data the time that libraries take to load and to compile.
    """

    def __init__(self, *, stay: bool = False) -> None:
        self._stay = stay
        self._data: Callable[[], Dataset | None] | None = None
        self._workers: dict[str, Worker] = {}

    def worker(self, spec: Spec, data: Callable[[], Dataset | None]) -> Worker:
        if data is not self._data and not self._stay:
            self.close()
        self._data = data
        library = spec.module.partition(".")[0]
        if library == "benchmarks":  # each wraps a library of its own: one that is stopped ends no other
            library = spec.name
        found = self._workers.setdefault(library, Worker(data))
        found.bring(data)
        return found

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()
        self._workers = {}
