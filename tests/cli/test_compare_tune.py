"""compare and tune, on the real files in tests/data."""

import contextlib
import json
import signal

import numpy as np
import pytest

import separatrix as sx
from separatrix.cli.families import _FAMILIES, families
from separatrix.cli.tune import draw, parse_grid
from separatrix.data.files import read

pytestmark = pytest.mark.usefixtures("no_leftovers")


# ------------------------------------------------------------------------------------------------- compare


def test_compare_lists_every_family(run, data, tmp_path):
    wine, picture, best = data("wine.tsv"), tmp_path / "p.png", tmp_path / "best.sx"
    words = ("--target", "cultivar", "--folds", 3, "--plot", picture, "--save", best, "--json")
    code, out, _ = run("compare", wine, *words)
    assert code == 0
    report = json.loads(out)
    assert {row["model"] for row in report["models"]} == set(families())
    means = [row["accuracy"]["mean"] for row in report["models"]]
    assert means == sorted(means, reverse=True)
    assert means[0] > 0.95
    assert all(len(row["accuracy"]["folds"]) == 3 for row in report["models"])
    assert report["best"] == report["models"][0]["model"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    name = families()[report["best"]].cls
    assert json.loads(run("info", best, "--json").out)["model"] == name


def test_compare_is_cross_validation(run, iris):
    """The same folds and the same model by hand."""
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    out = run("compare", iris, "--model", "logistic", "--folds", 4, "--seed", 3, "--json").out
    X, _, y = read(iris, "species")
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    expected = cross_val_score(
        make_pipeline(StandardScaler(), sx.LogisticRegression(random_state=3)), X, y, cv=folds
    )
    assert json.loads(out)["models"][0]["accuracy"]["folds"] == pytest.approx(expected.tolist())


def test_compare_for_people(run, iris):
    words = ("--model", "lda", "--model", "qda", "--model", "perceptron", "--by", "log-loss")
    code, out, _ = run("compare", iris, *words)
    assert code == 0
    lines = [line.split()[0] for line in out.splitlines() if "±" in line]
    assert set(lines) == {"lda", "qda", "perceptron"}
    assert lines[-1] == "perceptron", "it has no log-loss"
    assert "keep it" in out
    assert f"separatrix fit {iris} --model" in out


def test_a_failing_family_does_not_end_the_comparison(run, data):
    adult = data("adult.csv")
    words = ("--missing", "drop", "--model", "qda", "--model", "ridge")
    code, out, err = run("compare", adult, *words, "--folds", 3)
    assert code == 0
    assert "failed" in out
    assert "note: qda failed: " in err
    assert "best     ridge by accuracy" in out


def test_ctrl_c_ends_the_comparison(run, iris, monkeypatch):
    """The estimator ends its fit early and keeps quiet: the command must not go on to the next."""
    from dataclasses import replace

    fit = sx.LogisticRegression.fit

    def interrupted(self, X, y):
        fit(self, X, y)
        self.certificate_ = replace(self.certificate_, status="interrupted")

    monkeypatch.setattr(sx.LogisticRegression, "fit", interrupted)
    outcome = run("compare", iris, "--model", "logistic", "--model", "lda")
    assert outcome == (130, "", "separatrix: error: interrupted before there was a result\n")


def test_ctrl_c_counts_even_where_a_fit_is_done(run, iris, monkeypatch):
    """Ctrl-C in the last step of a fit, or after it: the fit is done, but the command is not to go on."""
    fit, calls = sx.LogisticRegression.fit, []

    def interrupted(self, X, y):
        calls.append(1)
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return fit(self, X, y)

    monkeypatch.setattr(sx.LogisticRegression, "fit", interrupted)
    outcome = run("compare", iris, "--model", "logistic", "--model", "lda")
    assert outcome == (130, "", "separatrix: error: interrupted before there was a result\n")
    assert len(calls) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_too_few_rows_for_the_folds(refused, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,u\n2,u\n3,u\n4,v\n5,v\n")
    assert "--folds 2" in refused("compare", path)
    assert "at least 2" in refused("compare", path, "--folds", 1)
    assert "--by" in refused("compare", path, "--by", "luck")


# ---------------------------------------------------------------------------------------------------- tune


def test_tune_a_grid(run, iris, tmp_path):
    picture, best = tmp_path / "p.png", tmp_path / "best.sx"
    words = ("--grid", "C=0.001,1,10", "--grid", "fit_intercept=True,False", "--set", "tol=1e-6")
    code, out, _ = run("tune", iris, *words, "--folds", 3, "--plot", picture, "--save", best, "--json")
    assert code == 0
    report = json.loads(out)
    assert len(report["trials"]) == 6
    means = [trial["accuracy"]["mean"] for trial in report["trials"]]
    assert means == sorted(means, reverse=True)
    parameters = sx.load(best).steps[-1][1].get_params()
    assert {name: parameters[name] for name in report["best"]} == report["best"]
    assert parameters["tol"] == 1e-6
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", sorted(families()))
def test_every_family_has_a_grid(run, iris, name):
    code, out, err = run("tune", iris, "--model", name, "--folds", 2, "--random", 2, "--max-time", 1)
    assert code == 0, err
    assert "keep it" in out
    assert "failed" not in out


def test_the_table_of_families_is_sound():
    for name, family in _FAMILIES.items():
        assert name == name.lower()
        assert all(len(values) > 0 for values in family.grid.values())
        if name in families():
            known = getattr(sx, family.cls)().get_params()
            assert set(family.grid) <= set(known)


def test_a_new_class_appears_by_itself(monkeypatch):
    assert "svc" not in families() or "SVC" in sx.__all__
    monkeypatch.setattr(sx, "__all__", [*sx.__all__, "SVC"])
    assert families()["svc"].grid["C"]


def test_grids():
    assert parse_grid(["C=0.01..100"]) == {"C": (0.01, 0.1, 1.0, 10.0, 100.0)}
    assert parse_grid(["a=1,None,x"]) == {"a": (1, None, "x")}
    drawn = draw({"C": (0.01, 100.0), "loss": ("u", "v"), "k": (1, 2, 3)}, 200, seed=0)
    assert drawn == draw({"C": (0.01, 100.0), "loss": ("u", "v"), "k": (1, 2, 3)}, 200, seed=0)
    assert all(0.01 <= choice["C"] <= 100 for choice in drawn)
    assert 0.3 < np.mean([choice["C"] < 1.0 for choice in drawn]) < 0.7
    assert {choice["loss"] for choice in drawn} == {"u", "v"}
    assert {choice["k"] for choice in drawn} == {1, 2, 3}


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--grid", "C"], "name=value"),
        (["--grid", "C=1..0.1"], "range"),
        (["--grid", "Z=1,2"], "'Z'"),
        (["--random", "0"], "--random"),
        (["--model", "svm"], "'svm'"),
        (["--model", "ridge", "--by", "log-loss"], "probabilities"),
    ],
)
def test_bad_searches(refused, iris, words, part):
    assert part in refused("tune", iris, *words)
