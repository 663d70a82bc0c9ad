"""Every format of data files: the same table whatever the dress, and a message for every kind of damage."""

import bz2
import contextlib
import gzip
import json
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather
from scipy import sparse

from separatrix import SVC
from separatrix.data.files import DataFileError, Plan, Reading, choose_target, open_source, read
from separatrix.kernels import Spectrum

FRAME = {
    "age": [30.0, 41.5, 22.0, 55.0],
    "city": ["Rome", "Oslo", "Rome", "Lima"],
    "paid": [1, 0, 1, 1],
    "kind": ["a", "b", "a", "b"],
}


def write(folder, form):
    """The table in one of the formats."""
    table = pa.table(FRAME)
    rows = [dict(zip(FRAME, values, strict=True)) for values in zip(*FRAME.values(), strict=True)]
    text = ",".join(FRAME) + "\n" + "".join(",".join(map(str, row.values())) + "\n" for row in rows)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    path = folder / f"table.{form}"
    if form == "parquet":
        pq.write_table(table, path, row_group_size=3)
    elif form == "feather":
        feather.write_feather(table, path, compression="zstd")
    elif form == "arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    elif form == "jsonl":
        path.write_text(lines)
    elif form == "jsonl.gz":
        path.write_bytes(gzip.compress(lines.encode()))
    elif form == "csv.bz2":
        path.write_bytes(bz2.compress(text.encode()))
    elif form == "csv.zst":
        path.write_bytes(pa.compress(text.encode(), codec="zstd", asbytes=True))
    elif form == "tsv":
        path.write_text(text.replace(",", "\t"))
    else:
        path.write_text(text if form == "csv" else text.replace(",", "|"))
    return path


FORMS = ["csv", "tsv", "txt", "csv.bz2", "csv.zst", "jsonl", "jsonl.gz", "parquet", "feather", "arrow"]


@pytest.mark.parametrize("form", FORMS)
def test_the_same_table(tmp_path, form):
    X, names, y = read(write(tmp_path, form), "kind")
    assert names == ["age", "city", "paid"]
    assert X.column_names == names
    assert X["age"].to_pylist() == FRAME["age"]
    assert X["paid"].to_pylist() == [1.0, 0.0, 1.0, 1.0]
    assert X["city"].to_pylist() == FRAME["city"]
    assert y.tolist() == FRAME["kind"]
    numbers = read(tmp_path / f"table.{form}", "kind", features=["paid", "age"])
    np.testing.assert_array_equal(numbers.X, np.column_stack([FRAME["paid"], FRAME["age"]]))
    assert numbers.X.dtype == np.float64


@pytest.mark.parametrize("form", FORMS)
def test_blocks_are_the_table(tmp_path, form):
    source = open_source(write(tmp_path, form))
    plan = Plan(("paid", "city"), frozenset(["city"]), "kind")
    blocks = list(source.blocks(plan))
    assert pa.concat_tables(block.X for block in blocks)["city"].to_pylist() == FRAME["city"]
    assert np.concatenate([block.rows for block in blocks]).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", [pa.int64(), pa.float32(), pa.bool_(), pa.decimal128(21, 2), pa.uint8()])
def test_numbers_of_every_type(tmp_path, kind):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": pa.array([1, 0, 1]).cast(kind), "y": [True, False, True]}), path)
    X, _, y = read(path, "y")
    assert X.tolist() == [[1.0], [0.0], [1.0]]
    assert y.tolist() == [True, False, True]


def test_dictionaries_are_texts(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": pa.array(["u", "v", "u"]).dictionary_encode(), "y": [1, 2, 1]}), path)
    assert read(path, "y").X["a"].to_pylist() == ["u", "v", "u"]


def test_neither_numbers_nor_text(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [[1], [2]], "y": [1, 2]}), path)
    with pytest.raises(DataFileError, match=r"column 'a' holds list<.*--ignore 'a'"):
        read(path, "y")


# ------------------------------------------------------------------------------------------------ CSV


