"""The pattern of the pitches and lengths of three notes, told from a signal in noise."""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite.compute_bound.networks import draw_layers
from benchmarks.suite.compute_bound.training import Batch, Settings, Work
from benchmarks.suite.networks import Dropout

_STEPS = torch.tensor([[0, 1, 2], [2, 1, 0], [0, 2, 1], [2, 0, 1], [1, 0, 2], [1, 2, 0]])  # pitches
_ENDS = torch.tensor([[0.33, 0.67], [0.5, 0.75], [0.25, 0.5]])  # of the first two notes
_CLASSES = len(_STEPS) * len(_ENDS)
_HARMONICS = 3
_STRETCHES = 6  # of a signal, each of which the head hears the mean of


class _Gate(nn.Module):
    """A residual layer: a dilated convolution, half of which says how much of the rest passes."""

    def __init__(self, generator: Generator, width: int, dilation: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(width, 2 * width, 3, padding=dilation, dilation=dilation)
        self.norm, self.dropout = nn.BatchNorm1d(2 * width), Dropout(generator)

    def forward(self, hidden: Tensor) -> Tensor:
        passing = F.glu(self.norm(self.convolution(hidden)), dim=1)
        return hidden + self.dropout(passing)


class DilatedNetwork(nn.Module):
    """Gated convolutions that see twice as far layer by layer: ``n x 1 x length -> n x classes``.

    References:
        A. van den Oord et al. WaveNet: a generative model for raw audio. 2016: dilation and gates.
    """

    def __init__(self, generator: Generator, width: int = 24, layers: int = 5) -> None:
        super().__init__()
        self.stem = nn.Conv1d(1, width, 16, stride=4)
        self.layers = nn.Sequential(*(_Gate(generator, width, 1 << k) for k in range(layers)))
        self.head = nn.Linear(_STRETCHES * width, _CLASSES)
        draw_layers(self, generator)

    def forward(self, signals: Tensor) -> Tensor:
        """Return the logits of each signal."""
        hidden = self.layers(F.relu(self.stem(signals)))
        return self.head(F.adaptive_avg_pool1d(hidden, _STRETCHES).flatten(1))


@dataclass(frozen=True)
class Melodies(Work):
    """Tell the order of the pitches of three notes and their rhythm, ``n x 1 x length``.

    The key, the intervals, a glide, the strength of the harmonics and of the noise differ from signal to
    signal; so does a hum of constant pitch.
    """

    signals: int = 25_600  # to train on
    held_out: int = 1000  # signals of validation, and of test
    length: int = 400  # samples of a signal
    width: int = 24  # channels of a layer

    def parts(self, generator: Generator) -> dict[str, Batch]:
        several = {"train": self.signals, "validation": self.held_out, "test": self.held_out}
        return {name: self._drawn(many, generator) for name, many in several.items()}

    def _drawn(self, many: int, generator: Generator) -> Batch:
        classes = torch.randint(_CLASSES, (many,), generator=generator)
        time = torch.arange(self.length) / self.length
        note = self._notes(classes, generator)
        key, interval, glide, hum = (
            _between(low, high, many, generator)
            for low, high in ((0.02, 0.06), (1.12, 1.4), (-0.1, 0.1), (0.02, 0.2))
        )
        pitch = key * interval ** _STEPS[classes // len(_ENDS)].gather(1, note) * (1 + glide * time)
        phase = 2 * math.pi * pitch.cumsum(-1)
        sound = torch.zeros(many, self.length)
        for harmonic in range(1, _HARMONICS + 1):
            strength = _between(0.0, 1 / harmonic, many, generator)
            sound += strength * (harmonic * phase).sin()
        sound += 0.3 * (2 * math.pi * hum * self.length * time).sin()
        level = _between(0.05, 0.5, many, generator)
        sound += level * torch.randn(sound.shape, generator=generator)
        return Batch(sound[:, None], classes)

    def _notes(self, classes: Tensor, generator: Generator) -> Tensor:
        """Return which of the three notes sounds, ``n x length``; the beginning differs a little."""
        ends = _ENDS[classes % len(_ENDS)] + _between(-0.06, 0.06, len(classes), generator)
        time = torch.arange(self.length) / self.length
        return (time[None, :, None] >= ends[:, None, :]).sum(-1)

    def network(self, generator: Generator) -> nn.Module:
        return DilatedNetwork(generator, self.width)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy of each signal, in nats."""
        return F.cross_entropy(outputs, targets, reduction="none")

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return which signals are told right."""
        return (outputs.argmax(-1) == targets).float()

    def altered(self, batch: Batch, settings: Settings, generator: Generator) -> Batch:
        """Add noise, and silence a stretch; ``time_mask`` is the largest share it takes."""
        signals = batch.inputs
        grain = torch.randn(signals.shape, generator=generator)
        many = len(signals)
        share = _between(0.0, float(settings["time_mask"]), many, generator)[..., None]
        start = _between(0.0, 1.0, many, generator)[..., None] * (1 - share)
        time = torch.arange(self.length) / self.length
        silent = (time >= start) & (time < start + share)
        heard = torch.where(silent, 0.0, signals + settings["noise"] * grain)
        return Batch(heard, batch.targets)


def _between(low: float, high: float, many: int, generator: Generator) -> Tensor:
    """Draw a column of numbers evenly from an interval."""
    return low + (high - low) * torch.rand(many, 1, generator=generator)
