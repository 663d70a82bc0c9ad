"""Plain delimited text: the compiled reader against a slow one, against Arrow, and on any bytes."""

import re
import subprocess
import sys
import warnings
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from separatrix import _hot
from separatrix.data.files import DataFileError, Plan, _csv, _delimited, read
from separatrix.data.files._columns import MISSING_MARKS, NUMBER, Labels

NAMES = ["a", "skipped", "kind", "b"]
PLAN = Plan(("b", "a"), frozenset(), "kind")


def parse_slowly(text, delimiter=",", quote='"'):
    """Rows of (numbers, label), or None where the quick reader has to give up."""
    rows = []
    for line in re.split(r"\r\n|\n|\r", text):
        if not line:
            continue
        values = line.split(delimiter)
        if len(values) != len(NAMES):
            return None
        a, skipped, kind, b = values
        numbers = []
        for value in (b.strip(" \t"), a.strip(" \t")):
            if len(value) > 1 and value[0] == value[-1] == quote and NUMBER.fullmatch(value[1:-1]):
                value = value[1:-1]
            if value in MISSING_MARKS:
                numbers.append(np.nan)
            elif NUMBER.fullmatch(value) and np.isfinite(float(value)):
                numbers.append(float(value))
            else:
                return None
        for word in (skipped, kind):
            if word[:1] == quote and not re.fullmatch(f"{quote}([^{quote}]|{quote}{quote})*{quote}", word):
                return None
        label = kind[1:-1].replace(2 * quote, quote) if kind[:1] == quote else kind
        rows.append((numbers, None if kind in MISSING_MARKS else label))
    return rows


def parse_quickly(text, texts=()):
    """The same from the core; with columns of text (as texts) from the record batches that it makes."""
    plan = Plan(PLAN.names, frozenset(texts), PLAN.target)
    found = _delimited.parse_rows(text.encode(), _delimited.Layout.of(NAMES, plan, ",", '"'))
    if found is None:
        return None
    if texts:
        return [tuple(row.values()) for batch in found for row in batch.to_pylist()]
    (part,) = found or [_delimited.Numbers(np.empty((0, 2)), Labels(np.empty(0, dtype=np.int32), []))]
    labels = [None if code < 0 else part.y.texts[code] for code in part.y.codes]
    return list(zip(part.values.tolist(), labels, strict=True))


def quotes_within_lines(text, quote='"', delimiter=","):
    """Whether every quoted value surely ends in its line: marks in pairs, at the two ends of a value."""
    content = np.frombuffer(text.encode(), dtype=np.uint8)
    marks = np.flatnonzero(content == ord(quote))
    if len(marks) % 2:
        return False
    edges = [ord(mark) for mark in (quote, delimiter, "\n", "\r")]
    ends = np.append(np.flatnonzero(np.isin(content, edges[2:])), len(content))
    for begin, end in zip(marks[0::2], marks[1::2], strict=True):
        alone = begin == 0 or content[begin - 1] in edges
        closed = end + 1 < len(content) and content[end + 1] in edges
        if not (alone and closed and end < ends[np.searchsorted(ends, begin)]):
            return False
    return True


@given(st.text(alphabet=st.sampled_from(list('",\n\ra\xe9')), max_size=30))
def test_whether_quoted_values_end_in_their_lines(text):
    raw = np.frombuffer(text.encode(), dtype=np.int8)
    assert _hot.quotes_within_lines(raw, ord('"'), ord(",")) == quotes_within_lines(text)


@pytest.mark.parametrize(
    ("text", "within"),
    [('"a","b ""c"""\n', True), ('a"b\n', False), ('"a\nb"\n', False), ('"a"b,c\n', False), ("a,b", True)],
)
def test_quoted_values_by_hand(text, within):
    assert quotes_within_lines(text) is within
    assert _hot.quotes_within_lines(np.frombuffer(text.encode(), dtype=np.int8), ord('"'), ord(",")) is within


