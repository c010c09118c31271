"""Whether metrics move as they should: an accuracy that is told as a loss makes the worst look best."""

import logging
import math
from typing import Literal

_SEEN, _MOST = (
    10,
    0.8,
)  # metrics that are looked at, and the balance of their pairs that is no chance
_LEAST = 0.1  # by which they have got worse
_OTHER = {"loss": "accuracy", "accuracy": "loss"}
_logger = logging.getLogger(__name__)


class Direction:
    """Watches the first metrics of a run, and says so once if they get steadily worse and lie in [0, 1].

    Training goes forwards in most runs. A loss beyond 1 is no accuracy.

    Args:
        kind: Of the metrics, as they were declared.
    """

    def __init__(self, kind: Literal["loss", "accuracy"]) -> None:
        self._kind = kind
        self._metrics: list[float] = []

    def watch(self, metric: float) -> None:
        """Take in the next metric of the network that is trained; one that is not finite says nothing."""
        if len(self._metrics) == _SEEN or not math.isfinite(metric):
            return
        self._metrics.append(metric)
        if len(self._metrics) == _SEEN and self._is_suspicious():
            moved = "rise" if self._kind == "loss" else "fall"
            said = (
                "The first %d metrics %s from %.3g to %.3g. If they are no %s, declare them as %s."
            )
            first, *_, last = self._metrics
            other = _OTHER[self._kind]
            _logger.warning(said, _SEEN, moved, first, last, self._kind, other)

    def _is_suspicious(self) -> bool:
        metrics = [m if self._kind == "loss" else -m for m in self._metrics]
        if not all(0 <= abs(m) <= 1 for m in metrics) or metrics[-1] - metrics[0] < _LEAST:
            return False
        pairs = [(metrics[i], metrics[j]) for j in range(_SEEN) for i in range(j)]
        balance = sum((later > before) - (later < before) for before, later in pairs)
        return balance >= _MOST * len(pairs)
