"""Label codings: what a class means to each score column, and how scores decide.

With ``K`` classes the codings are *binary* (one column, ``K ≤ 2``), *one-vs-rest* (``K`` columns,
the largest score wins), *one-vs-one* (``K(K−1)/2`` columns, each votes; equal votes are decided by
the sum of the pairwise scores, then by class order) and *joint* (``K`` columns learnt together, the
largest wins). A score of exactly 0 belongs to the positive class; among equal scores the first
class wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers.votes import pair_votes

NAMES = ("ovr", "ovo", "joint")


@dataclass(frozen=True, eq=False)
class Members:
    """The samples that take part in each column, one column after the other.

    Attributes
    ----------
    rows : ndarray of intp of shape (m,)
        Numbers of samples, those of a column class by class.
    signs : ndarray of shape (m,)
        Their codes: −1 or +1.
    offsets : ndarray of intp of shape (columns + 1,)
        Those of column k are ``offsets[k] … offsets[k + 1] − 1``.
    order : ndarray of intp
        The samples that take part at all, class by class.
    places : ndarray of intp of shape (m,)
        Place of each of ``rows`` in ``order``.
    sizes : ndarray of intp
        Lengths of the runs of one class in one column that ``rows`` consists of.
    """

    rows: Array
    signs: Array
    offsets: Array
    order: Array
    places: Array
    sizes: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, column: int) -> tuple[Array, Array]:
        if not 0 <= column < len(self):
            raise IndexError(column)
        part = slice(int(self.offsets[column]), int(self.offsets[column + 1]))
        return self.rows[part], self.signs[part]


@dataclass(frozen=True, eq=False)
class Coding:
    """One label coding for a number of classes.

    Attributes
    ----------
    name : str
        "ovr", "ovo" or "joint".
    codes : ndarray of int8 of shape (n_classes, columns)
        −1, 0 (takes no part) or +1.

    Examples
    --------
    >>> Coding.of("ovo", 3).codes.tolist()
    [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]
    >>> import numpy as np
    >>> Coding.of("ovr", 2).decide(np.array([[0.0], [-1.0]])).tolist()
    [1, 0]
    """

    name: str
    codes: Array

    def __post_init__(self) -> None:
        self.codes.setflags(write=False)  # one object serves all models

    @classmethod
    @cache
    def of(cls, name: str, n_classes: int) -> Coding:
        """Return the named coding for ``n_classes`` classes."""
        if name not in NAMES:
            raise ValueError(f"multiclass must be one of {', '.join(NAMES)}; got {name!r}.")
        if name != "joint" and n_classes <= 2:
            return cls(name, np.array([[-1], [1]], dtype=np.int8)[:n_classes])
        if name == "ovo":
            pairs = list(combinations(range(n_classes), 2))
            codes = np.zeros((n_classes, len(pairs)), dtype=np.int8)
            for column, (first, second) in enumerate(pairs):
                codes[first, column], codes[second, column] = 1, -1
            return cls(name, codes)
        return cls(name, (2 * np.eye(n_classes, dtype=np.int8) - 1).astype(np.int8))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.codes.shape[0])

    @property
    def columns(self) -> int:
        """Number of score columns."""
        return int(self.codes.shape[1])

    @property
    def joint(self) -> bool:
        """Whether the columns are learnt together."""
        return self.name == "joint"

    def members(self, numbers: Array, kept: Array | None = None) -> Members:
        """Return for each column the samples that take part, class by class, and their codes.

        Parameters
        ----------
        numbers : ndarray of int of shape (n,)
            Number of each sample's class.
        kept : ndarray of bool of shape (n,) or None
            Which samples count; all if None.
        """
        order = numbers.argsort(kind="stable")
        if kept is not None:
            order = order[kept[order]]
            numbers = numbers[order]
        counts = np.bincount(numbers, minlength=self.n_classes)
        classes, codes, lasts = self._takers
        sizes = counts[classes]
        ends = sizes.cumsum()  # of each class within all columns
        begins = counts.cumsum() - counts
        total = int(ends[-1])
        places = (begins[classes] - (ends - sizes)).repeat(sizes)
        places += np.arange(total)
        offsets = np.zeros(self.columns + 1, dtype=np.intp)
        offsets[1:] = ends[lasts]
        return Members(order[places], codes.repeat(sizes), offsets, order, places, sizes)

    @cached_property
    def pairs(self) -> Array:
        """First and second classes of all pairs, in the order of one-vs-one columns."""
        return np.array(np.triu_indices(self.n_classes, 1))

    @cached_property
    def pair_rows(self) -> Array:
        """Row of the coefficients of each class of each pair: a class has one for each other class."""
        first, second = self.pairs
        return np.array([second - 1, first]).T.ravel()

    @cached_property
    def _takers(self) -> tuple[Array, Array, Array]:
        """Return the classes that take part, column by column, their codes, and the last of each column."""
        columns, classes = np.nonzero(self.codes.T)
        lasts = np.append(np.flatnonzero(np.diff(columns)), columns.size - 1)
        return classes, self.codes[classes, columns].astype(np.float64), lasts

    def decision(self, scores: Array) -> Array:
        """Return what ``decision_function`` shows: (n,) for two classes or one, else (n, n_classes)."""
        if self.n_classes <= 2:
            return scores[:, 1] - scores[:, 0] if self.joint else scores[:, 0]
        if self.name != "ovo":
            return scores
        # The votes decide; the bounded sum of scores only separates equal votes.
        return pair_votes(scores, self.n_classes)

    def decide(self, scores: Array) -> Array:
        """Return the number of the class that the scores of each row choose."""
        return self.choose(self.decision(scores))

    def choose(self, decision: Array) -> Array:
        """Return the number of the class that each row of :meth:`decision` chooses."""
        if decision.ndim == 1:
            return np.asarray((decision >= 0) & (self.n_classes > 1), dtype=np.intp)
        return np.asarray(np.argmax(decision, axis=1))

    def clear(self, scores: Array, chosen: Array, error: Array) -> Array:
        """Return for which rows the choice is the same for all scores that differ by ``error`` at most.

        For one-vs-one only a class that wins against every other one is taken to be clear.

        Parameters
        ----------
        scores : ndarray of shape (n, columns)
            Scores.
        chosen : ndarray of int of shape (n,)
            What :meth:`decide` makes of them.
        error : ndarray of shape (n,)
            How far the scores of each row may be from the exact ones.

        Examples
        --------
        >>> import numpy as np
        >>> scores = np.array([[0.5], [-0.01]])
        >>> Coding.of("ovr", 2).clear(scores, np.array([1, 0]), np.full(2, 0.1)).tolist()
        [True, False]
        """
        if self.columns == 1:
            return np.asarray(np.abs(scores[:, 0]) > error)
        rows = np.arange(scores.shape[0])
        if self.name != "ovo":
            others = scores.copy()
            others[rows, chosen] = -np.inf
            return np.asarray(scores[rows, chosen] - others.max(axis=1) > 2 * error)
        own = np.array([np.flatnonzero(codes) for codes in self.codes])  # each class's pairs
        signs = np.take_along_axis(self.codes, own, axis=1)
        return np.asarray((scores[rows[:, None], own[chosen]] * signs[chosen] > error[:, None]).all(axis=1))

    def boundaries(self, coef: Array, intercept: Array) -> tuple[Array, Array, Array]:
        """Return the hyperplanes ``w·x + b = 0`` of the coding and what lies on either side.

        Returns
        -------
        coef, intercept : ndarray
            One row and one number per hyperplane.
        sides : ndarray of int8 of shape (n_classes, hyperplanes)
            +1 where the class belongs on the positive side, −1 on the negative, 0 where the
            hyperplane does not concern it. For a joint model there is one per pair of classes.
        """
        if not self.joint:
            return coef, intercept, self.codes
        if self.n_classes == 2:
            return coef[1:] - coef[:1], intercept[1:] - intercept[:1], Coding.of("ovr", 2).codes
        first, second = np.array(list(combinations(range(self.n_classes), 2))).T
        pairs = Coding.of("ovo", self.n_classes).codes
        return coef[first] - coef[second], intercept[first] - intercept[second], pairs
