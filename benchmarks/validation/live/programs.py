"""Ten small training programs of different kinds; five choose constants, the others confirm them.

Data sets, networks and texts are those of the suite where there are such. All random numbers of a run
come from PyTorch's global generator, like in most training scripts, so that whatever draws from it in
between shows in the weights.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite import data
from benchmarks.suite.compute_bound.networks import Autoencoder, Recurrent, Transformer
from benchmarks.suite.compute_bound.works import CHARACTERS, help_pages, sources
from benchmarks.suite.networks import picture_network, set_dropout, table_network

_LENGTH = 32  # characters of a window


class Rows(NamedTuple):
    """Examples: inputs and targets, ``n`` of each."""

    inputs: Tensor
    targets: Tensor


@dataclass(frozen=True)
class Program:
    """A recipe for a training run."""

    name: str
    kind: str
    half: str  # "choice" or "confirmation"
    parts: Callable[[], tuple[Rows, Rows]]  # draws training and validation examples
    network: Callable[[], nn.Module]  # draws the first weights
    losses: Callable[[Tensor, Tensor], Tensor]  # of outputs and targets, for each example, (n,)
    min_delta: float  # improvements up to this size do not matter for stopping
    batch: int = 32
    epochs: int = 40  # or stretches of the same length, where a run sees each example once
    points: int = 4  # recorded steps of an epoch
    steps: int = 0  # of an epoch; 0 for one pass over the examples
    rate: float = 1e-3
    momentum: float | None = None  # of SGD; None for Adam
    decays: bool = False  # the rate, along a cosine


def _cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(outputs, targets, reduction="none")


def _window_losses(outputs: Tensor, targets: Tensor) -> Tensor:
    losses = F.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none")
    return losses.view(targets.shape).mean(-1)


def _square_errors(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().flatten(1).mean(-1)


def _drawn(rows: Rows, train: int, validation: int) -> tuple[Rows, Rows]:
    """Draw disjoint training and validation examples."""
    order = torch.randperm(len(rows.targets))
    parts = order[:train], order[train : train + validation]
    first, second = (Rows(rows.inputs[part], rows.targets[part]) for part in parts)
    return first, second


def _standardized(parts: tuple[Rows, Rows]) -> tuple[Rows, Rows]:
    """Scale each column, or all pixels together, to mean 0 and deviation 1 on the training examples."""
    inputs = parts[0].inputs
    columns = inputs.dim() == 2
    mean = inputs.mean(0) if columns else inputs.mean()
    deviation = (inputs.std(0) if columns else inputs.std()).clamp_min(1e-6)
    first, second = (Rows((part.inputs - mean) / deviation, part.targets) for part in parts)
    return first, second


def _from_pool(pool: Callable[[], data.Part], train: int, validation: int) -> tuple[Rows, Rows]:
    return _standardized(_drawn(Rows(*pool()), train, validation))


def _with_wrong_labels(train: int, validation: int, share: float) -> tuple[Rows, Rows]:
    """Replace a share of all labels of the digits by random ones."""
    parts = _from_pool(data.digits, train, validation)
    first, second = (Rows(part.inputs, _mislabeled(part.targets, share)) for part in parts)
    return first, second


def _mislabeled(targets: Tensor, share: float) -> Tensor:
    is_wrong = torch.rand(targets.shape) < share
    return torch.where(is_wrong, torch.randint_like(targets, 10), targets)


def _noisy_pictures(train: int, validation: int) -> tuple[Rows, Rows]:
    """Hide digits of MNIST behind noise; targets are the digits."""
    inputs, _ = data.mnist()
    parts = _drawn(Rows(inputs, inputs), train, validation)
    first, second = (
        Rows(part.inputs + 0.4 * torch.randn_like(part.inputs), part.targets) for part in parts
    )
    return first, second


def _windows(text: Callable[[], Tensor], train: int, validation: int) -> tuple[Rows, Rows]:
    """Cut windows of a text; the targets are the next characters."""
    windows = text().unfold(0, _LENGTH + 1, _LENGTH)
    return _drawn(Rows(windows[:, :-1], windows[:, 1:]), train, validation)


def _regression(train: int, validation: int) -> tuple[Rows, Rows]:
    """Draw Friedman's first function with noise of heavy tails, Student's t with 3 degrees."""
    inputs = torch.rand(train + validation, 10)
    a, b, c, d, e = inputs[:, :5].unbind(-1)
    values = 10 * (torch.pi * a * b).sin() + 20 * (c - 0.5).square() + 10 * d + 5 * e
    noise = torch.distributions.StudentT(3.0).sample(values.shape)
    targets = ((values + noise) / 5)[:, None]
    return _standardized(_drawn(Rows(inputs, targets), train, validation))


_USERS, _ITEMS = 300, 200


class Factors(nn.Module):
    """Predicts ratings from vectors of users and items."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(_USERS, width), nn.Embedding(_ITEMS, width)
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, pairs: Tensor) -> Tensor:
        """Return a rating for each pair of a user and an item."""
        return (self.users(pairs[:, 0]) * self.items(pairs[:, 1])).sum(-1, keepdim=True)


