"""Which classes a classifier takes for which."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import INK, class_names
from separatrix.plot._display import Display
from separatrix.plot._points import all_classes, check_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With more classes than this, numbers in the cells could not be read.
_MOST_NUMBERED = 20
_NORMALIZE = {
    None: "samples",
    "true": "share of the true class",
    "pred": "share of the predicted class",
    "all": "share of all samples",
}


@dataclass(eq=False)
class ConfusionMatrixDisplay(Display):
    """How many samples of each class (rows) were taken for which class (columns).

    Made by :meth:`from_estimator` or :meth:`from_predictions`; `confusion` is the short form.

    Parameters
    ----------
    confusion_matrix : ndarray of shape (n_classes, n_classes)
        Counts, or shares if normalised.
    display_labels : list
        Names of the classes.
    normalize : {"true", "pred", "all"} or None
        What the shares are of.

    Examples
    --------
    >>> from separatrix.plot import ConfusionMatrixDisplay
    >>> display = ConfusionMatrixDisplay.from_predictions(["a", "b", "b"], ["a", "a", "b"])
    >>> display.confusion_matrix.tolist()
    [[1, 0], [1, 1]]
    """

    confusion_matrix: NDArray[Any]
    display_labels: list[Any]
    normalize: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        ax: "Axes | None" = None,
        normalize: str | None = None,
        sample_weight: Any = None,
    ) -> "ConfusionMatrixDisplay":
        """Draw the predictions of a fitted classifier; see `confusion` for the parameters.

        Returns
        -------
        ConfusionMatrixDisplay
        """
        predicted = np.asarray(estimator.predict(X))
        truth = check_labels(y, len(predicted))
        return cls.from_predictions(
            truth,
            predicted,
            labels=all_classes(estimator, truth, predicted),
            ax=ax,
            normalize=normalize,
            sample_weight=sample_weight,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        labels: Any = None,
        ax: "Axes | None" = None,
        normalize: str | None = None,
        sample_weight: Any = None,
    ) -> "ConfusionMatrixDisplay":
        """Draw true and predicted classes, given as such.

        Parameters
        ----------
        y_true, y_pred : array of shape (n,)
            True and predicted classes.
        labels : sequence, optional
            Classes in the order of the rows; sorted without it.
        ax : matplotlib Axes, optional
            Where to draw; a new figure without it.
        normalize : {"true", "pred", "all"}, optional
            Draw shares of rows, columns or all instead of counts.
        sample_weight : array of shape (n,), optional
            Weights of the samples.

        Returns
        -------
        ConfusionMatrixDisplay
        """
        if normalize not in _NORMALIZE:
            raise ValueError(f"normalize must be 'true', 'pred', 'all' or None, not {normalize!r}")
        truth, predicted = np.asarray(y_true), np.asarray(y_pred)
        check_labels(predicted, len(truth))
        if truth.size == 0:
            raise ValueError("y_true has no samples to count")
        classes = list(np.unique(np.concatenate([truth, predicted]))) if labels is None else list(labels)
        position = {label: index for index, label in enumerate(np.asarray(classes).tolist())}
        try:
            cells = np.array([[position[label] for label in side.tolist()] for side in (truth, predicted)])
        except KeyError as error:
            raise ValueError(f"labels does not name the class {error.args[0]!r}") from None
        size = len(classes)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        counts = np.bincount(cells[0] * size + cells[1], weights, size * size).reshape(size, size)
        if normalize is not None:
            total = {
                "true": counts.sum(axis=1, keepdims=True),
                "pred": counts.sum(axis=0, keepdims=True),
                "all": counts.sum(),
            }[normalize]
            counts = np.divide(counts, total, out=np.zeros(counts.shape), where=np.asarray(total) > 0)
        return cls(counts, classes, normalize).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "ConfusionMatrixDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure without it.

        Returns
        -------
        ConfusionMatrixDisplay
        """
        matrix, size = np.asarray(self.confusion_matrix), len(self.display_labels)
        side = float(np.clip(1.6 + 0.55 * size, 3.4, 9.0))
        names, beside = class_names(self.display_labels)
        long = max(len(name) for name in names) > 3 and size > 2
        # Long names take their room from the paper, not from the matrix; slanted they are 0.7 times as high.
        ax = self._axes(ax, side + 1.3 + beside, side + (0.7 * beside if long else 0.0), square=True)
        largest = float(matrix.max()) if self.normalize is None else 1.0
        image = ax.imshow(matrix, cmap="Blues", vmin=0.0, vmax=largest or 1.0)
        if size <= _MOST_NUMBERED:
            small = "medium" if size <= 8 else "x-small"
            for (row, column), value in np.ndenumerate(matrix):
                ax.text(
                    column,
                    row,
                    self._cell(value),
                    horizontalalignment="center",
                    fontsize=small,
                    verticalalignment="center",
                    color="white" if value > 0.55 * largest else INK,
                )
        ticks = np.arange(size) if size <= 40 else np.linspace(0, size - 1, 20).astype(int)
        ax.set_xticks(
            ticks,
            [names[k] for k in ticks],
            rotation=45 if long else 0,
            fontsize="small",
            horizontalalignment="right" if long else "center",
            rotation_mode="anchor" if long else "default",
        )
        ax.set_yticks(ticks, [names[k] for k in ticks], fontsize="small")
        ax.set_xlabel("predicted class")
        ax.set_ylabel("true class")
        self.figure_.colorbar(image, ax=ax, label=_NORMALIZE[self.normalize], shrink=0.85)
        return self

    def _cell(self, value: float) -> str:
        if self.normalize is not None:
            return f"{value:.2f}" if value else "0"
        return f"{value:,.0f}" if value == int(value) else f"{value:.3g}"


def confusion(
    model: Any,
    X: Any,
    y: Any,
    *,
    ax: "Axes | None" = None,
    normalize: str | None = None,
    sample_weight: Any = None,
) -> "Axes":
    """Draw how many samples of each class were taken for which class.

    Parameters
    ----------
    model : fitted classifier or pipeline
        Whose predictions are counted.
    X : array, sparse matrix or table of shape (n, d)
        Samples.
    y : array of shape (n,)
        Their true classes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.
    normalize : {"true", "pred", "all"}, optional
        Draw shares of rows (recall), columns (precision) or all instead of counts.
    sample_weight : array of shape (n,), optional
        Weights of the samples.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from separatrix import Perceptron, plot
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"]
    >>> plot.confusion(Perceptron().fit(X, y), X, y).get_ylabel()
    'true class'
    """
    return ConfusionMatrixDisplay.from_estimator(
        model, X, y, ax=ax, normalize=normalize, sample_weight=sample_weight
    ).ax_
