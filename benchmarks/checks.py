"""What a fitted model is worth, by formulas of no library: speed counts only at an equal value."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
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


def ridge(model: Any, X: Any, y: np.ndarray) -> float:
    """Σ ‖t - f‖² + α‖W‖² with targets ±1, one column for two classes and one per class for more."""
    loss = 0.0
    for scores, places in _blocks(model, X, y):
        columns = np.array([1]) if scores.shape[1] == 1 else np.arange(scores.shape[1])
        targets = np.where(places[:, None] == columns, 1.0, -1.0)
        loss += np.square(targets - scores).sum()
    return float(loss) + model.alpha * _penalty(model)


def training_error(model: Any, X: Any, y: np.ndarray) -> float:
    """Part of the samples that the model gets wrong."""
    return float(np.mean(model.predict(X) != y))


@dataclass(frozen=True)
class Check:
    """A value, the smaller the better, and how much larger than the peer's it may be."""

    value: Callable[[Any, Any, np.ndarray], float]
    allowed: float
    relative: bool

    def excess(self, ours: float, theirs: float) -> float:
        return (ours - theirs) / abs(theirs) if self.relative else ours - theirs


CHECKS = {"objective": Check(logistic, 1e-4, True), "ridge objective": Check(ridge, 1e-4, True),
          "training error": Check(training_error, 1e-3, False)}
