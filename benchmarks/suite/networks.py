"""Small networks whose every random number comes from a generator of their own."""

from typing import Any

import torch
from torch import Generator, Tensor, nn

from botorch_costly.errors import check_count


class Dropout(nn.Module):
    """Dropout whose rate may change between rounds and whose masks come from a generator.

    Torch's own draws from the global generator, so a run could not be resumed bit for bit.
    """

    def __init__(self, generator: Generator) -> None:
        super().__init__()
        self.rate, self._generator = 0.0, generator

    def forward(self, hidden: Tensor) -> Tensor:
        """Drop units of ``hidden`` while training."""
        if not self.training or self.rate == 0:
            return hidden
        kept = torch.rand(hidden.shape, generator=self._generator) >= self.rate
        return hidden * kept / (1 - self.rate)


def set_dropout(network: nn.Module, rate: float) -> None:
    """Set the rate of every ``Dropout`` of a network."""
    for module in network.modules():
        if isinstance(module, Dropout):
            module.rate = rate


def picture_network(
    generator: Generator, channels: int, side: int, width: int, blocks: int, classes: int = 10
) -> nn.Sequential:
    """Build ``blocks`` convolutions that halve the side and double the width, and a linear head.

    The first convolution has ``width`` channels; pictures have ``channels`` and ``side`` pixels a side.
    """
    check_count("width", width, minimum=1)
    layers: list[nn.Module] = []
    for block in range(blocks):
        into = width << block
        convolution: dict[str, Any] = {"kernel_size": 3, "padding": 1}
        layers += [nn.utils.skip_init(nn.Conv2d, channels, into, **convolution)]
        layers += [nn.ReLU(), nn.MaxPool2d(2)]
        channels, side = into, side // 2
    head = nn.utils.skip_init(nn.Linear, channels * side**2, classes)
    return initialized(nn.Sequential(*layers, nn.Flatten(), Dropout(generator), head), generator)


def table_network(
    generator: Generator, columns: int, width: int = 64, classes: int = 2
) -> nn.Sequential:
    """Build two hidden layers with dropout, and a linear head."""
    check_count("width", width, minimum=1)
    layers: list[nn.Module] = []
    for size in (columns, width):
        layers += [nn.utils.skip_init(nn.Linear, size, width), nn.ReLU(), Dropout(generator)]
    head = nn.utils.skip_init(nn.Linear, width, classes)
    return initialized(nn.Sequential(*layers, head), generator)


def initialized(network: nn.Sequential, generator: Generator) -> nn.Sequential:
    """Draw all weights from ``generator``, in the order of the parameters."""
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.kaiming_normal_(parameter, nonlinearity="relu", generator=generator)
    return network
