"""The loss table as a picture, with slopes."""

from typing import TYPE_CHECKING

import numpy as np

from separatrix.losses import LOSSES
from separatrix.plot._canvas import DASHES, INK, PALETTE, new_figure, outside_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def losses(ax: "Axes | None" = None) -> "Axes":
    """Draw every loss ``l(m)`` of the margin ``m = y f(x)`` in the table, and its slope ``l'(m)``.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where to draw the losses; without it, a new figure has them above and their slopes below.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from separatrix import plot
    >>> len(plot.losses().get_lines()) >= 6
    True
    """
    lower: Axes | None = None
    if ax is None:
        ax, lower = new_figure(8.2, 5.6).subplots(2, 1, sharex=True, height_ratios=(3, 2))
    margins = np.linspace(-2.0, 3.0, 1001)
    handles = []
    for index, loss in enumerate(loss for loss in LOSSES.values() if loss.of == "margin"):
        colour = INK if index == 0 else PALETTE[index - 1]
        style = DASHES[index % len(DASHES)]
        # Later rows lie below earlier ones and the last is broad: squared and squared hinge share a branch.
        width = 3.2 if loss.name == "squared" else 1.8
        (line,) = ax.plot(margins, loss.value(margins), color=colour, linestyle=style, linewidth=width,
                          zorder=3 - 0.1 * index, label=f"{loss.name.replace('_', ' ')}:  {loss.formula}")
        handles.append(line)
        if lower is not None:
            # The slope has a jump where the loss has a kink: a gap in the line instead of a slanted stroke.
            slopes = loss.slope(margins)
            jumps = np.flatnonzero(np.abs(np.diff(slopes)) > 0.5)
            lower.plot(np.insert(margins, jumps + 1, margins[jumps]), np.insert(slopes, jumps + 1, np.nan),
                       color=colour, linestyle=style, linewidth=width, zorder=3 - 0.1 * index)
    ax.set_xlim(margins[0], margins[-1])
    ax.set_ylim(-0.06, 4.0)
    ax.axvline(0.0, color=INK, linewidth=0.6, alpha=0.5, zorder=0)
    ax.text(-0.05, 3.93, "wrong side", horizontalalignment="right", verticalalignment="top", fontsize="small")
    ax.text(0.05, 3.93, "right side", horizontalalignment="left", verticalalignment="top", fontsize="small")
    ax.set_xlabel("margin m = y f(x)")
    ax.set_ylabel("loss l(m)")
    if lower is not None:
        ax.tick_params(labelbottom=False)
        ax.xaxis.label.set_visible(False)
        lower.axvline(0.0, color=INK, linewidth=0.6, alpha=0.5, zorder=0)
        lower.set_ylim(-4.4, 2.2)
        lower.set_xlabel("margin m = y f(x)")
        lower.set_ylabel("slope l'(m)")
    outside_legend(ax, handles)
    return ax
