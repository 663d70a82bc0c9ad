"""Where a linear fit starts from, and how far it goes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from separatrix.certificate import Certificate
from separatrix.data.view import Array
from separatrix.multiclass import Coding
from separatrix.problem import Problem

#: Entries times columns up to which a fit goes beyond the tolerance.
_SMALL = 1 << 20
#: Relative gap that rounding errors of sums in double precision explain.
_PRECISE = 1e-12


_LARGEST_SEED = np.iinfo(np.int32).max


def _draw(random_state: Any, classes: int) -> int:
    generator = check_random_state(random_state)
    if classes > 2:
        generator = check_random_state(generator.randint(_LARGEST_SEED, size=classes)[0])
    if classes > 1:
        generator.randint(1, _LARGEST_SEED)
        return int(generator.randint(_LARGEST_SEED))
    seed = int(generator.randint(_LARGEST_SEED))
    generator.randint(1, _LARGEST_SEED)
    return seed


_drawn = lru_cache(maxsize=64)(_draw)


def seed_of(random_state: Any, classes: int = 0) -> int:
    """Return a seed drawn from ``random_state``: the one from which scikit-learn draws its order of visit.

    It draws another number, above 0, before it for a classifier and after it for a regression, and for more
    than two classes first a seed for each of them, of which the first counts here. Setting up a generator
    takes longer than a pass over a small batch: what a number gives is kept.
    """
    return (_drawn if type(random_state) is int else _draw)(random_state, classes)


class Start:
    """Initial weights of the columns.

    Attributes
    ----------
    coef, intercept : ndarray
        One row of weights and one constant term per column.
    nonzero : bool
        Whether any of them differs from 0.
    given_nonzero : bool
        Whether that was the caller's wish, not the state of an earlier fit.
    """

    def __init__(self, coef: Array, intercept: Array) -> None:
        self.coef, self.intercept = coef, intercept
        self.nonzero = bool(np.any(coef) or np.any(intercept))
        self.given_nonzero = False

    @classmethod
    def given(
        cls,
        coef_init: Any,
        intercept_init: Any,
        previous: tuple[Array, Array] | None,
        coding: Coding,
        X: Any,
        random_state: Any,
    ) -> Start:
        """Return the start from what the caller gave, else from an earlier fit, else zero."""
        shape = coding.columns, int(X.shape[1])
        if previous is None and coef_init is None and intercept_init is None:
            return cls(np.zeros(shape), np.zeros(shape[0]))
        coef, intercept = previous if previous is not None else (np.zeros(shape), np.zeros(shape[0]))
        if isinstance(coef_init, str):
            if coef_init != "random":
                raise ValueError(f"coef_init must be an array, 'random' or None; got {coef_init!r}.")
            coef = check_random_state(random_state).normal(scale=0.01, size=shape)
        elif coef_init is not None:
            coef = np.atleast_2d(np.asarray(coef_init, dtype=np.float64))
        if intercept_init is not None:
            intercept = np.atleast_1d(np.asarray(intercept_init, dtype=np.float64))
        if coding.joint and coding.n_classes == 2:
            # One row is the difference of the two discriminants.
            if coef.shape[0] == 1:
                coef = np.concatenate([-0.5 * coef, 0.5 * coef])
            if intercept.shape[0] == 1:
                intercept = np.concatenate([-0.5 * intercept, 0.5 * intercept])
        for name, value, expected in (("coef_init", coef, shape), ("intercept_init", intercept, shape[:1])):
            if value.shape != expected:
                raise ValueError(
                    f"Provided {name} does not match dataset: its shape is {value.shape}, but "
                    f"{shape[0]} score columns and {shape[1]} features need {expected}."
                )
            if not np.all(np.isfinite(value)):
                raise ValueError(f"{name} must be finite.")
        start = cls(coef, intercept)
        start.given_nonzero = start.nonzero and (coef_init is not None or intercept_init is not None)
        return start


def goal_of(tol: float, problem: Problem) -> float:
    """Return the relative gap to go for: where steps cost next to nothing, four digits beyond ``tol``."""
    small = problem.view.shape[0] * problem.view.shape[1] * problem.columns <= _SMALL
    return max(1e-4 * float(tol), min(float(tol), 1e-12)) if small else float(tol)


def judged(found: Certificate, tol: float, dtype: Any, most: int) -> Certificate:
    """Return the certificate of a fit by the tolerance that was asked for, whatever it went for.

    One that ended for want of progress, before the ``most`` iterations, is not helped by more of them.
    """
    if found.relative_gap is None:
        return found
    single = dtype == np.float32
    if found.status == "max_iter" and found.dual is not None and found.relative_gap <= tol:
        proven = f"within {found.relative_gap:.1e} of the minimum (duality gap)"
        return replace(found, status="converged", message=proven)
    if found.status == "max_iter" and found.iterations < most and single and ", above" in found.message:
        reached, _, rest = found.message.partition(", above")
        rest = rest.partition(";")[2]
        words = f"{reached}, above tol={tol:g}: single precision ends here, pass X as float64"
        return replace(found, message=f"{words};{rest}" if rest else words)
    if found.status == "converged" and found.relative_gap > (tol if single else max(tol, _PRECISE)):
        # The fit found no way further down, or rounding its weights took away what it had reached.
        remedy = (
            "single precision ends here, pass X as float64"
            if single
            else "rounding errors are larger, scale the features, for example with StandardScaler"
        )
        words = f"{found.message}, above tol={tol:g}: {remedy}"
        return replace(found, status="max_iter", message=words)
    return found


def last_solution(model: Any, problem: Problem, classes: Array) -> tuple[Array, Array]:
    """Return the weights of an earlier fit (``warm_start``) as the problem has them, or refuse."""
    P, d, own = problem.columns, problem.view.shape[1], model.n_features_in_
    if model.coef_.shape != (P, own) or not np.array_equal(model.classes_, classes):
        raise ValueError(
            f"warm_start=True goes on from coef_ of shape {model.coef_.shape}, but these data need "
            f"({P}, {own}): fit a new estimator, or set warm_start=False."
        )
    coef, intercept = np.zeros((P, d)), np.zeros(P)
    coef[:, :own] = model._dense_coef()
    if d > own:  # a constant feature stands for the intercept
        coef[:, -1] = model.intercept_ / model.intercept_scaling
    elif problem.fit_intercept:
        intercept[:] = model.intercept_
    if not np.isfinite(coef.sum() + intercept.sum()):
        raise ValueError(
            "Floating-point under-/overflow: warm_start=True goes on from coef_ and intercept_, which hold "
            "NaN or infinity. Fit a new estimator, or set warm_start=False."
        )
    return coef, intercept
