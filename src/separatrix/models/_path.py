"""Fits along a path of C, each from the last one's solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from separatrix.certificate import Certificate
from separatrix.data.view import Array
from separatrix.solvers._loop import Guard


@dataclass(frozen=True, eq=False)
class CPath:
    """What ``LinearSVC.path`` and ``LogisticRegression.path`` return; ``separatrix.plot.path`` draws it.

    Attributes
    ----------
    Cs : ndarray of shape (m,)
        The values of ``C``, growing.
    coefs : ndarray of shape (m, columns, n_features)
        Weights at each ``C``.
    intercepts : ndarray of shape (m, columns)
        Intercepts.
    margins : ndarray of shape (m, columns)
        Width ``2/‖w‖`` of each column's margin; ``inf`` without weights.
    objectives : ndarray of shape (m,)
        The objective.
    certificates : tuple of Certificate
        What each fit proves.
    classes : ndarray
        The classes.
    features : tuple of str or None
        Names of the features, if they have names.
    model : str
        Name of the estimator.
    """

    Cs: Array
    coefs: Array
    intercepts: Array
    margins: Array
    objectives: Array
    certificates: tuple[Certificate, ...]
    classes: Array
    features: tuple[str, ...] | None
    model: str

    def __str__(self) -> str:
        worst = max(float(c.relative_gap or 0.0) for c in self.certificates)
        done = sum(c.status == "converged" for c in self.certificates)
        return (
            f"{self.model} path of {len(self.Cs)} values of C from {self.Cs[0]:g} to {self.Cs[-1]:g}\n"
            f"{done} converged, largest relative gap {worst:.2g}, margin width {_range(self.margins)}"
        )


def _range(margins: Array) -> str:
    shown = margins[np.isfinite(margins)]
    return f"{shown.max():.3g} to {shown.min():.3g}" if shown.size else "without weights"


def c_path(
    cls: type[Any], X: Any, y: Any, Cs: Sequence[float] | int, sample_weight: Any, parameters: dict[str, Any]
) -> CPath:
    """Fit ``cls`` for each value of ``C``, from the smallest, each from the last one's solution."""
    refused = {"C", "warm_start"} & set(parameters)
    if refused:
        raise ValueError(f"path sets {', '.join(sorted(refused))} itself: give the values of C as Cs.")
    values = np.logspace(-4, 4, Cs) if isinstance(Cs, int) else np.sort(np.asarray(Cs, dtype=np.float64))
    if values.ndim != 1 or values.shape[0] == 0 or not np.all((values > 0) & np.isfinite(values)):
        raise ValueError(f"Cs must be one or more finite numbers above 0; got {Cs!r}.")
    model = cls(warm_start=True, **parameters)
    coefs, intercepts, margins, certificates = [], [], [], []
    with Guard():  # Ctrl-C ends the path, and leaves what has been fitted until then
        for C in values:
            model.set_params(C=float(C)).fit(X, y, sample_weight=sample_weight)
            coefs.append(np.array(model.coef_))
            intercepts.append(np.array(model.intercept_))
            with np.errstate(divide="ignore"):
                margins.append(2.0 / np.linalg.norm(coefs[-1].astype(np.float64), axis=1))
            certificates.append(model.certificate_)
            if model.certificate_.status == "interrupted":
                break
    names = getattr(model, "feature_names_in_", None)
    return CPath(
        values[: len(certificates)],
        np.array(coefs),
        np.array(intercepts),
        np.array(margins),
        np.array([c.primal for c in certificates]),
        tuple(certificates),
        model.classes_,
        None if names is None else tuple(map(str, names)),
        cls.__name__,
    )


class _ClassOrModel(classmethod):  # type: ignore[type-arg]
    """A class method that keeps to the parameters of a model it is called on, instead of forgetting them."""

    def __get__(self, model: Any, owner: Any = None) -> Any:
        bound = super().__get__(model, owner)
        if model is None:
            return bound
        own = model.get_params(deep=False)
        return partial(bound, **{name: own[name] for name in own.keys() - {"C", "warm_start"}})


class PathOverC:
    """Gives a linear classifier with ``C`` and ``warm_start`` its path."""

    @_ClassOrModel
    def path(
        cls: Any,  # noqa: N805
        /,
        X: Any,
        y: Any,
        Cs: Sequence[float] | int = 20,
        *,
        sample_weight: Any = None,
        **parameters: Any,
    ) -> CPath:
        """Fit for growing ``C``, each fit from the last one's solution and each certified.

        Called on a model instead of its class, it takes the model's parameters other than ``C``, which stays
        as it is.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples.
        y : array-like of shape (n,)
            Labels.
        Cs : sequence of float or int
            Values of ``C``; a number means so many from 1e-4 to 1e4.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples.
        **parameters
            Other parameters of the estimator; ``max_iter`` and ``max_time`` count for each ``C``. One
            Ctrl-C ends the path with the fit that it ends.

        Returns
        -------
        CPath
            Weights, margin widths, objectives and certificates; ``separatrix.plot.path`` draws it.

        Examples
        --------
        >>> import separatrix as sx
        >>> path = sx.LinearSVC.path([[-1.0], [0.5], [1.0]], [0, 1, 1], [0.1, 1.0, 10.0], loss="hinge")
        >>> path.coefs.shape, [c.status for c in path.certificates]
        ((3, 1, 1), ['converged', 'converged', 'converged'])
        """
        return c_path(cls, X, y, Cs, sample_weight, parameters)
