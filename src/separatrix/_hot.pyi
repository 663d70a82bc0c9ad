"""Types of the compiled core (sources in the folder ``_hot``). It checks nothing: callers have."""

from typing import Any

from numpy.typing import NDArray

def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def use_instruction_set(name: str, /) -> None: ...
def shuffle(order: NDArray[Any], state: int, /) -> int: ...
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
        eta: float,
        margin: float,
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
