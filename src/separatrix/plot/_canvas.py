"""Figures without a screen, and one look for all pictures."""

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart with every common colour blindness; its black is left to the lines.
# The order puts colours side by side that differ in lightness too, for print without colour.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "p", "*")
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)), "-")
INK = "#222222"
_CHALK, _DARK = "#E4E4E4", 0.4
# Marks figures that are made here, and the width of a legend that their size reckons with.
_OWN = "separatrix"
_LEGEND_INCHES = 2.1
_MOST_ENTRIES = 72  # four columns: as wide as the picture
_LETTER_INCHES = 0.075
_LETTER_WIDTH = 0.58  # of a letter's height
# Ticks, their labels and the name of an axis on the right.
_AXIS_INCHES = 0.75
_TINT = 0.76


@dataclass(frozen=True)
class ClassStyle:
    """How one class looks: its points' colour and marker, its region's lighter tint."""

    colour: str
    marker: str
    tint: tuple[float, float, float]


def new_figure(width: float, height: float) -> "Figure":
    """Make a figure that lives outside pyplot, so that it works without a display and leaks nothing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "matplotlib":
            raise
        message = 'plots need matplotlib: pip install "separatrix[plot]"'
        raise ModuleNotFoundError(message, name="matplotlib") from None
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    figure.set_label(_OWN)
    return figure


def class_style(index: int) -> ClassStyle:
    """Choose the style of the class at a position; colour with marker repeats only after 77 classes."""
    colour = PALETTE[index % len(PALETTE)]
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (channel + (1 - channel) * _TINT for channel in channels)
    return ClassStyle(colour, MARKERS[index % len(MARKERS)], (red, green, blue))


def ink(place: "Axes | Figure") -> str:
    """Return the colour of lines on bare Axes, or on the paper around them: light where these are dark."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(place.get_facecolor())
    return INK if 0.3 * red + 0.6 * green + 0.1 * blue > _DARK else _CHALK


def legend_panel(figure: "Figure") -> dict[str, Any]:
    """Return how a legend of dark marks on light regions is framed: not, unless the paper is dark."""
    if ink(figure) == INK:
        return {"frameon": False}
    paper = {"facecolor": "#F4F4F4", "edgecolor": "none", "framealpha": 1.0}
    return {"frameon": True, "labelcolor": INK, **paper}


def outside_legend(
    ax: "Axes", handles: list[Any], *, second_axis: bool = False, regions: bool = False
) -> bool:
    """Put the legend right of the data, where it hides nothing, nor the labels of a second axis.

    `regions` says that the marks are dark whatever the paper is, since they lie on light regions. Returns
    whether there was room; else the legend is within the Axes.
    """
    from matplotlib.transforms import ScaledTranslation

    handles = _readable(handles)
    columns = 1 + (len(handles) - 1) // 18
    names = short_names([handle.get_label() for handle in handles], 80)
    figure: Any = ax.get_figure(root=True)
    panel = legend_panel(figure) if regions else {"frameon": False}
    gap = ScaledTranslation(_AXIS_INCHES if second_axis else 0.0, 0.0, figure.dpi_scale_trans)
    legend = ax.legend(
        handles=handles,
        labels=names,
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        bbox_transform=ax.transAxes + gap,
        borderaxespad=0.0,
        ncols=columns,
        fontsize="small",
        **panel,
    )
    if figure.get_label() != _OWN:
        from separatrix.plot._room import has_layout

        beside = has_layout(figure) or _is_free(ax, legend)
        if not beside:
            _inside_legend(ax, handles)
        return beside
    # A figure of ours grows with its legend, so that long names take nothing from the picture.
    width, height = figure.get_size_inches()
    first = getattr(figure, "_first_width", width)
    figure._first_width = first
    needed = legend.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi
    figure.set_size_inches(max(width, first + needed - _LEGEND_INCHES), height)
    return True


def _readable(handles: list[Any]) -> list[Any]:
    """Leave the middle out of a legend that would be wider than the picture; its end tells of no class."""
    from matplotlib.lines import Line2D

    left = len(handles) - _MOST_ENTRIES
    if left <= 0:
        return handles
    gap = Line2D([], [], linestyle="none", label=f"… {left + 1:,} more")
    return [*handles[: _MOST_ENTRIES - 9], gap, *handles[-8:]]


