"""Room for labels in a user's own grid of Axes.

``plt.subplots(2, 2)`` leaves gaps that the names of axes do not fit into. A picture drawn there asks for
the room that it needs, as ``figure.tight_layout()`` would, but only of a figure whose owner has said nothing
about its layout, and only until he does.
"""

from __future__ import annotations

import warnings
from typing import Any

import matplotlib
from matplotlib.layout_engine import PlaceHolderLayoutEngine, TightLayoutEngine

_EDGES = ("left", "right", "bottom", "top", "wspace", "hspace")


class RoomForLabels(TightLayoutEngine):
    """A tight layout at every drawing, which ends where someone else has moved the Axes."""

    def __init__(self, figure: Any) -> None:
        super().__init__()
        self._left = _gaps(figure)

    def execute(self, fig: Any) -> None:
        """Make room, unless the owner has called ``subplots_adjust`` or placed Axes by hand."""
        placed = any(ax.get_subplotspec() is None and ax.get_axes_locator() is None for ax in fig.axes)
        if placed or _gaps(fig) != self._left:
            return
        with warnings.catch_warnings():  # where there is no room to make, all stays as it was
            warnings.simplefilter("ignore", UserWarning)
            super().execute(fig)
        self._left = _gaps(fig)


def make_room(ax: Any) -> None:
    """Let a figure make room for labels, if it lays its Axes out as matplotlib does by default."""
    figure = ax.get_figure(root=True)
    settings: Any = matplotlib.rcParams
    usual = tuple(settings[f"figure.subplot.{edge}"] for edge in _EDGES)
    in_grid = ax.get_subplotspec() is not None and ax.get_figure(root=False) is figure
    if in_grid and figure.get_layout_engine() is None and _gaps(figure) == usual:
        figure.set_layout_engine(RoomForLabels(figure))


def has_layout(figure: Any) -> bool:
    """Tell whether the owner of a figure has chosen a layout that makes room for what is beside the Axes."""
    engine = figure.get_layout_engine()
    return engine is not None and not isinstance(engine, PlaceHolderLayoutEngine | RoomForLabels)


def _gaps(figure: Any) -> tuple[float, ...]:
    return tuple(getattr(figure.subplotpars, edge) for edge in _EDGES)
