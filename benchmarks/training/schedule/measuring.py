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
    """Return numbers that can be stored: a loss without bounds counts as a large one."""
    return (min(loss, _DIVERGED) if math.isfinite(loss) else _DIVERGED), accuracy
