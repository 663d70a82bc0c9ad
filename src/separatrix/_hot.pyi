"""Types of the compiled core (sources in the folder ``_hot``). It checks no values: callers have."""

from typing import Any

from numpy.typing import NDArray

def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def use_instruction_set(name: str, /) -> None: ...
def shuffle(order: NDArray[Any], state: int, /) -> int: ...
def permute(order: NDArray[Any], seed: int, /) -> None: ...
def shuffle_blocks(
    samples: NDArray[Any], order: NDArray[Any], block: int, streams: int, state: int, /
) -> int: ...

# The rows (an array; or data, indices and indptr), then where their hashes go.
def hash_rows(*rows_and_out: NDArray[Any]) -> None: ...

class _State:
    # The rows (an array; or data, indices, indptr and the number of features), then the visits.
    def run_dense(self, *rows_and_visits: Any, judge: _Judge | None = None) -> int: ...
    def run_csr(self, *rows_and_visits: Any, judge: _Judge | None = None) -> int: ...

class _Perceptron(_State):
    def __init__(
        self,
        *,
        classes: NDArray[Any],
        row_weights: NDArray[Any] | None,
        codes: NDArray[Any],
        wanted: NDArray[Any],
        weights: NDArray[Any],
        intercepts: NDArray[Any],
        drift: NDArray[Any] | None,
        drift_intercepts: NDArray[Any] | None,
        clock: NDArray[Any],
        decay: float,
        truncation: float,
        scale: NDArray[Any] | None,
        owed: NDArray[Any] | None,
        paid: NDArray[Any] | None,
        updates: NDArray[Any],
        tally: NDArray[Any],
        remaining: NDArray[Any],
        scores: NDArray[Any],
        joint: bool,
        fit_intercept: bool,
        intercept_step: float,
        eta: float,
        margin: float,
        largest: float,
    ) -> None: ...

class _Judge(_State):
    def __init__(
        self,
        *,
        classes: NDArray[Any],
        row_weights: NDArray[Any] | None,
        codes: NDArray[Any],
        wanted: NDArray[Any],
        weights: NDArray[Any],
        intercepts: NDArray[Any],
        largest: NDArray[Any],
        errors: NDArray[Any],
        scores: NDArray[Any],
        largest_wins: bool,
        margin: float,
    ) -> None: ...

class _Sgd(_State):
    def __init__(
        self,
        *,
        classes: NDArray[Any] | None,
        targets: NDArray[Any],
        factors: NDArray[Any] | None,
        row_weights: NDArray[Any] | None,
        loss: int,
        epsilon: float,
        l2: float,
        l1: float,
        fit_intercept: bool,
        intercept_decay: float,
        rate: int,
        eta0: float,
        power: float,
        alpha: float,
        t0: float,
        weights: NDArray[Any],
        intercepts: NDArray[Any],
        scale: NDArray[Any],
        active: NDArray[Any],
        eta: NDArray[Any],
        owed: NDArray[Any],
        paid: NDArray[Any] | None,
        clock: NDArray[Any],
        average_from: float,
        drift: NDArray[Any] | None,
        area: NDArray[Any],
        intercept_sums: NDArray[Any],
        losses: NDArray[Any],
        scores: NDArray[Any],
        steps: NDArray[Any],
        margins: NDArray[Any],
        values: NDArray[Any],
        slopes: NDArray[Any],
    ) -> None: ...

class PerceptronFloat32(_Perceptron): ...
class PerceptronFloat64(_Perceptron): ...
class JudgeFloat32(_Judge): ...
class JudgeFloat64(_Judge): ...
class SgdFloat32(_Sgd): ...
class SgdFloat64(_Sgd): ...

# Several passes in one call: the budget of the visits is the most of them, the answer how many were made.
# A row of records for each: seconds, mistakes, margin errors, criterion, square of the norm, errors of its
# start (or -1), whether nothing moved; of gradient descent: seconds, then losses, squared norms and sums of
# sizes of all columns, and the square of the norm.
class _PerceptronPasses(_State):
    def __init__(
        self,
        *,
        learner: _Perceptron,
        order: NDArray[Any],
        random: NDArray[Any] | None,
        seconds: float,
        wanted: NDArray[Any],
        begun: bool,
        weights: NDArray[Any],
        frozen: NDArray[Any],
        pocket: NDArray[Any],
        frozen_intercepts: NDArray[Any],
        pocket_intercepts: NDArray[Any],
        errors: NDArray[Any],
        pocket_errors: NDArray[Any],
        records: NDArray[Any],
    ) -> None: ...

