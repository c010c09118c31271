"""The pages of the project, and what is in them."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
# What every environment has: other libraries may be missing.
CORE = {"botorch", "botorch_costly", "gpytorch", "numpy", "torch", *sys.stdlib_module_names}
PAGES = sorted([README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def text_of(page):
    return page.read_text(encoding="utf-8")


def prose_of(page):
    """The text without its fenced code."""
    return re.sub(r"^```.*?^```$", "", text_of(page), flags=re.M | re.S)


def code_of(page):
    return re.findall(r"^```python\n(.*?)^```$", text_of(page), flags=re.M | re.S)


def libraries_of(code):
    """Names of the packages that some code imports and that may be missing."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def skip_without(libraries):
    """Skip the test unless all of the libraries are there; return those that may be missing."""
    extra = sorted(set(libraries) - CORE)
    for library in extra:
        pytest.importorskip(library, reason=f"the code needs {library}")
    return extra


def section(text, title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S).group(1)
