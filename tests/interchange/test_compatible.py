"""svm-train, svm-predict, svm-scale, liblinear-train, liblinear-predict and convert, as scripts call them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import separatrix as sx
from separatrix.cli import main
from separatrix.persistence.interchange import import_libsvm


@pytest.fixture
def run(capsys):
    def call(*arguments, code=0):
        assert main([str(argument) for argument in arguments]) == code
        return capsys.readouterr()

    return call


@pytest.mark.parametrize("svm_type", range(5))
@pytest.mark.parametrize("data", ["heart", "iris"])
def test_svm_train_and_predict_as_libsvm(svm_type, data, request, tmp_path, write, program, run):
    X, y = request.getfixturevalue(data)
    file = write(X, y)
    options = ["-s", svm_type, "-n", "0.4", "-c", "2", "-e", "1e-6", "-q"]
    run("svm-train", *options, file, tmp_path / "ours")
    program("svm-train", *options, file, tmp_path / "theirs")
    said = {}
    for maker in ("ours", "theirs"):
        said[maker] = run("svm-predict", file, tmp_path / maker, tmp_path / f"{maker}.ours").out
        said[maker + "+"] = program("svm-predict", file, tmp_path / maker, tmp_path / f"{maker}.theirs")
    outputs = [np.loadtxt(tmp_path / f"{a}.{b}") for a in ("ours", "theirs") for b in ("ours", "theirs")]
    for other in outputs[1:]:
        if svm_type > 2:
            np.testing.assert_allclose(other, outputs[0], atol=2e-4)
        elif svm_type == 2:  # free support vectors lie on the boundary
            assert np.mean(other == outputs[0]) > 0.97
        else:
            np.testing.assert_array_equal(other, outputs[0])
    if svm_type < 2:
        assert said["ours"] == said["theirs"] == said["ours+"] == said["theirs+"]
        assert said["ours"].startswith("Accuracy = ")
        assert said["ours"].endswith(f"/{len(y)}) (classification)\n")
    assert said["theirs"].split("=")[0] == said["theirs+"].split("=")[0]


def test_defaults_are_libsvms(heart, tmp_path, write, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = heart
    write(X, y)
    said = run("svm-train", "data.txt").out
    assert "optimization finished, #iter = " in said
    assert "Total nSV = " in said
    model = Path("data.txt.model").read_text()
    assert f"gamma {1 / 13!r}\n" in model
    assert model.startswith("svm_type c_svc\nkernel_type rbf\n")


def test_probabilities_weights_and_folds(heart, iris, tmp_path, write, program, run):
    file = write(*iris)
    run("svm-train", "-b", 1, "-q", file, tmp_path / "m")
    run("svm-predict", "-b", 1, "-q", file, tmp_path / "m", tmp_path / "out")
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[0] == "labels 1 2 3"
    assert np.loadtxt(lines[1:]).shape == (150, 4)
    assert "disabled in prediction" in run("svm-predict", file, tmp_path / "m", tmp_path / "out").out
    said = run("svm-train", "-v", 5, file).out
    assert said.startswith("Cross Validation Accuracy = 9")
    assert said.endswith("%\n")
    assert "Squared correlation coefficient = 0.9" in run("svm-train", "-s", 3, "-v", 5, file).out

    heart_file = write(*heart, name="heart.txt")
    assert "class label 7" in run("svm-train", "-w1", 5, "-w7", 2, "-q", heart_file, tmp_path / "m").err
    program("svm-train", "-w1", 5, "-q", heart_file, tmp_path / "n")
    said = run("svm-predict", heart_file, tmp_path / "m", tmp_path / "out").out
    assert said == program("svm-predict", heart_file, tmp_path / "n", tmp_path / "other")
    assert (tmp_path / "out").read_text() == (tmp_path / "other").read_text()


def test_weights_of_classes_count_for_c_machines_only(heart, tmp_path, write, program, run):
    file = write(*heart)
    words = "-s", "1", "-n", "0.3", "-w1", "5", "-e", "1e-8", "-q", file
    assert "-wi counts for C-SVC" in run("svm-train", *words, tmp_path / "m").err
    program("svm-train", *words, tmp_path / "n")
    ours, theirs = (import_libsvm(tmp_path / name) for name in "mn")
    X = heart[0]
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


def test_precomputed_kernel(heart, tmp_path, program, run):
    X, y = heart
    K = X @ X.T
    file = tmp_path / "k.txt"
    rows = [
        " ".join([str(label), f"0:{i + 1}", *(f"{j + 1}:{v!r}" for j, v in enumerate(row))])
        for i, (label, row) in enumerate(zip(y.tolist(), K.tolist(), strict=True))
    ]
    file.write_text("\n".join(rows) + "\n")
    run("svm-train", "-t", 4, "-q", file, tmp_path / "m")
    assert run("svm-predict", file, tmp_path / "m", tmp_path / "a").out == program(
        "svm-predict", file, tmp_path / "m", tmp_path / "b"
    )
    assert (tmp_path / "a").read_text().split() == (tmp_path / "b").read_text().split()


def test_samples_with_more_and_fewer_features(tmp_path, run, program):
    (tmp_path / "train").write_text("1 1:1 2:2\n-1 1:-1\n1 1:2\n-1 2:-1\n")
    (tmp_path / "test").write_text("1 1:1 5:3\n-1 1:-1\n")
    (tmp_path / "narrow").write_text("1 1:1\n-1 1:-1\n")
    for test in ("test", "narrow"):
        for command, predict in (("svm-train", "svm-predict"), ("liblinear-train", "liblinear-predict")):
            run(command, "-q", tmp_path / "train", tmp_path / "m")
            run(predict, "-q", tmp_path / test, tmp_path / "m", tmp_path / "a")
            program(predict, tmp_path / test, tmp_path / "m", tmp_path / "b")
            assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()


@pytest.mark.parametrize("solver", [0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13])
@pytest.mark.parametrize("bias", [-1, 2])
@pytest.mark.parametrize("data", ["heart", "iris"])
def test_liblinear_train_and_predict(solver, bias, data, request, tmp_path, write, program, run):
    X, y = request.getfixturevalue(data)
    file = write(X, y)
    options = ["-s", solver, "-B", bias, "-e", 1e-7, "-c", 0.5, "-q"]
    run("liblinear-train", *options, file, tmp_path / "ours")
    program("liblinear-train", *options, file, tmp_path / "theirs")
    weights = {
        name: np.loadtxt((tmp_path / name).read_text().partition("\nw\n")[2].splitlines(), ndmin=2)
        for name in ("ours", "theirs")
    }
    heads = {name: (tmp_path / name).read_text().partition("\nw\n")[0] for name in weights}
    if solver < 11 and weights["ours"].shape[1] == 1:
        turned = (
            heads["ours"].split("label ")[1].split("\n")[0]
            != heads["theirs"].split("label ")[1].split("\n")[0]
        )
        weights["theirs"] = -weights["theirs"] if turned else weights["theirs"]
    if solver not in (4, 5):  # LIBLINEAR leaves these farther from their optimum
        np.testing.assert_allclose(
            weights["ours"], weights["theirs"], atol=0.02 * np.abs(weights["theirs"]).max()
        )
    if solver == 5:
        columns = np.column_stack([X, np.full(len(y), bias)]) if bias > 0 else X
        labels = [int(word) for word in heads["ours"].split("label ")[1].split("\n")[0].split()]
        values = {}
        for name, W in weights.items():
            m = np.stack([np.where(y == labels[k], 1, -1) * (columns @ w) for k, w in enumerate(W.T)])
            values[name] = np.abs(W).sum() + 0.5 * np.sum(np.maximum(0, 1 - m) ** 2)
        assert values["ours"] <= values["theirs"] * (1 + 1e-9)
    said = run("liblinear-predict", file, tmp_path / "ours", tmp_path / "a").out
    assert said == program("liblinear-predict", file, tmp_path / "ours", tmp_path / "b")
    np.testing.assert_allclose(np.loadtxt(tmp_path / "a"), np.loadtxt(tmp_path / "b"), rtol=1e-5)


def test_liblinear_options(heart, iris, tmp_path, write, program, run):
    file = write(*iris)
    run("liblinear-train", "-s", 0, "-B", 1, "-R", "-q", file, tmp_path / "m")
    run("liblinear-predict", "-b", 1, "-q", file, tmp_path / "m", tmp_path / "a")
    program("liblinear-predict", "-b", 1, file, tmp_path / "m", tmp_path / "b")
    ours, theirs = (np.loadtxt(tmp_path / name, skiprows=1) for name in "ab")
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    assert run("liblinear-train", "-v", 5, file).out.startswith("Cross Validation Accuracy = 9")


@pytest.mark.parametrize("options", [[], ["-l", "0"], ["-y", "-2", "2"]])
def test_svm_scale(options, heart, tmp_path, write, program, run):
    X, y = heart
    X = X[:, :5].copy()
    X[:, 3] = 0.25  # says nothing, and is left out
    train, test = write(X[:200], y[:200], "train"), write(X[200:] * 1.5, y[200:], "test")
    ours = run("svm-scale", *options, "-s", tmp_path / "ours", train).out
    assert ours == program("svm-scale", *options, "-s", tmp_path / "theirs", train)
    assert (tmp_path / "ours").read_text() == (tmp_path / "theirs").read_text()
    assert run("svm-scale", "-r", tmp_path / "theirs", test).out == program(
        "svm-scale", "-r", tmp_path / "ours", test
    )


def test_svm_scale_warns_where_zeros_are_lost(tmp_path, run, program):
    file = tmp_path / "counts"
    file.write_text("1 1:2\n2 2:3\n1 3:1\n")
    said = run("svm-scale", file)
    assert said.out == program("svm-scale", file)
    assert "use -l 0 rather than the default -l -1" in said.err
    assert run("svm-scale", "-l", 0, file).err == ""


def test_more_folds_than_samples(iris, tmp_path, write, run, program):
    X, y = iris
    file = write(X[::10], y[::10])  # leaving one out, folds are not a matter of chance
    for command in ("svm-train", "liblinear-train"):
        said = run(command, "-v", 100, "-q", file)
        assert said.out == program(command, "-v", 100, "-q", file)
        assert said.err.startswith("WARNING: only 15 samples")
    few = write(X[:4], X[:4, 0], "few")
    program("svm-train", "-s", 3, "-b", 1, few, tmp_path / "m")
    run("svm-train", "-s", 3, "-b", 1, few, tmp_path / "m")  # its noise is estimated by five folds


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["svm-train"], "0 file names"),
        (["svm-train", "-z", "1", "DATA"], "unknown option -z"),
        (["svm-train", "-s", "9", "DATA"], "-s: '9' is not a value"),
        (["svm-train", "-c"], "-c needs a value"),
        (["svm-train", "-s", "2", "-b", "1", "DATA"], "-b 1 is not supported"),
        (["svm-train", "-c", "-1", "DATA"], "'C' parameter"),
        (["svm-train", "-v", "1", "DATA"], "must be 2 or more"),
        (["svm-train", "-s", "1", "-n", "2", "DATA"], "'nu' parameter"),
        (["svm-predict", "DATA", "nowhere", "out"], "no such file"),
        (["svm-predict", "DATA", "DATA", "out"], "line 1"),
        (["svm-scale", "-s", "a", "-r", "b", "DATA"], "-r and -s"),
        (["svm-scale", "-r", "DATA", "DATA"], "not a range file"),
        (["liblinear-train", "-C", "-s", "3", "DATA"], "-C searches for -s 0, -s 2 and -s 11"),
        (["liblinear-train", "-M", "1", "DATA"], "no place for pairs of classes"),
        (["liblinear-train", "-s", "20", "DATA"], "-s: '20' is not"),
        (["liblinear-train", "-s", "21", "-B", "1", "DATA"], "-B is not for one class"),
        (["liblinear-train", "-s", "21", "-n", "2", "DATA"], "'nu' parameter"),
        (["liblinear-train", "-R", "DATA"], "-R needs -B 1"),
        (["liblinear-predict", "DATA", "DATA", "out"], "line 1"),
        (["convert", "nowhere.sx", "a.model"], "no such file"),
        (["convert", "DATA", "a.txt"], "must end in"),
    ],
)
def test_refusals(words, message, heart, tmp_path, write, run):
    file = write(*heart)
    before = sorted(tmp_path.iterdir())
    # The stand-ins end as LIBSVM's and LIBLINEAR's programs do.
    code = 2 if words[0] == "convert" else 1
    said = run(*(file if word == "DATA" else word for word in words), code=code)
    assert said.out == ""
    assert said.err.startswith("separatrix: error: ")
    assert message in said.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("svm_type", [3, 4])
def test_noise_of_a_regression(svm_type, tmp_path, write, program, run):
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(150, 3))
    file = write(X, np.sin(3 * X[:, 0]) + 0.3 * random.laplace(size=150))
    options = ["-s", svm_type, "-b", "1", "-p", "0.05"]
    said = run("svm-train", *options, file, tmp_path / "ours").out
    assert "Prob. model for test data: target value = predicted value + z," in said
    program("svm-train", *options, file, tmp_path / "theirs")
    sigma = {}
    for name in ("ours", "theirs"):
        told = run("svm-predict", "-b", "1", file, tmp_path / name, tmp_path / "a").out
        assert (
            told.splitlines()[1:2]
            == program("svm-predict", "-b", "1", file, tmp_path / name, tmp_path / "b").splitlines()[1:2]
        )
        np.testing.assert_allclose(np.loadtxt(tmp_path / "a"), np.loadtxt(tmp_path / "b"), atol=1e-5)
        sigma[name] = float(told.splitlines()[1].rpartition("=")[2])
    assert sigma["ours"] == pytest.approx(sigma["theirs"], rel=0.1)  # other folds
    run("convert", tmp_path / "ours", tmp_path / "m.sx")
    run("convert", tmp_path / "m.sx", tmp_path / "again.model")
    assert (tmp_path / "again.model").read_text() == (tmp_path / "ours").read_text()


def test_rounded_kernel_matrices(heart, tmp_path, run, program):
    X, y = heart
    K = (X @ X.T) * (1 + 1e-7 * np.random.default_rng(0).normal(size=(len(X), len(X))))
    lines = [
        f"{label} 0:{i + 1} " + " ".join(f"{j + 1}:{v:.9g}" for j, v in enumerate(row))
        for i, (label, row) in enumerate(zip(y, K, strict=True))
    ]
    file = tmp_path / "kernel"
    file.write_text("\n".join(lines) + "\n")
    run("svm-train", "-t", "4", "-q", file, tmp_path / "ours")
    program("svm-train", "-t", "4", "-q", file, tmp_path / "theirs")
    ours = run("svm-predict", file, tmp_path / "ours", tmp_path / "a").out
    assert ours == program("svm-predict", file, tmp_path / "theirs", tmp_path / "b")
    assert "Accuracy" in run("svm-train", "-t", "4", "-v", "3", "-b", "1", file).out


def test_search_for_a_cost(heart, tmp_path, write, run, program):
    file = write(*heart)
    for options in (["-s", "0"], ["-v", "3"], ["-c", "2", "-q"]):
        ours, theirs = (call("liblinear-train", "-C", *options, file) for call in (run, program))
        best = [float(said.split("Best C = ")[1].split()[0]) for said in (ours.out, theirs)]
        rates = [float(said.split("CV accuracy = ")[1].split("%")[0]) for said in (ours.out, theirs)]
        assert rates[0] == pytest.approx(rates[1], abs=3.0)
        assert np.log2(best[0]) % 1 == np.log2(best[1]) % 1 == 0
        first = [said.split("log2c=")[1].split()[0] for said in (ours.out, theirs) if "log2c" in said]
        assert len(set(first)) <= 1  # both begin with the same
        assert ("maximum C reached" in ours.out) == ("maximum C reached" in theirs)
    run("liblinear-train", "-m", "2", "-q", file, tmp_path / "m")


def test_search_for_cost_and_tube(tmp_path, write, run, program):
    random = np.random.default_rng(1)
    X = random.uniform(-1, 1, size=(60, 2))
    file = write(X, X @ [1.0, -2.0] + 0.2 * random.normal(size=60))
    ours, theirs = (call("liblinear-train", "-C", "-s", 11, "-v", 3, file) for call in (run, program))
    first = [said.split("log2c=")[1].split("Mean")[0].replace(" ", "") for said in (ours.out, theirs)]
    assert first[0] == first[1]  # both begin with the same cost and tube
    found = [float(said.split("CV MSE = ")[1].split()[0]) for said in (ours.out, theirs)]
    assert found[0] == pytest.approx(found[1], rel=0.3)  # other folds
    said = run("liblinear-train", "-C", "-s", 11, "-p", 0.3, "-c", 4, "-q", file).out
    assert "log2c" not in said
    assert float(said.split("Best C = ")[1].split()[0]) >= 4


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_one_class_as_liblinear(nu, heart, tmp_path, write, run, program):
    """LIBSVM's one-class machine with a linear kernel is the same problem."""
    X, y = heart
    file = write(X + 1.0, y)
    run("liblinear-train", "-s", 21, "-n", nu, "-e", 1e-6, "-q", file, tmp_path / "ours")
    program("svm-train", "-s", 2, "-t", 0, "-n", nu, "-e", 1e-6, "-q", file, tmp_path / "theirs")
    head, _, weights = (tmp_path / "ours").read_text().partition("\nw\n")
    assert head.startswith(f"solver_type ONECLASS_SVM\nnr_class 2\nnr_feature {X.shape[1]}\nbias -1.0\nrho ")
    theirs = import_libsvm(tmp_path / "theirs")
    np.testing.assert_allclose(np.loadtxt(weights.splitlines()), theirs.coef_[0], rtol=1e-3, atol=1e-3)
    assert float(head.split("rho ")[1]) == pytest.approx(-float(theirs.intercept_[0]), rel=1e-4)
    said = run("liblinear-predict", file, tmp_path / "ours", tmp_path / "a").out
    program("svm-predict", file, tmp_path / "theirs", tmp_path / "b")
    ours, theirs = np.loadtxt(tmp_path / "a"), np.loadtxt(tmp_path / "b")
    assert np.mean(ours != theirs) < 0.03  # those on the boundary
    assert set(ours) == {-1, 1}
    assert said == f"Accuracy = {100 * np.mean(ours == y):g}% ({np.sum(ours == y)}/{len(y)})\n"
    assert run("convert", tmp_path / "ours", tmp_path / "m.sx", code=2).err.count("no support vectors") == 1


