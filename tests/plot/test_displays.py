"""Every kind of picture can be read: nothing overlaps, nothing leaves the page, on any paper."""

from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.svm import SVC, SVR

from pictured import IRIS, NAMES, THREE, moons, regression
from separatrix import LogisticRegression, Perceptron, plot

FEW = dict(resolution=40)
MOONS, WAVE = moons(), regression()


@cache
def logistic():
    return LogisticRegression().fit(THREE, NAMES)


# Every kind of picture, drawn when first asked for.
KINDS = {
    "boundary": lambda: plot.BoundaryDisplay.from_estimator(logistic(), THREE, NAMES, contours=True, **FEW),
    "plane": lambda: plot.BoundaryDisplay.from_estimator(
        LogisticRegression().fit(IRIS.data[50:], NAMES[50:]), IRIS.data[50:], NAMES[50:], **FEW
    ),
    "margin": lambda: plot.MarginDisplay.from_estimator(SVC().fit(*MOONS), *MOONS, **FEW),
    "tube": lambda: plot.TubeDisplay.from_estimator(SVR(epsilon=0.2).fit(*WAVE), *WAVE),
    "convergence": lambda: plot.ConvergenceDisplay.from_estimator(logistic(), against="seconds"),
    "confusion": lambda: plot.ConfusionMatrixDisplay.from_estimator(logistic(), THREE, NAMES),
    "roc": lambda: plot.RocCurveDisplay.from_estimator(logistic(), THREE, NAMES),
    "precision-recall": lambda: plot.PrecisionRecallDisplay.from_estimator(logistic(), THREE, NAMES),
    "calibration": lambda: plot.CalibrationDisplay.from_estimator(logistic(), THREE, NAMES, n_bins=5),
    "kernel": lambda: plot.KernelMatrixDisplay.from_kernel("rbf", IRIS.data, NAMES, gamma=0.5),
    "codings": lambda: plot.CodingsDisplay.from_estimator(Perceptron(margin=1.0), THREE, NAMES, **FEW),
    "path": lambda: plot.PathDisplay.from_estimator(LogisticRegression(), THREE, NAMES == "setosa", Cs=5),
    "losses": lambda: plot.LossesDisplay.from_table(),
}

# The same with names that are too long for their place.
LONG = np.array([f"a class with a name that goes on and on, {name}" for name in NAMES])
UNITS = ["a feature whose unit is told in words: centimetres", "another one, also in centimetres, of width"]
LONG_KINDS = {
    "boundary": lambda: plot.BoundaryDisplay.from_estimator(
        LogisticRegression().fit(THREE, LONG), THREE, LONG, names=UNITS, **FEW
    ),
    "confusion": lambda: plot.ConfusionMatrixDisplay.from_predictions(LONG, LONG[::-1]),
    "precision-recall": lambda: plot.PrecisionRecallDisplay.from_estimator(
        LogisticRegression().fit(THREE, LONG), THREE, LONG
    ),
    "kernel": lambda: plot.KernelMatrixDisplay.from_kernel("rbf", IRIS.data, LONG, gamma=0.5),
    "codings": lambda: plot.CodingsDisplay.from_estimator(
        Perceptron(margin=1.0), THREE, LONG, names=UNITS, resolution=20
    ),
}


@cache
def drawn(kind):
    return KINDS[kind]()


@pytest.mark.parametrize("kind", LONG_KINDS)
def test_long_names_find_room(kind):
    keep_apart(LONG_KINDS[kind]().figure_)


@pytest.mark.parametrize("kind", ["confusion", "kernel"])
def test_long_names_leave_room_for_the_matrix(kind):
    short, long = KINDS[kind](), LONG_KINDS[kind]()
    for display in (short, long):
        display.figure_.canvas.draw()
    assert long.ax_.get_window_extent().width > 0.8 * short.ax_.get_window_extent().width


