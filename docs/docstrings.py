"""How the docstrings of this package become Markdown: a Griffe extension of the docs.

The docstrings are Google's with a few words of Sphinx in them: ``Example:`` before a doctest,
``.. math::`` before a formula, and roles such as ``:class:``. Markdown knows none of the three.
"""

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|meth|func|mod|attr):`~?([\w.]+)`")
_MATH = re.compile(r"^\.\. math::\n\n((?:[ \t]+.*\n|\n)+)", re.M)
_EXAMPLE = re.compile(r"^Example:$", re.M)


def markdown_of(docstring: str) -> str:
    """Return a docstring with examples, formulas and roles as Markdown has them."""
    text = _EXAMPLE.sub("Examples:", docstring + "\n")
    text = _MATH.sub(lambda found: f"```\n{found.group(1).rstrip()}\n```\n\n", text)
    return _ROLE.sub(r"`\1`", text).rstrip()


class Docstrings(griffe.Extension):
    """Rewrites the docstring of every object that Griffe loads."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one."""
        if obj.docstring is not None:
            obj.docstring.value = markdown_of(obj.docstring.value)
