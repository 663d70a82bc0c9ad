"""`separatrix fit` as a user meets it: files in, text, pictures and models out."""

import json
from pathlib import Path

import numpy as np
import pytest

import separatrix as sx
from separatrix.cli import fit as fit_module
from separatrix.cli.families import families, parse_settings, parse_value
from separatrix.cli.prepare import final_step
from separatrix.data.files import read

pytestmark = pytest.mark.usefixtures("no_leftovers")


def test_prints_accuracy_classes_and_certificate(run, banknote):
    code, out, _ = run("fit", banknote, "--target", "class")
    assert code == 0
    assert "1,029 rows to fit, 343 held out" in out
    assert "mean 0, standard deviation 1 (--no-standardize" in out
    accuracy = float(out.split("\naccuracy")[1].split()[0])
    assert accuracy > 0.95
    for word in ("certificate", "iterations", "genuine", "forged", "precision", "recall"):
        assert word in out


def test_json_agrees_with_the_saved_model(run, banknote, tmp_path):
    code, out, _ = run("fit", banknote, "--target", "class", "--json", "--save", tmp_path / "m.sx")
    assert code == 0
    report = json.loads(out)
    assert report["classes"] == ["forged", "genuine"]
    assert report["features"] == ["variance", "skewness", "curtosis", "entropy"]
    assert report["rows_fitted"] + report["rows_held_out"] == report["rows"] == 1372
    assert sum(row["rows"] for row in report["per_class"]) == report["rows_held_out"]
    right = sum(row["correct"] for row in report["per_class"])
    assert report["accuracy"] == pytest.approx(right / report["rows_held_out"])
    model = sx.load(tmp_path / "m.sx")
    assert model.steps[-1][1].certificate_.as_dict() == pytest.approx(report["certificate"])
    assert list(model.feature_names_in_) == report["features"]
    # The held-out rows can be recomputed from the seed, and so can the score.
    from sklearn.model_selection import train_test_split

    X, _, y = read(banknote, "class")
    _, held_out = train_test_split(np.arange(len(y)), test_size=0.25, random_state=0, stratify=y)
    with pytest.warns(UserWarning, match="feature names"):
        assert np.mean(model.predict(X[held_out]) == y[held_out]) == pytest.approx(report["accuracy"])


def test_same_seed_same_file(run, flowers, tmp_path):
    for name in ("a.sx", "b.sx"):
        assert run("fit", flowers, "--target", "kind", "--ignore", "id", "--save", tmp_path / name).code == 0
    first, second = sx.load(tmp_path / "a.sx"), sx.load(tmp_path / "b.sx")
    np.testing.assert_array_equal(first.steps[-1][1].coef_, second.steps[-1][1].coef_)


def test_without_standardizing_the_model_stands_alone(run, flowers, tmp_path):
    words = ("--model", "perceptron", "--no-standardize", "--save", tmp_path / "m.sx")
    outcome = run("fit", flowers, "--target", "kind", *words)
    assert outcome.code == 0
    assert "features as they are" in outcome.out
    model = sx.load(tmp_path / "m.sx")
    assert type(model) is sx.Perceptron
    assert list(model.feature_names_in_) == ["id", "length", "width"]


def test_settings_reach_the_model(run, flowers, tmp_path):
    settings = ("margin=1.5", "multiclass=joint", "keep=last", "class_weight={'rose': 2.0}", "tol=None")
    words = [word for setting in settings for word in ("--set", setting)]
    words += ["--model", "perceptron", "--seed", 7, "--save", tmp_path / "m.sx"]
    outcome = run("fit", flowers, "--target", "kind", *words)
    assert outcome.code == 0, outcome.err
    parameters = sx.load(tmp_path / "m.sx").steps[-1][1].get_params()
    assert parameters["margin"] == 1.5
    assert parameters["multiclass"] == "joint"
    assert parameters["class_weight"] == {"rose": 2.0}
    assert parameters["tol"] is None
    assert parameters["random_state"] == 7


