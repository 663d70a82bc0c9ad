"""The one outer loop: stop rule, ``max_iter``, ``max_time``, Ctrl-C, progress, history.

A solver is an object with a method ``steps(control)`` that yields a :class:`Step` after each
iteration and leaves valid parameters behind whenever it is not asked for the next. Within a long
iteration it asks ``control.expired()`` between chunks of work and ends early when told so.
"""

from __future__ import annotations

# The module signal makes enumerations of its answers, which costs a small fit a twentieth of its time.
import _signal as signal  # type: ignore[import-not-found]
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from types import FrameType
from typing import Any, Protocol, TypeVar, cast

#: Why a run ended, where it was neither the solver's doing nor the rule's.
CUT_SHORT = ("max_time", "interrupted")


@dataclass
class Step:
    """One finished iteration.

    Attributes
    ----------
    record : dict
        What is reported of it: numbers by name.
    measure : float
        What the stop rule watches: a relative gap, or a criterion that should fall.
    finished : str or None
        The status if the solver knows that nothing can change any more.
    seconds : float or None
        When it ended, since the start; None: just now.
    followed : bool
        Whether the next iteration has been made already, at one go with this one (see ``Control.ahead``), so
        that the loop cannot stop here.
    """

    record: dict[str, Any]
    measure: float
    finished: str | None = None
    seconds: float | None = None
    followed: bool = False

    def __post_init__(self) -> None:
        # The solver may fill in later what it learns about this iteration only in the next one.
        self.record = {"iteration": 0, "seconds": 0.0, **self.record}


class OutOfTimeError(Exception):
    """There is no time left for what was asked for."""


class Solver(Protocol):
    """What the loop needs of a solver."""

    def steps(self, control: Control) -> Iterator[Step]:
        """Yield a step after each iteration."""


class Control:
    """Tells a solver within an iteration whether time is up or the user has interrupted."""

    def __init__(self, max_time: float | None) -> None:
        self.started = time.perf_counter()
        self.deadline = None if max_time is None else self.started + max_time
        self.interrupted = False
        #: How many iterations may be made at one go: within them, the loop would not stop by its rule.
        self.ahead: Callable[[], float] = lambda: 1

    def seconds(self) -> float:
        """Return the time since the start."""
        return time.perf_counter() - self.started

    def expired(self) -> bool:
        """Return whether to stop at the next safe place."""
        return self.reason() is not None

    def ask(self) -> None:
        """Raise :class:`OutOfTimeError` if it is time to stop."""
        if self.expired():
            raise OutOfTimeError

    def left(self) -> float:
        """Return the seconds that are left, infinitely many without a limit."""
        return float("inf") if self.deadline is None else self.deadline - time.perf_counter()

    def reason(self) -> str | None:
        """Return "interrupted", "max_time" or None."""
        if self.interrupted:
            return "interrupted"
        if self.deadline is not None and time.perf_counter() >= self.deadline:
            return "max_time"
        return None


