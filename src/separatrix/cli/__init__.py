"""The command ``separatrix``: fit, judge, compare and tune models, and predict, from files.

Nothing heavy is imported before a command really runs, so that ``separatrix --help`` answers at once.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

__all__ = ["main", "program"]

_SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")


def program() -> NoReturn:
    """Run the command line as a process, and end it with its exit code.

    Threads of Arrow may still read ahead when a command fails. They abort the process if they ask for an
    interpreter that is taking itself apart, so it ends without that, once everything is written.
    """
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # whoever started the process has closed it
            setattr(sys, stream, open(os.devnull, "w"))  # noqa: SIM115
    code = main()
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 2 bad input, 130 interrupted.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after the command's name; those of the process by default.

    Examples
    --------
    >>> main(["--version"])
    separatrix 0.1.0
    0
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = _run(words)
        sys.stdout.flush()  # a full disk is told here, not by the interpreter at its end
        return code
    except OSError as error:
        # What is still held back would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader of a pipe (such as `head`) has seen enough
            return 0
        print(f"separatrix: error: standard output: {error.strerror or error}", file=sys.stderr)
        return 2


def _complete_in(option: str, shell: str) -> int:
    """Print the completion of a named shell. Typer would take the one that runs, whatever is named."""
    if option == "--install-completion" or shell not in _SHELLS:
        print(
            f"separatrix: error: {option} {shell}: --install-completion is for the shell that runs it and "
            f"takes no name; --show-completion prints the script of one of {', '.join(_SHELLS)}",
            file=sys.stderr,
        )
        return 2
    from separatrix.cli.app import app

    os.environ["_SEPARATRIX_COMPLETE"] = f"source_{shell}"
    try:
        app(args=[], prog_name="separatrix")
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        del os.environ["_SEPARATRIX_COMPLETE"]
    return 0


def _run(words: list[str]) -> int:
    if len(words) == 2 and words[0] in ("--show-completion", "--install-completion"):
        return _complete_in(*words)
    asked_by_shell = "_SEPARATRIX_COMPLETE" in os.environ  # what was typed is in there, too
    if words in ([], ["--help"], ["-h"]) and not asked_by_shell:
        from separatrix.cli.overview import overview

        print(overview(), end="")
        return 0
    import typer

    from separatrix.cli.app import app
    from separatrix.cli.screen import CommandError

    # The base class of all usage errors. Typer re-exports only this one of its descendants, and whether the
    # classes live in click or inside typer depends on typer's version.
    usage_error: Any = typer.BadParameter.__mro__[2]
    try:
        code = app(args=words, prog_name="separatrix", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except CommandError as error:
        message = str(error).replace("\n", " ")
        print(f"separatrix: error: {message}", file=sys.stderr)
        return error.code
    except usage_error as error:
        from separatrix.cli.advice import unknown_option

        message = unknown_option(error) or error.format_message().replace("\n", " ").rstrip(".")
        command = error.ctx.command_path if getattr(error, "ctx", None) is not None else "separatrix"
        print(f"separatrix: error: {message}; '{command} --help' shows how", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        print("separatrix: interrupted", file=sys.stderr)
        return 130
