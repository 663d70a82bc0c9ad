"""What the project promises, each as a row with its verdict. Why a known loss is one, reasons.py tells."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import memory
from benchmarks.cases import INTELEX, PEER
from benchmarks.machines import FAISS, LIBLINEAR, LIBSVM
from benchmarks.sources import KERNEL_SETS, KNOWN

_TALL = tuple(
    f"Gaussian 200,000 × 100 {dtype}, {classes} classes"
    for dtype in ("float64", "float32")
    for classes in (2, 10)
)
_WIDE = "Gaussian 60,000 × 784 float32, 10 classes"
_TEXT = tuple(f"text 50,000 × 50,000, {classes} classes" for classes in (2, 10))
_EVEN = tuple(f"evenly filled 50,000 × 50,000, {classes} classes" for classes in (2, 10))
_DENSE_SETS = (*_TALL, _WIDE, "covtype", "fashion_mnist")
_CLOSED_SETS = (*_DENSE_SETS, "a9a")
_LINEAR_SETS = (*_TALL, _WIDE, *_TEXT, *KNOWN)
_SVR_CASES = ("satimage", "cod_rna 20,000", "Gaussian 10,000 × 20, 2 classes")
_BETTER = (LIBSVM, INTELEX)


def _each(suffix: str, cases: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{case}{suffix}" for case in cases)


@dataclass(frozen=True)
class Target:
    """One promise: the rows that it is about, and what they must show.

    `kind` says what is compared with `bound`: ``"ratio"`` (times as fast as the peer, at least), ``"mean"``
    (geometric mean of these), ``"share"`` (times the peer's seconds, at most), ``"seconds"`` and ``"bytes"``
    (at most), ``"copies"`` (bytes as a part of the input, at most), ``"told"`` (a number to be reported).
    Of several `libraries` the better one of each case counts.
    """

    key: str
    text: str
    family: str
    kind: str
    bound: float
    cases: tuple[str, ...]
    libraries: tuple[str, ...] = ()


# fmt: off
TARGETS = (
    Target("perceptron-pass", "a pass at least 5 times as fast as scikit-learn's Perceptron",
           "perceptron", "ratio", 5.0, (*_TALL, *_TEXT, *_EVEN)),
    Target("perceptron-first", "first fit on iris in a fresh process no slower than scikit-learn's",
           "startup", "ratio", 1.0, ("iris: Perceptron",)),
    Target("perceptron-memory", "no copy of float32 or float64 input (growth below a tenth of it)",
           "memory", "copies", 0.1,
           tuple(f"500,000 × 100 {dtype}, {layout} order: Perceptron"
                 for dtype in ("float32", "float64") for layout in ("C", "F"))),
    Target("logistic-mean", "logistic regression 8 times as fast as the better peer, geometric mean",
           "logistic", "mean", 8.0, _LINEAR_SETS, (PEER, INTELEX)),
    Target("logistic-each", "logistic regression at least 1.5 times as fast on every set",
           "logistic", "ratio", 1.5, _LINEAR_SETS, (PEER, INTELEX)),
    Target("lda-default", "LDA at least 10 times as fast as scikit-learn's default solver",
           "closed", "ratio", 10.0, _each(": LDA", _DENSE_SETS), (f"{PEER} default",)),
    Target("lda-fastest", "LDA at least 3 times as fast as scikit-learn's fastest solver",
           "closed", "ratio", 3.0, _each(": LDA", _DENSE_SETS), (f"{PEER} fastest",)),
    Target("ridge-default", "ridge at least 3 times as fast as RidgeClassifier",
           "closed", "ratio", 3.0, _each(": ridge", _LINEAR_SETS), (f"{PEER} default",)),
    Target("ridge-fastest", "ridge at least 3 times as fast as RidgeClassifier's fastest solver",
           "closed", "ratio", 3.0, _each(": ridge", _LINEAR_SETS), (f"{PEER} fastest",)),
    Target("least-squares-default", "least squares at least 3 times as fast as RidgeClassifier",
           "closed", "ratio", 3.0, _each(": least squares", _CLOSED_SETS), (f"{PEER} default",)),
    Target("least-squares-fastest",
           "least squares at least 3 times as fast as RidgeClassifier's fastest solver",
           "closed", "ratio", 3.0, _each(": least squares", _CLOSED_SETS), (f"{PEER} fastest",)),
    Target("prediction", "predictions no slower than scikit-learn's",
           "prediction", "ratio", 1.0,
           tuple(f"{case}: {name}" for case in (*_TALL, *_TEXT, "fashion_mnist")
                 for name in ("LogisticRegression", "RidgeClassifier")),
           (PEER,)),
    Target("memory-closed", "a closed form on 1,000,000 × 100 float32 takes less than 200 MB extra",
           "memory", "bytes", 200e6, tuple(f"1,000,000 × 100 float32: {name}" for name in memory.CLOSED)),
    Target("memory-iterative", "an iterative fit on 1,000,000 × 100 float32 takes less than one packed "
           "copy and 200 MB extra",
           "memory", "bytes", 600e6, tuple(f"1,000,000 × 100 float32: {name}" for name in memory.ITERATIVE)),
    Target("svm-mean", "SVC fit 6 times as fast as the better of LIBSVM and intelex, geometric mean",
           "svm", "mean", 6.0, KERNEL_SETS, _BETTER),
    Target("svm-each", "SVC fit at least 3 times as fast as the better of LIBSVM and intelex on "
           "every set",
           "svm", "ratio", 3.0, KERNEL_SETS, _BETTER),
    Target("svm-predict-libsvm", "SVC predict at least 40 times as fast as LIBSVM",
           "svm-predict", "ratio", 40.0, KERNEL_SETS, (LIBSVM,)),
    Target("svm-predict-intelex", "SVC predict at least 4 times as fast as intelex",
           "svm-predict", "ratio", 4.0, KERNEL_SETS, (INTELEX,)),
    Target("svm-hard", "SVC ahead of LIBSVM and intelex at C = 1000",
           "svm-hard", "ratio", 1.0, _each(", C = 1000", KERNEL_SETS), _BETTER),
    Target("svm-tight", "SVC ahead of LIBSVM and intelex at tolerance 1e-6",
           "svm-hard", "ratio", 1.0, _each(", tol 1e-6", KERNEL_SETS), _BETTER),
    Target("svr-mean", "SVR 6 times as fast as the better peer, geometric mean",
           "svr", "mean", 6.0, _SVR_CASES, _BETTER),
    Target("svr-each", "SVR at least 3 times as fast as the better peer on every set",
           "svr", "ratio", 3.0, _SVR_CASES, _BETTER),
    Target("svm-tiny", "SVC fit and predict on tiny data at least twice as fast as scikit-learn's",
           "small", "ratio", 2.0, ("iris: SVC", "wine: SVC"), (PEER,)),
    Target("svm-first", "SVC in a fresh process (import, fit, predict) no slower than scikit-learn's",
           "startup", "ratio", 1.0, ("iris: SVC", "wine: SVC")),
    Target("svm-memory", "SVC on 200,000 rows stays within 2 GB",
           "memory", "bytes", 2e9, ("200,000 × 20 float32: SVC, cache_size 1,000",)),
    Target("strings", "the Gram matrix of 1,000 texts of 1,000 characters takes seconds (at most 10)",
           "strings", "seconds", 10.0,
           tuple(f"1,000 texts of 1,000 characters, {name}: {kernel}"
                 for name in ("DNA", "letters") for kernel in ("Spectrum(4)", "BoundedRange(5)"))),
    Target("subsequence", "the subsequence kernel's rate in cells of dynamic programming per second and "
           "core is reported",
           "strings", "told", 1e9,
           tuple(f"125 texts of 1,000 characters, {name}: Subsequence(5, 0.5)"
                 for name in ("DNA", "letters"))),
    Target("linear-svm-mean", "LinearSVC 8 times as fast as LIBLINEAR, geometric mean",
           "linear-svm", "mean", 8.0, _each(": squared_hinge", (*_TALL[:2], *KNOWN)), (LIBLINEAR,)),
    Target("linear-svm-each", "LinearSVC at least 1.5 times as fast as LIBLINEAR on every set",
           "linear-svm", "ratio", 1.5, (*_each(": squared_hinge", (*_TALL[:2], *KNOWN)), "a9a: hinge"),
           (LIBLINEAR,)),
    Target("linear-svm-tight", "LinearSVC no slower than LIBLINEAR at tolerance 1e-6",
           "linear-svm", "ratio", 1.0, _each(": squared_hinge, tol 1e-06", (*_TALL[:2], *KNOWN)),
           (LIBLINEAR,)),
    Target("linear-svm-hinge", "LinearSVC with hinge loss at least 50 times as fast on tall dense data, "
           "where LIBLINEAR does not converge",
           "linear-svm", "ratio", 50.0, (f"{_TALL[0]}: hinge",), (LIBLINEAR,)),
    Target("neighbors-sklearn", "nearest neighbours on fashion_mnist at least 4 times as fast as "
           "scikit-learn's brute force",
           "neighbors", "ratio", 4.0, ("fashion_mnist",), (f"{PEER} brute",)),
    Target("neighbors-faiss", "nearest neighbours on fashion_mnist at least twice as fast as faiss's "
           "flat index",
           "neighbors", "ratio", 2.0, ("fashion_mnist",), (FAISS,)),
    Target("sgd-pass", "a pass of SGD at least 3 times as fast as scikit-learn's",
           "sgd", "ratio", 3.0,
           tuple(f"{case}: {loss}" for case in _LINEAR_SETS for loss in ("hinge", "log_loss")), (PEER,)),
    Target("read-svmlight", "LIBSVM text read at least 5 times as fast as by load_svmlight_file",
           "reading", "ratio", 5.0, ("LIBSVM text 20,000 × 50,000",)),
    Target("read-csv", "CSV read at pyarrow's speed (at least 0.9 times as fast)",
           "reading", "ratio", 0.9,
           ("CSV 200,000 × 20", "CSV 200,000 × 14, 8 of text", "CSV 100,000 × 14, 8 of many texts",
            "CSV 2,000 × 14, 8 of text")),
    Target("help", "separatrix --help takes at most four times python -c pass",
           "startup", "share", 4.0, ("separatrix --help",)),
    Target("fit-iris", "separatrix fit on iris takes at most 1.5 times import sklearn.svm",
           "startup", "share", 1.5, ("separatrix fit on iris",)),
    Target("compare", "compare on a file of 10,000 rows takes well under a minute (45 seconds)",
           "reading", "seconds", 45.0, ("compare on a CSV of 10,000 × 20",)),
)
# fmt: on
