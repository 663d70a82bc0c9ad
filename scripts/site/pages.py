"""What the site has beside the pages in docs/: navigation, reference of the program and of the package.

A hook of MkDocs. Everything is found: pages in docs/, commands of the program, public names of the package. A
page that no group below names stands among the guides.
"""

import importlib
import inspect
import os
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
# Groups of the navigation, with their pages in order; those that are not there are left out.
GROUPS = {
    "": ("index.md", "quickstart.md"),
    "Guides": (
        "perceptron.md",
        "least-squares.md",
        "gaussian.md",
        "logistic.md",
        "generative-vs-discriminative.md",
        "separability.md",
        "linear-svm.md",
        "svm.md",
        "kernels.md",
        "neighbors.md",
        "sgd.md",
    ),
    "Tools": (
        "plots.md",
        "traces.md",
        "certificate.md",
        "coming-from.md",
        "interchange.md",
        "command-line.md",
    ),
    "Reference": (),
    "Development": ("benchmarks.md", "architecture.md", "contributing.md", "changelog.md"),
}
ELSEWHERE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
# Pages of the reference: their titles, and the modules of public names that they hold.
REFERENCE = {
    "Perceptrons": ("separatrix.models.perceptron", "separatrix.models.kernel_perceptron"),
    "Least squares": ("separatrix.models.least_squares", "separatrix.models.ridge"),
    "Gaussian models": ("separatrix.models.gaussian", "separatrix.models.discriminant"),
    "Logistic regression": ("separatrix.models.logistic",),
    "Stochastic gradient descent": ("separatrix.models.sgd", "separatrix.models.sgd_regressor"),
    "Separability": ("separatrix.models.separability", "separatrix.models._pair_separability"),
    "Linear support vector machines": ("separatrix.models.linear_svm", "separatrix.models.linear_svr"),
    "Support vector machines": (
        "separatrix.models.svc",
        "separatrix.models.svr",
        "separatrix.models.one_class",
    ),
    "Nearest neighbours": ("separatrix.models.neighbors",),
}


def on_config(config):
    """Write the navigation, unless there is one."""
    config.nav = config.nav or navigation(Path(config.docs_dir), reference())
    return config


def on_files(files, config):
    """Add the pages that come from elsewhere."""
    for source, name in ELSEWHERE.items():
        if (ROOT / source).exists():
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, name, content=relinked(text, "")))
    for _, name, text in reference():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Make links that lead out of docs/ stay on the site; answers of a session are not coloured as code."""
    return re.sub(r"^```python\n(?=>>> )", "```pycon\n", relinked(markdown, "../"), flags=re.MULTILINE)


def relinked(text, up):
    """Return Markdown with links from a page of the repository as links of the site."""
    for source, name in ELSEWHERE.items():
        text = re.sub(rf"\]\({re.escape(up)}{re.escape(source)}(#[^)]*)?\)", rf"]({name}\1)", text)
    return text.replace("](docs/", "](") if not up else text


def title(path):
    """Return a page's own title."""
    found = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1].replace("`", "") if found else path.stem


def navigation(folder, pages):
    """Return MkDocs' navigation: groups with the pages that exist, others among the guides."""
    placed = {name for names in GROUPS.values() for name in names}
    others = sorted(path.name for path in folder.glob("*.md") if path.name not in placed)
    found = []
    for group, names in GROUPS.items():
        entries = []
        for name in names + (tuple(others) if group == "Guides" else ()):
            if (folder / name).exists():
                entries.append({"Overview" if name == "index.md" else title(folder / name): name})
            elif name in ELSEWHERE.values():
                entries.append({name.removesuffix(".md").capitalize(): name})
        if group == "Reference":
            entries = [{heading: name} for heading, name, _ in pages]
        found += entries if not group else [{group: entries}] if entries else []
    return found


def reference():
    """Return (title, file, Markdown) of the pages of reference."""
    import separatrix

    homes = {}
    for name in separatrix.__all__:
        home = getattr(getattr(separatrix, name), "__module__", None)
        if home is not None:
            homes.setdefault(home, []).append(name)
    pages = [("The program", "reference/program.md", program())]
    left = dict(homes)
    families = dict(REFERENCE)
    for home in homes:
        if home.startswith("separatrix.models.") and not any(home in group for group in REFERENCE.values()):
            families[home.rpartition(".")[2].replace("_", " ").capitalize()] = (home,)
    for heading, modules in families.items():
        names = [f"{home}.{name}" for home in modules for name in left.pop(home, ())]
        if names:
            pages.append(api_page(heading, "", names))
    for module in sorted(name for name in separatrix.__all__ if inspect.ismodule(getattr(separatrix, name))):
        pages.append(module_page(f"separatrix.{module}"))
    if importlib.util.find_spec("separatrix.traces"):
        pages.append(module_page("separatrix.traces"))
        left.pop("separatrix.traces._trace", None)
    rest = [f"{home}.{name}" for home, names in left.items() for name in names]
    pages.append(api_page("Files and certificates", "", sorted(rest)))
    return pages


def module_page(module):
    """Return the page of a module: its description and its public names."""
    found = importlib.import_module(module)
    names = []
    for name in found.__all__:
        thing = getattr(found, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            names.append(f"{thing.__module__}.{name}")
    heading = module.rpartition(".")[2].capitalize()
    return api_page(heading, inspect.cleandoc(found.__doc__ or ""), names)


def api_page(heading, text, names):
    """Return the page of some public names, in mkdocstrings' notation."""
    blocks = "\n\n".join(f"::: {name}" for name in names)
    examples = re.sub(r"^(\w.*)\n-+$", r"**\1**", text, flags=re.MULTILINE)
    file = heading.lower().replace(" ", "-")
    return heading, f"reference/{file}.md", f"# {heading}\n\n{examples}\n\n{blocks}\n"


def program():
    """Return the page of the program: the help of each command, as the program prints it."""
    os.environ["COLUMNS"] = os.environ["TERMINAL_WIDTH"] = "100"
    import typer

    from separatrix.cli.app import app

    group = typer.main.get_command(app)
    context = group.make_context("separatrix", [], resilient_parsing=True)
    context.terminal_width = 100
    parts = [
        "# The program",
        "",
        "What `separatrix --help` and the `--help` of each command print.",
        "",
        "## separatrix",
        "",
        *fenced(group.get_help(context)),
    ]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = type(context)(command, info_name=name, parent=context)
        inner.terminal_width = 100
        parts += [f"## separatrix {name}", "", *fenced(command.get_help(inner))]
    return "\n".join(parts)


def fenced(text):
    """Return lines of text as a block of text."""
    return ["```text", *(line.rstrip() for line in text.splitlines()), "```", ""]
