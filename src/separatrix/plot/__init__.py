"""Pictures of models and fits. Needs the extra ``plot``: ``pip install "separatrix[plot]"``.

Every function draws into the Axes given as ``ax``, or into a new figure that needs no screen, and returns
the Axes: ``plot.boundary(model, X, y).figure.savefig("boundary.png")``. In a notebook pass an Axes of pyplot
to see the picture below the cell: ``plot.boundary(model, X, y, ax=plt.subplots()[1])``.
"""

from separatrix.plot._boundary import boundary
from separatrix.plot._convergence import convergence
from separatrix.plot._losses import losses
from separatrix.plot._path import path

__all__ = ["boundary", "convergence", "losses", "path"]
