"""evaluate, plot and bench; predict in every format; on the real files in tests/data."""

import csv
import gzip
import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn import metrics as reference
from sklearn.datasets import dump_svmlight_file

import separatrix as sx
from separatrix.cli import metrics
from separatrix.data.files import read

pytestmark = pytest.mark.usefixtures("no_leftovers")


@pytest.fixture
def iris_model(run, iris, tmp_path):
    path = tmp_path / "iris.sx"
    assert run("fit", iris, "--test-size", 0, "--save", path, "--quiet") == (0, "", "")
    return path


# ------------------------------------------------------------------------------------- what needs preparation


def test_text_columns_and_missing_values(run, refused, data, tmp_path):
    adult, path = data("adult.csv"), tmp_path / "m.sx"
    message = refused("fit", adult, "--target", "income")
    for part in ("missing values", "of 400 rows", "--missing drop", "--missing mean"):
        assert part in message
    code, out, err = run("fit", adult, "--target", "income", "--missing", "mean", "--save", path)
    assert code == 0, err
    assert "8 text columns one-hot encoded" in out
    assert "missing numbers replaced by the column's mean" in out
    predicted = run("predict", path, adult, "--probabilities", "--json")
    assert predicted.code == 0, predicted.err
    report = json.loads(predicted.out)
    table = read(adult, "income", missing="keep")
    expected = sx.load(path).predict_proba(table.X)
    np.testing.assert_array_equal(report["probabilities"], expected)
    dropped = run("fit", adult, "--missing", "drop", "--save", path, "--json")
    assert json.loads(dropped.out)["rows"] == read(adult, "income", missing="drop").X.num_rows < 400
    assert "missing value" in refused("predict", path, adult)
    assert "use drop" in refused("evaluate", path, adult, "--missing", "mean")
    assert json.loads(run("evaluate", path, adult, "--missing", "drop", "--json").out)["rows"] < 400


def test_numbers_with_gaps_only(run, tmp_path):
    path, model = tmp_path / "t.csv", tmp_path / "m.sx"
    path.write_text("a,b,y\n1,2,u\n,3,u\n5,6,v\n6,,v\n")
    assert run("fit", path, "--missing", "mean", "--test-size", 0, "--save", model, "--quiet").code == 0
    assert [type(step).__name__ for _, step in sx.load(model).steps][:2] == [
        "SimpleImputer",
        "StandardScaler",
    ]
    assert run("predict", model, path).out == "prediction\nu\nu\nv\nv\n"


def test_unknown_categories_are_no_error(run, data, tmp_path):
    adult, path = data("adult.csv"), tmp_path / "m.sx"
    run("fit", adult, "--missing", "drop", "--save", path, "--quiet")
    text = adult.read_text().replace("Private", "Piracy").replace("?", "Unknown")
    adult.write_text(text)
    assert run("predict", path, adult).code == 0


def test_sparse_text_is_not_centred(run, iris, tmp_path):
    X, _, y = read(iris, "species")
    path = tmp_path / "iris.svm"
    dump_svmlight_file(X, np.unique(y, return_inverse=True)[1], str(path), zero_based=False)
    code, out, _ = run("fit", path, "--save", tmp_path / "m.sx")
    assert code == 0
    assert "features as they are" in out
    scaled = run("fit", path, "--standardize", "--save", tmp_path / "s.sx")
    assert "scaled to standard deviation 1" in scaled.out
    for name in ("m.sx", "s.sx"):
        report = json.loads(run("evaluate", tmp_path / name, path, "--json").out)
        assert report["accuracy"] > 0.9
        assert report["classes"] == [0, 1, 2]


@pytest.mark.parametrize("options", [["--no-header", "--target", "5"], ["--no-header"]])
def test_without_header(run, iris, tmp_path, options):
    path, model = tmp_path / "bare.csv", tmp_path / "m.sx"
    path.write_text(iris.read_text().partition("\n")[2])
    assert run("fit", path, *options, "--save", model, "--quiet") == (0, "", "")
    assert run("predict", model, path, "--no-header").out.count("\n") == 151


