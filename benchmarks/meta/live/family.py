"""Families of tasks that share a space, and the training of networks for some of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.quasirandom import SobolEngine

from botorch_costly import Real, SearchSpace

Config = Mapping[str, Any]

_SCRAMBLING = 0  # seed of the points


class Family(NamedTuple):
    """Tasks that share a space."""

    name: str
    space: SearchSpace  # space of the configurations, the same in each task
    tasks: tuple[str, ...]  # names of the tasks
    targets: tuple[str, ...]  # tasks that are to be optimized with the help of the others
    # From a task, configurations and a seed for each to their values in [0, 1], larger is better. A value
    # depends on its own configuration and seed alone.
    evaluate_all: Callable[[str, Sequence[Config], Sequence[int]], list[float]]
    block: int  # configurations that are recorded together
    recorded: int  # configurations that are recorded

    def evaluate(self, task: str, config: Config, seed: int) -> float:
        """Return the value of a configuration in a task, in [0, 1]."""
        (value,) = self.evaluate_all(task, [config], [seed])
        return value


def one_by_one(
    evaluate: Callable[[str, Config, int], float],
) -> Callable[[str, Sequence[Config], Sequence[int]], list[float]]:
    """Return what evaluates configurations one after the other."""

    def evaluate_all(task: str, configs: Sequence[Config], seeds: Sequence[int]) -> list[float]:
        pairs = zip(configs, seeds, strict=True)
        return [evaluate(task, config, seed) for config, seed in pairs]

    return evaluate_all


def points(space: SearchSpace, first: int, count: int) -> Tensor:
    """Return encodings, ``count x dim``, of a scrambled Sobol sequence from number ``first`` on."""
    engine = SobolEngine(space.dim, scramble=True, seed=_SCRAMBLING)
    return space.round(engine.fast_forward(first).draw(count, dtype=torch.float64))


SPACE = SearchSpace(
    {
        "lr": Real(1e-6, 2e-2, log=True),
        "lr_decay": Real(1e-6, 2e-2, log=True),
        "l2": Real(1e-6, 2e-2, log=True),
    }
)
"""Hyperparameters of RMSprop. The paper searches all three in one range, whose ends its text has lost.

The learning rate divides by ``1 + decay * steps`` as in Keras, and ``l2`` times half the sum of the
squared weights is the penalty.
"""
_MEMORY, _LEAST = 0.9, 1e-7  # those of Keras


def fit(
    network: nn.Module,
    loss_of: Callable[[Tensor], Tensor],
    order: Tensor,
    config: Config,
    generator: Generator,
    *,
    epochs: int,
    batch: int,
) -> None:
    """Train a network in place, by a configuration of ``SPACE``.

    ``loss_of`` maps rows of the training set to their loss; ``order`` holds all rows, on the device of
    the network, and the generator shuffles them in each epoch.
    """
    optimizer = torch.optim.RMSprop(
        network.parameters(),
        config["lr"],
        alpha=_MEMORY,
        eps=_LEAST,
        weight_decay=config["l2"],
        foreach=True,
    )
    steps = 0
    for _ in range(epochs):
        shuffled = torch.randperm(len(order), generator=generator).to(order.device)
        for rows in order[shuffled].split(batch):
            optimizer.param_groups[0]["lr"] = config["lr"] / (1 + config["lr_decay"] * steps)
            optimizer.zero_grad()
            loss_of(rows).backward()
            optimizer.step()
            steps += 1


def convolutions(channels: int, side: int, filters: int) -> tuple[list[nn.Module], int]:
    """Return two convolutions of 3 x 3, each rectified and pooled, and how many numbers leave them."""
    layers: list[nn.Module] = []
    for into in (channels, filters):
        layers += [nn.utils.skip_init(nn.Conv2d, into, filters, kernel_size=3, padding=1)]
        layers += [nn.ReLU(), nn.MaxPool2d(2)]
        side = side // 2
    return [*layers, nn.Flatten()], filters * side**2


def dense(into: int, out: int) -> nn.Module:
    """Return a linear layer whose weights are still to be drawn."""
    return nn.utils.skip_init(nn.Linear, into, out)
