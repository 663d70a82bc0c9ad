"""Bad input on the command line: one message, exit code 2, and every file as it was."""

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("no_leftovers")


def test_text_value_in_row_1234(refused, banknote, tmp_path):
    lines = banknote.read_text().splitlines()
    lines[1234] = "1.0,2.0,n/k,4.0,genuine"  # line 0 is the header, so this is data row 1,234
    banknote.write_text("\n".join(lines))
    message = refused("fit", banknote, "--target", "class", "--save", tmp_path / "m.sx")
    for part in ("banknote.csv", "data row 1,234 ", "line 1,235 ", "'curtosis'", "'n/k'"):
        assert part in message
    assert not (tmp_path / "m.sx").exists()


def test_missing_values_are_counted(refused, banknote):
    lines = banknote.read_text().splitlines()
    lines[10] = "1.0,,3.0,4.0,genuine"
    lines[20] = "1.0,2.0,?,,genuine"
    banknote.write_text("\n".join(lines))
    message = refused("fit", banknote, "--target", "class")
    for part in ("3 missing values", "data row 10 (line 11", "'skewness'"):
        assert part in message


def test_missing_target_column(refused, banknote):
    message = refused("fit", banknote, "--target", "clas")
    for part in ("'clas'", "'variance'", "'entropy'", "did you mean 'class'?"):
        assert part in message


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--model", "perceptrn"], ["'perceptrn'", "kernel-perceptron", "nearest: perceptron"]),
        (["--set", "margn=1"], ["'margn'", "nearest: margin"]),
        (["--set", "margin"], ["key=value"]),
        (["--set", "margin=1", "--set", "margin=2"], ["margin", "twice"]),
        (["--set", "margin=-1"], ["margin", "-1"]),
        (["--set", "eta0=0"], ["eta0", "0"]),
        (["--set", "multiclass=both"], ["multiclass", "both"]),
        (["--set", "max_iter=ten"], ["max_iter", "ten"]),
        (["--test-size", "1.5"], ["--test-size", "1.5"]),
        (["--test-size", "many"], ["--test-size"]),
        (["--test-size", "0.0001"], ["0.0001", "--test-size"]),
        (["--seed", "-1"], ["--seed", "-1"]),
        (["--max-time", "-5"], ["max_time", "-5"]),
        (["--ignore", "nothing"], ["'nothing'", "'variance'"]),
        (["--plot", "picture.xyz"], ["picture.xyz", ".png"]),
        (["--save", "no/such/folder/m.sx"], ["--save", "no/such/folder"]),
        (["--unknown"], ["--unknown"]),
        (["--output", "m.sx"], ["--output", "here it is called --save"]),
        (["--C", "10"], ["--C", "--set C=VALUE"]),
        (["--max-iter", "10"], ["--max-iter", "--set max_iter=VALUE"]),
        (["--targte", "class"], ["--targte", "--target"]),
    ],
)
def test_options(refused, banknote, words, parts):
    message = refused("fit", banknote, "--target", "class", "--model", "perceptron", *words)
    for part in parts:
        assert part in message


def test_a_picture_needs_two_features(refused, tmp_path):
    data = tmp_path / "line.csv"
    data.write_text("a,class\n1,x\n2,x\n3,y\n4,y\n")
    assert "two features" in refused("fit", data, "--target", "class", "--plot", tmp_path / "p.png")


def test_no_column_is_left(refused, tmp_path):
    data = tmp_path / "labels.csv"
    data.write_text("class\nx\ny\n")
    assert "no feature column" in refused("fit", data)


def test_unknown_command(refused):
    assert "fti" in refused("fti")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["empty"]),
        ("a,class\n", ["no data rows"]),
        ("a,a,class\n1,2,x\n", ["'a'", "more than once"]),
        ("a,b,class\n1,2,x\n3,4\n", ["data row 2 (line 3", "2 values", "3 columns"]),
        ("a,class\n1,x\n2,x\n", ["only the class x", "two are needed"]),
        ("a,class\n1,x\n2,x\n3,y\n", ["class y has a single row", "--test-size 0"]),
        ("a,class\n1,0.5\n2,1.5\n3,2.5\n", ["fractions such as 0.5", "--target"]),
        ("class\nx\ny\n", ["no feature column"]),
        ("a,class\ninf,x\n2,y\n", ["data row 1", "'inf'"]),
    ],
)
def test_data_files(refused, tmp_path, content, parts):
    path = tmp_path / "data.csv"
    path.write_text(content)
    message = refused("fit", path, "--target", "class")
    for part in ["data.csv", *parts]:
        assert part in message


