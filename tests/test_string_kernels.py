"""String kernels: short texts against the definitions, written out, long ones against slow tables."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix import _hot
from separatrix.data.texts import TextView, as_texts
from separatrix.data.threads import at_most
from separatrix.kernels import (
    RBF,
    BoundedRange,
    ConstantSubstring,
    ExponentialSubstring,
    Spectrum,
    Subsequence,
    _strings,
)

# Two code points that UTF-16 would cut in halves, a lone surrogate, an accent and ASCII.
ALPHABET = "ab\U0001f600\U0001f601\ud83d\u00e9"
TEXTS = st.lists(st.text(ALPHABET, max_size=8), min_size=1, max_size=6)
KERNELS = [
    Spectrum(1),
    Spectrum(3),
    BoundedRange(2),
    BoundedRange(20),
    ConstantSubstring(),
    ExponentialSubstring(1.5),
    ExponentialSubstring(7),
    Subsequence(1, 0.5),
    Subsequence(2, 0.3),
    Subsequence(3, 1.0),
    Subsequence(4, 0.9),
]
RAW = [type(k)(*[v for name, v in vars(k).items() if name != "normalize"], normalize=False) for k in KERNELS]


def substrings(text):
    return [text[i:j] for i in range(len(text)) for j in range(i + 1, len(text) + 1)]


def weight(kernel, u):
    """What a common substring counts."""
    if isinstance(kernel, Spectrum):
        return float(len(u) == kernel.length)
    if isinstance(kernel, BoundedRange):
        return float(len(u) <= kernel.length)
    return 1.0 if isinstance(kernel, ConstantSubstring) else kernel.base ** -len(u)


def by_definition(kernel, s, t):
    if isinstance(kernel, Subsequence):
        return sum(
            kernel.decay ** (i[-1] - i[0] + j[-1] - j[0] + 2)
            for i in itertools.combinations(range(len(s)), kernel.length)
            for j in itertools.combinations(range(len(t)), kernel.length)
            if all(s[a] == t[b] for a, b in zip(i, j, strict=True))
        )
    return sum(weight(kernel, u) for u in substrings(s) for v in substrings(t) if u == v)


def normalised(kernel, s, t):
    roots = math.sqrt(by_definition(kernel, s, s)) * math.sqrt(by_definition(kernel, t, t))
    return by_definition(kernel, s, t) / roots if roots else 0.0


def table(formula, A, B):
    return np.array([[formula(s, t) for t in B] for s in A]).reshape(len(A), len(B))


@pytest.mark.parametrize("kernel", RAW, ids=repr)
@settings(max_examples=15, deadline=None)
@given(A=TEXTS, B=TEXTS)
def test_values_follow_the_definition(kernel, A, B):
    assert not kernel.normalize
    expected = table(lambda s, t: by_definition(kernel, s, t), A, B)
    np.testing.assert_allclose(kernel(A, B), expected, rtol=1e-12)
    own = table(lambda s, t: by_definition(kernel, s, t), A, A)
    np.testing.assert_allclose(kernel(A), own, rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(A), np.diag(own), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@settings(max_examples=15, deadline=None)
@given(A=TEXTS, B=TEXTS)
def test_normalised_values(kernel, A, B):
    assert kernel.normalize
    expected = table(lambda s, t: normalised(kernel, s, t), A, B)
    np.testing.assert_allclose(kernel(A, B), expected, rtol=1e-12)
    own = kernel(A)
    np.testing.assert_array_equal(own, own.T)
    np.testing.assert_array_equal(np.diag(own), kernel.diag(A))
    assert set(np.diag(own)) <= {0.0, 1.0}
    for i, j in itertools.product(range(len(A)), repeat=2):
        if A[i] == A[j]:
            assert own[i, j] == own[i, i]
    np.testing.assert_allclose(kernel(B, A), kernel(A, B).T, rtol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@settings(max_examples=10, deadline=None)
@given(A=TEXTS)
def test_positive_semidefinite(kernel, A):
    assert np.linalg.eigvalsh(kernel(A))[0] > -1e-14 * len(A)


def test_the_hand_example():
    for decay in (0.1, 0.5, 0.77, 1.0):
        raw = Subsequence(2, decay, normalize=False)(["cat"], ["car"])[0, 0]
        assert raw == pytest.approx(decay**4, rel=1e-15)
        assert Subsequence(2, decay)(["cat"], ["car"])[0, 0] == pytest.approx(1 / (2 + decay**2), rel=1e-15)


def slow_subsequence(s, t, p, decay):
    """Recursion of Lodhi et al., a table per level: K'_l(i, j) for the first i and j characters."""
    above = np.ones((len(s) + 1, len(t) + 1))
    total = 0.0
    for _ in range(p):
        table = np.zeros_like(above)
        total = 0.0
        for i in range(1, len(s) + 1):
            part = 0.0
            for j in range(1, len(t) + 1):
                match = decay**2 * above[i - 1, j - 1] if s[i - 1] == t[j - 1] else 0.0
                total += match
                part = decay * part + match
                table[i, j] = decay * table[i - 1, j] + part
        above = table
    return total


