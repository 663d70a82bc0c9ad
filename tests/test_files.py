"""`read_table`: what files mean, and what is said about files that mean nothing."""

import gzip
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from separatrix.data.files import DataFileError, _columns, _csv, read


@pytest.fixture
def write(tmp_path):
    def to_file(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to_file


@pytest.mark.parametrize(
    "content",
    [
        "a,b,y\n1,2,u\n3,4,v\n",
        "a;b;y\n1;2;u\n3;4;v\n",
        "a\tb\ty\n1\t2\tu\n3\t4\tv\n",
        "\ufeffa,b,y\r\n1,2,u\r\n3,4,v",
        '"a", b ,y\n"1", 2 ,u\n+3,4.0e0,"v"\n',
        "\n\na,b,y\n1,2,u\n\n3,4,v\n\n",
    ],
    ids=["commas", "semicolons", "tabs", "byte order mark", "quotes", "blank lines"],
)
def test_the_same_table_in_many_dresses(write, content):
    X, names, y = read(write(content), "y")
    np.testing.assert_array_equal(X, [[1.0, 2.0], [3.0, 4.0]])
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    assert names == ["a", "b"]
    assert y.tolist() == ["u", "v"]


def test_compressed(write):
    path = write(gzip.compress(b"a,y\n1.5,u\n2,v\n"), "data.csv.gz")
    assert read(path, "y").X.tolist() == [[1.5], [2.0]]


@pytest.mark.parametrize(
    ("labels", "expected", "kind"),
    [
        (["1", "2", "1"], [1, 2, 1], "i"),
        (["1", "2.0", "1"], [1.0, 2.0, 1.0], "f"),
        (["1", "2", "x"], ["1", "2", "x"], "U"),
        (["True", "False", "True"], ["True", "False", "True"], "U"),
        (['"NA"', "b", "c"], ["NA", "b", "c"], "U"),
        (["9" * 30, "9" * 29 + "8", "1"], ["9" * 30, "9" * 29 + "8", "1"], "U"),
        (["inf", "1", "1"], ["inf", "1", "1"], "U"),
        (["x" * 300, "b", "c"], ["x" * 300, "b", "c"], "O"),
    ],
    ids=["integers", "floats", "mixed", "words", "quoted mark", "large", "infinite", "long text"],
)
def test_targets_are_numbers_or_text(write, monkeypatch, labels, expected, kind):
    monkeypatch.setattr(_columns, "_LARGEST_TEXT_ARRAY", 1000)
    y = read(write("a,y\n" + "".join(f"1,{label}\n" for label in labels)), "y").y
    assert y.tolist() == expected
    assert y.dtype.kind == kind


def test_columns_can_be_chosen_and_ignored(write):
    path = write("id,b,a,note\nx,1,2,hello\ny,3,4,\n")
    assert read(path, features=["a", "b"]).X.tolist() == [[2.0, 1.0], [4.0, 3.0]]
    X, names, y = read(path, None, ignore=["id", "note"])
    assert (X.tolist(), names, y) == ([[1.0, 2.0], [3.0, 4.0]], ["b", "a"], None)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas(write, separator):
    text = "a,b;y\n0,5;-1,25e1;u\n;,5;v\n2;7;u\n".replace("a,b", "a;b").replace(";", separator)
    with pytest.warns(UserWarning, match="decimal comma, such as 0,5"):
        X, _, y = read(write(text), "y", missing="keep")
    np.testing.assert_array_equal(X, [[0.5, -12.5], [np.nan, 0.5], [2.0, 7.0]])
    assert y.tolist() == ["u", "v", "u"]


def test_decimal_points_stay_where_a_comma_is_text(write):
    table = read(write("a;b;y\n1.5;x,1;u\n2.5;3,4;v\n"), "y").X
    assert table["b"].to_pylist() == ["x,1", "3,4"]
    assert table["a"].to_pylist() == [1.5, 2.5]


@pytest.mark.parametrize("rows", [3, 60_000])
@pytest.mark.parametrize(("slip", "said"), [("2.5", "has a decimal point"), ("2,5,1", "is not a number")])
def test_slips_among_decimal_commas(write, monkeypatch, rows, slip, said):
    monkeypatch.setattr(_csv, "_LOOK_ROWS", 1)
    monkeypatch.setattr(_csv, "_LOOK_BYTES", 1 << 16)
    place = f"data row {rows + 1:,} .line {rows + 2:,} of the file., column 'a': '{slip}' {said}"
    with pytest.raises(DataFileError, match=place), pytest.warns(UserWarning, match="decimal comma"):
        read(write("a;y\n" + "1,5;u\n" * rows + f"{slip};v\n"), "y")


@pytest.mark.parametrize("header", ["0.5,-1,y", "5,y", "3,2"])
def test_a_first_line_that_looks_like_data(write, header):
    with pytest.warns(UserWarning, match="looks like data.*--no-header"):
        read(write(f"{header}\n{header}\n"), header.rsplit(",", 1)[1])


@pytest.mark.parametrize("header", ["0,1,y", "1,y", "400.5,401.5,y", "a,1,y"])
def test_a_first_line_of_names_that_are_numbers(write, header):
    names = read(write(f"{header}\n{'1,' * header.count(',')}u\n"), "y").feature_names
    assert names == header.split(",")[:-1]


def test_only_a_slip_of_the_pen_is_suggested(write):
    path = write("hieght,bought\n1,u\n2,v\n")
    with pytest.raises(DataFileError, match="did you mean 'hieght'"):
        read(path, "height")
    with pytest.raises(DataFileError, match="no target column 'height'") as told:
        read(write("x,bought\n1,u\n2,v\n"), "height")
    assert "did you mean" not in str(told.value)


def test_texts_that_begin_late(write):
    lines = [f"{k},{k if k < 4000 else 'abc'[k % 3]},{k % 2}\n" for k in range(9000)]
    table = read(write("a,b,y\n" + "".join(lines)), "y").X
    assert table["b"].to_pylist()[-3:] == ["a", "b", "c"]
    assert table["a"].to_pylist() == list(range(9000))


def test_lines_longer_than_blocks(write, monkeypatch):
    for name in ("_GLANCE_BYTES", "_LOOK_BYTES", "_TASK_BYTES"):
        monkeypatch.setattr(_csv, name, 300)
    numbers = np.random.default_rng(0).integers(0, 1000, size=(7, 500))
    lines = "".join(",".join(map(str, row)) + ",u\n" for row in numbers.tolist())
    X, names, _ = read(write(",".join(f"c{k}" for k in range(500)) + ",y\n" + lines), "y")
    np.testing.assert_array_equal(X, numbers)
    assert len(names) == 500


def test_many_columns_take_time_in_proportion(write, monkeypatch):
    """Each column is looked up once: with a search of all names for each of them this would take minutes."""
    names = [f"c{k}" for k in range(30_000)]
    content = ",".join([*names, "y"]) + "\n" + ("1," * len(names) + "u\n") * 2
    compared = 0

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    original = _csv._read_header
    monkeypatch.setattr(
        _csv, "_read_header", lambda *a: (h := original(*a))._replace(names=[Name(n) for n in h.names])
    )
    assert read(write(content), "y").X.shape == (2, len(names))
    assert compared < 50 * len(names)


def test_many_blocks_make_one_table(write, monkeypatch):
    monkeypatch.setattr(_csv, "_BLOCK_BYTES", 500)
    numbers = np.random.default_rng(0).normal(size=(1000, 3))
    lines = "".join(",".join(repr(float(number)) for number in row) + ',"a\nb"\n' for row in numbers)
    X, _, y = read(write("p,q,r,y\n" + lines), "y")
    np.testing.assert_array_equal(X, numbers)  # to the last bit
    assert y.tolist() == ["a\nb"] * 1000


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"", ["empty"]),
        (b"\n\n", ["empty"]),
        (b"a,y", ["no data rows"]),
        (b"a,y\n\n", ["no data rows"]),
        (b"1,2\n3,4\n", ["no target column 'y'", "looks like data"]),
        (b"1,2,u\n3,4,v\n", ["no target column 'y'", "looks like data", "--no-header"]),
        (b"0,1.5,0,u\n1,2.5,0,v\n", ["names '0' more than once", "--no-header"]),
        (b"a,Y\n1,2\n", ["did you mean 'Y'?"]),
        (b",y\n0,u\n", ["column 1 has no name"]),
        (b"a,y\n1,u\nw,v\n3,u\n", ["data row 2 (line 3 of the file)", "column 'a'", "'w' is not a number"]),
        (b'a,n,y\n1,1,"u\nu"\n\n1_0,1,v\n3,1,v\n', ["data row 2 (line 5 of the file)", "'1_0'"]),
        (b"a,y\n1,u\nNaN,v\n,v\n", ["2 missing values", "data row 2 (line 3"]),
        (b"a,y\n1,\n2,v\n", ["1 missing value,", "data row 1 (line 2", "column 'y'"]),
        (b'a,y\n1,""\n2,v\n', ["1 missing value,", "column 'y'"]),
        (b"a y\n1 u\n", ["no target column 'y'", "'a y'"]),
        (b"a,y\n1e999,u\n", ["'1e999' is not a finite number"]),
        (b"a,y\n1,u\n2,v,w\n", ["data row 2 (line 3", "3 values", "2 columns"]),
        (b"a,y\n1,caf\xe9\n", ["UTF-8", "0xe9"]),
        (b"a\xe9,y\n1,u\n", ["UTF-8"]),
    ],
)
def test_bad_files(write, content, parts):
    path = write(content)
    with pytest.raises(DataFileError) as caught:
        read(path, "y")
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    for part in parts:
        assert part in message