def test_convert_there_and_back(heart, iris, tmp_path, run):
    for model, (X, y) in ((sx.SVC(), heart), (sx.SVR(), iris), (sx.LogisticRegression(), heart)):
        sx.save(model.fit(X, y), tmp_path / "a.sx")
        assert type(model).__name__ in run("convert", tmp_path / "a.sx", tmp_path / "b.model").out
        run("convert", tmp_path / "b.model", tmp_path / "c.sx")
        np.testing.assert_array_equal(sx.load(tmp_path / "c.sx").predict(X), model.predict(X))
        assert "read from a LIB" in run("info", tmp_path / "c.sx").out if hasattr(model, "classes_") else True


def test_real_processes(heart, tmp_path, write):
    """The program itself, with words in the order of LIBSVM's scripts."""
    file = write(*heart)
    program = str(Path(sys.executable).with_name("separatrix"))
    for words, said in [
        (["svm-train", "-s", "0", "-t", "2", "-h", "0", "-w-1", "2", str(file), "m"], "Total nSV"),
        (["liblinear-train", "-B", "1", str(file), "l"], "optimization finished"),
    ]:
        done = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["svm-train", "DATA", "PLACE"],
        ["svm-predict", "DATA", "nowhere", "PLACE"],
        ["svm-scale", "-s", "PLACE", "nowhere"],
        ["liblinear-train", "DATA", "PLACE"],
        ["liblinear-predict", "DATA", "nowhere", "PLACE"],
        ["convert", "nowhere", "PLACE/m.sx"],
    ],
)
def test_a_place_that_cannot_be_written_is_told_first(words, heart, tmp_path, write, run, monkeypatch):
    file, place = write(*heart), str(tmp_path / "absent" / "out")
    monkeypatch.setattr(sx.SVC, "fit", None)  # no fit, nor a look at other files, comes before
    monkeypatch.setattr(sx.LinearSVC, "fit", None)
    given = [file if word == "DATA" else word.replace("PLACE", place) for word in words]
    said = run(*given, code=2 if words[0] == "convert" else 1)
    assert "there is no directory" in said.err
    assert str(tmp_path / "absent") in said.err


