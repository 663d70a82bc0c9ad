"""Checks of samples shared by the estimators: what is wrong, where, and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import isfinite
from numbers import Integral
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import (
    _check_y,
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from separatrix.data.memory import CsrView, DenseView, check_structure, view_of
from separatrix.data.texts import as_texts, holds_texts
from separatrix.data.view import Array, DataView
from separatrix.models._labels import refuse_holes, shown
from separatrix.models._refusal import explained, first_text, refused_dates, text_table

#: What ``n_jobs`` may be: 0 threads do nothing, which joblib refuses, too.
N_JOBS = [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left"), None]

#: Values whose sum of squares is worth threads.
_LONG = 1 << 22


def check_samples(
    estimator: Any, X: Any, y: Any = None, *, reset: bool, finite: bool = True, squares: bool = False
) -> tuple[Any, Any]:
    """Return ``X`` as a numeric array or CSR matrix, not copied where it is one, and ``y``.

    Parameters
    ----------
    estimator : estimator
        Whose feature names and number of features are set (``reset``) or compared.
    X : array-like or sparse matrix
        Samples.
    y : array-like or None
        Labels; None where none are needed.
    reset : bool
        Whether this is a fit.
    finite : bool
        Whether to look for NaN and infinity here.
    squares : bool
        Whether to refuse values whose squares overflow, too: for models that sum products of features.
    """
    if sparse.issparse(X):
        check_structure(X)
        if reset:
            _check_width(X)
    if _plain(estimator, X, reset) and (y is None or _plain_labels(X, y)):
        if finite:
            _check_finite(estimator, X, squares)
        return X, y
    refuse_holes(y)
    arguments: dict[str, Any] = {} if y is None else {"y": y}
    try:
        checked = validate_data(
            estimator,
            X,
            **arguments,
            reset=reset,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype="numeric",
            ensure_all_finite=False,
        )
        samples, y = (checked, None) if y is None else checked
        if samples.dtype.kind == "O":  # a list with None in it, for example
            samples = samples.astype(np.float64)
    except (TypeError, ValueError) as error:
        table = text_table(X)
        if table is not None and table.dtype != object and first_text(table) is None:
            numbers = table.astype(np.float64)  # written as texts
            return check_samples(estimator, numbers, y, reset=reset, finite=finite, squares=squares)
        raise explained(estimator, X, y, error) from None
    X = samples
    if X.dtype.kind in "mM":
        raise TypeError(refused_dates(estimator, str(X.dtype)))
    if X.dtype.kind == "f" and X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float32 if X.dtype == np.float16 else np.float64)
    if finite:
        _check_finite(estimator, X, squares)
    return X, y


def check_targets(estimator: Any, X: Any, y: Any, *, numeric: bool, finite: bool = True) -> tuple[Any, Array]:
    """Return ``X`` as :func:`check_samples` does, and one or several columns of targets as a dense array.

    Parameters
    ----------
    estimator : estimator
        Whose feature names and number of features are set.
    X : array-like or sparse matrix
        Samples.
    y : array-like or sparse matrix of shape (n,) or (n, outputs)
        Labels, or numbers.
    numeric : bool
        Whether the targets must be numbers.
    finite : bool
        Whether to look for NaN and infinity in ``X``.
    """
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    X, _ = check_samples(estimator, X, reset=True, finite=finite)
    if numeric and not sparse.issparse(y) and np.asarray(y).dtype.kind not in "biuf":
        y = as_numbers(estimator, y)
    refuse_holes(y)
    try:
        y = _check_y(y, multi_output=True, y_numeric=numeric, estimator=estimator)
    except (TypeError, ValueError) as error:
        raise explained(estimator, None, y, error) from None
    check_consistent_length(X, y)
    return X, np.asarray(y.toarray() if sparse.issparse(y) else y)


def as_numbers(estimator: Any, y: Any) -> Array:
    """Return targets as numbers in double precision, or refuse classes with the model for them."""
    given = np.asarray(y)
    try:
        if given.dtype.kind not in "mM":
            return np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    name = type(estimator).__name__
    classifier = name.replace("SVR", "SVC").replace("Regressor", "Classifier")
    raise ValueError(
        f"{name} predicts numbers, but y holds {given.dtype}, such as {shown(given.flat[0])}: convert it to "
        f"float, or use {'a classifier' if classifier == name else classifier} for classes."
    )


def _check_width(X: Any) -> None:
    """Refuse more features than weights can be kept for: a sparse matrix may declare any number of them."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not told by this system
        return
    needed = 8 * X.shape[-1]
    if needed > memory / 2:
        raise ValueError(
            f"X has {X.shape[-1]:,} features: one vector of weights would take {needed / 2**30:,.0f} GiB "
            f"of {memory / 2**30:,.0f} GiB of memory. Leave out the columns without entries, or hash the "
            "features to fewer, for example with sklearn.feature_extraction.FeatureHasher."
        )


