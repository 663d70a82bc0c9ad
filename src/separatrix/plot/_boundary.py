"""Decision regions of a classifier in the plane."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import INK, class_style, final_step, new_figure, outside_legend
from separatrix.plot._plane import Plane, Samples, find_plane, on_grid, read_samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POINTS = 5000
_PADDING = 0.06


def boundary(model: Any, X: Any, y: Any, *, ax: "Axes | None" = None, names: Sequence[str] | None = None,
             resolution: int = 200) -> "Axes":
    """Draw where a classifier decides for which class: the boundary is ``{x : f(x) = 0}``.

    The solid line is the boundary, dashed lines are the scores ``f(x) = -margin`` and ``+margin`` of a model
    with two classes that was trained with a margin. In a model of more classes trained one against the rest,
    hatching shows where none or several of the classes claim a point. Points are drawn with one colour and
    marker per class; those the model gets wrong are ringed.

    With more than two features the picture shows a plane through the mean of `X`: regions are the model's
    decisions on that plane, points are projected onto it, and rings tell what the model decides for the true
    points. For two classes and a linear score the plane stands across the boundary, so that every point keeps
    its distance to it; otherwise it lies along the two directions of largest variance.

    Parameters
    ----------
    model : fitted classifier or pipeline
        Needs ``predict``; the lines are smoother with ``decision_function``.
    X : array, sparse matrix or table of shape (n, d), d >= 2
        Samples to draw, in the form the model takes.
    y : array of shape (n,)
        Their true classes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.
    names : sequence of str, optional
        Names of the features; by default those of the table's columns.
    resolution : int, default=200
        Grid points along each axis.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Perceptron
    >>> from separatrix import plot
    >>> X, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 2.0]]), ["a", "b", "a", "b"]
    >>> ax = plot.boundary(Perceptron().fit(X, y), X, y, names=["height", "width"])
    >>> ax.get_xlabel()
    'height'
    """
    if resolution < 2:
        raise ValueError(f"resolution must be at least 2 grid points, not {resolution!r}")
    samples = read_samples(X)
    truth = np.asarray(y)
    count = samples.rows.shape[0]
    if truth.shape != (count,):
        raise ValueError(f"y must have one class per row of X: shape ({count},), not {truth.shape}")
    plane = find_plane(samples, names, model)
    predicted = np.asarray(model.predict(X))
    classes = _classes(model, truth, predicted)
    if ax is None:
        ax = new_figure(6.4, 4.4).subplots()
    flat = plane.coordinates(samples.rows)
    handles = _draw_regions(ax, model, samples, plane, flat, classes, resolution)
    handles = _draw_points(ax, flat, truth, predicted, classes) + handles
    ax.set_xlabel(plane.labels[0])
    ax.set_ylabel(plane.labels[1])
    outside_legend(ax, handles)
    return ax


def _classes(model: Any, truth: NDArray[Any], predicted: NDArray[Any]) -> list[Any]:
    """Classes in the model's order, then those that it does not know."""
    seen = list(np.unique(np.asarray(getattr(model, "classes_", predicted))))
    return seen + [label for label in np.unique(truth) if label not in seen]


def _draw_regions(ax: "Axes", model: Any, samples: Samples, plane: Plane, flat: NDArray[np.float64],
                  classes: list[Any], resolution: int) -> list[Any]:
    from matplotlib.colors import ListedColormap
    from matplotlib.lines import Line2D

    low, high = flat.min(axis=0), flat.max(axis=0)
    pad = np.where(high > low, (high - low) * _PADDING, 1.0)
    u, v = (np.linspace(low[axis] - pad[axis], high[axis] + pad[axis], resolution) for axis in (0, 1))
    grid = np.stack(np.meshgrid(u, v), axis=-1)
    coordinates = grid.reshape(-1, 2)
    decided = on_grid(model.predict, plane, samples, coordinates)
    # Dictionary, not searchsorted: labels may be of a kind that does not sort against the grid's.
    position = {label: index for index, label in enumerate(classes)}
    region = np.array([position[label] for label in decided]).reshape(resolution, resolution)
    tints = ListedColormap([class_style(index).tint for index in range(len(classes))])
    ax.imshow(region, origin="lower", extent=(u[0], u[-1], v[0], v[-1]), aspect="auto", cmap=tints, vmin=-0.5,
              vmax=len(classes) - 0.5, interpolation="nearest", zorder=0)
    ax.set_xlim(u[0], u[-1])
    ax.set_ylim(v[0], v[-1])

    scores = None
    if hasattr(model, "decision_function"):
        scores = on_grid(model.decision_function, plane, samples, coordinates)
        scores = scores.reshape(resolution, resolution, *scores.shape[1:])
    handles: list[Any] = []
    if _draw_edges(ax, u, v, region, scores):
        handles.append(Line2D([], [], color=INK, linewidth=1.6, label="boundary"))
    estimator = final_step(model)
    margin = getattr(estimator, "margin", None)
    if scores is not None and scores.ndim == 2 and isinstance(margin, (int, float)) and margin > 0:
        lines = ax.contour(u, v, scores, levels=[-margin, margin], colors=INK, linewidths=1.0,
                           linestyles="--")
        if _visible(lines):
            handles.append(Line2D([], [], color=INK, linewidth=1.0, linestyle="--",
                                  label=f"score = ±{margin:g} (margin)"))
    if scores is not None and scores.ndim == 3 and getattr(estimator, "multiclass", None) == "ovr":
        handles += _hatch_disputed(ax, u, v, scores)
    return handles


