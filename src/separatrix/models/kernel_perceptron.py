"""The perceptron in its dual form, with a kernel."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from separatrix.data.memory import CsrView, DenseView, view_of
from separatrix.data.texts import TextView
from separatrix.data.view import BLOCK_BYTES, Array, DataView
from separatrix.kernels import KERNEL_NAMES, Kernel, resolve_kernel
from separatrix.models._base import IterativeClassifier, whole
from separatrix.models._labels import encode_labels
from separatrix.models._validation import check_samples, check_texts, refuse_texts
from separatrix.models._weights import check_presentations, sample_weights
from separatrix.multiclass import NAMES, Coding
from separatrix.problem import Problem
from separatrix.solvers._loop import NoImprovement, run
from separatrix.solvers.kernel_perceptron import KernelPerceptronSolver


class KernelPerceptron(IterativeClassifier):
    r"""Perceptron in a kernel's feature space: ``f(x) = Σ_i a_i k(x_i, x) + b``.

    The rules are those of :class:`Perceptron` with ``x`` replaced by ``φ(x)``: a step on sample
    ``i`` changes its coefficient ``a_i``, so that only ``k(x, x') = φ(x)·φ(x')`` is needed.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "sigmoid", "laplacian", "bessel", "anova"}, Kernel or callable, \
            default="rbf"
        A name, an object of :mod:`separatrix.kernels`, or a function ``k(A, B)`` of two blocks of
        samples that returns the matrix of their kernel values. With a string kernel, samples are
        texts.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the named kernels: "scale" is ``1/(n_features · Var(X))``, "auto"
        ``1/n_features``.
    degree : int, default=3
        Degree of "poly", "bessel" and "anova".
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    fit_intercept : bool, default=True
        Whether the scores have a constant term.
    eta0 : float, default=1
        Learning rate.
    margin : float or None, default=None
        Margin ``b ≥ 0``; None as in :class:`Perceptron`.
    multiclass : {"ovr", "ovo", "joint"}, default="ovr"
        One-vs-rest, one-vs-one (votes), or all classes jointly.
    keep : {"best", "last", "average"}, default="best"
        Which coefficients to return, as in :class:`Perceptron`.
    max_iter : int, default=1000
        Most passes over the data.
    tol : float or None, default=1e-3
        Stop when the mean criterion failed to fall by ``tol`` for ``n_iter_no_change`` passes.
    n_iter_no_change : int, default=5
        Passes without improvement to wait.
    shuffle : bool, default=True
        Whether each pass visits the samples in a new random order.
    random_state : int, RandomState instance or None, default=0
        Source of the orders.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes; they multiply the sample weights.
    cache_size : float, default=200
        Megabytes for kept kernel rows; the others are computed again when needed.
    max_time : float or None, default=None
        Most seconds; the model is valid however the fit ends.
    verbose : int, default=0
        1 prints progress at most twice a second, 2 every pass.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Numbers of the training samples with a coefficient other than 0.
    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        Those samples.
    dual_coef_ : ndarray of shape (n_columns, n_support)
        Their coefficients, signs included.
    intercept_ : ndarray of shape (n_columns,)
        Constant terms.
    kernel_ : Kernel
        The kernel in use, its parameters resolved.
    classes_, certificate_, history_, n_iter_, multiclass_, n_features_in_, feature_names_in_
        As in :class:`Perceptron`; the norm in ``history_`` is that in the feature space.

    Examples
    --------
    >>> from separatrix import KernelPerceptron
    >>> X = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    >>> model = KernelPerceptron(gamma=1.0).fit(X, [0, 0, 1, 1])  # exclusive or
    >>> model.predict(X).tolist(), model.certificate_.status
    ([0, 0, 1, 1], 'separable')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(set(KERNEL_NAMES)), Kernel, callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="neither")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "margin": [Interval(Real, 0, None, closed="left"), None],
        "multiclass": [StrOptions(set(NAMES))],
        "keep": [StrOptions({"best", "last", "average"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "cache_size": [Interval(Real, 0, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="right"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        eta0: float = 1.0,
        margin: float | None = None,
        multiclass: str = "ovr",
        keep: str = "best",
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        random_state: Any = 0,
        class_weight: Any = None,
        cache_size: float = 200,
        max_time: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.eta0 = eta0
        self.margin = margin
        self.multiclass = multiclass
        self.keep = keep
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.cache_size = cache_size
        self.max_time = max_time
        self.verbose = verbose

    @whole
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelPerceptron:
        """Fit the kernel perceptron.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), or list of str
            Samples; texts for a string kernel.
        y : array-like of shape (n,)
            Labels of any kind.
        sample_weight : array-like of shape (n,) or None
            Weights of the samples.

        Returns
        -------
        KernelPerceptron
            The fitted estimator.
        """
        X, y = self._check(X, y, reset=True)
        classes, numbers = encode_labels(self, y)
        coding = Coding.of(self.multiclass, len(classes))
        weights = sample_weights(X, y, numbers, classes, sample_weight, self.class_weight)
        check_presentations(weights, self.max_time, dear=True)
        self.classes_, self.multiclass_ = classes, self.multiclass
        view = self._view(X)
        self.kernel_ = resolve_kernel(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            X=X,
            weights=sample_weights(X, y, numbers, classes, sample_weight, None),
        )
        problem = Problem(
            view,
            numbers,
            coding.codes,
            joint=coding.joint,
            kernel=self.kernel_,
            weights=weights,
            fit_intercept=self.fit_intercept,
        )
        margin = (self.eta0 if coding.joint else 0.0) if self.margin is None else self.margin
        solver = KernelPerceptronSolver(
            problem,
            eta=float(self.eta0),
            margin=float(margin),
            keep=self.keep,
            shuffle=self.shuffle,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            cache_bytes=self.cache_size * 1e6,
        )
        context, observer = self._observe(
            self.max_iter,
            X,
            y,
            {"sample_weight": sample_weight},
            lambda: self._attributes(coding, view, solver.coef.copy(), solver.intercept.copy()),
        )
        outcome = run(
            solver,
            NoImprovement(self.tol, self.n_iter_no_change),
            max_iter=self.max_iter,
            max_time=self.max_time,
            verbose=int(self.verbose),
            name=type(self).__name__,
            observer=observer,
        )
        result = solver.finish(outcome)
        for name, value in self._attributes(coding, view, result.coef, result.intercept).items():
            setattr(self, name, value)
        self._keep_record(result)
        self._warn_if_unfinished(self.tol)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def _check(self, X: Any, y: Any = None, *, reset: bool) -> tuple[Any, Any]:
        kind = self.kernel.samples if isinstance(self.kernel, Kernel) else "vectors"
        if kind == "matrix":
            raise ValueError(
                f"{type(self).__name__} computes its kernel values itself: kernel={self.kernel!r} is not "
                "supported; use SVC(kernel='precomputed'), or a kernel of separatrix.kernels."
            )
        if kind == "texts":
            return check_texts(self, X, y)
        refuse_texts(self, X, self.kernel)
        return check_samples(self, X, y, reset=reset)

    def _view(self, X: Any) -> DenseView | CsrView | TextView:
        is_text = isinstance(self.kernel, Kernel) and self.kernel.samples == "texts"
        return TextView(X) if is_text else view_of(X)

    def _new_scores(self, X: Any) -> Array:
        return self._score_columns(self._view(self._check(X, reset=False)[0]))

    def _attributes(self, coding: Coding, view: Any, coef: Array, intercept: Array) -> dict[str, Any]:
        if coding.joint and coding.n_classes == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        support = np.flatnonzero(coef.any(axis=0))
        return {
            "support_": support,
            "support_vectors_": view.take(support),
            "dual_coef_": np.ascontiguousarray(coef[:, support]),
            "intercept_": intercept,
        }

    def _score_columns(self, view: DataView) -> Array:
        columns, n_support = self.dual_coef_.shape
        scores = np.empty((view.shape[0], columns))
        # The kernel values of one slice stay within a block's bytes, however many rows come.
        step = max(1, BLOCK_BYTES // (8 * max(1, n_support)))
        for rows, block in view.blocks():
            for begin in range(0, rows.stop - rows.start, step):
                end = min(begin + step, rows.stop - rows.start)
                part = self.intercept_
                if n_support:
                    part = self.kernel_(block[begin:end], self.support_vectors_) @ self.dual_coef_.T + part
                scores[rows.start + begin : rows.start + end] = part
        return scores.astype(view.dtype, copy=False)
