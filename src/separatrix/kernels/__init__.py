"""Kernels: inner products in a feature space, written as formulas on blocks of samples.

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

from separatrix.kernels._base import Kernel, VectorKernel
from separatrix.kernels._bessel import Bessel
from separatrix.kernels._composed import Power, Product, Scaled, Sum
from separatrix.kernels._features import AnovaRBF, Laplacian
from separatrix.kernels._mercer import Mercer, mercer
from separatrix.kernels._precomputed import Precomputed, check_symmetric
from separatrix.kernels._resolve import KERNEL_NAMES, CallableKernel, resolve_gamma, resolve_kernel
from separatrix.kernels._strings import StringKernel
from separatrix.kernels._subsequence import Subsequence
from separatrix.kernels._substrings import (
    BoundedRange,
    ConstantSubstring,
    ExponentialSubstring,
    Spectrum,
    SubstringKernel,
)
from separatrix.kernels._vectors import RBF, Linear, Polynomial, Sigmoid

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
