"""Pictures through a few numbers that are drawn, and through a network that makes them larger."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite import data
from benchmarks.suite.compute_bound.networks import draw_layers
from benchmarks.suite.compute_bound.training import Batch, Settings, Work
from benchmarks.suite.compute_bound.works.pictures import drawn, grain
from benchmarks.suite.networks import Dropout

_CODE = 20  # numbers that a picture is squeezed through


class VariationalNetwork(nn.Module):
    """Encodes pictures as normal distributions, and decodes a draw from each.

    Inputs are the pixels of a picture and standard normal numbers to draw with, ``n x (pixels + code)``;
    outputs are logits of the pixels, and means and logarithms of variances, ``n x (pixels + 2 code)``.

    References:
        D. P. Kingma, M. Welling. Auto-encoding variational Bayes. ICLR 2014.
    """

    def __init__(self, generator: Generator, pixels: int = 784, width: int = 400) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, width), nn.ReLU(), Dropout(generator))
        self.code = nn.Linear(width, 2 * _CODE)
        self.decoder = nn.Sequential(nn.Linear(_CODE, width), nn.ReLU(), Dropout(generator))
        self.head = nn.Linear(width, pixels)
        draw_layers(self, generator)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of the pixels, and the distributions that they are decoded from."""
        pixels, standard = inputs[:, :-_CODE], inputs[:, -_CODE:]
        code = self.code(self.encoder(pixels))
        mean, log_variance = code.chunk(2, -1)
        logits = self.head(self.decoder(mean + (log_variance / 2).exp() * standard))
        return torch.cat([logits, code], -1)


@dataclass(frozen=True)
class Variational(Work):
    """Encode pictures and decode them; the loss is the negative evidence bound, in nats a picture.

    Targets are the pixels and the weight of the divergence, ``n x (pixels + 1)``: that is 1 in what is
    measured, and ``divergence_weight`` of the settings in what is trained on. A picture has about a
    hundred nats, so that differences are those of logarithms.
    """

    pool: Callable[[], data.Part]
    held_out: int = 1000  # pictures of validation, and of test
    width: int = 400  # hidden units of the encoder, and of the decoder
    in_nats = False

    def parts(self, generator: Generator) -> dict[str, Batch]:
        pixels = self.pool().inputs.flatten(1)
        rows = drawn(len(pixels), self.held_out, generator)
        return {name: Batch(pixels[row], pixels[row]) for name, row in rows.items()}

    def network(self, generator: Generator) -> nn.Module:
        pixels = self.pool().inputs[0].numel()
        return VariationalNetwork(generator, pixels, self.width)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        pixels, weight = targets[:, :-1], targets[:, -1]
        logits, code = outputs.split([pixels.shape[-1], 2 * _CODE], -1)
        mean, log_variance = code.chunk(2, -1)
        missed = F.binary_cross_entropy_with_logits(logits, pixels, reduction="none").sum(-1)
        divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1) / 2
        return missed + weight * divergence

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the share of the pixels of each picture that are on the right side of a half."""
        pixels = targets[:, :-1]
        return ((outputs[:, : pixels.shape[-1]] > 0) == (pixels > 0.5)).float().mean(-1)

    def altered(self, batch: Batch, settings: Settings, generator: Generator) -> Batch:
        """Hide the pictures behind noise, and add what codes are drawn with."""
        shape = (len(batch.inputs), _CODE)
        hidden = torch.randn(batch.inputs.shape, generator=generator) * settings["noise"]
        standard = torch.randn(shape, generator=generator)
        return _drawn_with(
            standard, batch.inputs + hidden, batch.targets, settings["divergence_weight"]
        )

    def judged(self, batch: Batch) -> Batch:
        """Add always the same numbers that codes are drawn with."""
        return _drawn_with(grain(batch.inputs[:, :_CODE]), batch.inputs, batch.targets, 1.0)


def _drawn_with(standard: Tensor, inputs: Tensor, pixels: Tensor, weight: float) -> Batch:
    weights = torch.full((len(pixels), 1), weight)
    return Batch(torch.cat([inputs, standard], -1), torch.cat([pixels, weights], -1))


class SubPixelNetwork(nn.Sequential):
    """Four convolutions whose last channels become pixels: ``n x 1 x side x side``, twice as large.

    References:
        W. Shi et al. Real-time single image and video super-resolution using an efficient sub-pixel
        convolutional neural network. CVPR 2016.
    """

    def __init__(self, generator: Generator, width: int = 64) -> None:
        convolutions = [
            nn.Conv2d(1, width, 5, padding=2),
            nn.Conv2d(width, width, 3, padding=1),
            nn.Conv2d(width, width // 2, 3, padding=1),
        ]
        layers: list[nn.Module] = []
        for convolution in convolutions:
            layers += [convolution, nn.ReLU(), Dropout(generator)]
        head = nn.Conv2d(width // 2, 4, 3, padding=1)
        super().__init__(*layers, nn.Sequential(head, nn.PixelShuffle(2)))
        for convolution in (*convolutions, head):
            gain = 1.0 if convolution is head else 2**0.5
            draw_layers(convolution, generator)
            nn.init.orthogonal_(convolution.weight, gain, generator=generator)


@dataclass(frozen=True)
class SuperResolution(Work):
    """Return gray pictures at twice the size they were shrunk to; the loss is that of squares."""

    pool: Callable[[], data.Part]
    held_out: int = 1000  # pictures of validation, and of test
    width: int = 64  # channels of the first two layers
    in_nats = False

    def parts(self, generator: Generator) -> dict[str, Batch]:
        gray = self.pool().inputs.mean(1, keepdim=True)
        small = F.avg_pool2d(gray, 2)
        rows = drawn(len(gray), self.held_out, generator)
        return {name: Batch(small[row], gray[row]) for name, row in rows.items()}

    def network(self, generator: Generator) -> nn.Module:
        return SubPixelNetwork(generator, self.width)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square().flatten(1).mean(-1)

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the share of the pixels of each picture that are told within 2 % of the range."""
        return ((outputs - targets).abs() < 0.02).float().flatten(1).mean(-1)

    def altered(self, batch: Batch, settings: Settings, generator: Generator) -> Batch:
        """Add noise to the small pictures."""
        noise = settings["noise"] * torch.randn(batch.inputs.shape, generator=generator)
        return Batch(batch.inputs + noise, batch.targets)