def test_kernel_perceptron(run, flowers, tmp_path):
    words = ("--model", "kernel-perceptron", "--set", "gamma=0.5", "--json", "--save", tmp_path / "m.sx")
    outcome = run("fit", flowers, "--target", "kind", "--ignore", "id", *words)
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["accuracy"] > 0.9
    assert type(sx.load(tmp_path / "m.sx").steps[-1][1]) is sx.KernelPerceptron


@pytest.mark.parametrize("name", sorted(families()))
def test_every_model_by_its_name(run, flowers, tmp_path, name):
    saved = tmp_path / "model.sx"
    outcome = run("fit", flowers, "--target", "kind", "--ignore", "id", "--model", name, "--save", saved)
    assert outcome.code == 0, outcome.err
    assert type(final_step(sx.load(saved))).__name__ == families()[name].cls


def test_max_time_and_its_note(run, banknote):
    words = ("--model", "perceptron", "--max-time", "1e-9", "--set", "max_iter=100000", "--set", "tol=None")
    code, out, err = run("fit", banknote, "--target", "class", *words)
    assert code == 0
    assert "max_time" in out
    assert "separatrix: note: " in err


def test_no_rows_held_out(run, flowers):
    code, out, _ = run("fit", flowers, "--target", "kind", "--test-size", 0)
    assert code == 0
    assert "none held out" in out
    assert "accuracy" not in out


def test_quiet_says_nothing(run, flowers, tmp_path):
    outcome = run("fit", flowers, "--target", "kind", "--quiet", "--save", tmp_path / "m.sx")
    assert outcome == (0, "", "")
    assert (tmp_path / "m.sx").is_file()


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_picture(run, banknote, tmp_path, suffix):
    picture = tmp_path / f"picture.{suffix}"
    outcome = run("fit", banknote, "--target", "class", "--plot", picture)
    assert outcome.code == 0, outcome.err
    begin = picture.read_bytes()[:200]
    assert begin.startswith(b"\x89PNG") if suffix == "png" else b"<svg" in picture.read_bytes()[:2000]
    assert str(picture) in outcome.out


def test_interrupted_fit_is_scored_and_saved(run, banknote, tmp_path, monkeypatch):
    """Ctrl-C during the fit: the estimator stops early and everything after it goes on."""
    import _thread
    import threading

    timer = threading.Timer(1.0, _thread.interrupt_main)
    original = fit_module._fit

    def fit_and_press(*arguments):
        timer.start()
        return original(*arguments)

    monkeypatch.setattr(fit_module, "_fit", fit_and_press)
    words = ("--set", "max_iter=1000000000", "--set", "tol=None", "--set", "margin=1e12", "--json")
    words += ("--model", "perceptron")
    try:
        outcome = run("fit", banknote, "--target", "class", *words, "--save", tmp_path / "m.sx")
    finally:
        timer.cancel()
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["certificate"]["status"] == "interrupted"
    assert sx.load(tmp_path / "m.sx").steps[-1][1].certificate_.status == "interrupted"


def test_interrupted_before_there_was_a_model(run, banknote, tmp_path, monkeypatch):
    def press(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_module, "load_labelled", press)
    outcome = run("fit", banknote, "--target", "class", "--save", tmp_path / "m.sx")
    assert outcome == (130, "", "separatrix: error: interrupted before there was a model\n")
    assert not (tmp_path / "m.sx").exists()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-2.5e3", -2500.0),
        ("True", True),
        ("false", False),
        ("None", None),
        ("inf", float("inf")),
        ("-inf", float("-inf")),
        ("joint", "joint"),
        ("'1'", "1"),
        ("{1: 2}", {1: 2}),
        ("a=b", "a=b"),
        ("__import__('os')", "__import__('os')"),
        ("", ""),
    ],
)
def test_values_of_settings(text, value):
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)
    assert parse_settings([f"key={text}"]) == {"key": value}


