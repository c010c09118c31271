"""Networks on parts of CIFAR-10, with the hyperparameters of the supplement's Tables 2 and 3.

Widths, epochs and schedules are ours, for the supplement names none: Adam with a learning rate that falls
to 0 by a cosine, and a residual network of 20 layers, trained with momentum, whose learning rate is
multiplied by the factor after a half and three quarters of the epochs.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from torch.optim import Optimizer

from benchmarks.harness.clock import accelerator, synchronize
from benchmarks.subsets.live.program import Config, Outcome, Program
from benchmarks.suite.data import POOL, Part, cifar10, whole_cifar10
from botorch_costly import Integer, Real, SearchSpace
from botorch_costly.parameters import BASES
from botorch_costly.plain import as_number

_CNN_PARAMETERS: dict[str, Real | Integer] = {
    "lr": Real(1e-6, 1.0, log=True),
    "batch_size": Integer(32, 512),
    "units_1": Integer(16, 512, log=True),
    "units_2": Integer(16, 512, log=True),
    "units_3": Integer(16, 512, log=True),
}
CNN_SPACE = SearchSpace(_CNN_PARAMETERS)
RESIDUAL_SPACE = SearchSpace(
    {
        "lr": Real(1e-6, 1.0, log=True),
        "weight_decay": Real(1e-6, 1.0, log=True),
        "lr_factor": Real(1e-4, 1.0, log=True),
        "momentum": Real(0.1, 0.999),
    }
)
_CHANNELS, _SIDE, _CLASSES = 3, 32, 10
_BATCH = 128  # of the residual network
_WIDTHS, _BLOCKS = (16, 32, 64), 3  # of its three stages
_AT_ONCE = 1_000  # pictures that are validated together
_DROPS = (0.5, 0.75)  # shares of the epochs after which the factor is applied


class Size(NamedTuple):
    """How much is trained."""

    training: int
    validation: int
    epochs: int
    shrink: int = 1  # what the widths of the networks are divided by


class Recipe(NamedTuple):
    """A network, its optimizer and its schedule, from a configuration."""

    network: Callable[[Mapping[str, float], torch.Generator, int], nn.Sequential]
    optimizer: Callable[[Mapping[str, float], list[nn.Parameter]], Optimizer]
    scale: Callable[[Mapping[str, float], float], float]  # of the learning rate after a share


def trained(config: Config, fraction: float, seed: int, *, recipe: Recipe, size: Size) -> Outcome:
    """Train on a fraction of the pictures, drawn at random; one that diverges has an error of 1.

    Seconds are those of the processor, on a GPU those of the clock.
    """
    value = {name: as_number(name, config[name]) for name in config}
    device = accelerator()
    training, validation = _parts(size, device)
    generator = torch.Generator().manual_seed(seed)
    count = max(1, round(fraction * size.training))
    drawn = torch.randperm(size.training, generator=generator)[:count].to(device)
    began = _now(device)
    network = recipe.network(value, generator, size.shrink).to(device)
    optimizer = recipe.optimizer(value, list(network.parameters()))
    rates = [value["lr"] * recipe.scale(value, epoch / size.epochs) for epoch in range(size.epochs)]
    mine = Part(training.inputs[drawn], training.targets[drawn])
    batch = int(value.get("batch_size", _BATCH))
    finite = _fitted(network, optimizer, mine, rates, batch, generator)
    error = _error(network, validation) if finite else 1.0
    return Outcome(error, _now(device) - began)


def _fitted(
    network: nn.Sequential,
    optimizer: Optimizer,
    data: Part,
    rates: Sequence[float],
    batch: int,
    generator: torch.Generator,
) -> bool:
    """Train for an epoch at each learning rate; return whether the loss stayed finite."""
    device = data.targets.device
    network.train()
    for rate in rates:
        optimizer.param_groups[0]["lr"] = rate
        total = torch.zeros((), device=device)
        order = torch.randperm(len(data.targets), generator=generator).to(device)
        for rows in order.split(batch):
            loss = cross_entropy(network(data.inputs[rows]), data.targets[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total = total + loss.detach()
        if not bool(total.isfinite()):  # once an epoch: a GPU need not be waited for more often
            return False
    return True


@torch.inference_mode()
def _error(network: nn.Sequential, validation: Part) -> float:
    network.eval()
    pairs = zip(validation.inputs.split(_AT_ONCE), validation.targets.split(_AT_ONCE), strict=True)
    wrong = [(network(pictures).argmax(-1) != targets).sum() for pictures, targets in pairs]
    return float(torch.stack(wrong).sum()) / len(validation.targets)


def _now(device: str) -> float:
    if device == "cpu":
        return time.process_time()
    synchronize(device)
    return time.perf_counter()


@cache
def _parts(size: Size, device: str) -> tuple[Part, Part]:
    """Return the pictures of training and validation, with values around 0."""
    last = size.training + size.validation
    data = cifar10() if last <= POOL["cifar10"] else whole_cifar10()

    def part(start: int, end: int) -> Part:
        pictures = data.inputs[start:end].to(device)
        return Part((pictures - 0.5) / 0.25, data.targets[start:end].to(device))

    return part(0, size.training), part(size.training, last)


def _convolution(into: int, out: int, stride: int = 1) -> nn.Module:
    return nn.utils.skip_init(
        nn.Conv2d, into, out, kernel_size=3, padding=1, stride=stride, bias=False
    )


def _plain(value: Mapping[str, float], generator: torch.Generator, shrink: int) -> nn.Sequential:
    """Return three convolutions, each normalized and pooled, and a linear head."""
    layers: list[nn.Module] = []
    into = _CHANNELS
    for name in ("units_1", "units_2", "units_3"):
        out = max(1, int(value[name]) // shrink)
        layers += [_convolution(into, out), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]
        into = out
    head = nn.utils.skip_init(nn.Linear, into * (_SIDE // 8) ** 2, _CLASSES)
    return _drawn(nn.Sequential(*layers, nn.Flatten(), head), generator)


class _Block(nn.Module):
    """Two convolutions beside a shortcut, which skips pixels and adds channels of zeros."""

    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self._stride, self._more = out // into, out - into
        self.body = nn.Sequential(
            _convolution(into, out, self._stride),
            nn.BatchNorm2d(out),
            nn.ReLU(),
            _convolution(out, out),
            nn.BatchNorm2d(out),
        )

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the sum of both, rectified."""
        shortcut = hidden[..., :: self._stride, :: self._stride]
        shortcut = pad(shortcut, (0, 0, 0, 0, 0, self._more))
        return (self.body(hidden) + shortcut).relu()


