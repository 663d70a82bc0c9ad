"""Estimators: parameters in, a problem for a solver, fitted attributes out; nothing numerical."""

from separatrix.models._light_start import import_light

import_light("sklearn.base")
