"""One-shot verification of handwritten characters by a Siamese network; a task is an alphabet.

The network learns on pairs of drawings whether both are one character. Of each alphabet three quarters
of the characters are for training. The value is the 2-way accuracy on the others: each drawing is
compared with another one of its character and one of another character, five times, and the former has
to score higher; a tie counts half. Cyrillic is the target. Two dense layers and the numbers of filters
are ours; so is which characters belong together, for the data folder numbers them without their
alphabets.
"""

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, interpolate

from benchmarks.harness.clock import accelerator
from benchmarks.meta.live.family import SPACE, Config, Family, convolutions, dense, fit, one_by_one
from benchmarks.suite.data import arrays_of
from benchmarks.suite.networks import initialized

ALPHABETS = {
    "arcadian": range(26),
    "armenian": range(26, 67),
    "balinese": range(107, 131),
    "bengali": range(131, 177),
    "braille": range(191, 217),
    "cyrillic": range(217, 250),
}
_TARGET = "cyrillic"
_TRIALS = 5  # of each held-out drawing


class Size(NamedTuple):
    """How much is trained."""

    side: int
    filters: int
    units: int
    epochs: int
    batch: int


SMALL = Size(side=28, filters=8, units=32, epochs=4, batch=32)
FULL = Size(side=105, filters=64, units=256, epochs=60, batch=64)


@cache
def drawings(task: str, side: int, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Return the ink of training and validation, each ``characters x drawings x 1 x side x side``."""
    mine = ALPHABETS[task]
    pictures = torch.from_numpy(_images()[mine.start : mine.stop])
    ink = interpolate((~pictures).float(), size=(side, side), mode="area").unsqueeze(2).to(device)
    order = torch.randperm(len(ink), generator=torch.Generator().manual_seed(0))
    shown = len(ink) * 3 // 4
    return ink[order[:shown]], ink[order[shown:]]


@cache
def _images() -> Any:
    return arrays_of("omniglot_background.npz", ("images",))["images"]


def partners(sizes: Sequence[int], rows: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """Draw for each drawing another one of its character, and one of another character, ``(n,)`` each.

    ``sizes`` are the number of characters and of drawings of each; drawings are numbered character by
    character.
    """
    characters, copies = sizes
    character, copy = rows // copies, rows % copies

    def moved(count: int) -> Tensor:
        return torch.randint(1, count, rows.shape, generator=generator).to(rows.device)

    alike = character * copies + (copy + moved(copies)) % copies
    other = (character + moved(characters)) % characters * copies + (copy + moved(copies)) % copies
    return alike, other


class Siamese(nn.Module):
    """Scores whether two drawings are one character, from how their embeddings differ."""

    def __init__(self, size: Size, generator: Generator) -> None:
        super().__init__()
        layers, width = convolutions(1, size.side, size.filters)
        layers += [dense(width, size.units), nn.ReLU(), dense(size.units, size.units), nn.Sigmoid()]
        self.embed = initialized(nn.Sequential(*layers), generator)
        self.score = initialized(nn.Sequential(dense(size.units, 1)), generator)

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        """Return the scores of pairs of embeddings, ``n x units`` each, shape ``(n,)``."""
        return self.score((one - other).abs()).squeeze(-1)


def evaluate(task: str, config: Config, seed: int, *, size: Size) -> float:
    """Return the 2-way accuracy on held-out characters after a training."""
    device = accelerator() if size is FULL else "cpu"
    training, validation = drawings(task, size.side, device)
    generator = torch.Generator().manual_seed(seed)
    network = Siamese(size, generator).to(device)
    pictures = training.flatten(0, 1)

    def loss_of(rows: Tensor) -> Tensor:
        alike, other = partners(training.shape[:2], rows, generator)
        first, second, third = network.embed(pictures[torch.cat([rows, alike, other])]).chunk(3)
        scores = torch.cat([network(first, second), network(first, third)])
        truth = torch.arange(2, device=device).repeat_interleave(len(rows)).eq(0).float()
        return binary_cross_entropy_with_logits(scores, truth)

    order = torch.arange(len(pictures), device=device)
    fit(network, loss_of, order, config, generator, epochs=size.epochs, batch=size.batch)
    return _accuracy(network, validation)


@torch.inference_mode()
def _accuracy(network: Siamese, drawn: Tensor) -> float:
    embedded = network.embed(drawn.flatten(0, 1))
    rows = torch.arange(len(embedded), device=drawn.device).repeat(_TRIALS)
    pairs = partners(drawn.shape[:2], rows, torch.Generator().manual_seed(0))
    right, wrong = (network(embedded[rows], embedded[others]) for others in pairs)
    return float(((right - wrong).sign().double().mean() + 1) / 2)


def _family(name: str, size: Size, recorded: int) -> Family:
    several = one_by_one(partial(evaluate, size=size))
    return Family(name, SPACE, tuple(ALPHABETS), (_TARGET,), several, block=8, recorded=recorded)


OMNIGLOT = _family("omniglot", SMALL, recorded=96)
FULL_OMNIGLOT = _family("omniglot, full", FULL, recorded=48)
