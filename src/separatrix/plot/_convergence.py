"""How a fit went, pass by pass."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import DASHES, INK, MARKERS, PALETTE, final_step, new_figure, outside_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COUNTS = {"mistakes": "mistakes in the pass", "margin_errors": "margin errors in the pass",
           "training_errors": "errors at the pass's end"}
_CRITERION = "criterion"
# With more passes than this, markers would merge into a band.
_MOST_MARKERS = 40


def convergence(model: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw errors and criterion ``J`` of every pass from the model's ``history_``.

    Parameters
    ----------
    model : fitted estimator or pipeline
        With ``history_``: one record per pass with ``iteration`` and any of ``mistakes``, ``margin_errors``,
        ``training_errors`` and ``criterion``.
    ax : matplotlib Axes, optional
        Where to draw the counts, with the criterion on a second axis to the right. Without it, a new figure
        has the counts above and the criterion below.

    Returns
    -------
    matplotlib Axes
        The axes with the counts.

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
    counts = {key: _series(history, key) for key in _COUNTS}
    counts = {key: values for key, values in counts.items() if np.isfinite(values).any()}
    criterion = _series(history, _CRITERION)
    has_criterion = bool(np.isfinite(criterion).any())
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
               for index, (key, label) in enumerate(_COUNTS.items()) if key in counts]
    if getattr(estimator, "keep", None) == "best" and "training_errors" in counts:
        handles.append(_mark_best(ax, passes, counts["training_errors"]))
    ax.set_ylabel("errors")
    ax.set_ylim(bottom=0.0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    bottom, gap = ax, 0.02
    if lower is not None:
        line = _line(lower, passes, criterion, len(_COUNTS), "criterion J")
        lower.set_ylabel("criterion J (log scale)")
        _log_scale(lower, criterion)
        if lower.get_subplotspec() is not ax.get_subplotspec():
            bottom = lower
            outside_legend(lower, [line])
        else:
            handles.append(line)
            gap = 0.2  # room for the labels of the criterion's own axis
    ax.set_xlabel("pass")
    if bottom is not ax:
        ax.tick_params(labelbottom=False)
        ax.xaxis.label.set_visible(False)
        bottom.set_xlabel("pass")
    outside_legend(ax, handles, gap)
    return ax


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
