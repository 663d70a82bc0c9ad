"""Models as ONNX graphs: scores, decisions and probabilities."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from separatrix.persistence._container import ModelFileError
from separatrix.persistence._onnx_graph import Graph, kernel_values
from separatrix.persistence._onnx_neighbors import neighbors

#: As in `separatrix.solvers.platt`: pairwise probabilities stay so far from 0 and 1; ties go to the decision.
_CLIP, _TIE = 1e-7, 1e-6
_REGRESSORS = ("LinearSVR", "NuSVR", "SGDRegressor", "SVR")
_LOGITS = (
    "GaussianClassifier",
    "LinearDiscriminantAnalysis",
    "LogisticRegression",
    "QuadraticDiscriminantAnalysis",
)


def add_model(graph: Graph, model: Any, X: str) -> list[str]:
    """Add the model itself; return the names of its outputs."""
    name = type(model).__name__
    if hasattr(model, "_fit_X"):
        return neighbors(graph, model, X)
    if name in _REGRESSORS:
        graph.add("Squeeze", columns_of(graph, model, X), np.array([1]), output="prediction")
        return ["prediction"]
    if name == "OneClassSVM":
        graph.add("Squeeze", columns_of(graph, model, X), np.array([1]), output="scores")
        inside = graph.add("Cast", graph.add("GreaterOrEqual", "scores", 0.0), to=7)
        graph.add("Gather", np.array([-1, 1]), inside, output="label")
        return ["label", "scores"]
    if not hasattr(model, "classes_") or getattr(model, "multilabel_", False):
        raise ModelFileError(
            f"export to ONNX does not know {name}" + " with several labels" * hasattr(model, "classes_")
        )
    columns = columns_of(graph, model, X)
    coding = model._coding
    two = coding.n_classes == 2
    if two:
        if coding.joint:
            columns = graph.product(columns, np.array([[-1.0], [1.0]]))
        graph.add("Squeeze", columns, np.array([1]), output="scores")
        number = graph.add("Cast", graph.add("GreaterOrEqual", "scores", 0.0), to=7)
    else:
        deciding = "scores"
        if coding.name == "ovo":
            votes = _votes(graph, coding, columns)
            deciding = "scores" if getattr(model, "break_ties", True) else votes
        else:
            graph.add("Identity", columns, output="scores")
        number = graph.add("ArgMax", deciding, axis=1, keepdims=0)
    graph.labels(model.classes_, number)
    if name in _LOGITS or (name == "SGDClassifier" and model.loss == "log_loss"):
        _probabilities(graph, two, name != "SGDClassifier" and coding.joint, columns)
        return ["label", "scores", "probabilities"]
    if np.size(getattr(model, "probA_", ())) == 0:
        return ["label", "scores"]
    _calibrated(graph, model, columns, number)
    return ["label", "scores", "probabilities"]


def columns_of(graph: Graph, model: Any, X: str) -> str:
    """Add the score columns."""
    if hasattr(model, "dual_coef_"):
        if hasattr(model, "_check_structure"):  # not a kernel perceptron
            model._check_whole()
            model._check_structure()
        dual = (
            model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else np.asarray(model.dual_coef_)
        )
        weights = model._pair_columns(dual) if getattr(model, "_by_pairs", False) else dual.T
        precomputed = getattr(model.kernel_, "precomputed", False)
        vectors = model.support_ if precomputed else model.support_vectors_
        values = kernel_values(graph, model.kernel_, X, vectors)
        return graph.add("Add", graph.product(values, weights), np.asarray(model.intercept_))
    if hasattr(model, "coef_"):
        coef = model.coef_.toarray() if sparse.issparse(model.coef_) else np.asarray(model.coef_)
        intercept = np.zeros(np.atleast_2d(coef).shape[0]) + np.asarray(model.intercept_, dtype=np.float64)
        return graph.add("Add", graph.product(X, np.atleast_2d(coef).T.astype(np.float64)), intercept)
    if np.ndim(getattr(model, "whitening_", 0)) == 3:
        return _quadratic(graph, model, X)
    raise ModelFileError(f"export to ONNX does not know {type(model).__name__} with these parameters")


def _quadratic(graph: Graph, model: Any, X: str) -> str:
    """Add logarithms of the joint densities of Gaussian classes, each with its own covariance."""
    parts = []
    for mean, whitening in zip(model.means_, model.whitening_, strict=True):
        Z = graph.product(graph.add("Sub", X, mean), np.asarray(whitening))
        parts.append(graph.sum(graph.add("Mul", Z, Z), 1, keep=True))
    square = graph.add("Concat", *parts, axis=1)
    # The scores of QuadraticDiscriminantAnalysis are scikit-learn's, without what all classes share.
    shared = type(model).__name__ != "QuadraticDiscriminantAnalysis"
    shift = model.means_.shape[1] * np.log(2 * np.pi) if shared else 0.0
    constant = np.log(model.priors_.astype(np.float64)) - 0.5 * (np.asarray(model.log_det_) + shift)
    joint = graph.add("Add", graph.add("Mul", square, -0.5), constant)
    return graph.product(joint, np.array([[-1.0], [1.0]])) if len(parts) == 2 else joint


def _votes(graph: Graph, coding: Any, columns: str) -> str:
    """Add the votes of pairs of classes, and as scores these with the bounded sum of the pairs' scores."""
    codes = coding.codes.T.astype(np.float64)
    given = graph.add("Cast", graph.add("GreaterOrEqual", columns, 0.0), to=11)
    votes = graph.add("Add", graph.product(given, codes), (codes < 0).sum(axis=0).astype(np.float64))
    total = graph.product(columns, codes)
    bound = graph.add("Mul", graph.add("Add", graph.add("Abs", total), 1.0), 3.0)
    graph.add("Add", votes, graph.add("Div", total, bound), output="scores")
    return votes