NUMBERS = ["1", "-2.5", "+3", ".5", "4.", " 6 ", "\t7", "1e3", "1e-999", "0.1234567890123456789", "-0"]
ODD = ["", " ", "?", "NA", "nan", "x", "1e999", "inf", "-nan", "+-1", "--1", "1_0", "1 2", "0x1", '"', "'1"]
WORDS = ["rose", "lily", '"quoted"', '"not', 'clo"sed"', '"two""marks"', '"NA"', '" "', "é", "☃ snow", "1"]
VALUES = st.sampled_from([*NUMBERS * 4, *ODD])
LINE = st.tuples(VALUES, st.sampled_from([*WORDS, *ODD]), st.sampled_from(WORDS * 3 + ODD), VALUES)
LINES = st.lists(
    st.one_of(LINE.map(",".join), st.sampled_from(["", "1,2", "1,2,3,4,5", "1,2,u,"])), max_size=6
)


@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_like_a_slow_reader(lines, line_end, closed):
    text = line_end.join(lines) + line_end * closed
    with mock.patch.object(_delimited, "_TASK_BYTES", 16):
        found, expected = parse_quickly(text), parse_slowly(text)
    assert (found is None) == (expected is None)
    if expected is not None:
        np.testing.assert_array_equal([n for n, _ in found], [n for n, _ in expected])
        assert [label for _, label in found] == [label for _, label in expected]


@given(st.lists(st.tuples(st.sampled_from(NUMBERS), *[st.sampled_from([*WORDS, *ODD])] * 3), max_size=6))
def test_texts_as_codes(lines):
    """A column of texts beside one of numbers: value by value as the slow reader has them."""
    text = "\n".join(",".join(line) for line in lines)
    with mock.patch.object(_delimited, "_TASK_BYTES", 16):
        found = parse_quickly(text, texts={"b"})
    numbers = parse_slowly("\n".join(f"{a},{skipped},{kind},0" for a, skipped, kind, _ in lines))
    texts = parse_slowly("\n".join(f"0,x,{b},0" for *_, b in lines))
    assert (found is None) == (numbers is None or texts is None)
    if found is not None:
        expected = [(b, n[1], y) for (n, y), (_, b) in zip(numbers, texts, strict=True)]
        np.testing.assert_array_equal([a for _, a, _ in found], [a for _, a, _ in expected])
        assert [(b, y) for b, _, y in found] == [(b, y) for b, _, y in expected]


def test_many_texts_of_all_lengths():
    """Codes count different texts: none is lost or taken for another, whatever table they are kept in."""
    values = [f"{'x' * (k % 40)}{k // 3}" for k in range(3000)] + ["", "N", "x" * 300, "NAN", "é" * 9]
    for line in ("\n", "\r\n"):
        for mark in ("", '"'):
            text = line.join(f"1,s,{mark}{value}{mark},{value}" for value in values)
            rows = parse_quickly(text, texts={"b"})
            missing = [None if value in MISSING_MARKS else value for value in values]
            assert [b for b, _, _ in rows] == missing
            assert [y for _, _, y in rows] == (values if mark else missing)


@given(
    LINES,
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["drop", "keep", "refuse"]),
    st.sampled_from([(), ("b",), ("a", "b")]),
)
def test_like_arrow(tmp_path_factory, lines, line_end, missing, texts):
    """Whatever a file holds, it makes no difference whether the quick reader is there."""
    path = tmp_path_factory.mktemp("arrow") / "data.csv"
    # For Arrow the first is a whole number, but not one of `NUMBER`, and blanks make a text of their own.
    lines = [line for line in lines if not {"0x1", " "} & set(line.split(","))]
    path.write_bytes(line_end.join([",".join(NAMES), "1,x,rose,2", *lines]).encode())

    def outcome():
        try:
            X, names, y = read(path, "kind", ignore=["skipped"], missing=missing, categorical=texts)
        except DataFileError as error:
            return str(error)
        values = X.tolist() if isinstance(X, np.ndarray) else X.to_pylist()
        types = None if isinstance(X, np.ndarray) else [str(kind) for kind in X.schema.types]
        return [names, types, repr(values), y.tolist(), y.dtype.kind]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hints at quoted line ends
        quick = outcome()
        with mock.patch.multiple(_csv, parse_rows=lambda *_: None, text_columns=lambda *_: None):
            assert quick == outcome()