class _SgdPasses(_State):
    def __init__(
        self,
        *,
        learner: _Sgd,
        order: NDArray[Any],
        random: NDArray[Any] | None,
        seconds: float,
        weights: NDArray[Any],
        drift: NDArray[Any] | None,
        records: NDArray[Any],
    ) -> None: ...

class PerceptronPassesFloat32(_PerceptronPasses): ...
class PerceptronPassesFloat64(_PerceptronPasses): ...
class SgdPassesFloat32(_SgdPasses): ...
class SgdPassesFloat64(_SgdPasses): ...

def sweep_dense(
    X: NDArray[Any],
    single: bool,
    classes: NDArray[Any],
    weights: NDArray[Any] | None,
    codes: NDArray[Any] | None,
    coef: NDArray[Any],
    intercept: NDArray[Any],
    gradient: NDArray[Any] | None,
    gradient_intercept: NDArray[Any],
    residuals: NDArray[Any] | None,
) -> float: ...
def sweep_squares(
    X: NDArray[Any],
    single: bool,
    classes: NDArray[Any],
    weights: NDArray[Any] | None,
    targets: NDArray[Any],
    coef: NDArray[Any],
    intercept: NDArray[Any],
    gradient: NDArray[Any],
    slack: NDArray[Any],
    losses: NDArray[Any],
    errors: NDArray[Any] | None,
) -> None: ...

# scores = X coefᵀ + intercept in the precision of X, whose features lie one after the other; coef is float64.
def dense_scores(
    X: NDArray[Any], coef: NDArray[Any], intercept: NDArray[Any], scores: NDArray[Any]
) -> None: ...
def sweep_csr(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    classes: NDArray[Any],
    weights: NDArray[Any] | None,
    codes: NDArray[Any] | None,
    coef: NDArray[Any],
    intercept: NDArray[Any],
    gradient: NDArray[Any] | None,
    gradient_intercept: NDArray[Any],
    residuals: NDArray[Any] | None,
) -> float: ...

# Adds Σ s x and Σ s x² of each column to the two rows of sums.
def column_sums(X: NDArray[Any], weights: NDArray[Any] | None, sums: NDArray[Any]) -> None: ...

# With z = x − origin: adds Σ s z zᵀ to gram, on and above the diagonal, and Σ s z of each class to sums. The
# rows are those of order; origin is one row or one for each class; products in double (0) or float (1), or of
# values rounded to 16 bits (2), or of whole numbers (3; NaN if some are not, or too large): Precision.
# Unless steps is 1, rows are multiples of 1/steps and stand for their whole numbers, NaN where they are none.
def add_products(
    X: NDArray[Any],
    precision: int,
    order: NDArray[Any] | None,
    classes: NDArray[Any] | None,
    weights: NDArray[Any] | None,
    origin: NDArray[Any] | None,
    sums: NDArray[Any] | None,
    gram: NDArray[Any] | None,
    steps: float,
) -> None: ...

# Copies what is above the diagonal below it.
def mirror(gram: NDArray[Any]) -> None: ...
def gram_csr(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    weights: NDArray[Any] | None,
    gram: NDArray[Any],
) -> None: ...

# Parts of some CSR rows and of the transpose of all, the first of these to multiply with, where to add.
def add_gram_rows(*parts_first_and_out: Any) -> None: ...

# H, gradient, weights, step, falls, then l1, l2, sweeps and tol.
def gram_descent(*arrays_and_settings: Any) -> float: ...

# The columns (a Fortran array; or data, rows and starts), which of them, h, and where the sums go.
def column_curvature(*columns_and_out: NDArray[Any]) -> None: ...

