"""LIBLINEAR's model files: round trips, its own programs, damage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix.models.linear_svm import LinearSVC
from separatrix.models.linear_svr import LinearSVR
from separatrix.models.logistic import LogisticRegression
from separatrix.models.perceptron import Perceptron
from separatrix.models.ridge import RidgeClassifier
from separatrix.models.sgd import SGDClassifier
from separatrix.persistence import ModelFileError
from separatrix.persistence.interchange import export_liblinear, import_liblinear

MODELS = {
    "svc": LinearSVC(),
    "hinge": LinearSVC(loss="hinge"),
    "l1": LinearSVC("l1"),
    "joint": LinearSVC(multi_class="crammer_singer"),
    "no intercept": LinearSVC(fit_intercept=False),
    "logistic": LogisticRegression(),
    "logistic ovr": LogisticRegression(multiclass="ovr"),
    "svr": LinearSVR(),
    "svr squared": LinearSVR(loss="squared_epsilon_insensitive"),
    "sgd": SGDClassifier(loss="log_loss", random_state=0),
    "perceptron": Perceptron(),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("data", ["heart", "iris"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_round_trip_and_their_program(name, data, request, tmp_path, write, program):
    from sklearn.base import clone

    X, y = request.getfixturevalue(data)
    model = clone(MODELS[name]).fit(X, y)
    export_liblinear(model, tmp_path / "m")
    back = import_liblinear(tmp_path / "m")
    np.testing.assert_array_equal(back.coef_, model.coef_)
    np.testing.assert_array_equal(back.intercept_, model.intercept_)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert back.certificate_.status == "imported"
    program("liblinear-predict", write(X, y), tmp_path / "m", tmp_path / "out")
    theirs = np.loadtxt(tmp_path / "out")
    if isinstance(model, LinearSVR):
        np.testing.assert_allclose(theirs, model.predict(X), rtol=1e-5)
    else:
        np.testing.assert_array_equal(theirs, model.predict(X))


@pytest.mark.parametrize("solver", [0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13])
@pytest.mark.parametrize("data", ["heart", "iris"])
def test_ours_reads_their_training(solver, data, request, tmp_path, write, program):
    X, y = request.getfixturevalue(data)
    X, y = X[::-1], y[::-1]  # so that the file's order of labels is not the sorted one
    program("liblinear-train", "-s", solver, "-B", 2, "-q", write(X, y), tmp_path / "m")
    program("liblinear-predict", tmp_path / "data.txt", tmp_path / "m", tmp_path / "out")
    model = import_liblinear(tmp_path / "m")
    theirs = np.loadtxt(tmp_path / "out")
    if solver > 10:
        np.testing.assert_allclose(theirs, model.predict(X), rtol=1e-5)
    else:
        np.testing.assert_array_equal(theirs, model.predict(X))
    if solver in (0, 6, 7):
        program("liblinear-predict", "-b", 1, tmp_path / "data.txt", tmp_path / "m", tmp_path / "out")
        lines = (tmp_path / "out").read_text().splitlines()
        order = np.argsort([int(word) for word in lines[0].split()[1:]])
        p = np.array([line.split()[1:] for line in lines[1:]], dtype=float)[:, order]
        np.testing.assert_allclose(p, model.predict_proba(X), rtol=1e-4, atol=1e-6)


def test_what_a_file_cannot_express_is_refused(iris, tmp_path):
    X, y = iris
    for model, words in [
        (LinearSVC(multiclass="ovo"), "multiclass='ovr'"),
        (RidgeClassifier(), "not RidgeClassifier"),
    ]:
        with pytest.raises(ModelFileError, match=words):
            export_liblinear(model.fit(X, y), tmp_path / "m")
    with pytest.raises(ModelFileError, match="whole numbers only"):
        export_liblinear(LinearSVC().fit(X, y.astype(str)), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


GOOD = """solver_type L2R_LR
nr_class 2
label 1 -1
nr_feature 2
bias 1
w
0.5
-1.25
0.125
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("L2R_LR", "L3R_LR", "line 1: solver_type"),
        ("nr_class 2", "nr_class 3", "line 3: label needs 3 values"),
        ("label 1 -1", "label 1 1.5", "line 3: label must hold whole numbers"),
        ("label 1 -1\n", "", "no line 'label'"),
        ("nr_feature 2", "nr_feature 2000000000", "ask for 2,000,000,001"),
        ("bias 1", "bias one", "line 5: bias"),
        ("w\n", "", "line 6: '0.5' is unknown"),
        ("-1.25", "-1.25 3", "line 8: 1 weights are expected"),
        ("-1.25", "nan", "line 8: weight"),
        ("0.125\n", "", "2 lines follow"),
    ],
)
def test_damage_is_refused_with_line_and_reason(old, new, words, tmp_path):
    path = tmp_path / "m"
    path.write_text(GOOD)
    assert import_liblinear(path).coef_.tolist() == [[0.5, -1.25]]
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ModelFileError) as caught:
        import_liblinear(path)
    assert words in str(caught.value)


@settings(max_examples=150)
@given(
    cut=st.integers(0, len(GOOD)),
    noise=st.binary(max_size=12) | st.sampled_from([b"9" * 20, b"1e999", b"-", b"\n\n", b" 1 ", b"nan"]),
    keep=st.integers(0, 20),
)
def test_fuzzed_files_are_read_or_refused(cut, noise, keep, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "m"
    text = GOOD.encode()
    path.write_bytes(text[:cut] + noise + text[cut + keep :])
    try:
        model = import_liblinear(path)
    except ModelFileError:
        return
    assert np.all(np.isfinite(model.coef_))
