"""Traces: every step of a fit, and that it ends where the fit ends."""

import re
import warnings
from base64 import b64decode
from io import BytesIO
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread
from scipy import sparse
from sklearn import linear_model, svm
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from separatrix import SVC, KernelPerceptron, LogisticRegression, Perceptron, SGDClassifier, plot
from separatrix.traces import trace
from separatrix.traces._perceptron import lane_dots

IRIS = load_iris()
NAMES = IRIS.target_names[IRIS.target]


def fitted(model, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).fit(X, y, **more)


def same_bits(model, X, y, **more):
    end = trace(model, X, y, **more).last()
    fit = fitted(model, X, y, **more)
    coef = getattr(fit, "class_coef_", fit.coef_)
    assert end.end
    assert end.coef.dtype == coef.dtype
    np.testing.assert_array_equal(end.coef, coef)
    np.testing.assert_array_equal(end.intercept, getattr(fit, "class_intercept_", fit.intercept_))
    assert end.iteration == fit.n_iter_
    return end


@pytest.mark.parametrize("multiclass", ["ovr", "ovo", "joint"])
@pytest.mark.parametrize("keep", ["last", "best", "average"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_perceptron_is_traced_to_the_last_bit(multiclass, keep, shuffle):
    same_bits(
        Perceptron(multiclass=multiclass, keep=keep, shuffle=shuffle, max_iter=12), IRIS.data[::2], NAMES[::2]
    )


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    features=st.sampled_from([1, 2, 7, 8, 9, 19]),
    single=st.booleans(),
    margin=st.sampled_from([None, 0.0, 0.7]),
    eta0=st.sampled_from([1.0, 0.1]),
    fit_intercept=st.booleans(),
    classes=st.integers(2, 4),
    multiclass=st.sampled_from(["ovr", "ovo", "joint"]),
    weighted=st.booleans(),
)
def test_any_perceptron_is_traced_to_the_last_bit(
    seed, features, single, margin, eta0, fit_intercept, classes, multiclass, weighted
):
    random = np.random.default_rng(seed)
    X = random.normal(size=(24, features)).astype(np.float32 if single else np.float64)
    y = np.arange(24) % classes
    model = Perceptron(
        margin=margin, eta0=eta0, fit_intercept=fit_intercept, multiclass=multiclass, shuffle=False,
        max_iter=4, keep="last",
    )  # fmt: skip
    more = {"sample_weight": random.choice([0.0, 0.5, 1.0, 2.25], 24)} if weighted else {}
    if weighted and len(np.unique(y[more["sample_weight"] > 0])) < 2:
        return
    same_bits(model, X, y, **more)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo", "joint"])
@pytest.mark.parametrize("keep", ["last", "best", "average"])
def test_a_kernel_perceptron_is_traced_to_the_last_bit(multiclass, keep):
    X, y = IRIS.data[::3], NAMES[::3]
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.25], len(y))
    model = KernelPerceptron(multiclass=multiclass, keep=keep, gamma="scale", max_iter=8, margin=0.1)
    steps = trace(model, X, y, sample_weight=weights)
    end = steps.last()
    fit = fitted(model, X, y, sample_weight=weights)
    np.testing.assert_array_equal(end.alpha[:, fit.support_], fit.dual_coef_)
    np.testing.assert_array_equal(end.intercept, fit.intercept_)
    assert np.count_nonzero(end.alpha.any(axis=0)) == len(fit.support_)
    grid = np.random.default_rng(1).normal(5.0, 1.0, size=(40, 4))
    np.testing.assert_allclose(steps.decision(end, grid), fit.decision_function(grid), atol=1e-10)
    changed = next(step for step in steps if step.changed)
    assert f"[{changed.samples[0]}] " in changed.what


def test_sums_in_lanes_are_sums():
    random = np.random.default_rng(0)
    for d in (1, 3, 8, 11, 16, 30):
        X, w = random.normal(size=(5, d)), random.normal(size=d)
        np.testing.assert_allclose(lane_dots(X, w), X @ w, rtol=1e-12, atol=1e-14)


def test_what_a_perceptron_says():
    X, y = [[0.0, 0.0], [1.0, 0.5], [3.0, 3.0], [4.0, 2.5]], ["low", "low", "high", "high"]
    steps = list(trace(Perceptron(shuffle=False), X, y))
    assert [step.number for step in steps[:-1]] == list(range(1, 17))
    assert [step.samples for step in steps[:4]] == [(0,), (1,), (2,), (3,)]
    assert str(steps[2]) == (
        "step 3, pass 1, sample 2 (high): y f(x) = −1 is not positive, so w −= 1 x, b −= 1"
    )
    assert str(steps[3]).endswith("y f(x) = 19.5 is on the right side, so nothing changes")
    assert str(steps[-1]) == (
        "end, after 4 passes: a whole pass changed nothing; the last weights are returned"
    )
    before = np.zeros(3)
    for step in steps[:-1]:
        after = np.append(step.coef[0], step.intercept)
        assert step.changed == (not np.array_equal(after, before))
        before = after
    with pytest.raises(ValueError, match="read-only"):
        steps[0].coef[0, 0] = 1.0