def _ratings(train: int, validation: int) -> tuple[Rows, Rows]:
    """Draw ratings of a world of four factors, with noise."""
    users, items = torch.randn(_USERS, 4) / 2, torch.randn(_ITEMS, 4)
    many = train + validation
    pairs = torch.stack([torch.randint(_USERS, (many,)), torch.randint(_ITEMS, (many,))], -1)
    values = (users[pairs[:, 0]] * items[pairs[:, 1]]).sum(-1, keepdim=True)
    return _drawn(Rows(pairs, values + 0.5 * torch.randn(many, 1)), train, validation)


def _with_dropout(make: Callable[[], nn.Module], rate: float) -> nn.Module:
    network = make()
    set_dropout(network, rate)
    return network


def _digits_network() -> nn.Sequential:
    return picture_network(torch.default_generator, channels=1, side=8, width=16, blocks=2)


def _color_network() -> nn.Module:
    return picture_network(torch.default_generator, channels=3, side=32, width=8, blocks=3)


def _pretrained() -> nn.Module:
    """Return a network that knows the digits 0 to 4, with a fresh head."""
    network = _digits_network()
    (known, _) = _from_pool(lambda: data.of_classes(data.digits(), range(5)), 800, 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(100):
        rows = torch.randint(len(known.targets), (32,))
        optimizer.zero_grad()
        _cross_entropy(network(known.inputs[rows]), known.targets[rows]).mean().backward()
        optimizer.step()
    head = network[-1]
    assert isinstance(head, nn.Linear)
    head.reset_parameters()
    return network


def _table_network() -> nn.Module:
    return table_network(torch.default_generator, columns=8)


def _text_network() -> nn.Module:
    return Recurrent(torch.default_generator, len(CHARACTERS), 64)


CHOICE = (
    Program(
        "digits", "convolutions, pictures", "choice",
        partial(_from_pool, data.digits, 600, 1000), partial(_with_dropout, _digits_network, 0.3),
        _cross_entropy, min_delta=0.01, epochs=60,
    ),
    Program(
        "wrong labels", "convolutions, 30 % of the labels random", "choice",
        partial(_with_wrong_labels, 700, 1000, 0.3), _digits_network, _cross_entropy,
        min_delta=0.01, epochs=60,
    ),
    Program(
        "diabetes", "perceptron, a small table", "choice",
        partial(_from_pool, data.pima, 300, 460), _table_network, _cross_entropy,
        min_delta=0.01, epochs=60,
    ),
    Program(
        "recurrent text", "gated recurrence, characters", "choice",
        partial(_windows, help_pages, 1500, 600), _text_network,
        _window_losses, min_delta=0.02, epochs=20, rate=5e-3,
    ),
    Program(
        "autoencoder", "perceptron, denoising of pictures", "choice",
        partial(_noisy_pictures, 2000, 1000), lambda: Autoencoder(torch.default_generator),
        _square_errors, min_delta=0.0005, batch=64, epochs=40, decays=True,
    ),
)  # fmt: skip
CONFIRMATION = (
    Program(
        "color pictures", "convolutions, CIFAR-10", "confirmation",
        partial(_from_pool, data.cifar10, 2500, 800), _color_network, _cross_entropy,
        min_delta=0.01, batch=64, epochs=20, rate=0.02, momentum=0.9, decays=True,
    ),
    Program(
        "regression", "perceptron, noise of heavy tails", "confirmation",
        partial(_regression, 1000, 2000),
        lambda: nn.Sequential(
            nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
        ),
        _square_errors, min_delta=0.01, epochs=60,
    ),
    Program(
        "transformer text", "attention, characters, one pass", "confirmation",
        partial(_windows, sources, 16_000, 600),
        lambda: Transformer(torch.default_generator, len(CHARACTERS), _LENGTH),
        _window_losses, min_delta=0.02, batch=24, epochs=20, steps=32, rate=2e-3,
    ),
    Program(
        "fine-tuning", "convolutions that know other digits", "confirmation",
        partial(_from_pool, lambda: data.of_classes(data.digits(), range(5, 10)), 100, 700),
        _pretrained, _cross_entropy, min_delta=0.01, batch=25, epochs=60, rate=1e-3,
    ),
    Program(
        "ratings", "factors of users and items", "confirmation",
        partial(_ratings, 6000, 2000), Factors, _square_errors, min_delta=0.01, batch=64,
        epochs=40, rate=2e-3,
    ),
)  # fmt: skip
PROGRAMS = {program.name: program for program in (*CHOICE, *CONFIRMATION)}
