"""Pictures of models and fits. Needs the extra ``plot``: ``pip install "separatrix[plot]"``.

Every function draws into the Axes given as ``ax``, or into a new figure that needs no screen, and returns
the Axes: ``plot.boundary(model, X, y).figure.savefig("boundary.png")``. In a notebook pass an Axes of pyplot
to see the picture below the cell: ``plot.boundary(model, X, y, ax=plt.subplots()[1])``.

Each has a class after scikit-learn's convention, which also keeps the values that are drawn:
``BoundaryDisplay.from_estimator(model, X, y)`` draws and returns the display, with ``ax_``, ``figure_`` and
``plot(ax=...)``; a notebook shows it by itself.
"""

from separatrix.plot._animate import animate
from separatrix.plot._boundary import BoundaryDisplay, boundary
from separatrix.plot._calibration import CalibrationDisplay, calibration
from separatrix.plot._codings import CodingsDisplay, codings
from separatrix.plot._confusion import ConfusionMatrixDisplay, confusion
from separatrix.plot._convergence import ConvergenceDisplay, convergence
from separatrix.plot._curves import PrecisionRecallDisplay, RocCurveDisplay, precision_recall, roc
from separatrix.plot._kernel_matrix import KernelMatrixDisplay, kernel_matrix
from separatrix.plot._losses import LossesDisplay, losses
from separatrix.plot._margin import MarginDisplay, margin
from separatrix.plot._path import PathDisplay, path
from separatrix.plot._tube import TubeDisplay, tube

__all__ = [
    "BoundaryDisplay",
    "CalibrationDisplay",
    "CodingsDisplay",
    "ConfusionMatrixDisplay",
    "ConvergenceDisplay",
    "KernelMatrixDisplay",
    "LossesDisplay",
    "MarginDisplay",
    "PathDisplay",
    "PrecisionRecallDisplay",
    "RocCurveDisplay",
    "TubeDisplay",
    "animate",
    "boundary",
    "calibration",
    "codings",
    "confusion",
    "convergence",
    "kernel_matrix",
    "losses",
    "margin",
    "path",
    "precision_recall",
    "roc",
    "tube",
]