def test_what_several_classes_say():
    joint = next(iter(trace(Perceptron(multiclass="joint", shuffle=False), IRIS.data, NAMES)))
    assert joint.what == (
        "w[versicolor] −= 1 x, b[versicolor] −= 1; w[virginica] −= 1 x, b[virginica] −= 1; "
        "w[setosa] += 1 x, b[setosa] += 1"
    )
    assert "does not lead versicolor (0), virginica (0) by the margin" in joint.why
    pairs = next(iter(trace(Perceptron(multiclass="ovo", shuffle=False), IRIS.data, NAMES)))
    assert "w[setosa|versicolor] += 1 x" in pairs.what


def test_a_trace_can_be_run_again_and_changes_nothing():
    model = Perceptron(random_state=np.random.RandomState(3))
    steps = trace(model, IRIS.data, NAMES, max_steps=40)
    first, second = list(steps), list(steps)
    assert len(first) == 40
    assert [step.samples for step in first] == [step.samples for step in second]
    assert not hasattr(model, "coef_")
    assert repr(steps).startswith("Trace(Perceptron(")


def test_a_pipeline_is_traced_behind_its_first_steps():
    model = make_pipeline(StandardScaler(), Perceptron(max_iter=10))
    end = trace(model, IRIS.data, NAMES).last()
    fit = fitted(model, IRIS.data, NAMES)
    np.testing.assert_array_equal(end.coef, fit[-1].coef_)


@pytest.mark.parametrize(
    "model",
    [
        SGDClassifier(),
        SGDClassifier(loss="log_loss", penalty="l1", alpha=0.01),
        SGDClassifier(loss="squared_hinge", penalty="elasticnet", learning_rate="invscaling"),
        SGDClassifier(loss="modified_huber", average=True),
        SGDClassifier(loss="squared_error", learning_rate="adaptive", eta0=0.01),
        SGDClassifier(loss="perceptron", penalty=None, learning_rate="constant", eta0=0.1),
        SGDClassifier(learning_rate="pegasos", alpha=0.1, average=20),
        SGDClassifier(learning_rate="pa1", eta0=1.0),
        SGDClassifier(learning_rate="pa2", eta0=1.0, class_weight="balanced"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["two", "three", "sparse"])
def test_stochastic_gradients_end_where_the_fit_ends(model, kind):
    X, y = StandardScaler().fit_transform(IRIS.data[20:]), NAMES[20:]
    if kind == "two":
        X, y = X[30:], y[30:]
    elif kind == "sparse":
        X = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    model = clone(model).set_params(random_state=5, max_iter=4)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y))
    end = trace(model, X, y, sample_weight=weights).last()
    fit = fitted(model, X, y, sample_weight=weights)
    # Sums in another order; what a step makes of a difference grows with the steps.
    np.testing.assert_allclose(end.coef, fit.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(end.intercept, fit.intercept_, rtol=1e-7, atol=1e-9)
    assert end.iteration == fit.n_iter_


@pytest.mark.parametrize("method", ["newton", "gradient"])
@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_steps_descend_to_the_fit(method, classes):
    X, y = StandardScaler().fit_transform(IRIS.data), IRIS.target
    X, y = (X, y) if classes == 3 else (X[50:], y[50:])
    model = LogisticRegression(C=0.5, tol=1e-6, max_iter=1500)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y))
    steps = list(trace(model, X, y, method=method, sample_weight=weights))
    values = [step.objective for step in steps]
    assert (np.diff(values) <= 1e-9).all()
    fit = fitted(model, X, y, sample_weight=weights)
    assert values[-1] == pytest.approx(fit.certificate_.primal, rel=1e-6)
    tolerance = 1e-4 if method == "newton" else 2e-2
    np.testing.assert_allclose(steps[-1].coef, fit.coef_, atol=tolerance)
    assert method == "gradient" or len(steps) < 15


