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
from separatrix.kernels._resolve import KERNEL_NAMES, CallableKernel, resolve_gamma, resolve_kernel
from separatrix.kernels._vectors import RBF, Linear, Polynomial

__all__ = [
    "KERNEL_NAMES",
    "RBF",
    "CallableKernel",
    "Kernel",
    "Linear",
    "Polynomial",
    "VectorKernel",
    "resolve_gamma",
    "resolve_kernel",
]
