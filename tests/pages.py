"""The pages of the project, and what is in them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted([README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def text_of(page):
    return page.read_text(encoding="utf-8")


def prose_of(page):
    """The text without its fenced code."""
    return re.sub(r"^```.*?^```$", "", text_of(page), flags=re.M | re.S)


def code_of(page):
    return re.findall(r"^```python\n(.*?)^```$", text_of(page), flags=re.M | re.S)


def section(text, title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S).group(1)
