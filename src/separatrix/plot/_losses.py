"""The loss table as a picture, with slopes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.losses import LOSSES
from separatrix.plot._canvas import DASHES, PALETTE, ink, outside_legend
from separatrix.plot._display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class LossesDisplay(Display):
    """Losses ``l(m)`` of the margin ``m = y f(x)``, and their slopes ``l'(m)``.

    Losses have no estimator: `from_table` draws those of the table, all or some.

    Attributes
    ----------
    margins : ndarray
        The margins.
    values, slopes : dict of ndarray
        Value and slope of each loss at the margins, by its name.
    ax_, figure_ : matplotlib Axes and Figure
        Where the losses were drawn last.

    Examples
    --------
    >>> display = LossesDisplay.from_table(["hinge", "logistic"])
    >>> sorted(display.values)
    ['hinge', 'logistic']
    """

    margins: Any
    values: dict[str, Any]
    slopes: dict[str, Any]

    @classmethod
    def from_table(cls, names: Sequence[str] | None = None, *, ax: "Axes | None" = None) -> "LossesDisplay":
        """Draw losses of `separatrix.losses`.

        Parameters
        ----------
        names : sequence of str, optional
            Which; by default all that are functions of the margin.
        ax : matplotlib Axes, optional
            Where to draw the losses; without it, a new figure has them above and their slopes below.

        Returns
        -------
        LossesDisplay

        Examples
        --------
        >>> from separatrix import plot
        >>> sorted(plot.LossesDisplay.from_table(["hinge", "logistic"]).values)
        ['hinge', 'logistic']
        """
        known = [loss.name for loss in LOSSES.values() if loss.of == "margin"]
        unknown = [name for name in names or () if name not in known]
        if unknown:
            raise ValueError(f"no loss of the margin is called {unknown[0]!r}; choose {', '.join(known)}")
        chosen = [name for name in known if names is None or name in names]
        margins = np.linspace(-2.0, 3.0, 1001)
        values = {name: LOSSES[name].value(margins) for name in chosen}
        return cls(margins, values, {name: LOSSES[name].slope(margins) for name in chosen}).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "LossesDisplay":
        """Draw into Axes, or into a new figure with the slopes, and return the display."""
        lower: Axes | None = None
        if ax is None:
            ax, lower = self._two_panels(8.2, 5.6)
        else:
            self._axes(ax, 8.2, 5.6)
        margins = self.margins
        handles = []
        order = [loss.name for loss in LOSSES.values() if loss.of == "margin"]
        for name in self.values:
            loss, index = LOSSES[name], order.index(name)
            colour = ink(ax) if index == 0 else PALETTE[index - 1]
            style = DASHES[index % len(DASHES)]
            # Later rows lie below earlier ones, the last is broad: squared and squared hinge share a branch.
            width = 3.2 if loss.name == "squared" else 1.8
            (line,) = ax.plot(
                margins,
                self.values[name],
                color=colour,
                linestyle=style,
                linewidth=width,
                zorder=3 - 0.1 * index,
                label=f"{loss.name.replace('_', ' ')}:  {loss.formula}",
            )
            handles.append(line)
            if lower is not None:
                # The slope jumps where the loss has a kink: a gap in the line instead of a slanted stroke.
                jumps = np.flatnonzero(np.abs(np.diff(self.slopes[name])) > 0.5)
                lower.plot(
                    np.insert(margins, jumps + 1, margins[jumps]),
                    np.insert(self.slopes[name], jumps + 1, np.nan),
                    color=colour,
                    linestyle=style,
                    linewidth=width,
                    zorder=3 - 0.1 * index,
                )
        ax.set_xlim(margins[0], margins[-1])
        ax.set_ylim(-0.06, 4.0)
        ax.axvline(0.0, color=ink(ax), linewidth=0.6, alpha=0.5, zorder=0)
        ax.set_xlabel("margin m = y f(x)")
        ax.set_ylabel("loss l(m)")
        if lower is not None:
            ax.tick_params(labelbottom=False)
            ax.xaxis.label.set_visible(False)
            lower.axvline(0.0, color=ink(ax), linewidth=0.6, alpha=0.5, zorder=0)
            lower.set_ylim(-4.4, 2.2)
            lower.set_xlabel("margin m = y f(x)")
            lower.set_ylabel("slope l'(m)")
        if outside_legend(ax, handles):  # one within the Axes would hide the words
            for place, words, side in ((-0.05, "wrong side", "right"), (0.05, "right side", "left")):
                ax.text(place, 3.93, words, ha=side, va="top", fontsize="small")
        return self


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
    return LossesDisplay.from_table(ax=ax).ax_
