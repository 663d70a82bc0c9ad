"""Are the classes separable? A verdict that proves itself, for two classes or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, column_or_1d

from separatrix.data.memory import view_of
from separatrix.data.view import Array
from separatrix.kernels import Kernel, Linear, resolve_kernel
from separatrix.models._asked_pairs import AskedPairs, known
from separatrix.models._labels import encode_labels
from separatrix.models._pair_separability import Separability, name_of, plain, taken
from separatrix.models._validation import check_samples
from separatrix.solvers._kernel_blocks import KernelBlocks
from separatrix.solvers._loop import guarded
from separatrix.solvers.separability import (
    Clock,
    JointVerdict,
    PairVerdict,
    joint_kernel,
    joint_linear,
    two_kernel,
    two_linear,
    unasked,
)

__all__ = ["MulticlassSeparability", "Separability", "separability"]

_CELLS = {"separable": "yes", "touching": "touch", "inseparable": "no", "unknown": "?"}


@dataclass(frozen=True, eq=False)
class MulticlassSeparability:
    r"""Whether hyperplanes separate several classes: pair by pair, one from the rest, and jointly.

    Jointly separable means that there are ``f_k(x) = w_k·φ(x) + b_k`` with ``f_c(x) > f_k(x)`` for every
    sample of class ``c`` and every other class ``k``. Each class separable from the rest ⇒ jointly separable
    ⇒ each pair separable; neither holds the other way round.

    Attributes
    ----------
    verdict : {"separable", "touching", "inseparable", "unknown"}
        The joint verdict.
    classes : ndarray
        The labels.
    pairs : mapping
        `Separability` of each pair of labels, in order: ``pairs["a", "b"]``.
    one_vs_rest : dict
        `Separability` of each label from all the others.
    coef : ndarray of shape (n_classes, n_features) or None
        Joint discriminants, where they exist; with a kernel (n_classes, n): a coefficient for each sample.
    intercept : ndarray of shape (n_classes,) or None
        Their constant terms.
    weights : ndarray of shape (n, n_classes) or None
        Proof that there are none where every pair is separable: a weight ``λ ≥ 0`` for each sample and rival,
        such that along every choice of ``f_1 … f_K`` the weighted sum of all ``f_c(x) − f_k(x)`` is 0.
    residual : float
        How far that sum can be from 0, relative to the size of the discriminants.
    kernel : Kernel
        The kernel, its parameters resolved.

    Examples
    --------
    >>> from separatrix.models.separability import separability
    >>> verdict = separability([[0.0], [1.0], [2.0], [3.0]], ["a", "b", "b", "c"])
    >>> print(verdict)
    separable: linear discriminants separate all 3 classes jointly
    3 of 3 pairs separable, 2 of 3 classes separable from the rest
    >>> print(verdict.table())
                 b    c | rest
        a      yes  yes |  yes
        b           yes |   no
        c               |  yes
    """

    verdict: str
    classes: Array
    kernel: Kernel
    pairs: Mapping[tuple[Any, Any], Separability]
    one_vs_rest: dict[Any, Separability]
    coef: Array | None
    intercept: Array | None
    weights: Array | None
    residual: float

    @property
    def separable(self) -> bool | None:
        """True, False (proven), or None where it is not known."""
        return None if self.verdict == "unknown" else self.verdict == "separable"

    def _discriminants(self) -> str:
        return "linear discriminants" if isinstance(self.kernel, Linear) else "discriminants"

    def __str__(self) -> str:
        K = len(self.classes)
        apart = sum(pair.verdict == "separable" for pair in known(self.pairs).values())
        alone = sum(pair.verdict == "separable" for pair in self.one_vs_rest.values())
        fact = {
            "separable": f"{self._discriminants()} separate all {K} classes jointly",
            "touching": f"no {self._discriminants()} separate all {K} classes, but some do up to ties",
            "inseparable": f"no {self._discriminants()} separate all {K} classes jointly",
            "unknown": "the joint question could not be decided; raise max_time",
        }[self.verdict]
        return (
            f"{self.verdict}: {fact}\n"
            f"{apart} of {len(self.pairs)} pairs separable, {alone} of {K} classes separable from the rest"
        )

    def _cells(self) -> list[list[str]]:
        names = [name_of(label) for label in self.classes]
        rows = [["", *names[1:], "rest"]]
        for k, label in enumerate(self.classes):
            cells = [
                _CELLS[self.pairs[label, other].verdict] if l > k else ""
                for l, other in enumerate(self.classes)
                if l > 0
            ]
            rows.append([names[k], *cells, _CELLS[self.one_vs_rest[label].verdict]])
        return rows

    def table(self) -> str:
        """Return the pairwise verdicts, and those against the rest, as a table of text."""
        rows = self._cells()
        width = max(4, *(len(cell) for row in rows for cell in row))
        lines = []
        for name, *cells, rest in rows:
            shown = " ".join(cell.rjust(width) for cell in cells)
            lines.append(f"    {name.ljust(width)} {shown} | {rest.rjust(width)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        fact, detail = str(self).split("\n")
        names, *body = self._cells()
        top = "".join(f"<th>{escape(cell)}</th>" for cell in names)
        rows = "".join(
            f"<tr><th>{escape(row[0])}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in row[1:])}</tr>"
            for row in body
        )
        caption = f"<b>{escape(fact)}</b><br>{escape(detail)}"
        head = f"<caption>{caption}</caption><thead><tr>{top}</tr></thead>"
        return f"<table>{head}<tbody>{rows}</tbody></table>"

    def verify(self, X: Any, y: Any) -> bool:
        """Recompute every proof from the data in double; True, or a ValueError that says what fails.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            The samples that the verdict is about.
        y : array-like of shape (n,)
            Their labels.
        """
        for part in (*known(self.pairs).values(), *self.one_vs_rest.values()):
            if part.verdict != "unknown":
                part.verify(X, y)
        if self.verdict == "unknown":
            raise ValueError("the pairs are verified, but the joint verdict is unknown.")
        rows, numbers = plain(X), np.searchsorted(self.classes, np.asarray(y))
        if self.coef is not None and self.intercept is not None:
            self._verify_discriminants(rows, numbers)
        elif self.weights is not None:
            self._verify_weights(rows, numbers)
        elif all(pair.separable is not False for pair in known(self.pairs).values()):
            raise ValueError("no pair of classes is inseparable, and there is no other proof.")
        return True

    def _verify_discriminants(self, X: Any, numbers: Array) -> None:
        assert self.coef is not None
        assert self.intercept is not None
        if isinstance(self.kernel, Linear):
            scores = np.asarray(X @ self.coef.T) + self.intercept
            sizes = np.asarray(abs(X) @ np.abs(self.coef).T) + np.abs(self.intercept)
            terms = X.shape[1] + 2
        else:
            used = np.flatnonzero(self.coef.any(axis=0))
            block = np.asarray(self.kernel(X, taken(X, used)), dtype=np.float64)
            scores = block @ self.coef[:, used].T + self.intercept
            sizes = np.abs(block) @ np.abs(self.coef[:, used]).T + np.abs(self.intercept)
            terms = len(used) + 16
        every = np.arange(len(numbers))
        margins = scores[every, numbers][:, None] - scores
        rounding = terms * np.finfo(float).eps * (sizes[every, numbers][:, None] + sizes)
        margins[every, numbers] = np.inf
        wrong = margins < -8 * rounding if self.verdict == "touching" else margins <= rounding
        if wrong.any():
            i, k = np.argwhere(wrong)[0]
            raise ValueError(f"sample {i} is not on the right side of class {name_of(self.classes[k])}.")

    def _verify_weights(self, X: Any, numbers: Array) -> None:
        assert self.weights is not None
        every = np.arange(len(numbers))
        if (self.weights < 0).any() or self.weights[every, numbers].any() or not self.weights.any():
            raise ValueError("the weights of the joint proof must be positive, and of rivals only.")
        tau = -self.weights
        tau[every, numbers] = self.weights.sum(axis=1)
        mass = float(self.weights.sum())
        if isinstance(self.kernel, Linear):
            size = abs(X).max(axis=0)
            size = size.toarray().ravel() if hasattr(size, "toarray") else size
            sums = np.abs(X.T @ tau) / np.where(size > 0, size, 1.0)[:, None]
            residual = max(float(sums.max(initial=0.0)), float(np.abs(tau.sum(axis=0)).max())) / mass
        else:
            block = np.asarray(self.kernel(X, X), dtype=np.float64)
            square = float(np.einsum("ik,ij,jk->", tau, block, tau)) / float(np.max(np.diagonal(block)))
            residual = np.sqrt(max(0.0, square) + float(np.square(tau.sum(axis=0)).sum())) / mass
        if residual > 1e-6:
            raise ValueError(f"the weighted sums of the joint proof are not 0: {residual} of their terms.")


@guarded
def separability(
    X: Any,
    y: Any,
    kernel: str | Kernel | Callable[[Any, Any], Any] = "linear",
    *,
    gamma: Any = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    max_time: float | None = None,
) -> Separability | MulticlassSeparability:
    r"""Decide whether hyperplanes separate the classes: ``y_i (w·φ(x_i) + b) ≥ 1`` for all samples.

    For two classes the answer is the widest margin with its hyperplane, or convex combinations of the classes
    that coincide. For several classes every pair is asked about, every class against the rest, and whether
    one discriminant per class separates all jointly. The result prints in two lines and proves itself:
    ``result.verify(X, y)`` recomputes everything from the data.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n, n_features), or a list of strings for string kernels
        Samples.
    y : array-like of shape (n,)
        Labels of any kind.
    kernel : str, Kernel or callable, default="linear"
        The kernel whose feature space is meant: a name, an object of :mod:`separatrix.kernels`, or a function
        ``k(A, B)`` of two blocks of samples.
    gamma, degree, coef0
        Parameters of named kernels, as in :class:`KernelPerceptron`.
    max_time : float or None, default=None
        Most seconds; what is not decided by then, or when Ctrl-C is pressed, is "unknown".

    Returns
    -------
    Separability or MulticlassSeparability
        For two classes, or for more.

    Examples
    --------
    >>> from separatrix.models.separability import separability
    >>> X = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    >>> print(separability(X, [0, 0, 1, 1]))  # exclusive or
    inseparable: the convex hulls of class 0 and class 1 meet: no hyperplane separates them
    convex combinations of 4 samples coincide to 0 (tolerance 1e-11)
    >>> print(separability(X, [0, 0, 1, 1], kernel="rbf", gamma=1.0))
    separable: a hyperplane separates class 0 from class 1
    widest margin 0.632121, 4 support points
    """
    if max_time is not None and not max_time > 0:
        raise ValueError(f"max_time must be a positive number of seconds or None; got {max_time!r}.")
    # Estimators' checks speak in the name of their class.
    asker = type("separability", (BaseEstimator,), {})()
    numeric = not (isinstance(kernel, Kernel) and _holds_text(X))
    if numeric:
        X, y = check_samples(asker, X, y, reset=True)
    else:
        X, y = list(X), column_or_1d(y)
        check_consistent_length(X, y)
    classes, numbers = encode_labels(asker, y)
    resolved = resolve_kernel(kernel, gamma=gamma, degree=degree, coef0=coef0, X=X)
    question = _Question(X, numbers, classes, resolved, Clock(max_time))
    if len(classes) == 2:
        return question.two(np.array([0]), np.array([1]))
    return question.several()


def _holds_text(X: Any) -> bool:
    return not hasattr(X, "indptr") and np.asarray(X).dtype.kind in "US"


class _Question:
    """All questions about one labelled set."""

    def __init__(self, X: Any, numbers: Array, classes: Array, kernel: Kernel, clock: Clock) -> None:
        self.X, self.numbers, self.classes, self.kernel, self.clock = X, numbers, classes, kernel, clock
        self.linear = isinstance(kernel, Linear)
        self.matrix = None if self.linear else KernelBlocks(kernel, X)

    def two(self, negative: Array, positive: Array) -> Separability:
        """Ask about two groups of classes, given by number; once time is over, nothing."""
        groups = (tuple(self.classes[negative].tolist()), tuple(self.classes[positive].tolist()))
        if self.clock.over:
            return self._unasked(groups)
        plus, minus = np.isin(self.numbers, positive), np.isin(self.numbers, negative)
        if self.matrix is not None:
            found = two_kernel(self.matrix, np.flatnonzero(plus), np.flatnonzero(minus), self.clock)
            support = found.support
        else:
            rows = np.flatnonzero(plus | minus)
            view = view_of(self.X if len(rows) == len(plus) else self.X[rows])
            found = two_linear(view, plus[rows], self.clock)
            support = rows[found.support]
        return self._report(found, support, np.where(plus, 1.0, -1.0)[support], groups)

    def _unasked(self, groups: tuple[tuple[Any, ...], tuple[Any, ...]]) -> Separability:
        """Return that nothing is known."""
        found = unasked()
        return self._report(found, found.support, found.weights, groups)

    def _report(
        self, found: PairVerdict, support: Array, sign: Array, groups: tuple[tuple[Any, ...], tuple[Any, ...]]
    ) -> Separability:
        separable = found.verdict == "separable"
        factor = found.factor
        if factor is None and separable:
            factor = 2 / found.upper**2  # the nearest points' own hyperplane
        return Separability(
            verdict=found.verdict,
            classes=groups,
            kernel=self.kernel,
            support=support,
            weights=found.weights,
            width=found.lower if separable else None,
            widest=found.upper if found.verdict in ("separable", "unknown") else None,
            coef=found.coef,
            intercept=found.intercept,
            dual_coef=factor * sign * found.weights if separable and factor is not None else None,
            residual=found.residual,
            tolerance=found.tolerance,
        )

    def several(self) -> MulticlassSeparability:
        """Ask about every pair, about each class and the rest, and about all jointly."""
        K, names = len(self.classes), self.classes.tolist()
        every = np.arange(K)
        asked: dict[tuple[Any, Any], Separability] = {}
        for k, l in combinations(range(K), 2):
            if self.clock.over:
                break
            asked[names[k], names[l]] = self.two(every[[k]], every[[l]])
        whole = len(asked) == K * (K - 1) // 2
        pairs = asked if whole else AskedPairs(names, asked, self._unasked(((), ())))
        rest = {names[k]: self.two(np.delete(every, k), every[[k]]) for k in range(K)}
        joint = self._joint(asked, rest)
        return MulticlassSeparability(
            verdict=joint.verdict,
            classes=self.classes,
            kernel=self.kernel,
            pairs=pairs,
            one_vs_rest=rest,
            coef=joint.coef,
            intercept=joint.intercept,
            weights=joint.weights,
            residual=joint.residual,
        )

    def _joint(
        self, pairs: dict[tuple[Any, Any], Separability], rest: dict[Any, Separability]
    ) -> JointVerdict:
        verdicts = {pair.verdict for pair in pairs.values()}
        if "inseparable" in verdicts:  # the pair's witness is one for all classes
            return JointVerdict("inseparable")
        if all(pair.verdict == "separable" for pair in rest.values()):
            return self._from_rest(list(rest.values()))
        if self.clock.over:
            return JointVerdict("unknown")
        if self.matrix is not None:
            return joint_kernel(self.matrix, self.numbers, self.clock)
        return joint_linear(view_of(self.X), self.numbers, self.clock)

    def _from_rest(self, rest: list[Separability]) -> JointVerdict:
        """Return discriminants that are positive for their own class only."""
        intercept = np.array([pair.intercept for pair in rest])
        if self.linear:
            return JointVerdict("separable", coef=np.array([pair.coef for pair in rest]), intercept=intercept)
        coef = np.zeros((len(rest), len(self.numbers)))
        for k, pair in enumerate(rest):
            coef[k, pair.support] = pair.dual_coef
        return JointVerdict("separable", coef=coef, intercept=intercept)
