"""What the commands of LIBSVM and LIBLINEAR share: samples in their text format, results in their words."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.cli.screen import CommandError
from separatrix.data.files._origin import locate
from separatrix.data.files._svmlight import read_svmlight
from separatrix.persistence import check_text_output, text_output

Array = NDArray[Any]


def read_samples(path: str, index_base: int = 1) -> tuple[Any, Array]:
    """Read LIBSVM text as it always is: indices count from 1, or from 0 where a kernel matrix is given."""
    return read_svmlight(locate(path, "svmlight"), index_base)


def output_place(path: str) -> str:
    """Return where results go, or say before any work that nothing can be written there."""
    check_text_output(path)
    return path


def model_place(files: list[str]) -> str:
    """Return where a model goes: the second file, or ``training_set.model`` in the current directory."""
    return output_place(files[1] if len(files) > 1 else f"{os.path.basename(files[0])}.model")


def compact(X: Any) -> Any:
    """Return samples as a dense array where most entries are stored anyway."""
    return X.toarray() if 2 * X.nnz >= X.shape[0] * X.shape[1] else X


def widened(X: Any, columns: int) -> Any:
    """Return sparse samples with at least so many columns."""
    from scipy import sparse

    if X.shape[1] >= columns:
        return X
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], columns))


def whole_labels(y: Array, path: str) -> Array:
    """Return class labels as whole numbers, or name the line that has another one."""
    wrong = np.flatnonzero((y % 1 != 0) | (np.abs(y) >= 2**31))
    if wrong.size:
        raise CommandError(
            f"{path}: sample {int(wrong[0]) + 1} has the label {y[wrong[0]]:g}; classes are whole numbers"
        )
    return y.astype(np.int64)


def label_order(y: Array) -> list[int]:
    """Return the classes as LIBSVM and LIBLINEAR list them: as they first appear, but +1 before -1."""
    classes, first = np.unique(y, return_index=True)
    listed = [int(label) for label in classes[np.argsort(first)]]
    return [1, -1] if listed == [-1, 1] else listed


def class_weights(weights: dict[int, float], classes: Array) -> dict[int, float] | None:
    """Return the weights of classes that exist, and warn of others as LIBSVM does."""
    for label in weights:
        if label not in classes:
            print(f"WARNING: class label {label} specified in weight is not found", file=sys.stderr)
    return {label: weight for label, weight in weights.items() if label in classes} or None


@contextmanager
def fit_errors() -> Iterator[None]:
    """Turn what a fit refuses or warns of into one message."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except ValueError as error:
            raise CommandError(str(error)) from None
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            print(f"WARNING: {warning.message}", file=sys.stderr)


def cross_validate(model: Any, X: Any, y: Array, folds: int, classes: bool) -> None:
    """Predict each fold by a model that has not seen it, and print how well."""
    predicted = held_out(model, X, y, folds, classes)
    if classes:
        print(f"Cross Validation Accuracy = {100 * float(np.mean(predicted == y)):g}%")
    else:
        print(f"Cross Validation Mean squared error = {float(np.mean((predicted - y) ** 2)):g}")
        print(f"Cross Validation Squared correlation coefficient = {_correlation(predicted, y):g}")


def held_out(model: Any, X: Any, y: Array, folds: int, classes: bool) -> Array:
    """Return the prediction of each sample by a copy of the model that has not seen it."""
    from sklearn.base import clone
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.utils import get_tags

    if folds < 2 or len(y) < 2:
        raise CommandError("-v: n-fold cross validation: n, and the number of samples, must be 2 or more")
    if folds > len(y):
        print(f"WARNING: only {len(y)} samples: each is a fold (leave-one-out)", file=sys.stderr)
        folds = len(y)
    kind = StratifiedKFold if classes else KFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer samples than folds
        try:
            parts = list(kind(folds, shuffle=True, random_state=0).split(np.zeros(len(y)), y))
        except ValueError:  # no class has as many samples as there are folds
            parts = list(KFold(folds, shuffle=True, random_state=0).split(np.zeros(len(y))))
    predicted = np.empty(len(y))
    pairwise = get_tags(model).input_tags.pairwise  # columns of a kernel matrix are samples, too
    for train, held in parts:
        with fit_errors():
            fold = clone(model).fit(X[train][:, train] if pairwise else X[train], y[train])
            predicted[held] = fold.predict(X[held][:, train] if pairwise else X[held])
    return predicted


def write_predictions(
    path: str, predicted: Array, labels: list[int] | None = None, probabilities: Array | None = None
) -> None:
    """Write one prediction per line, and where given the probabilities behind it."""
    with text_output(path) as file:
        if probabilities is not None and labels is not None:
            file.write(f"labels {' '.join(map(str, labels))}\n")
            for label, row in zip(predicted.tolist(), probabilities.tolist(), strict=True):
                file.write(f"{label:.17g} {' '.join(f'{p:.17g}' for p in row)}\n")
        else:
            file.writelines(f"{value:.17g}\n" for value in predicted.tolist())


def report(predicted: Array, y: Array, classes: bool, ending: str, file: IO[str] | None = None) -> None:
    """Print accuracy or errors in the words that scripts look for."""
    if classes:
        right = int(np.count_nonzero(predicted == y))
        print(f"Accuracy = {100 * right / len(y):g}% ({right}/{len(y)}){ending}", file=file)
    else:
        print(f"Mean squared error = {float(np.mean((predicted - y) ** 2)):g} (regression)", file=file)
        print(f"Squared correlation coefficient = {_correlation(predicted, y):g} (regression)", file=file)


def _correlation(a: Array, b: Array) -> float:
    """Return the squared correlation; not a number where one of both is constant, as in LIBSVM."""
    a, b = a - a.mean(), b - b.mean()
    below = float(a @ a) * float(b @ b)
    return float(a @ b) ** 2 / below if below > 0 else float("nan")
