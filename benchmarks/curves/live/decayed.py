"""Trainings whose rate rises, falls and is 0 at the end, where the number of epochs is a hyperparameter.

Until the rate falls, the noise of the gradients hides how good a training will be, and many diverge: the
first rewards tell little, as in many trainings of large networks.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from benchmarks.curves.live.program import Length, Program
from benchmarks.suite.data import Part, cifar10, digits
from benchmarks.suite.networks import picture_network, set_dropout, table_network
from botorch_costly import Integer, Real, SearchSpace
from botorch_costly.parameters import BASES, Plain
from botorch_costly.plain import as_number

_PARAMETERS: dict[str, Real | Integer] = {
    "epochs": Integer(4, 40, log=True),
    "warm_up": Real(0.0, 0.5),  # share of the epochs in which the rate rises
    "lr": Real(1e-3, 3.0, log=True),
    "friction": Real(0.01, 1.0, log=True),  # 1 - momentum
    "weight_decay": Real(1e-6, 1e-1, log=True),
    "batch_size": Integer(8, 128, log=True),
    "dropout": Real(0.0, 0.6),
}
SPACE = SearchSpace(_PARAMETERS)
_DIVERGED = 1e6  # loss of a batch


class Course(NamedTuple):
    """What is learnt: data for training and for validation, a network, and its loss and reward."""

    training: Part
    validation: Part
    network: Callable[[Generator], nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor]
    reward: Callable[[Tensor, Tensor], Tensor]


class Decayed:
    """A training; a round is an epoch, its reward that of the validation."""

    def __init__(
        self, course: Callable[[], Course], config: Mapping[str, Plain], seed: int
    ) -> None:
        value = {name: as_number(name, config[name]) for name in SPACE.names}
        self._course, self._generator = course(), torch.Generator().manual_seed(seed)
        self._network = self._course.network(self._generator)
        set_dropout(self._network, value["dropout"])
        self._batch, self._peak = int(value["batch_size"]), value["lr"]
        self._optimizer = torch.optim.SGD(
            self._network.parameters(),
            lr=self._peak,
            momentum=1 - value["friction"],
            weight_decay=value["weight_decay"],
            foreach=True,
        )
        batches = math.ceil(len(self._course.training.targets) / self._batch)
        self._steps, self._step = int(value["epochs"]) * batches, 0
        self._rise = value["warm_up"] * self._steps

    def play(self) -> float:
        """Train for an epoch; NaN once the loss has diverged."""
        inputs, targets = self._course.training
        self._network.train()
        for rows in torch.randperm(len(targets), generator=self._generator).split(self._batch):
            loss = self._course.loss(self._network(inputs[rows]), targets[rows])
            if not loss.item() < _DIVERGED:
                return math.nan
            self._optimizer.param_groups[0]["lr"] = self._peak * self._share()
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
            self._step += 1
        return self._reward()

    def _share(self) -> float:
        """Return the rate of this step as a share of its peak: a line up, then half a cosine down."""
        if self._step < self._rise:
            return (self._step + 1) / (self._rise + 1)
        return BASES["cosine"]((self._step - self._rise) / (self._steps - self._rise))

    @torch.inference_mode()
    def _reward(self) -> float:
        self._network.eval()
        inputs, targets = self._course.validation
        return float(self._course.reward(self._network(inputs), targets))


def _accuracy(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.argmax(-1) == targets).float().mean()


@cache
def _digits() -> Course:
    """Return scikit-learn's digits; a fifth of the labels of 500 are wrong."""
    data = digits()
    pixels, draws = data.inputs.flatten(1), torch.Generator().manual_seed(0)
    labels = data.targets[:500].clone()
    wrong = torch.rand(500, generator=draws) < 0.2
    labels[wrong] = torch.randint(10, (int(wrong.sum()),), generator=draws)
    return Course(
        Part(pixels[:500], labels),
        Part(pixels[500:], data.targets[500:]),
        lambda generator: table_network(generator, 64, classes=10),
        cross_entropy,
        _accuracy,
    )


@cache
def _pictures() -> Course:
    """Return 2,000 pictures of CIFAR-10 for a network of three convolutions, and 2,000 for validation."""
    data = cifar10()
    inputs = (data.inputs[:4_000] - 0.5) / 0.25
    return Course(
        Part(inputs[:2_000], data.targets[:2_000]),
        Part(inputs[2_000:], data.targets[2_000:4_000]),
        lambda generator: picture_network(generator, 3, 32, 8, 3),
        cross_entropy,
        _accuracy,
    )


@cache
def _teacher() -> Course:
    """Return noisy outputs of a random network, to be learnt from 1,000; the reward is -log10 loss."""
    draws = torch.Generator().manual_seed(0)
    inputs = torch.randn(3_000, 12, generator=draws)
    with torch.no_grad():
        clean = table_network(draws, 12, 24, classes=1)(inputs)
        clean = (clean - clean.mean(0)) / clean.std(0)
    noisy = clean + 0.3 * torch.randn(clean.shape, generator=draws)
    return Course(
        Part(inputs[:1_000], noisy[:1_000]),
        Part(inputs[1_000:], clean[1_000:]),
        lambda generator: table_network(generator, 12, classes=1),
        mse_loss,
        lambda outputs, targets: -mse_loss(outputs, targets).log10(),
    )


def _program(course: Callable[[], Course]) -> Program:
    return Program(SPACE, lambda config, seed: Decayed(course, config, seed), Length("epochs"))


DIGITS, NETWORK, TEACHER = _program(_digits), _program(_pictures), _program(_teacher)
