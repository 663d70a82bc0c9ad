"""Why targets are missed, where that is known. A reason that was not measured says so with "presumably"."""

UNKNOWN = "no reason is known; it is open work"

_RIDGE = {
    "Gaussian": "the work is one Gram matrix, which scikit-learn too forms at the speed of BLAS; "
    "products of 16-bit integers are quicker, but two passes must correct it. The peer's copy of the "
    "samples takes presumably longest where its memory is fresh: its default is the same solver",
    "fashion": "one Gram matrix, of exact integers, at the peak rate of their products; see Gaussian samples",
    "text": "a dozen iterations on both sides, each a look-up of every stored value's weights",
    "sector": "105 classes: one factor of the samples' Gram matrix, and an exact solution, where the "
    "peer iterates",
    "newsgroups": "raw counts, up to 1,308: one factor of the samples' Gram matrix, and an exact "
    "solution, where the peer ends at three times the objective",
}
_LEAST_SQUARES = {
    "a9a": "coded categories depend on each other: eigenvalues find the rank, and a pass over the data "
    "proves it, which the peer's penalty spares it",
    "": "the work is one Gram matrix, which the peer too forms at the speed of BLAS",
}

REASONS = {
    "perceptron-pass": {
        "evenly": "look-ups: 400 KB of weights, twice that with those that are judged, leave the nearer "
        "caches; a bare dot product takes 1.2 to 1.4 ns a value (with 64 KB of weights 0.6), and would be no "
        "more than 5 times as fast as the peer's pass; with the judged weights 1.4 to 1.7. A bare pass, all "
        "in single precision, columns of 16 bits, nothing judged, takes 1.1 to 1.3: 5 times as fast as the "
        "peer here, 4 times on text. Rows that a second thread reads ahead won nothing",
        "text": "look-ups, as for evenly filled rows: a bare dot product takes 1.1 ns a value, and would be "
        "4.5 times as fast as the peer's pass, with the judged weights 1.4; then come the rows that change "
        "the weights, up to a quarter, which cannot be foreseen: 0.3 to 0.5",
        "float64, 2 classes": "memory: a bare sum of the rows takes one core two thirds of the pass",
    },
    "logistic-each": {
        "784": "scikit-learn's L-BFGS needs few steps on uncorrelated features, and each is two products "
        "at the speed of BLAS; what we save in steps goes into the curvature",
        "a9a": "LIBLINEAR's coordinate descent is at its best here: 14 ones in a row, and few passes",
    },
    "ridge-default": _RIDGE,
    "ridge-fastest": _RIDGE,
    "least-squares-default": _LEAST_SQUARES,
    "least-squares-fastest": _LEAST_SQUARES,
    "lda-fastest": {
        "": "the work is one covariance of all classes, which the peer too forms at the speed of BLAS",
    },
    "prediction": {"": "one product with the weights is all that either side does"},
    "svm-predict-libsvm": {
        "": "LIBSVM computes a kernel value once for all pairs of classes, as we do; two cores with AVX2 "
        "bound what vector arithmetic can win",
    },
    "svm-predict-intelex": {
        "": "intelex computes blocks of kernel values through its own matrix product, on all cores: what "
        "is left to win is the exponential and memory"
    },
    "svr-mean": {
        "": "the Gaussian set: kernel values of nearly all pairs fill fresh memory, which costs as "
        "much as the steps",
    },
    "svm-tiny": {"": "most of the time goes into the checks of scikit-learn's interface, on both sides"},
    "linear-svm-each": {
        "a9a": "LIBLINEAR needs few passes here and proves nothing; ours ends with a certified gap",
        "newsgroups": "word counts that are not scaled: long documents decide how many passes it takes, on "
        "both sides",
    },
    "sgd-pass": {
        "text": "some 40 of 150 ns a row wait for memory, though rows are asked for ahead, the rest for "
        "look-ups of weights in the second cache and for the row before",
        "a9a": "14 entries in a row: a bare loop of scores and steps, with nothing else, takes 22.7 ns a row "
        "here, ours 18.6, and 16 are asked for. Scores of the next row ahead of the step (34 ns) and steps "
        "without a branch (32 ns) are slower. On another processor (AVX2) the rows were 4.2 and 4.4 "
        "times as fast",
    },
}
"""By target, then by part of a case's name; an empty part stands for all others."""


def explanation(target: str, case: str) -> str:
    """Why a target is missed on a case."""
    reasons = REASONS.get(target, {})
    named = [text for part, text in reasons.items() if part and part in case]
    return named[0] if named else reasons.get("", UNKNOWN)
