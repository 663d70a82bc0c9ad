"""Samples in the plane: which of them are drawn, and how each class looks."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import INK, class_style, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_POINTS = 5000
MOST_MARKS = 300
# However rare a class is, this many of its points are drawn.
_LEAST_OF_A_CLASS = 25


def check_labels(y: Any, count: int) -> NDArray[Any]:
    """Return the labels as an array; one per sample."""
    truth = np.asarray(y)
    if truth.shape != (count,):
        raise ValueError(f"y must have one class per row of X: shape ({count},), not {truth.shape}")
    return truth


def all_classes(model: Any, truth: NDArray[Any], predicted: NDArray[Any]) -> list[Any]:
    """Classes in the model's order, then those that it does not know."""
    seen = list(np.unique(np.asarray(getattr(model, "classes_", predicted))))
    return seen + [label for label in np.unique(truth) if label not in seen]


def choose_points(truth: NDArray[Any] | None, count: int, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Return the rows to draw: all, or `most` of them at random, with some of every class."""
    if count <= most:
        return np.arange(count)
    random = np.random.default_rng(0)
    if truth is None:
        return np.sort(random.choice(count, most, replace=False))
    classes, numbers, sizes = np.unique(truth, return_inverse=True, return_counts=True)
    least = np.minimum(sizes, min(_LEAST_OF_A_CLASS, most // len(classes)))
    share = least + np.floor((most - least.sum()) * (sizes - least) / max(1, count - least.sum())).astype(int)
    share[(sizes - share).argmax()] += most - share.sum()
    shuffled = random.permutation(count)
    # The first of each class in a random order: stable sorting keeps that order within the classes.
    by_class = shuffled[np.argsort(numbers[shuffled], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.sort(
        np.concatenate([by_class[start : start + size] for start, size in zip(starts, share, strict=True)])
    )


def point_size(count: int) -> float:
    """Return the area of a marker, smaller where there are many."""
    return float(np.clip(9000 / max(count, 1), 7, 34))


def note(ax: "Axes", *words: str) -> None:
    """Write remarks above the picture's upper left corner."""
    said = [word for word in words if word]
    if said:
        figure: Any = ax.get_figure(root=True)
        ax.text(
            0.0,
            1.01,
            "; ".join(said),
            transform=ax.transAxes,
            fontsize="small",
            color=ink(figure),
            verticalalignment="bottom",
        )


def thinned(drawn: NDArray[np.intp], count: int, marked: int = 0) -> str:
    """Say how many points are drawn, if not all, and that not all of the `marked` ones have their marks."""
    words = "" if len(drawn) == count else f"{len(drawn):,} of {count:,} points drawn"
    if marked > MOST_MARKS:
        words += f"{', ' if words else ''}marks on {MOST_MARKS} of each kind"
    return words


def choose_marks(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows that get a ring, cross or line: more than a few hundred would be a blot."""
    if len(rows) <= MOST_MARKS:
        return rows
    return np.sort(np.random.default_rng(1).choice(rows, MOST_MARKS, replace=False))


def draw_points(
    ax: "Axes", flat: NDArray[np.float64], truth: NDArray[Any], drawn: NDArray[np.intp], classes: list[Any]
) -> list[Any]:
    """Draw points with one colour and marker per class; return their legend entries."""
    from matplotlib.lines import Line2D

    size = point_size(len(drawn))
    handles = []
    for index, label in enumerate(classes):
        style = class_style(index)
        members = drawn[truth[drawn] == label]
        ax.scatter(
            flat[members, 0],
            flat[members, 1],
            s=size,
            c=style.colour,
            marker=style.marker,
            edgecolors=INK,
            linewidths=0.012 * size,
            zorder=3,
            label=str(label),
            alpha=1.0 if len(drawn) <= 1500 else 0.6,
        )  # classes drawn first show through
        handles.append(
            Line2D(
                [],
                [],
                linestyle="none",
                marker=style.marker,
                color=style.colour,
                markersize=6,
                markeredgecolor=INK,
                markeredgewidth=0.4,
                label=str(label),
            )
        )
    return handles


def ring(
    ax: "Axes", points: NDArray[np.float64], size: float, label: str, total: str, colour: str = INK
) -> list[Any]:
    """Ring points; return the legend entry, with the total, which may count points that are not drawn."""
    from matplotlib.lines import Line2D

    if len(points):
        ax.scatter(
            points[:, 0],
            points[:, 1],
            s=size * 2.6,
            facecolors="none",
            edgecolors=colour,
            linewidths=1.1 if size > 15 else 0.6,
            zorder=4,
            label=label,
        )
    return [
        Line2D(
            [],
            [],
            linestyle="none",
            marker="o",
            markersize=9,
            markerfacecolor="none",
            markeredgecolor=colour,
            label=total,
        )
    ]
