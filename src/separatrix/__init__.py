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

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix import kernels as kernels
    from separatrix import losses as losses
    from separatrix import plot as plot
    from separatrix.certificate import Certificate as Certificate
    from separatrix.data.files import read as read
    from separatrix.kernels import mercer as mercer
    from separatrix.models.discriminant import LinearDiscriminantAnalysis as LinearDiscriminantAnalysis
    from separatrix.models.discriminant import QuadraticDiscriminantAnalysis as QuadraticDiscriminantAnalysis
    from separatrix.models.gaussian import GaussianClassifier as GaussianClassifier
    from separatrix.models.kernel_perceptron import KernelPerceptron as KernelPerceptron
    from separatrix.models.least_squares import LeastSquaresClassifier as LeastSquaresClassifier
    from separatrix.models.linear_svm import LinearSVC as LinearSVC
    from separatrix.models.linear_svr import LinearSVR as LinearSVR
    from separatrix.models.logistic import LogisticRegression as LogisticRegression
    from separatrix.models.neighbors import KNeighborsClassifier as KNeighborsClassifier
    from separatrix.models.neighbors import KNeighborsRegressor as KNeighborsRegressor
    from separatrix.models.one_class import OneClassSVM as OneClassSVM
    from separatrix.models.perceptron import Perceptron as Perceptron
    from separatrix.models.ridge import RidgeClassifier as RidgeClassifier
    from separatrix.models.separability import MulticlassSeparability as MulticlassSeparability
    from separatrix.models.separability import Separability as Separability
    from separatrix.models.separability import separability as separability
    from separatrix.models.sgd import SGDClassifier as SGDClassifier
    from separatrix.models.sgd_regressor import SGDRegressor as SGDRegressor
    from separatrix.models.svc import SVC as SVC
    from separatrix.models.svc import NuSVC as NuSVC
    from separatrix.models.svr import SVR as SVR
    from separatrix.models.svr import NuSVR as NuSVR
    from separatrix.persistence import load as load
    from separatrix.persistence import save as save
    from separatrix.persistence.interchange import export_liblinear as export_liblinear
    from separatrix.persistence.interchange import export_libsvm as export_libsvm
    from separatrix.persistence.interchange import export_onnx as export_onnx
    from separatrix.persistence.interchange import import_liblinear as import_liblinear
    from separatrix.persistence.interchange import import_libsvm as import_libsvm
    from separatrix.traces import trace as trace

__version__ = "0.1.0"

_HOMES = {
    "Certificate": "separatrix.certificate",
    "GaussianClassifier": "separatrix.models.gaussian",
    "KNeighborsClassifier": "separatrix.models.neighbors",
    "KNeighborsRegressor": "separatrix.models.neighbors",
    "KernelPerceptron": "separatrix.models.kernel_perceptron",
    "LeastSquaresClassifier": "separatrix.models.least_squares",
    "LinearDiscriminantAnalysis": "separatrix.models.discriminant",
    "LinearSVC": "separatrix.models.linear_svm",
    "LinearSVR": "separatrix.models.linear_svr",
    "LogisticRegression": "separatrix.models.logistic",
    "MulticlassSeparability": "separatrix.models.separability",
    "NuSVC": "separatrix.models.svc",
    "NuSVR": "separatrix.models.svr",
    "OneClassSVM": "separatrix.models.one_class",
    "Perceptron": "separatrix.models.perceptron",
    "QuadraticDiscriminantAnalysis": "separatrix.models.discriminant",
    "RidgeClassifier": "separatrix.models.ridge",
    "SGDClassifier": "separatrix.models.sgd",
    "SGDRegressor": "separatrix.models.sgd_regressor",
    "SVC": "separatrix.models.svc",
    "SVR": "separatrix.models.svr",
    "Separability": "separatrix.models.separability",
    "export_liblinear": "separatrix.persistence.interchange",
    "export_libsvm": "separatrix.persistence.interchange",
    "export_onnx": "separatrix.persistence.interchange",
    "import_liblinear": "separatrix.persistence.interchange",
    "import_libsvm": "separatrix.persistence.interchange",
    "load": "separatrix.persistence",
    "mercer": "separatrix.kernels",
    "read": "separatrix.data.files",
    "save": "separatrix.persistence",
    "separability": "separatrix.models.separability",
    "trace": "separatrix.traces",
}
_MODULES = ("kernels", "losses", "plot")

__all__ = [
    "SVC",
    "SVR",
    "Certificate",
    "GaussianClassifier",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KernelPerceptron",
    "LeastSquaresClassifier",
    "LinearDiscriminantAnalysis",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "MulticlassSeparability",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "Perceptron",
    "QuadraticDiscriminantAnalysis",
    "RidgeClassifier",
    "SGDClassifier",
    "SGDRegressor",
    "Separability",
    "export_liblinear",
    "export_libsvm",
    "export_onnx",
    "import_liblinear",
    "import_libsvm",
    "kernels",
    "load",
    "losses",
    "mercer",
    "plot",
    "read",
    "save",
    "separability",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"separatrix.{name}")
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    module = sys.modules[__name__]  # named, so that Python can suggest the name that was meant
    raise AttributeError(f"module 'separatrix' has no attribute {name!r}", name=name, obj=module)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