class Coordinates:
    def __init__(
        self,
        *,
        l1: float,
        l2: float,
        q: NDArray[Any],
        p: NDArray[Any] | None,
        Z: NDArray[Any],
        mean: NDArray[Any] | None,
        gradient: NDArray[Any],
        curvature: NDArray[Any],
        weights: NDArray[Any],
        step: NDArray[Any],
        intercept_gradient: NDArray[Any],
        intercept_inverse: NDArray[Any],
        intercept_step: NDArray[Any],
        scratch: NDArray[Any],
        fit_intercept: bool,
    ) -> None: ...
    # The columns, which of them, the order of the visits, active weights, and whether only those count.
    def sweep(self, *columns_and_visits: Any) -> float: ...

class _BoxDual:
    negligible: float
    def __init__(
        self,
        *,
        classes: NDArray[Any],
        upper: NDArray[Any],
        delta: NDArray[Any],
        norms: NDArray[Any],
        numbers: NDArray[Any] | None,
        targets: NDArray[Any],
        low: NDArray[Any],
        high: NDArray[Any],
        epsilon: float,
        constant: float,
        weights: NDArray[Any],
        v: NDArray[Any],
        offsets: NDArray[Any],
        asleep: NDArray[Any],
        scratch: NDArray[Any],
        tally: NDArray[Any],
    ) -> None: ...
    # The rows, then the order, begin, end and the position of the first gathered row (or −1).
    def run_dense(self, *rows_and_visits: Any) -> None: ...
    def run_csr(self, *rows_and_visits: Any) -> None: ...

class BoxDualFloat32(_BoxDual): ...
class BoxDualFloat64(_BoxDual): ...

# Scores, how they change along a line, how far; codes or numbers, U, v0, ρ, ε, whether v is bounded; where
# to write v
# and whether it is free. Sums of slope, bend, loss, linear and quadratic part.
def respond(
    f: NDArray[Any], q: NDArray[Any] | None, t: float, *loss_and_outputs: Any
) -> tuple[float, float, float, float, float]: ...

# Scores, how they change along a line; the loss as above; slope and curvature of the penalty, slope at the
# start.
def search(f: NDArray[Any], q: NDArray[Any], *loss_and_slopes: Any) -> float: ...

# argmin over z of g·(z − w) + ½ (z − w)·H·(z − w) + Σ λ|z|, from z = w; g becomes the smooth part's gradient
# there.
def l1_model(
    H: NDArray[Any], lambda_: NDArray[Any], z: NDArray[Any], g: NDArray[Any], eta: float
) -> None: ...

# How far to go from w to z for the squared hinge with an L1 penalty: scores, how they change, codes, U; the
# slope.
def l1_search(
    f: NDArray[Any],
    q: NDArray[Any],
    codes: NDArray[Any] | None,
    upper: NDArray[Any],
    w: NDArray[Any],
    z: NDArray[Any],
    lambda_: NDArray[Any],
    start: float,
) -> float: ...

# Newton steps of all columns of few dense data; W, b, F = X Wᵀ + b and V are changed in place.
class SmallNewton:
    def __init__(self, **data_and_rules: Any) -> None: ...
    # Objective, gap, whether any column goes on, whether any can get no further.
    def measure(self) -> tuple[float, float, bool, bool]: ...
    def step(self) -> None: ...

class SmallLogit:
    def __init__(
        self,
        *,
        x: NDArray[Any],
        classes: NDArray[Any],
        weights: NDArray[Any] | None,
        intercept: bool,
        l1: float,
        l2: float,
        coef: NDArray[Any],
        start: NDArray[Any],
    ) -> None: ...
    # Takes a step, with a new Hessian or the last one; returns whether it moved.
    def step(self, anew: bool) -> bool: ...
    # Objective, gap (inf where none is known), Newton's decrement (inf at the start).
    def measure(self) -> tuple[float, float, float]: ...
    def parameters(self, coef: NDArray[Any], intercept: NDArray[Any]) -> None: ...
    # Objective, lower bound (−inf where none is known) and violation at these parameters.
    def evaluate(self, coef: NDArray[Any], intercept: NDArray[Any]) -> tuple[float, float, float]: ...

