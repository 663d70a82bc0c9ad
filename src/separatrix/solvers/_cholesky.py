"""Systems with a positive definite matrix, solved while other threads go on.

SciPy's own wrappers of LAPACK hold the interpreter's lock, and NumPy's factorisation copies so much that it
takes several times as long. The functions behind SciPy's are therefore called through :mod:`ctypes`, which
lets the lock go.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack

from separatrix.data.view import Array


@cache
def _routine(name: str, arguments: int) -> Any:
    """Return a routine of LAPACK whose arguments are all pointers."""
    capsule = cython_lapack.__pyx_capi__[name]
    signature = ctypes.pythonapi.PyCapsule_GetName
    signature.restype, signature.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)
    return kind(address(capsule, signature(capsule)))


def _call(name: str, dtype: np.dtype[Any], *arguments: Any) -> int:
    """Call ``name`` of the dtype's precision; return its ``info``."""
    info = ctypes.c_int(0)
    values = (*arguments, info)
    pointers = [a.ctypes.data if isinstance(a, np.ndarray) else ctypes.addressof(a) for a in values]
    _routine(("s" if dtype == np.float32 else "d") + name, len(pointers))(*pointers)
    return info.value


def solver_of(build: Callable[[], Array]) -> Callable[[Array], Array]:
    """Return what multiplies by the inverse of a positive definite matrix, scaled to unit diagonal.

    ``build`` makes the matrix (float32 or float64, C order; its upper triangle is enough). One that is
    singular to its precision is built again and gets a small ridge.

    Examples
    --------
    >>> import numpy as np
    >>> solver_of(lambda: np.array([[4.0, 2.0], [0.0, 3.0]]))(np.array([2.0, 7.0])).round(12).tolist()
    [-1.0, 3.0]
    """
    ridge = 0.0
    while True:
        H = build()
        scale = 1.0 / np.sqrt(np.maximum(np.diag(H), np.finfo(H.dtype).tiny))
        H *= scale[:, None]
        H *= scale
        every, size = np.arange(H.shape[0]), ctypes.c_int(H.shape[0])
        if ridge > 1.0:  # not even finite: its diagonal has to do
            H[:] = 0.0
        H[every, every] = 1.0 + ridge
        # Rows here are columns there.
        side = ctypes.c_char(b"L")
        if H.shape[0] == 0 or _call("potrf", H.dtype, side, size, H, size) == 0:
            break
        ridge = max(1e-6 if H.dtype == np.float32 else 1e-14, 100.0 * ridge)

    def multiply(right: Array) -> Array:
        # Rows of B are right-hand sides, as LAPACK stores them.
        B = np.array(right.T * scale, dtype=H.dtype, order="C", ndmin=2)
        if H.shape[0]:
            _call("potrs", H.dtype, side, size, ctypes.c_int(B.shape[0]), H, size, B, size)
        B *= scale
        return np.asarray(B.reshape(right.T.shape).T, dtype=np.float64)

    return multiply