@given(
    st.binary(max_size=200), st.sampled_from(b",;\t x"), st.sampled_from([0, *b"\"'1"]), st.sampled_from("CF")
)
def test_any_bytes(data, delimiter, quote, order):
    raw = np.frombuffer(data, dtype=np.int8)
    lines = _hot.count_lines(raw)
    # A row more than needed on either side: nothing may be written there.
    values = np.full((lines + 2, 2), 77.0, order=order)
    codes = np.full((lines + 2, 2), 77, dtype=np.int32, order=order)
    slots, texts = np.array([1, -3, -1, -2, 0], dtype=np.int32), np.zeros(5, dtype=np.uint8)
    rows, _, different = _hot.parse_delimited(
        raw, (delimiter, quote), list(MISSING_MARKS), slots, values[1:-1], codes[1:-1], texts
    )
    assert rows <= lines
    assert np.all(values[[0, -1]] == 77)
    assert np.all(codes[[0, -1]] == 77)
    assert set(texts) <= {0, 1}
    for (ends, content), column in zip(different, codes[1 : rows + 1].T, strict=True):
        places = np.frombuffer(ends, dtype=np.int32)
        assert places[0] == 0
        assert places[-1] == len(content) <= len(data)
        assert np.all(np.diff(places) >= 0)
        assert np.all((column >= -1) & (column < len(places) - 1))


@pytest.mark.parametrize("part", [64, 1000, 1 << 20])
def test_parts_and_threads_change_nothing(tmp_path, monkeypatch, part):
    monkeypatch.setattr(_csv, "_PART_BYTES", part)
    monkeypatch.setattr(_delimited, "_TASK_BYTES", 20)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 4, 300)
    lines = ["a,b,c,kind"]
    lines += [f"{a!r},{b!r},{c!r},k{label}" for (a, b, c), label in zip(X.tolist(), y, strict=True)]
    lines[100:100] = ["", ""]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines))
    found = read(path, "kind")
    np.testing.assert_array_equal(found.X, X)
    assert found.y.tolist() == [f"k{label}" for label in y]


def test_one_odd_part_is_left_to_arrow(tmp_path, monkeypatch):
    monkeypatch.setattr(_csv, "_PART_BYTES", 64)
    rows = [f"{n},{n % 3}" for n in range(100)]
    rows[50] = '"50",2'
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["a,y", *rows]))
    found = read(path, "y")
    assert found.X.ravel().tolist() == list(range(100))
    assert found.y.tolist() == [n % 3 for n in range(100)]


@pytest.mark.parametrize("size", [40, 64, 200])
def test_quoted_line_ends_in_any_part(tmp_path, monkeypatch, size):
    """From a part with a hidden line end on, Arrow reads the rest as one text, however it was cut before."""
    monkeypatch.setattr(_csv, "_PART_BYTES", size)
    texts = [f"text {n}" if n % 7 else f"line {n}\nand, more" for n in range(60)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["a,t,y", *(f'{n},"{text}",{n % 2}' for n, text in enumerate(texts))]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the hint at quoted line ends
        X, _, y = read(path, "y", categorical=["t"])
    assert X["t"].to_pylist() == texts
    assert X["a"].to_pylist() == list(range(60))
    assert y.tolist() == [n % 2 for n in range(60)]


def test_plain_files_do_not_load_arrow(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,kind\n1,u\n2,v\n")
    program = (
        f"import sys, separatrix as sx; sx.read({str(path)!r}, 'kind'); assert 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
