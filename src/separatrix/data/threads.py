"""How many threads the linear algebra library may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

#: Multiply-adds below which the libraries do not start threads of their own.
_SMALL = 1 << 16


def thread_count(n_jobs: int | None) -> int:
    """Return how many threads ``n_jobs`` allows: None or a negative number counts the processors.

    Examples
    --------
    >>> thread_count(1)
    1
    """
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
