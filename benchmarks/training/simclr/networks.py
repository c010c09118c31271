"""Encoders without a classifier, and the head that projects what they find for the contrastive loss."""

from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from botorch_costly.errors import InvalidArgumentError, check

WIDTHS = (32, 64, 128)  # channels of the small encoder
ENCODERS = ("small", "resnet18")


class Contrasting(nn.Module):
    """An encoder, whose features are read out, and a head of two layers, which is thrown away.

    Raises:
        InvalidArgumentError: If there is no such encoder, or torchvision is needed and not there.

    Example:
        >>> network = Contrasting("small", generator=torch.Generator().manual_seed(0))
        >>> network(torch.zeros(4, 3, 16, 16)).shape, network.encoder(torch.zeros(4, 3, 16, 16)).shape
        (torch.Size([4, 64]), torch.Size([4, 128]))
    """

    def __init__(self, encoder: str, *, generator: Generator, projection: int = 64) -> None:
        super().__init__()
        check(encoder in ENCODERS, "encoder", f"one of {ENCODERS}", encoder)
        # What modules draw for themselves is replaced, and the global generator is as it was.
        with torch.random.fork_rng(devices=[]):
            self.encoder, self.features = _small() if encoder == "small" else _resnet18()
            hidden = self.features
            self.head = nn.Sequential(
                nn.Linear(self.features, hidden, bias=False),
                nn.BatchNorm1d(hidden),
                nn.ReLU(),
                nn.Linear(hidden, projection),
            )
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, pictures: Tensor) -> Tensor:  # shape: (n, projection) of (n, 3, side, side)
        """Return the projections of normalized pictures."""
        return self.head(self.encoder(pictures))


class _Mean(nn.Module):
    """The mean over all pixels."""

    def forward(self, hidden: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(hidden, 1).flatten(1)


def _small() -> tuple[nn.Module, int]:
    """Return three convolutions that halve the side, and the number of their features."""
    layers: list[nn.Module] = []
    into = 3
    for width in WIDTHS:
        layers += [nn.Conv2d(into, width, 3, stride=2, padding=1, bias=False)]
        layers += [nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        into = width
    return nn.Sequential(*layers, _Mean()), into


def _resnet18() -> tuple[nn.Module, int]:
    """Return torchvision's ResNet-18 with the stem for small pictures: 3 x 3, stride 1, no pooling."""
    network = _torchvision_models().resnet18(weights=None)
    network.conv1 = nn.Conv2d(3, 64, 3, stride=1, padding=1, bias=False)
    network.maxpool = nn.Identity()
    features = network.fc.in_features
    network.fc = nn.Identity()
    return network, features


def _torchvision_models() -> Any:
    """Return ``torchvision.models``, which beside a CPU's torch needs two operators declared first.

    The package index has torchvision built against CUDA. Its compiled operators do not load then, and
    no model here uses them; their schemas are all that the import asks for.
    """
    try:
        return _models()
    except ModuleNotFoundError as error:
        expected = "torchvision, which is in the extra `vision`, for a ResNet-18"
        raise InvalidArgumentError("encoder", expected, str(error)) from error
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _DECLARED.append(library)
        return _models()


_DECLARED: list[Any] = []  # what is declared lasts as long as the library that declared it


def _models() -> Any:
    from torchvision import models

    return models