def slow_substrings(s, t, cumulative):
    """Lengths of the longest common suffix of every two prefixes."""
    total, above = 0.0, np.zeros(len(t) + 1, dtype=int)
    for c in s:
        lengths = np.zeros_like(above)
        for j, d in enumerate(t):
            if c == d:
                lengths[j + 1] = above[j] + 1
        total += cumulative(lengths).sum()
        above = lengths
    return total


@pytest.fixture(scope="module")
def long_texts():
    """Longer than a strip of columns, of different lengths, some of them nearly equal or very regular."""
    rng = np.random.default_rng(4)
    texts = ["".join(rng.choice(list("acgt"), size)) for size in (130, 61, 200, 1, 0, 97, 131)]
    return [*texts, texts[0][:70] + "x" + texts[0][71:], "a" * 150, "ab" * 60]


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 10, 12])
def test_long_subsequences(p, long_texts):
    pairs = [(0, 7), (2, 8), (9, 9), (6, 5), (3, 8), (4, 2)]
    expected = [slow_subsequence(long_texts[i], long_texts[j], p, 0.6) for i, j in pairs]
    # The best instruction set comes last, and stays chosen.
    for name in _hot.instruction_sets():
        _hot.use_instruction_set(name)
        values = Subsequence(p, 0.6, normalize=False)(long_texts)
        np.testing.assert_allclose([values[pair] for pair in pairs], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "cumulative"),
    [
        (Spectrum(4, normalize=False), lambda lengths: lengths >= 4),
        (BoundedRange(6, normalize=False), lambda lengths: np.minimum(lengths, 6)),
        (ConstantSubstring(normalize=False), lambda lengths: lengths),
        (ExponentialSubstring(1.1, normalize=False), lambda lengths: (1 - 1.1**-lengths) / 0.1),
    ],
    ids=lambda item: repr(item) if not callable(item) or hasattr(item, "samples") else "",
)
def test_long_substrings(kernel, cumulative, long_texts):
    values = kernel(long_texts)
    expected = table(lambda s, t: slow_substrings(s, t, cumulative), long_texts[:3], long_texts)
    np.testing.assert_allclose(values[:3], expected, rtol=1e-13)
    np.testing.assert_allclose(kernel(long_texts, long_texts[:3]), expected.T, rtol=1e-13)


