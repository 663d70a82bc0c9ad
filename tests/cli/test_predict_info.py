"""`separatrix predict` and `separatrix info`."""

import csv
import io
import json

import numpy as np
import pytest

import separatrix as sx
from separatrix.data.files import read

pytestmark = pytest.mark.usefixtures("no_leftovers")


@pytest.fixture
def model(run, flowers, tmp_path):
    path = tmp_path / "model.sx"
    assert (
        run(
            "fit", flowers, "--target", "kind", "--ignore", "id", "--model", "perceptron", "--save", path
        ).code
        == 0
    )
    return path


def rows_of(text):
    return list(csv.reader(io.StringIO(text)))


def test_predictions_go_to_the_screen(run, model, flowers):
    code, out, err = run("predict", model, flowers)
    assert (code, err) == (0, "")
    header, *rows = rows_of(out)
    assert header == ["prediction"]
    truth = read(flowers, "kind", ignore=["id"]).y
    assert np.mean(np.array(rows)[:, 0] == truth) > 0.9


def test_columns_are_found_by_name(run, model, tmp_path):
    straight, shuffled = tmp_path / "straight.csv", tmp_path / "shuffled.csv"
    straight.write_text("length,width\n8.0,0.5\n0.1,8.2\n")
    shuffled.write_text("note,width,length\nhello,0.5,8.0\n,8.2,0.1\n")
    first, second = run("predict", model, straight), run("predict", model, shuffled)
    assert first.code == second.code == 0
    assert first.out == second.out
    assert rows_of(first.out)[1:] == [["rose"], ["oak, tree"]]


def test_scores_and_output_file(run, model, flowers, tmp_path):
    output = tmp_path / "out.csv"
    assert run("predict", model, flowers, "--scores", "--output", output) == (0, "", "")
    header, *rows = rows_of(output.read_text())
    assert header == ["prediction", "score lily", "score oak, tree", "score rose"]
    X = read(flowers, features=["length", "width"]).X
    with pytest.warns(UserWarning, match="feature names"):
        expected = sx.load(model).decision_function(X)
    np.testing.assert_array_equal(np.array([row[1:] for row in rows], dtype=float), expected)


def test_scores_of_two_classes(run, banknote, tmp_path):
    path = tmp_path / "m.sx"
    assert run("fit", banknote, "--target", "class", "--save", path).code == 0
    header, *rows = rows_of(run("predict", path, banknote, "--scores").out)
    assert header == ["prediction", "score genuine"]
    assert all((float(score) >= 0) == (label == "genuine") for label, score in rows)


def test_json(run, model, flowers, tmp_path):
    report = json.loads(run("predict", model, flowers, "--json", "--scores").out)
    assert report["rows"] == len(report["predictions"]) == len(report["scores"]) == 90
    assert set(report["predictions"]) <= set(report["classes"])
    output = tmp_path / "out.json"
    assert run("predict", model, flowers, "--json", "--scores", "--output", output).code == 0
    assert json.loads(output.read_text()) == report


def test_numbers_stay_numbers(run, tmp_path):
    data, path = tmp_path / "data.csv", tmp_path / "m.sx"
    data.write_text("a,y\n" + "".join(f"{value},{int(value > 10)}\n" for value in range(20)))
    assert run("fit", data, "--target", "y", "--save", path).code == 0
    assert set(json.loads(run("predict", path, data, "--json").out)["predictions"]) == {0, 1}


def test_model_without_names_takes_columns_in_order(run, refused, tmp_path):
    path, data = tmp_path / "m.sx", tmp_path / "new.csv"
    sx.save(sx.Perceptron().fit([[0.0, 1.0], [4.0, 1.0]], ["low", "high"]), path)
    data.write_text("p,q\n-1,1\n5,1\n")
    outcome = run("predict", path, data)
    assert outcome.code == 0
    assert outcome.out == "prediction\nlow\nhigh\n"
    assert "note" in outcome.err
    data.write_text("p,q,r\n-1,1,1\n")
    assert "2 features" in refused("predict", path, data)


def test_info(run, model):
    code, out, err = run("info", model)
    assert (code, err) == (0, "")
    for part in (
        "StandardScaler -> Perceptron",
        "length, width",
        "lily, oak, tree, rose",
        "certificate",
        "format 1",
    ):
        assert part in out
    assert f"separatrix {sx.__version__}" in out


def test_info_json(run, model):
    report = json.loads(run("info", model, "--json").out)
    final = sx.load(model).steps[-1][1]
    assert report["model"] == "Perceptron"
    assert report["features"] == ["length", "width"]
    assert report["classes"] == ["lily", "oak, tree", "rose"]
    assert report["parameters"]["keep"] == final.keep
    assert report["sizes"]["coef_"] == list(final.coef_.shape)
    assert report["certificate"]["status"] == final.certificate_.status
    assert report["versions"]["separatrix"] == sx.__version__
    assert report["file_bytes"] == model.stat().st_size


def test_rows_with_missing_values(run, refused, model, flowers, tmp_path):
    lines = flowers.read_text().splitlines()
    lines[3] = "3,,1.0,rose"
    lines[90] = "90,?,1.0,rose"
    holes = tmp_path / "holes.csv"
    holes.write_text("\n".join(lines) + "\n")
    error = refused("predict", model, holes)
    assert "2 missing values" in error
    assert "--ignore" not in error  # predict has no such option
    assert "fitted with --missing mean" in error
    bad = tmp_path / "bad.csv"
    bad.write_text("\n".join([lines[0], "1,oops,1.0,rose"]) + "\n")
    error = refused("predict", model, bad)
    assert "'oops' is not a number; correct the value, or remove the row; the model was" in error
    assert "--categorical" not in error
    code, out, _ = run("predict", model, holes, "--missing", "drop", "--scores")
    assert code == 0
    header, *rows = rows_of(out)
    assert header[:2] == ["row", "prediction"]
    assert [int(row[0]) for row in rows] == [row for row in range(1, 91) if row not in (3, 90)]
    document = json.loads(run("predict", model, holes, "--missing", "drop", "--json").out)
    assert document["row_numbers"] == [int(row[0]) for row in rows]
    assert document["predictions"] == [row[1] for row in rows]
    assert "fit it with --missing mean" in refused("predict", model, holes, "--missing", "mean")
