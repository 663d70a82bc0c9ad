"""Receiver operating characteristic and precision-recall curves."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import DASHES, PALETTE, final_step, ink, outside_legend, short_names
from separatrix.plot._display import Display
from separatrix.plot._points import check_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[Any]
# A curve of a million steps looks the same with these many, and the file stays small.
_MOST_VERTICES = 2000


def class_scores(model: Any, X: Any) -> tuple[list[Any], Array]:
    """Return the classes and one score per sample and class: two classes have one column, of the second.

    Of several classes the probabilities count, where there are any. A score of softmax or of Gaussian models
    means something beside those of the other classes only; alone it may order samples the wrong way round.
    So may that of a joint machine without probabilities: there the lead over the best other class counts.
    """
    final = final_step(model)
    name = type(final).__name__
    scored, probable = hasattr(model, "decision_function"), hasattr(model, "predict_proba")
    if not (scored or probable):
        raise ValueError(
            f"{name} has neither decision_function nor predict_proba, so it orders no samples; "
            "plot.confusion draws its decisions"
        )
    classes = list(np.asarray(model.classes_))
    by_probability = probable and (len(classes) > 2 or not scored)
    scores = np.asarray((model.predict_proba if by_probability else model.decision_function)(X), dtype=float)
    if scores.ndim == 2 and len(classes) == 2:
        scores = scores[:, 1]
    scores = scores.reshape(len(scores), -1)
    if scores.shape[1] not in (1, len(classes)):
        raise ValueError(
            f"{name} gives {scores.shape[1]} scores for {len(classes)} classes; curves need one "
            "per class (decision_function_shape='ovr')"
        )
    if scores.shape[1] > 1 and not by_probability and getattr(final, "multiclass_", None) == "joint":
        scores = _leads(scores)
    return classes, scores


def _leads(scores: Array) -> Array:
    """Return by how much each score exceeds the best of the others."""
    second, first = np.sort(scores, axis=1)[:, -2:].T
    ahead = np.arange(scores.shape[1]) == np.argmax(scores, axis=1)[:, None]
    leads: Array = scores - np.where(ahead, second[:, None], first[:, None])
    return leads


def _one_vs_rest(model: Any, X: Any, y: Any, pos_label: Any) -> list[tuple[str, Array, Array]]:
    """Return (name, is it this class?, score) for each curve."""
    classes, scores = class_scores(model, X)
    truth = check_labels(y, len(scores))
    unknown = ~np.isin(truth, classes)
    if unknown.any():
        raise ValueError(f"y holds {truth[unknown][0]!s}, which the model does not know")
    if pos_label is not None and pos_label not in classes:
        raise ValueError(f"pos_label={pos_label!r} is not among the classes {', '.join(map(str, classes))}")
    if scores.shape[1] == 1:
        negative = pos_label is not None and pos_label == classes[0]
        label = classes[0] if negative else classes[1]
        sides = [(label, -scores[:, 0] if negative else scores[:, 0])]
    else:
        sides = [(label, scores[:, k]) for k, label in enumerate(classes) if pos_label in (None, label)]
    found = []
    for label, column in sides:
        positive = truth == label
        if positive.all() or not positive.any():
            raise ValueError(f"a curve for class {label!s} needs samples of it and of another class in y")
        found.append((str(label), positive, column))
    return found


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve: its name, the values along both axes, and the number that sums it up."""

    name: str
    x: Array
    y: Array
    summary: float


def _thinned(x: Array, y: Array) -> tuple[Array, Array]:
    if len(x) <= _MOST_VERTICES:
        return x, y
    keep = np.unique(np.linspace(0, len(x) - 1, _MOST_VERTICES).astype(int))
    return x[keep], y[keep]