def _is_free(ax: "Axes", legend: Any) -> bool:
    """Tell whether a legend beside Axes lies on the paper and on no other Axes, where nothing makes room."""
    figure: Any = ax.get_figure(root=True)
    place, own = legend.get_window_extent(), ax.get_window_extent()
    others = [other.get_window_extent() for other in figure.axes]
    return place.x1 <= figure.bbox.x1 and not any(
        place.overlaps(other) for other in others if not own.overlaps(other)
    )


def _inside_legend(ax: "Axes", handles: list[Any]) -> None:
    """Put a small legend where it hides least of the data; the first entries, if there is no room for all."""
    paper = "#F4F4F4" if ink(ax) == INK else "#333333"
    ax.apply_aspect()  # a square picture is narrower than its place
    # Labels that are still to come may take a part of the Axes.
    room = 0.85 * ax.get_window_extent().width, 0.8 * ax.get_window_extent().height
    count, letters = len(handles), 36
    while True:
        left = len(handles) - count
        legend = ax.legend(
            handles=handles[:count],
            labels=short_names([handle.get_label() for handle in handles], letters)[:count],
            loc="best",
            fontsize="xx-small",
            labelspacing=0.25,
            handlelength=1.6,
            borderaxespad=0.3,
            frameon=True,
            facecolor=paper,
            labelcolor=ink(ax),
            edgecolor="none",
            framealpha=0.85,
            title=f"and {left} more" if left else None,
            title_fontsize="xx-small",
        )
        taken = legend.get_window_extent()
        if taken.width > room[0] and letters > 12:
            letters -= 4
        elif taken.height > room[1] and count > 1:
            count -= 1
        else:
            return


def shortened(name: str, most: int) -> str:
    """Cut a name that nobody would read as a whole, in its middle: often names differ at their ends only.

    >>> shortened("a rather long name, number 7", 18)
    'a rather lo…mber 7'
    """
    end = most // 3
    return name if len(name) <= most else f"{name[: most - 1 - end]}…{name[-end:]}"


def short_names(labels: Any, most: int) -> list[str]:
    """Cut long names, but not where they differ.

    >>> short_names([f"photographs of wild {kind} in their habitat" for kind in ("bees", "ants")], 28)
    ['…bees…', '…ants…']
    """
    whole = [str(label) for label in labels]
    names = [shortened(name, most) for name in whole]
    for cut in set(names):
        alike = sorted({name for name, short in zip(whole, names, strict=True) if short == cut})
        if len(alike) > 1:  # what differs was cut out: cut what all of these have in common
            start, end = _shared(alike), _shared([name[::-1] for name in alike])
            for place, name in enumerate(whole):
                if name in alike:
                    names[place] = shortened(f"…{name[start : max(start, len(name) - end)]}…", most)
    return names


def class_names(labels: Any) -> tuple[list[str], float]:
    """Return names of classes beside a matrix, and the inches that those beyond a few letters take."""
    names = short_names(labels, 28)
    return names, _LETTER_INCHES * max(0, max(len(name) for name in names) - 6)


def _shared(names: list[str]) -> int:
    """Return with how many letters all names begin: whole words, if there are any."""
    first, last = min(names), max(names)
    differing = (place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    same = next(differing, min(len(first), len(last)))
    return first[:same].rfind(" ") + 1 or same


def label_axes(ax: "Axes", labels: tuple[str, str], most: int = 44) -> None:
    """Name the axes, long names in several lines, none of them longer than small Axes."""
    figure: Any = ax.get_figure(root=True)
    extent = ax.get_window_extent()
    for label, axis, pixels in zip(labels, (ax.xaxis, ax.yaxis), (extent.width, extent.height), strict=True):
        letter = _LETTER_WIDTH * float(axis.label.get_fontsize()) * figure.dpi / 72
        room = most if figure.get_label() == _OWN else max(12, min(most, int(pixels / letter)))
        axis.set_label_text("\n".join(line for part in label.splitlines() for line in wrap(part, room)))


def final_step(model: Any) -> Any:
    """Return the estimator at the end of a pipeline, or the model itself."""
    steps = getattr(model, "steps", None)
    return final_step(steps[-1][1]) if isinstance(steps, list) and steps else model
