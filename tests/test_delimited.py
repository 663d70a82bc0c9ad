"""Plain delimited text: the compiled reader against a slow one, against Arrow, and on any bytes."""

import itertools
import re
import subprocess
import sys
import warnings
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from separatrix import _hot
from separatrix.data.files import DataFileError, Plan, _csv, _delimited, read
from separatrix.data.files._columns import MISSING_MARKS, NUMBER

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


def parse_quickly(text, texts=(), drop=False):
    """The same from the core; with columns of text (as texts) from the tables that it makes."""
    plan = Plan(PLAN.names, frozenset(texts), PLAN.target)
    found = _delimited.parse_rows(text.encode(), _delimited.Layout.of(NAMES, plan, ",", '"', drop))
    if found is None:
        return None
    rows = []
    for part in found:
        labels = [None if code < 0 else part.y.texts[code] for code in part.y.codes]
        values = [tuple(row.values()) for row in part.X.to_pylist()] if texts else part.X.tolist()
        incomplete = np.zeros(part.num_rows, dtype=bool) if part.incomplete is None else part.incomplete
        assert len(incomplete) == part.num_rows
        assert len(values) == len(labels) == (np.sum(~incomplete) if drop else part.num_rows)
        rows += zip(values, labels, strict=True)
    return rows


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