@pytest.mark.parametrize("style", ["default", "dark_background"])
@pytest.mark.parametrize("kind", KINDS)
def test_legends_can_be_read_on_any_paper(kind, style):
    """Marks and words differ in lightness from what is behind them."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import to_rgba

    def lightness(colour):
        red, green, blue, alpha = to_rgba(colour)
        return 0.3 * red + 0.6 * green + 0.1 * blue if alpha > 0 else None

    with plt.style.context(style):
        figure = KINDS[kind]().figure_
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    assert legends or kind in ("confusion", "kernel")
    for legend in legends:
        behind = legend.get_frame().get_facecolor() if legend.get_frame_on() else figure.get_facecolor()
        paper = lightness(behind)
        for mark, words in zip(legend.legend_handles, legend.get_texts(), strict=True):
            properties = mark.properties()
            names = ("color", "markeredgecolor", "markerfacecolor", "edgecolor")
            given = [properties[name] for name in names if isinstance(properties.get(name), str | tuple)]
            shades = [shade for shade in map(lightness, given) if shade is not None]
            assert max(abs(shade - paper) for shade in shades) > 0.15, words.get_text()
            assert abs(lightness(words.get_color()) - paper) > 0.5
    for ax in figure.axes:
        for note in ax.texts:
            if not _inside(note.get_window_extent(), ax.get_window_extent()):
                assert abs(lightness(note.get_color()) - lightness(figure.get_facecolor())) > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_overlaps_or_leaves_the_page(kind):
    keep_apart(KINDS[kind]().figure_)


def keep_apart(figure):
    """Check that titles, legends, labels of axes and their numbers keep apart and inside the figure."""
    figure.canvas.draw()
    page = figure.bbox
    boxes = {}
    for number, ax in enumerate(figure.axes):
        data = ax.get_window_extent()
        for name, piece in (("title", ax.title), ("x label", ax.xaxis.label), ("y label", ax.yaxis.label)):
            if piece.get_text() and piece.get_visible():
                boxes[f"{name} {number}"] = piece.get_window_extent()
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            shown = [tick.label1 for tick in ticks if tick.label1.get_text() and tick.label1.get_visible()]
            extents = [label.get_window_extent() for label in shown]
            for index, box in enumerate(box for box in extents if not _inside(box, data)):
                boxes[f"{axis.axis_name} tick {number}.{index}"] = box
        for index, text in enumerate(ax.texts):
            if not _inside(text.get_window_extent(), data):
                boxes[f"note {number}.{index}"] = text.get_window_extent()
        if ax.get_legend() is not None:
            boxes[f"legend {number}"] = ax.get_legend().get_window_extent()
            assert boxes[f"legend {number}"].x0 >= data.x1
    for legend in figure.legends:
        boxes["figure's legend"] = legend.get_window_extent()
    for name, box in boxes.items():
        assert page.x0 - 0.5 <= box.x0, name
        assert box.x1 <= page.x1 + 0.5, name
        assert page.y0 - 0.5 <= box.y0, name
        assert box.y1 <= page.y1 + 0.5, name
    named = list(boxes.items())
    for index, (name, box) in enumerate(named):
        for other, second in named[index + 1 :]:
            rotated = "x tick" in name and "x tick" in other  # boxes of slanted names overlap, letters do not
            assert rotated or not _overlap(box, second), f"{name} and {other}"


def _inside(box, data):
    return data.x0 <= box.x0 and box.x1 <= data.x1 and data.y0 <= box.y0 and box.y1 <= data.y1


def _overlap(first, second):
    wide = min(first.x1, second.x1) - max(first.x0, second.x0)
    high = min(first.y1, second.y1) - max(first.y0, second.y0)
    return wide > 1 and high > 1


@pytest.mark.parametrize("kind", KINDS)
def test_displays_draw_again_elsewhere(kind):
    import matplotlib.pyplot as plt

    display = drawn(kind)
    assert display._repr_png_().startswith(b"\x89PNG")
    first = display.figure_
    other = type(display)(**{name: getattr(display, name) for name in display.__dataclass_fields__})
    own = Figure(layout="constrained")
    where = list(own.subplots(1, 3)) if kind == "codings" else own.subplots()
    assert other.plot(where) is other
    assert other.figure_ is own
    assert other.figure_ is not first
    assert other._repr_png_() is None  # whoever owns the figure shows it
    assert plt.get_fignums() == []
