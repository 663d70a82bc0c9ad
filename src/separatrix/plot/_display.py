"""What all displays share: where they draw, and how a notebook shows them."""

from typing import TYPE_CHECKING, Any

from separatrix.plot._canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Display:
    """A picture and the values in it, after scikit-learn's convention.

    ``from_estimator`` computes the values, draws them and returns the display; ``plot(ax=...)`` draws them
    again elsewhere. ``ax_`` and ``figure_`` are where it was drawn last.
    """

    ax_: "Axes"
    figure_: "Figure"
    _own_figure = False

    def _axes(self, ax: "Axes | None", width: float, height: float, *, square: bool = False) -> "Axes":
        """Take the given Axes, or new ones on a figure of their own that needs no screen.

        `square` says that both axes have one scale: the layout must then leave the space where it is needed.
        """
        self._own_figure = ax is None
        if ax is None:
            figure = new_figure(width, height)
            if square:
                figure.set_layout_engine("compressed")
            ax = figure.subplots()
        else:
            from separatrix.plot._room import make_room

            make_room(ax)
        self.ax_ = ax
        root: Any = ax.get_figure(root=True)
        self.figure_ = root
        return ax

    def _two_panels(self, width: float, height: float) -> "tuple[Axes, Axes]":
        """Make a figure with one picture above another, both over the same axis; the upper one counts."""
        figure = new_figure(width, height)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        self._axes(upper, width, height)
        self._own_figure = True
        return upper, lower

    def _repr_png_(self) -> bytes | None:
        """Show the picture below a notebook's cell; one drawn into pyplot's Axes is shown by pyplot."""
        if not self._own_figure:
            return None
        from io import BytesIO

        content = BytesIO()
        self.figure_.savefig(content, format="png")
        return content.getvalue()
