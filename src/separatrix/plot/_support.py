"""Which of the samples in a picture are the model's support vectors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from separatrix.plot._canvas import final_step


def support_rows(model: Any, X: Any, count: int) -> NDArray[np.intp] | None:
    """Return the rows of `X` that the model keeps as support vectors; None where it is not known.

    ``support_`` numbers the rows of the training set. Whether `X` is that set is seen by comparing its rows
    with ``support_vectors_``, in a pipeline after the steps before the model.
    """
    estimator = final_step(model)
    support = getattr(estimator, "support_", None)
    vectors = getattr(estimator, "support_vectors_", None)
    if support is None or vectors is None:
        return None
    rows = np.asarray(support).reshape(-1)
    if rows.dtype.kind not in "iu" or rows.size == 0 or rows.max() >= count or len(rows) != vectors.shape[0]:
        return None
    steps = getattr(model, "steps", None)
    features = model[:-1].transform(X) if isinstance(steps, list) and len(steps) > 1 else X
    try:
        ours = features[rows] if sparse.issparse(features) else np.asarray(features)[rows]
    except (TypeError, IndexError):
        return None
    same = _dense(ours).shape == vectors.shape and np.allclose(_dense(ours), _dense(vectors))
    return rows.astype(np.intp) if same else None


def _dense(rows: Any) -> NDArray[np.float64]:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
