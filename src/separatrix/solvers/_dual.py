"""What a solver holds of a support vector machine's dual problem while it works."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from separatrix import _hot
from separatrix.data.threads import in_threads, thread_count
from separatrix.data.view import Array
from separatrix.solvers._dual_problem import DualProblem, DualSolution
from separatrix.solvers._dual_state import State
from separatrix.solvers.kernel_matrix import KernelMatrix, Precision

#: Curvature of a pair, relative to its kernel values, that only an indefinite kernel has.
NEGATIVE = 1e-5
#: Squared margin, relative to the kernel values, below which classes count as not separable.
_NO_MARGIN = 1e-12
#: Squared length of weights, relative to that of their parts, at which these cancel, as in dual_machines.hpp.
_CANCELLED = 1e-9
#: How far below 0 it is beyond any rounding: of kernel values in single precision, too.
_BELOW = 1e-6
#: Relative gap of a point that is far from the solution.
_FAR = 0.5
#: Points that a glance is content with.
_GLANCE = 32
#: Relative rounding error of a double.
_UNIT = 1.1e-16


def run_loops(loops: list[Any], seconds: float, threads: int = 1) -> None:
    """Let threads work on problems, for some seconds at most.

    Each takes a problem that none has in hand; those that find no other help with one that goes in rounds.
    """
    workers = thread_count(None) if any(loop.in_rounds for loop in loops) else threads
    for _ in in_threads(lambda _: _hot.run_smo(loops, seconds), workers):
        pass


def dot(a: Array, b: Array) -> float:
    """Return ``a'b``, in this thread: BLAS would wake others for it, which costs more than the sum."""
    return float(np.einsum("i,i->", a, b))


