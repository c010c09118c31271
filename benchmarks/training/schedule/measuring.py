"""Loss and accuracy of a network on many pictures, as numbers that can be stored."""

import math
from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite.data import Part
from benchmarks.suite.protocol import Metrics

_CHUNK = 500  # pictures that are measured at once
_DIVERGED = 100.0  # nats: what a loss counts that is larger or no number


def measured(logits_of: Callable[[Tensor], Tensor], part: Part) -> Metrics:
    """Measure a network on all pictures of a part.

    A network whose loss is not finite has diverged: it has the largest loss and no hit, the worst there
    is, so that a reward of either is finite and a tuner hears of it.

    Args:
        logits_of: Of pictures in [0, 1], without a gradient.
        part: Pictures and classes.
    """
    pictures, targets = part
    loss, hits = 0.0, 0
    for some, right in zip(pictures.split(_CHUNK), targets.split(_CHUNK), strict=True):
        logits = logits_of(some)
        loss += float(F.cross_entropy(logits.float(), right, reduction="sum"))
        hits += int((logits.argmax(-1) == right).sum())
    return Metrics(*storable(loss / len(targets), hits / len(targets)))


def storable(loss: float, accuracy: float) -> tuple[float, float]:
    """Return a loss and an accuracy as they are stored, those of a network that diverged as the worst."""
    if not math.isfinite(loss):
        return _DIVERGED, 0.0
    return min(loss, _DIVERGED), accuracy
