"""What the trainings of networks share: three hyperparameters of RMSprop, and the training itself.

The paper searches all three in one range, whose ends its text has lost. Here the learning rate divides
by ``1 + decay * steps`` as in Keras, and ``l2`` times half the sum of the squared weights is the
penalty.
"""

from collections.abc import Callable

import torch
from torch import Generator, Tensor, nn

from benchmarks.meta.live.family import Config
from botorch_costly import Real, SearchSpace

SPACE = SearchSpace(
    {
        "lr": Real(1e-6, 2e-2, log=True),
        "lr_decay": Real(1e-6, 2e-2, log=True),
        "l2": Real(1e-6, 2e-2, log=True),
    }
)
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
    """Train a network in place.

    Args:
        network: What is trained.
        loss_of: From rows of the training set to their loss.
        order: The rows of the training set, on the device of the network.
        config: A configuration of ``SPACE``.
        generator: Of the order of the rows.
        epochs: How often each row is seen.
        batch: Rows of a step.
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
