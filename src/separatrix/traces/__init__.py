"""Every step of an iterative model, with what changed and why, for study.

The methods are written here once more, in plain NumPy and one step at a time, so that each can be read beside
its formula and watched at work. They follow the estimators' own parameters, and end where their fits end.
"""

from separatrix.traces._trace import Trace, trace
from separatrix.traces._types import TraceStep

__all__ = ["Trace", "TraceStep", "trace"]
