"""How a fit went, pass by pass."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import DASHES, INK, MARKERS, PALETTE, final_step, new_figure, outside_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COUNTS = {"mistakes": "mistakes in the pass", "margin_errors": "margin errors in the pass",
           "training_errors": "errors at the pass's end"}
_OBJECTIVE = {"objective": "objective"}
# What is drawn on a log scale, and its name; the first that a history knows.
_MEASURES = {"criterion": "criterion J", "relative_gap": "relative gap"}
# With more passes than this, markers would merge into a band.
_MOST_MARKERS = 40


def convergence(model: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw errors and criterion ``J``, or objective and gap, of every iteration from ``history_``.

    Parameters
    ----------
    model : fitted estimator or pipeline
        With ``history_``: one record per pass with ``iteration`` and any of ``mistakes``, ``margin_errors``,
        ``training_errors`` and ``criterion``; or of ``objective`` and ``relative_gap``.
    ax : matplotlib Axes, optional
        Where to draw the counts (the objective), with the criterion (the gap) on a second axis to the right.
        Without it, a new figure has the one above and the other below.

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
    estimator = final_step(model)
    name = type(estimator).__name__
    history = getattr(estimator, "history_", None)
    if history is None:
        raise ValueError(f"{name} has no history_; fit it first, or take an estimator that learns in passes")
    if len(history) == 0:
        raise ValueError(f"history_ of {name} is empty: its fit ended before the first pass")
    passes = np.array([record.get("iteration", index + 1) for index, record in enumerate(history)])
    labels, unit, step = _COUNTS, "errors", "pass"
    counts = _known(history, labels)
    if not counts and (counts := _known(history, _OBJECTIVE)):
        labels, unit, step = _OBJECTIVE, "objective", "iteration"
    measures = _known(history, _MEASURES)
    has_criterion = bool(measures)
    if not counts and not has_criterion:
        raise ValueError(f"history_ of {name} has neither errors nor a criterion to draw")

    lower: Axes | None = None
    if ax is None:
        if has_criterion:
            ax, lower = new_figure(6.8, 4.8).subplots(2, 1, sharex=True, height_ratios=(3, 2))
        else:
            ax = new_figure(6.8, 3.6).subplots()
    elif has_criterion:
        lower = ax.twinx()
    from matplotlib.ticker import MaxNLocator

    handles = [_line(ax, passes, counts[key], index, label)
               for index, (key, label) in enumerate(labels.items()) if key in counts]
    if getattr(estimator, "keep", None) == "best" and "training_errors" in counts:
        handles.append(_mark_best(ax, passes, counts["training_errors"]))
    ax.set_ylabel(unit)
    if labels is _COUNTS:
        ax.set_ylim(bottom=0.0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    bottom, gap = ax, 0.02
    if lower is not None:
        key, values = next(iter(measures.items()))
        line = _line(lower, passes, values, len(_COUNTS), _MEASURES[key])
        lower.set_ylabel(f"{_MEASURES[key]} (log scale)")
        _log_scale(lower, values[np.isfinite(values)])
        if lower.get_subplotspec() is not ax.get_subplotspec():
            bottom = lower
            outside_legend(lower, [line])
        else:
            handles.append(line)
            gap = 0.2  # room for the labels of the criterion's own axis
    ax.set_xlabel(step)
    if bottom is not ax:
        ax.tick_params(labelbottom=False)
        ax.xaxis.label.set_visible(False)
        bottom.set_xlabel(step)
    outside_legend(ax, handles, gap)
    return ax


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
    (line,) = ax.plot(passes[known], values[known], color=PALETTE[index], linestyle=DASHES[index],
                      linewidth=1.6, marker=marker, markersize=4.5, label=label)
    return line


def _mark_best(ax: "Axes", passes: NDArray[Any], errors: NDArray[np.float64]) -> Any:
    best = int(np.nanargmin(errors))
    (star,) = ax.plot(passes[best], errors[best], linestyle="none", marker="*", markersize=13, color=INK,
                      markeredgecolor="white", clip_on=False, zorder=4,
                      label=f"fewest, after pass {passes[best]}: {errors[best]:,.6g}")
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
