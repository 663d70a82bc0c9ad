"""Decisions of kernel machines from vectors rounded to 16-bit integers, where rounding cannot matter."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from separatrix import _hot
from separatrix.data.memory import view_of
from separatrix.data.threads import at_most
from separatrix.kernels import RBF, Linear
from separatrix.models.svc import SVC
from separatrix.solvers import kernel_scores as scoring
from separatrix.solvers._lattice import on_lattice
from separatrix.solvers.kernel_scores import SupportSums


def grey(X):
    """Grey values 0..255 as 0..1 in single precision."""
    return np.clip(np.rint(80 + 60 * X), 0, 255).astype(np.float32) / np.float32(255)


KINDS = {
    "normal": lambda X: X,
    "single": lambda X: X.astype(np.float32),
    "grey": grey,
    "counts": lambda X: np.rint(3 * np.abs(X)),
    "decimals": lambda X: np.round(X, 2),
    "outliers": lambda X: np.where(np.abs(X) > 3, 1e4 * X, X),
    "offset": lambda X: X + 100,
    "few values": lambda X: np.choose((X > -0.4).astype(int) + (X > 0.4), [0.1, 1 / 3, np.sqrt(2)]),
    "mostly zeros": lambda X: np.where(np.abs(X) < 0.5, 0.0, X),
}


def machine(K, d, seed, kind, per_class=30, scale=5.0):
    """Support vectors with coefficients as one-vs-one machines have them, queries among and between them."""
    rng = np.random.default_rng(seed)
    means = 0.4 * rng.normal(size=(K, d))
    sizes = rng.integers(1, per_class, size=K)
    make = KINDS[kind]
    support = make(rng.normal(size=(sizes.sum(), d)) + np.repeat(means, sizes, axis=0))
    if K == 2:
        signs = np.repeat([[-1.0], [1.0]], sizes, axis=0)
    else:  # the first class of a pair has the positive ones
        signs = np.repeat(np.where(np.arange(K - 1) >= np.arange(K)[:, None], 1.0, -1.0), sizes, axis=0)
    coef = scale * signs * rng.random((sizes.sum(), K - 1))
    near = rng.normal(size=(60, d)) + means[rng.integers(K, size=60)]
    queries = np.concatenate([make(near), support[:7], make(np.zeros((1, d))), make(8 * near[:3])])
    spread = float(np.median(np.square(queries[:30, None] - support[None]).sum(axis=2)))
    return RBF(1.0 / spread), support, coef, sizes if K > 2 else None, queries


def classes(sums, X, intercept):
    """Return who wins all pairs in double precision, −1 for nobody, and by how much the closest is won."""
    K = sums.coef.shape[1] + 1
    values = np.exp(
        -sums.kernel.gamma
        * np.square(X.astype(np.float64)[:, None] - sums.support.astype(np.float64)[None]).sum(axis=2)
    )
    if K == 2:
        score = values @ sums.coef[:, 0] + intercept[0]
        return (score > 0).astype(int), np.abs(score)
    ends = np.cumsum(sums.sizes)
    parts = [values[:, e - s : e] @ sums.coef[e - s : e] for s, e in zip(sums.sizes, ends, strict=True)]
    lead = np.full((len(X), K, K), np.inf)
    pair = 0
    for i in range(K):
        for j in range(i + 1, K):
            lead[:, i, j] = parts[i][:, j - 1] + parts[j][:, i] + intercept[pair]
            lead[:, j, i] = -lead[:, i, j]
            pair += 1
    wins = (lead > 0).all(axis=2)
    return np.where(wins.any(axis=1), wins.argmax(axis=1), -1), np.abs(lead).min(axis=(1, 2))


def found_by(sums, X, intercept):
    """Return the clear winners without asking whether they pay."""
    error = np.full(len(X), 32 * sums.error())
    winner = sums._winners(sums._round(sums._sides()), view_of(X), intercept, error)
    return winner if sums.sizes.size > 1 else np.where(winner >= 0, 1 - winner, -1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("K", "d"), [(2, 64), (2, 131), (3, 65), (5, 96), (9, 70)])
def test_never_decides_what_double_would_not(kind, K, d):
    for seed in range(4):
        kernel, support, coef, sizes, X = machine(K, d, seed, kind)
        sums = SupportSums(kernel, support, coef, sizes)
        rng = np.random.default_rng(seed)
        expected, lead = classes(sums, X, intercept := 0.3 * rng.normal(size=K * (K - 1) // 2))
        if K == 2:  # and right at the boundary
            score = sums(X)[:, 0]
            intercept = np.array([-np.median(score)])
            expected, lead = classes(sums, X, intercept)
        found = found_by(sums, X, intercept)
        clear = found >= 0
        assert_array_equal(found[clear], expected[clear])
        # What is won by much more than rounding can change is decided. (Beside outliers all is rounded off.)
        assert kind == "outliers" or clear[(expected >= 0) & (lead > 0.5 * np.abs(coef).max())].all()


@pytest.mark.parametrize("name", _hot.instruction_sets())
def test_whole_multiples_lose_nothing(name):
    """On lattices only the errors of single precision are left, on every instruction set."""
    kernel, support, coef, sizes, X = machine(4, 101, 1, "grey", scale=1.0)
    before = _hot.instruction_set()
    _hot.use_instruction_set(name)
    try:
        sums = SupportSums(kernel, support, coef, sizes)
        expected, lead = classes(sums, X[:68], intercept := np.zeros(6))
        found = found_by(sums, X[:68], intercept)
    finally:
        _hot.use_instruction_set(before)
    open_ = (found < 0) & (expected >= 0)
    assert lead[open_].max(initial=0) < 64 * sums.error()
    assert_array_equal(found[found >= 0], expected[found >= 0])


@pytest.mark.parametrize("d", [64, 4096])
def test_longest_integers_do_not_overflow(d):
    """Vectors whose squares sum to just below 2³¹ in integers, in phase and in opposition."""
    rng = np.random.default_rng(d)
    support = np.concatenate([np.ones((40, d)), -np.ones((40, d))]) * (1 + 1e-3 * rng.random((80, d)))
    coef = np.repeat([[-1.0], [1.0]], 40, axis=0)
    sums = SupportSums(RBF(0.3 / d), support, coef)
    X = np.concatenate([support[::7], 0.1 * support[::9]])
    expected, _ = classes(sums, X, np.zeros(1))
    assert_array_equal(found_by(sums, X, np.zeros(1)), expected)


def rounded(V):
    """Return vectors as their integers have them."""
    length, most = np.linalg.norm(V, axis=1), np.abs(V).max(axis=1)
    unit = np.maximum(most / 32767, length / (46339 - np.sqrt(V.shape[1])))[:, None]
    return np.rint(V / unit) * unit


@pytest.mark.parametrize("d", [64, 300])
def test_samples_so_close_to_the_boundary_that_rounding_decides_wrongly(d):
    """Rounded vectors alone would err; within its bound the question is left open."""
    kernel, support, coef, _, X = machine(2, d, 3, "normal", per_class=200)
    sums = SupportSums(kernel, support, coef)
    intercept = np.array([-np.median(sums(X))])
    side = classes(sums, X, intercept)[0] > 0
    rng = np.random.default_rng(0)
    low, high = (rng.choice(X[part], 400) for part in (~side, side))
    for _ in range(40):
        middle = (low + high) / 2
        above = classes(sums, middle, intercept)[0] > 0
        low, high = np.where(above[:, None], low, middle), np.where(above[:, None], middle, high)
    close = low + 10 ** rng.uniform(-6, 0, size=(400, 1)) * rng.normal(size=low.shape)
    expected, lead = classes(sums, close, intercept)
    shift = sums._packing.shift
    naive = classes(SupportSums(kernel, rounded(support - shift), coef), rounded(close - shift), intercept)[0]
    assert (naive != expected)[lead > 32 * sums.error()].any()
    found = found_by(sums, close, intercept)
    clear = found >= 0
    assert_array_equal(found[clear], expected[clear])
    assert 0.2 < clear.mean() < 1.0


def images(n, d=100, K=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    return grey(rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(K, d))[y]), y


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("form", [np.asarray, np.float64, np.asfortranarray, sparse.csr_array])
def test_labels_are_those_of_scores(monkeypatch, K, form):
    X, y = images(1600, K=K)
    model = SVC(C=2.0).fit(form(X[:300]), y[:300])
    queries = form(X[300:])
    used = []
    original = SupportSums.clear_winners
    monkeypatch.setattr(SupportSums, "clear_winners", lambda *a: used.append(original(*a)) or used[-1])
    found = model.predict(queries)
    assert used[0] is not None or form is np.asfortranarray
    assert form is np.asfortranarray or np.mean(used[0] >= 0) > 0.8
    scores = model.decision_function(queries)
    assert_array_equal(found, (scores > 0) if K == 2 else scores.argmax(axis=1))
    with at_most(1):
        assert_array_equal(model.predict(queries), found)


def test_few_samples_are_not_worth_rounding_the_support_vectors():
    X, y = images(1400)
    model = SVC(C=2.0).fit(X[:300], y[:300])
    sums = model._support_sums()
    for part in range(9):
        model.predict(X[300 + 100 * part : 400 + 100 * part])
        assert sums._coarse is None
    model.predict(X[1200:1300])
    assert sums._coarse is not None


def test_where_too_few_are_clear_integers_are_left_alone(monkeypatch):
    X, y = images(1600)
    model = SVC(C=2.0).fit(X[:300], y[:300])
    monkeypatch.setattr(scoring, "_MOST_OPEN", -1.0)
    found = model.predict(X[300:])
    sums = model._support_sums()
    assert sums._coarse is None
    assert not sums._coarse_pays
    assert_array_equal(found, model.decision_function(X[300:]).argmax(axis=1))


def test_only_where_the_bound_holds():
    kernel, support, coef, sizes, _ = machine(4, 80, 0, "normal")
    assert SupportSums(kernel, support, coef, sizes)._sides() is not None
    mixed = coef.copy()
    mixed[np.argmax(sizes[0] > 1)] *= -1
    for other in (
        SupportSums(kernel, support, mixed, sizes),  # sums of both signs
        SupportSums(Linear(), support, coef, sizes),
        SupportSums(kernel, support[:, :20], coef, sizes),  # few features
        SupportSums(kernel, np.where(np.arange(80) % 8 == 0, support, 0.0), coef, sizes),  # many zeros
        SupportSums(kernel, support, coef[:, :2], sizes),  # not one column for each other class
    ):
        assert other._sides() is None


def test_lattices():
    rng = np.random.default_rng(0)
    k = rng.integers(0, 256, size=(50, 30))
    shift = rng.random(30)
    for values, quantum in [
        ((k / 255).astype(np.float32).astype(np.float64), 1 / 255),
        (k * 1.0, 1.0),
        (k / 1000 - 3, 1e-3),
    ]:
        lattice, found = on_lattice(values, shift)
        assert_allclose(found, quantum, rtol=1e-6)
        steps = (values - lattice) / found
        assert_allclose(steps, np.rint(steps), atol=1e-3)
        assert np.abs(lattice - shift).max() <= 0.51 * quantum
    for values in (rng.normal(size=(50, 30)), np.ones((5, 3)), np.array([[0.0, 1.0, np.sqrt(2)]])):
        same, found = on_lattice(values, shift)
        assert found == 0.0
        assert same is shift
