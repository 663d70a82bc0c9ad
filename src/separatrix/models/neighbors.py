"""Nearest neighbours: classification by votes, regression by means."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.exceptions import DataConversionWarning

from separatrix.data.view import Array
from separatrix.models._base import whole
from separatrix.models._labels import check_labels
from separatrix.models._neighbors import NeighborsModel, given_samples
from separatrix.models._validation import check_targets
from separatrix.solvers.votes import Weighting, elected, means, refuse_empty_votes, votes


class KNeighborsClassifier(ClassifierMixin, NeighborsModel):  # type: ignore[misc]
    r"""Classification by the votes of the nearest training samples.

    ``ŷ(x) = argmax_c Σ_{i ∈ N_k(x)} v_i [y_i = c]``: the ``k`` samples ``N_k(x)`` of least distance to ``x``
    vote with weights ``v_i``, 1 or ``1/d(x, x_i)``. Equal distances are resolved by the order of the rows,
    equal votes by the order of the classes. The search is exact.

    Parameters
    ----------
    n_neighbors : int, default=5
        ``k``.
    weights : {"uniform", "distance"}, callable or None, default="uniform"
        Every neighbour counts the same ("uniform" and None), by the inverse of its distance (neighbours at
        distance 0, where there are any, then count alone), or as a function of the array of distances says.
    algorithm : {"auto", "brute", "kd_tree", "ball_tree"}, default="auto"
        How to search; all find the same. "brute" is brute force; "kd_tree" and "ball_tree" are a k-d tree
        where the metric is Minkowski's with ``p ≥ 1`` and the data are dense with at most 15 features, else
        brute force; "auto" takes the tree for few features and many samples.
    leaf_size : int, default=30
        Samples in a leaf of the tree.
    p : float, default=2
        Power of Minkowski's metric ``(Σ_j |x_j − z_j|^p)^(1/p)``.
    metric : str, Kernel or callable, default="minkowski"
        "euclidean", "manhattan", "chebyshev", "minkowski", "cosine", "precomputed" (``X`` are distances),
        other metrics of SciPy by name; a kernel ``k`` of :mod:`separatrix.kernels` for the distance in its
        feature space ``√(k(x, x) − 2k(x, z) + k(z, z))``; a
        ``sklearn.metrics.DistanceMetric``; or a function of two rows.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    n_jobs : int or None, default=None
        Threads: None and -1 use the processors there are. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of them
        The labels, sorted; one array per output where there are several.
    effective_metric_ : str, Kernel or callable
        The metric in use.
    effective_metric_params_ : dict
        Its arguments.
    n_samples_fit_ : int
        Number of training samples.
    outputs_2d_ : bool
        Whether ``y`` has several columns.
    certificate_ : Certificate
        What was kept and how it is searched.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    ``fit`` keeps a reference to dense ``X``, not a copy. What speeds the search up (reduced vectors in single
    precision, a tree) is made when first needed.

    Examples
    --------
    >>> from separatrix.models.neighbors import KNeighborsClassifier
    >>> model = KNeighborsClassifier(n_neighbors=3).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> model.predict([[0.4], [2.9]]).tolist()
    ['a', 'b']
    >>> model.kneighbors([[0.5]], return_distance=False).tolist()
    [[0, 1, 2]]
    """

    classes_: Any
    outputs_2d_: bool

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Weighting = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float | None = 2,
        metric: Any = "minkowski",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs

    @whole
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> KNeighborsClassifier:
        """Keep the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples; distances between them, of shape (n, n), for ``metric="precomputed"``. A fitted
            ``KDTree``, ``BallTree`` or model of neighbours stands for its samples and its metric.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_outputs)
            Labels of any kind.

        Returns
        -------
        KNeighborsClassifier
            The fitted estimator.
        """
        X, metric = given_samples(X)
        X, y = check_targets(self, X, y, numeric=False, finite=not self._allows_nan())
        if y.ndim == 2 and y.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
                "(n_samples,), for example using ravel().",
                DataConversionWarning,
                stacklevel=2,
            )
        simple = y.ndim == 1 and y.dtype.kind in "biuU"  # always classes
        if not simple:
            check_labels(y)
        self.outputs_2d_ = y.ndim == 2 and y.shape[1] != 1
        columns = [np.unique(column, return_inverse=True) for column in y.reshape(len(y), -1).T]
        if simple and 2 * len(columns[0][0]) >= len(y):
            check_labels(y)  # warns of so many classes
        numbers = [column.astype(np.int64) for _, column in columns]
        self.classes_ = [classes for classes, _ in columns] if self.outputs_2d_ else columns[0][0]
        self._y = np.stack(numbers, axis=1) if self.outputs_2d_ else numbers[0]
        self._keep_samples(X, metric)
        return self

    def _outputs(self) -> list[tuple[Array, Array]]:
        """Return classes and numbers of the training samples of each output."""
        if not self.outputs_2d_:
            return [(self.classes_, self._y)]
        return list(zip(self.classes_, self._y.T, strict=True))

    def predict(self, X: Any) -> Array:
        """Return the class of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features) or None
            Samples. None: the training samples, each judged by the others (leave-one-out).

        Returns
        -------
        ndarray of shape (n,) or (n, n_outputs)
            Labels from ``classes_``.
        """
        index, weights = self._weighted_neighbors(X)
        refuse_empty_votes(weights)
        found = [classes[elected(y[index], weights, len(classes))] for classes, y in self._outputs()]
        return np.stack(found, axis=1) if self.outputs_2d_ else found[0]

    def predict_proba(self, X: Any) -> Any:
        """Return each class's share of the votes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features) or None
            Samples, as in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n, n_classes), or list of them
            Shares, in the order of ``classes_``; one array per output where there are several.
        """
        index, weights = self._weighted_neighbors(X)
        refuse_empty_votes(weights)
        shares = []
        for classes, y in self._outputs():
            share = votes(y[index], weights, len(classes))
            share /= share.sum(axis=1, keepdims=True)
            shares.append(share)
        return shares if self.outputs_2d_ else shares[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class KNeighborsRegressor(RegressorMixin, NeighborsModel):  # type: ignore[misc]
    r"""Regression by the mean of the nearest training samples' targets.

    ``ŷ(x) = Σ_{i ∈ N_k(x)} v_i y_i / Σ_{i ∈ N_k(x)} v_i`` over the ``k`` samples ``N_k(x)`` of least distance
    to ``x``, with weights ``v_i``, 1 or ``1/d(x, x_i)``. Equal distances are resolved by the order of the
    rows. The search is exact.

    Parameters
    ----------
    n_neighbors : int, default=5
        ``k``.
    weights : {"uniform", "distance"}, callable or None, default="uniform"
        As in :class:`KNeighborsClassifier`.
    algorithm : {"auto", "brute", "kd_tree", "ball_tree"}, default="auto"
        How to search; all find the same. See :class:`KNeighborsClassifier`.
    leaf_size : int, default=30
        Samples in a leaf of the tree.
    p : float, default=2
        Power of Minkowski's metric.
    metric : str, Kernel or callable, default="minkowski"
        As in :class:`KNeighborsClassifier`.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    n_jobs : int or None, default=None
        Threads: None and -1 use the processors there are. The result does not depend on it.

    Attributes
    ----------
    effective_metric_ : str, Kernel or callable
        The metric in use.
    effective_metric_params_ : dict
        Its arguments.
    n_samples_fit_ : int
        Number of training samples.
    certificate_ : Certificate
        What was kept and how it is searched.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from separatrix.models.neighbors import KNeighborsRegressor
    >>> model = KNeighborsRegressor(n_neighbors=2).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 1.0, 1.0])
    >>> model.predict([[1.5], [2.6]]).tolist()
    [0.5, 1.0]
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Weighting = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float | None = 2,
        metric: Any = "minkowski",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs

    @whole
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> KNeighborsRegressor:
        """Keep the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Samples; distances between them, of shape (n, n), for ``metric="precomputed"``. A fitted
            ``KDTree``, ``BallTree`` or model of neighbours stands for its samples and its metric.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_outputs)
            Targets.

        Returns
        -------
        KNeighborsRegressor
            The fitted estimator.
        """
        X, metric = given_samples(X)
        X, self._y = check_targets(self, X, y, numeric=True, finite=not self._allows_nan())
        self._keep_samples(X, metric)
        return self

    def predict(self, X: Any) -> Array:
        """Return the target of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features) or None
            Samples. None: the training samples, each estimated by the others.

        Returns
        -------
        ndarray of shape (n,) or (n, n_outputs)
            Means of the neighbours' targets.
        """
        index, weights = self._weighted_neighbors(X)
        found = means(self._y.reshape(len(self._y), -1), index, weights)
        return found[:, 0] if self._y.ndim == 1 else found