def test_logistic_one_vs_rest_and_no_penalty():
    X, y = IRIS.data[:, :2], IRIS.target
    fit = LogisticRegression(multiclass="ovr", tol=1e-8).fit(X, y)
    end = trace(LogisticRegression(multiclass="ovr", tol=1e-8), X, y).last()
    np.testing.assert_allclose(end.coef, fit.coef_, atol=1e-5)
    plain = LogisticRegression(C=np.inf, tol=1e-8, fit_intercept=False)
    end = trace(plain, X[50:], y[50:]).last()
    np.testing.assert_allclose(end.coef, plain.fit(X[50:], y[50:]).coef_, atol=1e-4)
    runaway = trace(LogisticRegression(C=np.inf), IRIS.data[:100], y[:100]).last()
    assert "separable" in runaway.why


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_pairs_end_where_libsvm_ends(kernel, C):
    X, y = make_moons(70, noise=0.25, random_state=1)
    model = svm.SVC(kernel=kernel, C=C, tol=1e-8)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 70)
    steps = trace(model, X, y, sample_weight=weights)
    end = steps.last()
    fit = clone(model).fit(X, y, sample_weight=weights)
    grid = np.random.default_rng(1).normal(size=(50, 2))
    # LIBSVM keeps its kernel rows in single precision.
    np.testing.assert_allclose(steps.decision(end, grid), fit.decision_function(grid), rtol=1e-5, atol=3e-5)
    np.testing.assert_array_equal(steps.decide(end, grid), fit.predict(grid))
    np.testing.assert_allclose(end.alpha[fit.support_], np.abs(fit.dual_coef_[0]), atol=2e-5 * C)
    if kernel == "linear":
        np.testing.assert_allclose(end.coef, fit.coef_, atol=1e-5)
    else:
        assert end.coef is None
    values = [step.objective for step in steps]
    assert (np.diff(values) >= -1e-10).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_pairs_end_where_our_machine_ends(kernel):
    X, y = make_moons(70, noise=0.25, random_state=1)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 70)
    model = SVC(kernel=kernel, C=3.0, tol=1e-7, class_weight={0: 1.0, 1: 1.5})
    steps = trace(model, X, y, sample_weight=weights)
    end = steps.last()
    fit = clone(model).fit(X, y, sample_weight=weights)
    assert end.objective == pytest.approx(fit.certificate_.dual, rel=1e-9)
    np.testing.assert_allclose(steps.decision(end, X), fit.decision_function(X), atol=1e-5)


def test_every_pair_keeps_the_constraints():
    X, y = make_moons(40, noise=0.3, random_state=0)
    model = svm.SVC(C=1.0, class_weight={0: 0.5, 1: 2.0})
    most, signs = np.where(y == 0, 0.5, 2.0), 2 * y - 1
    before = np.zeros(40)
    for step in trace(model, X, y):
        assert (step.alpha >= 0).all()
        assert (step.alpha <= most).all()
        assert abs(step.alpha @ signs) < 1e-12
        moved = set(np.flatnonzero(step.alpha != before))
        assert moved <= set(step.samples)
        assert step.end or len(moved) == 2
        before = step.alpha
    free = (before > 1e-9) & (before < most - 1e-9)
    steps = trace(model, X, y)
    np.testing.assert_allclose(signs[free] * steps.decision(steps.last(), X[free]), 1.0, atol=2e-3)


def test_pairs_on_a_given_kernel_matrix():
    X, y = make_moons(40, noise=0.3, random_state=0)
    K = X @ X.T
    end = trace(svm.SVC(kernel="precomputed", tol=1e-6), K, y).last()
    other = trace(svm.SVC(kernel="linear", tol=1e-6), X, y).last()
    np.testing.assert_allclose(end.alpha, other.alpha)


def test_refusals():
    X, y = IRIS.data, NAMES
    with pytest.raises(TypeError, match=r"trace knows Perceptron, .*, not Ridge"):
        trace(linear_model.Ridge(), X, y)
    with pytest.raises(TypeError, match=r"trace follows separatrix\.Perceptron"):
        trace(linear_model.Perceptron(), X, y)
    with pytest.raises(ValueError, match="set penalty=None"):
        trace(Perceptron(penalty="l2"), X, y)
    with pytest.raises(ValueError, match="set early_stopping=False"):
        trace(SGDClassifier(early_stopping=True), X, y)
    with pytest.raises(ValueError, match="set l1_ratio=0"):
        trace(LogisticRegression(l1_ratio=1.0), X, y)
    with pytest.raises(ValueError, match="two classes; y holds 3"):
        trace(svm.SVC(), X, y)
    with pytest.raises(ValueError, match="method of Perceptron must be one of perceptron"):
        trace(Perceptron(), X, y, method="newton")
    with pytest.raises(ValueError, match="max_steps must be at least 1"):
        trace(Perceptron(), X, y, max_steps=0)
    with pytest.raises(ValueError, match="warm_start=False"):
        trace(Perceptron(warm_start=True).fit(X, y), X, y)
    with pytest.raises(ValueError, match="NaN"):
        trace(Perceptron(), [[np.nan], [1.0]], [0, 1])


