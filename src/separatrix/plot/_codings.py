"""Three ways to more than two classes, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._boundary import DISPUTED
from separatrix.plot._canvas import final_step, label_axes, legend_panel, new_figure, short_names
from separatrix.plot._display import Display
from separatrix.plot._field import Field, disputed, draw_edges, draw_regions, hatch, survey
from separatrix.plot._plane import Plane, find_plane, read_samples
from separatrix.plot._points import check_labels, choose_points, draw_points, thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CODINGS = {"ovr": "one-vs-rest", "ovo": "one-vs-one", "joint": "joint"}


@dataclass(frozen=True, eq=False)
class CodingPanel:
    """One coding: the fitted model, its regions, where they are ambiguous, and its training accuracy."""

    name: str
    model: Any
    field: Field
    disputed: NDArray[Any] | None
    accuracy: float


@dataclass(eq=False)
class CodingsDisplay(Display):
    """Regions of one-vs-rest, one-vs-one and joint models of the same data, ambiguous ground hatched.

    Made by :meth:`from_estimator`; `codings` is the short form.

    Parameters
    ----------
    panels : list of CodingPanel
        One per coding.
    plane : Plane
        The plane of the pictures.
    points : ndarray of shape (n, 2)
        Coordinates of the samples on it.
    truth : ndarray of shape (n,)
        True classes.
    classes : list
        All classes.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        One per coding.

    Examples
    --------
    >>> from separatrix.plot import CodingsDisplay
    >>> from separatrix import Perceptron
    >>> X, y = [[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [1.0, 0.0], [4.0, 1.0], [1.0, 4.0]], [0, 1, 2, 0, 1, 2]
    >>> display = CodingsDisplay.from_estimator(Perceptron(), X, y, resolution=20)
    >>> [panel.name for panel in display.panels]
    ['ovr', 'ovo', 'joint']
    """

    panels: list[CodingPanel]
    plane: Plane
    points: NDArray[np.float64]
    truth: NDArray[Any]
    classes: list[Any]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        ax: "Sequence[Axes] | None" = None,
        codings: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        directions: Any = None,
        resolution: int = 200,
    ) -> "CodingsDisplay":
        """Fit the estimator with each coding and draw it; see `codings` for the parameters.

        Returns
        -------
        CodingsDisplay
        """
        samples = read_samples(X)
        truth = check_labels(y, samples.rows.shape[0])
        classes = list(np.unique(truth))
        if len(classes) < 3:
            raise ValueError(f"codings differ from three classes on; y holds {len(classes)}")
        models = _fitted(estimator, X, y, codings)
        # One plane for all, so that they can be compared; chosen without a model, whose boundaries differ.
        plane = find_plane(samples, names, None, directions)
        flat = plane.coordinates(samples.rows)
        panels = []
        for name, model in models.items():
            field = survey(model, samples, plane, flat, classes, resolution)
            right = float(np.mean(np.asarray(model.predict(X)) == truth))
            panels.append(CodingPanel(name, model, field, disputed(final_step(model), field.scores), right))
        return cls(panels, plane, flat, truth, classes).plot(ax)

    def plot(self, ax: "Sequence[Axes] | None" = None) -> "CodingsDisplay":
        """Draw.

        Parameters
        ----------
        ax : sequence of matplotlib Axes, optional
            Where, one for each coding; a new figure without it.

        Returns
        -------
        CodingsDisplay
        """
        count = len(self.panels)
        if ax is None:
            figure = new_figure(3.3 * count, 3.9)
            self.axes_: list[Axes] = list(np.ravel(figure.subplots(1, count, sharex=True, sharey=True)))
        else:
            self.axes_ = list(ax)
            if len(self.axes_) != count:
                raise ValueError(
                    f"ax must hold one Axes for each of the {count} codings, not {len(self.axes_)}"
                )
        self._axes(self.axes_[0], 0.0, 0.0)
        self._own_figure = ax is None
        drawn = choose_points(self.truth, len(self.points), 1500)
        legend: dict[str, Any] = {}
        for place, panel in zip(self.axes_, self.panels, strict=True):
            draw_regions(place, panel.field, len(self.classes))
            handles = draw_edges(place, panel.field)
            doubtful = 0.0
            if panel.disputed is not None:
                handles += hatch(place, panel.field, panel.disputed, DISPUTED[panel.name])
                doubtful = float(panel.disputed.mean())
            handles = draw_points(place, self.points, self.truth, drawn, self.classes) + handles
            legend |= {handle.get_label(): handle for handle in handles}
            place.set_title(
                f"{CODINGS[panel.name]}: {panel.accuracy:.1%} right\n{doubtful:.1%} of the plane ambiguous",
                fontsize="medium",
            )
            label_axes(place, self.plane.labels, 30)
            if place is not self.axes_[0]:
                place.set_ylabel("")
        # Hatches look alike, and each panel's title tells which coding it is: one entry is enough.
        both = [legend.pop(name) for name in DISPUTED.values() if name in legend]
        if both:
            said = " / ".join(handle.get_label() for handle in both)
            both[0].set_label(said)
            legend[said] = both[0]
        where: Any = "outside lower center" if ax is None else "lower center"
        names = short_names(legend, 40)
        columns = _columns(names, float(self.figure_.get_size_inches()[0]))
        self.figure_.legend(
            handles=list(legend.values()),
            labels=names,
            loc=where,
            ncols=columns,
            fontsize="small",
            **legend_panel(self.figure_),
        )
        if ax is None:  # every further line of legend and labels is added to the height
            more = -(-len(names) // columns) - 1 + self.axes_[0].get_xlabel().count("\n")
            self.figure_.set_size_inches(3.3 * count, 3.9 + 0.2 * more)
        said = thinned(drawn, len(self.points))
        if said or self.plane.remark:
            self.axes_[-1].set_xlabel(f"{self.axes_[-1].get_xlabel()}\n{said or self.plane.remark}")
        return self


def _columns(names: list[str], width: float) -> int:
    """Return how many columns a legend below may have: a letter takes about 0.075 inches, its mark 0.6."""
    for columns in range(min(len(names), 6), 1, -1):
        rows = -(-len(names) // columns)
        parts = [names[start : start + rows] for start in range(0, len(names), rows)]
        if sum(0.6 + 0.075 * max(map(len, part)) for part in parts) <= width:
            return columns
    return 1


def _fitted(estimator: Any, X: Any, y: Any, codings: Sequence[str] | None) -> dict[str, Any]:
    """Return clones of the estimator, fitted with each coding that it takes."""
    import warnings

    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning

    final = final_step(estimator)
    if "multiclass" not in final.get_params(deep=False):
        raise ValueError(
            f"{type(final).__name__} has no parameter multiclass= to choose a coding; "
            "take one that has, such as Perceptron, or draw plot.boundary"
        )
    for name in codings or ():
        if name not in CODINGS:
            raise ValueError(f"codings must be among {', '.join(CODINGS)}, not {name!r}")
    found = {}
    for name in codings or CODINGS:
        model = clone(estimator)
        final_step(model).set_params(multiclass=name)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found[name] = model.fit(X, y)
        except ValueError:
            if codings is not None:
                raise
            # A coding that nobody asked for by name and that the estimator does not have is left out.
    if not found:
        raise ValueError(
            f"{type(final).__name__} could not be fitted with any coding; fit it once to see why"
        )
    return found


def codings(
    model: Any,
    X: Any,
    y: Any,
    *,
    ax: "Sequence[Axes] | None" = None,
    codings: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    directions: Any = None,
    resolution: int = 200,
) -> "list[Axes]":
    """Draw one-vs-rest, one-vs-one and joint models of the same data side by side.

    Hatched ground is ambiguous: none or several of the one-vs-rest scores claim it, or one-vs-one votes are
    equal there; the model then decides by the size of the scores. A joint model leaves nothing undecided, and
    its regions are convex.

    Parameters
    ----------
    model : classifier or pipeline
        With a parameter ``multiclass``; clones of it are fitted.
    X : array, sparse matrix or table of shape (n, d), d >= 2
        Samples.
    y : array of shape (n,)
        Their classes, three or more.
    ax : sequence of matplotlib Axes, optional
        Where to draw, one for each coding; a new figure without it.
    codings : sequence of {"ovr", "ovo", "joint"}, optional
        Which to draw; by default all that the model has.
    names : sequence of str, optional
        Names of the features.
    directions : "principal", pair of features, or array of shape (2, d), optional
        The plane to show, as in `boundary`.
    resolution : int, default=200
        Grid points along each axis.

    Returns
    -------
    list of matplotlib Axes

    Examples
    --------
    >>> from separatrix import Perceptron, plot
    >>> X, y = [[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [1.0, 0.0], [4.0, 1.0], [1.0, 4.0]], [0, 1, 2, 0, 1, 2]
    >>> len(plot.codings(Perceptron(), X, y, resolution=20))
    3
    """
    return CodingsDisplay.from_estimator(
        model, X, y, ax=ax, codings=codings, names=names, directions=directions, resolution=resolution
    ).axes_
