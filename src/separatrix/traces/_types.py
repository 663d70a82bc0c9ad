"""One step of a trace, and what every tracer gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from separatrix.data.view import Array
from separatrix.multiclass import Coding


@dataclass(frozen=True, eq=False)
class TraceStep:
    """What one step did, and why.

    Attributes
    ----------
    number : int
        Steps so far, this one included; 0 for the closing one.
    iteration : int
        Pass over the samples, or iteration.
    samples : tuple of int
        The rows that the step looked at; empty where it looked at all.
    changed : bool
        Whether it changed anything.
    why : str
        What it saw.
    what : str
        What it did.
    coef : ndarray of shape (columns, n_features) or None
        Weights after the step; None where a kernel has none.
    intercept : ndarray of shape (columns,)
        Constant terms after it.
    alpha : ndarray of shape (n,) or (columns, n) or None
        Coefficients of the samples after it, for methods in the dual.
    objective : float or None
        Value of the objective after it, where the method has one at hand.
    facts : mapping of str to float
        The step's numbers by name, such as its score or its length.
    end : bool
        Whether this closes the trace: it tells why the method stopped, and holds what the fit returns.
    unit : {"pass", "iteration"}
        What `iteration` counts.
    names : tuple of str
        Classes of the samples.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.traces import trace
    >>> steps = list(trace(Perceptron(shuffle=False), [[1.0], [3.0]], ["low", "high"]))
    >>> print(steps[0])
    step 1, pass 1, sample 0 (low): y f(x) = 0 is not positive, so w += 1 x, b += 1
    """

    number: int
    iteration: int
    samples: tuple[int, ...]
    changed: bool
    why: str
    what: str
    coef: Array | None
    intercept: Array
    alpha: Array | None = None
    objective: float | None = None
    facts: Mapping[str, float] = field(default_factory=dict)
    end: bool = False
    unit: str = "pass"
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.end:
            plural = "" if self.iteration == 1 else "es" if self.unit == "pass" else "s"
            return f"end, after {self.iteration} {self.unit}{plural}: {self.why}; {self.what}"
        where = f", {self.place}" if self.samples else ""
        return f"step {self.number}, {self.unit} {self.iteration}{where}: {self.why}, so {self.what}"

    @property
    def place(self) -> str:
        """The samples in words, with their classes."""
        shown = [f"{row} ({name})" for row, name in zip(self.samples, self.names, strict=True)]
        return f"sample{'s' if len(shown) > 1 else ''} {' and '.join(shown)}"


class Tracer(Protocol):
    """One run of a method."""

    unit: str
    coding: Coding

    def steps(self) -> Iterator[TraceStep]:
        """Yield the steps, the closing one last."""

    def columns(self, step: TraceStep, points: Array) -> Array:
        """Return the score columns of points under the parameters after a step."""


def frozen(values: Any) -> Array:
    """Return a copy that nobody can change: a step stays what it was."""
    copy = np.array(values)
    copy.setflags(write=False)
    return copy


def number(value: float) -> str:
    """Return a number for people."""
    return f"{float(value) + 0.0:.4g}".replace("-", "−")


def linear_columns(step: TraceStep, points: Array) -> Array:
    """Return ``x·w + b`` for each point and column."""
    assert step.coef is not None
    return np.asarray(points @ step.coef.T + step.intercept)
