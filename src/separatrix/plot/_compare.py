"""Several models side by side: how well, and how long."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from separatrix.plot._canvas import PALETTE, ink, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def comparison(
    rows: Sequence[tuple[str, Sequence[float], float]],
    *,
    label: str,
    title: str,
    best_high: bool = True,
    baseline: float | None = None,
) -> "Axes":
    """Draw the folds of every model with mean and standard deviation, and the time of a fit beside them.

    Parameters
    ----------
    rows : sequence of (name, values of the folds, seconds)
        The models, the best first.
    label : str
        What the values are.
    title : str
        What the picture is about.
    best_high : bool
        Whether larger values are better.
    baseline : float, optional
        Accuracy of always naming the largest class; drawn as a line if `label` is ``"accuracy"``.

    Returns
    -------
    matplotlib Axes
        The left axes, with the values.

    Examples
    --------
    >>> rows = [("lda", [0.9, 0.95], 0.01), ("qda", [0.8, 0.9], 0.02)]
    >>> ax = comparison(rows, label="accuracy", title="demo")
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['lda', 'qda']
    """
    figure = new_figure(7.6, 1.5 + 0.36 * max(len(rows), 2))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    places = np.arange(len(rows))
    for place, (_, values, seconds) in zip(places, rows, strict=True):
        mean = float(np.mean(values))
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        colour = PALETTE[0] if place == 0 else "#777777"
        left.plot(values, np.full(len(values), place), "o", color=colour, alpha=0.35, markersize=4, mew=0)
        left.errorbar(mean, place, xerr=spread, fmt="D", color=colour, markersize=6, capsize=3, linewidth=1.6)
        right.plot(seconds, place, "s", color=colour, markersize=6)
        right.annotate(
            _seconds(seconds),
            (seconds, place),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
            color=ink(right),
        )
    if baseline is not None and label == "accuracy":
        left.axvline(baseline, color=ink(left), linewidth=1.0, linestyle=(0, (4, 2)), zorder=0)
        left.annotate(
            "largest class",
            (baseline, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize="x-small",
            color=ink(left),
        )
    left.set_yticks(places, [name for name, _, _ in rows])
    left.set_ylim(len(rows) - 0.4, -0.6)
    left.set_xlabel(f"{label} ({'more' if best_high else 'less'} is better): folds, mean ± deviation")
    left.grid(axis="x", color="#dddddd", linewidth=0.6)
    left.set_axisbelow(True)
    right.set_xscale("log")
    low, high = right.get_xlim()
    right.set_xlim(low / 1.2, high * 6.0)  # room for the numbers
    right.grid(axis="x", color="#dddddd", linewidth=0.6)
    right.set_xlabel("time of a fit in seconds")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize="medium")
    axes: Axes = left
    return axes


def _seconds(value: float) -> str:
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
