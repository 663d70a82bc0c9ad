"""A classifier's decisions and scores on a grid of the plane, and how they are drawn."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import INK, class_style
from separatrix.plot._plane import Plane, Samples, on_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[Any]
_PADDING = 0.06


@dataclass(frozen=True, eq=False)
class Field:
    """Decisions and scores on the grid ``u × v``: the row is v, the column u."""

    u: NDArray[np.float64]
    v: NDArray[np.float64]
    region: Array
    """Number of the class decided for, of shape (v, u)."""
    scores: Array | None
    """The decision function, of shape (v, u) or (v, u, classes); None where the model has none."""


def grid_lines(flat: NDArray[np.float64], resolution: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return grid lines that enclose the points with a little room around them."""
    if resolution < 2:
        raise ValueError(f"resolution must be at least 2 grid points, not {resolution!r}")
    low, high = flat.min(axis=0), flat.max(axis=0)
    pad = np.where(high > low, (high - low) * _PADDING, 1.0)
    u, v = (np.linspace(low[axis] - pad[axis], high[axis] + pad[axis], resolution) for axis in (0, 1))
    return u, v


def survey(
    model: Any, samples: Samples, plane: Plane, flat: NDArray[np.float64], classes: list[Any], resolution: int
) -> Field:
    """Ask the model for its decisions, and its scores if it has any, on the plane around the points."""
    u, v = grid_lines(flat, resolution)
    coordinates = np.stack(np.meshgrid(u, v), axis=-1).reshape(-1, 2)
    decided = on_grid(model.predict, plane, samples, coordinates)
    # Dictionary, not searchsorted: labels may be of a kind that does not sort against the grid's.
    position = {label: index for index, label in enumerate(classes)}
    region = np.array([position[label] for label in decided.tolist()]).reshape(len(v), len(u))
    scores = None
    if hasattr(model, "decision_function"):
        scores = on_grid(model.decision_function, plane, samples, coordinates)
        scores = scores.reshape(len(v), len(u), *scores.shape[1:])
    return Field(u, v, region, scores)


def draw_regions(ax: "Axes", field: Field, n_classes: int) -> None:
    """Tint the plane by the class decided for."""
    from matplotlib.colors import ListedColormap

    u, v = field.u, field.v
    tints = ListedColormap([class_style(index).tint for index in range(n_classes)])
    ax.imshow(
        field.region,
        origin="lower",
        extent=(u[0], u[-1], v[0], v[-1]),
        aspect="auto",
        cmap=tints,
        vmin=-0.5,
        vmax=n_classes - 0.5,
        interpolation="nearest",
        zorder=0,
    )
    ax.set_xlim(u[0], u[-1])
    ax.set_ylim(v[0], v[-1])


def draw_edges(ax: "Axes", field: Field) -> list[Any]:
    """Draw the lines between regions, from scores where these explain the decisions; return its legend."""
    from matplotlib.lines import Line2D

    scores, region = field.scores, field.region
    if scores is not None and scores.ndim == 2:
        heights = [scores]
    elif (
        scores is not None
        and scores.shape[-1] > region.max()
        and (scores.argmax(axis=-1) == region).mean() > 0.999
    ):
        ordered = np.sort(scores, axis=-1)
        best, second = ordered[..., -1:], ordered[..., -2:-1]
        lead = scores - np.where(scores == best, second, best)  # of each class over the best other class
        heights = [_blurred(lead[..., index]) for index in range(scores.shape[-1])]
    else:
        heights = [_blurred(np.where(region == index, 0.5, -0.5)) for index in np.unique(region)]
    seen = False
    for height in heights:
        if height.min() < 0 < height.max():
            seen |= visible(ax.contour(field.u, field.v, height, levels=[0.0], colors=INK, linewidths=1.6))
    return [Line2D([], [], color=INK, linewidth=1.6, label="boundary")] if seen else []


def _blurred(height: Array) -> Array:
    """Take the steps out of a line: decisions and votes jump, and know an edge only to a grid cell."""
    from scipy.ndimage import gaussian_filter

    smooth: Array = gaussian_filter(height.astype(np.float64), 1.0)
    return smooth


def draw_levels(ax: "Axes", field: Field, levels: list[float], name: str) -> tuple[list[Any], Any]:
    """Draw dashed lines of a single score; return a legend entry, if any line is seen, and the lines."""
    from matplotlib.lines import Line2D

    lines = ax.contour(
        field.u, field.v, field.scores, levels=sorted(levels), colors=INK, linewidths=1.0, linestyles="--"
    )
    if not visible(lines):
        return [], lines
    return [Line2D([], [], color=INK, linewidth=1.0, linestyle="--", label=name)], lines


def draw_contours(ax: "Axes", field: Field, levels: Any) -> list[Any]:
    """Draw labelled lines of equal score: of the one score, or of the winner's lead over the second."""
    from matplotlib.lines import Line2D

    if field.scores is None:
        raise ValueError("contours needs a model with decision_function; leave contours out")
    values, name = field.scores, "equal score"
    if values.ndim == 3:
        ordered = np.sort(values, axis=-1)
        values, name = ordered[..., -1] - ordered[..., -2], "equal lead of the best score"
    wanted = 9 if levels is True else sorted(float(level) for level in levels)
    lines = ax.contour(
        field.u, field.v, values, levels=wanted, colors="#555555", linewidths=0.7, linestyles="-"
    )
    if not visible(lines):
        return []
    ax.clabel(lines, fontsize=7, fmt="%g")
    return [Line2D([], [], color="#555555", linewidth=0.7, label=name)]


def visible(contours: Any) -> bool:
    """Tell whether a contour set drew anything."""
    return any(len(path.vertices) > 0 for path in contours.get_paths())


def hatch(ax: "Axes", field: Field, where: Array, label: str) -> list[Any]:
    """Hatch a part of the plane; return its legend entry."""
    from matplotlib.patches import Patch

    if not where.any():
        return []
    # The grey shows parts that are too small to hold a hatch.
    marked = ax.contourf(
        field.u, field.v, where.astype(float), levels=[0.5, 1.5], colors=["#00000022"], hatches=["////"]
    )
    marked.set_edgecolor("#00000055")
    marked.set_linewidth(0.0)
    return [Patch(facecolor="#00000022", edgecolor="#00000077", hatch="////", label=label)]


def disputed(estimator: Any, scores: Array | None) -> Array | None:
    """Return where the answers of the columns contradict each other; None where they cannot.

    One-vs-rest: no score, or more than one, says yes. One-vs-one: several classes share the most votes, which
    are the whole part of the decision function.
    """
    if scores is None or scores.ndim != 3:
        return None
    coding = getattr(estimator, "multiclass", None)
    if coding == "ovr":
        return np.asarray((scores > 0).sum(axis=-1) != 1)
    if coding == "ovo":
        votes = np.rint(scores)
        return np.asarray((votes == votes.max(axis=-1, keepdims=True)).sum(axis=-1) > 1)
    return None
