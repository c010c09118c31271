"""A convolutional network on six sets of pictures: MNIST, CIFAR-10, some classes, few pictures.

Two convolutions with pooling and two dense layers, as in the paper, trained by RMSprop; the value is
the accuracy on pictures that were held out. The targets are the two whole sets. The small setting,
which is what is recorded, has 1,000 pictures of 16 x 16, 8 filters and 6 epochs; pictures of the
``few`` tasks are a fifth. The full setting has all pictures but the sixth, at most 10,000, that is held
out, 32 x 32, 32 filters, for 20 epochs, on a GPU where there is one; no GPU was at hand to record it.
SVHN and CIFAR-100, which the paper has too, are not at hand.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, cross_entropy, pad

from benchmarks.harness.clock import accelerator
from benchmarks.meta.live.family import SPACE, Config, Family, convolutions, dense, fit, one_by_one
from benchmarks.suite.data import Part, cifar10, mnist, whole_cifar10, whole_mnist
from benchmarks.suite.networks import initialized

_SIDE, _AT_ONCE = 32, 1_000  # of the pictures of CIFAR-10; pictures that are validated together


class Size(NamedTuple):
    """How much is trained."""

    training: int
    validation: int
    side: int
    filters: int
    units: int
    epochs: int
    batch: int
    mnist: Callable[[], Part]
    cifar10: Callable[[], Part]


class Pictures(NamedTuple):
    """A set of pictures, the classes that are told apart, and which share of them there is."""

    source: str
    classes: tuple[int, ...]
    share: float = 1.0


_ALL = tuple(range(10))
TASKS = {
    "mnist": Pictures("mnist", _ALL),
    "mnist few": Pictures("mnist", _ALL, share=0.2),
    "cifar10": Pictures("cifar10", _ALL),
    "cifar10 few": Pictures("cifar10", _ALL, share=0.2),
    "cifar10 animals": Pictures("cifar10", (2, 3, 4, 5, 6, 7)),
    "cifar10 machines": Pictures("cifar10", (0, 1, 8, 9)),
}
TARGETS = ("mnist", "cifar10")

SMALL = Size(1_000, 1_000, 16, 8, 32, 6, 32, mnist, cifar10)
FULL = Size(50_000, 10_000, _SIDE, 32, 64, 20, 128, whole_mnist, whole_cifar10)


@cache
def parts(task: str, size: Size, device: str = "cpu") -> tuple[Part, Part]:
    """Return the pictures of training and validation, with values around 0; they do not overlap."""
    pictures = TASKS[task]
    data = size.mnist() if pictures.source == "mnist" else size.cifar10()
    mine = torch.isin(data.targets, torch.tensor(pictures.classes))
    places = torch.searchsorted(torch.tensor(pictures.classes), data.targets[mine])
    # Of some classes there are fewer pictures; a sixth of them is for validation all the same.
    held = min(size.validation, len(places) // 6)
    shown, last = round(pictures.share * min(size.training, len(places) - held)), len(places)

    def part(first: int, end: int) -> Part:
        inputs = _scaled(data.inputs[mine][first:end], size.side)
        return Part(((inputs - 0.5) / 0.25).to(device), places[first:end].to(device))

    return part(0, shown), part(last - held, last)


def _scaled(pictures: Tensor, side: int) -> Tensor:
    margin = (_SIDE - pictures.shape[-1]) // 2
    return avg_pool2d(pad(pictures, (margin,) * 4), _SIDE // side)


def evaluate(task: str, config: Config, seed: int, *, size: Size) -> float:
    """Return the accuracy on held-out pictures after a training."""
    device = accelerator() if size is FULL else "cpu"
    training, validation = parts(task, size, device)
    generator = torch.Generator().manual_seed(seed)
    layers, width = convolutions(training.inputs.shape[1], size.side, size.filters)
    layers += [dense(width, size.units), nn.ReLU(), dense(size.units, size.units), nn.ReLU()]
    layers += [dense(size.units, len(TASKS[task].classes))]
    network = initialized(nn.Sequential(*layers), generator).to(device)

    def loss_of(rows: Tensor) -> Tensor:
        return cross_entropy(network(training.inputs[rows]), training.targets[rows])

    rows = torch.arange(len(training.targets), device=device)
    fit(network, loss_of, rows, config, generator, epochs=size.epochs, batch=size.batch)
    return _accuracy(network, validation)


@torch.inference_mode()
def _accuracy(network: nn.Module, data: Part) -> float:
    guessed = torch.cat([network(inputs).argmax(-1) for inputs in data.inputs.split(_AT_ONCE)])
    return float((guessed == data.targets).double().mean())


def _family(name: str, size: Size, recorded: int) -> Family:
    several = one_by_one(partial(evaluate, size=size))
    return Family(name, SPACE, tuple(TASKS), TARGETS, several, block=8, recorded=recorded)


IMAGES = _family("images", SMALL, recorded=128)
FULL_IMAGES = _family("images, full", FULL, recorded=48)
