"""Loss functions of the margin and of the residual, side by side.

A loss for classes is a function of the margin ``m = y f(x)`` with ``y`` in {-1, +1}: positive margins lie on
the right side of the boundary. A loss for numbers is a function of the residual ``r = f(x) - y``, the same
for ``-r``; with codes ``y`` in {-1, +1} it serves classes too, since then ``r = y (m - 1)``. Every row of the
table gives, as vectorised functions (of ``m``; for the residual put ``r``),

- ``value(m)``: the loss ``l(m)``;
- ``slope(m)``: its derivative, or at a kink the subgradient that training uses;
- ``curvature(m)``: its second derivative, or at a kink the one from the side of larger margins;
- ``conjugate(a)``: ``l*(a) = sup_m (a m - l(m))``, ``+inf`` outside its domain, which turns dual variables
  into certified bounds. Fenchel-Young: ``l(m) + l*(a) >= a m``, with equality for ``a = slope(m)``.

Conventions at the kinks. A point exactly on the boundary has no sign, so training counts it as an error: the
0-1 loss is 1 and the perceptron's slope is -1 at ``m = 0``. A point exactly on the margin needs no more work:
the hinge's slope is 0 at ``m = 1``. So is the epsilon-insensitive loss's at ``|r| = epsilon``.

float32 and float64 go in and come out unchanged; everything else is computed in float64.

Examples
--------
>>> from separatrix.losses import get_loss
>>> hinge = get_loss("hinge")
>>> hinge.formula
'max(0, 1 - m)'
>>> hinge.value([-1.0, 0.0, 2.0])
array([2., 1., 0.])
>>> hinge.slope([-1.0, 1.0, 2.0])
array([-1.,  0.,  0.])
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["LOSSES", "Loss", "get_loss", "softmax"]

Values = Any
"""An array of the precision and shape of the argument, or a NumPy scalar where that is a scalar."""

LossFunction = Callable[[ArrayLike], Values]


@dataclass(frozen=True)
class Loss:
    """One row of the loss table.

    Parameters
    ----------
    name : str
        The key in `LOSSES`.
    formula : str
        The loss as text, with ``m`` for the margin or ``r`` for the residual.
    value, slope, curvature : callable
        Functions of the margin or residual, see the module's description.
    conjugate : callable or None
        The convex conjugate, or None where the loss is not convex.
    smooth : bool
        Whether the slope is continuous.
    convex : bool
        Whether the loss is convex.
    of : {"margin", "residual"}
        What the loss is a function of.
    epsilon : float or None
        Its width, for the losses that have one.

    Examples
    --------
    >>> from separatrix.losses import LOSSES
    >>> LOSSES["logistic"]
    Loss(name='logistic', formula='ln(1 + exp(-m))', smooth=True, convex=True, of='margin', epsilon=None)
    """

    name: str
    formula: str
    value: LossFunction = field(repr=False)
    slope: LossFunction = field(repr=False)
    curvature: LossFunction = field(repr=False)
    conjugate: LossFunction | None = field(repr=False)
    smooth: bool
    convex: bool
    of: str = "margin"
    epsilon: float | None = None

    def with_epsilon(self, epsilon: float) -> "Loss":
        """Return the same loss with another width; one without a width is returned as it is."""
        if self.epsilon is None:
            return self
        changed: dict[str, Any] = {
            name: replace(function, epsilon=epsilon)
            for name, function in vars(self).items()
            if isinstance(function, _WithEpsilon)
        }
        return replace(self, epsilon=epsilon, **changed)


@dataclass(frozen=True)
class _WithEpsilon:
    """A formula with its width put in; it compares and pickles by value."""

    formula: Callable[[ArrayLike, float], Values]
    epsilon: float

    def __call__(self, argument: ArrayLike) -> Values:
        return self.formula(argument, self.epsilon)


def _floating(values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _choose(condition: Values, yes: Values, no: Values, like: NDArray[Any]) -> Values:
    """Do as ``np.where``, in the precision of `like`; scalars stay scalars."""
    return np.asarray(np.where(condition, yes, no), dtype=like.dtype)[()]


def _zero(margin: ArrayLike) -> Values:
    return np.zeros_like(_floating(margin))[()]


def _two(margin: ArrayLike) -> Values:
    return np.full_like(_floating(margin), 2)[()]


def _zero_one_value(margin: ArrayLike) -> Values:
    m = _floating(margin)
    return _choose(m > 0, 0.0, 1.0, m)


def _perceptron_value(margin: ArrayLike) -> Values:
    m = _floating(margin)
    return np.maximum(-m, m.dtype.type(0))


def _perceptron_slope(margin: ArrayLike) -> Values:
    m = _floating(margin)
    return _choose(m > 0, 0.0, -1.0, m)


def _perceptron_conjugate(dual: ArrayLike) -> Values:
    a = _floating(dual)
    return _choose((a >= -1) & (a <= 0), 0.0, np.inf, a)


def _hinge_value(margin: ArrayLike) -> Values:
    m = _floating(margin)
    return np.maximum(m.dtype.type(1) - m, m.dtype.type(0))


def _hinge_slope(margin: ArrayLike) -> Values:
    m = _floating(margin)
    return _choose(m < 1, -1.0, 0.0, m)


def _hinge_conjugate(dual: ArrayLike) -> Values:
    a = _floating(dual)
    return _choose((a >= -1) & (a <= 0), a, np.inf, a)


def _squared_hinge_value(margin: ArrayLike) -> Values:
    return np.square(_hinge_value(margin))


def _squared_hinge_slope(margin: ArrayLike) -> Values:
    m = _floating(margin)
    return np.minimum(_squared_slope(m), m.dtype.type(0))


def _squared_hinge_curvature(margin: ArrayLike) -> Values:
    m = _floating(margin)
    return _choose(m < 1, 2.0, 0.0, m)


def _squared_hinge_conjugate(dual: ArrayLike) -> Values:
    a = _floating(dual)
    return _choose(a <= 0, _squared_conjugate(a), np.inf, a)


def _logistic_value(margin: ArrayLike) -> Values:
    m = _floating(margin)
    # Only exponentials of negative numbers: exp(-m) itself overflows for m below -709 (float32: -88).
    return np.maximum(-m, m.dtype.type(0)) + np.log1p(np.exp(-np.abs(m)))


def _logistic_slope(margin: ArrayLike) -> Values:
    m = _floating(margin)
    small = np.exp(-np.abs(m))
    return -_choose(m > 0, small, 1.0, m) / (m.dtype.type(1) + small)


def _logistic_curvature(margin: ArrayLike) -> Values:
    m = _floating(margin)
    small = np.exp(-np.abs(m))
    return small / np.square(m.dtype.type(1) + small)


def _logistic_conjugate(dual: ArrayLike) -> Values:
    a = _floating(dual)
    inside = (a >= -1) & (a <= 0)
    p = -_choose(inside, a, 0.0, a)
    one = a.dtype.type(1)
    # p ln p + (1 - p) ln(1 - p), with 0 ln 0 = 0: where p is 0 or 1 the logarithm gets a 1 instead.
    entropy = p * np.log(_choose(p > 0, p, 1.0, a)) + (one - p) * np.log1p(-_choose(p < 1, p, 0.0, a))
    return _choose(inside, entropy, np.inf, a)


def _squared_value(margin: ArrayLike) -> Values:
    m = _floating(margin)
    return np.square(m.dtype.type(1) - m)


def _squared_slope(margin: ArrayLike) -> Values:
    m = _floating(margin)
    return m.dtype.type(-2) * (m.dtype.type(1) - m)


def _squared_conjugate(dual: ArrayLike) -> Values:
    a = _floating(dual)
    return a + np.square(a) / a.dtype.type(4)


def _modified_huber_value(margin: ArrayLike) -> Values:
    m = _floating(margin)
    return _choose(m < -1, m.dtype.type(-4) * m, _squared_hinge_value(m), m)


def _modified_huber_slope(margin: ArrayLike) -> Values:
    m = _floating(margin)
    return np.maximum(_squared_hinge_slope(m), m.dtype.type(-4))


def _modified_huber_curvature(margin: ArrayLike) -> Values:
    m = _floating(margin)
    return _choose((m >= -1) & (m < 1), 2.0, 0.0, m)


def _modified_huber_conjugate(dual: ArrayLike) -> Values:
    a = _floating(dual)
    return _choose(a >= -4, _squared_hinge_conjugate(a), np.inf, a)


def _squared_error_value(residual: ArrayLike) -> Values:
    r = _floating(residual)
    return r.dtype.type(0.5) * np.square(r)


def _squared_error_slope(residual: ArrayLike) -> Values:
    return _floating(residual).copy()[()]


def _one(residual: ArrayLike) -> Values:
    return np.ones_like(_floating(residual))[()]


def _huber_value(residual: ArrayLike, epsilon: float) -> Values:
    size = np.abs(_floating(residual))
    inside = np.minimum(size, size.dtype.type(epsilon))
    return inside * (size - size.dtype.type(0.5) * inside)


def _huber_slope(residual: ArrayLike, epsilon: float) -> Values:
    r = _floating(residual)
    edge = r.dtype.type(epsilon)  # NumPy before 2 would give a scalar the type of a Python number
    return np.clip(r, -edge, edge)


def _huber_curvature(residual: ArrayLike, epsilon: float) -> Values:
    r = _floating(residual)
    return _choose((r >= -epsilon) & (r < epsilon), 1.0, 0.0, r)


def _huber_conjugate(dual: ArrayLike, epsilon: float) -> Values:
    a = _floating(dual)
    return _choose(np.abs(a) <= epsilon, _squared_error_value(a), np.inf, a)


def _epsilon_insensitive_value(residual: ArrayLike, epsilon: float) -> Values:
    r = _floating(residual)
    return np.maximum(np.abs(r) - r.dtype.type(epsilon), r.dtype.type(0))


def _epsilon_insensitive_slope(residual: ArrayLike, epsilon: float) -> Values:
    r = _floating(residual)
    return _choose(np.abs(r) > epsilon, np.sign(r), 0.0, r)


def _epsilon_insensitive_curvature(residual: ArrayLike, epsilon: float) -> Values:
    return _zero(residual)


def _epsilon_insensitive_conjugate(dual: ArrayLike, epsilon: float) -> Values:
    a = _floating(dual)
    return _choose(np.abs(a) <= 1, a.dtype.type(epsilon) * np.abs(a), np.inf, a)


def _squared_epsilon_insensitive_value(residual: ArrayLike, epsilon: float) -> Values:
    return np.square(_epsilon_insensitive_value(residual, epsilon))


def _squared_epsilon_insensitive_slope(residual: ArrayLike, epsilon: float) -> Values:
    r = _floating(residual)
    return r.dtype.type(2) * np.sign(r) * _epsilon_insensitive_value(r, epsilon)


def _squared_epsilon_insensitive_curvature(residual: ArrayLike, epsilon: float) -> Values:
    r = _floating(residual)
    return _choose((r < -epsilon) | (r >= epsilon), 2.0, 0.0, r)


def _squared_epsilon_insensitive_conjugate(dual: ArrayLike, epsilon: float) -> Values:
    a = _floating(dual)
    return a.dtype.type(epsilon) * np.abs(a) + np.square(a) / a.dtype.type(4)


def _with_epsilon(
    name: str, formula: str, *functions: Callable[[ArrayLike, float], Values], smooth: bool
) -> Loss:
    """Return a row of a loss of the residual with scikit-learn's usual width."""
    value, slope, curvature, conjugate = (_WithEpsilon(function, 0.1) for function in functions)
    return Loss(name, formula, value, slope, curvature, conjugate, smooth, True, "residual", 0.1)


