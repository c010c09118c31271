"""A small convolutional network and VGG16, of layers that respond to hyperparameters."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.training.stn.hyperparameters import Bounds
from benchmarks.training.stn.layers import STNBatchNorm2d, STNConv2d, STNLinear, drop
from botorch_costly.errors import check


class Convolution(NamedTuple):
    """A convolution, its batch norm, a rectifier, perhaps a pooling, and dropout."""

    channels: int
    stride: int = 1
    pool: bool = False  # halves the side


def _vgg(*groups: Sequence[int]) -> tuple[Convolution, ...]:
    """Return groups of convolutions, each of which ends with a pooling."""
    return tuple(
        Convolution(channels, pool=place == len(group) - 1)
        for group in groups
        for place, channels in enumerate(group)
    )


SMALL = (Convolution(16, stride=2), Convolution(32, stride=2), Convolution(32, stride=2))
WIDER = (
    *(Convolution(32, stride=2), Convolution(64, stride=2)),
    *(Convolution(64), Convolution(128, stride=2)),
)
# Configuration D of Simonyan & Zisserman (2015); CIFAR-10's pictures end in one pixel, so the head is
# one linear layer.
VGG16 = _vgg((64,) * 2, (128,) * 2, (256,) * 3, (512,) * 3, (512,) * 3)


def dropout_bounds(plan: Sequence[Convolution]) -> dict[str, Bounds]:
    """Return the bounds of the dropout rate of each layer, by name."""
    return {f"dropout_{layer}": Bounds(0.0, 0.9, start=0.05) for layer in range(len(plan))}


class SelfTuningNetwork(nn.Module):
    """Convolutions with batch norm, and a linear head, that respond to hyperparameters, or to none if 0.

    Raises:
        InvalidArgumentError: If the pictures are too small for the plan.

    Example:
        >>> import torch
        >>> generator = torch.Generator().manual_seed(0)
        >>> network = SelfTuningNetwork(SMALL, hyperparameters=2, generator=generator)
        >>> network(torch.rand(4, 3, 32, 32, generator=generator), torch.zeros(4, 2)).shape
        torch.Size([4, 10])
    """

    def __init__(
        self,
        plan: Sequence[Convolution],
        *,
        hyperparameters: int,
        generator: Generator,
        classes: int = 10,
        side: int = 32,
    ) -> None:
        super().__init__()
        self.plan, self.side = tuple(plan), side
        shrunk = side
        for one in plan:
            shrunk = shrunk // one.stride // (2 if one.pool else 1)
        check(shrunk > 0, "side", f"pictures large enough for {len(plan)} convolutions", side)
        channels = [3, *(one.channels for one in plan)]
        k: dict[str, Any] = {"hyperparameters": hyperparameters, "generator": generator}
        self.convolutions = nn.ModuleList(
            STNConv2d(into, out, stride=one.stride, **k)
            for (into, out), one in zip(pairwise(channels), plan, strict=True)
        )
        self.norms = nn.ModuleList(STNBatchNorm2d(out, **k) for out in channels[1:])
        self.head = STNLinear(channels[-1] * shrunk**2, classes, **k)

    def forward(
        self,
        pictures: Tensor,  # shape: (n, 3, side, side)
        h: Tensor,  # shape: (n, k), or (1, k) for all
        rates: Tensor | None = None,  # shape: (n, layers)
        generator: Generator | None = None,
    ) -> Tensor:  # shape: (n, classes)
        """Return the logits of normalized pictures under unconstrained hyperparameters of each example.

        Units are dropped after each convolution at ``rates``; nothing is dropped if they are omitted.

        Raises:
            InvalidArgumentError: If the pictures have another shape.
        """
        wanted, shape = (3, self.side, self.side), tuple(pictures.shape)
        check(shape[1:] == wanted, "pictures", f"shape n x {' x '.join(map(str, wanted))}", shape)
        hidden = pictures
        layers = zip(self.plan, self.convolutions, self.norms, strict=True)
        for place, (one, convolution, norm) in enumerate(layers):
            hidden = norm(convolution(hidden, h), h)
            if one.pool:
                hidden = F.max_pool2d(hidden, 2)
            hidden = F.relu(hidden, inplace=True)  # after the pooling, which it commutes with
            if rates is not None and generator is not None:
                hidden = drop(hidden, rates[:, place], generator)
        return self.head(hidden.flatten(1), h)