def test_bad_paths(tmp_path, write):
    with pytest.raises(DataFileError, match="no such file"):
        read(tmp_path / "none.csv")
    with pytest.raises(DataFileError, match="directory"):
        read(tmp_path)
    with pytest.raises(DataFileError, match="cannot read"):
        read(write(b"this is not gzip", "data.csv.gz"))


@pytest.fixture
def ordinary_user():
    """A folder open to everybody and a user who may not read everything, as the administrator may."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        if user == 0:
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            os.seteuid(user)


def test_unreadable(ordinary_user):
    path = ordinary_user / "data.csv"
    path.write_text("a,y\n1,2\n")
    path.chmod(0)
    with pytest.raises(DataFileError, match="cannot read"):
        read(path)


def test_labels_of_rows_that_are_left_out_change_nothing(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a,y\n1,3\n2, \n,x\n4,5\n")
    table = read(file, target="y", missing="drop")
    assert table.y.dtype.kind == "i"
    assert table.y.tolist() == [3, 5]
    assert table.X.tolist() == [[1.0], [4.0]]


def test_large_matrices_are_scaled_in_blocks(monkeypatch):
    from sklearn.preprocessing import StandardScaler

    from separatrix.cli import prepare

    X = np.random.default_rng(0).normal(3.0, 2.0, size=(1000, 3))
    expected = StandardScaler().fit(X)
    monkeypatch.setattr(prepare, "_BLOCK_BYTES", 5000)
    scaler, scaled = StandardScaler(), X.copy()
    assert prepare._scaled(scaler, scaled) is scaled
    np.testing.assert_allclose(scaler.mean_, expected.mean_, rtol=1e-13)
    np.testing.assert_allclose(scaler.scale_, expected.scale_, rtol=1e-13)
    np.testing.assert_allclose(scaled, expected.transform(X), rtol=1e-12, atol=1e-13)
    assert scaler.n_samples_seen_ == 1000


@pytest.mark.parametrize("impute", [False, True])
@pytest.mark.parametrize("categories", [3, 40])
def test_long_tables_are_encoded_in_blocks(impute, categories, monkeypatch):
    """As if all rows were seen at once: the same columns, to the last bit."""
    import pyarrow as pa

    from separatrix.cli import prepare

    rng = np.random.default_rng(0)
    gaps = np.where(rng.random(500) < 0.1, np.nan, rng.normal(3.0, 2.0, 500))
    texts = [f"t{k}" for k in rng.integers(0, categories, 500)]
    numbers = gaps if impute else np.arange(500.0)
    table = pa.table({"b": texts, "a": numbers, "c": rng.choice(["x", "y"], 500)})
    choice = prepare.prepare(table, table.column_names, standardize=True, scale=True, impute=impute)
    ((_, whole),) = choice.steps()
    expected = whole.fit_transform(table)
    monkeypatch.setattr(prepare, "_BLOCK_ROWS", 64)
    ((_, step),) = choice.steps()
    found = prepare.fit_columns(step, table)
    assert type(found) is type(expected)
    for one, other in ((found, expected), (step.transform(table), expected)):
        dense = [m.toarray() if hasattr(m, "toarray") else m for m in (one, other)]
        np.testing.assert_array_equal(*dense)
    assert list(step.get_feature_names_out()) == list(whole.get_feature_names_out())