@pytest.mark.parametrize("size", [1, 7, 40, 1000])
def test_rows_held_out_change_places_only(size):
    """Brought to the front by blocks, the rows to fit on keep their order, and none is lost."""
    from separatrix.cli.hold_out import _gather

    random = np.random.default_rng(size)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        first = random.random(100) < share
        rows, numbers = np.arange(200.0).reshape(100, 2), np.arange(100)
        _gather([rows, numbers], first, size)
        count = int(first.sum())
        np.testing.assert_array_equal(numbers[:count], np.flatnonzero(first))
        np.testing.assert_array_equal(np.sort(numbers[count:]), np.flatnonzero(~first))
        np.testing.assert_array_equal(rows, np.column_stack([2.0 * numbers, 2.0 * numbers + 1]))


@pytest.mark.parametrize("share", [0.1, 0.25, 1 / 3, 0.5, 0.83])
def test_held_out_rows_are_those_of_scikit_learn(share):
    from sklearn.model_selection import train_test_split

    from separatrix.cli.hold_out import _chosen

    for seed in range(25):
        random = np.random.default_rng(seed)
        y = random.permutation(np.repeat(np.arange(4), random.integers(12, 60, size=4)))
        known = train_test_split(np.arange(len(y)), test_size=share, random_state=seed, stratify=y)
        chosen = _chosen(y, share, seed, "file")
        for rows, expected in zip(chosen, known, strict=True):
            assert np.array_equal(rows, np.sort(expected))


def test_too_few_rows_for_all_classes_on_both_sides(refused, tmp_path):
    data = tmp_path / "few.csv"
    data.write_text("a,kind\n" + "".join(f"{k},{k % 4}\n" for k in range(12)))
    error = refused("fit", data, "--test-size", "0.25")
    assert "all 4 classes on both sides: 9 rows to fit, 3 held out; change --test-size" in error


def test_a_matrix_is_not_copied_to_hold_rows_out(monkeypatch):
    from separatrix.cli import hold_out
    from separatrix.cli.inputs import Labelled

    monkeypatch.setattr(hold_out, "_BLOCK_BYTES", 1000)
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 3
    given = X.copy()
    parts = hold_out.hold_out(Labelled(X, None, y, "y", True), 0.25, 0, "file")
    assert np.shares_memory(parts.X, X)
    assert np.shares_memory(parts.X_held, X)
    train, test = hold_out._chosen(y, 0.25, 0, "file")
    np.testing.assert_array_equal(parts.X, given[train])
    np.testing.assert_array_equal(parts.y, y[train])
    at = np.lexsort(parts.X_held.T)
    np.testing.assert_array_equal(parts.X_held[at], given[test][np.lexsort(given[test].T)])
    np.testing.assert_array_equal(parts.y_held[at], y[test][np.lexsort(given[test].T)])


def test_a_long_load_says_first_what_it_needs(run, banknote, monkeypatch):
    from separatrix.cli import inputs

    monkeypatch.setattr(inputs, "_LONG_BYTES", 1000)
    said = run("fit", banknote).err
    assert "about 1,400 rows, 5 columns" in said
    assert "memory" in said
    assert "free" not in said
    assert "memory" not in run("fit", banknote, "--quiet").err
    monkeypatch.setattr(inputs, "available_memory", lambda: 1000)
    assert "only 1 kB are free" in run("fit", banknote).err


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("folder", "is a directory"),
        ("x" * 300 + ".sx", "file name too long"),
        ("/dev/full", "not a regular file"),
        ("missing/m.sx", "there is no directory"),
        ("banknote.csv/m.sx", "not a directory"),
        ("/proc/m.sx", "cannot write there: permission denied"),
    ],
)
def test_places_that_cannot_be_written(refused, banknote, tmp_path, monkeypatch, place, reason):
    """Known before the fit, said in one message, and nothing is left behind."""
    if place.startswith("/") and not Path(place).parent.is_dir():
        pytest.skip("not on this system")
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(fit_module, "load_labelled", lambda *words, **options: pytest.fail("too late"))
    before = sorted(tmp_path.rglob("*"))
    assert reason in refused("fit", banknote, "--save", tmp_path / place)
    assert sorted(tmp_path.rglob("*")) == before
