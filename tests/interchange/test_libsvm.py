"""LIBSVM's model files: round trips, its own programs, damage."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from separatrix.models.logistic import LogisticRegression
from separatrix.models.one_class import OneClassSVM
from separatrix.models.svc import SVC, NuSVC
from separatrix.models.svr import SVR, NuSVR
from separatrix.persistence import ModelFileError
from separatrix.persistence.interchange import export_libsvm, import_libsvm

KERNELS = [
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "gamma": 0.3, "coef0": 0.5},
    {"kernel": "rbf", "gamma": 0.123456789},
    {"kernel": "sigmoid", "gamma": 0.002, "coef0": 0.0},
]
MACHINES = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]


def fitted(cls, X, y, **parameters):
    if cls is NuSVC:
        parameters = {"nu": 0.7, **parameters}
    return cls(**parameters).fit(X, y)


@pytest.mark.parametrize("cls", MACHINES)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k["kernel"])
@pytest.mark.parametrize("data", ["heart", "iris"])
def test_round_trip_is_exact(cls, kernel, data, request, tmp_path):
    X, y = request.getfixturevalue(data)
    model = fitted(cls, X, y, **kernel)
    export_libsvm(model, tmp_path / "m")
    back = import_libsvm(tmp_path / "m", n_features=X.shape[1])
    assert type(back) is cls
    assert back.kernel_ == model.kernel_
    np.testing.assert_array_equal(back.dual_coef_, model.dual_coef_)
    np.testing.assert_array_equal(back.support_vectors_, model.support_vectors_)
    np.testing.assert_array_equal(back.intercept_, model.intercept_)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    if hasattr(model, "decision_function"):
        np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    if hasattr(model, "margin_width_"):
        np.testing.assert_allclose(back.margin_width_, model.margin_width_, rtol=1e-9)
    assert back.certificate_.status == "imported"
    export_libsvm(back, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize("cls", MACHINES)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k["kernel"])
@pytest.mark.parametrize("data", ["heart", "iris"])
def test_svm_predict_reads_ours(cls, kernel, data, request, tmp_path, write, program):
    X, y = request.getfixturevalue(data)
    model = fitted(cls, X, y, **kernel)
    export_libsvm(model, tmp_path / "m")
    program("svm-predict", write(X, y), tmp_path / "m", tmp_path / "out")
    theirs = np.loadtxt(tmp_path / "out")
    if cls in (SVR, NuSVR):
        np.testing.assert_allclose(theirs, model.predict(X), rtol=1e-5)  # it prints six digits
    else:
        # A one-class machine's free support vectors lie on the boundary: rounding decides their side.
        clear = np.abs(model.decision_function(X)) > 1e-9 if cls is OneClassSVM else slice(None)
        np.testing.assert_array_equal(theirs[clear], model.predict(X)[clear])


@pytest.mark.parametrize("svm_type", range(5))
@pytest.mark.parametrize("kernel_type", range(4))
@pytest.mark.parametrize("data", ["heart", "iris"])
def test_ours_reads_svm_train(svm_type, kernel_type, data, request, tmp_path, write, program):
    X, y = request.getfixturevalue(data)
    # The samples of the last class come first: the file's order of labels is not the sorted one.
    X, y = X[::-1], y[::-1]
    options = ["-s", svm_type, "-t", kernel_type, "-n", "0.3", "-g", "0.05", "-q"]
    program("svm-train", *options, write(X, y), tmp_path / "m")
    program("svm-predict", tmp_path / "data.txt", tmp_path / "m", tmp_path / "out")
    model = import_libsvm(tmp_path / "m", n_features=X.shape[1])
    assert type(model) is [SVC, NuSVC, OneClassSVM, SVR, NuSVR][svm_type]
    theirs = np.loadtxt(tmp_path / "out")
    if svm_type >= 3:
        np.testing.assert_allclose(theirs, model.predict(X), rtol=1e-5, atol=1e-8)
    else:
        np.testing.assert_array_equal(theirs, model.predict(X))


@pytest.mark.parametrize("data", ["heart", "iris"])
def test_probabilities_agree_with_libsvm(data, request, tmp_path, write, program):
    X, y = request.getfixturevalue(data)
    model = SVC(probability=True).fit(X, y)
    export_libsvm(model, tmp_path / "m")
    program("svm-predict", "-b", 1, write(X, y), tmp_path / "m", tmp_path / "out")
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[0].split()[1:] == [str(label) for label in model.classes_]
    theirs = np.array([line.split()[1:] for line in lines[1:]], dtype=float)
    # Where sigmoid and decision disagree, ours are moved until the predicted class is the likeliest.
    same = np.argmax(theirs, axis=1) == np.argmax(model.predict_proba(X), axis=1)
    assert same.mean() > 0.9
    np.testing.assert_allclose(theirs[same], model.predict_proba(X)[same], atol=2e-3)
    back = import_libsvm(tmp_path / "m", n_features=X.shape[1])
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("data", ["heart", "iris"])
def test_probabilities_of_svm_train(data, request, tmp_path, write, program):
    X, y = request.getfixturevalue(data)
    X, y = X[::-1], y[::-1]
    program("svm-train", "-b", 1, "-q", write(X, y), tmp_path / "m")
    program("svm-predict", "-b", 1, tmp_path / "data.txt", tmp_path / "m", tmp_path / "out")
    lines = (tmp_path / "out").read_text().splitlines()
    order = np.argsort([int(word) for word in lines[0].split()[1:]])
    theirs = np.array([line.split()[1:] for line in lines[1:]], dtype=float)[:, order]
    ours = import_libsvm(tmp_path / "m", n_features=X.shape[1]).predict_proba(X)
    same = np.argmax(theirs, axis=1) == np.argmax(ours, axis=1)
    assert same.mean() > 0.9
    np.testing.assert_allclose(theirs[same], ours[same], atol=2e-3)


def test_precomputed(heart, tmp_path, program):
    X, y = heart
    K = X @ X.T
    model = SVC(kernel="precomputed").fit(K, y)
    export_libsvm(model, tmp_path / "m")
    back = import_libsvm(tmp_path / "m", n_features=len(y))
    np.testing.assert_array_equal(back.decision_function(K), model.decision_function(K))
    rows = [
        " ".join([str(label), f"0:{i + 1}", *(f"{j + 1}:{v!r}" for j, v in enumerate(row))])
        for i, (label, row) in enumerate(zip(y.tolist(), K.tolist(), strict=True))
    ]
    (tmp_path / "k.txt").write_text("\n".join(rows) + "\n")
    program("svm-predict", tmp_path / "k.txt", tmp_path / "m", tmp_path / "out")
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "out"), model.predict(K))


def test_sparse_support_vectors_stay_sparse(tmp_path):
    random = np.random.default_rng(0)
    X = sparse.random_array((60, 200), density=0.05, rng=random, format="csr")
    y = np.arange(60) % 3
    model = SVC(kernel="linear").fit(X, y)
    export_libsvm(model, tmp_path / "m")
    back = import_libsvm(tmp_path / "m", n_features=200)
    assert sparse.issparse(back.support_vectors_)
    assert sparse.issparse(back.dual_coef_)
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SVC(kernel="laplacian"), "Laplacian"),
        (SVC(multiclass="ovr"), "multiclass='ovo'"),
        (SVC(multiclass="joint"), "multiclass='ovo'"),
        (LogisticRegression(), "not LogisticRegression"),
    ],
)
def test_what_a_file_cannot_express_is_refused(model, words, iris, tmp_path):
    model.fit(*iris)
    with pytest.raises(ModelFileError, match=words):
        export_libsvm(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_text_labels_and_pipelines_are_refused(iris, tmp_path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = iris
    with pytest.raises(ModelFileError, match="whole numbers only"):
        export_libsvm(SVC().fit(X, y.astype(str)), tmp_path / "m")
    with pytest.raises(ModelFileError, match="StandardScaler"):
        export_libsvm(make_pipeline(StandardScaler(), SVC()).fit(X, y), tmp_path / "m")


GOOD = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho 0.25
label 1 -1
nr_sv 1 1
SV
1 1:0.5 3:1
-1 2:2
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("c_svc", "d_svc", "line 1: svm_type 'd_svc' is not one of"),
        ("rbf", "string", "line 2: kernel_type"),
        ("gamma 0.5", "gamma nan", "line 3: gamma"),
        ("gamma 0.5", "gamma -1", "gamma must be positive"),
        ("gamma 0.5\n", "", "no line 'gamma'"),
        ("nr_class 2", "nr_class 3", "rho needs 3 values"),
        ("total_sv 2", "total_sv 3", "nr_sv sums up to 2"),
        ("total_sv 2", "total_sv 99999999999", "line 5: total_sv"),
        ("rho 0.25", "rho 0.25x", "line 6: rho"),
        ("rho 0.25", "rho 0.25\nrho 1", "line 7: 'rho' for the second time"),
        ("label 1 -1", "label 1 1", "names a class twice"),
        ("SV\n", "", "line 9: '1' is unknown"),
        ("-1 2:2\n", "", "1 support vectors follow"),
        ("-1 2:2", "inf 2:2", "line 11: coefficient"),
        ("1:0.5 3:1", "3:1 1:0.5", "line 10: index 1"),
        ("1:0.5 3:1", "1:0.5 x", "line 10: 'x'"),
        ("1:0.5 3:1", "0:0.5 3:1", "index 0"),
        ("2:2", "2:2 # no", "line 11"),
        ("nr_sv 1 1", "nr_sv 1 1\nnoise 3", "line 9: 'noise' is unknown"),
    ],
)
def test_damage_is_refused_with_line_and_reason(old, new, words, tmp_path):
    path = tmp_path / "m"
    path.write_text(GOOD)
    assert import_libsvm(path).n_features_in_ == 3
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ModelFileError) as caught:
        import_libsvm(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        import_libsvm(tmp_path / "none")
    with pytest.raises(ModelFileError, match="not a regular file"):
        import_libsvm(tmp_path)


def test_a_large_index_needs_no_memory(tmp_path):
    path = tmp_path / "m"
    path.write_text(GOOD.replace("3:1", "2147483647:1"))
    narrow = tmp_path / "n"
    narrow.write_text(GOOD)
    tracemalloc.start()
    model = import_libsvm(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.n_features_in_ == 2147483647
    assert peak < 5e6
    np.testing.assert_allclose(model.margin_width_, import_libsvm(narrow).margin_width_)


@settings(max_examples=150)
@given(
    cut=st.integers(0, len(GOOD)),
    noise=st.binary(max_size=12)
    | st.sampled_from([b"9" * 20, b"1e999", b"-", b"\n\n", b" 2147483647:1 ", b"nan"]),
    keep=st.integers(0, 20),
)
def test_fuzzed_files_are_read_or_refused(cut, noise, keep, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "m"
    text = GOOD.encode()
    path.write_bytes(text[:cut] + noise + text[cut + keep :])
    try:
        model = import_libsvm(path)
    except ModelFileError:
        return
    assert np.all(np.isfinite(model.intercept_))
