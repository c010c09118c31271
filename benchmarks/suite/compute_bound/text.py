"""Text that every Python has, as characters: the sources of its library, and its help pages."""

import os
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))  # all others are read as blanks
_MODULES = 60


@cache
def sources() -> Tensor:
    """Return the first 60 modules of Python's standard library, about 1.5 million characters."""
    files = sorted(Path(os.__file__).parent.glob("*.py"))[:_MODULES]
    return _encoded("".join(file.read_text("utf-8") for file in files))


@cache
def help_pages() -> Tensor:
    """Return the pages that ``help()`` shows, about 0.7 million characters of English."""
    from pydoc_data.topics import topics

    return _encoded("\n".join(topics[name] for name in sorted(topics)))


def _encoded(text: str) -> Tensor:
    codes = {character: code for code, character in enumerate(CHARACTERS)}
    blank = codes[" "]
    return torch.tensor([codes.get(character, blank) for character in text])
