"""What networks of text learn: the next character."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite.compute_bound.training import Batch, Work

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))  # all others are read as blanks
_MODULES = 60


def read_sources(first: int, last: int | None) -> str:
    """Return the modules of Python's standard library from ``first`` to before ``last``, by name."""
    files = sorted(Path(os.__file__).parent.glob("*.py"))[first:last]
    return "".join(file.read_text("utf-8") for file in files)


def read_help_pages() -> str:
    """Return the pages that ``help()`` shows, in order of their names."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))


@cache
def sources() -> Tensor:
    """Return the first 60 modules of Python's standard library, about 1.5 million characters."""
    return _encoded(read_sources(0, _MODULES))


@cache
def further_sources() -> Tensor:
    """Return the next 60 modules of Python's standard library, about 1.7 million characters."""
    return _encoded(read_sources(_MODULES, 2 * _MODULES))


@cache
def help_pages() -> Tensor:
    """Return the pages that ``help()`` shows, about 0.7 million characters of English."""
    return _encoded(read_help_pages())


def _encoded(text: str) -> Tensor:
    codes = {character: code for code, character in enumerate(CHARACTERS)}
    blank = codes[" "]
    return torch.tensor([codes.get(character, blank) for character in text])


@dataclass(frozen=True)
class NextCharacter(Work):
    """Predict each next symbol of a text, in windows of ``length``; loss in nats a symbol.

    Symbols are characters if not otherwise.
    """

    text: Callable[[], Tensor]
    make: Callable[[Generator, int, int], nn.Module]
    length: int = 32  # symbols of a window
    held_out: int = 400  # windows of validation, and of test
    symbols: int = len(CHARACTERS)  # that a text is written in

    def parts(self, generator: Generator) -> dict[str, Batch]:
        """Cut windows from the text: stretches of a few thousand characters go to each part."""
        length = self.length
        stretches = self.text().unfold(0, 40 * length + 1, 40 * length)
        order = torch.randperm(len(stretches), generator=generator)
        held_out = 2 * self.held_out // 40 + 1
        windows = [
            stretches[rows].unfold(1, length + 1, length).reshape(-1, length + 1)
            for rows in (order[held_out:], order[:held_out])
        ]
        several = {
            "train": windows[0],
            "validation": windows[1][: self.held_out],
            "test": windows[1][self.held_out : 2 * self.held_out],
        }
        return {name: Batch(rows[:, :-1], rows[:, 1:]) for name, rows in several.items()}

    def network(self, generator: Generator) -> nn.Module:
        return self.make(generator, self.symbols, self.length)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross-entropy of each window, in nats a symbol."""
        loss = F.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none")
        return loss.view(targets.shape).mean(-1)

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the share of the symbols of each window that are the likeliest."""
        return (outputs.argmax(-1) == targets).float().mean(-1)
