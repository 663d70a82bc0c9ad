r"""LIBSVM's model files: ``svm-train`` writes them, ``svm-predict`` reads them.

A file holds ``f(x) = Σ_j coef_j k(x_j, x) − rho`` for each pair of classes, in the order of its line
``label``; a positive score votes for the first of a pair. Here scores of two classes are positive for the
second of the sorted classes, and those of several for the first of each pair (as in scikit-learn), so for two
classes both ``coef`` and ``rho`` change sign, and classes that a file does not list in ascending order change
places.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from separatrix.certificate import Certificate
from separatrix.data.files import DataFileError
from separatrix.data.files._svmlight import parse_text
from separatrix.kernels import RBF, Kernel, Linear, Polynomial, Precomputed, Sigmoid
from separatrix.models.one_class import OneClassSVM
from separatrix.models.svc import SVC, NuSVC
from separatrix.models.svr import SVR, NuSVR
from separatrix.persistence._container import ModelFileError, text_output
from separatrix.persistence._text import Header, last_step, whole_labels

Array = NDArray[Any]

TYPES: dict[str, type[Any]] = {
    "c_svc": SVC,
    "nu_svc": NuSVC,
    "one_class": OneClassSVM,
    "epsilon_svr": SVR,
    "nu_svr": NuSVR,
}
_KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "polynomial": Polynomial,
    "rbf": RBF,
    "sigmoid": Sigmoid,
    "precomputed": Precomputed,
}
#: Which parameters a kernel's header has.
_PARAMETERS = {"polynomial": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}
#: The same kernels' names as an argument ``kernel=``.
_ARGUMENTS = {"polynomial": "poly"}
_FIELDS = (
    "svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label", "probA",
    "probB", "prob_density_marks", "nr_sv",
)  # fmt: skip
_IMPORTED = "read from a {} model file, which keeps neither objective nor proof"
#: Support vectors up to which the margin's width is computed, at the cost of all pairs' kernel values.
_MARGIN_SUPPORT = 5000
#: Support vectors that are written at a time.
_BLOCK_ROWS = 1024
_MOST_CLASSES, _LARGEST_INDEX = 100_000, 2**31 - 1


class _Content(NamedTuple):
    """What a file says, in its own order of classes and with its own signs."""

    svm_type: str
    kernel_type: str
    kernel: Kernel
    labels: list[int]
    rho: Array
    prob: tuple[Array, Array] | None
    counts: list[int]
    coef: Array
    vectors: Any


def export_libsvm(model: Any, path: str | os.PathLike[str], labels: Sequence[int] | None = None) -> None:
    """Write a fitted kernel machine as a LIBSVM model file, which LIBSVM's ``svm-predict`` reads.

    Numbers are written with as many digits as it takes to read back the same bits.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        A fitted machine with a linear, polynomial, RBF, sigmoid or precomputed kernel; classes are whole
        numbers, several of them learnt one-vs-one.
    path : str or path
        The file, by custom ending in ``.model``.
    labels : sequence of int, optional
        The classes in the order in which the file lists them; ascending by default. ``svm-train`` lists them
        as they first appear in its data.

    Raises
    ------
    ModelFileError
        If the file format cannot express the model.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from separatrix.models.svc import SVC
    >>> from separatrix.persistence.interchange import export_libsvm, import_libsvm
    >>> model = SVC(kernel="linear").fit([[-2.0], [-1.0], [1.0], [2.0]], [1, 1, 2, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "svm.model")
    ...     export_libsvm(model, file)
    ...     back = import_libsvm(file)
    >>> back.predict([[-0.5], [0.5]]).tolist()
    [1, 2]
    """
    model = last_step(model, "LIBSVM")
    svm_type = next((name for name, cls in TYPES.items() if type(model) is cls), None)
    if svm_type is None:
        known = ", ".join(cls.__name__ for cls in TYPES.values())
        raise ModelFileError(f"LIBSVM model files hold {known}; not {type(model).__name__}")
    kernel = model.kernel_
    kernel_type = next((name for name, cls in _KERNELS.items() if type(kernel) is cls), None)
    if kernel_type is None:
        raise ModelFileError(
            f"LIBSVM has the kernels {', '.join(_KERNELS)}; not {kernel!r}: fit with kernel='precomputed', "
            "or export to ONNX"
        )
    header = [f"svm_type {svm_type}", f"kernel_type {kernel_type}"]
    header += [f"{name} {getattr(kernel, name)!r}" for name in _PARAMETERS.get(kernel_type, ())]
    model._check_whole()
    model._check_structure()
    coef, rho = model._dual(), -model.intercept_
    vectors = model.support_ if kernel_type == "precomputed" else model.support_vectors_
    total, classifies = int(model.support_.shape[0]), hasattr(model, "classes_")
    if classifies:
        K = len(model.classes_)
        if model.multiclass_ == "joint" or (K > 2 and model.multiclass_ != "ovo"):
            raise ModelFileError(
                f"LIBSVM learns several classes one-vs-one, not multiclass={model.multiclass_!r}: fit with "
                "multiclass='ovo'"
            )
        if K == 2:
            coef, rho = -coef, -rho
        classes = whole_labels(model.classes_, "LIBSVM")
        prob = (model.probA_, model.probB_) if model.probA_.size else None
        pairs = _Pairs(model.n_support_, coef, rho, prob)
        if labels is not None:
            classes, order = [int(label) for label in labels], np.searchsorted(classes, labels)
            support, pairs = _reordered(pairs, order)
            vectors = vectors[support]
        coef, rho = pairs.coef, pairs.rho
    header += [f"nr_class {K if classifies else 2}", f"total_sv {total}", f"rho {_spaced(rho)}"]
    if classifies:
        header.append(f"label {' '.join(map(str, classes))}")
        if pairs.prob is not None:
            header += [f"probA {_spaced(pairs.prob[0])}", f"probB {_spaced(pairs.prob[1])}"]
        header.append(f"nr_sv {' '.join(map(str, pairs.counts.tolist()))}")
    elif hasattr(model, "laplace_scale_"):
        header.append(f"probA {_spaced(model.laplace_scale_)}")
    with text_output(path) as file:
        file.write("\n".join([*header, "SV", ""]))
        file.writelines(_lines(coef, vectors))


def _spaced(values: Array) -> str:
    return " ".join(map(repr, np.asarray(values, dtype=np.float64).tolist()))


def _lines(coef: Array, vectors: Any) -> Any:
    """Yield one line per support vector: its coefficients, then index:value."""
    heads = (_spaced(column) for column in coef.T)
    if vectors.ndim == 1:
        yield from (f"{head} 0:{number + 1} \n" for head, number in zip(heads, vectors.tolist(), strict=True))
        return
    for begin in range(0, vectors.shape[0], _BLOCK_ROWS):
        block = sparse.csr_array(vectors[begin : begin + _BLOCK_ROWS], copy=True)
        block.eliminate_zeros()
        block.sort_indices()
        columns, values = (block.indices + 1).tolist(), block.data.astype(np.float64).tolist()
        for first, end in zip(block.indptr[:-1].tolist(), block.indptr[1:].tolist(), strict=True):
            pairs = zip(columns[first:end], values[first:end], strict=True)
            yield f"{next(heads)} {' '.join(f'{index}:{value!r}' for index, value in pairs)} \n"


def import_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> Any:
    """Read a LIBSVM model file as a fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM.

    What the file does not say (``C``, ``nu``, ``epsilon``) has its default in the parameters, and the
    certificate says that nothing is proven.

    Parameters
    ----------
    path : str or path
        A file written by ``svm-train``, by scikit-learn's or other bindings, or by :func:`export_libsvm`.
    n_features : int, optional
        Number of features (for a precomputed kernel: of training samples), which the file does not say; by
        default the largest index in it.

    Returns
    -------
    estimator
        The fitted machine; its support vectors are dense unless most of their entries are 0.

    Raises
    ------
    ModelFileError
        If the file is damaged or of another kind; the message names line and reason.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import separatrix as sx
    >>> from separatrix.persistence.interchange import export_libsvm, import_libsvm
    >>> model = sx.SVC(C=10.0).fit([[-2.0], [-1.0], [1.0], [2.0]], [1, 1, 2, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "machine.model")
    ...     export_libsvm(model, file)
    ...     back = import_libsvm(file)
    >>> back.predict([[-0.5], [0.5]]).tolist(), back.certificate_.status
    ([1, 2], 'imported')
    """
    content = _read(path)
    cls = TYPES[content.svm_type]
    arguments = {name: getattr(content.kernel, name) for name in _PARAMETERS.get(content.kernel_type, ())}
    model = cls(kernel=_ARGUMENTS.get(content.kernel_type, content.kernel_type), **arguments)
    model.kernel_ = content.kernel
    model._gamma = float(getattr(content.kernel, "gamma", 0.0))
    _keep_vectors(model, content, n_features, os.fspath(path))
    if content.labels:
        _keep_classes(model, content)
    else:
        _keep_coefficients(model, content.coef, -content.rho)
        model._n_support, model.n_iter_ = np.array([content.coef.shape[1]], dtype=np.int32), 0
        if isinstance(model, OneClassSVM):
            model.offset_ = -model.intercept_
        elif content.prob is not None:
            model.laplace_scale_ = content.prob[0]  # of the noise, for svm-predict -b 1
    model.fit_status_, model.history_ = 0, []
    model.certificate_ = Certificate(status="imported", message=_IMPORTED.format("LIBSVM"))
    if content.labels:
        _measure(model)
    return model


def libsvm_labels(path: str | os.PathLike[str]) -> list[int]:
    """Return the classes of a LIBSVM model file in its own order, which decides between equal votes."""
    header = Header(path, b"SV", _FIELDS, "LIBSVM")
    return header.wholes("label", header.whole("nr_class", 2, _MOST_CLASSES))


def _read(path: str | os.PathLike[str]) -> _Content:
    header = Header(path, b"SV", _FIELDS, "LIBSVM")
    svm_type = header.word("svm_type", tuple(TYPES))
    kernel_type = header.word("kernel_type", tuple(_KERNELS))
    kernel = _kernel(header, kernel_type)
    classifies = svm_type in ("c_svc", "nu_svc")
    K = header.whole("nr_class", 2, _MOST_CLASSES if classifies else 2)
    P, total = K * (K - 1) // 2, header.whole("total_sv", 0, _LARGEST_INDEX)
    rho = header.numbers("rho", P)
    labels, counts, prob = [], [total], None
    if classifies:
        labels = header.wholes("label", K)
        if len(set(labels)) < K:
            raise header.error(header.lines, "label names a class twice")
        counts = header.wholes("nr_sv", K, 0)
        if sum(counts) != total:
            raise header.error(header.lines, f"nr_sv sums up to {sum(counts):,}, and total_sv is {total:,}")
        if "probA" in header or "probB" in header:
            prob = header.numbers("probA", P), header.numbers("probB", P)
    elif "probA" in header and svm_type != "one_class":
        prob = header.numbers("probA", 1), np.empty(0)
    coef, vectors = _support(header, total, K - 1, kernel_type == "precomputed")
    return _Content(svm_type, kernel_type, kernel, labels, rho, prob, counts, coef, vectors)


def _kernel(header: Header, kernel_type: str) -> Kernel:
    values: dict[str, Any] = {}
    for name in _PARAMETERS.get(kernel_type, ()):
        values[name] = (
            header.whole(name, 0, 10_000) if name == "degree" else float(header.numbers(name, 1)[0])
        )
    try:
        return _KERNELS[kernel_type](**values)
    except ValueError as error:
        raise header.error(header.lines, str(error)) from None


def _support(header: Header, total: int, rows: int, precomputed: bool) -> tuple[Array, Any]:
    """Parse the lines after the header: coefficients, and support vectors or their numbers."""
    lines = header.body.split(b"\n")
    if lines and not lines[-1].strip():
        lines.pop()
    if len(lines) != total:
        raise header.error(
            header.lines + len(lines),
            f"{len(lines):,} support vectors follow 'SV', and total_sv is {total:,}",
        )
    if 2 * rows * total > len(header.body) + total:  # a coefficient takes a digit and a space
        raise header.error(header.lines + 1, f"{rows} coefficients are expected in each line from here on")
    coef, rests = np.empty((rows, total)), []
    for j, line in enumerate(lines):
        number = header.lines + 1 + j
        words = line.split(None, rows)
        if len(words) < rows or b"#" in line or b"qid" in line:
            raise header.error(number, f"{rows} coefficients and pairs index:value are expected here")
        coef[:, j] = header.floats(words[:rows], number, "coefficient")
        rests.append(b"0 " + (words[rows] if len(words) > rows else b"").strip() + b"\n")
    if not total:
        return coef, np.empty(0, dtype=np.int32) if precomputed else sparse.csr_array((0, 1))
    try:
        parsed = parse_text(header.name, b"".join(rests), header.lines + 1)
    except DataFileError as error:
        raise ModelFileError(f"{error}, or write the model again") from None
    ends = parsed.ends
    if precomputed:
        numbers = parsed.values
        wrong = (
            len(numbers) != total or parsed.largest != 0 or not np.array_equal(ends, np.arange(1, total + 1))
        )
        if wrong or np.any(numbers % 1) or numbers.min() < 1 or numbers.max() > _LARGEST_INDEX:
            raise header.error(
                header.lines + 1, "support vectors of a precomputed kernel are written 0:number, from 1"
            )
        return coef, (numbers - 1).astype(np.int32)
    if parsed.smallest == 0:
        raise header.error(header.lines + 1, "index 0 among the features, which count from 1")
    shape = (total, max(1, parsed.largest))
    indptr = np.concatenate([[0], ends])
    return coef, sparse.csr_array((parsed.values, parsed.indices - 1, indptr), shape=shape)


def _keep_vectors(model: Any, content: _Content, n_features: int | None, name: str) -> None:
    """Give the model its support vectors, in the order of the file."""
    vectors = content.vectors
    precomputed = content.kernel_type == "precomputed"
    least = int(vectors.max(initial=-1)) + 1 if precomputed else vectors.shape[1]
    width = max(1, least) if n_features is None else int(n_features)
    if width < least:
        raise ModelFileError(f"{name}: the file has an index {least:,}, beyond n_features={width:,}")
    if precomputed:
        model.support_, model.support_vectors_ = vectors, np.empty((0, 0))
        model.shape_fit_, model._sparse = (width, width), False
    else:
        total = vectors.shape[0]
        vectors = sparse.csr_array((vectors.data, vectors.indices, vectors.indptr), shape=(total, width))
        # Dense as long as that does not take much more memory than the file itself.
        model._sparse = bool(2 * vectors.nnz < total * width)
        model.support_vectors_ = vectors if model._sparse else vectors.toarray()
        model.support_, model.shape_fit_ = np.arange(total, dtype=np.int32), (total, width)
    model.n_features_in_ = width


class _Pairs(NamedTuple):
    """What a one-vs-one machine keeps, class after class and pair after pair; signs are the first class's."""

    counts: Array
    coef: Array
    rho: Array
    prob: tuple[Array, Array] | None


def _reordered(pairs: _Pairs, order: Array) -> tuple[Array, _Pairs]:
    """Return the classes in another order, and the rows of the support vectors that this needs.

    Pairs of classes that change places change signs.
    """
    K = len(order)
    starts = np.concatenate([[0], np.cumsum(pairs.counts)])
    rows = [np.arange(starts[k], starts[k + 1]) for k in range(K)]
    place = {(int(i), int(j)): column for column, (i, j) in enumerate(combinations(range(K), 2))}
    sizes = np.asarray(pairs.counts)[order]
    ends = np.cumsum(sizes)
    coef, rho, A, B = np.zeros_like(pairs.coef), *np.zeros((3, len(place)))
    for column, (i, j) in enumerate(combinations(range(K), 2)):
        first, second = int(order[i]), int(order[j])
        sign = -1.0 if first > second else 1.0
        there = place[min(first, second), max(first, second)]
        # The coefficients against class m are in row m − 1 before it, else in row m.
        own = pairs.coef[second - 1 if second > first else second, rows[first]]
        other = pairs.coef[first - 1 if first > second else first, rows[second]]
        coef[j - 1, ends[i] - sizes[i] : ends[i]] = sign * own
        coef[i, ends[j] - sizes[j] : ends[j]] = sign * other
        rho[column] = sign * pairs.rho[there]
        if pairs.prob is not None:
            A[column], B[column] = pairs.prob[0][there], sign * pairs.prob[1][there]
    prob = None if pairs.prob is None else (A, B)
    return np.concatenate([rows[k] for k in order]), _Pairs(sizes, coef, rho, prob)


def _keep_classes(model: Any, content: _Content) -> None:
    """Give the model its classes in ascending order."""
    order = np.argsort(content.labels)
    pairs = _Pairs(np.array(content.counts), content.coef, content.rho, content.prob)
    support, pairs = _reordered(pairs, order)
    model.support_ = model.support_[support]
    if model.support_vectors_.shape[0]:
        model.support_vectors_ = model.support_vectors_[support]
        model.support_ = np.arange(support.size, dtype=np.int32)
    side = -1.0 if len(order) == 2 else 1.0  # of two classes a positive score is the second one's here
    _keep_coefficients(model, side * pairs.coef, -side * pairs.rho)
    model._n_support = pairs.counts.astype(np.int32)
    model.classes_, model.multiclass_ = np.array(content.labels)[order], "ovo"
    model.class_weight_, model.n_iter_ = np.ones(len(order)), np.zeros(pairs.rho.size, dtype=np.int32)
    model._count = support.size
    model._probA, model._probB = pairs.prob or (np.empty(0), np.empty(0))
    model.probability = pairs.prob is not None


def _keep_coefficients(model: Any, coef: Array, intercept: Array) -> None:
    coef = coef + 0.0  # no −0
    model.dual_coef_ = sparse.csr_array(coef) if model._sparse else coef
    model.intercept_ = intercept + 0.0


def _measure(model: Any) -> None:
    """Compute the margins' widths ``2/‖w‖`` where that is affordable."""
    vectors = model.support_vectors_
    model.margin_width_ = np.full(model.intercept_.shape, np.nan)
    if 0 < vectors.shape[0] <= _MARGIN_SUPPORT:
        twin = copy(model)
        if sparse.issparse(vectors):
            # Features that no vector has change nothing, and an index may be as large as it likes.
            used, places = np.unique(vectors.indices, return_inverse=True)
            shape = (vectors.shape[0], max(1, used.size))
            vectors = sparse.csr_array((vectors.data, places, vectors.indptr), shape=shape)
            twin.support_vectors_ = vectors
        dual = model._dual()
        columns = model._pair_columns(dual) if model._by_pairs else dual.T
        sums = twin._score_columns(vectors) - model.intercept_
        norms = np.sqrt(np.maximum(np.einsum("ij,ij->j", columns, sums), 0.0))
        model.margin_width_ = np.array([2.0 / norm if norm > 0 else np.inf for norm in norms])