def _probabilities(graph: Graph, two: bool, joint: bool, columns: str) -> None:
    if two:
        both = graph.product(columns, np.array([[-1.0, 1.0]]))
        _sigmoid(graph, both, output="probabilities")
    elif joint:
        graph.add("Softmax", columns, axis=1, output="probabilities")
    else:
        graph.add("Identity", _normalised(graph, _sigmoid(graph, columns)), output="probabilities")


def _calibrated(graph: Graph, model: Any, columns: str, number: str) -> None:
    """Add a machine's probabilities: sigmoids, coupled over pairs, the largest that of the decision."""
    A, B = np.asarray(model.probA_, dtype=np.float64), np.asarray(model.probB_, dtype=np.float64)
    K = len(model.classes_)
    if K == 2 and hasattr(model, "dual_coef_"):  # there scikit-learn's sigmoid is that of the first class
        B = -B
    each = _sigmoid(graph, graph.add("Sub", graph.add("Mul", columns, -A), B))
    if K == 2:
        p = graph.add("Concat", graph.add("Sub", 1.0, each), each, axis=1)
    elif model._coding.name == "ovo":
        p = _coupled(graph, each, K)
    else:
        p = _normalised(graph, each)
    _agreeing(graph, p, number, K)


def _sigmoid(graph: Graph, scores: str, **named: Any) -> str:
    """Add ``1 / (1 + exp(−f))``; runtimes lose the digits of small values in their own operator for it."""
    return graph.add("Reciprocal", graph.add("Add", graph.add("Exp", graph.add("Neg", scores)), 1.0), **named)


def _normalised(graph: Graph, p: str) -> str:
    return graph.add("Div", p, graph.sum(p, 1, keep=True))


def _coupled(graph: Graph, each: str, K: int) -> str:
    """Add class probabilities from those of pairs: ``min pᵀQp`` with ``Σp = 1``.

    Its solution is a multiple of that of ``(Q + 11ᵀ) p = 1``. This matrix is positive definite, so that
    elimination needs no pivots, and is a fixed chain of operators.
    """
    r = graph.add("Min", graph.add("Max", each, _CLIP), 1 - _CLIP)
    zero = graph.add("Mul", graph.add("Gather", r, np.array([0]), axis=1), 0.0)
    pairs = list(combinations(range(K), 2))
    place = np.full((K, K), 2 * len(pairs))
    for position, (i, j) in enumerate(pairs):
        place[i, j], place[j, i] = position, len(pairs) + position
    R = graph.add("Gather", graph.add("Concat", r, graph.add("Sub", 1.0, r), zero, axis=1), place, axis=1)
    diagonal = graph.add("Mul", graph.sum(graph.add("Mul", R, R), 1, keep=True), np.eye(K))
    Q = graph.add("Sub", diagonal, graph.add("Mul", R, graph.add("Transpose", R, perm=[0, 2, 1])))
    one = graph.add("Add", graph.sum(graph.add("Mul", R, 0.0), 2, keep=True), 1.0)
    system = graph.add("Concat", graph.add("Add", Q, 1.0), one, axis=2)
    for k in range(K):
        row = graph.add("Gather", system, np.array([k]), axis=1)
        row = graph.add("Div", row, graph.add("Gather", row, np.array([k]), axis=2))
        column = graph.add("Gather", system, np.array([k]), axis=2)
        multiple = graph.add("Sub", column, np.eye(K)[:, [k]])
        system = graph.add("Sub", system, graph.add("Mul", multiple, row))
    p = graph.add("Squeeze", graph.add("Gather", system, np.array([K]), axis=2), np.array([2]))
    return _normalised(graph, graph.add("Max", p, 0.0))


def _agreeing(graph: Graph, p: str, number: str, K: int) -> None:
    """Add the nearest probabilities whose largest is that of the decision (`agree` in `solvers.platt`)."""
    chosen = graph.add("Equal", graph.add("Unsqueeze", number, np.array([1])), np.arange(K))
    own = graph.sum(graph.add("Where", chosen, p, 0.0), 1, keep=True)
    smallest, _ = graph.least(graph.add("Neg", graph.add("Where", chosen, -1.0, p)), K - 1)
    ranked = graph.add("Neg", smallest)
    means = graph.add("Add", graph.product(ranked, np.triu(np.ones((K - 1, K - 1)))), own)
    means = graph.add("Div", means, np.arange(2.0, K + 1))
    last = graph.add("Sub", graph.add("Mul", own, 0.0), 2.0)
    following = graph.add("Gather", graph.add("Concat", ranked, last, axis=1), np.arange(1, K), axis=1)
    enough = graph.add("Cast", graph.add("GreaterOrEqual", means, following), to=11)
    count = graph.add("ArgMax", enough, axis=1, keepdims=1)
    shared = graph.add("GatherElements", means, count, axis=1)
    moved = graph.add("Where", chosen, shared, graph.add("Min", p, shared))
    wrong = graph.add("Greater", graph.add("Gather", ranked, np.array([0]), axis=1), own)
    nearest = graph.add("Mul", graph.add("Where", wrong, moved, p), 1.0 - _TIE)
    tie = graph.add("Mul", graph.add("Add", p, graph.add("Cast", chosen, to=11)), 0.5 * _TIE)
    graph.add("Add", nearest, tie, output="probabilities")
