"""How a fit went, pass by pass."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import DASHES, MARKERS, PALETTE, final_step, ink, new_figure, outside_legend
from separatrix.plot._display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COUNTS = {
    "mistakes": "mistakes in the pass",
    "margin_errors": "margin errors in the pass",
    "training_errors": "errors at the pass's end",
}
_OBJECTIVE = {"objective": "objective", "dual": "dual objective"}
# What is drawn on a log scale, and its name; the first that a history knows.
_MEASURES = {
    "criterion": "criterion J",
    "relative_gap": "relative gap",
    "violation": "violation",
    "residual": "residual",
}
# With more passes than this, markers would merge into a band.
_MOST_MARKERS = 40


@dataclass(eq=False)
class ConvergenceDisplay(Display):
    """Errors and criterion, or objective and gap, of every iteration of a fit.

    Made by :meth:`from_estimator`; `convergence` is the short form.

    Parameters
    ----------
    history : list of dict
        One record per iteration, as in ``history_``.
    name : str
        What was fitted.
    against : {"iteration", "seconds"}
        What runs from left to right.
    mark_best : bool
        Whether the pass with the fewest errors gets a star: a pocket keeps its weights.

    Attributes
    ----------
    lower_ : matplotlib Axes or None
        Where the criterion or the gap is.

    Examples
    --------
    >>> from separatrix.plot import ConvergenceDisplay
    >>> from separatrix import Perceptron
    >>> model = Perceptron().fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
    >>> ConvergenceDisplay.from_estimator(model).ax_.get_ylabel()
    'errors'
    """

    history: list[dict[str, Any]]
    name: str = "model"
    against: str = "iteration"
    mark_best: bool = False

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: "Axes | None" = None, against: str = "iteration"
    ) -> "ConvergenceDisplay":
        """Draw the history of a fitted estimator; see `convergence` for the parameters.

        Returns
        -------
        ConvergenceDisplay
        """
        if against not in ("iteration", "seconds"):
            raise ValueError(f"against must be 'iteration' or 'seconds', not {against!r}")
        final = final_step(estimator)
        name = type(final).__name__
        history = getattr(final, "history_", None)
        if history is None:
            raise ValueError(
                f"{name} has no history_; fit it first, or take an estimator that learns in passes"
            )
        if len(history) == 0:
            raise ValueError(f"history_ of {name} is empty: its fit ended before the first pass")
        return cls(history, name, against, getattr(final, "keep", None) == "best").plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "ConvergenceDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure without it.

        Returns
        -------
        ConvergenceDisplay
        """
        history = self.history
        labels, unit, step = _COUNTS, "errors", "pass"
        counts = _known(history, labels)
        if not counts:
            counts, labels, unit, step = _known(history, _OBJECTIVE), _OBJECTIVE, "objective", "iteration"
        measures = _known(history, _MEASURES)
        if not counts and not measures:
            raise ValueError(f"history_ of {self.name} has neither errors nor a criterion to draw")
        places = np.array([record.get("iteration", index + 1) for index, record in enumerate(history)])
        passes = places
        if self.against == "seconds":
            places, step = _series(history, "seconds"), "seconds"
            if not np.isfinite(places).all():
                raise ValueError(f"history_ of {self.name} has no times; draw it against='iteration'")

        from matplotlib.ticker import MaxNLocator

        ax, lower = self._panels(ax, bool(counts and measures))
        if not counts:
            self._draw_measure(ax, places, measures)
            ax.set_xlabel(step)
            outside_legend(ax, list(ax.get_lines()))
            return self
        handles = [
            _line(ax, places, counts[key], index, label)
            for index, (key, label) in enumerate(labels.items())
            if key in counts
        ]
        if self.mark_best and "training_errors" in counts:
            handles.append(_mark_best(ax, places, passes, counts["training_errors"]))
        ax.set_ylabel(unit)
        if labels is _COUNTS:
            ax.set_ylim(bottom=0.0)
        if self.against == "iteration":
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            if len(places) == 1:
                ax.set_xlim(places[0] - 1, places[0] + 1)
        bottom, second = ax, False
        if lower is not None:
            line = self._draw_measure(lower, places, measures)
            if lower.get_subplotspec() is not ax.get_subplotspec():
                bottom = lower
                outside_legend(lower, [line])
            else:
                handles.append(line)
                second = True
        ax.set_xlabel(step)
        if bottom is not ax:
            ax.tick_params(labelbottom=False)
            ax.xaxis.label.set_visible(False)
            bottom.set_xlabel(step)
        outside_legend(ax, handles, second_axis=second)
        return self

    @staticmethod
    def _draw_measure(ax: "Axes", places: NDArray[Any], measures: dict[str, NDArray[np.float64]]) -> Any:
        key, values = next(iter(measures.items()))
        line = _line(ax, places, values, len(_COUNTS), _MEASURES[key])
        ax.set_ylabel(f"{_MEASURES[key]} (log scale)")
        _log_scale(ax, values[np.isfinite(values)])
        return line

    def _panels(self, ax: "Axes | None", both: bool) -> "tuple[Axes, Axes | None]":
        """Return where the counts and where the criterion go: one above the other, or on two scales."""
        self.lower_: Axes | None = None
        if ax is None and both:
            upper, self.lower_ = new_figure(6.8, 4.8).subplots(2, 1, sharex=True, height_ratios=(3, 2))
            self._axes(upper, 0.0, 0.0)
            self._own_figure = True
            return self.ax_, self.lower_
        given = ax is not None
        ax = self._axes(ax, 6.8, 3.6)
        if given and both:
            self.lower_ = ax.twinx()
        return ax, self.lower_