class SmallJoint:
    def __init__(
        self,
        *,
        x: NDArray[Any],
        classes: NDArray[Any],
        cost: NDArray[Any],
        W: NDArray[Any],
        mu: NDArray[Any],
        rho: float,
        tol: float,
    ) -> None: ...
    # Newton steps, fewer where the gap is within tol before; W and mu are changed.
    def run(self, steps: int) -> None: ...
    # Objective and bound, and how many steps were taken.
    def measure(self) -> tuple[float, float, int]: ...

class _CrammerSinger:
    negligible: float
    def __init__(
        self,
        *,
        classes: NDArray[Any],
        cost: NDArray[Any],
        norms: NDArray[Any],
        columns: int,
        constant: float,
        weights: NDArray[Any],
        mu: NDArray[Any],
        asleep: NDArray[Any],
        scratch: NDArray[Any],
        tally: NDArray[Any],
    ) -> None: ...
    # The rows, then the order, begin, end and the position of the first gathered row (or −1).
    def run_dense(self, *rows_and_visits: Any) -> None: ...
    def run_csr(self, *rows_and_visits: Any) -> None: ...

class CrammerSingerFloat32(_CrammerSinger): ...
class CrammerSingerFloat64(_CrammerSinger): ...

class _SoftmaxDual:
    negligible: float
    shrink: float
    def __init__(
        self,
        *,
        classes: NDArray[Any],
        scale: NDArray[Any],
        norms: NDArray[Any],
        mean_dots: NDArray[Any],
        columns: int,
        constant: float,
        weights: NDArray[Any],
        nu: NDArray[Any],
        asleep: NDArray[Any],
        offsets: NDArray[Any],
        sums: NDArray[Any],
        spread: NDArray[Any],
        scratch: NDArray[Any],
        tally: NDArray[Any],
    ) -> None: ...
    # The rows, then the order, begin, end and the position of the first gathered row (or −1).
    def run_dense(self, *rows_and_visits: Any) -> None: ...
    def run_csr(self, *rows_and_visits: Any) -> None: ...

class SoftmaxDualFloat32(_SoftmaxDual): ...
class SoftmaxDualFloat64(_SoftmaxDual): ...

# The rows, then the weights and where the scores go; or the right side, a range of columns and the sum.
def padded_scores(*rows_and_arrays: Any) -> None: ...
def add_padded_transposed(*rows_and_arrays: Any) -> None: ...
def softmax_rows(
    scores: NDArray[Any],
    offsets: NDArray[Any],
    classes: NDArray[Any],
    weights: NDArray[Any],
    columns: int,
    P: NDArray[Any],
    /,
) -> float: ...

class Nearest:
    def __init__(
        self,
        *,
        distance: NDArray[Any],
        index: NDArray[Any],
        cosine: bool,
        dense: NDArray[Any] | None,
        reduced: NDArray[Any] | None,
        room: NDArray[Any] | None,
        grow: float,
        slack: float,
    ) -> None: ...
    # X or data, indices and indptr; the number of the first row; panels and halves. For sparse rows: values,
    # halves, the queries' data, indices and indptr, the number of features.
    def add_dense(
        self, X: NDArray[Any], first: int, panels: NDArray[Any] | None, halves: NDArray[Any] | None
    ) -> None: ...
    def add_csr(self, *rows_and_queries: Any) -> None: ...
    def add_distances(self, distances: NDArray[Any], first: int) -> None: ...

# Strings as code points and where each begins, then pairs of them by number.
def substring_kernel(
    codes: NDArray[Any],
    starts: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    alphabet: int,
    weights: NDArray[Any],
    out: NDArray[Any],
) -> None: ...
def subsequence_kernel(
    codes: NDArray[Any],
    starts: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    order: int,
    decay: float,
    out: NDArray[Any],
) -> None: ...

# Samples packed for kernel evaluation.
class _KernelPanels:
    width: int
    mean_half: float
    def __init__(
        self, *, formula: int, degree: int, coef0: float, scale: float, sparse: bool, n: int, d: int
    ) -> None: ...
    def fill_dense(self, X: NDArray[Any], first: int, shift: NDArray[Any] | None) -> None: ...
    def fill_csr(
        self,
        data: NDArray[Any],
        indices: NDArray[Any],
        indptr: NDArray[Any],
        first: int,
        shift: NDArray[Any] | None,
    ) -> None: ...
    def finish(self) -> None: ...
    def take(self, rows: NDArray[Any], /) -> Any: ...
    # The panels of the left samples and which of them, then where the values go.
    def block(self, left: Any, rows: NDArray[Any], out: NDArray[Any], /) -> None: ...
    # …, where their parts start, their coefficients, the first panel and the end, and the sums.
    def product(
        self,
        left: Any,
        rows: NDArray[Any],
        starts: NDArray[Any],
        coef: NDArray[Any],
        begin: int,
        end: int,
        out: NDArray[Any],
        /,
    ) -> None: ...

