"""The parameter ``max_memory``: fits that keep to a limit of memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from numbers import Real
from typing import Any, TypeVar

from sklearn.utils._param_validation import Interval

from separatrix.data.room import NoRoomError, within

Fit = TypeVar("Fit", bound=Callable[..., Any])

#: What ``max_memory`` may be.
MAX_MEMORY: list[Any] = [Interval(Real, 0, None, closed="neither"), None]


def bounded(fit: Fit) -> Fit:
    """Let a method of an estimator take no more memory than its ``max_memory`` says.

    A fit that is refused leaves the estimator as it was.
    """

    @wraps(fit)
    def limited(self: Any, *args: Any, **options: Any) -> Any:
        before = dict(vars(self))
        try:
            with within(self.max_memory):
                return fit(self, *args, **options)
        except NoRoomError:
            vars(self).clear()
            vars(self).update(before)
            raise

    return limited  # type: ignore[return-value]