class Guard:
    """While it is entered, a Ctrl-C before or after the run of a solver waits; a second one raises.

    The next run then ends at once, with valid parameters as whenever it ends: there is a model in any case.
    A run that was interrupted passes that on to those after it, so that one Ctrl-C ends all runs of a fit.
    """

    def __init__(self) -> None:
        self.waiting = False
        self.previous: Any = None

    def __enter__(self) -> Guard:
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self.previous = signal.signal(signal.SIGINT, self.on_signal)
        return self

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Remember the first Ctrl-C."""
        if self.waiting:
            raise KeyboardInterrupt
        self.waiting = True

    def __exit__(self, *error: object) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)


Fit = TypeVar("Fit", bound=Callable[..., Any])


def guarded(fit: Fit) -> Fit:
    """Return a fit that leaves a model behind if Ctrl-C comes at any time, not only while its solver runs."""

    @wraps(fit)
    def inside(*given: Any, **named: Any) -> Any:
        with Guard():
            return fit(*given, **named)

    return cast(Fit, inside)


class _Interruptible:
    """While it is entered, Ctrl-C sets a flag instead of raising; a second one raises.

    Python delivers signals to the main thread only, and a program with its own handler keeps it.
    """

    def __init__(self, control: Control) -> None:
        self.control = control
        self.previous: Any = None
        self.guard: Guard | None = None

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        present = signal.getsignal(signal.SIGINT)
        guard = getattr(present, "__self__", None)
        if present is signal.default_int_handler or isinstance(guard, Guard):
            self.previous = signal.signal(signal.SIGINT, self._on_signal)
        if isinstance(guard, Guard):
            self.guard = guard
            self.control.interrupted, guard.waiting = guard.waiting, False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.control.interrupted:
            raise KeyboardInterrupt
        self.control.interrupted = True

    def __exit__(self, *error: object) -> None:
        if self.guard is not None:
            self.guard.waiting = self.control.interrupted
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)


class StopRule(Protocol):
    """Decides from the measure of each iteration whether the tolerance is reached."""

    def __call__(self, measure: float) -> bool:
        """Return whether to stop."""


@dataclass
class Below:
    """Stop when the measure (a relative gap) is at most ``tol``."""

    tol: float

    def __call__(self, measure: float) -> bool:
        """Return whether to stop."""
        return measure <= self.tol


@dataclass
class NoImprovement:
    """Stop when the measure failed to fall by ``tol`` below its best for ``patience`` iterations.

    With ``tol=None`` it never stops.
    """

    tol: float | None
    patience: int
    best: float = float("inf")
    waited: int = 0

    def __call__(self, measure: float) -> bool:
        """Return whether to stop."""
        if self.tol is None:
            return False
        self.waited = self.waited + 1 if measure > self.best - self.tol else 0
        self.best = min(self.best, measure)
        return self.waited >= self.patience

    def ahead(self) -> float:
        """Return how many iterations it takes at least until it stops."""
        return float("inf") if self.tol is None else self.patience - self.waited


@dataclass
class Outcome:
    """How a run ended."""

    status: str
    iterations: int
    seconds: float
    history: list[dict[str, Any]] = field(default_factory=list)


class Observer(Protocol):
    """Is told of each iteration."""

    def begin(self) -> None:
        """Hear that an iteration begins."""

    def end(self) -> bool:
        """Hear that it has ended; return whether the run should."""


def _announced(steps: Iterator[Step], observer: Observer) -> Iterator[Step]:
    """Yield the steps, each one announced before it is taken."""
    while True:
        observer.begin()
        step = next(steps, None)
        if step is None:  # what was begun has found nothing to do
            observer.end()
            return
        yield step


def run(
    solver: Solver,
    rule: StopRule,
    *,
    max_iter: float,
    max_time: float | None = None,
    verbose: int = 0,
    name: str = "fit",
    observer: Observer | None = None,
) -> Outcome:
    """Drive a solver until it is done, has converged, or must stop.

    However it ends, the solver holds valid parameters afterwards.

    Parameters
    ----------
    solver : Solver
        What takes the steps.
    rule : StopRule
        When the tolerance is reached.
    max_iter : int or inf
        Most iterations.
    max_time : float or None
        Most seconds.
    verbose : int
        0: silent; 1: a line at most each half second; 2: a line for each iteration.
    name : str
        What the progress lines are headed with.
    observer : Observer or None
        Told when an iteration begins and ends; it may end the run.

    Returns
    -------
    Outcome
        Status, iterations, seconds and history.
    """
    control = Control(max_time)
    outcome = Outcome("max_iter", 0, 0.0)
    printed = -float("inf")
    if observer is None and isinstance(rule, NoImprovement):
        control.ahead = lambda: min(max_iter - outcome.iterations, rule.ahead())
    with _Interruptible(control):
        try:
            steps = solver.steps(control) if max_iter > 0 else iter(())
            if observer is not None and max_iter > 0:
                steps = _announced(steps, observer)
            for step in steps:
                outcome.iterations += 1
                seconds = control.seconds() if step.seconds is None else step.seconds
                step.record.update(iteration=outcome.iterations, seconds=seconds)
                outcome.history.append(step.record)
                stop = observer.end() if observer is not None else False
                status = _status(step, rule, control, stop)
                last = status is not None or outcome.iterations >= max_iter
                if verbose > 1 or (verbose and (last or seconds - printed >= 0.5)):
                    printed = seconds
                    print(_line(name, outcome, max_iter, max_time))
                if last:
                    outcome.status = status or "max_iter"
                    break
            else:
                if max_iter > 0:
                    outcome.status = control.reason() or "converged"
        except KeyboardInterrupt:
            if control.interrupted:
                raise
            outcome.status = "interrupted"
    outcome.seconds = control.seconds()
    if verbose:
        print(f"{name}: {outcome.status} after {outcome.iterations} iterations, {outcome.seconds:.3g} s")
    return outcome


def _status(step: Step, rule: StopRule, control: Control, stop: bool) -> str | None:
    if step.finished is not None:
        return step.finished
    if rule(step.measure):
        return "converged"
    if step.followed:
        return None
    return "interrupted" if stop else control.reason()


def _line(name: str, outcome: Outcome, max_iter: float, max_time: float | None) -> str:
    record = outcome.history[-1]
    seconds = record["seconds"]
    rate = outcome.iterations / seconds if seconds > 0 else float("inf")
    left = (max_iter - outcome.iterations) / rate
    if max_time is not None:
        left = min(left, max(0.0, max_time - seconds))
    shown = ", ".join(
        f"{key.replace('_', ' ')} {value:.6g}"
        for key, value in record.items()
        if key not in ("iteration", "seconds") and value is not None
    )
    of, ahead = (f"/{max_iter}" if max_iter < float("inf") else ""), ""
    if left < float("inf"):
        ahead = f", at most {left:.3g} s left"
    return f"{name} {outcome.iterations}{of}: {shown}; {rate:.3g}/s{ahead}"
