"""What a fitted model is worth, by formulas of no library: speed counts only at an equal value."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

_ROWS_AT_ONCE = 20_000


def _blocks(model: Any, X: Any, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Scores in double precision, one column for two classes, and each label's place among the classes."""
    weights = np.asarray(model.coef_, dtype=np.float64).reshape(-1, X.shape[1])
    intercepts = np.asarray(model.intercept_, dtype=np.float64)
    places = np.unique(y, return_inverse=True)[1]
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        yield X[rows].astype(np.float64) @ weights.T + intercepts, places[rows]


def _penalty(model: Any) -> float:
    return float(np.sum(np.square(model.coef_, dtype=np.float64)))


def logistic(model: Any, X: Any, y: np.ndarray) -> float:
    """½‖W‖² + C Σ ln(1 + exp(-y f)), with softmax and the class's own score for more than two classes."""
    loss = 0.0
    for scores, places in _blocks(model, X, y):
        if scores.shape[1] == 1:
            loss += np.logaddexp(0.0, np.where(places == 1, -1.0, 1.0) * scores[:, 0]).sum()
        else:
            loss += (logsumexp(scores, axis=1) - scores[np.arange(len(places)), places]).sum()
    return _penalty(model) / 2 + model.C * float(loss)


def logistic_l1(model: Any, X: Any, y: np.ndarray) -> float:
    """‖w‖₁ + C Σ ln(1 + exp(-y f)), two classes, an intercept without a penalty."""
    norm = float(np.sum(np.abs(np.asarray(model.coef_, dtype=np.float64))))
    return norm + logistic(model, X, y) - _penalty(model) / 2


def ridge(model: Any, X: Any, y: np.ndarray) -> float:
    """Σ ‖t - f‖² + α‖W‖² with targets ±1, one column for two classes and one per class for more."""
    loss = 0.0
    for scores, places in _blocks(model, X, y):
        columns = np.array([1]) if scores.shape[1] == 1 else np.arange(scores.shape[1])
        targets = np.where(places[:, None] == columns, 1.0, -1.0)
        loss += np.square(targets - scores).sum()
    return float(loss) + model.alpha * _penalty(model)


def hinge(power: int, model: Any, X: Any, y: np.ndarray) -> float:
    """½(‖W‖² + ‖b‖²) + C Σ max(0, 1 - y f)^power, one class against the rest: a penalised intercept."""
    loss = 0.0
    for scores, places in _blocks(model, X, y):
        columns = np.array([1]) if scores.shape[1] == 1 else np.arange(scores.shape[1])
        signs = np.where(places[:, None] == columns, 1.0, -1.0)
        loss += (np.maximum(0.0, 1.0 - signs * scores) ** power).sum()
    return (_penalty(model) + float(np.sum(np.square(model.intercept_)))) / 2 + model.C * float(loss)


def _quadratic(gamma: float, rows: Any, coef: np.ndarray) -> float:
    """Σ c_i c_j exp(-γ‖x_i - x_j‖²) by blocks, in double precision."""
    rows = rows.astype(np.float64)
    norms = np.asarray((rows.multiply(rows) if sparse.issparse(rows) else rows * rows).sum(axis=1)).ravel()
    total = 0.0
    for start in range(0, rows.shape[0], 2000):
        block = slice(start, start + 2000)
        products = rows[block] @ rows.T
        products = products.toarray() if sparse.issparse(products) else products
        distances = np.maximum(norms[block, None] + norms - 2.0 * products, 0.0)
        total += float(coef[block] @ (np.exp(-gamma * distances) @ coef))
    return total


def support_vector_dual(model: Any, X: Any, y: np.ndarray) -> float:
    """-Σ over pairs of classes (Σα - ½ ΣΣ α_i α_j y_i y_j k(x_i, x_j)), from the returned coefficients."""
    gamma = 1.0 / (X.shape[1] * _variance(X))
    coef, rows = _dense(model.dual_coef_), model.support_vectors_
    ends = np.cumsum(model.n_support_)
    of = [slice(end - size, end) for end, size in zip(ends, model.n_support_, strict=True)]
    total = 0.0
    for first in range(len(of)):
        for second in range(first + 1, len(of)):
            # Row of a class's coefficients against another: the other's number, less one where it is later.
            pair = np.concatenate([coef[second - 1, of[first]], coef[first, of[second]]])
            both = np.r_[of[first], of[second]][pair != 0]
            pair = pair[pair != 0]
            total += _quadratic(gamma, rows[both], pair) / 2 - float(np.abs(pair).sum())
    return total


