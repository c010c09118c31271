"""What networks of pictures learn: the class of a picture, the picture behind noise."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite import data
from benchmarks.suite.augmentation import Doses
from benchmarks.suite.compute_bound.networks import Autoencoder
from benchmarks.suite.compute_bound.training import Batch, Settings, Work
from benchmarks.suite.training import Alter

_DOSES = Doses()


@dataclass(frozen=True)
class Classes(Work):
    """Tell pictures apart; settings are the doses of augmentation, and label smoothing."""

    pool: Callable[[], data.Part]
    make: Callable[[Generator], nn.Module]
    held_out: int = 2000  # pictures of validation, and of test
    alter: Alter = _DOSES
    classes: int = 10

    def parts(self, generator: Generator) -> dict[str, Batch]:
        inputs, targets = self.pool()
        rows = drawn(len(inputs), self.held_out, generator)
        return {name: Batch(inputs[row], targets[row]) for name, row in rows.items()}

    def network(self, generator: Generator) -> nn.Module:
        return self.make(generator)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy of each picture, in nats; of soft targets where they are."""
        return F.cross_entropy(outputs, targets, reduction="none")

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return which pictures are told right."""
        return (outputs.argmax(-1) == targets).float()

    def altered(self, batch: Batch, settings: Settings, generator: Generator) -> Batch:
        """Augment the pictures, by the doses in the settings if not otherwise, and smooth the labels."""
        inputs = self.alter(batch.inputs, settings, generator)
        return Batch(_normalized(inputs), smoothed(batch.targets, self.classes, settings))

    def judged(self, batch: Batch) -> Batch:
        return Batch(_normalized(batch.inputs), batch.targets)


def smoothed(targets: Tensor, classes: int, settings: Settings) -> Tensor:
    """Return the distributions, ``n x classes``, that label smoothing makes of classes, ``n``."""
    smoothing = float(settings.get("label_smoothing", 0.0))
    return (1 - smoothing) * F.one_hot(targets, classes).float() + smoothing / classes


def _normalized(pictures: Tensor) -> Tensor:
    """Return pictures of about zero mean and unit deviation; 0 stays the background until then."""
    return 4 * pictures - 2


@dataclass(frozen=True)
class Denoising(Work):
    """Return pictures to what they were before noise hid them; the loss is that of squares."""

    pool: Callable[[], data.Part]
    held_out: int = 2000
    noise: float = 0.4  # of what is measured; what is trained on is a setting
    width: int = 256  # units of the first and the third layer
    in_nats = False

    def parts(self, generator: Generator) -> dict[str, Batch]:
        inputs, _ = self.pool()
        rows = drawn(len(inputs), self.held_out, generator)
        return {name: Batch(inputs[row], inputs[row]) for name, row in rows.items()}

    def network(self, generator: Generator) -> nn.Module:
        return Autoencoder(generator, width=self.width)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square().flatten(1).mean(-1)

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the share of the pixels of each picture that are on the right side of a half."""
        return ((outputs > 0.5) == (targets > 0.5)).float().flatten(1).mean(-1)

    def altered(self, batch: Batch, settings: Settings, generator: Generator) -> Batch:
        """Hide the pictures behind the noise that the settings say."""
        grain = torch.randn(batch.inputs.shape, generator=generator)
        return Batch(batch.inputs + settings["noise"] * grain, batch.targets)

    def judged(self, batch: Batch) -> Batch:
        """Hide the pictures behind always the same noise."""
        return Batch(batch.inputs + self.noise * grain(batch.inputs), batch.targets)


def grain(pictures: Tensor) -> Tensor:
    """Return noise for pictures that are measured, always the same, of unit deviation."""
    return _grain(tuple(pictures.shape))


@cache
def _grain(shape: tuple[int, ...]) -> Tensor:
    return torch.randn(shape, generator=Generator().manual_seed(0))


def drawn(many: int, held_out: int, generator: Generator) -> dict[str, Tensor]:
    """Draw which of so many pictures are for validation, for the test and for training."""
    order = torch.randperm(many, generator=generator)
    parts = order.split([held_out, held_out, many - 2 * held_out])
    return dict(zip(("validation", "test", "train"), parts, strict=True))