def _residual(value: Mapping[str, float], generator: torch.Generator, shrink: int) -> nn.Sequential:
    """Return the residual network of 20 layers of He et al. (2016)."""
    into = _WIDTHS[0] // shrink
    layers: list[nn.Module] = [_convolution(_CHANNELS, into), nn.BatchNorm2d(into), nn.ReLU()]
    for width in _WIDTHS:
        for _ in range(_BLOCKS):
            layers.append(_Block(into, width // shrink))
            into = width // shrink
    head = nn.utils.skip_init(nn.Linear, into, _CLASSES)
    return _drawn(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head), generator)


def _drawn(network: nn.Sequential, generator: torch.Generator) -> nn.Sequential:
    """Draw the weights of convolutions and head; normalizations begin as they are made."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return network


def _adam(value: Mapping[str, float], parameters: list[nn.Parameter]) -> Optimizer:
    return torch.optim.Adam(parameters, lr=value["lr"])


def _momentum(value: Mapping[str, float], parameters: list[nn.Parameter]) -> Optimizer:
    return torch.optim.SGD(
        parameters, value["lr"], value["momentum"], weight_decay=value["weight_decay"]
    )


def _cosine(value: Mapping[str, float], share: float) -> float:
    return BASES["cosine"](share)


def _drops(value: Mapping[str, float], share: float) -> float:
    return value["lr_factor"] ** sum(share >= drop for drop in _DROPS)


_PLAIN = Recipe(_plain, _adam, _cosine)
_RESIDUAL = Recipe(_residual, _momentum, _drops)
_WHOLE = Size(40_000, 10_000, epochs=15)
_SMALL = Size(2_000, 500, epochs=3, shrink=8)


def _program(space: SearchSpace, recipe: Recipe, size: Size, budgets: tuple[int, ...]) -> Program:
    fraction = SearchSpace({"fraction": Real(max(1 / 128, 64 / size.training), 1.0, log=True)})
    return Program(
        space, fraction, partial(trained, recipe=recipe, size=size), budgets, size.validation
    )


CNN = _program(CNN_SPACE, _PLAIN, _WHOLE, (15, 30, 60, 120))
RESIDUAL = _program(RESIDUAL_SPACE, _RESIDUAL, _WHOLE, (15, 30, 60, 120))
SMALL_CNN = _program(CNN_SPACE, _PLAIN, _SMALL, (2, 4, 8, 16))
SMALL_RESIDUAL = _program(RESIDUAL_SPACE, _RESIDUAL, _SMALL, (2, 4, 8, 16))