# ------------------------------------------------------------------------------------------------- predict


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_predictions_in_every_format(run, iris, iris_model, tmp_path, suffix):
    output = tmp_path / f"out.{suffix}"
    words = ("--scores", "--probabilities", "--output", output)
    assert run("predict", iris_model, iris, *words) == (0, "", "")
    if suffix in ("csv", "tsv"):
        delimiter = "\t" if suffix == "tsv" else ","
        rows = list(csv.DictReader(output.read_text().splitlines(), delimiter=delimiter))
    elif suffix == "jsonl":
        rows = [json.loads(line) for line in output.read_text().splitlines()]
    else:
        rows = pq.read_table(output).to_pylist()
    model = sx.load(iris_model)
    X = read(iris, "species").X
    with pytest.warns(UserWarning, match="feature names"):
        expected = model.predict_proba(X)
    assert [row["prediction"] for row in rows] == model.classes_[expected.argmax(axis=1)].tolist()
    found = [[float(row[f"probability {label}"]) for label in model.classes_] for row in rows]
    np.testing.assert_array_equal(found, expected)  # to the last bit
    assert "score setosa" in rows[0]


def test_other_endings_are_refused(refused, iris, iris_model, tmp_path):
    message = refused("predict", iris_model, iris, "--output", tmp_path / "out.xlsx")
    assert "must end in one of .csv, .tsv, .jsonl" in message


def test_block_by_block_is_the_same(run, iris, iris_model, monkeypatch):
    whole = run("predict", iris_model, iris, "--probabilities").out
    monkeypatch.setattr("separatrix.data.files._csv._BLOCK_BYTES", 300)
    assert run("predict", iris_model, iris, "--probabilities").out == whole


def test_models_without_probabilities_say_so(run, refused, iris, tmp_path):
    run("fit", iris, "--model", "perceptron", "--save", tmp_path / "m.sx", "--quiet")
    assert "--scores" in refused("predict", tmp_path / "m.sx", iris, "--probabilities")


def test_a_matrix_for_a_model_of_columns(refused, iris_model, tmp_path):
    np.savez(tmp_path / "t.npz", X=np.zeros((2, 4)), y=[0, 1])
    assert "columns by name" in refused("predict", iris_model, tmp_path / "t.npz")


# ------------------------------------------------------------------------------------------------ evaluate


