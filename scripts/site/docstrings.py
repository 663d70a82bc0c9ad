"""Docstrings are numpydoc; the site reads Markdown. This turns the few marks that differ into one another."""

import re

import griffe

ROLE = re.compile(r":(?:meth|class|func|attr|mod):`~?([^`]+)`")
INLINE = re.compile(r":math:`([^`]+)`")
DISPLAY = re.compile(r"^( *)\.\. math:: *(.*(?:\n\1   .*)*)", re.MULTILINE)


def to_markdown(text: str) -> str:
    """Return a docstring's text with roles as code, and formulas as code blocks."""
    text = re.sub(r" *\\\n +", " ", text)  # a type that goes on in the next line
    text = DISPLAY.sub(lambda found: f"{found[1]}```tex\n{found[1]}{found[2].strip()}\n{found[1]}```", text)
    return INLINE.sub(r"`\1`", ROLE.sub(r"`\1`", text))


class Markdown(griffe.Extension):
    """Applied to each object of the package as it is read."""

    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        """Change the docstring before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)
