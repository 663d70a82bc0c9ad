"""The libraries that are compared with, and those among them that are no estimators in the clothes of one."""

import os
from abc import ABC, abstractmethod
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

PACKAGES = {
    "scikit-learn": "sklearn",
    "scikit-learn-intelex": "sklearnex",
    "libsvm-official": "libsvm",
    "liblinear-official": "liblinear",
    "skglm": "skglm",
    "faiss-cpu": "faiss",
}
"""Peers as pip knows them, and the modules that they are imported by."""


def has(package: str) -> bool:
    return find_spec(PACKAGES[package]) is not None


def missing() -> list[str]:
    return [package for package in PACKAGES if not has(package)]


def versions() -> dict[str, str]:
    """Version of each peer, or that it is not there."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package) if has(package) else "not installed"
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


class _Official(ABC):
    """LIBSVM or LIBLINEAR through its own Python module.

    Its form of the data is made once, before the clock starts: a user of that library has data in it already.
    Classes are numbered, so that it takes any labels.
    """

    _classifies = True
    _kept: tuple[Any, Any, Any, Any] | None = None  # data, labels, the classes and the library's form

    def prepare(self, X: Any, y: np.ndarray) -> None:
        kept = type(self)._kept
        if kept is None or kept[0] is not X or kept[1] is not y:
            classes, codes = np.unique(y, return_inverse=True)
            values = codes.astype(np.float64) if self._classifies else y.astype(np.float64)
            kept = type(self)._kept = (
                X,
                y,
                classes,
                self._form(values, sparse.csr_matrix(X, dtype=np.float64)),
            )
        self.classes_, self._problem = kept[2:]

    @abstractmethod
    def _form(self, values: np.ndarray, rows: Any) -> Any:
        """The library's own form of the data."""


class _Libsvm(_Official):
    """With all cores LIBSVM starts threads for every row of kernel values, so that one may be the faster."""

    threads: int | None
    _limit: int | None = None

    def prepare(self, X: Any, y: np.ndarray) -> None:
        super().prepare(X, y)
        from libsvm import svm  # noqa: F401  (its threads can be limited once it is loaded)
        from threadpoolctl import threadpool_limits

        wanted = self.threads or len(os.sched_getaffinity(0))
        if _Libsvm._limit != wanted:
            threadpool_limits(wanted, user_api="openmp")
            _Libsvm._limit = wanted

    def _form(self, values: np.ndarray, rows: Any) -> Any:
        from libsvm.svm import svm_problem

        return svm_problem(values, rows)

    def _train(self, X: Any, y: np.ndarray, kind: int, options: str) -> None:
        from libsvm.svm import svm_parameter
        from libsvm.svmutil import svm_train

        self.prepare(X, y)
        variance = _variance(X)
        words = f"-s {kind} -t 2 -g {1 / (X.shape[1] * variance)!r} -q {options}"
        self._model = svm_train(self._problem, svm_parameter(words))
        size = self._model.l
        self.support_ = np.array(self._model.get_sv_indices()) - 1
        self.support_vectors_ = X[self.support_]
        columns = [
            np.ctypeslib.as_array(self._model.sv_coef[row], (size,)).copy()
            for row in range(self._model.nr_class - 1)
        ]
        self.dual_coef_ = np.array(columns)

    def predict(self, X: Any) -> np.ndarray:
        from libsvm.svmutil import svm_predict

        found = np.array(svm_predict([], sparse.csr_matrix(X, dtype=np.float64), self._model, "-q")[0])
        return self.classes_[found.astype(int)] if self._classifies else found


class LibsvmSVC(_Libsvm):
    """LIBSVM's C-SVC with the Gaussian kernel at scikit-learn's width."""

    def __init__(
        self, C: float = 1.0, tol: float = 1e-3, cache_size: float = 200, threads: int | None = None
    ) -> None:
        self.C, self.tol, self.cache_size, self.threads = C, tol, cache_size, threads

    def fit(self, X: Any, y: np.ndarray) -> "LibsvmSVC":
        self._train(X, y, 0, f"-c {self.C!r} -e {self.tol!r} -m {self.cache_size}")
        self.n_support_ = np.array(self._model.nSV[: self._model.nr_class])
        return self


