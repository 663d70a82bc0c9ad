"""Models by their names on the command line, and their parameters from ``--set key=value``."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from separatrix.cli.screen import CommandError

# Name on the command line -> class in `separatrix`.
MODELS = {
    "gaussian": "GaussianClassifier",
    "kernel-perceptron": "KernelPerceptron",
    "lda": "LinearDiscriminantAnalysis",
    "least-squares": "LeastSquaresClassifier",
    "logistic": "LogisticRegression",
    "perceptron": "Perceptron",
    "qda": "QuadraticDiscriminantAnalysis",
    "ridge": "RidgeClassifier",
    "sgd": "SGDClassifier",
}
_WORDS = {
    "true": True,
    "false": False,
    "none": None,
    "inf": float("inf"),
    "+inf": float("inf"),
    "-inf": float("-inf"),
}


def parse_value(text: str) -> Any:
    """Read a Python literal; a word that is none is text.

    Examples
    --------
    >>> [parse_value(text) for text in ("0.5", "None", "false", "inf", "joint", "{'a': 2}")]
    [0.5, None, False, inf, 'joint', {'a': 2}]
    """
    stripped = text.strip()
    if stripped.lower() in _WORDS:
        return _WORDS[stripped.lower()]
    try:
        return ast.literal_eval(stripped)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return stripped


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """Read ``key=value`` words into a dictionary."""
    parsed: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        key = key.strip()
        if not equals or not key:
            raise CommandError(f"--set {setting!r} is not of the form key=value, such as --set margin=1.0")
        if key in parsed:
            raise CommandError(f"--set {key} is given twice; give it once")
        parsed[key] = parse_value(value)
    return parsed


def model_class(name: str) -> type[Any]:
    """Return the estimator class for a name such as ``kernel-perceptron``."""
    import separatrix

    if name not in MODELS:
        raise CommandError(f"--model {name!r} is unknown; choose {_listed(MODELS, name)}")
    found: type[Any] = getattr(separatrix, MODELS[name])
    return found


def build_model(name: str, settings: dict[str, Any]) -> Any:
    """Return an estimator with these parameters, or say which one it does not have."""
    cls = model_class(name)
    known = list(cls().get_params(deep=False))
    for key in settings:
        if key not in known:
            choice = _listed(known, key)
            raise CommandError(f"--set {key}: {cls.__name__} has no parameter {key!r}; choose {choice}")
    return cls(**settings)


def _listed(known: Iterable[str], wrong: str) -> str:
    names: Sequence[str] = sorted(known)
    near = difflib.get_close_matches(wrong, names, n=3, cutoff=0.5)
    advice = f" (nearest: {', '.join(near)})" if near else ""
    return f"one of {', '.join(names)}{advice}"
