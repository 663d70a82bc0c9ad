"""What a fit proves: its certificate, and the separation of the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from html import escape
from typing import Any

from separatrix.data.view import Array

Groups = tuple[tuple[int, ...], tuple[int, ...]]
"""Two groups of classes, by number."""

STATUSES = (
    "converged",
    "max_iter",
    "max_time",
    "interrupted",
    "separable",
    "inseparable",
    "nonconvex",
    "imported",
)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) < 1e15 and value == int(value) else f"{value:.6g}"


def gap_in_words(relative: float, worst: float | None) -> str:
    """Return how far a fit came, with the worst of several columns where that is further from its minimum.

    Examples
    --------
    >>> gap_in_words(5e-5, 3e-4)
    'relative duality gap 5e-05 (of the worst column 0.0003)'
    """
    words = f"relative duality gap {relative:.2g}"
    return words if worst is None or worst <= relative else f"{words} (of the worst column {worst:.2g})"


@dataclass(frozen=True)
class Certificate:
    """Objective, gap, stop reason and separability of a fit; fields that do not apply are None.

    Attributes
    ----------
    status : str
        Why the fit stopped: "converged", "max_iter", "max_time", "interrupted", or a verdict that
        ended it: "separable", "inseparable", "nonconvex". "imported": read from another library's
        file, which keeps no proof.
    message : str
        The same in words, with what to change if the tolerance was not reached.
    iterations : int
        Iterations done.
    seconds : float
        Time taken.
    primal, dual, gap, relative_gap, kkt_violation : float or None
        Objective of the returned model, a proven lower bound of the optimum, and their distance.
    worst_relative_gap : float or None
        The largest relative gap of a single column, where ``relative_gap`` is that of several linear machines
        that are solved apart (one class against the rest, or pairs): a column of a small objective may be
        further from its minimum than all of them together.
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
    worst_relative_gap: float | None = None
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
            ("worst column's", self.worst_relative_gap),
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


@dataclass(frozen=True, eq=False)
class Separation:
    """A direction along which the likelihood grows for ever.

    Attributes
    ----------
    kind : str
        "complete" (proven beyond rounding) or "quasi-complete" (zeros up to rounding).
    coef : ndarray of shape (columns, d)
        The direction's weights, of length 1: one row for a binary column; those of a joint problem sum to 0.
    intercept : ndarray of shape (columns,)
        Its intercepts.
    margin : float
        Smallest signed distance of a sample to a boundary that concerns it; 0 for quasi-complete separation,
        ``inf`` where the direction has intercepts only (there is but one class).
    separated : int
        Samples with a positive margin against every rival.
    samples : int
        Samples that count.
    column : int or None
        The binary column that is separated; None for a joint problem.
    pairs : tuple
        Which groups of classes the direction pulls apart: pairs of tuples of class numbers.
    features : tuple of int
        The features with the largest part in the direction, weights times range, the largest first.
    """

    kind: str
    coef: Array
    intercept: Array
    margin: float
    separated: int
    samples: int
    column: int | None = None
    pairs: tuple[Groups, ...] = ()
    features: tuple[int, ...] = ()

    def message(self, classes: Sequence[Any] | Array, features: Sequence[str] | None = None) -> str:
        """Return fact, classes, features and remedy in words.

        Parameters
        ----------
        classes : sequence
            The classes' names, by number.
        features : sequence of str or None
            The features' names.
        """
        one = len(self.pairs) == 1
        fact = f"{'a hyperplane separates' if one else 'hyperplanes separate'} {self._who(classes)}"
        if self.kind == "complete":
            fact += " completely"
        else:
            fact += (
                f" but for samples on {'it' if one else 'them'} "
                f"({self.separated:,} of {self.samples:,} samples are on the right side)"
            )
        named = [f"feature {j}" if features is None else str(features[j]) for j in self.features]
        along = f", mostly by {', '.join(named)}" if named else ""
        return (
            f"{fact}{along}: the maximum-likelihood estimate does not exist, its weights grow for ever. "
            "Choose a finite C (a penalty) to get a finite estimate."
        )

    def _who(self, classes: Sequence[Any] | Array) -> str:
        def names(group: tuple[int, ...]) -> str:
            shown = ", ".join(str(classes[k]) for k in group[:4])
            more = f", … ({len(group)} in all)" if len(group) > 4 else ""
            return f"class {shown}" if len(group) == 1 else f"classes {shown}{more}"

        joined = [
            f"{names(a)} from {'the other classes' if self._others(a, b, len(classes)) else names(b)}"
            for a, b in self.pairs[:3]
        ]
        more = len(self.pairs) - 3
        return "; ".join(joined) + (f"; and {more} more pairs" if more > 0 else "")

    @staticmethod
    def _others(a: tuple[int, ...], b: tuple[int, ...], n_classes: int) -> bool:
        """Return whether the second group is best named as all the others."""
        return len(b) > 1 and len(a) + len(b) == n_classes