def convergence(model: Any, *, ax: "Axes | None" = None, against: str = "iteration") -> "Axes":
    """Draw errors and criterion ``J``, or objective and gap, of every iteration from ``history_``.

    Parameters
    ----------
    model : fitted estimator or pipeline
        With ``history_``: one record per pass with ``iteration`` and any of ``mistakes``, ``margin_errors``,
        ``training_errors`` and ``criterion``; or of ``objective`` or ``dual`` and of ``relative_gap``,
        ``violation`` or ``residual``.
    ax : matplotlib Axes, optional
        Where to draw the counts (the objective), with the criterion (the gap) on a second axis to the right.
        Without it, a new figure has the one above and the other below.
    against : {"iteration", "seconds"}, default="iteration"
        What runs from left to right: iterations, or the time they took.

    Returns
    -------
    matplotlib Axes
        The axes with the counts or the objective.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from separatrix import plot
    >>> history = [{"iteration": 1, "mistakes": 5}, {"iteration": 2, "mistakes": 0}]
    >>> plot.convergence(SimpleNamespace(history_=history)).get_xlabel()
    'pass'
    """
    return ConvergenceDisplay.from_estimator(model, ax=ax, against=against).ax_


def _known(history: list[dict[str, Any]], labels: dict[str, str]) -> dict[str, NDArray[np.float64]]:
    """Return the series that the history knows, in the order of the labels."""
    series = {key: _series(history, key) for key in labels}
    return {key: values for key, values in series.items() if np.isfinite(values).any()}


def _series(history: list[dict[str, Any]], key: str) -> NDArray[np.float64]:
    values = [record.get(key) for record in history]
    return np.array([np.nan if value is None else float(value) for value in values])


def _line(ax: "Axes", passes: NDArray[Any], values: NDArray[np.float64], index: int, label: str) -> Any:
    known = np.isfinite(values)
    marker = MARKERS[index] if known.sum() <= _MOST_MARKERS else None
    (line,) = ax.plot(
        passes[known],
        values[known],
        color=PALETTE[index],
        linestyle=DASHES[index],
        linewidth=1.6,
        marker=marker,
        markersize=4.5,
        label=label,
    )
    return line


def _mark_best(ax: "Axes", places: NDArray[Any], passes: NDArray[Any], errors: NDArray[np.float64]) -> Any:
    best = len(errors) - 1 - int(np.nanargmin(errors[::-1]))  # of equals the pocket keeps the later
    (star,) = ax.plot(
        places[best],
        errors[best],
        linestyle="none",
        marker="*",
        markersize=13,
        color=ink(ax),
        markeredgecolor="white",
        clip_on=False,
        zorder=4,
        label=f"fewest, after pass {passes[best]}: {errors[best]:,.6g}",
    )
    return star


def _log_scale(ax: "Axes", values: NDArray[np.float64]) -> None:
    """Use a log axis that also has a place for 0, the criterion of a pass without errors."""
    positive = values[values > 0]
    if positive.size == 0:
        return
    if (values == 0).any():
        ax.set_yscale("symlog", linthresh=float(positive.min()))
        ax.set_ylim(bottom=0.0)
    else:
        ax.set_yscale("log")
