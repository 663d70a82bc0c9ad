"""Weights and margin width along a path of C."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.plot._canvas import DASHES, PALETTE, final_step, ink, outside_legend
from separatrix.plot._display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Weights with a name and a colour of their own; the others are thin and grey.
_NAMED = 7


@dataclass
class PathDisplay(Display):
    """Weights of one column, and the width of its margin, against ``C``.

    Made by `from_estimator`, which fits the path, or by `from_path`, which takes one.

    Attributes
    ----------
    path : CPath
        The fits.
    column : int
        Which column (class, or pair of classes) is drawn.
    ax_, figure_ : matplotlib Axes and Figure
        Where the weights were drawn last.

    Examples
    --------
    >>> import separatrix as sx
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> display = PathDisplay.from_estimator(sx.LinearSVC(), X, y == 0, Cs=[0.01, 1.0, 100.0])
    >>> display.ax_.get_xscale()
    'log'
    """

    path: Any
    column: int = 0

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        Cs: Sequence[float] | int = 20,
        column: int = 0,
        ax: "Axes | None" = None,
    ) -> "PathDisplay":
        """Fit the estimator for a row of values of ``C`` and draw it.

        Parameters
        ----------
        estimator : LinearSVC or LogisticRegression
            Its parameters but ``C`` count; it need not be fitted, and stays as it is.
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.
        y : array-like of shape (n,)
            Labels.
        Cs : sequence of float or int, default=20
            Values of ``C``; a number means so many from 1e-4 to 1e4.
        column : int, default=0
            Which column (class, or pair of classes) to draw.
        ax : matplotlib Axes, optional
            Where to draw, as in `path`.

        Returns
        -------
        PathDisplay

        Examples
        --------
        >>> from separatrix import LinearSVC, plot
        >>> X, y = [[-1.0, 0.0], [0.5, 1.0], [1.0, 0.0]], [0, 1, 1]
        >>> display = plot.PathDisplay.from_estimator(LinearSVC(), X, y, Cs=[0.1, 1.0, 10.0])
        >>> display.path.Cs.tolist(), display.ax_.get_ylabel()
        ([0.1, 1.0, 10.0], 'weight')
        """
        model = final_step(estimator)
        if model is not estimator or not hasattr(model, "path"):
            raise TypeError(
                "a path over C is fitted for LinearSVC and LogisticRegression themselves, not "
                f"for {type(estimator).__name__}; transform the data before"
            )
        own = ("C", "warm_start")  # what the path itself decides
        parameters = {name: value for name, value in model.get_params().items() if name not in own}
        return cls.from_path(type(model).path(X, y, Cs, **parameters), column=column, ax=ax)

    @classmethod
    def from_path(cls, result: Any, *, column: int = 0, ax: "Axes | None" = None) -> "PathDisplay":
        """Draw what ``LinearSVC.path`` or ``LogisticRegression.path`` returned."""
        count = result.coefs.shape[1]
        if not -count <= column < count:
            raise ValueError(f"column={column} does not exist; there are {count}, numbered from 0.")
        return cls(result, column).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "PathDisplay":
        """Draw into Axes, or into a new figure, and return the display."""
        weights = self.path.coefs[:, self.column]
        own = ax is None
        if ax is None:
            ax, lower = self._two_panels(6.8, 5.2)
        else:
            self._axes(ax, 6.8, 5.2)
            lower = ax.twinx()
        handles = _draw_weights(ax, self.path, weights)
        width = _draw_margins(lower, self.path.Cs, self.path.margins[:, self.column])
        ax.set_xlabel("C")
        if own:
            ax.tick_params(labelbottom=False)
            ax.xaxis.label.set_visible(False)
            lower.set_xlabel("C: less penalty to the right")
            outside_legend(lower, [width])
            outside_legend(ax, handles)
        else:
            outside_legend(ax, [*handles, width], second_axis=True)
        return self


def _draw_weights(ax: "Axes", result: Any, weights: Any) -> list[Any]:
    """Draw a line for each weight; return those that the legend names, the largest first."""
    order = np.argsort(-np.abs(weights).max(axis=0), kind="stable")
    handles: list[Any] = []
    for rank, feature in reversed(list(enumerate(order))):
        named = rank < _NAMED
        name = f"feature {feature}" if result.features is None else result.features[feature]
        colour = PALETTE[rank % len(PALETTE)] if named else "0.75"
        (line,) = ax.plot(
            result.Cs,
            weights[:, feature],
            color=colour,
            linestyle=DASHES[rank % len(DASHES)] if named else "-",
            linewidth=1.8 if named else 0.8,
            zorder=3 - 0.01 * rank,
            label=name,
        )
        if named:
            handles.insert(0, line)
    if len(order) > _NAMED:
        ax.plot([], [], color="0.75", linewidth=0.8)
        handles.append(ax.get_lines()[-1])
        handles[-1].set_label(f"{len(order) - _NAMED} others")
    ax.axhline(0.0, color=ink(ax), linewidth=0.6, alpha=0.5, zorder=0)
    ax.set_xscale("log")
    ax.set_ylabel("weight")
    return handles


def _draw_margins(ax: "Axes", Cs: Any, margins: Any) -> Any:
    shown = np.isfinite(margins)
    (line,) = ax.plot(
        Cs[shown],
        margins[shown],
        color=ink(ax),
        linewidth=1.8,
        marker="o",
        markersize=3.5,
        label="margin width 2/‖w‖",
    )
    if shown.any():
        ax.set_yscale("log")
    ax.set_ylabel("margin width (log scale)")
    return line


def path(result: Any, *, column: int = 0, ax: "Axes | None" = None) -> "Axes":
    """Draw the weights of one column, and the width of its margin, against ``C``.

    Parameters
    ----------
    result : CPath
        What ``LinearSVC.path`` or ``LogisticRegression.path`` returned.
    column : int, default=0
        Which column (class, or pair of classes) to draw.
    ax : matplotlib Axes, optional
        Where to draw the weights, with the margin width on a second axis to the right. Without it, a new
        figure has the one above and the other below.

    Returns
    -------
    matplotlib Axes
        The axes with the weights.

    Examples
    --------
    >>> from separatrix import plot
    >>> from separatrix.models.linear_svm import LinearSVC
    >>> result = LinearSVC.path([[-1.0, 0.0], [0.5, 1.0], [1.0, 0.0]], [0, 1, 1], [0.1, 1.0, 10.0])
    >>> plot.path(result).get_ylabel()
    'weight'
    """
    return PathDisplay.from_path(result, column=column, ax=ax).ax_
