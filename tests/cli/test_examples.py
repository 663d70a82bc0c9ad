"""The examples in the program's own help run, in their order, in a folder with the files that they name."""

import contextlib
import gzip
import io
import shlex
import shutil

import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from separatrix.cli import main

# In this order what one writes is there for the next.
COMMANDS = (
    "fit", "predict", "evaluate", "compare", "tune", "plot", "trace", "separability", "info", "svm-train",
    "convert", "svm-predict", "svm-scale", "liblinear-train", "liblinear-predict",
)  # fmt: skip


def examples(command):
    """Return the words of every example in a command's help."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert main([command, "--help"]) == 0
    text = shown.getvalue().split("Examples:")[1].split("\n\n")[0].replace("\\\n", " ")
    return [shlex.split(line) for line in text.strip().splitlines()]


@pytest.fixture
def folder(root, tmp_path, monkeypatch):
    """A folder with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    notes = pd.read_csv(root / "examples" / "data" / "banknote.csv")
    notes.to_csv("banknote.csv", index=False)
    notes.iloc[::5].to_csv("test.csv", index=False)
    new = notes.drop(columns="class")
    new.to_csv("new.csv", index=False)
    new.to_parquet("new.parquet")
    with gzip.open("new.csv.gz", "wt") as file:
        new.to_csv(file, index=False)
    for name in ("adult.csv", "people.csv"):
        shutil.copy(root / "tests" / "data" / "adult.csv", name)
    X, y = new.to_numpy()[::4], (notes["class"] == "forged").to_numpy()[::4] * 2 - 1
    for name in ("heart_scale", "heart_test", "train", "test"):
        dump_svmlight_file(X, y, name, zero_based=False)
    dump_svmlight_file(X, X[:, 0], "housing_scale", zero_based=False)
    return tmp_path


def test_every_example_of_the_help_runs(folder, monkeypatch, capsys):
    seen = 0
    for command in COMMANDS:
        for words in examples(command):
            if "|" in words:  # zcat FILE | separatrix ...
                text = gzip.decompress((folder / words[1]).read_bytes())
                monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
                words = words[words.index("|") + 1 :]
            words = words[: words.index(">")] if ">" in words else words
            code = main(words[1:])
            assert (code, capsys.readouterr().err.count("separatrix: error")) == (0, 0), words
            seen += 1
    assert seen > 30
