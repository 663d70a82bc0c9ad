"""Linear and kernel classification, from the perceptron to the kernel SVM.

Names are imported when first used, so that ``import separatrix`` costs next to nothing.

Examples
--------
>>> import separatrix as sx
>>> model = sx.Perceptron().fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
>>> model.certificate_.status
'separable'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix import kernels as kernels
    from separatrix import losses as losses
    from separatrix import plot as plot
    from separatrix.certificate import Certificate as Certificate
    from separatrix.models.discriminant import LinearDiscriminantAnalysis as LinearDiscriminantAnalysis
    from separatrix.models.discriminant import QuadraticDiscriminantAnalysis as QuadraticDiscriminantAnalysis
    from separatrix.models.gaussian import GaussianClassifier as GaussianClassifier
    from separatrix.models.kernel_perceptron import KernelPerceptron as KernelPerceptron
    from separatrix.models.least_squares import LeastSquaresClassifier as LeastSquaresClassifier
    from separatrix.models.logistic import LogisticRegression as LogisticRegression
    from separatrix.models.perceptron import Perceptron as Perceptron
    from separatrix.models.ridge import RidgeClassifier as RidgeClassifier
    from separatrix.models.sgd import SGDClassifier as SGDClassifier
    from separatrix.models.sgd_regressor import SGDRegressor as SGDRegressor
    from separatrix.persistence import load as load
    from separatrix.persistence import save as save

__version__ = "0.1.0"

_HOMES = {
    "Certificate": "separatrix.certificate",
    "GaussianClassifier": "separatrix.models.gaussian",
    "KernelPerceptron": "separatrix.models.kernel_perceptron",
    "LeastSquaresClassifier": "separatrix.models.least_squares",
    "LinearDiscriminantAnalysis": "separatrix.models.discriminant",
    "LogisticRegression": "separatrix.models.logistic",
    "Perceptron": "separatrix.models.perceptron",
    "QuadraticDiscriminantAnalysis": "separatrix.models.discriminant",
    "RidgeClassifier": "separatrix.models.ridge",
    "SGDClassifier": "separatrix.models.sgd",
    "SGDRegressor": "separatrix.models.sgd_regressor",
    "load": "separatrix.persistence",
    "save": "separatrix.persistence",
}
_MODULES = ("kernels", "losses", "plot")

__all__ = [
    "Certificate",
    "GaussianClassifier",
    "KernelPerceptron",
    "LeastSquaresClassifier",
    "LinearDiscriminantAnalysis",
    "LogisticRegression",
    "Perceptron",
    "QuadraticDiscriminantAnalysis",
    "RidgeClassifier",
    "SGDClassifier",
    "SGDRegressor",
    "kernels",
    "load",
    "losses",
    "plot",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"separatrix.{name}")
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'separatrix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
