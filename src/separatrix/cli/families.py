"""Families of models by their names on the command line, and parameters from ``--set key=value``."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from separatrix.cli.screen import CommandError


@dataclass(frozen=True)
class Family:
    """What the commands know about a family of models; everything else they ask the class."""

    cls: str
    title: str
    scale: bool = True
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


# Name on the command line -> family. `scale`: whether numbers are standardised unless the user says
# otherwise. `grid`: the main parameters, and the values that `tune` tries. Families whose class the package
# does not have (yet) are left out everywhere.
_FAMILIES = {
    "logistic": Family(
        "LogisticRegression",
        "logistic or softmax regression",
        grid={"C": (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)},
    ),
    "ridge": Family(
        "RidgeClassifier",
        "least squares with a penalty",
        grid={"alpha": (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)},
    ),
    "least-squares": Family(
        "LeastSquaresClassifier",
        "least squares on one-hot targets",
        scale=False,
        grid={"alpha": (0.0, 0.01, 0.1, 1.0, 10.0, 100.0)},
    ),
    "lda": Family(
        "LinearDiscriminantAnalysis",
        "linear discriminant analysis",
        scale=False,
        grid={"solver": ("lsqr",), "shrinkage": (None, "auto", 0.01, 0.1, 0.3, 0.6, 0.9)},
    ),
    "qda": Family(
        "QuadraticDiscriminantAnalysis",
        "quadratic discriminant analysis",
        grid={"reg_param": (0.0, 0.001, 0.01, 0.1, 0.3, 0.6, 0.9)},
    ),
    "gaussian": Family(
        "GaussianClassifier",
        "a Gaussian for each class",
        scale=False,
        grid={
            "covariance": ("shared", "full", "diagonal", "spherical"),
            "shrinkage": (None, 0.001, 0.01, 0.1, 0.5),
        },
    ),
    "perceptron": Family(
        "Perceptron",
        "the perceptron, best pass kept",
        grid={"margin": (None, 0.1, 1.0, 10.0), "multiclass": ("ovr", "ovo", "joint")},
    ),
    "kernel-perceptron": Family(
        "KernelPerceptron",
        "the perceptron with a kernel (RBF)",
        grid={"gamma": (0.01, 0.03, 0.1, 0.3, 1.0), "margin": (None, 0.1, 1.0)},
    ),
    "sgd": Family(
        "SGDClassifier",
        "linear models by stochastic gradient (hinge loss)",
        grid={"alpha": (1e-6, 1e-5, 1e-4, 1e-3, 1e-2), "loss": ("hinge", "log_loss", "modified_huber")},
    ),
    "linear-svc": Family(
        "LinearSVC", "linear support vector machine", grid={"C": (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)}
    ),
    "svc": Family(
        "SVC",
        "support vector machine with a kernel (RBF)",
        grid={"C": (0.1, 1.0, 10.0, 100.0), "gamma": (0.001, 0.01, 0.1, 1.0)},
    ),
    "nu-svc": Family(
        "NuSVC",
        "support vector machine with a share of errors",
        grid={"nu": (0.05, 0.1, 0.2, 0.4), "gamma": (0.001, 0.01, 0.1, 1.0)},
    ),
    "knn": Family(
        "KNeighborsClassifier",
        "nearest neighbours",
        grid={"n_neighbors": (1, 3, 5, 9, 15, 25, 50), "weights": ("uniform", "distance")},
    ),
}


def families() -> dict[str, Family]:
    """Return the families whose class is there, by their names on the command line."""
    import separatrix

    return {name: family for name, family in _FAMILIES.items() if family.cls in separatrix.__all__}


def family_of(name: str) -> Family:
    """Return a family by its name, or say which there are."""
    known = families()
    if name not in known:
        raise CommandError(f"--model {name!r} is unknown; choose {_listed(known, name)}")
    return known[name]


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

    found: type[Any] = getattr(separatrix, family_of(name).cls)
    return found


def build_model(
    name: str,
    settings: Mapping[str, Any],
    seed: int | None = None,
    max_time: float | None = None,
    option: str = "--set",
) -> Any:
    """Return an estimator with these parameters, or say which one it does not have.

    Seed and time go to models that know them: a closed form draws nothing and cannot be stopped.
    """
    cls = model_class(name)
    known = list(cls().get_params(deep=False))
    for key in settings:
        if key not in known:
            choice = _listed(known, key)
            raise CommandError(f"{option} {key}: {cls.__name__} has no parameter {key!r}; choose {choice}")
    extra = {"random_state": seed, "max_time": max_time}
    chosen = {key: value for key, value in extra.items() if key in known and value is not None}
    return cls(**chosen | dict(settings))


def _listed(known: Iterable[str], wrong: str) -> str:
    names: Sequence[str] = sorted(known)
    near = [name for name in names if name.casefold() == wrong.casefold()]
    near = near or difflib.get_close_matches(wrong, names, n=3, cutoff=0.5)
    advice = f" (nearest: {', '.join(near)})" if near else ""
    return f"one of {', '.join(names)}{advice}"
