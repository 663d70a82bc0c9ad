"""Weights and margin width along a path of C."""

from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.plot._canvas import DASHES, INK, PALETTE, new_figure, outside_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Weights with a name and a colour of their own; the others are thin and grey.
_NAMED = 7


def path(result: Any, *, column: int = 0, ax: "Axes | None" = None) -> "Axes":
    """Draw the weights of one column, and the width of its margin, against ``C``.

    Parameters
    ----------
    result : CPath
        What ``LinearSVC.path`` or ``LogisticRegression.path`` returned.
    column : int, default=0
        Which column (class, or pair of classes) to draw.
    ax : matplotlib Axes, optional
        Where to draw the weights, with the margin width on a second axis to the right. Without it, a new
        figure has the one above and the other below.

    Returns
    -------
    matplotlib Axes
        The axes with the weights.

    Examples
    --------
    >>> from separatrix import plot
    >>> from separatrix.models.linear_svm import LinearSVC
    >>> result = LinearSVC.path([[-1.0, 0.0], [0.5, 1.0], [1.0, 0.0]], [0, 1, 1], [0.1, 1.0, 10.0])
    >>> plot.path(result).get_ylabel()
    'weight'
    """
    count = result.coefs.shape[1]
    if not -count <= column < count:
        raise ValueError(f"column={column} does not exist; there are {count}, numbered from 0.")
    weights, margins = result.coefs[:, column], result.margins[:, column]
    lower: Axes | None = None
    if ax is None:
        ax, lower = new_figure(6.8, 5.2).subplots(2, 1, sharex=True, height_ratios=(3, 2))
    else:
        lower = ax.twinx()
    own = lower.get_subplotspec() is not ax.get_subplotspec()
    order = np.argsort(-np.abs(weights).max(axis=0), kind="stable")
    handles = []
    for rank, feature in reversed(list(enumerate(order))):
        named = rank < _NAMED
        name = f"feature {feature}" if result.features is None else result.features[feature]
        (line,) = ax.plot(result.Cs, weights[:, feature], color=PALETTE[rank % len(PALETTE)] if named else "0.75",
                          linestyle=DASHES[rank % len(DASHES)] if named else "-",
                          linewidth=1.8 if named else 0.8, zorder=3 - 0.01 * rank, label=name)
        if named:
            handles.insert(0, line)
    if len(order) > _NAMED:
        ax.plot([], [], color="0.75", linewidth=0.8)
        handles.append(ax.get_lines()[-1])
        handles[-1].set_label(f"{len(order) - _NAMED} others")
    ax.axhline(0.0, color=INK, linewidth=0.6, alpha=0.5, zorder=0)
    ax.set_xscale("log")
    ax.set_ylabel("weight")
    shown = np.isfinite(margins)
    (width,) = lower.plot(result.Cs[shown], margins[shown], color=INK, linewidth=1.8,
                          marker="o", markersize=3.5, label="margin width 2/‖w‖")
    if shown.any():
        lower.set_yscale("log")
    lower.set_ylabel("margin width (log scale)")
    ax.set_xlabel("C")
    if own:
        ax.tick_params(labelbottom=False)
        ax.xaxis.label.set_visible(False)
        lower.set_xlabel("C: less penalty to the right")
        outside_legend(lower, [width])
        outside_legend(ax, handles)
    else:
        outside_legend(ax, [*handles, width], 0.2)
    return ax
