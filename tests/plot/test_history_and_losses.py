"""Pictures of fits and of the loss table, and what happens without matplotlib."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from separatrix import KernelPerceptron, Perceptron, plot
from separatrix.losses import LOSSES


def history(passes=6, last_criterion=0.5):
    records = [
        {
            "iteration": index + 1,
            "mistakes": 20 - index,
            "margin_errors": 30 - index,
            "training_errors": 10 + abs(index - 3),
            "criterion": 100.0 / (index + 1),
        }
        for index in range(passes)
    ]
    records[-1]["criterion"] = last_criterion
    return records


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_counts_above_and_criterion_below(tmp_path):
    ax = plot.convergence(SimpleNamespace(history_=history(), keep="best"))
    upper, lower = ax.figure.axes
    assert ax is upper
    assert lower.get_yscale() == "log"
    drawn = lines(upper)
    np.testing.assert_array_equal(drawn["mistakes in the pass"].get_xdata(), np.arange(1, 7))
    np.testing.assert_array_equal(drawn["mistakes in the pass"].get_ydata(), 20 - np.arange(6))
    np.testing.assert_array_equal(drawn["margin errors in the pass"].get_ydata(), 30 - np.arange(6))
    np.testing.assert_array_equal(drawn["errors at the pass's end"].get_ydata(), [13, 12, 11, 10, 11, 12])
    assert lines(lower)["criterion J"].get_ydata()[-1] == 0.5
    assert legend_texts(upper)[-1] == "fewest, after pass 4: 10"
    path = tmp_path / "convergence.png"
    ax.figure.savefig(path)
    assert path.stat().st_size > 15_000


def test_a_criterion_of_zero_has_a_place():
    ax = plot.convergence(SimpleNamespace(history_=history(last_criterion=0.0)))
    lower = ax.figure.axes[1]
    assert lower.get_yscale() == "symlog"
    assert lower.get_ylim()[0] == 0
    assert "fewest" not in " ".join(legend_texts(ax))  # no pocket, no star


def test_given_axes_get_a_second_scale_at_the_right():
    own = Figure(layout="constrained").subplots()
    assert plot.convergence(SimpleNamespace(history_=history()), ax=own) is own
    assert own.get_xlabel() == "pass"
    assert own.figure.axes[1].get_ylabel() == "criterion J (log scale)"
    assert legend_texts(own)[-1] == "criterion J"
    own.figure.canvas.draw()
    labels = own.figure.axes[1].yaxis.get_tightbbox()
    assert own.get_legend().get_window_extent().x0 >= labels.x1


def test_missing_values_are_left_out():
    records = history()
    for record in records:
        record["training_errors"] = None
        del record["criterion"]
    records[2]["mistakes"] = None
    ax = plot.convergence(SimpleNamespace(history_=records))
    assert legend_texts(ax) == ["mistakes in the pass", "margin errors in the pass"]
    np.testing.assert_array_equal(lines(ax)["mistakes in the pass"].get_xdata(), [1, 2, 4, 5, 6])
    assert len(ax.figure.axes) == 1


def test_descents_show_objective_and_gap():
    records = [{"iteration": k, "objective": 9.0 / k, "relative_gap": 10.0**-k} for k in (1, 2, 3)]
    ax = plot.convergence(SimpleNamespace(history_=records))
    lower = ax.figure.axes[1]
    assert ax.get_ylabel() == "objective"
    assert list(ax.get_lines()[0].get_ydata()) == [9.0, 4.5, 3.0]
    assert lower.get_ylabel() == "relative gap (log scale)"
    assert lower.get_xlabel() == "iteration"
    assert lower.get_yscale() == "log"


def test_pipelines_and_long_fits():
    pipeline = SimpleNamespace(steps=[("scale", None), ("model", SimpleNamespace(history_=history(300)))])
    ax = plot.convergence(pipeline)
    assert lines(ax)["mistakes in the pass"].get_marker() in ("None", None)


def test_models_without_a_history_are_refused():
    with pytest.raises(ValueError, match=r"SimpleNamespace has no history_; fit it first"):
        plot.convergence(SimpleNamespace())
    with pytest.raises(ValueError, match="is empty"):
        plot.convergence(SimpleNamespace(history_=[]))
    with pytest.raises(ValueError, match="neither errors nor a criterion"):
        plot.convergence(SimpleNamespace(history_=[{"iteration": 1}]))


def test_losses_draw_the_table(tmp_path):
    ax = plot.losses()
    drawn = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    of_margin = [loss for loss in LOSSES.values() if loss.of == "margin"]
    names = [loss.name.replace("_", " ") for loss in of_margin]
    assert [text.split(":")[0] for text in legend_texts(ax)] == names
    for line, loss in zip(drawn, of_margin, strict=True):
        np.testing.assert_allclose(line.get_ydata(), loss.value(line.get_xdata()))
    looks = {(line.get_color(), str(line.get_linestyle()), line.get_linewidth()) for line in drawn}
    assert len(looks) == len(of_margin)
    slopes = ax.figure.axes[1].get_lines()
    for line, loss in zip(slopes, of_margin, strict=False):
        shown = np.isfinite(line.get_ydata())
        np.testing.assert_allclose(line.get_ydata()[shown], loss.slope(line.get_xdata()[shown]))
        assert (~shown).any() == (loss.name in ("perceptron", "hinge"))
    path = tmp_path / "losses.png"
    ax.figure.savefig(path)
    assert path.stat().st_size > 15_000
    own = Figure().subplots()
    assert plot.losses(own) is own


def test_import_is_light_and_the_missing_extra_is_named():
    code = (
        "import sys\n"
        "sys.modules['matplotlib'] = None\n"
        "from separatrix import plot\n"
        "assert 'sklearn' not in sys.modules\n"
        "try:\n"
        "    plot.losses()\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == 'plots need matplotlib: pip install "separatrix[plot]"\n'


@pytest.mark.parametrize(
    "model", [Perceptron(), Perceptron(keep="last"), KernelPerceptron(gamma=0.5)], ids=repr
)
def test_real_fits_have_a_picture(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    ax = plot.convergence(model.fit(X, y))
    mistakes = lines(ax)["mistakes in the pass"]
    assert len(mistakes.get_xdata()) == model.n_iter_
    assert mistakes.get_ydata()[0] == model.history_[0]["mistakes"]
    assert len(ax.figure.axes) == 2
