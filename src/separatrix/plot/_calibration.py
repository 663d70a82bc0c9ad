"""Whether probabilities mean what they say."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import (
    DASHES,
    MARKERS,
    PALETTE,
    final_step,
    ink,
    new_figure,
    outside_legend,
    short_names,
)
from separatrix.plot._display import Display
from separatrix.plot._points import check_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[Any]
# Half the width of the intervals in standard deviations: 95 %.
_Z = 1.96


@dataclass(frozen=True, eq=False)
class Reliability:
    """One class: per bin the mean probability, the share of samples of the class, and their number."""

    name: str
    probability: Array
    share: Array
    count: Array
    probabilities: Array

    @property
    def error(self) -> float:
        """Expected calibration error: mean distance of share and probability, weighted by the bins' sizes."""
        return float(np.average(np.abs(self.share - self.probability), weights=self.count))

    def intervals(self) -> Array:
        """Return how far below and above the share its 95 % interval (Wilson) reaches, of shape (2, bins)."""
        n, p = self.count, self.share
        centre = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z * np.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
        return np.asarray(np.maximum(0.0, np.stack([p - (centre - half), centre + half - p])))


@dataclass(eq=False)
class CalibrationDisplay(Display):
    """Observed shares against predicted probabilities; a model that means what it says is on the diagonal.

    Made by :meth:`from_estimator`; `calibration` is the short form.

    Parameters
    ----------
    classes : list of Reliability
        The positive class of two, or every class against the rest.

    Attributes
    ----------
    lower_ : matplotlib Axes or None
        Where the histogram of the probabilities is.

    Examples
    --------
    >>> from separatrix.plot import CalibrationDisplay
    >>> from separatrix import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> display = CalibrationDisplay.from_estimator(LogisticRegression().fit(X, y), X, y, n_bins=2)
    >>> display.classes[0].count.tolist()
    [2, 2]
    """

    classes: list[Reliability]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        ax: "Axes | None" = None,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
    ) -> "CalibrationDisplay":
        """Draw a fitted classifier; see `calibration` for the parameters.

        Returns
        -------
        CalibrationDisplay
        """
        if strategy not in ("uniform", "quantile"):
            raise ValueError(f"strategy must be 'uniform' or 'quantile', not {strategy!r}")
        if n_bins < 1:
            raise ValueError(f"n_bins must be at least 1, not {n_bins!r}")
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"{type(final_step(estimator)).__name__} has no predict_proba; wrap it in "
                "sklearn.calibration.CalibratedClassifierCV to get probabilities"
            )
        probabilities = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        truth = check_labels(y, len(probabilities))
        if truth.size == 0:
            raise ValueError("X has no samples to draw")
        names = list(np.asarray(estimator.classes_))
        if pos_label is not None and pos_label not in names:
            raise ValueError(f"pos_label={pos_label!r} is not among the classes {', '.join(map(str, names))}")
        wanted = [pos_label] if pos_label is not None else names[1:] if len(names) == 2 else names
        found = []
        for label in wanted:
            p = np.clip(probabilities[:, names.index(label)], 0.0, 1.0)
            edges = np.linspace(0, 1, n_bins + 1)
            if strategy == "quantile":
                edges = np.quantile(p, edges)
            bins = np.clip(np.searchsorted(edges[1:-1], p, side="left"), 0, n_bins - 1)
            count = np.bincount(bins, minlength=n_bins)
            filled = count > 0
            mean, share = (
                np.bincount(bins, values, n_bins)[filled] / count[filled]
                for values in (p, (truth == label).astype(np.float64))
            )
            found.append(Reliability(str(label), mean, share, count[filled], p))
        return cls(found).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "CalibrationDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure, with a histogram of the probabilities below, without it.

        Returns
        -------
        CalibrationDisplay
        """
        self.lower_: Axes | None = None
        if ax is None:
            upper, self.lower_ = new_figure(6.4, 5.2).subplots(2, 1, sharex=True, height_ratios=(3, 1))
            ax = self._axes(upper, 0.0, 0.0)
            self._own_figure = True
        else:
            ax = self._axes(ax, 0.0, 0.0)
        handles = ax.plot([0, 1], [0, 1], color=ink(ax), linewidth=0.8, linestyle=":", label="perfect")
        names = short_names([one.name for one in self.classes], 40)
        for index, one in enumerate(self.classes):
            colour, dash = PALETTE[index % len(PALETTE)], DASHES[index % len(DASHES)]
            ax.errorbar(
                one.probability,
                one.share,
                yerr=one.intervals(),
                fmt="none",
                ecolor=colour,
                elinewidth=1.0,
                capsize=2.5,
                alpha=0.7,
            )
            handles += ax.plot(
                one.probability,
                one.share,
                color=colour,
                linestyle=dash,
                linewidth=1.6,
                marker=MARKERS[index % len(MARKERS)],
                markersize=5,
                label=f"{names[index]}: mean error {one.error:.3f}",
            )
            if self.lower_ is not None:
                self.lower_.hist(
                    one.probabilities,
                    bins=40,
                    range=(0.0, 1.0),
                    histtype="step",
                    color=colour,
                    linestyle=dash,
                    linewidth=1.4,
                )
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        ax.grid(color=ink(ax), alpha=0.15, linewidth=0.6)
        ax.set_ylabel("share of the class")
        if self.lower_ is None:
            ax.set_xlabel("predicted probability")
        else:
            self.lower_.set_xlabel("predicted probability")
            self.lower_.set_ylabel("samples")
        outside_legend(ax, handles)
        return self


def calibration(
    model: Any,
    X: Any,
    y: Any,
    *,
    ax: "Axes | None" = None,
    n_bins: int = 10,
    strategy: str = "uniform",
    pos_label: Any = None,
) -> "Axes":
    """Draw the share of a class against its predicted probability, with 95 % intervals.

    Parameters
    ----------
    model : fitted classifier or pipeline
        With ``predict_proba``.
    X : array, sparse matrix or table of shape (n, d)
        Samples, best not those of the fit.
    y : array of shape (n,)
        Their true classes.
    ax : matplotlib Axes, optional
        Where to draw; without it a new figure, which also has a histogram of the probabilities.
    n_bins : int, default=10
        Bins of the probabilities.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or with equally many samples.
    pos_label : label, optional
        The class to draw. By default the second of two; of more, each.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from separatrix import LogisticRegression, plot
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> plot.calibration(LogisticRegression().fit(X, y), X, y, n_bins=2).get_ylabel()
    'share of the class'
    """
    return CalibrationDisplay.from_estimator(
        model, X, y, ax=ax, n_bins=n_bins, strategy=strategy, pos_label=pos_label
    ).ax_
