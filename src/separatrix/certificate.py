"""The certificate: what a fit proves about itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from html import escape
from typing import Any

STATUSES = (
    "converged",
    "max_iter",
    "max_time",
    "interrupted",
    "separable",
    "inseparable",
    "nonconvex",
)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


@dataclass(frozen=True)
class Certificate:
    """Objective, gap, stop reason and separability of a fit; fields that do not apply are None.

    Attributes
    ----------
    status : str
        Why the fit stopped: "converged", "max_iter", "max_time", "interrupted", or a verdict that
        ended it: "separable", "inseparable", "nonconvex".
    message : str
        The same in words, with what to change if the tolerance was not reached.
    iterations : int
        Iterations done.
    seconds : float
        Time taken.
    primal, dual, gap, relative_gap, kkt_violation : float or None
        Objective of the returned model, a proven lower bound of the optimum, and their distance.
    separable : bool or None
        True: the returned boundary separates the classes, checked beyond rounding error.
        False: proven impossible. None: not known.
    margin : float or None
        Smallest distance of a training sample to the boundary, negative where one is on the wrong
        side.
    training_errors : float or None
        (Weighted) number of training samples on the wrong side.
    samples : int or None
        Number of training samples that count.

    Examples
    --------
    >>> print(Certificate(status="separable", message="all 4 samples are on the right side",
    ...                   iterations=2, seconds=0.001, primal=0.0, separable=True, margin=0.5))
    separable: all 4 samples are on the right side
    objective 0, margin 0.5, 2 iterations, 0.001 s
    """

    status: str
    message: str = ""
    iterations: int = 0
    seconds: float = 0.0
    primal: float | None = None
    dual: float | None = None
    gap: float | None = None
    relative_gap: float | None = None
    kkt_violation: float | None = None
    separable: bool | None = None
    margin: float | None = None
    training_errors: float | None = None
    samples: int | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status must be one of {', '.join(STATUSES)}; got {self.status!r}.")

    def _facts(self) -> list[tuple[str, str]]:
        shown = [
            ("objective", self.primal),
            ("lower bound", self.dual),
            ("relative gap", self.relative_gap),
            ("KKT violation", self.kkt_violation),
            ("training errors", self.training_errors),
            ("margin", self.margin),
        ]
        facts = [(name, _number(value)) for name, value in shown if value is not None]
        return [*facts, ("iterations", f"{self.iterations:,}"), ("seconds", f"{self.seconds:.3g}")]

    def __str__(self) -> str:
        words = [
            f"{value} {name}"
            if name in ("iterations", "training errors")
            else f"{value} s"
            if name == "seconds"
            else f"{name} {value}"
            for name, value in self._facts()
        ]
        return f"{self.status}: {self.message}\n{', '.join(words)}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th><td>{escape(value)}</td></tr>'
            for name, value in [("status", self.status), *self._facts()]
        )
        return f"<table><caption>{escape(self.message or self.status)}</caption><tbody>{rows}</tbody></table>"

    def as_dict(self) -> dict[str, Any]:
        """Return all fields by name, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Certificate:
        """Return the certificate that :meth:`as_dict` described; unknown fields are refused."""
        unknown = set(values) - {f.name for f in fields(cls)}
        if unknown:
            raise ValueError(f"unknown certificate fields: {', '.join(sorted(unknown))}.")
        return cls(**values)
