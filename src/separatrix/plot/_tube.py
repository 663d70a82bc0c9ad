"""The tube of a support vector regression."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import INK, PALETTE, final_step, ink, label_axes, outside_legend
from separatrix.plot._display import Display
from separatrix.plot._plane import read_samples
from separatrix.plot._points import choose_marks, choose_points, note, point_size, ring, thinned
from separatrix.plot._support import support_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ON = 1e-3


@dataclass(eq=False)
class TubeDisplay(Display):
    r"""The tube ``|y − f(x)| ≤ ε`` of a regression, its support vectors and the slacks outside it.

    Made by :meth:`from_estimator`; `tube` is the short form.

    Parameters
    ----------
    position : ndarray of shape (n,)
        Where each sample stands from left to right: its one feature, or its prediction.
    target, predicted : ndarray of shape (n,)
        ``y`` and ``f(x)``.
    epsilon : float
        Half the height of the tube.
    line : ndarray of shape (2, m)
        The curve ``f``: positions and values.
    labels : tuple of str
        Names of the axes.
    support : ndarray of int or None
        Rows that are support vectors; None where the model does not tell.

    Attributes
    ----------
    slacks : ndarray of shape (n,)
        ``max(0, |y − f(x)| − ε)``.

    Examples
    --------
    >>> from separatrix.plot import TubeDisplay
    >>> from sklearn.svm import SVR
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0]
    >>> display = TubeDisplay.from_estimator(SVR(kernel="linear", epsilon=0.5, C=100).fit(X, y), X, y)
    >>> bool((display.slacks < 1e-3).all())
    True
    """

    position: NDArray[np.float64]
    target: NDArray[np.float64]
    predicted: NDArray[np.float64]
    epsilon: float
    line: NDArray[np.float64]
    labels: tuple[str, str]
    support: NDArray[np.intp] | None = None

    def __post_init__(self) -> None:
        distance = np.abs(self.target - self.predicted)
        self.slacks: NDArray[np.float64] = np.maximum(0.0, distance - self.epsilon)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        ax: "Axes | None" = None,
        names: Sequence[str] | None = None,
        epsilon: float | None = None,
        resolution: int = 400,
    ) -> "TubeDisplay":
        """Draw a fitted regression; see `tube` for the parameters.

        Returns
        -------
        TubeDisplay
        """
        if epsilon is None:
            final = final_step(estimator)
            own = final.get_params(deep=False) if hasattr(final, "get_params") else vars(final)
            epsilon = getattr(final, "epsilon_", own.get("epsilon"))
            if epsilon is None:
                raise ValueError(
                    f"{type(final).__name__} has no epsilon; give half the tube's height, epsilon="
                )
        if not float(epsilon) >= 0:
            raise ValueError(f"epsilon must not be negative, not {epsilon!r}")
        samples = read_samples(X)
        count, features = samples.rows.shape
        if count == 0:
            raise ValueError("X has no samples to draw")
        target = np.asarray(y, dtype=np.float64)
        if target.shape != (count,):
            raise ValueError(f"y must have one number per row of X: shape ({count},), not {target.shape}")
        if names is None:
            names = samples.names
        elif len(names) != features:
            raise ValueError(f"names must name each of the {features} features; it has {len(names)} entries")
        predicted = np.asarray(estimator.predict(X), dtype=np.float64)
        if features == 1:
            dense = samples.rows.toarray() if hasattr(samples.rows, "toarray") else samples.rows
            position = np.asarray(dense, dtype=np.float64)[:, 0]
            low, high = position.min(), position.max()
            pad = 0.04 * (high - low) or 1.0
            u = np.linspace(low - pad, high + pad, max(2, resolution))
            line = np.stack([u, np.asarray(estimator.predict(samples.wrap(u[:, None])), dtype=np.float64)])
            labels = (str(names[0]) if names is not None else "feature 0", "target")
        else:
            position = predicted
            pad = 0.04 * np.ptp(predicted) or 1.0
            ends = np.array([predicted.min() - pad, predicted.max() + pad])
            line, labels = np.stack([ends, ends]), ("prediction f(x)", "target")
        return cls(
            position, target, predicted, float(epsilon), line, labels, support_rows(estimator, X, count)
        ).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "TubeDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure without it.

        Returns
        -------
        TubeDisplay
        """
        from matplotlib.collections import LineCollection
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        ax = self._axes(ax, 6.8, 4.2)
        (u, f), line = self.line, ink(ax)
        ax.fill_between(u, f - self.epsilon, f + self.epsilon, color=PALETTE[4], alpha=0.35, linewidth=0)
        for edge in (-self.epsilon, self.epsilon):
            ax.plot(u, f + edge, color=line, linewidth=0.9, linestyle="--", zorder=4)
        ax.plot(u, f, color=line, linewidth=1.8, zorder=4)  # many points would hide it
        count = len(self.target)
        drawn = choose_points(None, count)
        size = point_size(len(drawn))
        ax.scatter(
            self.position[drawn],
            self.target[drawn],
            s=size,
            c=PALETTE[0],
            marker="o",
            edgecolors=INK,
            linewidths=0.012 * size,
            zorder=3,
            label="samples",
        )
        handles: list[Any] = [
            Line2D(
                [],
                [],
                linestyle="none",
                marker="o",
                color=PALETTE[0],
                markersize=6,
                markeredgecolor=INK,
                markeredgewidth=0.4,
                label="samples",
            )
        ]
        points = np.stack([self.position, self.target], axis=1)
        if self.support is not None:
            held, kind = np.isin(np.arange(count), self.support), "support vectors"
        else:
            distance = np.abs(self.target - self.predicted)
            held, kind = distance >= self.epsilon * (1 - _ON), "on or outside the tube"
        if held.any():
            ringed = choose_marks(drawn[held[drawn]])
            handles += ring(ax, points[ringed], size, kind, f"{kind} ({held.sum():,})", line)
        outside = self.slacks > _ON * (self.epsilon or 1.0)
        rows = choose_marks(drawn[outside[drawn]])
        if outside.any():
            rim = self.predicted + np.sign(self.target - self.predicted) * self.epsilon
            ways = np.stack([points[rows], np.stack([self.position[rows], rim[rows]], axis=1)], axis=1)
            ax.add_collection(
                LineCollection(
                    list(ways),
                    colors=PALETTE[5],
                    zorder=2.5,
                    label="slack",
                    linewidths=1.1 if len(rows) < 200 else 0.5,
                )
            )
            handles.append(
                Line2D(
                    [],
                    [],
                    color=PALETTE[5],
                    linewidth=1.4,
                    label=f"slack ({outside.sum():,}), sum {self.slacks.sum():.3g}",
                )
            )
        handles += [
            Line2D([], [], color=line, linewidth=1.8, label="prediction f(x)"),
            Patch(
                facecolor="#56B4E959",
                edgecolor=line,
                linestyle="--",
                label=f"tube: within ±{self.epsilon:.3g}",
            ),
        ]
        ax.set_xlim(u[0], u[-1])
        label_axes(ax, self.labels)
        note(ax, thinned(drawn, count, int(held[drawn].sum())))
        outside_legend(ax, handles)
        return self


def tube(
    model: Any,
    X: Any,
    y: Any,
    *,
    ax: "Axes | None" = None,
    names: Sequence[str] | None = None,
    epsilon: float | None = None,
    resolution: int = 400,
) -> "Axes":
    r"""Draw a regression with its tube ``|y − f(x)| ≤ ε``, support vectors and slacks.

    With one feature the picture shows targets and prediction over it. With more, targets stand over their
    predictions: the tube is then a band along the diagonal, and every sample keeps its distance to it.

    Parameters
    ----------
    model : fitted regressor or pipeline
        Such as ``SVR``.
    X : array, sparse matrix or table of shape (n, d)
        Samples to draw, best the training set.
    y : array of shape (n,)
        Their targets.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.
    names : sequence of str, optional
        Names of the features.
    epsilon : float, optional
        Half the height of the tube; by default the model's.
    resolution : int, default=400
        Points of the curve.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> from separatrix import plot
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0]
    >>> plot.tube(SVR(epsilon=0.5).fit(X, y), X, y).get_ylabel()
    'target'
    """
    return TubeDisplay.from_estimator(
        model, X, y, ax=ax, names=names, epsilon=epsilon, resolution=resolution
    ).ax_
