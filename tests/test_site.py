"""The site of documentation is built without a warning, and holds what it should."""

import html
import os
import re
import runpy
import subprocess
import sys

import pytest

import separatrix
from separatrix import plot

pytest.importorskip("mkdocs", reason="the site needs the extra docs")


@pytest.fixture(scope="module")
def site(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.strip() == ""
    return folder


def test_navigation_finds_new_pages(root, tmp_path):
    hook = runpy.run_path(str(root / "scripts" / "site" / "pages.py"))
    for name in ("index", "svm", "perceptron", "unheard-of", "architecture"):
        (tmp_path / f"{name}.md").write_text(f"# About {name}\n")
    found = hook["navigation"](tmp_path, [("API", "reference/api.md", "")])
    assert found[0] == {"Overview": "index.md"}
    groups = {name: pages for group in found[1:] for name, pages in group.items()}
    guides = [name for page in groups["Guides"] for name in page.values()]
    assert guides == ["perceptron.md", "svm.md", "unheard-of.md"]
    assert groups["Reference"] == [{"API": "reference/api.md"}]
    assert {"About architecture": "architecture.md"} in groups["Development"]


def test_docstrings_become_markdown(root):
    pytest.importorskip("griffe")
    module = runpy.run_path(str(root / "scripts" / "site" / "docstrings.py"))
    text = "See :meth:`~a.b`, :math:`x^2`.\n\n.. math:: a\n   + b\n\nEnd."
    assert module["to_markdown"](text) == "See `a.b`, `x^2`.\n\n```tex\na\n   + b\n```\n\nEnd."


def words(page):
    text = page.read_text(encoding="utf-8")
    article = text[text.index("<article") : text.index("</article>")]
    without_code = re.sub(r"<(pre|code)[^>]*>.*?</\1>", "", article, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "", without_code))


def test_the_site(root, site):
    # Every page of docs/ is there and in the navigation.
    home = (site / "index.html").read_text(encoding="utf-8")
    for page in (root / "docs").glob("*.md"):
        assert (site / f"{page.stem}.html").is_file()
        assert page.stem == "index" or f'href="{page.stem}.html"' in home
    for name in ("contributing.html", "changelog.html", "reference/program.html"):
        assert f'href="{name}"' in home

    # Marks of another notation would stand in the text as they are.
    for page in site.rglob("*.html"):
        if page.name != "404.html":
            assert not re.search(r":\w+:`|\.\. \w+::|```|``|>>>|\|---|^ *- ", words(page), re.MULTILINE), page

    # Every public name has an entry in the reference, and every command its help.
    reference = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    public = [name for name in separatrix.__all__ if callable(getattr(separatrix, name))]
    for name in [*public, *plot.__all__]:
        assert re.search(rf'id="separatrix\.[\w.]*\.{name}"', reference), name
    program = html.unescape((site / "reference" / "program.html").read_text(encoding="utf-8"))
    for command in ("fit", "predict", "info"):
        assert f"Usage: separatrix {command}" in program

    # Links and pictures lead to files that are there; what is left out of the site is no target.
    for page in site.rglob("*.html"):
        for link in re.findall(
            r'<(?:a|img|link|script)\b[^>]*? (?:src|href)="([^"#?:]+)[^":]*"',
            page.read_text(encoding="utf-8"),
        ):
            if page.name != "404.html":
                assert (page.parent / html.unescape(link)).exists(), (page.name, link)

    # Nothing is fetched from elsewhere when a page is opened.
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="https?:', text), page