class KernelPanelsFloat32(_KernelPanels): ...
class KernelPanelsFloat64(_KernelPanels): ...

class _KernelMachine:
    mean_half: float
    def __init__(
        self,
        *,
        formula: int,
        degree: int,
        coef0: float,
        scale: float,
        zeros: bool,
        few: bool,
        d: int,
        shift: NDArray[Any] | None,
        sizes: NDArray[Any],
        columns: int,
    ) -> None: ...
    def fill_dense(self, X: NDArray[Any], first: int) -> None: ...
    def fill_csr(
        self, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], first: int
    ) -> None: ...
    def finish(self, coef: NDArray[Any]) -> None: ...
    # The rows; the next of them, which threads share, and how many are taken at a time; where the sums go, or
    # the classes that win all their pairs by more than the rows' errors (else −1).
    def sums_dense(self, X: NDArray[Any], turn: NDArray[Any], step: int, to: NDArray[Any], /) -> None: ...
    def winners_dense(
        self,
        X: NDArray[Any],
        turn: NDArray[Any],
        step: int,
        intercept: NDArray[Any],
        error: NDArray[Any],
        winner: NDArray[Any],
        /,
    ) -> None: ...
    def sums_csr(
        self,
        data: NDArray[Any],
        indices: NDArray[Any],
        indptr: NDArray[Any],
        turn: NDArray[Any],
        step: int,
        to: NDArray[Any],
        /,
    ) -> None: ...
    def winners_csr(
        self,
        data: NDArray[Any],
        indices: NDArray[Any],
        indptr: NDArray[Any],
        turn: NDArray[Any],
        step: int,
        intercept: NDArray[Any],
        error: NDArray[Any],
        winner: NDArray[Any],
        /,
    ) -> None: ...

class KernelMachineFloat32(_KernelMachine):
    # Integers take the place of the support vectors: from then on it knows winners of RBF kernels alone.
    def round(self, quantum: float) -> None: ...

class KernelMachineFloat64(_KernelMachine): ...

def pair_scores(sums: NDArray[Any], classes: int, intercept: NDArray[Any], to: NDArray[Any], /) -> None: ...
def pair_votes(scores: NDArray[Any], classes: int, to: NDArray[Any], /) -> None: ...

class SmallSmo:
    def __init__(
        self,
        *,
        values: NDArray[Any],
        starts: NDArray[Any],
        rows: NDArray[Any],
        signs: NDArray[Any],
        upper: NDArray[Any],
        alpha: NDArray[Any],
        gradient: NDArray[Any],
        copies: int,
        separate: bool,
        largest: int,
        tol: float,
        coarse: float,
        most_steps: int,
        steps: NDArray[Any],
        violation: NDArray[Any],
        worst_curvature: NDArray[Any],
        status: NDArray[Any],
    ) -> None: ...
    def rewind(self) -> None: ...
    def run(self, seconds: float, /) -> None: ...

def dual_machines(
    starts: NDArray[Any],
    rows: NDArray[Any],
    signs: NDArray[Any],
    linear: NDArray[Any],
    upper: NDArray[Any],
    alpha: NDArray[Any],
    gradient: NDArray[Any],
    lengths: NDArray[Any],
    unit: float,
    doubt: NDArray[Any],
    separate: bool,
    numbers: NDArray[Any],
    variables: NDArray[Any],
) -> None: ...

# Gap, objective and the sum of the bounds of free variables of a problem whose sums of variables before
# middle and from it on are kept (middle = n: one sum).
def dual_gap(
    middle: int,
    signs: NDArray[Any],
    upper: NDArray[Any],
    price: NDArray[Any] | None,
    linear: NDArray[Any],
    alpha: NDArray[Any],
    E: NDArray[Any],
) -> tuple[float, float, float]: ...
def fit_sigmoids(
    scores: NDArray[Any],
    positive: NDArray[Any],
    starts: NDArray[Any],
    weights: NDArray[Any] | None,
    A: NDArray[Any],
    B: NDArray[Any],
) -> None: ...