@pytest.fixture
def csv(tmp_path):
    def to_file(text, name="t.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return to_file


def test_without_header(csv):
    X, names, y = read(csv("1,2,u\n3,4,v\n"), "3", header=False)
    assert (X.tolist(), names, y.tolist()) == ([[1.0, 2.0], [3.0, 4.0]], ["1", "2"], ["u", "v"])
    with pytest.raises(DataFileError, match="--no-header"):
        read(csv("1,2,2\n3,4,5\n"), "3")


def test_delimiter(csv):
    assert read(csv("a:b:y\n1:2:u\n"), "y", delimiter=":").X.tolist() == [[1.0, 2.0]]
    assert read(csv('"a,b,c";d;y\n1;2;u\n'), "y").feature_names == ["a,b,c", "d"]


def test_codes_can_be_categories(csv):
    path = csv("code,y\n10,u\n20,v\n10,u\n")
    assert read(path, "y").X.tolist() == [[10.0], [20.0], [10.0]]
    assert read(path, "y", categorical=["code"]).X["code"].to_pylist() == ["10", "20", "10"]
    with pytest.raises(DataFileError, match="'cod'"):
        read(path, "y", categorical=["cod"])


@pytest.mark.parametrize(
    ("write", "kind"),
    [
        (lambda k: f'"{k + 1},234"', "numbers with marks"),
        (lambda k: f'"{k},5"', "numbers with marks"),
        (lambda k: f"${k}", "numbers with marks"),
        (lambda k: f"{k} %", "numbers with marks"),
        (lambda k: f"2023-{k % 12 + 1:02}-{k // 12 + 1:02}", "dates"),
        (lambda k: f"{k // 12 + 1}.{k % 12 + 1}.2023 10:30", "dates"),
    ],
)
def test_texts_that_could_be_numbers(csv, write, kind):
    """They are categories only with a word about it, and a column of many is not called a text to read."""
    few = csv("a,y\n" + "".join(f"{write(k % 8)},{k % 2}\n" for k in range(80)))
    with pytest.warns(UserWarning, match=f"column 'a' is taken as text: values such as .* look like {kind}"):
        assert read(few, "y").X.num_rows == 80
    read(few, "y", categorical=["a"])  # as asked for: nothing to say (warnings are errors)
    many = csv("a,y\n" + "".join(f"{write(k)},{k % 2}\n" for k in range(80)))
    with pytest.raises(DataFileError, match=f"80 different texts .*look like {kind}"):
        read(many, "y")


@pytest.mark.parametrize("text", ["10-20", "3rd", "route 66", "12a", "-", "1:30", "5 km"])
def test_texts_with_digits_are_categories(csv, text):
    read(csv("a,y\n" + "".join(f"{text},u\nx{k % 3},v\n" for k in range(20))), "y")
    read(csv("a,y\n" + f"{text},u\n{text},v\n" * 20), "y")


def test_names_of_rows_are_no_categories(csv):
    path = csv("name,y\n" + "".join(f"person {k},{k % 2}\n" for k in range(80)))
    with pytest.raises(
        DataFileError, match=r"80 different texts in 80 rows, such as 'person 0'.*--ignore 'name'"
    ):
        read(path, "y")
    assert read(path, "y", categorical=["name"]).X.num_rows == 80


def test_long_texts_lead_to_string_kernels(csv):
    path = csv("text,y\n" + "".join(f"{k} {'gattaca' * 30},{k % 2}\n" for k in range(80)))
    with pytest.raises(DataFileError, match=r"'0 gattaca[a-z]*…'.*kernels\.Spectrum\(3\)") as refused:
        read(path, "y")
    assert "gattaca" * 10 not in str(refused.value)
    table = read(path, "y", categorical=["text"])
    assert SVC(kernel=Spectrum(3)).fit(table.X["text"], table.y).predict(table.X["text"]).shape == (80,)


def test_text_beyond_the_first_look(csv, monkeypatch):
    monkeypatch.setattr("separatrix.data.files._csv._LOOK_BYTES", 100)
    path = csv("a,y\n" + "1,u\n" * 100 + "x,u\n")
    with pytest.raises(
        DataFileError, match=r"data row 101 \(line 102.*'x' is not a number.*--categorical 'a'"
    ):
        read(path, "y")
    assert read(path, "y", categorical=["a"]).X.num_rows == 101


MISSING = "a,b,y\n1,red,u\n,blue,v\n3,?,u\n4,red,\n5,red,v\n"


def test_missing_values_are_counted(csv):
    with pytest.raises(DataFileError) as caught:
        read(csv(MISSING), "y")
    for part in (
        "3 missing values",
        "in 3 of 5 rows",
        "a 1, b 1, y 1",
        "data row 2 (line 3",
        "--missing drop",
    ):
        assert part in str(caught.value)


def test_missing_values_are_counted_in_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1.0, None, float("nan")], "b": ["u", None, "v"], "y": [1, 2, 3]}), path)
    with pytest.raises(DataFileError) as caught:
        read(path, "y")
    for part in ("3 missing values", "in 2 of 3 rows", "a 2, b 1", "data row 2, column 'a'"):
        assert part in str(caught.value)