_ROWS = (
    Loss("zero_one", "1 if m <= 0 else 0", _zero_one_value, _zero, _zero, None, smooth=False, convex=False),
    Loss(
        "perceptron",
        "max(0, -m)",
        _perceptron_value,
        _perceptron_slope,
        _zero,
        _perceptron_conjugate,
        smooth=False,
        convex=True,
    ),
    Loss(
        "hinge",
        "max(0, 1 - m)",
        _hinge_value,
        _hinge_slope,
        _zero,
        _hinge_conjugate,
        smooth=False,
        convex=True,
    ),
    Loss(
        "squared_hinge",
        "max(0, 1 - m)^2",
        _squared_hinge_value,
        _squared_hinge_slope,
        _squared_hinge_curvature,
        _squared_hinge_conjugate,
        smooth=True,
        convex=True,
    ),
    Loss(
        "logistic",
        "ln(1 + exp(-m))",
        _logistic_value,
        _logistic_slope,
        _logistic_curvature,
        _logistic_conjugate,
        smooth=True,
        convex=True,
    ),
    Loss(
        "squared",
        "(1 - m)^2",
        _squared_value,
        _squared_slope,
        _two,
        _squared_conjugate,
        smooth=True,
        convex=True,
    ),
    Loss(
        "modified_huber",
        "max(0, 1 - m)^2 if m >= -1 else -4 m",
        _modified_huber_value,
        _modified_huber_slope,
        _modified_huber_curvature,
        _modified_huber_conjugate,
        smooth=True,
        convex=True,
    ),
    Loss(
        "squared_error",
        "r^2 / 2",
        _squared_error_value,
        _squared_error_slope,
        _one,
        _squared_error_value,
        smooth=True,
        convex=True,
        of="residual",
    ),
    _with_epsilon(
        "huber",
        "r^2 / 2 if |r| <= epsilon else epsilon (|r| - epsilon / 2)",
        _huber_value,
        _huber_slope,
        _huber_curvature,
        _huber_conjugate,
        smooth=True,
    ),
    _with_epsilon(
        "epsilon_insensitive",
        "max(0, |r| - epsilon)",
        _epsilon_insensitive_value,
        _epsilon_insensitive_slope,
        _epsilon_insensitive_curvature,
        _epsilon_insensitive_conjugate,
        smooth=False,
    ),
    _with_epsilon(
        "squared_epsilon_insensitive",
        "max(0, |r| - epsilon)^2",
        _squared_epsilon_insensitive_value,
        _squared_epsilon_insensitive_slope,
        _squared_epsilon_insensitive_curvature,
        _squared_epsilon_insensitive_conjugate,
        smooth=True,
    ),
)

LOSSES: Mapping[str, Loss] = MappingProxyType({row.name: row for row in _ROWS})
"""Every loss by name: the one table behind solvers, certificates, plots and documentation."""


def get_loss(name: str) -> Loss:
    """Look up a loss by name.

    Parameters
    ----------
    name : str
        One of the keys of `LOSSES`.

    Returns
    -------
    Loss

    Raises
    ------
    ValueError
        If no loss has that name; the message lists those that exist.

    Examples
    --------
    >>> from separatrix.losses import get_loss
    >>> float(get_loss("squared").value(3.0))
    4.0
    """
    try:
        return LOSSES[name]
    except (KeyError, TypeError):
        raise ValueError(f"unknown loss {name!r}; choose one of {', '.join(LOSSES)}") from None


def softmax(scores: NDArray[Any]) -> NDArray[Any]:
    """Turn rows of scores into probabilities ``e^{f_k} / Σ_l e^{f_l}``, in place.

    Examples
    --------
    >>> import numpy as np
    >>> softmax(np.array([[1e4, 1e4], [0.0, -1e4]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores
