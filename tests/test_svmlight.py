"""LIBSVM text: the compiled parser against a slow one and scikit-learn's, and against damaged files."""

import gzip
import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from separatrix import _hot
from separatrix.data.files import DataFileError, _svmlight, open_source, read


def parse_slowly(text):
    """The format in Python: labels and rows of {index: value}, or the number of the bad line."""
    labels, rows = [], []
    number = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
    for line_number, line in enumerate(text.split("\n"), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if not number.fullmatch(words[0]) or not math.isfinite(float(words[0])):
            return line_number
        row = {}
        for word in words[1:]:
            if word.startswith("qid:"):
                continue
            index, colon, value = word.partition(":")
            sound = re.fullmatch(r"\d+", index, re.ASCII) and colon and number.fullmatch(value)
            if not sound or int(index) > 2**31 - 1 or not math.isfinite(float(value)):
                return line_number
            if row and int(index) <= max(row):
                return line_number
            row[int(index)] = float(value)
        labels.append(float(words[0]))
        rows.append(row)
    return labels, rows


def parse_quickly(text):
    """The same, by the core."""
    block, error, _ = _svmlight._parse(text.encode())
    if error:
        return block.lines
    starts = [0, *block.ends.tolist()]
    rows = [
        dict(zip(block.indices[a:b].tolist(), block.values[a:b].tolist(), strict=True))
        for a, b in pairwise(starts)
    ]
    return block.labels.tolist(), rows


GOOD = ["1", "-1", "+1", "2.5", "1e3", "1:1", "2:-0.5", "3:1e-3", "7:.5", "9:4.", "0:1", "qid:4", "#", "#1:2"]
EDGE = ["2147483647:1", "4:1e-999", "2147483648:1", "99999999999999999999:1", "1:1e999", "1:1e", "1e", "1:-"]
BAD = ["x", "1:", ":1", "1:x", "1:nan", "-2:1", "1:inf", "1,2", "nan", "5:1:2", "é", "\0", "+", "1:+-1"]
WORDS = st.sampled_from([*GOOD, *EDGE, *BAD, "\n", "\n", "\r\n", "\t", "5:12345678901234567890123"])


@given(st.lists(WORDS, max_size=30))
def test_like_a_slow_parser(words):
    text = " ".join(words)
    assert parse_quickly(text) == parse_slowly(text.replace("\0", "x"))


@given(st.floats(-1e300, 1e300), st.sampled_from(["{!r}", "{:.17g}", "{:.3e}", "{:.25f}"]))
def test_numbers_are_read_to_the_last_bit(value, form):
    text = form.format(value)
    (label,), (row,) = parse_quickly(f"{text} 1:{text}")
    assert label == float(text)
    assert math.copysign(1, row[1]) == math.copysign(1, float(text))
    assert row[1] == float(text)


@given(st.binary(max_size=200))
def test_any_bytes(data):
    raw = np.frombuffer(data, dtype=np.int8)
    rows, stored = _hot.count_svmlight(raw)
    # One more place than needed on either side: nothing may be written there.
    guarded = [
        np.full(size + 2, 77, dtype=kind)
        for size, kind in ((rows, np.float64), (rows, np.int64), (stored, np.int32), (stored, np.float64))
    ]
    _hot.parse_svmlight(raw, *(array[1:-1] for array in guarded))
    for array in guarded:
        assert array[0] == array[-1] == 77


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("block", [60, 1000, 1 << 20])
def test_like_scikit_learn(tmp_path, monkeypatch, zero_based, block):
    """Many small blocks in threads give what one block gives."""
    monkeypatch.setattr(_svmlight, "_BLOCK_BYTES", block)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 9)) < 0.4, rng.normal(size=(200, 9)), 0.0)
    X[0, [0, 8]] = 1.0
    y = rng.integers(-1, 2, 200)
    path = tmp_path / "data.svm"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based, comment="made for a test")
    expected, labels = load_svmlight_file(str(path))
    found = read(path)
    np.testing.assert_array_equal(found.X.toarray(), expected.toarray())
    np.testing.assert_array_equal(found.y, labels)
    assert found.y.dtype == np.int64
    assert found.feature_names is None


def test_compressed_and_recognised_without_a_suffix(tmp_path):
    text = b"# made by hand\n+1 1:0.5 3:2\n-1 2:1 # comment\n\n1\n"
    (tmp_path / "heart_scale").write_bytes(text)
    (tmp_path / "heart.gz").write_bytes(gzip.compress(text))
    for name in ("heart_scale", "heart.gz"):
        X, _, y = read(tmp_path / name)
        assert X.toarray().tolist() == [[0.5, 0, 2], [0, 1, 0], [0, 0, 0]]
        assert y.tolist() == [1, -1, 1]


def test_queries_are_skipped_with_a_note(tmp_path):
    path = tmp_path / "ranking.svm"
    path.write_text("1 qid:1 1:2\n2 qid:1 1:3\n")
    with pytest.warns(UserWarning, match="2 query identifiers"):
        assert read(path).X.toarray().tolist() == [[2.0], [3.0]]


def test_index_base(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("1 1:2\n2 2:3\n")
    assert read(path).X.shape == (2, 2)
    assert read(path, index_base=0).X.shape == (2, 3)
    path.write_text("1 0:2\n2 2:3\n")
    assert read(path).X.shape == (2, 3)
    with pytest.raises(DataFileError, match="index 0"):
        read(path, index_base=1)


def test_fractional_labels_stay_floats(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("1.5 1:2\n2 2:3\n")
    assert read(path).y.tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("x 1:2", ["'x'", "label"]),
        ("nan 1:2", ["'nan'", "label"]),
        ("1,2 1:2", ["'1,2'", "several labels"]),
        ("1 a:2", ["'a:2'", "index:value"]),
        ("1 -1:2", ["'-1:2'", "index:value"]),
        ("1 2:1 2:3", ["index 2", "sort"]),
        ("1 3:1 2:3", ["index 2", "sort"]),
        ("1 3", ["'3'", "colon"]),
        ("1 3:", ["'3:'", "finite number"]),
        ("1 3:1e999", ["'3:1e999'", "finite number"]),
        ("1 3000000000:1", ["'3000000000:1'", "2,147,483,647"]),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, monkeypatch, line, parts):
    monkeypatch.setattr(_svmlight, "_BLOCK_BYTES", 64)
    path = tmp_path / "data.svm"
    path.write_text("1 1:2\n" * 41 + line + "\n" + "1 1:2\n" * 41)
    with pytest.raises(DataFileError) as caught:
        read(path)
    for part in [str(path), "line 42:", *parts]:
        assert part in str(caught.value)


def test_nothing_in_it(tmp_path):
    path = tmp_path / "empty.svm"
    path.write_text("# nothing\n")
    with pytest.raises(DataFileError, match="no samples"):
        read(path)


def test_blocks_have_the_width_of_the_model(tmp_path, monkeypatch):
    monkeypatch.setattr(_svmlight, "_BLOCK_BYTES", 32)
    path = tmp_path / "data.svm"
    path.write_text("1 1:2\n2 3:3\n" * 20)
    blocks = list(open_source(path).matrix_blocks(2))
    assert len(blocks) > 2
    assert {block.X.shape[1] for block in blocks} == {2}
    assert np.concatenate([block.rows for block in blocks]).tolist() == list(range(40))
    assert sum(block.X.sum() for block in blocks) == 40.0