def test_missing_values_dropped_and_kept(csv):
    dropped = read(csv(MISSING), "y", missing="drop")
    assert dropped.X["a"].to_pylist() == [1.0, 5.0]
    assert dropped.y.tolist() == ["u", "v"]
    with pytest.raises(DataFileError, match=r"data row 4 .*the value is missing, and is not filled in"):
        read(csv(MISSING), "y", missing="keep")  # nothing can stand for a class
    kept = read(csv(MISSING.replace("4,red,\n", "4,red,u\n")), "y", missing="keep")
    assert kept.X["b"].to_pylist() == ["red", "blue", "?", "red", "red"]
    assert np.isnan(kept.X["a"].to_numpy()).tolist() == [False, True, False, False, False]
    with pytest.raises(DataFileError, match="every row has a missing value"):
        read(csv("a,y\n,u\n,v\n"), "y", missing="drop")


def test_infinity_is_never_taken(csv, tmp_path):
    for policy in ("drop", "keep"):
        with pytest.raises(DataFileError, match="'inf' is not a finite number"):
            read(csv("a,y\ninf,u\n2,v\n"), "y", missing=policy)
    pq.write_table(pa.table({"a": [1.0, float("inf")], "y": [1, 2]}), tmp_path / "t.parquet")
    with pytest.raises(DataFileError, match="data row 2, column 'a': 'inf' is not a finite number"):
        read(tmp_path / "t.parquet", "y", missing="drop")


@pytest.mark.parametrize(
    ("names", "target"),
    [
        (["a", "Class", "b"], "Class"),
        (["y", "label"], "label"),
        (["u", "v"], "v"),
        (["target", "class"], "target"),
    ],
)
def test_the_target_that_is_meant(names, target):
    assert choose_target(names) == target


@given(st.text(max_size=120), st.booleans())
def test_any_text(tmp_path_factory, text, header):
    """A table or a message, whatever the text."""
    path = tmp_path_factory.mktemp("any") / "t.csv"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with contextlib.suppress(DataFileError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes on what looks odd
        X, names, _ = read(path, header=header, missing="drop")
        assert X.shape[1] == len(names)


# ---------------------------------------------------------------------------------------------- NumPy


def test_npz_layouts(tmp_path):
    path = tmp_path / "t.npz"
    X, y = np.arange(8.0, dtype=np.float32).reshape(4, 2), np.array([0, 1, 0, 1])
    np.savez(path, X=X, y=y, classes=np.array(["no", "yes"]))
    found = read(path)
    assert found.X.dtype == np.float32
    assert found.y.tolist() == ["no", "yes", "no", "yes"]
    np.savez(path, Xtr=X, ytr=y, Xte=X[:2], yte=y[:2])
    assert read(path).X.shape == (4, 2)
    assert open_source(path, part="test").read().X.shape == (2, 2)
    rows = sparse.csr_array(X)
    parts = {f"X_{part}": getattr(rows, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(path, **parts, y=y)
    np.testing.assert_array_equal(read(path).X.toarray(), X)
    sparse.save_npz(path, sparse.csr_array(X))
    assert read(path).y is None
    np.savez(path, X=X, y=y, z=1 - y)
    assert read(path, "z").y.tolist() == [1, 0, 1, 0]
    with pytest.raises(DataFileError, match=r"no target 'q'.*'X', 'y', 'z'"):
        read(path, "q")
    np.savez(path, A=X)
    with pytest.raises(DataFileError, match="the arrays are 'A': save the features as 'X'"):
        read(path)


def test_npy(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.array([[1.5, 0], [2.5, 1]]))
    X, _, y = read(path, "1")
    assert X.tolist() == [[1.5], [2.5]]
    assert y.tolist() == [0, 1]
    with pytest.raises(DataFileError, match="no column 'y'"):
        read(path, "y")


def test_objects_are_not_unpickled(tmp_path):
    for name in ("t.npy", "t.npz"):
        path = tmp_path / name
        (np.save if name == "t.npy" else lambda p, a: np.savez(p, X=a))(
            path, np.array([[print]], dtype=object)
        )
        with pytest.raises(DataFileError, match="could run code"):
            read(path)


def test_a_header_that_promises_too_much(tmp_path):
    """NumPy would allocate what the header says; the archive knows better."""
    import io
    import zipfile

    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**3)}
    )
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", buffer.getvalue() + b"\0" * 80)
    with pytest.raises(DataFileError, match="shorter than its header says"):
        read(path)
    (tmp_path / "t.npy").write_bytes(buffer.getvalue() + b"\0" * 80)
    with pytest.raises(DataFileError, match=r"t\.npy"):
        read(tmp_path / "t.npy")


