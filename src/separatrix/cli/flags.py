"""How commands of LIBSVM and LIBLINEAR are called: flags of one letter with a value each, then files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer

from separatrix.cli.screen import CommandError, user_errors


def add_commands(
    app: typer.Typer, commands: Mapping[str, Callable[..., None]], settings: Mapping[str, Any]
) -> None:
    """Add commands that are given their words as they stand; `settings` go to ``app.command``."""
    raw = {"help_option_names": ["--help"], "ignore_unknown_options": True}
    for name, function in commands.items():
        app.command(name, context_settings=dict(raw), **settings)(function)


def run_as_original(
    context: typer.Context,
    words: list[str] | None,
    run: Callable[[list[str]], None],
    interrupted: str = "interrupted",
) -> None:
    """Run a command, or show its help for ``-h`` alone; errors end it with 1, as those of the originals."""
    if words == ["-h"]:
        print(context.get_help())
        return
    with user_errors(interrupted, code=1):
        run(words or [])


@dataclass
class Flags:
    """Parsed words: values by letter, weights of classes, files."""

    values: dict[str, Any] = field(default_factory=dict)
    weights: dict[int, float] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)


def parse_flags(
    command: str,
    words: Sequence[str],
    kinds: Mapping[str, Callable[[str], Any] | None],
    files: tuple[int, int],
    weights: bool = False,
) -> Flags:
    """Take the words of a command line apart.

    Parameters
    ----------
    command : str
        Its name, for messages.
    words : sequence of str
        What follows it.
    kinds : mapping
        For each letter what makes a value of the next word, or None if it has no value.
    files : tuple of int
        Least and largest number of files after the flags.
    weights : bool
        Whether ``-wi weight`` sets the weight of class ``i``.
    """
    found, rest = Flags(), list(words)
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        letter = word[1:]
        if letter in kinds:
            kind = kinds[letter]
            found.values[letter] = True if kind is None else _value(command, word, rest, kind)
        elif weights and letter[:1] == "w" and len(letter) > 1:
            found.weights[_number(command, word, letter[1:], int)] = _value(command, word, rest, number)
        else:
            known = " ".join(f"-{name}" for name in [*kinds, *(["wi"] if weights else [])])
            raise CommandError(f"{command}: unknown option {word}; the options are {known}")
    if not files[0] <= len(rest) <= files[1]:
        count = str(files[0]) if files[0] == files[1] else f"{files[0]} to {files[1]}"
        raise CommandError(
            f"{command}: {len(rest)} file names, and {count} are needed; 'separatrix {command} --help' "
            "shows how"
        )
    found.files = rest
    return found


def number(word: str) -> float:
    """Return a finite number."""
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(word)
    return value


def choice(*allowed: int) -> Callable[[str], int]:
    """Return what reads one of some whole numbers."""

    def read(word: str) -> int:
        value = int(word)
        if value not in allowed:
            raise ValueError(word)
        return value

    return read


def _value(command: str, word: str, rest: list[str], kind: Callable[[str], Any]) -> Any:
    if not rest:
        raise CommandError(f"{command}: {word} needs a value")
    return _number(command, word, rest.pop(0), kind)


def _number(command: str, word: str, text: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise CommandError(f"{command}: {word}: {text!r} is not a value it takes") from None
