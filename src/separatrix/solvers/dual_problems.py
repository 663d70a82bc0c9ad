"""Several dual problems in one set of arrays: Python spends nothing on any one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import overload

import numpy as np

from separatrix.data.view import Array
from separatrix.solvers._dual_problem import DualProblem, DualSolution

#: Names of the states of a problem, by number; −1 is a problem that no solver has looked at.
STATUS = ("running", "converged", "max_iter", "unbounded", "nonconvex", "rounding")


class DualProblems(Sequence[DualProblem]):
    """Problems one after the other in the same arrays, each made when it is asked for.

    Parameters
    ----------
    offsets : ndarray of int64, shape (problems + 1,)
        The variables of problem k are ``offsets[k] … offsets[k + 1] − 1``; none is without variables.
    rows, signs, linear, upper, start : ndarray of shape (variables,)
        As in :class:`DualProblem`.
    separate : bool
        Whether the sums over either sign are kept.
    order : tuple of two ndarrays or None
        Samples in an order in which those of a problem follow each other, and the place there of each
        variable's; found when it is asked for if None.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(2)
    >>> pair = DualProblem(np.array([0, 3]), np.array([1.0, -1.0]), -one, one, 0 * one)
    >>> problems = DualProblems.of([pair, pair])
    >>> len(problems), problems[1].rows.tolist(), problems.sums(problems.upper).tolist()
    (2, [0, 3], [2.0, 2.0])
    """

    def __init__(
        self,
        offsets: Array,
        rows: Array,
        signs: Array,
        linear: Array,
        upper: Array,
        start: Array,
        separate: bool = False,
        order: tuple[Array, Array] | None = None,
    ) -> None:
        if order is not None:
            self.order = order
        self.offsets, self.rows, self.signs = offsets, rows, signs
        self.linear, self.upper, self.start, self.separate = linear, upper, start, separate

    @classmethod
    def of(cls, problems: Sequence[DualProblem]) -> DualProblems:
        """Return problems of the same kind as one object."""
        if isinstance(problems, DualProblems):
            return problems
        names = ("rows", "signs", "linear", "upper", "start")
        if len(problems) == 1:
            arrays = [getattr(problems[0], name) for name in names]
        else:
            arrays = [np.concatenate([getattr(p, name) for p in problems]) for name in names]
        sizes = [p.rows.size for p in problems]
        rows, signs, linear, upper, start = arrays
        offsets = np.cumsum([0, *sizes])
        return cls(offsets, rows, signs, linear, upper, start, separate=problems[0].separate)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, k: int) -> DualProblem: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[DualProblem]: ...
    def __getitem__(self, k: int | slice) -> DualProblem | Sequence[DualProblem]:
        if isinstance(k, slice):
            return [self[number] for number in range(*k.indices(len(self)))]
        part = self.part(k)
        return DualProblem(
            rows=self.rows[part],
            signs=self.signs[part],
            linear=self.linear[part],
            upper=self.upper[part],
            start=self.start[part],
            separate=self.separate,
        )

    def part(self, k: int) -> slice:
        """Return where the variables of a problem are."""
        count = len(self.offsets) - 1
        if not -count <= k < count:
            raise IndexError(k)
        k %= count
        return slice(int(self.offsets[k]), int(self.offsets[k + 1]))

    @cached_property
    def sizes(self) -> Array:
        """Numbers of variables."""
        return np.asarray(self.offsets[1:] - self.offsets[:-1])

    @cached_property
    def longest(self) -> int:
        """Number of variables of the largest problem."""
        return max(self.sizes.tolist(), default=0) if len(self) < 64 else int(self.sizes.max())

    @cached_property
    def copies(self) -> int:
        """How often each sample of a problem comes: twice in a regression, which is one problem."""
        rows, half = self.rows, self.rows.size // 2
        if len(self) > 1 or rows.size % 2:
            return 1
        return 2 if np.array_equal(rows[:half], rows[half:]) else 1

    @cached_property
    def order(self) -> tuple[Array, Array]:
        """Samples in the order in which problems name them, and the place of each variable's."""
        rows, n = self.rows, int(self.rows.max(initial=-1)) + 1
        first = np.full(n, rows.size)
        first[rows[::-1]] = np.arange(rows.size - 1, -1, -1)
        samples = np.argsort(first, kind="stable")[: np.count_nonzero(first < rows.size)]
        place = np.empty(n, dtype=np.int64)
        place[samples] = np.arange(samples.size)
        return samples, place[rows]

    @cached_property
    def owner(self) -> Array:
        """The problem of each variable."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def sums(self, values: Array) -> Array:
        """Return the sum of values over the variables of each problem."""
        if len(self) == 1:
            return np.array([values.sum()])
        return np.add.reduceat(values, self.offsets[:-1])

    def largest(self, values: Array) -> Array:
        """Return the largest of values over the variables of each problem."""
        if len(self) == 1:
            return np.array([values.max()])
        return np.asarray(np.maximum.reduceat(values, self.offsets[:-1]))

    def spread(self, values: Array) -> Array:
        """Return a number per problem as one per variable."""
        return values if len(self) == 1 else np.repeat(values, self.sizes)


class DualSolutions(Sequence[DualSolution]):
    """Where problems stand, in the same arrays.

    Parameters
    ----------
    problems : DualProblems
        The problems; the solutions begin at their starts.
    """

    def __init__(self, problems: DualProblems) -> None:
        self.problems, count = problems, len(problems)
        self.alpha = np.array(problems.start, dtype=np.float64)
        self.gradient = np.array(problems.linear, dtype=np.float64)
        self.violation, self.worst_curvature = np.full(count, np.inf), np.zeros(count)
        self.doubt = np.zeros(count)
        self.steps = np.zeros(count, dtype=np.int64)
        self.status = np.full(count, -1, dtype=np.int32)
        self.known: list[Array | None] = [None] * count

    def __len__(self) -> int:
        return len(self.problems)

    @overload
    def __getitem__(self, k: int) -> DualSolution: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[DualSolution]: ...
    def __getitem__(self, k: int | slice) -> DualSolution | Sequence[DualSolution]:
        if isinstance(k, slice):
            return [self[number] for number in range(*k.indices(len(self)))]
        part = self.problems.part(k)
        return DualSolution(
            self.alpha[part],
            self.gradient[part],
            float(self.violation[k]),
            int(self.steps[k]),
            STATUS[max(0, int(self.status[k]))],
            float(self.doubt[k]),
            self.known[k],
        )

    def put(self, k: int, solution: DualSolution, done: int = 0) -> None:
        """Take over where one problem stands, after so many steps before."""
        part = self.problems.part(k)
        self.alpha[part], self.gradient[part] = solution.alpha, solution.gradient
        self.violation[k], self.steps[k] = solution.violation, solution.steps + done
        self.status[k], self.doubt[k] = STATUS.index(solution.status), solution.doubt
        self.known[k] = solution.known

    def problem(self, k: int) -> DualProblem:
        """Return a problem that starts where it stands."""
        return replace(self.problems[k], start=self.alpha[self.problems.part(k)])
