"""From an estimator to its trace."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from separatrix.data.view import Array
from separatrix.models._labels import encode_labels
from separatrix.models._validation import check_samples
from separatrix.traces._types import Tracer, TraceStep

_METHODS: dict[str, tuple[str, ...]] = {
    "Perceptron": ("perceptron",),
    "KernelPerceptron": ("kernel-perceptron",),
    "SGDClassifier": ("sgd",),
    "LogisticRegression": ("newton", "gradient"),
    "SVC": ("smo",),
}


class Trace:
    """The steps of one fit, made one by one as they are asked for.

    Every loop over it starts anew and gives the same steps; nothing is kept. Made by `trace`.

    Attributes
    ----------
    model : estimator
        What is traced; it is not changed.
    method : str
        "perceptron", "kernel-perceptron", "sgd", "newton", "gradient" or "smo".
    X : ndarray or CSR matrix of shape (n, n_features)
        The samples that the method sees: behind the steps before it, in a pipeline.
    y : ndarray of shape (n,)
        Their labels.
    classes : ndarray
        The classes, sorted.

    Examples
    --------
    >>> from separatrix import LogisticRegression
    >>> from separatrix.traces import trace
    >>> steps = trace(LogisticRegression(), [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> steps.method, steps.last().why
    ('newton', 'half the decrement, ..., is within the tolerance')
    """

    def __init__(self, model: Any, X: Any, y: Any, sample_weight: Any, method: str, most: int | None) -> None:
        self.model, self.method, self._most, self._weight = model, method, most, sample_weight
        self.X, self.y = check_samples(clone(model), X, y, reset=True)
        if self.X.dtype.kind != "f":
            self.X = self.X.astype(np.float64)
        elif not sparse.issparse(self.X):
            self.X = np.ascontiguousarray(self.X)
        self.classes, self._numbers = encode_labels(model, self.y)
        self._drawer = self._tracer()  # refuses now what cannot be traced

    def _tracer(self) -> Tracer:
        model = clone(self.model)
        common = (self.X, self.y, self.classes, self._numbers, self._weight)
        if self.method == "perceptron":
            from separatrix.traces._perceptron import PerceptronTracer

            X = self.X.toarray() if sparse.issparse(self.X) else self.X
            return PerceptronTracer(model, X, *common[1:])
        if self.method == "kernel-perceptron":
            from separatrix.traces._perceptron import KernelPerceptronTracer

            return KernelPerceptronTracer(model, *common)
        if self.method == "sgd":
            from separatrix.traces._sgd import SgdTracer

            return SgdTracer(model, *common)
        if self.method == "smo":
            from separatrix.traces._smo import SmoTracer

            return SmoTracer(model, *common)
        from separatrix.traces._newton import LogisticTracer

        return LogisticTracer(model, *common, method=self.method)

    @property
    def unit(self) -> str:
        """What `TraceStep.iteration` counts: "pass" or "iteration"."""
        return self._drawer.unit

    def __iter__(self) -> Iterator[TraceStep]:
        return islice(self._tracer().steps(), self._most)

    def last(self) -> TraceStep:
        """Return the last step: where the method ended, or where `max_steps` cut it."""
        step = None
        for step in self:  # noqa: B007
            pass
        assert step is not None  # there is a closing step at least
        return step

    def decision(self, step: TraceStep, points: Any) -> Array:
        """Return the decision function after a step, as the estimator would give it.

        Parameters
        ----------
        step : TraceStep
            A step of this trace.
        points : ndarray of shape (m, n_features)
            Points among the samples that the method sees.

        Returns
        -------
        ndarray of shape (m,) or (m, n_classes)
        """
        return self._drawer.coding.decision(self._drawer.columns(step, np.asarray(points, dtype=np.float64)))

    def decide(self, step: TraceStep, points: Any) -> Array:
        """Return the classes that points are put into after a step; parameters as in :meth:`decision`."""
        return np.asarray(self.classes[self._drawer.coding.choose(self.decision(step, points))])

    def __repr__(self) -> str:
        return f"Trace({self.model!r}, {self.X.shape[0]:,} samples, method={self.method!r})"


def trace(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    method: str | None = None,
    max_steps: int | None = None,
) -> Trace:
    """Give every step of a fit, with what changed and why.

    Perceptrons and stochastic gradient descent step from sample to sample, in the order of the fit; logistic
    regression by Newton's method or by gradient descent; a support vector machine from pair to pair. The last
    step tells why the method ended and holds the weights that ``model.fit(X, y)`` would return: those of a
    perceptron to the last bit, others to rounding or to the tolerance.

    Parameters
    ----------
    model : Perceptron, KernelPerceptron, SGDClassifier, LogisticRegression or SVC
        Or a pipeline that ends in one: its other steps are fitted first. The parameters are followed, and
        nothing is changed.
    X : {array-like, sparse matrix} of shape (n, n_features)
        Samples.
    y : array-like of shape (n,)
        Labels of any kind.
    sample_weight : array-like of shape (n,), optional
        Weights of the samples.
    method : {"newton", "gradient"}, optional
        For logistic regression; "newton" by default.
    max_steps : int, optional
        Stop after so many steps.

    Returns
    -------
    Trace
        To be looped over; each element is a `TraceStep`.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.traces import trace
    >>> X, y = [[0.0, 0.0], [1.0, 0.5], [3.0, 3.0]], ["low", "low", "high"]
    >>> for step in trace(Perceptron(shuffle=False), X, y, max_steps=3):
    ...     print(step)
    step 1, pass 1, sample 0 (low): y f(x) = 0 is not positive, so w += 1 x, b += 1
    step 2, pass 1, sample 1 (low): y f(x) = 1 is on the right side, so nothing changes
    step 3, pass 1, sample 2 (high): y f(x) = −1 is not positive, so w −= 1 x, b −= 1
    """
    if max_steps is not None and max_steps < 1:
        raise ValueError(f"max_steps must be at least 1, not {max_steps!r}")
    steps = getattr(model, "steps", None)
    if isinstance(steps, list) and steps:
        before = clone(model[:-1]) if len(steps) > 1 else None
        features = X if before is None else before.fit_transform(X, y)
        return trace(
            steps[-1][1], features, y, sample_weight=sample_weight, method=method, max_steps=max_steps
        )
    known = [name for name in _METHODS if name in {cls.__name__ for cls in type(model).__mro__}]
    if not known:
        raise TypeError(f"trace knows {', '.join(_METHODS)}, not {type(model).__name__}")
    methods = _METHODS[known[0]]
    if method is not None and method not in methods:
        raise ValueError(f"method of {known[0]} must be one of {', '.join(methods)}, not {method!r}")
    # A support vector machine has the same parameters everywhere; the others have some of their own here.
    if known[0] != "SVC" and not type(model).__module__.startswith("separatrix"):
        raise TypeError(f"trace follows separatrix.{known[0]}; this one is of {type(model).__module__}")
    if getattr(model, "warm_start", False) and hasattr(model, "coef_"):
        raise ValueError("trace starts from zero weights: set warm_start=False")
    return Trace(model, X, y, sample_weight, method or methods[0], max_steps)