def test_no_such_data(refused, tmp_path):
    assert "no such file" in refused("fit", tmp_path / "none.csv", "--target", "class")


@pytest.fixture
def model(run, flowers, tmp_path):
    path = tmp_path / "model.sx"
    assert run("fit", flowers, "--target", "kind", "--ignore", "id", "--save", path).code == 0
    return path


@pytest.mark.parametrize("command", ["predict", "info"])
@pytest.mark.parametrize("damage", ["missing", "csv", "cut", "changed", "empty", "folder"])
def test_model_files(refused, model, flowers, tmp_path, command, damage):
    whole = model.read_bytes()
    if damage == "missing":
        model.unlink()
    elif damage == "csv":
        model.write_bytes(flowers.read_bytes())
    elif damage == "cut":
        model.write_bytes(whole[: len(whole) // 2])
    elif damage == "changed":
        model.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
    elif damage == "empty":
        model.write_bytes(b"")
    else:
        model = tmp_path
    output = tmp_path / "out.csv"
    output.write_text("precious")
    words = [flowers, "--output", output] if command == "predict" else []
    assert str(model) in refused(command, model, *words)
    assert output.read_text() == "precious"


def test_predict_names_missing_columns(refused, model, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("width,size\n1,2\n")
    message = refused("predict", model, new)
    assert "'length'" in message
    assert "'width', 'size'" in message


def test_existing_results_survive_a_failure(refused, model, tmp_path):
    new, output = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("width,length\n1,2\n3,four\n")
    output.write_text("precious")
    assert "data row 2 (line 3" in refused("predict", model, new, "--output", output)
    assert output.read_text() == "precious"
    before = model.read_bytes()
    refused("fit", new, "--target", "width", "--save", model)
    assert model.read_bytes() == before


def test_input_files_are_never_overwritten(refused, model, flowers):
    before = model.read_bytes(), flowers.read_bytes()
    assert "overwrite" in refused("predict", model, flowers, "--output", flowers)
    assert "overwrite" in refused("predict", model, flowers, "--output", model)
    assert "overwrite" in refused("fit", flowers, "--target", "kind", "--save", flowers)
    assert (model.read_bytes(), flowers.read_bytes()) == before


def test_a_failing_picture_leaves_the_old_one(refused, flowers, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def full(self, path, **options):
        with open(path, "wb") as file:
            file.write(b"half")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Figure, "savefig", full)
    picture = tmp_path / "old.png"
    picture.write_bytes(b"old")
    assert "no space left" in refused("fit", flowers, "--target", "kind", "--plot", picture)
    assert picture.read_bytes() == b"old"


def test_words_that_are_nearly_right(refused, banknote, tmp_path, run):
    assert "(nearest: C)" in refused("fit", banknote, "--set", "c=3")
    assert "'separatrix fit --help' shows how" in refused("fit")
    assert "--grid or --set Q:" in refused("tune", banknote, "--grid", "Q=1,2")
    assert run("fit", banknote, "--save", tmp_path / "m.sx", "--quiet").code == 0
    for command in ("predict", "evaluate"):
        message = refused(command, banknote, tmp_path / "m.sx")
        assert "the model comes first, then the data" in message
    assert "--quote (quote=) must be one character" in refused("fit", banknote, "--quote", "ab")


def test_a_model_is_no_data(refused, banknote, tmp_path, run):
    assert run("fit", banknote, "--save", tmp_path / "m.sx", "-q") == (0, "", "")
    shutil.copy(tmp_path / "m.sx", tmp_path / "renamed")
    for name in ("m.sx", "renamed"):
        assert "a model file, not data" in refused("fit", tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("t.xlsx", b"PK\x03\x04[Content_Types].xml", "a spreadsheet"),
        ("t.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook"),
        ("t.pkl", pickle.dumps([1, 2]), "a pickle"),
        ("t.h5", b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        ("t.db", b"SQLite format 3\0", "a database"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16"), "text in UTF-16"),
        ("t.csv", b"\n <!DOCTYPE html>\n<html>", "a web page"),
        ("t.csv", b"\x89PNG\r\n\x1a\n", "a picture"),
        ("t.arff", b"@RELATION iris\n", "an ARFF file"),
    ],
)
def test_files_that_people_take_for_tables(refused, tmp_path, name, content, what):
    (tmp_path / name).write_bytes(content)
    assert f"{name}: {what}, which is not read here; " in refused("fit", tmp_path / name)


def test_no_name_is_proposed_for_a_file_of_other_columns(refused, banknote, tmp_path, run):
    run("fit", banknote, "--save", tmp_path / "m.sx", "--quiet")
    (tmp_path / "other.csv").write_text("race,age\nx,1\ny,2\n")
    message = refused("predict", tmp_path / "m.sx", tmp_path / "other.csv")
    assert "no feature columns 'variance', 'skewness'" in message
    assert "did you mean" not in message


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("words", [["--help"], ["fit", "--help"], ["separability", "banknote.csv", "--json"]])
def test_a_full_disk_is_told_in_one_line(words, banknote, tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "separatrix", *words],
            cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.casefold().endswith("no space left on device\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("closed", ["1>&-", "2>&-"])
def test_closed_streams_do_not_change_how_a_command_ends(closed, tmp_path):
    command = f'"{sys.executable}" -m separatrix'
    script = "".join(
        f"{command} {words} {closed}; echo $? >> codes\n" for words in ("--version", "fit missing.csv")
    )
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (tmp_path / "codes").read_text() == "0\n2\n"
    assert "Traceback" not in done.stderr


def test_what_was_noticed_is_told_with_the_error(run, tmp_path):
    texts = "\n".join(f"{'ab'[k % 2]}\ttext number {k}" for k in range(200))
    file = tmp_path / "t.tsv"
    file.write_text(f'kind\ttext\na\t"open\nb\tshut"\n{texts}\n')
    code, _, err = run("fit", file, "--target", "kind")
    assert code == 2
    note, error = err.splitlines()
    assert "--quote none" in note
    assert "different texts" in error
    words = ("--quote", "none", "--categorical", "text", "--quiet")
    assert run("fit", file, "--target", "kind", *words).code == 0


def test_a_target_that_is_a_feature_of_the_model(refused, run, banknote, tmp_path):
    assert run("fit", banknote, "--save", tmp_path / "m.sx", "-q").code == 0
    error = refused("evaluate", tmp_path / "m.sx", banknote, "--target", "entropy")
    assert "--target entropy: the model reads this column as a feature" in error


def test_an_index_that_no_memory_holds(refused, tmp_path, monkeypatch):
    from separatrix.cli import inputs

    monkeypatch.setattr(inputs, "available_memory", lambda: 10**9)
    file = tmp_path / "wide.svm"
    file.write_text("1 1:1\n2 1:2\n" * 20 + "1 2000000000:1\n")
    error = refused("fit", file)
    assert "2,000,000,000 columns, whose weights need 128 GB of memory, and 1 GB are free" in error


def test_libsvm_text_has_no_column_to_choose(refused, run, tmp_path):
    file, model = tmp_path / "data.svm", tmp_path / "m.sx"
    file.write_text("1 1:1\n2 1:2\n" * 20)
    assert "'y' cannot be chosen; leave out --target" in refused("fit", file, "--target", "y")
    assert run("fit", file, "--save", model).code == 0
    assert "'y' cannot be chosen; leave out --target" in refused("evaluate", model, file, "--target", "y")


def test_a_single_column_may_have_another_separator(refused, tmp_path):
    file = tmp_path / "spaces.csv"
    file.write_text("a b kind\n1 2 u\n3 4 v\n")
    assert "is another mark between the values? --delimiter names it" in refused("fit", file)


def test_a_missing_target_is_not_filled_in(refused, tmp_path):
    file = tmp_path / "gaps.csv"
    file.write_text("a,kind\n,u\n1,\n2,v\n")
    error = refused("fit", file, "--missing", "mean")
    assert "data row 2 (line 3 of the file), target column 'kind': the value is missing" in error
    assert "--missing mean" not in error
    error = refused("fit", file)
    assert "--missing drop" in error
    assert "--missing mean" not in error


def test_a_failing_process_ends_with_its_own_code(tmp_path):
    """Threads that read ahead aborted one in three of these, in an interpreter that took itself apart."""
    file = tmp_path / "gaps.csv"
    file.write_text("length,kind\n" + "1.5,lily\n2.5,\n" * 75)
    command = [sys.executable, "-m", "separatrix", "fit", str(file), "--missing", "mean"]
    for _ in range(10):
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("separatrix: error: ")
        assert done.stderr.count("\n") == 1
