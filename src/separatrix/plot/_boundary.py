"""Decision regions of a classifier in the plane."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import final_step, label_axes, outside_legend
from separatrix.plot._display import Display
from separatrix.plot._field import (
    Field,
    disputed,
    draw_contours,
    draw_edges,
    draw_levels,
    draw_regions,
    hatch,
    survey,
)
from separatrix.plot._plane import Plane, find_plane, read_samples
from separatrix.plot._points import (
    all_classes,
    check_labels,
    choose_marks,
    choose_points,
    draw_points,
    note,
    point_size,
    ring,
    thinned,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DISPUTED = {"ovr": "claimed by none or several", "ovo": "equal votes"}


@dataclass(eq=False)
class BoundaryDisplay(Display):
    """Where a classifier decides for which class: the boundary is ``{x : f(x) = 0}``.

    Made by :meth:`from_estimator`; `boundary` is the short form.

    Parameters
    ----------
    field : Field
        Decisions and scores on a grid.
    plane : Plane
        The plane of the picture in the space of the features.
    points : ndarray of shape (n, 2)
        Coordinates of the samples on it.
    truth, predicted : ndarray of shape (n,)
        True and predicted classes.
    classes : list
        All classes, the model's first.
    disputed : ndarray of bool or None
        Where the columns of a one-vs-rest or one-vs-one model contradict each other.
    coding : str or None
        Which of the two it is.
    margin : float or None
        The score that training asked for on either side, of a model with two classes.

    Examples
    --------
    >>> from separatrix.plot import BoundaryDisplay
    >>> from separatrix import Perceptron
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 2.0]], [0, 1, 0, 1]
    >>> display = BoundaryDisplay.from_estimator(Perceptron().fit(X, y), X, y)
    >>> display.ax_.get_xlabel()
    'feature 0'
    """

    field: Field
    plane: Plane
    points: NDArray[np.float64]
    truth: NDArray[Any]
    predicted: NDArray[Any]
    classes: list[Any]
    disputed: NDArray[Any] | None = None
    coding: str | None = None
    margin: float | None = None

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
        contours: Any = None,
        resolution: int = 200,
    ) -> "BoundaryDisplay":
        """Draw a fitted classifier; see `boundary` for the parameters.

        Returns
        -------
        BoundaryDisplay
        """
        samples = read_samples(X)
        count = samples.rows.shape[0]
        truth = check_labels(y, count)
        plane = find_plane(samples, names, estimator, directions)
        predicted = np.asarray(estimator.predict(X))
        classes = all_classes(estimator, truth, predicted)
        flat = plane.coordinates(samples.rows)
        field = survey(estimator, samples, plane, flat, classes, resolution)
        final = final_step(estimator)
        margin: Any = getattr(final, "margin", None)
        known = isinstance(margin, (int, float)) and margin > 0
        return cls(
            field,
            plane,
            flat,
            truth,
            predicted,
            classes,
            disputed(final, field.scores),
            getattr(final, "multiclass", None),
            float(margin) if known else None,
        ).plot(ax, contours)

    def plot(self, ax: "Axes | None" = None, contours: Any = None) -> "BoundaryDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure without it.
        contours : bool or sequence of float, optional
            Lines of equal score as well.

        Returns
        -------
        BoundaryDisplay
        """
        ax = self._axes(ax, 6.4, 4.4)
        field, count = self.field, len(self.points)
        draw_regions(ax, field, len(self.classes))
        handles: list[Any] = []
        if contours is not None and contours is not False:
            handles += draw_contours(ax, field, contours)
        handles += draw_edges(ax, field)
        if self.margin is not None and field.scores is not None and field.scores.ndim == 2:
            handles += draw_levels(
                ax, field, [-self.margin, self.margin], f"score = ±{self.margin:g} (margin)"
            )[0]
        if self.disputed is not None:
            handles += hatch(ax, field, self.disputed, DISPUTED[str(self.coding)])
        drawn = choose_points(self.truth, count)
        wrong = self.truth != self.predicted
        marks = draw_points(ax, self.points, self.truth, drawn, self.classes)
        if wrong.any():
            marks += ring(
                ax,
                self.points[choose_marks(drawn[wrong[drawn]])],
                point_size(len(drawn)),
                "misclassified",
                f"misclassified ({wrong.sum():,} of {count:,})",
            )
        note(ax, thinned(drawn, count, int(wrong[drawn].sum())), self.plane.remark)
        label_axes(ax, self.plane.labels)
        outside_legend(ax, marks + handles, regions=True)
        return self


def boundary(
    model: Any,
    X: Any,
    y: Any,
    *,
    ax: "Axes | None" = None,
    names: Sequence[str] | None = None,
    directions: Any = None,
    contours: Any = None,
    resolution: int = 200,
) -> "Axes":
    """Draw where a classifier decides for which class: the boundary is ``{x : f(x) = 0}``.

    The solid line is the boundary, dashed lines are the scores ``f(x) = -margin`` and ``+margin`` of a model
    with two classes that was trained with a margin. In a model of more classes, hatching shows where the
    columns contradict each other: none or several of one-vs-rest claim a point, or votes of one-vs-one are
    equal. Points are drawn with one colour and marker per class; those the model gets wrong are ringed.

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
    directions : "principal", pair of features, or array of shape (2, d), optional
        The plane to show: along the two directions of largest variance; along two features, by number or
        name, with the others at their mean; or along two given vectors. Chosen as above without it.
    contours : bool or sequence of float, optional
        True: lines of equal score (of more than two classes: of the lead of the best score); or the levels.
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
    return BoundaryDisplay.from_estimator(
        model, X, y, ax=ax, names=names, directions=directions, contours=contours, resolution=resolution
    ).ax_
