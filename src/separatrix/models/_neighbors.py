"""What models of nearest neighbours share: parameters, fit and search."""

from __future__ import annotations

import sys
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import MultiOutputMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted, check_non_negative

from separatrix.certificate import Certificate
from separatrix.data.memory import view_of
from separatrix.data.view import Array
from separatrix.models._base import CheckedOnce
from separatrix.models._validation import N_JOBS, check_samples
from separatrix.solvers._metrics import METRICS, named_metric, resolve_metric
from separatrix.solvers.neighbors import Search, graph_neighbors
from separatrix.solvers.votes import Weighting, neighbor_weights

#: Metrics that scikit-learn's trees know, and so those that ``algorithm=`` may name a tree for.
_KD_TREE = frozenset(
    {"euclidean", "l2", "minkowski", "p", "manhattan", "cityblock", "l1", "chebyshev", "infinity"}
)
_NO_TREE = frozenset({"correlation", "cosine", "precomputed", "sqeuclidean", "yule"})


def _theirs() -> Any:
    """Return scikit-learn's module of neighbours where somebody has loaded it: alone it doubles our start."""
    return sys.modules.get("sklearn.neighbors._base")


class NeighborsModel(MultiOutputMixin, CheckedOnce):  # type: ignore[misc]
    """Training samples that are searched for neighbours of new ones."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "distance"}), callable, None],
        "algorithm": [StrOptions({"auto", "ball_tree", "kd_tree", "brute"})],
        "leaf_size": [Interval(Integral, 1, None, closed="left")],
        "p": [Interval(Real, 0, None, closed="right"), None],
        "metric": [StrOptions(set(METRICS)), callable, HasMethods(["pairwise", "rdist_to_dist"])],
        "metric_params": [dict, None],
        "n_jobs": N_JOBS,
    }
    n_neighbors: int
    weights: Weighting
    algorithm: str
    leaf_size: int
    p: float | None
    metric: Any
    metric_params: dict[str, Any] | None
    n_jobs: int | None
    certificate_: Certificate
    effective_metric_: Any
    effective_metric_params_: dict[str, Any]
    n_samples_fit_: int
    n_features_in_: int
    _search: Search

    @property
    def _fit_method(self) -> str:
        return "kd_tree" if self._fitted_search().tree else "brute"

    def _keep_samples(self, X: Any, metric: tuple[Any, dict[str, Any]] | None = None) -> None:
        """Keep the (checked) training samples and make them ready to be searched, by a metric if given."""
        _be_known()
        self._set_metric()
        if metric is not None:
            self.effective_metric_, self.effective_metric_params_ = metric
        self._check_algorithm(X)
        self._refuse_infinity(X)
        if sparse.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        if self.metric == "precomputed":
            check_non_negative(X, "X")
            if X.shape[0] != X.shape[1]:
                raise ValueError(
                    f"Precomputed matrix must be square. Input is a {X.shape[0]}x{X.shape[1]} matrix: fit "
                    "takes the distances between all training samples."
                )
        self._fit_X, self.n_samples_fit_ = X, int(X.shape[0])
        self._search = self._make_search()
        how = "a k-d tree" if self._search.tree else "brute force"
        self.certificate_ = Certificate(
            status="converged",
            message=f"{self.n_samples_fit_:,} samples kept; neighbours are found exactly, by {how}",
            samples=self.n_samples_fit_,
        )

    def _allows_nan(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "nan_euclidean"

    def _refuse_infinity(self, X: Any) -> None:
        if self._allows_nan() and np.isinf(X.data if sparse.issparse(X) else X).any():
            raise ValueError(
                "Input X contains infinity: metric='nan_euclidean' leaves out NaN only. Replace such values."
            )

    def _check_graph_format(self, X: Any) -> None:
        if (
            self.metric == "precomputed"
            and sparse.issparse(X)
            and X.format not in ("csr", "csc", "coo", "lil")
        ):
            raise TypeError(
                f"Sparse matrix in {X.format!r} format is not supported due to its handling of explicit "
                "zeros: convert it with X.tocsr()."
            )

    def _set_metric(self) -> None:
        params = dict(self.metric_params or {})
        if "p" in params and self.p is not None:
            warnings.warn(
                "Parameter p is found in metric_params. The corresponding parameter from __init__ is "
                "ignored.",
                SyntaxWarning,
                stacklevel=4,
            )
        name = self.metric
        if isinstance(name, str) and name == "minkowski":
            params.setdefault("p", self.p)
            if params.get("w") is None and params["p"] in (1, 2, np.inf):
                name = {1: "manhattan", 2: "euclidean", np.inf: "chebyshev"}[params.pop("p")]
                params.pop("w", None)
            elif "w" not in params:
                params["w"] = None
        self.effective_metric_, self.effective_metric_params_ = name, params

    def _check_algorithm(self, X: Any) -> None:
        """Refuse what scikit-learn refuses: ``algorithm`` says only how, but a wrong pair is a mistake."""
        tree = self.algorithm in ("kd_tree", "ball_tree")
        if callable(self.metric):
            if self.algorithm == "kd_tree":
                raise ValueError(
                    f"kd_tree does not support callable metric '{self.metric}'; choose algorithm='auto' "
                    "or 'brute'."
                )
        elif not isinstance(self.metric, str):
            pass  # a DistanceMetric of scikit-learn's own trees
        elif tree and (
            self.metric in _NO_TREE or (self.algorithm == "kd_tree" and self.metric not in _KD_TREE)
        ):
            raise ValueError(
                f"Metric '{self.metric}' not valid for algorithm='{self.algorithm}': choose "
                f"algorithm='auto' or 'brute', or a metric among {', '.join(sorted(_KD_TREE))}."
            )
        params = self.effective_metric_params_
        if self.effective_metric_ == "minkowski" and params["p"] is not None and params["p"] < 1:
            if tree:
                raise ValueError(
                    f'algorithm="{self.algorithm}" does not support 0 < p < 1 for the Minkowski metric. '
                    'To resolve this problem either set p >= 1 or algorithm="brute".'
                )
            warnings.warn(
                "Mind that for 0 < p < 1, Minkowski metrics are not distance metrics. Continuing the "
                "execution with `algorithm='brute'`.",
                stacklevel=5,
            )
        if self.algorithm == "kd_tree" and params.get("w") is not None:
            raise ValueError(
                "algorithm='kd_tree' is not valid for metric='minkowski' with a weight parameter 'w': try "
                "algorithm='ball_tree' or algorithm='brute' instead."
            )
        if sparse.issparse(X) and self.effective_metric_ == "haversine":
            raise ValueError(
                "Metric 'haversine' not valid for sparse input. Latitudes and longitudes are seldom 0: pass "
                "X.toarray()."
            )
        if tree and sparse.issparse(X):
            warnings.warn("cannot use tree with sparse input: using brute force", stacklevel=5)

    def _make_search(self) -> Search:
        metric = resolve_metric(self.effective_metric_, self.effective_metric_params_)
        algorithm = {"kd_tree": "tree", "ball_tree": "tree"}.get(self.algorithm, self.algorithm)
        return Search(view_of(self._fit_X), metric, algorithm, self.leaf_size)

    def _fitted_search(self) -> Search:
        # A model from a file or a pickle has its samples only.
        if not hasattr(self, "_search"):
            self._search = self._make_search()
        return self._search

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_search"}

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Array | tuple[Array, Array]:
        """Return the nearest training samples of each sample, the nearest first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features) or None
            Samples; for ``metric="precomputed"`` their distances to the training samples, of shape
            (n, n_samples_fit_). None: the training samples, each without itself.
        n_neighbors : int or None
            How many; None takes the parameter.
        return_distance : bool
            Whether to return the distances too.

        Returns
        -------
        ndarray of shape (n, n_neighbors)
            Distances, if asked for.
        ndarray of shape (n, n_neighbors)
            Numbers of the training samples; those of equal distance in the order of their rows.
        """
        check_is_fitted(self)
        distance, index = self._neighbors(X, n_neighbors)
        return (distance, index) if return_distance else index

    def _neighbors(self, X: Any, n_neighbors: Any = None) -> tuple[Array, Array]:
        k: Any = self.n_neighbors if n_neighbors is None else n_neighbors
        if not isinstance(k, Integral):
            raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value")
        if k <= 0:
            raise ValueError(f"Expected n_neighbors > 0. Got {k:d}")
        own = X is None
        if own:
            X = self._fit_X
        else:
            self._check_graph_format(X)
            if self.metric == "precomputed":  # which is NaN is said before how many columns there should be
                check_array(X, accept_sparse=True, input_name="X", estimator=self)
            X, _ = check_samples(self, X, reset=False, finite=not self._allows_nan())
            self._refuse_infinity(X)
            if self.metric == "precomputed":
                check_non_negative(X, "X")
        k = int(k)
        if k + own > self.n_samples_fit_:
            relation = "<" if own else "<="
            raise ValueError(
                f"Expected n_neighbors {relation} n_samples_fit, but n_neighbors = {k}, n_samples_fit = "
                f"{self.n_samples_fit_}, n_samples = {X.shape[0]}: lower n_neighbors or fit more samples."
            )
        k += own
        if self.metric == "precomputed" and sparse.issparse(X):
            distance, index = graph_neighbors(X, k, own)
        else:
            distance, index = self._fitted_search().nearest(view_of(X), k, self.n_jobs)
        return _without_self(distance, index) if own else (distance, index)

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> Any:
        """Return the neighbours as a sparse matrix.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features) or None
            Samples, as in :meth:`kneighbors`.
        n_neighbors : int or None
            How many; None takes the parameter.
        mode : {"connectivity", "distance"}
            Values of the matrix: ones, or distances.

        Returns
        -------
        CSR matrix of shape (n, n_samples_fit_)
            A value for each neighbour of each sample.
        """
        check_is_fitted(self)
        if mode not in ("connectivity", "distance"):
            raise ValueError(
                f'Unsupported mode, must be one of "connectivity", or "distance" but got "{mode}" instead'
            )
        distance, index = self._neighbors(X, n_neighbors)
        values = distance.ravel() if mode == "distance" else np.ones(index.size)
        starts = np.arange(0, index.size + 1, index.shape[1])
        shape = (index.shape[0], self.n_samples_fit_)
        return sparse.csr_matrix((values, index.ravel(), starts), shape=shape)

    def _weighted_neighbors(self, X: Any) -> tuple[Array, Array | None]:
        check_is_fitted(self)
        distance, index = self._neighbors(X)
        return index, neighbor_weights(distance, self.weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        given = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.input_tags.pairwise = given
        tags.input_tags.positive_only = given
        tags.input_tags.allow_nan = self._allows_nan()
        return tags


def _be_known() -> None:
    """Let scikit-learn's functions know our models by the class that they ask for, where that is loaded.

    They ask ``isinstance(model, KNeighborsMixin)``. That is a plain class, without ``register``: only our
    bases can answer. To import it for that alone would cost as much as all else of a first fit. Whoever calls
    such a function has loaded it; it becomes a base here or with the fit. All that it has is overridden.
    """
    theirs = _theirs()
    if theirs is not None and not issubclass(NeighborsModel, theirs.KNeighborsMixin):
        NeighborsModel.__bases__ = (MultiOutputMixin, theirs.KNeighborsMixin, CheckedOnce)


_be_known()


def given_samples(X: Any) -> tuple[Any, tuple[Any, dict[str, Any]] | None]:
    """Return samples and metric of a fitted model or tree of neighbours; other samples as they are."""
    theirs = _theirs()
    fitted = NeighborsModel if theirs is None else (NeighborsModel, theirs.NeighborsBase)
    if isinstance(X, fitted):
        check_is_fitted(X)
        return X._fit_X, (X.effective_metric_, dict(X.effective_metric_params_))
    if theirs is not None and isinstance(X, theirs.KDTree | theirs.BallTree):
        metric = next(part for part in X.__getstate__() if hasattr(part, "rdist_to_dist"))
        return np.asarray(X.data), (named_metric(metric), {})
    return X, None


def _without_self(distance: Array, index: Array) -> tuple[Array, Array]:
    """Drop each sample from its own neighbours; where more than k others are equal to it, the last."""
    others = index != np.arange(len(index))[:, None]
    others[others.all(axis=1), -1] = False
    shape = (len(index), index.shape[1] - 1)
    return distance[others].reshape(shape), index[others].reshape(shape)
