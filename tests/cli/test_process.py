"""The command line in processes of its own: start, pipes, signals, and what is imported when."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import separatrix as sx


def start(*arguments, **options):
    command = [sys.executable, "-m", "separatrix", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, **options)


def test_whole_walk_in_a_path_with_spaces(banknote, tmp_path):
    folder = tmp_path / "a path with spaces"
    folder.mkdir()
    words = ("--save", folder / "m.sx", "--plot", folder / "p.png", "--json")
    fitted = start("fit", banknote, "--target", "class", *words)
    assert fitted.returncode == 0, fitted.stderr
    assert json.loads(fitted.stdout)["accuracy"] > 0.95
    predicted = start("predict", folder / "m.sx", banknote)
    assert predicted.stdout.splitlines()[0] == "prediction"
    assert len(predicted.stdout.splitlines()) == 1373
    assert start("info", folder / "m.sx").returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == ["m.sx", "p.png"]


def test_errors_have_no_traceback(banknote):
    done = start("fit", banknote, "--target", "clas")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("separatrix: error: ")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["fit", "--help"], ["predict", "-h"], []])
def test_help_imports_nothing_heavy(words):
    command = [sys.executable, "-X", "importtime", "-m", "separatrix", *words]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "separatrix" in loaded, "does this test still read the list of imports?"
    assert ("typer" in loaded) == (words not in (["--help"], [])), "the overview needs no parser"
    assert loaded.isdisjoint({"numpy", "sklearn", "scipy", "matplotlib", "pyarrow", "pandas", "safetensors"})


def test_help_shows_examples_and_exit_codes():
    for words in (["--help"], ["fit", "--help"], ["predict", "--help"], ["info", "--help"]):
        text = start(*words).stdout
        assert "\n    separatrix " in text, "examples keep their lines"
        for code in ("0 done", "2 bad input", "130"):
            assert code in text


def test_version():
    assert start("--version").stdout == f"separatrix {sx.__version__}\n"


def test_reader_of_a_pipe_may_leave(banknote, tmp_path):
    assert start("fit", banknote, "--target", "class", "--save", tmp_path / "m.sx").returncode == 0
    large = tmp_path / "large.csv"
    lines = banknote.read_text().splitlines()
    large.write_text("\n".join(lines[:1] + lines[1:] * 40))
    command = [sys.executable, "-m", "separatrix", "predict", tmp_path / "m.sx", large]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"prediction\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0


def test_interrupt_during_a_long_fit_keeps_the_model(banknote, tmp_path):
    model = tmp_path / "m.sx"
    settings = ("max_iter=1000000000", "tol=None", "margin=1e12", "verbose=2")
    words = ["--model", "perceptron", *(word for setting in settings for word in ("--set", setting))]
    command = [sys.executable, "-u", "-m", "separatrix", "fit", banknote, "--target", "class", *words]
    log = tmp_path / "progress.txt"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [*command, "--save", model], stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        deadline = time.monotonic() + 60
        while log.stat().st_size == 0:  # the first pass is done as soon as there is a line about it
            assert time.monotonic() < deadline, "the fit did not start"
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "interrupted" in out
    assert sx.load(model).steps[-1][1].certificate_.status == "interrupted"


def test_progress_and_tables_on_a_terminal(banknote):
    pty = pytest.importorskip("pty")
    main, side = pty.openpty()
    words = ("--model", "perceptron", "--set", "max_iter=50", "--set", "tol=None", "--set", "margin=1e12")
    command = [sys.executable, "-m", "separatrix", "fit", banknote, "--target", "class", *words]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdout=side, stderr=side, env=environment) as process:
        os.close(side)
        shown = b""
        try:
            while part := os.read(main, 65536):
                shown += part
        except OSError:  # how Linux tells that the other side has been closed
            pass
        os.close(main)
    text = shown.decode()
    assert process.returncode == 0, text
    assert "100%" in text, "the progress bar came to its end"
    assert "\u2502 genuine" in text, "the table has lines"


def test_progress_keeps_out_of_pipes_and_json(banknote):
    words = ("--model", "perceptron", "--set", "verbose=1", "--json")
    done = start("fit", banknote, "--target", "class", *words)
    assert json.loads(done.stdout)["model"] == "Perceptron"
    assert "100%" not in done.stderr
    assert "Perceptron" in done.stderr
