"""In which order a row solver visits the samples.

Shuffled visits depend on the *content* of the samples where that costs nothing, that is where the
data fit the caches: samples are put into an order given by hashes of their rows, equal samples of
one class become one visit with the sum of their weights, and every pass permutes the visits. Then
neither the order of the rows, nor repeating a sample instead of weighting it, changes the model.
Of larger data, blocks of neighbours are permuted and a few at a time visited in turns: single rows
from all over the memory would make every visit wait for it. That is as good as any order only where
neighbours are strangers to each other. Where they are alike (rows sorted by class, by time, by place), a
model that follows them forgets the others, so there single rows are permuted. A few pairs of rows tell.

Stochastic gradient descent has its order from scikit-learn wherever single rows are permuted, so that the
same seed gives the same weights: the order of the rows, and in each pass the same permutation once more.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from separatrix import _hot
from separatrix.data.memory import CsrView, DenseView
from separatrix.data.texts import TextView
from separatrix.data.view import Array, DataView

#: Data up to this size are visited in an order that depends on their content only.
CONTENT_BYTES = 2 << 20
#: Larger data: neighbours that are read one after the other, and how many such streams take turns
#: (of sparse rows one: it is two streams already, and looks weights up besides).
BLOCK_BYTES = 128 << 10
STREAMS = 4
#: Blocks of which there are at least so many: much hangs on the one that a pass ends with.
_FEWEST_BLOCKS = 128
#: Rows of this size are read as quickly one by one.
_LONG_ROW = 8 << 10
#: Pairs of neighbours that are compared with pairs of strangers (fewer of long rows), how far apart they
#: are at most, and the standard deviations that tell a difference from chance.
_PAIRS, _PAIR_BYTES, _APART, _CHANCE = 256, 4 << 20, 8, 4.0


class Visits:
    """The visits of each pass.

    With ``merge=False`` equal samples stay visits of their own, for solvers to which a sample of
    weight 2 is not the same as the sample twice. ``content=False`` asks for scikit-learn's order of single
    rows, whatever they hold; in it samples ``held`` out have their places, at which nothing is visited.
    ``targets`` are the numbers that a regression has in place of classes.

    Attributes
    ----------
    order : ndarray of int64
        Sample numbers in the order of this pass; those without weight are left out.
    weights : ndarray of float64 or None
        Weight of each sample, merged into the sample that is visited; None means one for each.
    total : float
        Sum of the weights.
    state : int
        Where the next random order starts.
    """

    def __init__(
        self,
        view: DenseView | CsrView | TextView,
        classes: Array,
        weights: Array | None,
        *,
        shuffle: bool,
        seed: int,
        merge: bool = True,
        content: bool = True,
        targets: Array | None = None,
        held: Array | None = None,
    ) -> None:
        n = view.shape[0]
        self.shuffle, self.state = shuffle, seed
        self._content = content
        self.weights = weights
        self.total = float(n if weights is None else weights.sum())
        present = np.arange(n, dtype=np.int64) if weights is None else np.flatnonzero(weights > 0)
        self.order = np.ascontiguousarray(present, dtype=np.int64)
        self._places, self._held = self.order, None
        if shuffle and held is not None:
            self._held = np.zeros(n, dtype=bool)
            self._held[held] = True
            self._places = np.sort(np.concatenate([self.order, np.asarray(held, dtype=np.int64)]))
        self._samples: Array | None = None
        self._undecided: tuple[DataView, Array] | None = None
        stored = view.row_elements * view.dtype.itemsize * (1.0 if isinstance(view, DenseView) else 1.5)
        if shuffle and stored * n <= CONTENT_BYTES:
            if content:
                self._order_by_content(view, classes, merge)
        elif shuffle and stored < _LONG_ROW:
            self._undecided = view, classes if targets is None else targets
            self._block = int(max(1, min(BLOCK_BYTES // max(stored, 1), n // _FEWEST_BLOCKS)))
            self._streams = STREAMS if isinstance(view, DenseView) else 1

    @property
    def permutes_all(self) -> bool:
        """Whether a pass permutes all visits of the pass before (or none), and nothing is left to decide."""
        return self._undecided is None and self._samples is None and self._held is None

    def next_pass(self) -> None:
        """Draw the order of the next pass, if it is to be random."""
        if not self.shuffle:
            return
        if self._undecided is not None:
            # Not before it is needed: some solvers permute the visits themselves.
            if not neighbours_alike(*self._undecided, self.order):
                self._samples = self.order.copy()
            self._undecided = None
        if self._samples is not None:
            self.state = _hot.shuffle_blocks(
                self._samples, self.order, self._block, self._streams, self.state
            )
        elif self._content:
            self.state = _hot.shuffle(self.order, self.state)
        else:
            _hot.permute(self._places, self.state)
            if self._held is not None:
                self.order[:] = self._places[~self._held[self._places]]

    def _order_by_content(self, view: DataView, classes: Array, merge: bool) -> None:
        hashes = row_hashes(view)[self.order]
        by_hash = np.argsort(hashes, kind="stable")
        samples, sorted_hashes = self.order[by_hash], hashes[by_hash]
        new = np.concatenate([[True], sorted_hashes[1:] != sorted_hashes[:-1]])[: samples.shape[0]]
        if new.all() or not merge:
            self.order = samples
            return
        # Visits are pairs of row content and class; of one content, the class met first comes first.
        content = np.cumsum(new)
        by_class = np.lexsort((classes[samples], content))
        samples, content = samples[by_class], content[by_class]
        same = (content[1:] == content[:-1]) & (classes[samples[1:]] == classes[samples[:-1]])
        first = np.flatnonzero(np.concatenate([[True], ~same]))
        each = np.ones(samples.shape[0]) if self.weights is None else self.weights[samples]
        merged = np.zeros(view.shape[0])
        merged[samples[first]] = np.add.reduceat(each, first)
        self.weights = merged
        self.order = np.ascontiguousarray(samples[first][np.lexsort((samples[first], content[first]))])


def neighbours_alike(view: DataView, labels: Array, samples: Array) -> bool:
    """Return whether samples near each other differ less, in labels or in features, than any two do.

    By the sign test: were neighbours strangers, as many pairs of them would differ by more as by less than a
    pair of strangers does. Which pairs are compared depends on the number of samples alone.
    """
    each = max(1.0, 8.0 * view.row_elements)
    pairs = min(_PAIRS, max(32, int(_PAIR_BYTES / each)), samples.shape[0] // 2)
    if pairs == 0:
        return False
    places = np.linspace(0, samples.shape[0] - 1 - _APART, pairs).astype(np.int64).clip(0)
    near = (places + 1 + np.arange(pairs) % _APART).clip(max=samples.shape[0] - 1)
    ours, theirs = samples[places], samples[near]
    others = np.random.default_rng(0).permutation(ours)

    def differ(far: Array, close: Array) -> bool:
        closer, farther = np.count_nonzero(close < far), np.count_nonzero(close > far)
        return bool(closer - farther > _CHANCE * np.sqrt(closer + farther))

    def apart(first: Array, second: Array) -> Array:
        difference = labels[first] - labels[second].astype(np.float64)
        # Of two numbers the distance counts, of two classes only whether they are the same.
        return np.asarray(np.abs(difference) if labels.dtype.kind == "f" else difference != 0)

    if differ(apart(ours, others), apart(ours, theirs)):
        return True
    if isinstance(view, TextView):
        return False
    rows = view.take(ours)
    return differ(_squares(rows - view.take(others)), _squares(rows - view.take(theirs)))


def _squares(rows: Any) -> Array:
    """Return the squared norm of each row; infinite where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(rows):
            return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return np.asarray(np.einsum("ij,ij->i", rows, rows))


def row_hashes(view: DataView) -> Array:
    """Return a 64-bit hash of each row's content, the same for dense and sparse rows."""
    hashes = np.empty(view.shape[0], dtype=np.uint64)
    for rows, block in view.blocks():
        out = hashes[rows]
        if isinstance(view, TextView):
            out[:] = [_text_hash(text) for text in block]
        elif sparse.issparse(block):
            values = np.ascontiguousarray(block.data, dtype=np.float64)
            places = (block.indices.astype(np.int64, copy=False), block.indptr.astype(np.int64, copy=False))
            _hot.hash_rows(values, *places, out)
        else:
            _hot.hash_rows(np.ascontiguousarray(block, dtype=np.float64), out)
    return hashes


def _text_hash(text: str) -> int:
    """Return a hash that, unlike Python's own, is the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
