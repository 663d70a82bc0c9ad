"""Every example that a reader sees runs: docstrings, README and the pages in docs/.

In the pages, fenced blocks are taken by their language:

- `python` with `>>>` prompts: a doctest; without prompts: executed, must not fail. The blocks of one
  page follow one another in one namespace.
- `console`: each line `$ separatrix …` is run as a user would, and what is printed below it, if
  anything, is compared. Other commands (`$ make …`, `$ pip …`) are left to the reader.

A page runs in a folder of its own that holds a copy of `examples/`.
"""

import ast
import doctest
import importlib
import inspect
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import separatrix

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", *(f"docs/{page.name}" for page in sorted(ROOT.glob("docs/*.md"))))
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(separatrix.__path__, "separatrix.")
    if module.name != "separatrix._hot" and not module.name.endswith("__main__")
)
RUN = "import sys; from separatrix.cli import main; sys.exit(main())"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def reader(root, tmp_path, monkeypatch):
    """A working folder such as a reader has, with the examples in it."""
    shutil.copytree(root / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_doctest(test):
    report = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    assert runner.failures == 0, "".join(report)


def run_console(block, where):
    checker = doctest.OutputChecker()
    for command, expected in re.findall(r"^\$ (separatrix .*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        done = subprocess.run(
            [sys.executable, "-c", RUN, *shlex.split(command)[1:]],
            env=os.environ | {"COLUMNS": "100", "NO_COLOR": "1"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, f"{where}: {command}\n{done.stdout}{done.stderr}"
        if expected.strip():
            assert checker.check_output(expected, done.stdout, FLAGS), (
                f"{where}: {command}\nexpected:\n{expected}\ngot:\n{done.stdout}"
            )


@pytest.mark.parametrize("page", PAGES)
def test_page(root, reader, page):
    text = (root / page).read_text(encoding="utf-8")
    namespace = {"__name__": "__main__"}
    for block in FENCE.finditer(text):
        language, code = block.groups()
        line = text.count("\n", 0, block.start()) + 1
        if language == "python" and ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, namespace, page, page, line)
            run_doctest(test)
            namespace = test.globs  # the parser copies what it is given
        elif language == "python":
            exec(compile("\n" * line + code, page, "exec"), namespace)
        elif language == "console":
            run_console(code, f"{page}, line {line}")


@pytest.mark.parametrize("page", PAGES)
def test_pages_need_no_pandas(root, page):
    """The package does not bring it, and a newcomer need not have it."""
    text = (root / page).read_text(encoding="utf-8")
    for language, code in FENCE.findall(text):
        assert language != "python" or not re.search(r"as_frame|import (pandas|polars)", code), code


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(root, page):
    text = (root / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) + re.findall(r'(?:src|srcset|href)="([^"#]+)"', text)
    for target in targets:
        if not re.match(r"[a-z]+:", target):
            assert ((root / page).parent / target).exists(), f"{page} links to {target}"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name, reader):
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder().find(module):
        run_doctest(test)


def test_public_classes_have_an_example():
    public = [getattr(separatrix, name) for name in separatrix.__all__]
    public += [getattr(separatrix.kernels, name) for name in separatrix.kernels.__all__]
    classes = [thing for thing in public if inspect.isclass(thing) and not inspect.isabstract(thing)]
    assert len(classes) > 4
    assert [thing.__name__ for thing in classes if ">>>" not in thing.__doc__] == []


MODELS = [name for name in separatrix.__all__ if hasattr(getattr(separatrix, name), "fit")]


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_told_with_their_defaults(name):
    model = getattr(separatrix, name)
    text = inspect.getdoc(model).replace("\\\n", "").split("Parameters\n---")[1].split("\nAttributes\n")[0]
    for parameter in inspect.signature(model).parameters.values():
        heads = re.findall(rf"^(?:\w+, *)*{parameter.name}\b(?:, *\w+)*( : .*)?$", text, re.MULTILINE)
        assert len(heads) == 1, f"{parameter.name} is told {len(heads)} times"
        told = re.search(r"default=(.*)", heads[0])
        assert told or not heads[0], f"{parameter.name} has no default in the docstring"
        assert not told or ast.literal_eval(told[1]) == parameter.default, parameter.name