def _plain(estimator: Any, X: Any, reset: bool) -> bool:
    """Return whether ``X`` is a float array or CSR matrix that needs no more checks; its width is kept.

    For a small fit, the general checks of scikit-learn cost more than the fit itself.
    """
    if type(X) is not np.ndarray and not (sparse.issparse(X) and X.format == "csr"):
        return False
    if X.ndim != 2 or X.dtype not in (np.float32, np.float64) or 0 in X.shape:
        return False
    if reset:
        estimator.__dict__.pop("feature_names_in_", None)
        estimator.n_features_in_ = X.shape[1]
        return True
    known = estimator.__dict__
    return known.get("n_features_in_") == X.shape[1] and "feature_names_in_" not in known


def _plain_labels(X: Array, y: Any) -> bool:
    """Return whether ``y`` is an array of as many numbers as ``X`` has rows, all of them finite."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.shape[0] != X.shape[0]:
        return False
    return y.dtype.kind in "biu" or (y.dtype in (np.float32, np.float64) and bool(np.isfinite(y).all()))


def check_texts(estimator: Any, X: Any, y: Any = None) -> tuple[Array, Any]:
    """Return texts for a string kernel as an array of one dimension, and ``y``; there are no features."""
    texts = as_texts(X)
    if texts.shape[0] == 0:
        raise ValueError(f"Found 0 sample(s), but {type(estimator).__name__} needs at least one text.")
    for name in ("n_features_in_", "feature_names_in_"):
        estimator.__dict__.pop(name, None)
    if y is not None:
        refuse_holes(y)
        y = column_or_1d(y, warn=True)
        check_consistent_length(texts, y)
    return texts, y


def refuse_texts(estimator: Any, X: Any, kernel: Any) -> None:
    """Refuse texts for a kernel that compares numbers."""
    if holds_texts(X):
        raise TypeError(
            f"X holds texts, but kernel={kernel!r} of {type(estimator).__name__} compares numbers: use a "
            "string kernel, for example separatrix.kernels.Spectrum(3), or turn the texts into numbers, "
            "for example with sklearn.feature_extraction.text.TfidfVectorizer."
        )


def _check_finite(estimator: Any, X: Any, squares: bool = False) -> None:
    if X.dtype.kind != "f":
        return
    values = X.data if sparse.issparse(X) else X
    # One sum tells in most cases that all is well, without a temporary array.
    with np.errstate(over="ignore", invalid="ignore"):
        if not squares:
            if isfinite(np.add.reduce(values, axis=None)):
                return
        elif values.flags.forc:
            flat = values.ravel(order="K")
            # (Shorter ones not by BLAS, whose threads would go on spinning beside the fit.)
            if isfinite(flat @ flat if flat.size > _LONG else np.einsum("i,i->", flat, flat)):
                return
    view: DataView = view_of(X)
    _refuse_not_finite(estimator, view)
    if squares:
        _refuse_large(estimator, view)


def check_finite(estimator: Any, X: Any) -> None:
    """Refuse NaN, infinity and values whose squares overflow, where they are."""
    _check_finite(estimator, X, squares=True)


def refuse_sums(estimator: Any, X: Any) -> NoReturn:
    """Refuse samples whose sums of products came out not finite: say which value is the reason."""
    check_finite(estimator, X)
    raise ValueError(
        "Input X contains values so large that sums of their squares overflow. Scale the features for "
        f"{type(estimator).__name__}, for example with sklearn.preprocessing.StandardScaler."
    )


def _refuse_large(estimator: Any, view: DataView) -> None:
    """Refuse values of which the sum of squares of a column may overflow, by the largest of them."""
    size, place = 0.0, (0, 0)
    for rows, block in view.blocks():
        entries = block.tocoo() if sparse.issparse(block) else None
        sizes = np.abs(entries.data if entries is not None else block)
        if sizes.size and (largest := float(sizes.max())) > size:
            at = np.unravel_index(int(sizes.argmax()), sizes.shape)
            row, column = (entries.coords[k][at[0]] for k in (0, 1)) if entries is not None else at
            size, place = largest, (rows.start + int(row), int(column))
    if size <= float(np.sqrt(np.finfo(view.dtype).max / max(1, view.shape[0]))):
        return
    wider = ", or pass X as float64" if view.dtype == np.float32 and size < 1e100 else ""
    raise ValueError(
        f"Input X contains values so large that sums of their squares overflow: row {place[0]}, "
        f"{_column(estimator, place[1])} has absolute value {size:.3g}. Scale the features for "
        f"{type(estimator).__name__}, for example with sklearn.preprocessing.StandardScaler{wider}."
    )


def _column(estimator: Any, column: int) -> str:
    names = getattr(estimator, "feature_names_in_", None)
    return f"column {column}" + (f" ({names[column]!r})" if names is not None else "")


def _refuse_not_finite(estimator: Any, view: DataView) -> None:
    for rows, block in view.blocks():
        entries = block.tocoo() if sparse.issparse(block) else None
        finite = np.isfinite(entries.data if entries is not None else block)
        if finite.all():
            continue
        at = np.argwhere(~finite)[0]
        row, column = (int(entries.coords[k][at[0]]) for k in (0, 1)) if entries is not None else map(int, at)
        value = entries.data[at[0]] if entries is not None else block[row, column]
        place = f"row {rows.start + row}, {_column(estimator, column)}"
        raise ValueError(_told_by_sklearn(estimator, value, place))


def _told_by_sklearn(estimator: Any, value: Any, place: str) -> str:
    """Return scikit-learn's message for a value that is not finite, with its place and the remedy."""
    try:
        with config_context(assume_finite=False):
            assert_all_finite(np.array([value]), estimator_name=type(estimator).__name__, input_name="X")
    except ValueError as error:
        what, _, advice = str(error).partition(".")
    remedy = "Drop such rows or fill them in, for example with sklearn.impute.SimpleImputer."
    if not np.isnan(value):  # which no imputer takes
        remedy = "Drop such rows, or replace the values by finite numbers."
    return f"{what}: {place}. {remedy}{advice}"


def view_samples(estimator: Any, X: Any) -> DenseView | CsrView:
    """Return a view of new samples, checked against those of the fit."""
    X, _ = check_samples(estimator, X, reset=False)
    return view_of(X)


def score_samples(estimator: Any, X: Any, scores: Callable[[DataView], Array]) -> Array:
    """Return the scores of new samples, checked against those of the fit.

    NaN and infinity show in the scores, which are fewer than the values: only then they are looked for.
    """
    if not _plain(estimator, X, reset=False):  # (the view looks at the structure of sparse ones)
        X, _ = check_samples(estimator, X, reset=False, finite=False)
    with np.errstate(over="ignore", invalid="ignore"):
        found = scores(view_of(X))
        sound = np.isfinite(np.sum(found))
    if not sound:
        _check_finite(estimator, X)
    return found