class _Curves(Display):
    """Curves over the unit square, the legend right of it."""

    curves: list[Curve]

    def _draw(self, ax: "Axes | None", measure: str, labels: tuple[str, str], steps: str) -> list[Any]:
        ax = self._axes(ax, 7.0, 4.2, square=True)
        handles, names = [], short_names([curve.name for curve in self.curves], 40)
        for index, curve in enumerate(self.curves):
            x, y = _thinned(curve.x, curve.y)
            colour, dash = PALETTE[index % len(PALETTE)], DASHES[index % len(DASHES)]
            (line,) = ax.plot(
                x,
                y,
                color=colour,
                linestyle=dash,
                linewidth=1.8,
                drawstyle=steps,
                label=f"{names[index]}: {measure} {curve.summary:.4f}",
            )
            handles.append(line)
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        ax.set_aspect("equal")
        ax.grid(color=ink(ax), alpha=0.15, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.set_xlabel(labels[0])
        ax.set_ylabel(labels[1])
        return handles


@dataclass(eq=False)
class RocCurveDisplay(_Curves):
    """True against false positives as the threshold on the score falls; several classes: each to the rest.

    Made by :meth:`from_estimator`; `roc` is the short form.

    Parameters
    ----------
    curves : list of Curve
        False positive rates, true positive rates and the area, for each class.

    Examples
    --------
    >>> from separatrix.plot import RocCurveDisplay
    >>> from separatrix import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> RocCurveDisplay.from_estimator(LogisticRegression().fit(X, y), X, y).curves[0].summary
    0.75
    """

    curves: list[Curve]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        ax: "Axes | None" = None,
        pos_label: Any = None,
        sample_weight: Any = None,
    ) -> "RocCurveDisplay":
        """Draw a fitted classifier; see `roc` for the parameters.

        Returns
        -------
        RocCurveDisplay
        """
        from sklearn.metrics import auc, roc_curve

        curves = []
        for name, positive, scores in _one_vs_rest(estimator, X, y, pos_label):
            false, true, _ = roc_curve(positive, scores, sample_weight=sample_weight)
            curves.append(Curve(name, false, true, float(auc(false, true))))
        return cls(curves).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "RocCurveDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure without it.

        Returns
        -------
        RocCurveDisplay
        """
        handles = self._draw(ax, "area", ("false positive rate", "true positive rate"), "default")
        handles += self.ax_.plot(
            [0, 1], [0, 1], color=ink(self.ax_), linewidth=0.8, linestyle=":", label="by chance: area 0.5"
        )
        outside_legend(self.ax_, handles)
        return self


@dataclass(eq=False)
class PrecisionRecallDisplay(_Curves):
    """Precision against recall as the threshold on the score falls; with several classes, each to the rest.

    Made by :meth:`from_estimator`; `precision_recall` is the short form.

    Parameters
    ----------
    curves : list of Curve
        Recall, precision and the average precision, for each class.
    prevalence : list of float
        Share of each class: the precision of a choice by chance.

    Examples
    --------
    >>> from separatrix.plot import PrecisionRecallDisplay
    >>> from separatrix import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> display = PrecisionRecallDisplay.from_estimator(LogisticRegression().fit(X, y), X, y)
    >>> round(display.curves[0].summary, 3)
    0.833
    """

    curves: list[Curve]
    prevalence: list[float]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        ax: "Axes | None" = None,
        pos_label: Any = None,
        sample_weight: Any = None,
    ) -> "PrecisionRecallDisplay":
        """Draw a fitted classifier; see `precision_recall` for the parameters.

        Returns
        -------
        PrecisionRecallDisplay
        """
        from sklearn.metrics import average_precision_score, precision_recall_curve

        curves, prevalence = [], []
        for name, positive, scores in _one_vs_rest(estimator, X, y, pos_label):
            precision, recall, _ = precision_recall_curve(
                positive, scores, sample_weight=sample_weight, drop_intermediate=True
            )
            mean = float(average_precision_score(positive, scores, sample_weight=sample_weight))
            curves.append(Curve(name, recall, precision, mean))
            prevalence.append(float(np.average(positive, weights=sample_weight)))
        return cls(curves, prevalence).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "PrecisionRecallDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure without it.

        Returns
        -------
        PrecisionRecallDisplay
        """
        handles = self._draw(ax, "average precision", ("recall", "precision"), "steps-post")
        for index, share in enumerate(self.prevalence):
            self.ax_.axhline(
                share, color=PALETTE[index % len(PALETTE)], linewidth=0.9, linestyle=":", zorder=1
            )
        from matplotlib.lines import Line2D

        handles.append(
            Line2D(
                [],
                [],
                color=ink(self.ax_),
                linewidth=0.9,
                linestyle=":",
                label="by chance: share of the class",
            )
        )
        outside_legend(self.ax_, handles)
        return self


def roc(
    model: Any, X: Any, y: Any, *, ax: "Axes | None" = None, pos_label: Any = None, sample_weight: Any = None
) -> "Axes":
    """Draw the receiver operating characteristic: true against false positives.

    Parameters
    ----------
    model : fitted classifier or pipeline
        With ``decision_function`` or ``predict_proba``. With several classes by the latter, if it is there.
    X : array, sparse matrix or table of shape (n, d)
        Samples, best not those of the fit.
    y : array of shape (n,)
        Their true classes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure without it.
    pos_label : label, optional
        The positive class. By default the second of two classes; of more, each in turn against the rest.
    sample_weight : array of shape (n,), optional
        Weights of the samples.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from separatrix import LogisticRegression, plot
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> plot.roc(LogisticRegression().fit(X, y), X, y).get_xlabel()
    'false positive rate'
    """
    return RocCurveDisplay.from_estimator(
        model, X, y, ax=ax, pos_label=pos_label, sample_weight=sample_weight
    ).ax_


def precision_recall(
    model: Any, X: Any, y: Any, *, ax: "Axes | None" = None, pos_label: Any = None, sample_weight: Any = None
) -> "Axes":
    """Draw precision against recall, the better picture where the positive class is rare.

    Parameters
    ----------
    model, X, y, ax, pos_label, sample_weight
        As in `roc`.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from separatrix import LogisticRegression, plot
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> plot.precision_recall(LogisticRegression().fit(X, y), X, y).get_ylabel()
    'precision'
    """
    return PrecisionRecallDisplay.from_estimator(
        model, X, y, ax=ax, pos_label=pos_label, sample_weight=sample_weight
    ).ax_
