"""Memory that a fit may take besides its input: the user's limit, and what does not keep to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

from separatrix.data.threads import at_most, thread_count, threads_allowed
from separatrix.data.view import BLOCK_BYTES, DataView

#: What the blocks of rows in work, and small arrays of all kinds, take in any fit.
_ALWAYS = 8 << 20
#: Bytes for each sample that any fit takes: the number of its class, its weight, and a spare of each.
_EACH_SAMPLE = 24
#: Most threads of a fit with a limit.
_THREADS = 4

_limit: ContextVar[float] = ContextVar("room", default=inf)


class NoRoomError(MemoryError):
    """Work that would take more memory than the user allows was not begun."""


@contextmanager
def within(megabytes: float | None) -> Iterator[None]:
    """Let work within the block take no more than so many megabytes (of 2²⁰ bytes); None: no limit.

    Each thread works on blocks of its own, so a limit is for few threads.
    """
    token = _limit.set(inf if megabytes is None else float(megabytes) * 2**20)
    try:
        with at_most(None if megabytes is None else min(_THREADS, thread_count(None))):
            yield
    finally:
        _limit.reset(token)


def allowed() -> float:
    """Return how many bytes a fit may take; infinity where nobody has set a limit.

    Examples
    --------
    >>> with within(2):
    ...     allowed()
    2097152.0
    """
    return _limit.get()


def basis(samples: int) -> float:
    """Return the bytes that a fit to so many samples takes whatever its method."""
    return _ALWAYS + float(_EACH_SAMPLE) * samples


def blocks_of(view: DataView) -> float:
    """Return the bytes that blocks of rows take where each thread works on copies of them, in doubles."""
    values = float(view.shape[0]) * view.row_elements
    return min(32.0 * values, threads_allowed() * 8.0 * BLOCK_BYTES)


def demand(needed: float, what: str, remedy: str = "") -> None:
    """Refuse work that needs more bytes than the user allows.

    Parameters
    ----------
    needed : float
        Bytes, rather too many than too few.
    what : str
        The work, in words.
    remedy : str
        What else there is to do than to allow more.

    Raises
    ------
    NoRoomError
        If it does not fit.
    """
    if needed > allowed():
        raise NoRoomError(
            f"{what} may take up to {needed / 2**20:,.0f} MB besides its input, but max_memory="
            f"{allowed() / 2**20:g} allows less. Set max_memory to at least {_up(needed)}"
            f"{', or ' + remedy if remedy else ''}."
        )


def _up(needed: float) -> str:
    """Return a number of megabytes that suffices, of two or three digits."""
    whole = -int(-needed // 2**20)
    step = 10 ** max(0, len(str(whole)) - 2)
    return str(-(-whole // step) * step)
