"""What to type instead of an option that a command does not have."""

from __future__ import annotations

from typing import Any

_ELSEWHERE = {
    **dict.fromkeys(("--output", "--out", "-o"), ("--save", "--output")),
    **dict.fromkeys(("--label", "--labels", "--y", "--class", "--response"), ("--target",)),
    **dict.fromkeys(("--classifier", "--estimator", "--algorithm", "-m"), ("--model",)),
    **dict.fromkeys(("--cv", "--k-folds"), ("--folds",)),
    **dict.fromkeys(("--random-state", "--random-seed"), ("--seed",)),
    **dict.fromkeys(("--sep", "--separator"), ("--delimiter",)),
}
"""Options of other programs, and ours that do the same."""


def unknown_option(error: Any) -> str | None:
    """Return a message for an option that other programs have, or that is a parameter of some model.

    None for any other error: the parser's own message, which proposes similar names, says more.
    """
    wrong, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if wrong is None or context is None or not hasattr(error, "possibilities"):
        return None
    known = [name for parameter in context.command.params for name in parameter.opts]
    here = [name for name in _ELSEWHERE.get(wrong, ()) if name in known]
    if here:
        return f"No such option: {wrong}; here it is called {here[0]}"
    parameter = wrong.lstrip("-").replace("-", "_")
    if "--set" in known and parameter in _parameters():
        return f"No such option: {wrong}; parameters of the model are given as --set {parameter}=VALUE"
    return None


def _parameters() -> set[str]:
    from separatrix.cli.families import families, model_class

    return {name for family in families() for name in model_class(family)().get_params(deep=False)}
