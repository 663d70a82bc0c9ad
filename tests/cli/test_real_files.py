"""The installed program on real files: from a table to a model, from the model to predictions, in pipes."""

import gzip
import json
import os
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import separatrix as sx
from separatrix.cli import main
from separatrix.cli.overview import available
from separatrix.data.files import read
from separatrix.persistence._container import read_container

PROGRAM = Path(sysconfig.get_path("scripts"), "separatrix")


def start(folder, *words, feed=None):
    """Run the program as a user would, in a folder of its own."""
    if not PROGRAM.exists():
        pytest.skip("the program is not installed beside this Python")
    done = subprocess.run(
        [PROGRAM, *map(str, words)], cwd=folder, input=feed, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def test_adult_through_a_pipe(root, tmp_path):
    """Text columns and gaps: the saved model takes raw rows, also compressed from standard input."""
    adult = root / "tests" / "data" / "adult.csv"
    out, err = start(tmp_path, "fit", adult, "--missing", "mean", "--save", "m.sx", "--json")
    assert err == ""
    report = json.loads(out)
    assert report["target"] == "income"
    assert report["imputed"]
    assert len(report["one_hot"]) == 8
    packed = gzip.compress(adult.read_bytes())
    out, err = start(tmp_path, "predict", "m.sx", "-", "--scores", "--json", feed=packed)
    assert err == ""
    predicted = json.loads(out)
    model, table = sx.load(tmp_path / "m.sx"), read(adult, "income", missing="keep")
    np.testing.assert_array_equal(predicted["predictions"], model.predict(table.X))
    np.testing.assert_array_equal(predicted["scores"], model.decision_function(table.X))
    again = tmp_path / "again.sx"
    sx.save(model, again)
    (first, arrays), (second, same) = (read_container(str(path)) for path in (tmp_path / "m.sx", again))
    assert first == second, "a saved model is saved the same"
    assert arrays.keys() == same.keys()
    assert all(arrays[name].tobytes() == same[name].tobytes() for name in arrays)
    out, _ = start(tmp_path, "evaluate", "m.sx", adult, "--json", "--plot", "curves.pdf")
    right = np.mean(table.y == np.array(predicted["predictions"]))
    assert json.loads(out)["accuracy"] == pytest.approx(right)
    assert (tmp_path / "curves.pdf").read_bytes().startswith(b"%PDF")
    assert sorted(os.listdir(tmp_path)) == ["again.sx", "curves.pdf", "m.sx"]


def test_a_named_pipe(root, tmp_path):
    """As a shell's <(...): what can be read only once."""
    iris = root / "tests" / "data" / "iris.csv"
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", f"cat '{iris}' > '{tmp_path}/pipe'"]) as feeder:
        out, _ = start(tmp_path, "fit", "pipe", "--json")
        feeder.wait(timeout=60)
    assert json.loads(out)["rows"] == 150


def test_wine_compared_and_tuned(root, tmp_path):
    wine = root / "tests" / "data" / "wine.tsv"
    out, err = start(tmp_path, "compare", wine, "--target", "cultivar", "--folds", 3, "--save", "best.sx")
    assert "Traceback" not in err
    assert "±" in out
    assert "best.sx, fitted on all rows" in out
    out, _ = start(
        tmp_path, "tune", wine, "--target", "cultivar", "--model", "ridge", "--plot", "ridge.png", "--json"
    )
    assert json.loads(out)["best"]["alpha"] > 0
    assert (tmp_path / "ridge.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("shell", "words", "expected"),
    [
        ("bash", {"COMP_WORDS": "separatrix ev", "COMP_CWORD": "1"}, "evaluate"),
        ("bash", {"COMP_WORDS": "separatrix fit --mod", "COMP_CWORD": "2"}, "--model"),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "separatrix fit --mod"}, "--model"),
        (
            "fish",
            {"_TYPER_COMPLETE_ARGS": "separatrix ev", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
            "evaluate",
        ),
    ],
)
def test_completion(shell, words, expected, tmp_path):
    """Ask as the shells' scripts do: what was typed is in the environment, and the program gets no words."""
    environment = os.environ | words | {"_SEPARATRIX_COMPLETE": f"complete_{shell}"}
    done = subprocess.run(
        [PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert expected in done.stdout, done.stderr
    assert "Usage" not in done.stdout


@pytest.mark.parametrize(
    ("shell", "sign"), [("zsh", "#compdef separatrix"), ("bash", "COMPREPLY"), ("fish", "complete_fish")]
)
def test_completion_of_a_named_shell(shell, sign, capsys):
    assert main(["--show-completion", shell]) == 0
    assert sign in capsys.readouterr().out
    assert "_SEPARATRIX_COMPLETE" not in os.environ


@pytest.mark.parametrize("words", [("--show-completion", "csh"), ("--install-completion", "zsh")])
def test_completion_that_is_not_to_be_had(words, capsys):
    assert main(words) == 2
    assert "takes no name; --show-completion prints the script of one of bash, zsh" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion_in_bash(tmp_path):
    (tmp_path / "script").write_text(
        f"export PATH={shlex.quote(str(Path(PROGRAM).parent))}:$PATH\n"
        "source <(_SEPARATRIX_COMPLETE=source_bash separatrix)\n"
        "COMP_WORDS=(separatrix ev); COMP_CWORD=1; _separatrix_completion separatrix\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "script"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "evaluate\n", done.stderr


def test_every_command_has_examples_and_the_overview_knows_it():
    from separatrix.cli.app import app
    from separatrix.cli.overview import available, overview

    commands = {command.name: command for command in app.registered_commands}
    assert list(commands) == list(available())
    for name, command in commands.items():
        lines = command.callback.__doc__.splitlines()
        assert lines[0] == available()[name]
        assert any(f"separatrix {name}" in line for line in lines)
        assert f"  {name} " in overview()


@pytest.mark.parametrize("name", available())
def test_help_of_every_command(name, capsys):
    assert main([name, "-h"]) == 0
    shown = capsys.readouterr().out
    assert f"\n    separatrix {name}" in shown, "examples keep their lines"
    assert "2 bad input" in shown
