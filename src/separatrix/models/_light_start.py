"""A first import of parts of scikit-learn that leaves `scipy.stats` for later.

Half of the time of a first import of `sklearn.base` goes into `scipy.stats`, of which it needs one function,
inside another function that no fit calls; with `sklearn.preprocessing` it is the same. SciPy itself imports
its parts when they are first used, so that nothing is missing afterwards: the name is only held back while a
part of scikit-learn is read.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

_LATER = "scipy.stats"


class _Later(ModuleType):
    """Stands for a module that nobody has used yet; the first use of a name imports it."""

    def __getattr__(self, name: str) -> Any:
        release(self)
        return getattr(importlib.import_module(self.__name__), name)


def release(held: ModuleType) -> None:
    """Take `held` out of the imported modules, if it is still there, so that the real one can come."""
    if sys.modules.get(held.__name__) is held:
        del sys.modules[held.__name__]


def import_light(name: str) -> ModuleType:
    """Import a module of scikit-learn, without `scipy.stats` where neither is there yet."""
    if name in sys.modules or _LATER in sys.modules:
        return importlib.import_module(name)
    held = sys.modules[_LATER] = _Later(_LATER)
    try:
        return importlib.import_module(name)
    finally:
        release(held)
