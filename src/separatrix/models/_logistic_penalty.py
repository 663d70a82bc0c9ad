"""How strong the penalty of a logistic regression is, in the words of this and of earlier scikit-learns."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from separatrix.models.logistic import LogisticRegression


def strength_of(model: LogisticRegression) -> tuple[float, float]:
    """Return C and the part of L1, whichever way they were given."""
    ratio = 0.0 if model.l1_ratio is None else float(model.l1_ratio)
    if model.penalty == "deprecated":
        if model.l1_ratio is None:
            warnings.warn(
                "'l1_ratio=None' was deprecated in scikit-learn 1.8: use l1_ratio=0 for an L2 penalty.",
                FutureWarning,
                stacklevel=5,
            )
        if np.isinf(model.C) and 0 < ratio < 1:
            _warn_of_l1_ratio(None)
        return float(model.C), ratio
    warnings.warn(
        "'penalty' was deprecated in scikit-learn 1.8: use l1_ratio=0 instead of penalty='l2', "
        "l1_ratio=1 instead of penalty='l1', 0 < l1_ratio < 1 instead of penalty='elasticnet', and "
        "C=np.inf instead of penalty=None.",
        FutureWarning,
        stacklevel=5,
    )
    if model.l1_ratio != {"l1": 1, "l2": 0}.get(str(model.penalty), model.l1_ratio):
        warnings.warn(
            f"Inconsistent values: penalty={model.penalty} with l1_ratio={model.l1_ratio}. The penalty "
            "wins; use l1_ratio only.",
            stacklevel=5,
        )
    if model.penalty in ("l1", "l2", None) and 0 < ratio < 1:
        _warn_of_l1_ratio(model.penalty)
    if model.penalty is None:
        if model.C != 1.0:
            warnings.warn("Setting penalty=None will ignore the C and l1_ratio parameters", stacklevel=5)
        return np.inf, 0.0
    if model.penalty == "elasticnet" and model.l1_ratio is None:
        raise ValueError("l1_ratio must be specified when penalty is elasticnet.")
    return float(model.C), {"l1": 1.0, "l2": 0.0, "elasticnet": ratio}[model.penalty]


def _warn_of_l1_ratio(penalty: str | None) -> None:
    warnings.warn(
        f"l1_ratio parameter is only used when penalty is 'elasticnet'. Got (penalty={penalty})",
        stacklevel=6,
    )