class RowMemory:
    spare: float
    def __init__(self) -> None: ...

# Kernel rows of the samples of a class among themselves.
class _ClassRows:
    entries: int
    def __init__(self, panels: _KernelPanels, memory: RowMemory) -> None: ...

class ClassRowsFloat32(_ClassRows): ...
class ClassRowsFloat64(_ClassRows): ...

class _Smo:
    keeps: bool
    steps: int
    entries: int
    violation: float
    worst_curvature: float
    status: int
    in_rounds: bool
    most_steps: int
    tol: float
    def __init__(
        self,
        *,
        panels: _KernelPanels | None,
        first: _ClassRows | None,
        second: _ClassRows | None,
        matrix: NDArray[Any] | None,
        given: NDArray[Any] | None,
        copies: int,
        middle: int,
        separate: bool,
        signs: NDArray[Any],
        upper: NDArray[Any],
        price: NDArray[Any] | None,
        diag: NDArray[Any],
        alpha: NDArray[Any],
        E: NDArray[Any],
        tol: float,
        most_steps: int,
        row_bytes: float,
        memory: RowMemory,
        in_rounds: bool,
    ) -> None: ...
    # Once solved, keep the rows if the relative gap or the length of the variables is larger; linear = s p
    # must live as long.
    def keep_if_open(self, linear: NDArray[Any], gap: float, length: float, /) -> None: ...
    # out += Σ_k K(points_k, ·) change_k
    def add(self, points: NDArray[Any], change: NDArray[Any], out: NDArray[Any], /) -> None: ...

class SmoFloat32(_Smo): ...
class SmoFloat64(_Smo): ...

def run_smo(problems: list[Any], seconds: float, /) -> None: ...

# Text as int8: an upper bound of its rows.
def count_lines(text: NDArray[Any], /) -> int: ...

# Text as int8, quotation mark, separator.
def quotes_within_lines(text: NDArray[Any], quote: int, delimiter: int, /) -> bool: ...

# Text as int8, separator and quotation mark (0: none), spellings of missing values, what is written for a
# missing text, whether rows with missing values are left out, and of each column its place among the
# columns of `values`, −1 if it is skipped, −2 for labels, −3 − k if it is column k of texts. Then what is
# written: numbers, the ends of texts in their bytes (of both, rows or columns may follow each other), codes
# of labels, of each row whether a value is missing, and of each column whether a value is no number.
# Returns the numbers of rows (delivered, in the text, with missing values), whether the text was plain,
# whether it was ASCII, the different labels (where they begin and end, as int32, and their bytes), and the
# bytes of each column of texts.
def parse_delimited(
    text: NDArray[Any],
    marks: tuple[int, int],
    missing: list[str],
    filling: str,
    drop: bool,
    slots: NDArray[Any],
    values: NDArray[Any],
    ends: NDArray[Any],
    codes: NDArray[Any],
    incomplete: NDArray[Any],
    odd: NDArray[Any],
    /,
) -> tuple[tuple[int, int, int], bool, bool, tuple[bytes, bytes], list[NDArray[Any]]]: ...

# Chunks of a column of texts (their ends, as int32, and their bytes, as int8): whether most of those that do
# not equal `passed` may be numbers, and whether more than this share of all may be different.
def text_doubts(
    chunks: list[tuple[NDArray[Any], NDArray[Any]]], passed: str, share: float, /
) -> tuple[bool, bool]: ...

# Text as int8, one block of whole lines: upper bounds of rows and values.
def count_svmlight(text: NDArray[Any], /) -> tuple[int, int]: ...

# Text, then where labels, ends of rows, indices and values go. Returns rows, values, lines, queries, smallest
# and largest index, the number of the error (0: none) and its place in the text.
def parse_svmlight(
    text: NDArray[Any],
    labels: NDArray[Any],
    ends: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any],
    /,
) -> tuple[int, int, int, int, int, int, int, int]: ...
