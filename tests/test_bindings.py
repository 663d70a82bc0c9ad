"""Calls of the compiled core with arrays that are too small: an error, and no look beyond them.

Python checks what a user gives; these are the mistakes of those who change the code.
"""

import numpy as np
import pytest

from separatrix import _hot

N, D, K = 6, 3, 2  # rows, features, columns
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
CLASSES = np.array([0, 1, 0, 1, 1, 0], dtype=np.int32)
CODES = np.array([[1, -1], [-1, 1]], dtype=np.int8)
CSR = (np.ones(N), np.zeros(N, dtype=np.int64), np.arange(N + 1))
TEXTS = (np.array([0, 1, 1, 0], dtype=np.int32), np.array([0, 2, 4]))


def ones(*shape):
    return np.ones(shape)


def row_sums():
    """What sweeps take after the rows: classes, weights, codes, coef, intercept and three results."""
    return CLASSES, ones(N), CODES, ones(K, D), ones(K), ones(K, D), ones(K), ones(N, K)


# By function: arguments that are right, and the positions of those that may as well be empty, because they
# say how much there is.
CALLS = {
    "shuffle_blocks": ((np.arange(N), np.arange(N), 2, 1, 1), {0}),
    "hash_rows": ((X, np.zeros(N, dtype=np.uint64)), {0}),
    "hash_rows csr": ((*CSR, np.zeros(N, dtype=np.uint64)), {3}),
    "sweep_dense": ((X, False, *row_sums()), {0, 6}),
    "sweep_squares": (
        (X, False, CLASSES, ones(N), ones(2, K), ones(K, D), ones(K), ones(K, D), ones(K), ones(K), ones(1)),
        {0, 6},
    ),
    "sweep_csr": ((*CSR, *row_sums()), {3, 6, 7}),
    "dense_scores": ((X, ones(K, D), ones(K), ones(N, K)), {0, 2}),
    "padded_scores": ((X, ones(D, 8), ones(N, 8)), {2}),
    "padded_scores csr": ((*CSR, D, ones(D, 8), ones(N, 8)), {5}),
    "add_padded_transposed": ((X, ones(N, 8), 0, 8, ones(D, 8)), {1}),
    "add_padded_transposed csr": ((*CSR, D, ones(N, 8), 0, 8, ones(D, 8)), {4}),
    "column_sums": ((X, ones(N), ones(2, D)), {0}),
    "gram_csr": ((*CSR, ones(N), ones(D, D)), set()),
    "add_gram_rows": ((*CSR, *CSR, 0, ones(N, N)), {7}),
    "add_products": ((X, 0, None, CLASSES, ones(N), ones(2, D), ones(2, D), ones(D, D), 1.0), {0}),
    "mirror": ((ones(D, D),), set()),
    "respond": (
        (ones(N), ones(N), 1.0, np.ones(N, dtype=np.int8), None, ones(N), ones(N), 1.0, 0.0, True, ones(N),
         np.ones(N, dtype=np.uint8)),
        {0},
    ),
    "search": (
        (ones(N), ones(N), np.ones(N, dtype=np.int8), None, ones(N), None, 1.0, 0.0, False, 1.0, 1.0, 1.0),
        {0},
    ),
    "l1_model": ((np.eye(D), ones(D), ones(D), ones(D), 0.1), {2}),
    "l1_search": (
        (ones(N), ones(N), np.ones(N, dtype=np.int8), ones(N), ones(D), ones(D), ones(D), 1.0), {0, 4}
    ),
    "gram_descent": ((np.eye(D)[None], ones(1, D), ones(1, D), ones(1, D), ones(1), 0.1, 0.1, 1, 0.1), {0}),
    "pair_scores": ((ones(N, 6), 3, ones(3), ones(N, 3)), {0}),
    "pair_votes": ((ones(N, 3), 3, ones(N, 3)), {0}),
    "dual_gap": ((N, ones(N), ones(N), ones(N), ones(N), ones(N), ones(N)), set()),
    "fit_sigmoids": (
        (RNG.normal(size=N), CLASSES.astype(bool), np.array([0, N]), ones(N), ones(1), ones(1)), {4}
    ),
    "softmax_rows": ((ones(N, 8), ones(8), CLASSES, ones(N), K, ones(N, 8)), {0}),
    "substring_kernel": ((*TEXTS, np.array([0]), np.array([1]), 2, ones(3), ones(1)), {2}),
    "subsequence_kernel": ((*TEXTS, np.array([0]), np.array([1]), 2, 0.5, ones(1)), {2}),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_arrays_that_are_too_small(name):
    arguments, free = CALLS[name]
    call = getattr(_hot, name.split()[0])
    call(*(a.copy() if isinstance(a, np.ndarray) else a for a in arguments))
    for position, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray) and position not in free:
            small = [*arguments]
            small[position] = np.ascontiguousarray(argument[:0])
            with pytest.raises((ValueError, TypeError)):
                call(*small)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("shuffle_blocks", {2: 0}),
        ("shuffle_blocks", {3: 0}),
        ("hash_rows csr", {2: np.arange(N + 1) + 1}),
        ("gram_csr", {2: np.arange(N + 1) - 1}),
        ("add_padded_transposed", {3: 9}),
        ("padded_scores", {2: ones(N + 1, 8)}),
        ("padded_scores csr", {3: D + 1}),
        ("dual_gap", {0: N + 1}),
        ("fit_sigmoids", {2: np.array([N, 0])}),
        ("mirror", {0: ones(D, D + 1)}),
        ("softmax_rows", {4: 9}),
        ("softmax_rows", {0: ones(N, 7)}),
        ("substring_kernel", {2: np.array([2])}),
        ("substring_kernel", {3: np.array([-1])}),
        ("substring_kernel", {4: 1}),
        ("subsequence_kernel", {1: np.array([0, 3, 2])}),
        ("subsequence_kernel", {4: 0}),
    ],
)
def test_numbers_that_lead_beyond_the_arrays(name, changes):
    arguments, _ = CALLS[name]
    changed = [changes.get(position, argument) for position, argument in enumerate(arguments)]
    with pytest.raises(ValueError, match=r"."):
        getattr(_hot, name.split()[0])(*changed)


def test_texts_beyond_their_bytes():
    ends, content = np.array([0, 2, 4], dtype=np.int32), np.frombuffer(b"abab", dtype=np.int8)
    assert _hot.text_doubts([(ends, content)], "?", 0.5) == (False, False)
    for bad in ((ends, content[:3]), (ends[:0], content), (ends - 1, content)):
        with pytest.raises(ValueError, match="within their bytes"):
            _hot.text_doubts([bad], "?", 0.5)