class Work:
    """A problem in the order that the compiled loop wants, with ``E = s (Qa + p)`` instead of a gradient.

    Variables of the same samples share kernel rows (regression: the second half repeats the first), and
    where the sums over either sign are kept the positive variables come first. Where they are not, the two
    variables of a sample become one, ``β = a − a*`` between −u and u, at the price ``ε |β|``, which E leaves
    out: half as many variables for the same steps.
    """

    def __init__(self, matrix: KernelMatrix, problem: DualProblem, solution: DualSolution) -> None:
        self.matrix, self.problem, self.solution = matrix, problem, solution
        rows, m = np.asarray(problem.rows, dtype=np.int64), problem.rows.size
        half = m // 2
        self.copies = 2 if m % 2 == 0 and m and np.array_equal(rows[:half], rows[half:]) else 1
        self.separate, self.order = problem.separate, None
        self.middle = half if self.copies == 2 else m
        if self.separate and self.copies == 1:
            self.order = np.argsort(-problem.signs, kind="stable")
            self.middle = int(np.count_nonzero(problem.signs > 0))
            rows = rows[self.order]
        self.points = rows[: m // self.copies]
        self.signs, self.upper = self._sorted(problem.signs), self._sorted(problem.upper)
        self.alpha, self.E = self._sorted(solution.alpha), self.signs * self._sorted(solution.gradient)
        #: s p: E where all variables are zero.
        self.linear = self.signs * self._sorted(problem.linear)
        #: ε of each variable, where it is a difference of two.
        self.price: Array | None = None
        if self._mirrored():
            self.price = 0.5 * (self.linear[:half] - self.linear[half:])
            self.copies, self.signs, self.upper = 1, self.signs[:half], self.upper[:half]
            self.alpha, self.E = self.alpha[:half] - self.alpha[half:], self.E[:half] - self.price
            self.linear = self.linear[:half] - self.price
        #: Whether many variables are free, so that steps in rounds are worth more of them. (Directions of
        #: negative curvature are found among all pairs, not among those of a round.)
        known = matrix.native is not None and matrix.definite
        self.in_rounds = known and (self.price is not None or self.separate)
        self.diag = matrix.diag[self.points]
        n = matrix.shape[0]
        self.everything = self.points.size == n and np.array_equal(self.points, np.arange(n))
        self.worst_curvature = 0.0
        #: Where E was last exact, and what it was there; None: where all variables are zero.
        self.exact: tuple[Array, Array] | None = None
        #: Where E was last exact of some points, if not of all, of which, and how near the margin these are.
        self.sharp: tuple[Array, Array, float] | None = None
        #: Whether kernel values in single precision have had a part in E since then.
        self.coarse = solution.doubt > 0
        #: The points whose E has been computed; None: all of them.
        self.known: Array | None = None if solution.known is None else np.empty(0, dtype=np.int64)
        #: A factor of the kernel matrix, once steps of pairs have been many.
        self.factor: Any = None
        #: Whether time is up: long steps ask between their parts, and leave the point as it was.
        self.expired: Callable[[], bool] = lambda: False

    def _mirrored(self) -> bool:
        """Return whether the two variables of each point are its deviations either way, with one sum."""
        half, s, u, p = self.points.size, self.signs, self.upper, self.linear
        return (
            self.copies == 2
            and not self.separate
            and bool((s[:half] == 1).all() and (s[half:] == -1).all())
            and np.array_equal(u[:half], u[half:])
            and bool((p[:half] >= p[half:]).all())
        )

    def _unfolded(self, alpha: Array, E: Array) -> tuple[Array, Array, Array, Array]:
        """Return a, E, s and u of the problem's own variables, in the order of the loop."""
        if self.price is None:
            return alpha, E, self.signs, self.upper
        both = np.concatenate([np.maximum(alpha, 0.0), np.maximum(-alpha, 0.0)])
        signs = np.repeat([1.0, -1.0], alpha.size)
        return both, np.concatenate(self._priced(E)), signs, np.tile(self.upper, 2)

    def _priced(self, E: Array) -> tuple[Array, Array]:
        """Return E of points that deviate upwards and downwards, with the price."""
        assert self.price is not None
        return E + self.price, E - self.price

    def free(self, alpha: Array, upper: Array) -> Array:
        """Return which variables are off their bounds, and off where their price changes."""
        return np.asarray((alpha != 0) & (np.abs(alpha) < upper))

    def _sorted(self, values: Array) -> Array:
        if self.order is not None:
            values = values[self.order]
        return np.ascontiguousarray(values, dtype=np.float64)

    def panels(self, precision: Precision, points: Array | None = None) -> Any:
        """Return the packed samples of all points, or of some."""
        if points is None and self.everything:
            return self.matrix.panels(precision)
        return self.matrix.panels(precision, self.points if points is None else self.points[points])

    def state(
        self,
        precision: Precision,
        *,
        points: Array | None = None,
        panels: Any = None,
        values: Array | None = None,
        given: Array | None = None,
        start: tuple[Array, Array, Array] | None = None,
        classes: tuple[Any, Any] | None = None,
        tol: float,
        max_steps: int,
        row_bytes: float,
    ) -> State:
        """Return what the compiled loop needs for all points or some.

        Parameters
        ----------
        precision : {"float32", "float64"}
            Of the kernel rows.
        points : ndarray or None
            Which points; None: all of them, and the loop works on this object's own arrays.
        panels : KernelPanels or None
            These points packed, if that has been done.
        values : ndarray or None
            Their kernel block; None: rows are computed when needed, for which the kernel must have loops of
            its own.
        given : ndarray or None
            The points whose rows ``values`` are, where they are not all; the others are computed when needed.
        start : tuple of ndarray or None
            Other values than the present ones for ``a``, E and u.
        classes : tuple of ClassRows or None
            What keeps the rows of either sign's points among themselves; whole rows if None.
        tol, max_steps, row_bytes : float, int, float
            Violation to reach, most steps, and most bytes of kept rows.
        """
        n = self.points.size
        exact = self.exact is not None and np.array_equal(self.exact[0], self.alpha)
        self.coarse = precision == "float32" or (self.coarse and not exact)
        variables: Any = slice(None)
        middle = self.middle
        first, second = classes or (None, None)
        if points is not None:
            variables = points if self.copies == 1 else np.concatenate([points, points + n])
            middle = points.size if self.copies == 2 else int(np.searchsorted(points, self.middle))
        native = self.matrix.native is not None
        rows = native and classes is None and (values is None or given is not None)
        alpha, E, upper = start or (self.alpha[variables], self.E[variables], self.upper[variables])
        return State(
            points,
            variables,
            alpha,
            E,
            precision,
            panels=(panels or self.panels(precision, points)) if rows else None,
            first=first,
            second=second,
            matrix=values,
            given=given,
            copies=self.copies,
            middle=middle,
            separate=self.separate,
            signs=self.signs[variables],
            upper=upper,
            price=None if self.price is None else self.price[variables],
            diag=self.diag if points is None else self.diag[points],
            tol=tol,
            most_steps=max_steps,
            row_bytes=row_bytes,
            memory=self.matrix.memory,
            in_rounds=self.in_rounds and start is None,
        )

    @property
    def cut(self) -> int:
        """Return where the points of the other sign begin; 0 if signs alternate or points come twice."""
        changes = np.flatnonzero(np.diff(self.signs)) if self.copies == 1 else np.empty(0)
        return int(changes[0]) + 1 if changes.size == 1 else 0

    def groups(self) -> list[slice]:
        """Return the variables of each sum that is kept."""
        if self.separate:
            return [slice(0, self.middle), slice(self.middle, None)]
        return [slice(None)]

    def scores(self) -> tuple[Array, float]:
        """Return by how much each point violates optimality (``inf``: it is free), and the violation."""
        a, u = self.alpha, self.upper
        if self.price is None:
            above = np.where(np.where(self.signs > 0, a < u, a > 0), self.E, np.inf)
            below = np.where(np.where(self.signs > 0, a > 0, a < u), self.E, -np.inf)
        else:
            more, less = self._priced(self.E)
            above = np.where(a < u, np.where(a < 0, less, more), np.inf)
            below = np.where(a > -u, np.where(a > 0, more, less), -np.inf)
        score = np.full(self.E.shape, -np.inf)
        worst = 0.0
        for group in self.groups():
            least, most = above[group].min(initial=np.inf), below[group].max(initial=-np.inf)
            if np.isinf(least) or np.isinf(most):
                continue
            worst = max(worst, float(most - least))
            middle = 0.5 * (least + most)
            score[group] = np.maximum(middle - above[group], below[group] - middle)
            score[group][self.free(a[group], u[group])] = np.inf
        n = self.points.size
        return (np.maximum(score[:n], score[n:]) if self.copies == 2 else score), worst

    def relative_gap(self) -> float:
        """Return the duality gap over the objective.

        With ``v = s (E − b)`` the gap is ``Σ a max(0, v) + (u − a) max(0, −v)``.
        """
        return self.gap_within(0.0)[0]

    def has_wide_gap(self, gap: float) -> bool:
        """Return whether the relative gap is larger, as a small violation alone leaves it with a large C."""
        return self.worst_curvature >= 0 and self.relative_gap() > gap and not self.vanishes()

    def vanishes(self) -> bool:
        """Return whether nothing is left of fixed sums of samples: a gap relative to that says nothing."""
        if self.problem.linear.any():
            return False
        roots = np.sqrt(np.abs(self.diag))
        length, square = dot(self.alpha, np.tile(roots, self.copies)), dot(self.signs * self.alpha, self.E)
        # Samples at the origin add no length: what is left of others, then, is less than any rounding.
        traces = (2 * _UNIT * float(self.alpha.sum()) * float(roots.max(initial=0.0))) ** 2
        return -max(_BELOW * length**2, traces) <= square <= max(_CANCELLED * length**2, traces)

    def gap_within(self, doubt: float) -> tuple[float, float]:
        """Return the relative gap, and about how much of it an error of E of that size makes."""
        gap, size, freedom = self._gap()
        return gap / size, 0.4 * doubt * freedom / size

    def value_within(self, doubt: float) -> float:
        """Return about what part of the objective an error of E of that size makes, each point its own."""
        return 0.5 * doubt * sqrt(dot(self.alpha, self.alpha)) / self._gap()[1]

    def _gap(self) -> tuple[float, float, float]:
        """Return the gap, the size of the objective, and the sum of the bounds of free variables."""
        middle = self.middle if self.separate else self.alpha.size
        gap, objective, freedom = _hot.dual_gap(
            middle, self.signs, self.upper, self.price, self.linear, self.alpha, self.E
        )
        return gap, max(abs(objective), 1e-300), freedom

    def product(self, points: Array, change: Array, precision: Precision) -> Array:
        """Return what a change of ``s a`` of some points adds to E of all variables."""
        moved = np.flatnonzero(change)
        rows, targets = self.points[points[moved]], None if self.everything else self.points
        product = self.matrix.product(rows, change[moved, None], targets, precision)[:, 0]
        return np.tile(product, self.copies)

    def weights(self, alpha: Array, variables: Any = slice(None)) -> Array:
        """Return ``s a`` of every point, or of the points of some variables."""
        weights = self.signs[variables] * alpha
        return np.asarray(weights.reshape(self.copies, -1).sum(axis=0))

    def recompute(self, precision: Precision) -> bool:
        """Compute E anew, without what steps have added to its rounding error.

        Return whether time was enough for that: else it stays as it was.
        """
        n, E = self.points.size, self.E.copy()
        if self._sums_into(E, np.arange(n), precision) < n:
            return False
        self.known = None
        if precision == "float64":
            self.set_exact(E)
        else:
            self.E[:] = E
        return True

    def begin(self, precision: Precision, *, glance: bool = False) -> bool:
        """Compute E of a point where it is not known; return whether time was enough for all of it.

        Some points are looked at in any case, spread among all of either sign: they tell about where the
        intercept is. A glance is content with few of them.
        """
        n, E = self.points.size, self.linear.copy()
        glance &= bool(self.weights(self.alpha).any())  # without weights all is known
        # The first of each sign come first, then others at even distances.
        middle = self.middle if self.separate and self.copies == 1 else n
        parts = -(-n // _GLANCE) if glance else self._parts(n)
        place = np.concatenate([np.arange(middle), np.arange(n - middle)]) % parts
        place[[0, middle % n]] = -1
        order = np.argsort(place, kind="stable")
        count = self._sums_into(E, order[:_GLANCE] if glance else order, precision)
        self.E[:], self.known = E, None if count == n else order[:count]
        self.coarse |= precision == "float32"
        self.read(self.alpha, self.E, np.inf)
        return count == n

    def _parts(self, count: int) -> int:
        """Return in how many parts E of so many points is computed, each in a bounded time."""
        rows = int(np.count_nonzero(self.weights(self.alpha)))
        return max(1, -(-count // self.matrix.targets_at_once(rows))) if rows else 1

    def _sums_into(self, E: Array, points: Array, precision: Precision) -> int:
        """Put E of some points into its place, in order; return of how many: the first part in any case."""
        weights, n, parts = self.weights(self.alpha), self.points.size, self._parts(points.size)
        some, done = np.flatnonzero(weights), 0
        for number in range(parts):
            begin, done = done, (number + 1) * points.size // parts
            part = points[begin:done]
            targets = None if parts == 1 and part.size == n and self.everything else self.points[part]
            sums = self.matrix.product(self.points[some], weights[some, None], targets, precision)[:, 0]
            for copy in range(0, E.size, n):
                E[copy + part] = self.linear[copy + part] + sums
            if self.expired():
                break
        return done

    def set_exact(self, E: Array) -> None:
        """Take over E, exact at the present point."""
        self.E[:] = E
        self.exact, self.sharp = (self.alpha.copy(), E), None

    def sharpen(self, width: float) -> bool:
        """Compute E anew in double where violation and gap hang on it: no farther from the margin than this.

        Elsewhere variables are on the bound that E asks for, whatever its last digits. Return whether time
        was enough for that: else E stays as it was.
        """
        is_near = self.scores()[0] > -width
        near, E = np.flatnonzero(is_near), self.E.copy()
        if self._sums_into(E, near, "float64") < near.size:
            return False
        self.E[:] = E
        self.sharp = self.alpha.copy(), is_near, width
        return True

    def error(self, precision: Precision) -> float:
        """Return about how far E may be from exact near the margin, through kernel values of this precision.

        What they have added since E was last exact counts, no more.
        """
        moved = self.alpha if self.exact is None else self.alpha - self.exact[0]
        if self.sharp is not None:
            last, known, width = self.sharp
            if not (~known & (self.scores()[0] > -width)).any():  # no others have come near since
                moved = self.alpha - last
        return self.matrix.error(precision) * sqrt(dot(moved, moved))

    def retrace(self, state: State) -> None:
        """Compute E anew from where it was last exact, with the rows of points that have changed since."""
        assert self.exact is not None
        change = self.weights(self.alpha) - self.weights(self.exact[0])
        self.E[:] = self.exact[1] + state.product(np.flatnonzero(change), change[change != 0])

    def read(self, alpha: Array, E: Array, violation: float) -> None:
        """Bring the solution up to date."""
        solution = self.solution
        alpha, E, signs, _ = self._unfolded(alpha, E)
        gradient = signs * E
        if self.order is None:
            solution.alpha, solution.gradient = alpha, gradient
        else:
            solution.alpha, solution.gradient = np.empty_like(alpha), np.empty_like(alpha)
            solution.alpha[self.order], solution.gradient[self.order] = alpha, gradient
        solution.violation = violation
        solution.doubt = self.error("float32") if self.coarse else 0.0
        solution.known = None if self.known is None else self._variables(self.known)

    def _variables(self, points: Array) -> Array:
        """Return the problem's own variables of some points."""
        twice = self.copies == 2 or self.price is not None
        found = np.concatenate([points, points + self.points.size]) if twice else points
        return found if self.order is None else self.order[found]

    def take(self, alpha: Array, gradient: Array) -> None:
        """Go on from another point, of the problem's own variables, whose gradient is exact."""
        a, E = self._sorted(alpha), self._sorted(self.problem.signs) * self._sorted(gradient)
        if self.price is not None:
            half = self.price.size
            a, E = a[:half] - a[half:], E[:half] - self.price
        self.alpha[:] = a
        self.set_exact(E)

    def finish(self, status: str) -> None:
        """Say how the problem ended."""
        if status == "rounding" and self.recompute("float64"):  # without what single precision has added
            self.read(self.alpha, self.E, self.scores()[1])
        indefinite = status == "converged" and self.worst_curvature < -NEGATIVE
        self.solution.status = "nonconvex" if indefinite else status

    def out_of_reach(self, tol: float, patience: float) -> bool:
        """Return whether a tolerance is less than the rounding error of E in double, however it is computed.

        The error grows with the variables. After much patience (1 or more) it counts how large they may
        become, as long as the solution is far.
        """
        size = _UNIT * float(np.abs(self.diag).max(initial=0.0)) * float(np.sqrt(self.alpha.size))
        if size * float(np.abs(self.alpha).max(initial=0.0)) > tol:
            return True
        most = float(np.where(np.isinf(self.upper), 0.0, self.upper).max(initial=0.0))
        return patience >= 1 and size * most > tol and self.relative_gap() > _FAR

    def hopeless(self) -> bool:
        """Return whether variables without an upper bound grow for ever: the classes are not separable.

        ``w'w / (Σa)²`` is at least a quarter of the squared distance of the classes' convex hulls.
        """
        solution = self.solution
        if self.problem.solvable or not np.isinf(self.upper).any():
            return False
        total = float(solution.alpha.sum())
        square = dot(solution.alpha, solution.gradient - self.problem.linear)
        scale = float(np.abs(self.diag).mean())
        return total > 0 and square <= _NO_MARGIN * scale * total * total