def test_matrices_have_no_names(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(2), y=[0, 1])
    with pytest.raises(DataFileError, match="no names"):
        read(tmp_path / "t.npz", ignore=["a"])


# --------------------------------------------------------------------------------------------- damage

DAMAGE = """
import glob, resource, sys, warnings
import numpy as np
from separatrix import SVC
from separatrix.data.files import DataFileError, read
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # a message, not a machine that runs out of memory
rng = np.random.default_rng(int(sys.argv[2]))
outcomes = {"read": 0, "refused": 0}
for path in sorted(glob.glob(sys.argv[1] + "/whole/*")):
    whole = open(path, "rb").read()
    damaged = path.replace("/whole/", "/damaged/")
    for trial in range(int(sys.argv[3])):
        data = bytearray(whole)
        if trial % 3 == 0:
            data = data[: rng.integers(len(data))]
        else:
            for _ in range(1 + trial % 7):
                data[rng.integers(len(data))] = rng.integers(256)
        open(damaged, "wb").write(data)
        try:
            read(damaged, None if damaged.endswith(("npz", "npy", "svm")) else "kind", missing="drop")
            outcomes["read"] += 1
        except DataFileError as error:
            assert str(error).startswith(damaged), error
            outcomes["refused"] += 1
print(outcomes)
"""


