"""Pictures in figures that make no room for them, and names that differ only where they would be cut."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import Bbox

import separatrix as sx
from separatrix import plot

rng = np.random.default_rng(0)
Y = np.repeat(np.arange(12), 20)
X = rng.normal(size=(240, 2)) + 4 * np.stack([Y % 4, Y // 4], axis=1)
LONG = np.array([f"photographs of wild animals, kind number {label}, seen at night" for label in Y])
MODEL = sx.LogisticRegression().fit(X, LONG)
PAIR = sx.LinearSVC().fit(X[:40], Y[:40])
KINDS = {
    "boundary": lambda ax: plot.boundary(MODEL, X, LONG, ax=ax, resolution=30),
    "margin": lambda ax: plot.margin(PAIR, X[:40], Y[:40], ax=ax, resolution=30),
    "convergence": lambda ax: plot.convergence(MODEL, ax=ax),
    "roc": lambda ax: plot.roc(MODEL, X, LONG, ax=ax),
    "precision-recall": lambda ax: plot.precision_recall(MODEL, X, LONG, ax=ax),
    "calibration": lambda ax: plot.calibration(MODEL, X, LONG, ax=ax),
    "losses": lambda ax: plot.losses(ax=ax),
}


@pytest.mark.parametrize("shape", [(1, 1), (2, 2)])
@pytest.mark.parametrize("kind", KINDS)
def test_legends_stay_within_the_axes_they_belong_to(kind, shape):
    figure, axes = plt.subplots(*shape)
    try:
        ax = np.ravel(axes)[0]
        KINDS[kind](ax)
        figure.canvas.draw()
        legend, own = ax.get_legend().get_window_extent(), ax.get_window_extent()
        assert legend.x0 >= own.x0
        assert legend.x1 <= own.x1
        assert legend.y0 >= own.y0
        assert legend.y1 <= own.y1
    finally:
        plt.close(figure)


MORE_KINDS = {
    **KINDS,
    "confusion": lambda ax: plot.confusion(MODEL, X[:60], LONG[:60], ax=ax),
    "kernel matrix": lambda ax: plot.kernel_matrix("rbf", X, Y // 4, gamma=0.123456789, ax=ax),
    "path": lambda ax: plot.PathDisplay.from_estimator(sx.LinearSVC(), X[:40], Y[:40], ax=ax),
    "tube": lambda ax: plot.tube(sx.SVR().fit(X[:, :1], X[:, 1]), X[:, :1], X[:, 1], ax=ax),
    "wide plane": lambda ax: plot.boundary(sx.SVC().fit(WIDE, Y), WIDE, Y, ax=ax, resolution=30),
}
WIDE = np.hstack([X, X**2])


@pytest.mark.parametrize("kind", MORE_KINDS)
def test_nothing_touches_in_an_ordinary_grid(kind):
    figure, axes = plt.subplots(2, 2)
    try:
        for ax in axes.flat:
            MORE_KINDS[kind](ax)
        figure.canvas.draw()
        boxes = [[] for _ in axes.flat]
        for ax in figure.axes:  # second axes and scales of colours belong to the place they are in
            boxes[ax.get_subplotspec().get_topmost_subplotspec().num1].append(ax.get_tightbbox())
        places = [Bbox.union(parts) for parts in boxes]
        for number, place in enumerate(places):
            assert place.x0 >= 0
            assert place.y0 >= 0
            assert place.x1 <= figure.bbox.x1
            assert place.y1 <= figure.bbox.y1
            assert not any(place.overlaps(other) for other in places[number + 1 :])
    finally:
        plt.close(figure)


def test_the_owner_of_a_figure_has_the_last_word():
    figures = [plt.subplots(2, 2, layout=layout)[0] for layout in (None, None, "constrained", None, None)]
    try:
        later, tight, constrained, before, by_hand = figures
        before.subplots_adjust(wspace=0.5)
        by_hand.add_axes((0.9, 0.9, 0.1, 0.1))
        for figure in figures:
            KINDS["roc"](figure.axes[0])
        later.subplots_adjust(hspace=0.9)
        tight.tight_layout(w_pad=4.0)  # warns if another layout was chosen before
        gaps = tight.subplotpars.wspace
        for figure in figures:
            figure.canvas.draw()
        assert later.subplotpars.hspace == 0.9
        assert later.subplotpars.bottom == plt.rcParams["figure.subplot.bottom"]
        assert tight.subplotpars.wspace == gaps
        assert isinstance(constrained.get_layout_engine(), ConstrainedLayoutEngine)
        assert before.get_layout_engine() is None
        assert by_hand.subplotpars.bottom == plt.rcParams["figure.subplot.bottom"]
    finally:
        for figure in figures:
            plt.close(figure)


def test_where_there_is_room_the_legend_stays_beside():
    figure = plt.figure(figsize=(10, 4))
    try:
        ax = figure.add_axes((0.1, 0.1, 0.4, 0.8))
        plot.roc(PAIR, X[:40], Y[:40], ax=ax)
        assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1
    finally:
        plt.close(figure)


@pytest.mark.parametrize("kind", ["roc", "precision-recall", "calibration", "codings"])
def test_no_two_classes_have_the_same_name_in_a_legend(kind):
    if kind == "codings":
        figure = plot.codings(sx.Perceptron(), X, LONG, resolution=20)[0].figure
        (legend,) = figure.legends
    else:
        legend = KINDS[kind](None).get_legend()
    names = [text.get_text().split(":")[0] for text in legend.get_texts()]
    assert len(set(names)) == len(names) >= 12


def test_a_legend_of_very_many_classes_is_cut():
    """It would be far wider than the picture: the first classes, how many more, and what is no class."""
    K = 300
    X = np.random.default_rng(0).normal(size=(2 * K, 2))
    y = np.arange(2 * K) % K
    model = sx.KNeighborsClassifier(1).fit(X, y)
    ax = plot.boundary(model, X, y, resolution=20)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(names) == 72
    assert names[0] == "0"
    assert f"… {K + 1 - 71} more" in names
    assert names[-2:] == [str(K - 1), "boundary"]
    width, height = ax.figure.get_size_inches()
    assert width < 3 * height
