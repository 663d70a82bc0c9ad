"""How many bytes Gaussian models, logistic regression and linear machines take besides their input.

Upper bounds, rather too high than too low, by which a method is chosen where the user has set a limit
(:mod:`separatrix.data.room`). Each counts the arrays in the shape of the scores, of the weights and of the
matrices in work; ``tests/test_room.py`` compares them with what fits take.
"""

from __future__ import annotations

from separatrix.data.room import allowed, basis, blocks_of
from separatrix.data.threads import threads_allowed
from separatrix.data.view import DataView

#: Largest side of the square matrices of Newton's method for machines, and how many are in work.
_SIDE, _MATRICES = 8000, 7.0
#: Most bytes of sums of products that are kept.
_KEPT = float(256 << 20)
#: What stored entries of sparse rows take beside their value, in bytes.
_PLACE = 8.0


def stored(view: DataView, rows: float | None = None) -> float:
    """Return the bytes of a copy of the rows, or of so many of them."""
    count = view.shape[0] if rows is None else rows
    return count * view.row_elements * (view.dtype.itemsize + _PLACE * view.sparse)


def descent_bytes(view: DataView, columns: int, method: str, *, coupled: bool, pairs: int) -> float:
    """Return the bytes of a descent (:mod:`.quasi_newton`) that keeps so many pairs of steps.

    Parameters
    ----------
    view : DataView
        The samples.
    columns : int
        Columns of weights.
    method : {"newton", "blocks", "diagonal"}
        The model of the Hessian.
    coupled : bool
        Whether the columns are learnt together.
    pairs : int
        Pairs of limited-memory BFGS.
    """
    n, d = view.shape
    total = basis(n) + blocks_of(view) + 56.0 * n * columns
    total += 8.0 * columns * (d + 1) * (2.0 * pairs + 14.0 + 2.0 * threads_allowed())
    if method == "diagonal":
        return total
    matrix = 8.0 * (d + 1.0) ** 2
    threads = threads_allowed() + 1.0
    if method == "newton" and coupled:
        matrices = 2.0 * columns**2 + threads * columns * (columns + 1) / 2
    else:
        matrices = 2.0 * columns + threads * min(columns, 4)
    return total + matrices * matrix


def softmax_dual_bytes(view: DataView, columns: int) -> float:
    """Return the bytes of dual coordinate descent for logistic losses (:mod:`.dual_coordinate`)."""
    n, d = view.shape
    wide = 1 if columns == 1 else -(-columns // 8) * 8
    return basis(n) + blocks_of(view) + 40.0 * n + 8.0 * (8.0 * n + 6.0 * d) * wide


def working_set_bytes(view: DataView, columns: int, *, joint: bool) -> float:
    """Return the bytes of the working-set method for L1 penalties (:mod:`.working_set`)."""
    n, d = view.shape
    together = columns if joint else 1
    scores = 8.0 * n * (4.0 * columns + 14.0 * (-(-together // 4) * 4 if joint else 1))
    matrices = 8.0 * min(d, 1200) ** 2 * (together + threads_allowed() + 1.0)
    return basis(n) + blocks_of(view) + scores + matrices + 48.0 * d * columns + 2.0 * stored(view)


def machine_bytes(view: DataView, columns: int, method: str) -> float:
    """Return the bytes of a linear machine.

    Parameters
    ----------
    view : DataView
        The samples.
    columns : int
        Columns of weights.
    method : {"newton", "dual", "auto"}
        :mod:`.semismooth_newton`, :mod:`.box_coordinate`, or this with the other to finish what is slow.
    """
    n, d = view.shape
    total = basis(n) + blocks_of(view)
    if method != "newton":
        wide = 1 if columns == 1 else -(-columns // 8) * 8
        total += 64.0 * n + 8.0 * 9.0 * (n + d) * wide
    if method != "dual":
        total += 8.0 * (n + d) * (3.0 * columns + 9.0) + 8.0 * (min(d, _SIDE) + 1.0) ** 2 * _MATRICES
        # What may take a quarter and an eighth of the limit takes no more than these shares of the rest.
        kept = min(8.0 * columns * (d + 1.0) ** 2, _KEPT)
        total += min(kept, 0.4 * total) + min(stored(view, n / 7), 0.2 * total)
    return total


def joint_bytes(view: DataView, columns: int) -> float:
    """Return the bytes of the joint machine of all classes (:mod:`.crammer_singer`)."""
    n, d = view.shape
    wide = -(-columns // 8) * 8
    free = min(2500.0, float(n) * columns)  # variables of a joint step
    return basis(n) + blocks_of(view) + 64.0 * n + 8.0 * (14.0 * n + 13.0 * d) * wide + 24.0 * free**2


def sample_bytes() -> float:
    """Return the bytes of a copy of some samples, which shows the way but can be done without."""
    return allowed() / 8


def kept_bytes() -> float:
    """Return the bytes of sums of products that Newton's method may keep from one step to the next."""
    return min(_KEPT, allowed() / 4)


def gaussian_bytes(view: DataView, n_classes: int, kind: str) -> float:
    """Return the bytes of a Gaussian model from moments of this kind (:mod:`.moments`)."""
    n, d = view.shape
    threads = threads_allowed()
    matrices = {
        "shared": 8.0 * d**2 * (threads + 9.0),
        "full": 8.0 * d**2 * (4.0 * n_classes + threads + 2.0),
        "diagonal": 0.0,
        "rows": 8.0 * d * n * 9.0,
    }[kind]
    return basis(n) + blocks_of(view) + 64.0 * d * n_classes + matrices