def test_animations(tmp_path):
    from PIL import Image

    X, y = make_moons(40, noise=0.2, random_state=0)
    steps = trace(svm.SVC(C=10.0), X, y)
    path = plot.animate(steps, tmp_path / "pairs.gif", max_frames=4)
    with Image.open(path) as movie:
        assert movie.n_frames == 4
        frames = []
        for index in range(4):
            movie.seek(index)
            frames.append(np.asarray(movie.convert("RGB"), dtype=float))
    assert all(np.abs(first - second).mean() > 0.1 for first, second in pairwise(frames))
    page = plot.animate(trace(LogisticRegression(), IRIS.data, NAMES), tmp_path / "newton.html", max_frames=3)
    text = page.read_text(encoding="utf-8")
    frames = re.findall(r'^"(\S+)",$', text, flags=re.MULTILINE)
    sizes = {Image.open(BytesIO(b64decode(frame))).size for frame in frames}
    assert len(frames) == len(set(frames)) == 3
    assert len(sizes) == 1
    assert "http" not in text  # it works without a network
    named = set(re.findall(r' id="(\w+)"', text))
    assert named >= set(re.findall(r'find\("(\w+)"\)', text)) | {"first", "back", "play", "next", "last"}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["newton.html", "pairs.gif"]
    assert imread(path).std() > 10


def test_animations_leave_out_what_changes_nothing(tmp_path):
    X = np.array([[0.0, 0.0], [1.0, 0.5], [3.0, 3.0], [4.0, 2.5]])
    steps = trace(Perceptron(shuffle=False), X, [0, 0, 1, 1])
    changes = sum(step.changed or step.end for step in steps)
    from PIL import Image

    with Image.open(plot.animate(steps, tmp_path / "a.gif")) as movie:
        assert movie.n_frames == changes
    with pytest.raises(ValueError, match=r"animate writes \.gif, \.html, \.mp4"):
        plot.animate(steps, tmp_path / "a.png")
    with pytest.raises(TypeError, match="needs a Trace"):
        plot.animate(list(steps), tmp_path / "b.gif")
    with pytest.raises(ValueError, match="at least two features"):
        plot.animate(trace(Perceptron(), X[:, :1], [0, 0, 1, 1]), tmp_path / "b.gif")


def test_films(tmp_path):
    import subprocess

    from separatrix.plot._animate import find_ffmpeg

    program = find_ffmpeg()
    if program is None:
        pytest.skip("no ffmpeg here")
    X = np.array([[0.0, 0.0], [1.0, 0.5], [3.0, 3.0], [4.0, 2.5]])
    names = ["a name of an odd length", "b"]
    film = plot.animate(trace(Perceptron(), X, [0, 0, 1, 1]), tmp_path / "a.mp4", max_frames=3, names=names)
    # The film as text: every frame is decoded, and what players need is said.
    command = [program, "-i", film, "-f", "null", "-"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Video: h264" in told.stderr
    assert "yuv420p" in told.stderr
    assert "frame=    3" in told.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["a.mp4"]


def test_films_need_ffmpeg(tmp_path, monkeypatch):
    import sys

    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "animation.ffmpeg_path", "no-such-program")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    steps = trace(Perceptron(), IRIS.data, NAMES)
    with pytest.raises(RuntimeError, match=r"needs the program ffmpeg.*write a \.gif or \.html"):
        plot.animate(steps, tmp_path / "a.mp4")
    package = SimpleNamespace(get_ffmpeg_exe=lambda: "/opt/bin/ffmpeg-of-the-package")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", package)
    from separatrix.plot._animate import find_ffmpeg

    assert find_ffmpeg() == "/opt/bin/ffmpeg-of-the-package"


def test_long_class_names_are_whole_in_a_film(tmp_path):
    """The right edge of a frame is empty: the legend ends before it."""
    from PIL import Image

    X = np.array([[0.0, 0.0], [1.0, 0.5], [3.0, 3.0], [4.0, 3.5]])
    y = ["Iris setosa (bristle-pointed)"] * 2 + ["Iris versicolor (harlequin blueflag)"] * 2
    film = plot.animate(trace(LogisticRegression(), X, y), tmp_path / "a.gif", max_frames=2)
    with Image.open(film) as frames:
        frame = np.asarray(frames.convert("L"))
    assert frame[:, -3:].min() > 250