def test_damaged_files(tmp_path):
    """Cut and overwritten files of every format, in a process of their own: no crash, no other error."""
    for name in ("whole", "damaged"):
        (tmp_path / name).mkdir()
    for form in FORMS:
        write(tmp_path / "whole", form)
    np.savez(tmp_path / "whole" / "t.npz", X=np.eye(4), y=[0, 1, 0, 1])
    np.savez_compressed(tmp_path / "whole" / "c.npz", X=np.eye(4), y=[0, 1, 0, 1])
    np.save(tmp_path / "whole" / "t.npy", np.eye(4))
    (tmp_path / "whole" / "t.svm").write_text("1 1:2 3:4\n-1 2:5\n" * 5)
    done = subprocess.run(
        [sys.executable, "-c", DAMAGE, tmp_path, "0", "40"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "'read': 0" not in done.stdout


def test_format_can_be_said(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("1 1:2\n2 1:3\n")
    assert read(path).X.shape == (2, 1)
    assert open_source(path, Reading(format="csv")).names == ["1 1:2"]
    with pytest.raises(DataFileError, match="'xlsx' is unknown"):
        read(path, format="xlsx")
    with pytest.raises(DataFileError, match="JSON array"):
        (tmp_path / "t.json").write_text('[{"a": 1}]')
        read(tmp_path / "t.json")


def test_stray_quotation_marks(tmp_path):
    file = tmp_path / "notes.tsv"
    file.write_text('kind\ttext\tn\na\t"open\t1\nb\tshut\t2\na\t5" wide\t3\nb\tend"\t4\n')
    options = dict(target="kind", categorical=["text"])
    X, _, y = read(file, quote=None, **options)
    assert X["text"].to_pylist() == ['"open', "shut", '5" wide', 'end"']
    assert y.tolist() == ["a", "b", "a", "b"]
    wrong = tmp_path / "wrong.tsv"
    wrong.write_text('kind\ttext\tn\na\t"open\t1\nb\tend"\t2\t3\n')
    with pytest.raises(DataFileError, match=r"swallows line ends: --quote none"):
        read(wrong, **options)
    file.write_text('kind\ttext\na\t"open\nb\tshut\na\tend"\nb\twhole\n')
    with pytest.warns(UserWarning, match=r"data row 1 .*column 'text'.*--quote none"):
        X, _, y = read(file, **options)
    assert len(y) == 2
    with pytest.raises(ValueError, match=r"\(quote=\) must be one character"):
        read(file, quote="''")


def test_other_quotation_marks(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("'a, b',class\n'x, y',1\n'don''t',2\n\"q\",1\n")
    X, names, _ = read(file, target="class", categorical=["a, b"], quote="'")
    assert names == ["a, b"]
    assert X["a, b"].to_pylist() == ["x, y", "don't", '"q"']


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("begin", ["", "\ufeff"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("quoted_from", [None, 5, 900])
def test_parts_of_a_file(end, begin, header, quoted_from, tmp_path, monkeypatch):
    """Whatever the size of the parts, and wherever a quotation mark ends them, the rows are the same."""
    from separatrix.data.files import _csv

    monkeypatch.setattr(_csv, "_PART_BYTES", 1000)
    values = np.random.default_rng(0).normal(size=(1000, 3)).round(4)
    lines = ["a,b,c,class"] if header else []
    for number, row in enumerate(values):
        kind = "yes" if number % 3 else "no"
        mark = '"' if quoted_from is not None and number >= quoted_from else ""
        lines.append(",".join(map(str, row)) + f",{mark}{kind}{mark}")
    file = tmp_path / "t.csv"
    file.write_bytes((begin + end.join(lines)).encode())
    X, _, y = read(file, target="class" if header else "4", header=header)
    np.testing.assert_array_equal(X, values)
    assert y.tolist() == ["yes" if number % 3 else "no" for number in range(1000)]


TEXTS = st.lists(st.sampled_from(["a", '"', "\n", ",", " ", "x y"]), max_size=4).map("".join)


@given(st.lists(TEXTS, min_size=1, max_size=40))
def test_quoted_texts_in_parts(texts):
    """What a spreadsheet writes is read back, wherever the parts of the file end."""
    import csv
    import tempfile
    from unittest import mock

    from separatrix.data.files import _csv

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "t.csv")
        with file.open("w", newline="") as out:
            csv.writer(out, quoting=csv.QUOTE_NONNUMERIC).writerows(
                [["text", "n", "kind"], *([text, k, "ab"[k % 2]] for k, text in enumerate(texts))]
            )
        with mock.patch.object(_csv, "_PART_BYTES", 30), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X, _, y = read(file, target="kind", categorical=["text"], missing="keep")
    assert X["text"].to_pylist() == texts
    assert X["n"].to_pylist() == list(range(len(texts)))
    assert y.tolist() == ["ab"[k % 2] for k in range(len(texts))]


def test_decimal_targets(tmp_path):
    from decimal import Decimal

    table = pa.table({"a": [1.0, 2.0, 3.0], "y": [Decimal(1), Decimal(2), Decimal(1)]})
    pq.write_table(table, tmp_path / "d.parquet")
    assert read(tmp_path / "d.parquet", "y").y.tolist() == [1, 2, 1]


def test_json_lines_with_values_of_several_kinds(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": "z", "y": 1}\n{"a": 2, "y": 0}\n')
    with pytest.raises(DataFileError, match="column 'a' holds values of kind string and of kind number"):
        read(path, "y")
