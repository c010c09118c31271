"""The noise that hides a picture, as much of it as there is at some time of a diffusion."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite import data
from benchmarks.suite.compute_bound.networks import draw_layers
from benchmarks.suite.compute_bound.training import Batch, Settings, Work
from benchmarks.suite.compute_bound.works.pictures import drawn, grain
from benchmarks.suite.networks import Dropout

_WAVES = 16  # of the embedding of time


class _Residual(nn.Module):
    """Two convolutions, the second of which hears the time, around which the input passes."""

    def __init__(self, generator: Generator, channels: int, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(4, channels), nn.GroupNorm(4, width)])
        self.first = nn.Conv2d(channels, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.time, self.past = nn.Linear(2 * _WAVES, width), nn.Conv2d(channels, width, 1)
        self.dropout = Dropout(generator)

    def forward(self, hidden: Tensor, time: Tensor) -> Tensor:
        inner = self.first(F.silu(self.norms[0](hidden))) + self.time(time)[..., None, None]
        return self.past(hidden) + self.second(self.dropout(F.silu(self.norms[1](inner))))


class NoiseNetwork(nn.Module):
    """A network in the shape of a U: pictures at full and at half size, ``n x 2 x side x side``.

    The first channel is a noisy picture, the second is the time, the same in every pixel; the output is
    the noise, ``n x 1 x side x side``.

    References:
        J. Ho, A. Jain, P. Abbeel. Denoising diffusion probabilistic models. NeurIPS 2020.
    """

    def __init__(self, generator: Generator, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.down = _Residual(generator, width, width)
        self.middle = _Residual(generator, width, 2 * width)
        self.up = _Residual(generator, 3 * width, width)
        self.head = nn.Conv2d(width, 1, 3, padding=1)
        draw_layers(self, generator)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the noise of each picture."""
        waves = inputs[:, 1, :1, :1].flatten(1) * _frequencies()
        time = torch.cat([waves.sin(), waves.cos()], -1)
        full = self.down(self.stem(inputs[:, :1]), time)
        half = self.middle(F.avg_pool2d(full, 2, ceil_mode=True), time)
        wide = F.interpolate(half, size=full.shape[-2:])
        return self.head(F.silu(self.up(torch.cat([full, wide], 1), time)))


@cache
def _frequencies() -> Tensor:
    """Return the frequencies of the embedding of time, which goes from 0 to 1."""
    return torch.logspace(0, 3, _WAVES, base=10.0)


@dataclass(frozen=True)
class Diffusion(Work):
    """Tell the noise from noisy pictures at times drawn evenly; the loss is that of squares.

    At time 0 a picture is nearly without noise, at time 1 there is nothing else: the share of the
    picture's variance falls like half a cosine.

    References:
        A. Nichol, P. Dhariwal. Improved denoising diffusion probabilistic models. ICML 2021: the cosine.
    """

    pool: Callable[[], data.Part]
    held_out: int = 1000  # pictures of validation, and of test
    width: int = 16  # channels at full size
    in_nats = False

    def parts(self, generator: Generator) -> dict[str, Batch]:
        inputs, _ = self.pool()
        small = 2 * F.avg_pool2d(inputs, 2) - 1
        rows = drawn(len(small), self.held_out, generator)
        return {name: Batch(small[row], small[row]) for name, row in rows.items()}

    def network(self, generator: Generator) -> nn.Module:
        return NoiseNetwork(generator, self.width)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square().flatten(1).mean(-1)

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the share of the pixels of each picture whose noise has the right sign."""
        return ((outputs > 0) == (targets > 0)).float().flatten(1).mean(-1)

    def altered(self, batch: Batch, settings: Settings, generator: Generator) -> Batch:
        """Hide the pictures behind noise, each as it is at a time of its own."""
        time = torch.rand(len(batch.inputs), generator=generator)
        return _noisy(batch.inputs, time, torch.randn(batch.inputs.shape, generator=generator))

    def judged(self, batch: Batch) -> Batch:
        """Hide the pictures behind always the same noise, at times that are spread evenly."""
        many = len(batch.inputs)
        return _noisy(batch.inputs, (torch.arange(many) + 0.5) / many, grain(batch.inputs))


def _noisy(pictures: Tensor, time: Tensor, noise: Tensor) -> Batch:
    """Return pictures with noise, with their times as a second channel, and the noise."""
    angle = (math.pi / 2 * (0.01 + 0.98 * time))[:, None, None, None]
    hidden = angle.cos() * pictures + angle.sin() * noise
    return Batch(torch.cat([hidden, time[:, None, None, None].expand_as(hidden)], 1), noise)