def regression_dual(model: Any, X: Any, y: np.ndarray) -> float:
    """½ ΣΣ β_i β_j k(x_i, x_j) + ε Σ|β| - Σ y β, from the returned coefficients."""
    gamma = 1.0 / (X.shape[1] * _variance(X))
    beta = _dense(model.dual_coef_).ravel()
    linear = model.epsilon * float(np.abs(beta).sum()) - float(y[model.support_] @ beta)
    return _quadratic(gamma, model.support_vectors_, beta) / 2 + linear


def _dense(coef: Any) -> np.ndarray:
    return np.asarray(coef.toarray() if sparse.issparse(coef) else coef, dtype=np.float64)


def _variance(X: Any) -> float:
    """Variance of all entries, zeros of sparse rows included."""
    if not sparse.issparse(X):
        return float(X.var(dtype=np.float64))
    size = X.shape[0] * X.shape[1]
    data = X.data.astype(np.float64)
    return float(np.sum(data * data) / size - (data.sum() / size) ** 2)


def sgd(loss: str, model: Any, X: Any, y: np.ndarray) -> float:
    """Mean loss + ½ α‖W‖², one class against the rest."""
    total = 0.0
    for scores, places in _blocks(model, X, y):
        columns = np.array([1]) if scores.shape[1] == 1 else np.arange(scores.shape[1])
        margins = np.where(places[:, None] == columns, 1.0, -1.0) * scores
        total += (np.maximum(0.0, 1.0 - margins) if loss == "hinge" else np.logaddexp(0.0, -margins)).sum()
    return float(total) / X.shape[0] + model.alpha * _penalty(model) / 2


def training_error_of_some(model: Any, X: Any, y: np.ndarray) -> float:
    """Part of at most 1,000 samples, evenly chosen, that the model gets wrong."""
    step = max(1, X.shape[0] // 1000)
    return training_error(model, X[::step], y[::step])


def training_error(model: Any, X: Any, y: np.ndarray) -> float:
    """Part of the samples that the model gets wrong."""
    return float(np.mean(model.predict(X) != y))


@dataclass(frozen=True)
class Check:
    """A value, the smaller the better, and how much larger than the peer's it may be."""

    value: Callable[[Any, Any, np.ndarray], float]
    allowed: float
    relative: bool
    orders: int = 1  # random orders of visit that it is the mean of, at least

    def known(self, values: list[float]) -> bool:
        """Whether the mean of some orders is off by chance by less than a third of what is allowed."""
        if self.orders == 1:
            return True
        error = float(np.std(values, ddof=1)) / len(values) ** 0.5
        return 3 * error <= self.allowed * (abs(float(np.mean(values))) if self.relative else 1.0)

    def excess(self, ours: float, theirs: float) -> float:
        return (ours - theirs) / abs(theirs) if self.relative else ours - theirs


CHECKS = {
    "objective": Check(logistic, 1e-4, True),
    "ridge objective": Check(ridge, 1e-4, True),
    "hinge objective": Check(partial(hinge, 1), 1e-4, True),
    "squared_hinge objective": Check(partial(hinge, 2), 1e-4, True),
    "dual objective": Check(support_vector_dual, 1e-4, True),
    "regression dual": Check(regression_dual, 1e-4, True),
    "L1 objective": Check(logistic_l1, 1e-4, True),
    # Passes in another order end elsewhere, a perceptron's error by some points: these are after the same few
    # passes, not at the solution, and the order of one seed would say little.
    "hinge after the passes": Check(partial(sgd, "hinge"), 0.05, True, orders=5),
    "log_loss after the passes": Check(partial(sgd, "log_loss"), 0.05, True, orders=5),
    "error after the passes": Check(training_error, 0.02, False, orders=5),
    "training error": Check(training_error, 1e-3, False),
    "training error of some": Check(training_error_of_some, 0.0, False),
}
