"""Kernels: inner products in a feature space, written as formulas on blocks of samples.

The names that not every model needs are imported when first used.

Examples
--------
>>> import numpy as np
>>> from separatrix.kernels import RBF
>>> kernel = RBF(gamma=0.5)
>>> kernel
RBF(gamma=0.5)
>>> kernel(np.zeros((2, 3)), np.ones((4, 3))).shape
(2, 4)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from separatrix.kernels._base import Kernel, VectorKernel
from separatrix.kernels._precomputed import Precomputed, check_symmetric
from separatrix.kernels._resolve import KERNEL_NAMES, CallableKernel, resolve_gamma, resolve_kernel
from separatrix.kernels._vectors import RBF, Linear, Polynomial, Sigmoid

if TYPE_CHECKING:
    from separatrix.kernels._bessel import Bessel as Bessel
    from separatrix.kernels._composed import Power as Power
    from separatrix.kernels._composed import Product as Product
    from separatrix.kernels._composed import Scaled as Scaled
    from separatrix.kernels._composed import Sum as Sum
    from separatrix.kernels._features import AnovaRBF as AnovaRBF
    from separatrix.kernels._features import Laplacian as Laplacian
    from separatrix.kernels._mercer import Mercer as Mercer
    from separatrix.kernels._mercer import mercer as mercer
    from separatrix.kernels._strings import StringKernel as StringKernel
    from separatrix.kernels._subsequence import Subsequence as Subsequence
    from separatrix.kernels._substrings import BoundedRange as BoundedRange
    from separatrix.kernels._substrings import ConstantSubstring as ConstantSubstring
    from separatrix.kernels._substrings import ExponentialSubstring as ExponentialSubstring
    from separatrix.kernels._substrings import Spectrum as Spectrum
    from separatrix.kernels._substrings import SubstringKernel as SubstringKernel

_HOMES = {
    "_bessel": ("Bessel",),
    "_composed": ("Power", "Product", "Scaled", "Sum"),
    "_features": ("AnovaRBF", "Laplacian"),
    "_mercer": ("Mercer", "mercer"),
    "_strings": ("StringKernel",),
    "_subsequence": ("Subsequence",),
    "_substrings": (
        "BoundedRange",
        "ConstantSubstring",
        "ExponentialSubstring",
        "Spectrum",
        "SubstringKernel",
    ),
}

__all__ = [
    "KERNEL_NAMES",
    "RBF",
    "AnovaRBF",
    "Bessel",
    "BoundedRange",
    "CallableKernel",
    "ConstantSubstring",
    "ExponentialSubstring",
    "Kernel",
    "Laplacian",
    "Linear",
    "Mercer",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "Scaled",
    "Sigmoid",
    "Spectrum",
    "StringKernel",
    "Subsequence",
    "SubstringKernel",
    "Sum",
    "VectorKernel",
    "check_symmetric",
    "mercer",
    "resolve_gamma",
    "resolve_kernel",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"separatrix.kernels.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'separatrix.kernels' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
