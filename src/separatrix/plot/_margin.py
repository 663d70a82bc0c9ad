"""The margin of a classifier with two classes: support vectors and slacks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import INK, PALETTE, final_step, label_axes, outside_legend
from separatrix.plot._display import Display
from separatrix.plot._field import Field, draw_edges, draw_levels, draw_regions, survey
from separatrix.plot._plane import Plane, find_plane, mean_of, read_samples, score_gradient
from separatrix.plot._points import (
    check_labels,
    choose_marks,
    choose_points,
    draw_points,
    note,
    point_size,
    ring,
    thinned,
)
from separatrix.plot._support import support_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SLACK = PALETTE[5]
# A sample this close to its margin, as a share of it, is on the margin.
_ON = 1e-3


@dataclass(eq=False)
class MarginDisplay(Display):
    r"""The margin ``{x : |f(x)| ≤ b}``, the samples that hold it, and the slacks ``ξ = max(0, b − y f(x))``.

    Made by :meth:`from_estimator`; `margin` is the short form.

    Parameters
    ----------
    field : Field
        Decisions and scores on a grid.
    plane : Plane
        The plane of the picture.
    points : ndarray of shape (n, 2)
        Coordinates of the samples on it.
    truth : ndarray of shape (n,)
        True classes.
    classes : list
        The two classes.
    codes, scores : ndarray of shape (n,)
        ``y`` in {−1, +1} and ``f(x)``.
    level : float
        The margin ``b`` in units of the score.
    support : ndarray of int or None
        Rows that are support vectors; None where the model does not tell.
    slope : ndarray of shape (2,) or None
        Gradient of the score in the plane, where it is linear and the plane shows all of it.

    Attributes
    ----------
    slacks : ndarray of shape (n,)
        ``ξ`` of each sample.
    width : float or None
        Width ``2 b/‖w‖`` of the margin of a linear score.

    Examples
    --------
    >>> from separatrix.plot import MarginDisplay
    >>> from separatrix import Perceptron
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 2.0]], [0, 1, 0, 1]
    >>> display = MarginDisplay.from_estimator(Perceptron(margin=1.0).fit(X, y), X, y)
    >>> display.slacks.tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    field: Field
    plane: Plane
    points: NDArray[np.float64]
    truth: NDArray[Any]
    classes: list[Any]
    codes: NDArray[np.int8]
    scores: NDArray[np.float64]
    level: float
    support: NDArray[np.intp] | None = None
    slope: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        self.slacks: NDArray[np.float64] = np.maximum(0.0, self.level - self.codes * self.scores)
        self.width: float | None = None
        if self.slope is not None:
            self.width = 2.0 * self.level / float(np.linalg.norm(self.slope))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        ax: "Axes | None" = None,
        names: Sequence[str] | None = None,
        directions: Any = None,
        level: float | None = None,
        resolution: int = 200,
    ) -> "MarginDisplay":
        """Draw a fitted classifier of two classes; see `margin` for the parameters.

        Returns
        -------
        MarginDisplay
        """
        name = type(final_step(estimator)).__name__
        classes = list(np.asarray(getattr(estimator, "classes_", ())))
        if len(classes) != 2 or not hasattr(estimator, "decision_function"):
            raise ValueError(
                f"a margin is drawn for two classes and a decision_function; {name} has "
                f"{len(classes)} classes: fit it to two of them, or draw plot.boundary"
            )
        if level is None:
            own = getattr(final_step(estimator), "margin", None)
            level = float(own) if isinstance(own, (int, float)) and own > 0 else 1.0
        if not level > 0:
            raise ValueError(f"level must be a positive score, not {level!r}")
        samples = read_samples(X)
        count = samples.rows.shape[0]
        truth = check_labels(y, count)
        if not np.isin(truth, classes).all():
            raise ValueError(f"y holds {truth[~np.isin(truth, classes)][0]!s}, which {name} does not know")
        plane = find_plane(samples, names, estimator, directions)
        flat = plane.coordinates(samples.rows)
        field = survey(estimator, samples, plane, flat, classes, resolution)
        codes = np.where(truth == classes[1], 1, -1).astype(np.int8)
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        return cls(
            field,
            plane,
            flat,
            truth,
            classes,
            codes,
            scores,
            float(level),
            support_rows(estimator, X, count),
            _slope(estimator, samples, plane),
        ).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "MarginDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure without it.

        Returns
        -------
        MarginDisplay
        """
        ax = self._axes(ax, 6.8, 4.4)
        count, margins = len(self.points), self.codes * self.scores
        draw_regions(ax, self.field, 2)
        edge = draw_edges(ax, self.field)
        name = f"score = ±{self.level:g} (margin)"
        if self.width is not None:
            name = f"score = ±{self.level:g} (width {self.width:.3g})"
        band, lines = draw_levels(ax, self.field, [-self.level, self.level], name)
        drawn = choose_points(self.truth, count)
        size = point_size(len(drawn))
        handles = draw_points(ax, self.points, self.truth, drawn, self.classes)
        if self.support is not None:
            held, kind = np.isin(np.arange(count), self.support), "support vectors"
        else:
            held, kind = margins <= self.level * (1 + _ON), "on or within the margin"
        if held.any():
            rows = choose_marks(drawn[held[drawn]])
            handles += ring(ax, self.points[rows], size, kind, f"{kind} ({held.sum():,})")
        handles += self._draw_slacks(ax, drawn, lines)
        wrong = margins < 0
        # A score of exactly 0 belongs to the positive class.
        wrong |= (self.scores == 0) & (self.codes < 0)
        handles += _cross(ax, self.points[choose_marks(drawn[wrong[drawn]])], size, int(wrong.sum()))
        note(ax, thinned(drawn, count, int(held[drawn].sum())), self.plane.remark)
        label_axes(ax, self.plane.labels)
        outside_legend(ax, handles + edge + band, regions=True)
        return self

    def _draw_slacks(self, ax: "Axes", drawn: NDArray[np.intp], lines: Any) -> list[Any]:
        """Draw from each sample that misses its margin the shortest way to it."""
        from matplotlib.collections import LineCollection
        from matplotlib.lines import Line2D

        missing = self.slacks > _ON * self.level
        rows = choose_marks(drawn[missing[drawn]])
        ends = self._feet(rows, lines)
        if ends is not None and len(rows):
            ways = LineCollection(
                list(np.stack([self.points[rows], ends], axis=1)),
                colors=_SLACK,
                linewidths=1.1 if len(rows) < 200 else 0.5,
                zorder=2.5,
                label="slack",
            )
            ax.add_collection(ways, autolim=False)
        if not missing.any():
            return []
        total = f"slack ξ > 0 ({missing.sum():,}), sum {self.slacks.sum():.3g}"
        return [
            Line2D(
                [],
                [],
                color=_SLACK,
                linewidth=1.4,
                label=total,
                linestyle="-" if ends is not None else "none",
            )
        ]

    def _feet(self, rows: NDArray[np.intp], lines: Any) -> NDArray[np.float64] | None:
        """Return the nearest point of its own margin for each row; None where the plane cannot show it."""
        if self.slope is not None:
            rise = (self.codes * self.level - self.scores)[rows] / (self.slope @ self.slope)
            return np.asarray(self.points[rows] + rise[:, None] * self.slope)
        if not self.plane.exact:
            return None
        from scipy.spatial import cKDTree

        ends = self.points[rows].copy()
        unit = np.array([np.ptp(self.field.u), np.ptp(self.field.v)])  # near as the eye sees it
        for path, value in zip(lines.get_paths(), lines.levels, strict=True):
            own = np.flatnonzero(self.codes[rows] == np.sign(value))
            if len(path.vertices) and own.size:
                _, nearest = cKDTree(path.vertices / unit).query(self.points[rows[own]] / unit)
                ends[own] = path.vertices[nearest]
        return np.asarray(ends)


def _slope(model: Any, samples: Any, plane: Plane) -> NDArray[np.float64] | None:
    """Return the gradient of a linear score in the plane, if all of it lies in the plane."""
    gradient = score_gradient(model, samples, mean_of(samples))
    if gradient is None:
        return None
    slope = plane.directions @ gradient
    whole = np.allclose(slope @ plane.directions, gradient, atol=1e-8 * float(np.abs(gradient).max()))
    return np.asarray(slope) if whole else None


def _cross(ax: "Axes", points: NDArray[np.float64], size: float, total: int) -> list[Any]:
    from matplotlib.lines import Line2D

    if total == 0:
        return []
    if len(points):
        ax.scatter(
            points[:, 0],
            points[:, 1],
            s=size * 1.6,
            c=INK,
            marker="x",
            linewidths=1.2 if size > 15 else 0.7,
            zorder=5,
            label="misclassified",
        )
    return [Line2D([], [], linestyle="none", marker="x", color=INK, label=f"misclassified ({total:,})")]


def margin(
    model: Any,
    X: Any,
    y: Any,
    *,
    ax: "Axes | None" = None,
    names: Sequence[str] | None = None,
    directions: Any = None,
    level: float | None = None,
    resolution: int = 200,
) -> "Axes":
    r"""Draw the margin of a classifier, its support vectors and the slacks ``ξ = max(0, b − y f(x))``.

    The solid line is the boundary ``f(x) = 0``, the dashed ones are ``f(x) = ±b``. Rings are support vectors:
    those of the model where it names them (``support_``, if `X` is its training set), else all samples on or
    within the margin. Each sample that misses its margin is tied to it by the shortest way, and one on the
    wrong side of the boundary is crossed out. With more than two features the plane is that of `boundary`.

    Parameters
    ----------
    model : fitted classifier or pipeline
        For two classes, with ``decision_function``.
    X : array, sparse matrix or table of shape (n, d), d >= 2
        Samples to draw, best the training set.
    y : array of shape (n,)
        Their true classes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.
    names : sequence of str, optional
        Names of the features.
    directions : "principal", pair of features, or array of shape (2, d), optional
        The plane to show, as in `boundary`.
    level : float, optional
        The margin ``b``; by default the model's ``margin``, or 1, the hinge's.
    resolution : int, default=200
        Grid points along each axis.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from separatrix import plot
    >>> X, y = [[0.0, 0.0], [1.0, 0.0], [3.0, 1.0], [4.0, 1.0]], [0, 0, 1, 1]
    >>> ax = plot.margin(SVC(kernel="linear").fit(X, y), X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()][2]
    'support vectors (2)'
    """
    return MarginDisplay.from_estimator(
        model, X, y, ax=ax, names=names, directions=directions, level=level, resolution=resolution
    ).ax_
