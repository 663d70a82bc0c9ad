"""What a support vector fit proves, in numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from separatrix.certificate import Certificate
from separatrix.data.view import Array, DataView
from separatrix.solvers._loop import Outcome
from separatrix.solvers.machines import Machine, Machines
from separatrix.solvers.svm import SupportMachines

#: Rows that are looked at to compare the features' scales, and ratios that are worth a word: of widths or of
#: bounds, and of the distance from 0 to the width.
_ROWS, _RATIO, _FAR = 4096, 1e3, 30
_EXAMPLE = "for example with sklearn.preprocessing.StandardScaler"


def certify(
    machines: Sequence[Machine],
    outcome: Outcome,
    *,
    tol: float,
    samples: int,
    iterations: int,
    advice: str = "",
    separable: bool | None = None,
    verdict: str = "",
    out_of_reach: bool = False,
    definite: bool = True,
) -> Certificate:
    """Return the certificate of all problems together.

    Parameters
    ----------
    machines : sequence of Machine
        The solved problems.
    outcome : Outcome
        How the loop ended.
    tol : float
        The KKT violation that was asked for.
    samples : int
        Training samples that count.
    iterations : int
        Steps taken in all.
    advice : str
        What to try if the tolerance was not reached.
    separable : bool or None
        Whether the classes are separable, where that is known.
    verdict : str
        Words that explain a status of "inseparable".
    out_of_reach : bool
        Whether rounding errors, not a number of steps, kept the fit from its tolerance.
    definite : bool
        Whether the kernel is known to be positive semidefinite: the gap proves nothing where it is not.
    """
    every = Machines.of(machines)
    violation, primal, dual = float(every.violation.max()), float(every.primal.sum()), float(every.dual.sum())
    proven = outcome.status not in ("nonconvex", "inseparable") and isfinite(primal)
    gap = max(float(every.gap.sum()), 0.0) if proven else None
    relative = None
    if gap is not None and not every.vanishes.all():  # beside a minimum of 0 a gap says nothing
        size = max(abs(primal), abs(dual))
        relative = gap / size if size > 0 else 0.0
    return Certificate(
        status=outcome.status,
        message=verdict or _explain(every, outcome, tol, violation, relative, advice, out_of_reach, definite),
        iterations=iterations,
        seconds=outcome.seconds,
        primal=primal if isfinite(primal) else None,
        dual=dual if outcome.status not in ("nonconvex", "inseparable") and isfinite(dual) else None,
        gap=gap,
        relative_gap=relative,
        kkt_violation=violation if isfinite(violation) else None,
        separable=separable,
        samples=samples,
    )


def _explain(
    machines: Machines,
    outcome: Outcome,
    tol: float,
    violation: float,
    relative: float | None,
    advice: str,
    out_of_reach: bool,
    definite: bool,
) -> str:
    if outcome.status == "nonconvex":
        return (
            "the kernel is not positive semidefinite on these samples, so this optimum is only local (its "
            f"conditions hold within {violation:.2g}; separatrix.mercer(kernel, X) shows more)"
        )
    within = ""
    if machines.vanishes.any() and outcome.status == "converged":
        least = float(machines.gap[machines.vanishes].max())
        return f"the best weights are 0, up to rounding (gap {least:.2g}, KKT violation {violation:.2g})"
    if relative is not None:
        proof = "duality gap" if definite else "duality gap, if the kernel is positive semidefinite"
        within = f"within {relative:.2g} of the minimum ({proof})"
        if len(machines) > 1:
            worst = float(machines.relative_gap.max())
            within += f", the worst of {len(machines)} problems within {worst:.2g}"
    if outcome.status == "converged":
        return within or f"its conditions hold within {violation:.2g}"
    steps = "rounding errors are larger than tol" if out_of_reach else "max_iter steps were not enough"
    reason = {
        "max_iter": steps,
        "max_time": "max_time is over",
        "interrupted": "interrupted",
    }[outcome.status]
    more = "raise tol" if out_of_reach else "raise max_iter or tol"
    remedy = {"max_iter": more, "max_time": "raise max_time or tol"}.get(outcome.status, "fit again to go on")
    reached = f"KKT violation {violation:.2g}" if isfinite(violation) else "too early for a KKT violation"
    words = [f"{reason} ({reached}, asked {tol:.2g})", f"{advice or remedy}"]
    return "; ".join([*words, within] if within else words)


def scale_advice(view: DataView) -> str:
    """Return what to do about features of very different scales; empty where they are alike."""
    rows = slice(0, min(_ROWS, view.shape[0]))
    block = view.read(rows)
    if view.sparse:
        square = np.asarray(block.astype(np.float64).power(2).mean(axis=0)).ravel()
        widths: Array = np.sqrt(square)
        centres = np.zeros_like(widths)
    else:
        widths, centres = block.astype(np.float64).std(axis=0), np.abs(block.mean(axis=0, dtype=np.float64))
    varying = widths > 0
    widths, centres = widths[varying], centres[varying]
    if widths.size == 0:
        return ""
    ratio, largest = float(widths.max() / widths.min()), float(widths.max())
    standardise = f"standardise them, {_EXAMPLE}"
    if ratio >= _RATIO:
        return f"the features differ in scale by {ratio:.0e}: {standardise}"
    if largest >= _RATIO:
        return f"the features are as wide as {largest:.0e}: {standardise}"
    if float((centres / widths).max()) >= _FAR:
        return f"the features lie far from 0 compared with their width: {standardise}"
    return ""


def bound_advice(machines: SupportMachines) -> str:
    """Return what to do about bounds far beyond what the targets ask for; empty where they are not."""
    p = machines.problems
    targets = p.signs * p.linear
    width, bound = 0.5 * float(np.ptp(targets)), float(p.upper.max()) * machines.matrix.largest
    if not 0 < _RATIO * width <= bound < np.inf:
        return ""
    ratio, largest = f"C k(x, x) is {bound / width:.0e} times the targets", float(machines.matrix.largest)
    if largest >= _RATIO and machines.matrix.kernel.samples == "vectors":
        # Wide features are to blame as much, above all in a polynomial.
        remedy = f"standardise the features, {_EXAMPLE}, or lower C"
        return f"{remedy}: k(x, x) is up to {largest:.0e}, and {ratio}"
    return f"lower C, the larger the slower: {ratio}"
