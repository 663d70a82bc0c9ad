"""Threads: how many, who runs in them, and how many the linear algebra library may add."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")

#: Multiply-adds below which the libraries do not start threads of their own.
_SMALL = 1 << 16
#: Rows of a square matrix from which several threads gain more than their idle workers cost afterwards.
_LARGE_SIDE = 1024


def thread_count(n_jobs: int | None) -> int:
    """Return how many threads ``n_jobs`` allows; None or a negative number: as many as the process may use.

    That is its processors, no more than the share of them that a container was given, and no more than the
    variable OMP_NUM_THREADS says, by which joblib shares the processors out among its workers.

    Examples
    --------
    >>> thread_count(1)
    1
    """
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    told = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if told.isdecimal() and int(told) > 0:
        count = min(count, int(told))
    return max(1, min(count, _container_share()))


@cache
def _container_share(root: str = "/sys/fs/cgroup") -> int:
    """Return how many processors' time the control group allows (Linux; both versions), rounded up."""
    for name in ("cpu.max", "cpu/cpu.cfs_quota_us"):
        try:
            words = Path(root, name).read_text().split()
            if name != "cpu.max":
                words += Path(root, "cpu/cpu.cfs_period_us").read_text().split()
            quota, period = int(words[0]), int(words[1])
        except (OSError, ValueError, IndexError):  # no such file, or "max": no limit
            continue
        if quota > 0 and period > 0:
            return -(-quota // period)
    return sys.maxsize


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def single_threaded(work: float) -> Iterator[None]:
    """Run the block's matrix products in one thread, unless they are too small to matter.

    Thin products over blocks wait for memory, not for arithmetic; several threads gain little on
    them, lose an order of magnitude when another process holds a core, and sum in another order.
    """
    if work < _SMALL:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


def work_of_fit(shape: tuple[int, ...], columns: int) -> float:
    """Return the multiply-adds of a fit's largest product: scores of all columns, or a Hessian.

    Few rows of several hundred features have small scores, but a Hessian that libraries share out.
    """
    rows, features = shape
    return float(rows) * features * max(features, columns)


def one_thread_for(side: int) -> AbstractContextManager[None]:
    """Run the block's work on square matrices of so many rows in one thread, unless they are large.

    Workers of a linear algebra library spin for up to a tenth of a second after their work. Passes over the
    data in threads of our own, or another library's products, would have to share the processors with them.
    """
    return single_threaded(float(side) ** 3 if side <= _LARGE_SIDE else 0.0)


_limit: ContextVar[int | None] = ContextVar("threads", default=None)
_inside = threading.local()


@contextmanager
def at_most(n_jobs: int | None) -> Iterator[None]:
    """Let sums over blocks use no more threads than ``n_jobs`` allows, within the block; limits nest."""
    outer = _limit.get()
    token = _limit.set(n_jobs if outer is None else min(outer, thread_count(n_jobs)))
    try:
        yield
    finally:
        _limit.reset(token)


def threads_allowed() -> int:
    """Return how many threads sums over blocks may use here."""
    return thread_count(_limit.get())


_question: ContextVar[Callable[[], None] | None] = ContextVar("question", default=None)


@contextmanager
def asking(question: Callable[[], None]) -> Iterator[None]:
    """Let long pieces of work within the block ask, between their parts, whether to go on.

    The question answers by returning, or by an exception that ends the work; sums over blocks of a view ask
    before each block.
    """
    token = _question.set(question)
    try:
        yield
    finally:
        _question.reset(token)


def question() -> Callable[[], None]:
    """Return what long work should call between its parts; other threads would not find it themselves."""
    return _question.get() or _go_on


def _go_on() -> None:
    """Let work for which nobody has a question go on."""


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="separatrix")


if hasattr(os, "register_at_fork"):
    # A child process has none of its parent's threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def in_threads(function: Callable[[int], Result], count: int) -> Iterator[Result]:
    """Yield ``function(0) … function(count − 1)`` in order, computed by several threads.

    Work that is already in such a thread goes on in it alone.
    """
    if count <= 1 or getattr(_inside, "now", False) or threads_allowed() <= 1:
        yield from map(function, range(count))
        return

    def task(number: int) -> Result:
        _inside.now = True
        return function(number)

    yield from _pool(threads_allowed()).map(task, range(count))


def together(work: Callable[[], None], most: int) -> None:
    """Run the work here and at the same time in other threads that are idle, ``most`` in all.

    The work asks for its next part until there is none; who comes too late finds nothing to do.
    """
    threads = min(most, threads_allowed())
    if threads <= 1 or getattr(_inside, "now", False):
        work()
        return

    def task() -> None:
        _inside.now = True
        work()

    helpers = [_pool(threads_allowed()).submit(task) for _ in range(threads - 1)]
    try:
        work()
    finally:
        for helper in helpers:
            if not helper.cancel():
                helper.result()


#: Rows of an array that one thread works on at a time.
_BLOCK_ROWS = 1 << 14


def in_blocks(function: Callable[[Any], Any], array: Any) -> Any:
    """Change an array row by row in place, blocks of rows in several threads; return it."""
    count = -(-len(array) // _BLOCK_ROWS)
    for _ in in_threads(lambda k: function(array[k * _BLOCK_ROWS : (k + 1) * _BLOCK_ROWS]), count):
        pass
    return array
