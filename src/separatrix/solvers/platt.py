r"""Probabilities from scores: a sigmoid per machine, coupled over pairs, in agreement with the decision.

1. ``P(+1 | f) = 1/(1 + exp(A f + B))``, fitted by maximum likelihood to scores of samples that the machine
   has not seen (Platt, 2000), with the safeguards of Lin, Lin and Weng (*Machine Learning* 68, 2007).
2. Pairwise probabilities ``r_ij`` are coupled by ``min_p Σ_{i<j} (r_ji p_i − r_ij p_j)²``, ``Σ p = 1`` (the
   second method of Wu, Lin and Weng, JMLR 5, 2004): one small linear system per sample.
3. The sigmoids cross ½ where the *data* say so, the decision changes where ``f = 0``. So that the predicted
   class always has the largest probability, ``p`` is replaced by the nearest ``p`` with this property: the
   predicted class and those above it share their mean.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from separatrix import _hot
from separatrix.data.view import BLOCK_BYTES, Array

#: Pairwise probabilities stay so far from 0 and 1.
_CLIP = 1e-7
#: Part of the probability that breaks ties in favour of the decision, and keeps the order of the sigmoid.
_TIE = 1e-6


def fit_sigmoid(scores: Array, positive: Array, weights: Array | None = None) -> tuple[float, float]:
    """Return ``A`` and ``B`` of ``P(+1 | f) = 1/(1 + exp(A f + B))`` with the largest likelihood.

    The targets are ``(N₊ + 1)/(N₊ + 2)`` and ``1/(N₋ + 2)`` instead of 1 and 0, so that separable scores
    have a finite solution.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of samples that had no part in learning them.
    positive : ndarray of bool of shape (n,)
        Which belong to the positive class.
    weights : ndarray of shape (n,) or None
        Weights of the samples.

    Examples
    --------
    >>> import numpy as np
    >>> A, B = fit_sigmoid(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]))
    >>> A < 0 and abs(B) < 1e-9
    True
    """
    A, B = fit_sigmoids(scores, positive, np.array([0, scores.size]), weights)
    return float(A[0]), float(B[0])


def fit_sigmoids(
    scores: Array, positive: Array, offsets: Array, weights: Array | None = None
) -> tuple[Array, Array]:
    """Return ``A`` and ``B`` of several machines, by Newton's method.

    Parameters
    ----------
    scores, positive, weights : ndarray of shape (m,)
        As in :func:`fit_sigmoid`, one machine after the other.
    offsets : ndarray of int of shape (machines + 1,)
        The samples of machine k are ``offsets[k] … offsets[k + 1] − 1``.
    """
    A, B = np.empty(len(offsets) - 1), np.empty(len(offsets) - 1)
    _hot.fit_sigmoids(scores, positive, offsets, weights, A, B)
    return A, B


def sigmoids(scores: Array, A: Array, B: Array) -> Array:
    """Return ``1/(1 + exp(A f + B))`` of each column."""
    return np.asarray(np.exp(-np.logaddexp(0.0, scores * A + B)))


def couple(pairs: Array, n_classes: int) -> Array:
    """Return class probabilities from those of all pairs, column ``(i, j)`` being ``P(i | i or j)``.

    Examples
    --------
    >>> import numpy as np
    >>> couple(np.array([[0.5, 0.5, 0.5]]), 3).round(3).tolist()
    [[0.333, 0.333, 0.333]]
    """
    found = np.empty((pairs.shape[0], n_classes))
    step = max(1, BLOCK_BYTES // (8 * (n_classes + 1) ** 2))
    first, second = (np.array(side) for side in zip(*combinations(range(n_classes), 2), strict=True))
    for begin in range(0, pairs.shape[0], step):
        r = np.clip(pairs[begin : begin + step], _CLIP, 1 - _CLIP)
        m = r.shape[0]
        R = np.zeros((m, n_classes, n_classes))  # R_ij = r_ij
        R[:, first, second], R[:, second, first] = r, 1 - r
        Q = np.zeros((m, n_classes + 1, n_classes + 1))
        Q[:, :n_classes, :n_classes] = -R * R.transpose(0, 2, 1)
        every = np.arange(n_classes)
        Q[:, every, every] = np.square(R).sum(axis=1)
        Q[:, :n_classes, n_classes] = Q[:, n_classes, :n_classes] = 1.0
        right = np.zeros((m, n_classes + 1, 1))
        right[:, n_classes] = 1.0
        found[begin : begin + step] = np.linalg.solve(Q, right)[:, :n_classes, 0]
    return normalised(found)


def normalised(p: Array) -> Array:
    """Return rows that are not negative and sum to 1."""
    p = np.maximum(p, 0.0)
    total = p.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1]))


def agree(p: Array, chosen: Array) -> Array:
    """Return the nearest probabilities whose largest is that of the chosen class, in each row.

    Examples
    --------
    >>> import numpy as np
    >>> agree(np.array([[0.6, 0.4], [0.2, 0.8]]), np.array([1, 1])).round(3).tolist()
    [[0.5, 0.5], [0.2, 0.8]]
    """
    every = np.arange(p.shape[0])
    nearest = p.copy()
    wrong = np.flatnonzero(p.max(axis=1) > p[every, chosen])
    if wrong.size:
        q, c = p[wrong], chosen[wrong]
        line = np.arange(wrong.size)
        own = q[line, c]
        others = q.copy()
        others[line, c] = -np.inf
        ranked = -np.sort(-others, axis=1)[:, :-1]
        # The chosen class takes in one larger class after the other while the mean is below the next.
        means = (own[:, None] + np.cumsum(ranked, axis=1)) / np.arange(2, p.shape[1] + 1)
        following = np.concatenate([ranked[:, 1:], np.full((wrong.size, 1), -np.inf)], axis=1)
        count = np.argmax(means >= following, axis=1)
        shared = means[line, count]
        q = np.minimum(q, shared[:, None])
        q[line, c] = shared
        nearest[wrong] = q
    nearest = (1 - _TIE) * nearest + 0.5 * _TIE * p
    nearest[every, chosen] += 0.5 * _TIE
    return nearest