@given(
    st.lists(st.tuples(VALUES, *[st.sampled_from([*WORDS, *ODD])] * 3), max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_texts(lines, line_end, drop):
    """Texts beside numbers: value by value as the slow reader has them, "?" where there is none."""
    text = line_end.join(",".join(line) for line in lines)
    with mock.patch.object(_delimited, "_TASK_BYTES", 16):
        found = parse_quickly(text, texts={"b"}, drop=drop)
    numbers = parse_slowly("\n".join(f"{a},{skipped},{kind},0" for a, skipped, kind, _ in lines))
    texts = parse_slowly("\n".join(f"0,x,{b},0" for *_, b in lines))
    assert (found is None) == (numbers is None or texts is None)
    if found is None:
        return
    rows = [((b, n[1]), y) for (n, y), (_, b) in zip(numbers, texts, strict=True)]
    if drop:
        rows = [((b, n), y) for (b, n), y in rows if b is not None and y is not None and not np.isnan(n)]
    np.testing.assert_array_equal([n for (_, n), _ in found], [n for (_, n), _ in rows])
    assert [(b, y) for (b, _), y in found] == [("?" if b is None else b, y) for (b, _), y in rows]


@given(LINES)
def test_rows_left_out(lines):
    """Rows of numbers, too, may be left out where a value is missing."""
    kept, all_rows = parse_quickly("\n".join(lines), drop=True), parse_quickly("\n".join(lines))
    assert (kept is None) == (all_rows is None)
    if kept is not None:
        assert kept == [row for row in all_rows if row[1] is not None and not np.isnan(row[0]).any()]


def test_many_texts_of_all_lengths():
    """None is lost or taken for another, whatever memory they are kept in."""
    values = [f"{'x' * (k % 80)}{k // 3}" for k in range(3000)] + ["", "N", "x" * 3000, "NAN", "é" * 19]
    for line in ("\n", "\r\n"):
        for mark in ("", '"'):
            text = line.join(f"1,s,{mark}{value}{mark},{value}" for value in values)
            rows = parse_quickly(text, texts={"b"})
            assert [b for (b, _), _ in rows] == [value or "?" for value in values]
            assert [y for _, y in rows] == (values if mark else [value or None for value in values])


def in_chunks(texts, sizes):
    """Texts as Arrow holds them, cut into chunks."""
    bounds = itertools.pairwise([0, *sizes, len(texts)])
    column = pa.chunked_array([texts[a:b] for a, b in bounds], pa.string())
    return [
        (np.frombuffer(ends, dtype=np.int32)[: len(chunk) + 1], np.frombuffer(content or b"", dtype=np.int8))
        for chunk in column.chunks
        if len(chunk)
        for _, ends, content in [chunk.buffers()]
    ]


@given(
    st.lists(st.sampled_from([*NUMBERS, *WORDS, *ODD, "\u20031", "\u3042", "\xa05", "1\x85"])),
    st.sampled_from([(), (1,), (2, 2, 3)]),
)
def test_doubts_about_texts(texts, cuts):
    """Numbers and different texts are never overlooked, and few different texts are counted exactly."""
    judged = [text for text in texts if text != "?"]
    numbers = sum(bool(NUMBER.fullmatch(text.strip())) for text in judged)
    chunks = in_chunks(texts, [cut for cut in cuts if cut <= len(texts)])
    for share in (0.1, 0.45, 0.9):
        most, many = _hot.text_doubts(chunks, "?", share)
        assert most or 2 * numbers <= len(judged)
        assert many == (len(set(judged)) > share * len(texts))
    if judged and not any(text.strip()[:1] in "0123456789+-.iInN" for text in judged):
        assert not _hot.text_doubts(chunks, "?", 0.5)[0]


@pytest.mark.parametrize("count", [3000, 5000, 40_000, 300_000])
@pytest.mark.parametrize("form", ["{}", "{:08d}", "row number {} of many"])
def test_many_different_texts_are_counted_well(count, form):
    texts = [form.format(k % count) for k in range(400_000)]
    chunks = in_chunks(texts, [100_000])
    for share in (0.9, 1.1):
        assert _hot.text_doubts(chunks, "?", share * count / len(texts))[1] == (share < 1)


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
    lines = _delimited._most_rows(raw, 6)
    # A row more than needed on either side: nothing may be written there.
    values = np.full((lines + 2, 2), 77.0, order=order)
    ends = np.full((lines + 3, 2), 77, dtype=np.int32, order=order)
    codes, incomplete = np.full(lines + 2, 77, dtype=np.int32), np.full(lines + 2, 77, dtype=np.uint8)
    slots, odd = np.array([1, -3, -1, -2, 0, -4], dtype=np.int32), np.zeros(6, dtype=np.uint8)
    for drop in (False, True):
        (rows, seen, gaps), _, ascii_only, labels, contents = _hot.parse_delimited(
            raw, (delimiter, quote), list(MISSING_MARKS), "?", drop, slots,
            values[1:-1], ends[1:-1], codes[1:-1], incomplete[1:-1], odd,
        )  # fmt: skip
        assert rows <= seen <= lines
        assert rows == seen - gaps * drop
        assert np.sum(incomplete[1 : seen + 1]) == gaps
        for guarded in (values, ends, codes, incomplete):
            assert np.all(guarded[[0, -1]] == 77)
        assert set(odd) <= {0, 1}
        places = np.frombuffer(labels[0], dtype=np.int32)
        assert np.all((codes[1 : rows + 1] >= -1) & (codes[1 : rows + 1] < len(places) - 1))
        for column, content in [(places, labels[1]), *zip(ends[1 : rows + 2].T, contents, strict=True)]:
            assert column[0] == 0
            assert column[-1] == len(content) <= len(data)
            assert np.all(np.diff(column) >= 0)
            assert not ascii_only or bytes(content).isascii()


def test_short_lines_below_many_names_take_no_memory(tmp_path):
    """The lines have no room for a row of all columns, and as many rows as lines would take terabytes."""
    assert _delimited._most_rows(np.frombuffer(b"1\n" * 10_000, dtype=np.int8), 5000) == 5
    names = ",".join(f"c{k}" for k in range(100_000))
    path = tmp_path / "data.csv"
    path.write_text(f"{names}\n" + "1\n" * 500_000)
    with pytest.raises(DataFileError, match=r"data row 1 .* has 1 values where the header has 100000"):
        read(path)


def test_room_that_is_too_small_is_told():
    raw, ends = np.frombuffer(b"1,a\n2,b\n", dtype=np.int8), np.empty((3, 0), np.int32)
    slots, odd = np.array([0, -2], np.int32), np.zeros(2, np.uint8)

    def parse(values=(2, 1), codes=2, incomplete=2, slots=slots, odd=odd, text=raw):
        return _hot.parse_delimited(
            text, (44, 34), [], "", False, slots, np.empty(values), ends, np.empty(codes, np.int32),
            np.empty(incomplete, np.uint8), odd,
        )  # fmt: skip

    assert parse()[0] == (2, 2, 0)
    for short in ({"values": (1, 1)}, {"codes": 1}, {"incomplete": 1}, {"values": (2, 0)}):
        with pytest.raises(ValueError, match="room"):
            parse(**short)
    for wrong in ({"slots": slots[:0]}, {"odd": odd[:1]}, {"slots": np.array([0, -3], np.int32)}):
        with pytest.raises(ValueError, match="room"):
            parse(**wrong)


@pytest.mark.parametrize("digits", [300, 3000, 30_000])
def test_a_line_that_is_longer_than_every_look(tmp_path, monkeypatch, digits):
    monkeypatch.setattr(_csv, "_GLANCE_BYTES", 32)
    monkeypatch.setattr(_csv, "_LOOK_BYTES", 64)
    path = tmp_path / "data.csv"
    path.write_text(f"a,b\n1,{'1' * digits}\n2,3\n")
    if digits == 300:
        assert read(path).X[0, 1] == float("1" * 300)
    else:
        with pytest.raises(DataFileError, match=r"data row 1 .*, column 'b': '1*' is not a finite number"):
            read(path)


def test_decimal_commas_are_not_looked_for_in_a_million_values():
    rows = iter([["1,5"] * 60_000, ["2"] * 60_000])
    with pytest.warns(UserWarning, match="decimal comma"):
        assert _csv._decimal("file", itertools.chain(rows, map(pytest.fail, ["too far"])), "\t") == ","


def test_a_header_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(_csv, "_LONGEST_LINE", 100)
    path = tmp_path / "data.csv"
    path.write_text("x" * 200)
    with pytest.raises(DataFileError, match="a line has more than 100 bytes; not a table"):
        read(path)


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        *(
            ({name: mark}, rf"\({name}=\) must be one character")
            for name in ("delimiter", "quote")
            for mark in ("", "ab", "é", "\n", "\r", "\0")
        ),
        ({"delimiter": ";", "quote": ";"}, "both ';'"),
    ],
)
def test_marks_that_cannot_be(tmp_path, marks, message):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataFileError, match=message):
        read(path, **marks)


def test_a_quotation_mark_separates_nothing(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a;b\n,1,;,2,\n")
    assert read(path, quote=",").X.tolist() == [[1.0, 2.0]]


def test_separators_that_may_be_in_numbers(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a-b\n1-2\n3-4\n")
    assert read(path, delimiter="-").X.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    path.write_text("a-b\n-1-2\n")
    with pytest.raises(DataFileError, match="has 3 values where the header has 2 columns"):
        read(path, delimiter="-")


def test_a_mark_that_is_never_closed(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('a,b\n1,"x\n' + "2,y\n" * 1_500_000)
    with pytest.raises(DataFileError, match=r"never closed.*--quote none"):
        read(path)


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