def test_many_texts_in_any_number_of_threads(monkeypatch):
    rng = np.random.default_rng(1)
    texts = ["".join(rng.choice(list("abc"), size)) for size in rng.integers(0, 40, 150)]
    monkeypatch.setattr(_strings, "_TASK_PAIRS", 100)
    for kernel in (Spectrum(3), ExponentialSubstring(3), Subsequence(3, 0.4)):
        _strings._known.clear()
        with at_most(1):
            alone = kernel(texts), kernel(texts, texts[:70]), kernel(texts[:1], texts)
        _strings._known.clear()
        with at_most(3):
            several = kernel(texts), kernel(texts, texts[:70]), kernel(texts[:1], texts)
        for one, other in zip(alone, several, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(alone[0][:, :70], alone[1], rtol=1e-14)
        np.testing.assert_allclose(alone[0][:1], alone[2], rtol=1e-14)


def test_small_decay_and_long_subsequences_keep_the_normalised_value():
    """The raw values are 1e-400 and less, beyond floating-point numbers; their quotient is not."""
    s, t = "abcdefgh" * 30, "abcdefgh" * 29 + "abcdefxh"
    value = Subsequence(100, 1e-3)([s], [t])[0, 0]
    # With so small a decay only subsequences without gaps count.
    assert value == pytest.approx(Spectrum(100)([s], [t])[0, 0], rel=1e-5)
    assert value < 0.9999
    assert Subsequence(100, 1e-3, normalize=False)([s], [t])[0, 0] == 0.0
    tiny = Subsequence(2, 1e-200)(["ab", "aab"], ["ab"])
    assert tiny[0, 0] == 1
    steep = ExponentialSubstring(1e200)(["ab", "abc"])
    np.testing.assert_allclose(steep, Spectrum(1)(["ab", "abc"]), rtol=1e-15)


def test_too_large_values_are_refused():
    with pytest.raises(ValueError, match="too large for float64 on texts of 700 characters: choose"):
        Subsequence(250, 1.0)(["a" * 700])


def test_longer_than_every_text():
    assert Subsequence(10**9)(["cat", "car"]).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert Spectrum(10**9).diag(["cat"]).tolist() == [0.0]


def test_inputs():
    texts = ["cat", "car", ""]
    expected = Spectrum(2)(texts)
    for given_ in (np.array(texts), np.array(texts, dtype=object), tuple(texts), np.array(texts)[:, None]):
        np.testing.assert_array_equal(Spectrum(2)(given_), expected)
    assert Spectrum(2)([]).shape == (0, 0)
    assert Spectrum(2)([], texts).shape == (0, 3)
    assert Subsequence(2)(texts, []).shape == (3, 0)
    assert Subsequence(2).diag([]).shape == (0,)
    view = TextView(as_texts(["a"] * 2500))
    assert [rows.stop - rows.start for rows in view.parts()] == [1024, 1024, 452]
    assert view.read(slice(2, 5)).tolist() == ["a"] * 3


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ("cat", TypeError, "must be a list of texts, not one text"),
        ([1.5, "cat"], TypeError, r"sample 0 is 1.5 of type float; use a kernel on vectors such as 'rbf'"),
        (["cat", None], TypeError, "sample 1 is None of type NoneType.*missing"),
        (["cat", b"car"], TypeError, "sample 1 is .*bytes.*decode"),
        (np.eye(2), TypeError, "must hold texts .Python strings. for a string kernel, not float64.*'rbf'"),
        (np.array([["a", "b"]]), ValueError, r"not in shape \(1, 2\).*one text per sample"),
    ],
)
def test_what_is_no_text_is_named(samples, error, message):
    with pytest.raises(error, match=message):
        Spectrum(2)(samples)
    with pytest.raises(error, match=message):
        Subsequence(2).diag(samples)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Spectrum(0), ValueError, "length must be at least 1"),
        (lambda: BoundedRange(2.5), TypeError, "length must be a whole number"),
        (lambda: Spectrum(3, normalize="yes"), TypeError, "normalize must be True or False, not 'yes'"),
        (lambda: ExponentialSubstring(1.0), ValueError, "base must be greater than 1.*ConstantSubstring"),
        (lambda: Subsequence(2, 0), ValueError, "decay must be positive"),
        (lambda: Subsequence(2, 1.5), ValueError, "decay must be at most 1, not 1.5"),
        (lambda: Subsequence(0), ValueError, "length must be at least 1"),
        (lambda: RBF() + Spectrum(), TypeError, "compares vectors and .* compares texts: no sample is both"),
    ],
)
def test_bad_parameters(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_values_and_composition():
    assert Spectrum(3) == Spectrum(np.int64(3), normalize=np.True_) != Spectrum(3, normalize=False)
    assert repr(Subsequence(2)) == "Subsequence(length=2, decay=0.5, normalize=True)"
    assert repr(ConstantSubstring()) == "ConstantSubstring(normalize=True)"
    both = Spectrum(2) + 0.5 * Subsequence(3, 0.2, normalize=False) ** 2
    assert both.samples == "texts"
    assert eval(repr(both)) == both
    assert pickle.loads(pickle.dumps(both)) == both
    texts = ["cat", "cart", "cut"]
    np.testing.assert_allclose(
        both(texts), Spectrum(2)(texts) + 0.5 * Subsequence(3, 0.2, normalize=False)(texts) ** 2, rtol=1e-15
    )


def test_remembered_values_are_bounded(monkeypatch):
    monkeypatch.setattr(_strings, "_REMEMBERED", 100)
    _strings._known.clear()
    kernel = Subsequence(2, 0.4)
    for k in range(30):
        texts = [f"{k} cat {k}", f"{k} car {k}"]
        assert kernel(texts, ["car"])[1, 0] == pytest.approx(kernel([*texts, "car"])[1, 2], rel=1e-14)
        assert sum(len(text) for texts in _strings._known.values() for text in texts) <= 100
    assert kernel(["a" * 200], ["aa"])[0, 0] > 0


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_equal_texts_have_the_kernel_one(kernel, long_texts):
    """However the pair was computed: alone, in a table with others, in any lane of a register."""
    texts = [text for text in long_texts if len(text) > 5]
    assert (np.diag(kernel(texts, list(texts))) == 1).all()
    assert all(kernel([text], [text])[0, 0] == 1 for text in texts)
    values = kernel(texts)
    for k in range(1, len(texts)):
        np.testing.assert_allclose(kernel(texts[:1], texts[k : k + 1])[0, 0], values[0, k], rtol=1e-14)


def test_large_alphabets():
    """More characters than a table of moves holds, and characters that the other text lacks."""
    rng = np.random.default_rng(0)
    texts = ["".join(map(chr, rng.integers(0x4E00, 0x4E00 + size, 1500))) for size in (1500, 1500, 30, 600)]
    kernel = ConstantSubstring(normalize=False)
    values = kernel(texts + [texts[0][::2] + texts[1]] * 12)
    expected = table(lambda s, t: slow_substrings(s, t, lambda lengths: lengths), texts[2:3], texts[3:4])
    assert values[2, 3] == expected[0, 0]
    assert values[1, 5] == kernel(texts[1:2], [texts[0][::2] + texts[1]])[0, 0]
    assert values[1, 5] == values[5, 1] > 1500 * 1501 / 2