class LibsvmSVR(_Libsvm):
    """LIBSVM's ε-SVR, likewise."""

    _classifies = False

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.1,
        tol: float = 1e-3,
        cache_size: float = 200,
        threads: int | None = None,
    ) -> None:
        self.C, self.epsilon, self.tol, self.cache_size, self.threads = C, epsilon, tol, cache_size, threads

    def fit(self, X: Any, y: np.ndarray) -> "LibsvmSVR":
        self._train(X, y, 3, f"-c {self.C!r} -p {self.epsilon!r} -e {self.tol!r} -m {self.cache_size}")
        return self


class LiblinearSVC(_Official):
    """LIBLINEAR's L2-penalised machine with a penalised intercept, as scikit-learn's LinearSVC."""

    def __init__(
        self, C: float = 1.0, loss: str = "squared_hinge", dual: bool = True, tol: float | None = None
    ) -> None:
        self.C, self.loss, self.dual, self.tol = C, loss, dual, tol

    def _form(self, values: np.ndarray, rows: Any) -> Any:
        from liblinear.liblinear import problem

        return problem(values, rows, bias=1)

    def fit(self, X: Any, y: np.ndarray) -> "LiblinearSVC":
        from liblinear.liblinear import parameter
        from liblinear.liblinearutil import train

        self.prepare(X, y)
        kind = 3 if self.loss == "hinge" else 1 if self.dual else 2
        words = f"-s {kind} -c {self.C!r} -B 1 -q" + ("" if self.tol is None else f" -e {self.tol!r}")
        model = train(self._problem, parameter(words))
        columns = 1 if model.nr_class == 2 else model.nr_class
        W = np.ctypeslib.as_array(model.w, ((X.shape[1] + 1) * columns,)).reshape(-1, columns).T.copy()
        labels = np.array(model.get_labels())
        # LIBLINEAR orders classes as they appear, and its two-class score is that of the first.
        W = (W if labels[0] == 1 else -W) if columns == 1 else W[np.argsort(labels)]
        self.coef_, self.intercept_ = W[:, :-1], W[:, -1]
        return self

    def predict(self, X: Any) -> np.ndarray:
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return self.classes_[
            (scores[:, 0] >= 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        ]


class SkglmL1:
    """skglm's L1-penalised logistic regression, its mean loss at the C of ours."""

    def __init__(self, C: float = 1.0, tol: float = 1e-4) -> None:
        self.C, self.tol = C, tol

    _compiled: frozenset[bool] = frozenset()  # for dense data, for sparse data

    def prepare(self, X: Any, y: np.ndarray) -> None:
        """Let numba compile: a cost of the first call in a process, not of a fit."""
        if sparse.issparse(X) not in SkglmL1._compiled:
            SkglmL1._compiled |= {sparse.issparse(X)}
            few = np.concatenate([np.flatnonzero(y == label)[:50] for label in np.unique(y)])
            self.fit(X[few], y[few])

    def fit(self, X: Any, y: np.ndarray) -> "SkglmL1":
        from skglm import SparseLogisticRegression

        X = X.tocsc() if sparse.issparse(X) else X
        model = SparseLogisticRegression(alpha=1 / (self.C * X.shape[0]), tol=self.tol, max_iter=100)
        model.fit(X, y)
        self.coef_, self.intercept_ = model.coef_.reshape(1, -1), np.ravel(model.intercept_)
        self._model = model
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self._model.predict(X)


class FlatIndex:
    """Exact search by faiss (``IndexFlatL2``), and the vote of the labels that it finds."""

    def __init__(self, n_neighbors: int = 5) -> None:
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: np.ndarray) -> "FlatIndex":
        import faiss

        self.classes_, self._codes = np.unique(y, return_inverse=True)
        self._index = faiss.IndexFlatL2(X.shape[1])
        self._index.add(np.ascontiguousarray(X, dtype=np.float32))
        return self

    def predict(self, X: Any) -> np.ndarray:
        _, found = self._index.search(np.ascontiguousarray(X, dtype=np.float32), self.n_neighbors)
        votes = np.zeros((found.shape[0], len(self.classes_)), dtype=np.int32)
        np.add.at(votes, (np.arange(found.shape[0])[:, None], self._codes[found]), 1)
        return self.classes_[votes.argmax(axis=1)]


def _variance(X: Any) -> float:
    """Variance of all entries, zeros of sparse rows included."""
    if not sparse.issparse(X):
        return float(X.var(dtype=np.float64))
    size = X.shape[0] * X.shape[1]
    data = X.data.astype(np.float64)
    return float(np.sum(data * data) / size - (data.sum() / size) ** 2)