def test_columns_of_a_matrix_are_numbered(run, refused, tmp_path):
    """The target of an .npy file is a column, to be named wherever the classes are needed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    np.save(tmp_path / "t.npy", np.column_stack([X, X[:, 0] > 0]))
    model = tmp_path / "m.sx"
    assert "--target 2 is the last" in refused("fit", tmp_path / "t.npy")
    assert "saved" in run("fit", tmp_path / "t.npy", "--target", 2, "--save", model).out
    assert "accuracy" in run("evaluate", model, tmp_path / "t.npy", "--target", 2).out
    assert "fitted on 2; give the columns" in refused("predict", model, tmp_path / "t.npy")


def test_evaluation_like_scikit_learn(run, banknote, tmp_path):
    path = tmp_path / "m.sx"
    run("fit", banknote, "--save", path, "--set", "C=0.01", "--quiet")
    code, out, _ = run("evaluate", path, banknote, "--json", "--plot", tmp_path / "p.png")
    assert code == 0
    report = json.loads(out)
    model = sx.load(path)
    X, _, y = read(banknote, "class")
    with pytest.warns(UserWarning, match="feature names"):
        predicted, p, f = model.predict(X), model.predict_proba(X), model.decision_function(X)
    assert report["accuracy"] == pytest.approx(reference.accuracy_score(y, predicted))
    assert report["balanced_accuracy"] == pytest.approx(reference.balanced_accuracy_score(y, predicted))
    assert report["log_loss"] == pytest.approx(reference.log_loss(y, p))
    assert report["roc_auc"] == pytest.approx(reference.roc_auc_score(y == "genuine", f))
    assert report["confusion"] == reference.confusion_matrix(y, predicted).tolist()
    table = reference.classification_report(y, predicted, output_dict=True)
    for row in report["per_class"]:
        assert row["precision"] == pytest.approx(table[row["class"]]["precision"])
        assert row["f1"] == pytest.approx(table[row["class"]]["f1-score"])
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("words", [("fit",), ("separability",), ("tune", "--model", "lda", "--folds", "2")])
def test_reports_say_which_target_was_assumed(words, run, iris):
    command, *options = words
    said = run(command, iris, *options).out
    assert "150 rows, 4 features, target species with 3 classes (assumed; --target names another)" in said
    assert "assumed" not in run(command, iris, *options, "--target", "species").out


def test_evaluation_for_people(run, iris, iris_model, tmp_path):
    code, out, err = run("evaluate", iris_model, iris, "--plot", tmp_path / "p.svg")
    assert (code, err) == (0, "")
    for part in (
        "accuracy",
        "balanced accuracy",
        "log-loss",
        "target species",
        "confusion matrix",
        "versicolor",
    ):
        assert part in out
    assert "<svg" in (tmp_path / "p.svg").read_text()


def test_curves_of_joint_machines_are_those_of_the_displays(run, iris, tmp_path, monkeypatch):
    from separatrix.cli import evaluate
    from separatrix.plot._curves import class_scores

    path, drawn = tmp_path / "m.sx", []
    monkeypatch.setattr(evaluate, "_draw", lambda request, classes, tally, path: drawn.append(tally))
    joint = ("--model", "linear-svc", "--set", "multi_class=crammer_singer")
    run("fit", iris, *joint, "--save", path, "--quiet")
    assert run("evaluate", path, iris, "--kind", "roc", "--plot", tmp_path / "p.png").code == 0
    model = sx.load(path)
    X, _, _ = read(iris, "species")
    with pytest.warns(UserWarning, match="feature names"):
        shown, raw = class_scores(model, X)[1], model.decision_function(X)
    np.testing.assert_allclose(np.concatenate(drawn[0].scores), shown, rtol=1e-12)
    assert not np.allclose(shown, raw)


def test_classes_the_model_does_not_know(run, iris, iris_model):
    iris.write_text(iris.read_text().replace("virginica", "sibirica"))
    code, out, err = run("evaluate", iris_model, iris, "--json")
    assert code == 0
    assert "50 rows have a class that the model does not know" in err
    report = json.loads(out)
    assert report["unknown_classes"] == 50
    assert report["accuracy"] < 0.7


def test_labels_are_matched_by_value():
    numbers = np.array([1, 2, 10])
    np.testing.assert_array_equal(
        metrics.match_labels(np.array(["1", "2.0", "x", "10"]), numbers), [0, 1, -1, 2]
    )
    words = np.array(["1", "a"])
    np.testing.assert_array_equal(metrics.match_labels(np.array(["a", "1", "1.0"]), words), [1, 0, -1])
    np.testing.assert_array_equal(
        metrics.match_labels(np.array([True, False]), np.array([False, True])), [1, 0]
    )


def test_area_under_the_curve_with_ties():
    positive, scores = np.array([True, False, True, False, True]), np.array([2.0, 2.0, 3.0, 1.0, 1.0])
    assert metrics.roc_auc(positive, scores) == pytest.approx(reference.roc_auc_score(positive, scores))
    assert metrics.roc_auc(positive[:1], scores[:1]) is None


# ---------------------------------------------------------------------------------------------------- plot


@pytest.mark.parametrize(
    "kind", ["boundary", "convergence", "confusion", "roc", "precision-recall", "calibration"]
)
def test_plots(run, iris, iris_model, tmp_path, kind):
    picture = tmp_path / "p.png"
    words = [] if kind == "convergence" else [iris]
    asked = ("plot", iris_model, *words, "--kind", kind, "--output", picture)
    assert run(*asked) == (0, f"{kind} of {iris_model} drawn in {picture}\n", "")
    told = json.loads(run(*asked, "--json").out)
    assert told == {"model": str(iris_model), "kind": kind, "picture": str(picture)}
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_plots_that_cannot_be(refused, run, iris, iris_model, data, tmp_path):
    picture = tmp_path / "p.png"
    assert "--kind margin" in refused("plot", iris_model, iris, "--kind", "margin", "--output", picture)
    assert "data file" in refused("plot", iris_model, "--output", picture)
    assert "--kind" in refused("plot", iris_model, iris, "--kind", "pie", "--output", picture)
    adult = data("adult.csv")
    run("fit", adult, "--missing", "drop", "--save", tmp_path / "a.sx", "--quiet")
    assert "text columns" in refused("plot", tmp_path / "a.sx", adult, "--output", picture)
    assert not picture.exists()


def test_bench_without_its_sources(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sx, "__file__", str(tmp_path / "a" / "b" / "c" / "d" / "e" / "__init__.py"))
    assert "make bench" in refused("bench")


def test_bench_runs_the_sources_it_came_with(run, tmp_path, monkeypatch):
    package = tmp_path / "site" / "separatrix"
    (package / "_bench" / "benchmarks").mkdir(parents=True)
    (package / "_bench" / "benchmarks" / "families.py").touch()
    (package / "_bench" / "benchmarks" / "__main__.py").write_text(
        "import sys; open('ran', 'w').write(' '.join(sys.argv[1:]))"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sx, "__file__", str(package / "__init__.py"))
    assert run("bench", "--", "--here", "svm", "--tier", "small").code == 0
    assert (tmp_path / "ran").read_text() == "svm --tier small"


def test_standard_input(run, iris, iris_model, monkeypatch):
    from separatrix.data.files import _origin

    _origin._copied.cache_clear()
    expected = run("predict", iris_model, iris).out
    stream = io.TextIOWrapper(io.BytesIO(gzip.compress(iris.read_bytes())))
    monkeypatch.setattr("sys.stdin", stream)
    assert run("predict", iris_model, "-").out == expected
    _origin._copied.cache_clear()


def test_models_without_classes(run, refused, tmp_path):
    path, data = tmp_path / "m.sx", tmp_path / "t.csv"
    sx.save(sx.SGDRegressor(random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]), path)
    data.write_text("a\n0\n2\n")
    assert "classes      none" in run("info", path).out
    assert run("predict", path, data).out.startswith("prediction\n")
    assert json.loads(run("predict", path, data, "--json").out)["classes"] is None
    assert "no classifier" in refused("evaluate", path, data)


def test_separability(iris, capsys, monkeypatch):
    """The command waits for the function of that name; texts are encoded before it is asked."""
    from types import SimpleNamespace

    from separatrix.cli import separability
    from separatrix.cli.inputs import DataOptions

    class Verdict(SimpleNamespace):
        def __str__(self):
            return self.verdict

    two = Verdict(verdict="separable", width=1.0, widest=1.5)
    many = Verdict(verdict="inseparable", pairs={("a", "b"): two}, one_vs_rest={"a": two})
    asked = []

    def answer(X, y, max_time):
        asked.append((X.shape, len(y), max_time))
        return many

    monkeypatch.setitem(vars(sx), "separability", answer)
    separability.run(DataOptions(iris, ignore=("petal_width",)), max_time=5.0, as_json=True)
    report = json.loads(capsys.readouterr().out)
    assert asked == [((150, 3), 150, 5.0)]
    assert report["verdict"] == "inseparable"
    assert report["pairs"] == [
        {"classes": ["a", "b"], "verdict": "separable", "text": "separable", "width": 1.0, "widest": 1.5}
    ]
    separability.run(DataOptions(iris), max_time=None, as_json=False)
    assert "verdict  inseparable" in capsys.readouterr().out