def _draw_edges(ax: "Axes", u: NDArray[np.float64], v: NDArray[np.float64], region: NDArray[Any],
                scores: NDArray[Any] | None) -> bool:
    """Draw the lines between regions, from scores where these explain the decisions; tell if any is seen."""
    heights = []
    if scores is not None and scores.ndim == 2:
        heights = [scores]
    elif scores is not None and (scores.argmax(axis=-1) == region).mean() > 0.999:
        ordered = np.sort(scores, axis=-1)
        best, second = ordered[..., -1:], ordered[..., -2:-1]
        lead = scores - np.where(scores == best, second, best)  # of each class over the best other class
        heights = [_blurred(lead[..., index]) for index in range(scores.shape[-1])]
    else:
        heights = [_blurred(np.where(region == index, 0.5, -0.5)) for index in np.unique(region)]
    seen = False
    for height in heights:
        if height.min() < 0 < height.max():
            seen |= _visible(ax.contour(u, v, height, levels=[0.0], colors=INK, linewidths=1.6))
    return seen


def _blurred(height: NDArray[Any]) -> NDArray[Any]:
    """Take the steps out of a line: decisions and votes jump, and know an edge only to a grid cell."""
    from scipy.ndimage import gaussian_filter

    smooth: NDArray[Any] = gaussian_filter(height.astype(np.float64), 1.0)
    return smooth


def _visible(contours: Any) -> bool:
    return any(len(path.vertices) > 0 for path in contours.get_paths())


def _hatch_disputed(ax: "Axes", u: NDArray[np.float64], v: NDArray[np.float64],
                    scores: NDArray[Any]) -> list[Any]:
    """Mark where one-vs-rest answers contradict each other: no score, or more than one, says yes."""
    from matplotlib.patches import Patch

    disputed = (scores > 0).sum(axis=-1) != 1
    if not disputed.any():
        return []
    marked = ax.contourf(u, v, disputed.astype(float), levels=[0.5, 1.5], colors="none", hatches=["////"])
    marked.set_edgecolor("#00000030")
    marked.set_linewidth(0.0)
    return [Patch(facecolor="white", edgecolor="#00000055", hatch="////", label="claimed by none or several")]


def _draw_points(ax: "Axes", flat: NDArray[np.float64], truth: NDArray[Any], predicted: NDArray[Any],
                 classes: list[Any]) -> list[Any]:
    from matplotlib.lines import Line2D

    count = len(flat)
    wrong = truth != predicted
    drawn = np.arange(count)
    if count > _MOST_POINTS:
        drawn = np.sort(np.random.default_rng(0).choice(count, _MOST_POINTS, replace=False))
        ax.text(0.0, 1.01, f"{_MOST_POINTS:,} of {count:,} points drawn", transform=ax.transAxes,
                fontsize="small", color=INK, verticalalignment="bottom")
    size = float(np.clip(9000 / max(len(drawn), 1), 7, 34))
    handles = []
    for index, label in enumerate(classes):
        style = class_style(index)
        members = drawn[truth[drawn] == label]
        ax.scatter(flat[members, 0], flat[members, 1], s=size, c=style.colour, marker=style.marker,
                   edgecolors=INK, linewidths=0.012 * size, zorder=3, label=str(label))
        handles.append(Line2D([], [], linestyle="none", marker=style.marker, color=style.colour, markersize=6,
                              markeredgecolor=INK, markeredgewidth=0.4, label=str(label)))
    ringed = drawn[wrong[drawn]]
    if ringed.size:
        ax.scatter(flat[ringed, 0], flat[ringed, 1], s=size * 2.6, facecolors="none", edgecolors=INK,
                   linewidths=1.1 if size > 15 else 0.6, zorder=4, label="misclassified")
    if wrong.any():
        handles.append(Line2D([], [], linestyle="none", marker="o", markersize=9, markerfacecolor="none",
                              markeredgecolor=INK, label=f"misclassified ({wrong.sum():,} of {count:,})"))
    return handles
