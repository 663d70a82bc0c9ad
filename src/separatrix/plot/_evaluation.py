"""Pictures of an evaluation from counts and scores: confusion matrix, ROC and precision-recall curves."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.plot._canvas import INK, PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NUMBERS = 20


def confusion_picture(counts: NDArray[Any], classes: NDArray[Any]) -> "Axes":
    """Draw a confusion matrix: each row's share by colour, the counts as numbers.

    Examples
    --------
    >>> import numpy as np
    >>> confusion_picture(np.array([[5, 1], [0, 4]]), np.array(["no", "yes"])).get_xlabel()
    'predicted class'
    """
    size = len(classes)
    side = 2.2 + 0.55 * min(size, 16)
    ax: Axes = new_figure(side + 1.2, side).subplots()
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = ax.imshow(shares, cmap="cividis_r", vmin=0.0, vmax=1.0)
    labels = [str(label) for label in classes]
    if size <= _MOST_NUMBERS:
        for row in range(size):
            for column in range(size):
                colour = "white" if shares[row, column] > 0.5 else INK
                ax.text(
                    column,
                    row,
                    f"{counts[row, column]:,}",
                    ha="center",
                    va="center",
                    fontsize="small",
                    color=colour,
                )
        slanted = max(len(label) for label in labels) > 4
        ax.set_xticks(
            range(size),
            labels,
            rotation=45 if slanted else 0,
            ha="right" if slanted else "center",
            rotation_mode="anchor" if slanted else "default",
        )
        ax.set_yticks(range(size), labels)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    ax.figure.colorbar(image, ax=ax, label="share of the true class", fraction=0.046, pad=0.04)
    right = np.trace(counts) / max(counts.sum(), 1)
    ax.set_title(f"{counts.sum():,} rows, accuracy {right:.4f}", fontsize="medium")
    return ax


def curves_picture(positive: NDArray[np.bool_], scores: NDArray[Any], name: str) -> "Axes":
    """Draw the ROC curve and the precision-recall curve of one class.

    Examples
    --------
    >>> import numpy as np
    >>> curves_picture(np.array([True, False, True]), np.array([0.9, 0.5, 0.4]), "yes").get_xlabel()
    'share of the others that are called yes'
    """
    order = np.argsort(-scores, kind="stable")
    sorted_scores, hits = scores[order], positive[order]
    last = np.flatnonzero(np.append(np.diff(sorted_scores) != 0, True))  # equal scores are one step
    true, called = np.cumsum(hits)[last], last + 1.0
    total, others = max(int(hits.sum()), 1), max(int((~hits).sum()), 1)
    tpr, fpr = np.append(0.0, true / total), np.append(0.0, (called - true) / others)
    area = float(np.trapezoid(tpr, fpr))
    precision, recall = true / called, true / total
    average = float(np.sum(np.diff(np.append(0.0, recall)) * precision))
    figure = new_figure(8.2, 3.9)
    left, right = figure.subplots(1, 2)
    left.plot(fpr, tpr, color=PALETTE[0], linewidth=1.8)
    left.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
    left.set(
        xlabel=f"share of the others that are called {name}",
        ylabel=f"share of {name} that is found",
        title=f"ROC, area {area:.4f}",
    )
    right.step(
        np.append(0.0, recall),
        np.append(precision[:1], precision),
        where="pre",
        color=PALETTE[5],
        linewidth=1.8,
    )
    right.axhline(total / len(hits), color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
    right.set(
        xlabel=f"share of {name} that is found (recall)",
        ylabel=f"share of right calls of {name} (precision)",
        title=f"precision and recall, average {average:.4f}",
    )
    for ax in (left, right):
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.title.set_fontsize("medium")
        ax.grid(color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
    axes: Axes = left
    return axes
