"""Sums of products of dense rows, in one pass over each block."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from separatrix import _hot

Array = NDArray[Any]
#: How products are made, in the core's order (``Precision`` in ``_hot/gram_state.hpp``).
Precision = Literal["double", "single", "coarse", "whole"]
_NUMBERS = {name: number for number, name in enumerate(get_args(Precision))}


class NotFiniteError(ArithmeticError):
    """Sums over the data are not finite: they hold NaN or infinity, or values too large for products."""


def add_products(
    block: Array,
    gram: Array | None,
    sums: Array | None = None,
    *,
    classes: Array | None = None,
    weights: Array | None = None,
    origin: Array | None = None,
    order: Array | None = None,
    precision: Precision = "double",
    steps: int = 1,
) -> None:
    r"""Add ``Σ s_i z_i z_iᵀ`` and, class by class, ``Σ s_i z_i`` to what is there, with ``z = x − origin``.

    The block is read once, in whatever order its values lie. What is below the diagonal of the products is
    not kept: :func:`symmetric` fills it in at the end.

    Parameters
    ----------
    block : ndarray of shape (n, d)
        float32 or float64 rows.
    gram : ndarray of float64 of shape (d, d) or None
        Added to, on and above the diagonal.
    sums : ndarray of float64 of shape (K, d) or (d,), or None
        Added to.
    classes : ndarray of int of shape (n,) or None
        Number of each row's class, below ``K``; None where there is one class.
    weights : ndarray of shape (n,) or None
        ``s``, not negative; one for each row if not given.
    origin : ndarray of float64 of shape (d,) or (K, d), or None
        What is subtracted from the rows, from all or from those of each class.
    order : ndarray of int of shape (m,) or None
        The rows that count; all if not given.
    precision : {"double", "single", "coarse", "whole"}
        How products (not the sums) are made. "single": those of a few hundred rows are summed in single
        precision. "coarse": with about four digits, where the processor multiplies 16-bit integers faster;
        each feature of a few hundred rows is rounded by at most 1.4e-4 of its length. "whole": exact and as
        fast for ``z`` that are whole numbers below 2¹⁵, without weights; where one is not whole, sums of its
        feature may be NaN.
    steps : int
        Unless 1, rows are multiples of ``1/steps`` but for rounding, and stand for their whole numbers
        ``steps x``: ``origin`` and all sums are in these units. Where a value is no such multiple, sums of
        its feature are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> gram, sums = np.zeros((2, 2)), np.zeros((1, 2))
    >>> add_products(np.array([[1.0, 2.0], [3.0, 5.0]]), gram, sums)
    >>> symmetric(gram).tolist(), sums.tolist()
    ([[10.0, 17.0], [17.0, 29.0]], [[4.0, 7.0]])
    """
    item = block.itemsize
    if block.strides[0] % item or block.strides[1] % item or not block.dtype.isnative:
        block = np.ascontiguousarray(block, dtype=block.dtype.newbyteorder("="))
    _hot.add_products(
        block,
        _NUMBERS[precision],
        None if order is None else np.ascontiguousarray(order, dtype=np.int64),
        None if classes is None else np.ascontiguousarray(classes, dtype=np.int32),
        None if weights is None else np.ascontiguousarray(weights, dtype=np.float64),
        None if origin is None else np.ascontiguousarray(origin, dtype=np.float64),
        sums,
        gram,
        float(steps),
    )


def symmetric(gram: Array) -> Array:
    """Return the matrix, what is above its diagonal copied below it."""
    _hot.mirror(gram)
    return gram