def test_cross_validation_writes_no_model(heart, tmp_path, write, run, monkeypatch):
    file = write(*heart)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    run("svm-train", "-v", "3", file, "absent/m")
    run("liblinear-train", "-v", "3", file, "absent/m")
    assert sorted(tmp_path.iterdir()) == before


def test_devices_are_written_to_as_they_are(heart, tmp_path, write):
    """Scripts send what they do not need to /dev/null, and what they want to see to /dev/stdout."""
    file = write(*heart)
    program = str(Path(sys.executable).with_name("separatrix"))

    def call(*words):
        done = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    call("svm-train", "-q", str(file), "/dev/null")
    call("svm-train", "-q", str(file), "m")
    call("svm-predict", "-q", str(file), "m", "out")
    assert call("svm-predict", "-q", str(file), "m", "/dev/stdout") == (tmp_path / "out").read_text()
    assert call("svm-predict", str(file), "m", "/dev/null").startswith("Accuracy = ")


@pytest.mark.parametrize("labels", [(-1, 1), (1, -1), (2, 1), (3, 1, 2), (0, 5, -4)])
def test_classes_are_listed_as_they_first_appear(labels, tmp_path, write, program, run):
    """Columns of probabilities, and signs in model files, are where scripts look for them."""
    random = np.random.default_rng(0)
    codes = np.concatenate([np.arange(len(labels)), random.integers(0, len(labels), 120)])
    X = np.eye(3)[codes] + random.normal(size=(len(codes), 3))  # labels and probabilities disagree at times
    file = write(X, np.array(labels)[codes])

    def listed(name):
        return next(line for line in (tmp_path / name).read_text().splitlines() if line.startswith("label"))

    for words in (["svm-train", "-b", "1"], ["liblinear-train", "-s", "0", "-e", "1e-6"]):
        predict = words[0].replace("train", "predict")
        program(*words, file, tmp_path / "theirs")
        run(*words, file, tmp_path / "ours")
        assert listed("ours") == listed("theirs")
        found = {}
        for model in ("ours", "theirs"):
            for tool in (program, run):
                tool(predict, "-b", "1", file, tmp_path / model, tmp_path / "out")
                found[model, tool] = np.loadtxt((tmp_path / "out").read_text().splitlines()[1:])
                assert listed("out").split()[1:] == listed("theirs").split()[1:]
            # LIBSVM couples pairs of classes in an iteration that ends early.
            np.testing.assert_allclose(found[model, run], found[model, program], rtol=1e-4, atol=4e-3)
        # Probabilities of machines come from other folds; those of logistic regression are unique.
        near = 0.2 if predict == "svm-predict" else 1e-3
        np.testing.assert_allclose(found["ours", run][:, 1:], found["theirs", program][:, 1:], atol=near)
