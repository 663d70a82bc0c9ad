"""``separatrix trace`` in a process of its own, on a real file."""

import json
import os
import subprocess
import sys

import pytest

# The command stands in the program where it is registered there; else it is added here.
RUN = """
import sys
from separatrix.cli import main
from separatrix.cli.app import app
from separatrix.cli.trace import register
if "trace" not in {command.name or command.callback.__name__ for command in app.registered_commands}:
    register(app)
sys.exit(main())
"""


@pytest.fixture
def run(root):
    def call(*words, code=0, data=root / "examples" / "data" / "banknote.csv"):
        done = subprocess.run(
            [sys.executable, "-c", RUN, "trace", str(data), *words],
            capture_output=True,
            encoding="utf-8",
            env=os.environ | {"COLUMNS": "120"},
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return call


def test_a_table_of_steps(run, tmp_path):
    movie, data = tmp_path / "steps.gif", tmp_path / "notes.csv"
    rows = [f"{a},{b},{'genuine' if a * b > 2 else 'forged'}" for a in range(4) for b in range(4)]
    data.write_text("\n".join(["height;width;class", *rows[::-1]]).replace(",", ";") + "\n")
    done = run("--model", "perceptron", "--steps", "3", "--changes", "--set", "shuffle=False",
               "--set", "max_iter=2", "--animate", str(movie), data=data)  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Trace(Perceptron(")
    assert lines[2].split() == ["step", "pass", "samples", "saw", "did", "objective"]
    assert lines[3].split()[:4] == ["1", "1", "0", "genuine"]
    assert "more steps; --steps 0 shows them all" in lines[6]
    assert lines[7].split()[:2] == ["end", "2"]
    assert "column 'class' holds the classes" in done.stderr
    assert movie.read_bytes().startswith(b"GIF8")


def test_json_lines(run):
    done = run("--target", "class", "--model", "logistic", "--json", "--steps", "0")
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    assert [step["step"] for step in steps[:-1]] == list(range(1, len(steps)))
    assert steps[-1]["end"]
    assert steps[0]["objective"] > steps[-1]["objective"]
    assert len(steps[0]["coef"][0]) == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "class", "--model", "lda"), "trace knows Perceptron"),
        (("--animate", "a.png"), "must end in one of .gif"),
        (("--animate", "no/such/a.gif"), "there is no directory"),
        (("--steps", "-1"), "--steps must not be negative"),
        (("--target", "class", "--method", "newton"), "method of Perceptron must be one of perceptron"),
    ],
)
def test_bad_words(root, capsys, words, message):
    from separatrix.cli import main
    from separatrix.cli.app import app
    from separatrix.cli.trace import register

    if "trace" not in {command.name or command.callback.__name__ for command in app.registered_commands}:
        register(app)
    assert main(["trace", str(root / "examples" / "data" / "banknote.csv"), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
