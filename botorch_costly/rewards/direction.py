"""A check of the declared kind of metrics: an accuracy declared as a loss makes the worst look best."""

import logging
import math
from typing import Literal

_COUNT = 10  # metrics that are checked
_BALANCE = 0.8  # of their pairs, from which a trend is no coincidence
_LEAST = 0.1  # total worsening that is reported
_OTHER = {"loss": "accuracy", "accuracy": "loss"}
_logger = logging.getLogger(__name__)


class Direction:
    """Warns once if the first metrics of a run worsen steadily and lie in [0, 1].

    Most runs improve their metric at first. A loss above 1 cannot be an accuracy.

    Args:
        kind: Declared kind of the metrics.
    """

    def __init__(self, kind: Literal["loss", "accuracy"]) -> None:
        self._kind = kind
        self._metrics: list[float] = []

    def watch(self, metric: float) -> None:
        """Add the next metric of the network in training; one that is not finite is ignored."""
        if len(self._metrics) == _COUNT or not math.isfinite(metric):
            return
        self._metrics.append(metric)
        if len(self._metrics) == _COUNT and self._is_suspicious():
            trend = "rise" if self._kind == "loss" else "fall"
            first, *_, last = self._metrics
            _logger.warning(
                "The first %d metrics %s from %.3g to %.3g. If they are no %s, declare them as %s.",
                *(_COUNT, trend, first, last, self._kind, _OTHER[self._kind]),
            )

    def _is_suspicious(self) -> bool:
        metrics = [m if self._kind == "loss" else -m for m in self._metrics]
        if not all(0 <= abs(m) <= 1 for m in metrics) or metrics[-1] - metrics[0] < _LEAST:
            return False
        pairs = [(metrics[i], metrics[j]) for j in range(_COUNT) for i in range(j)]
        balance = sum((later > before) - (later < before) for before, later in pairs)
        return balance >= _BALANCE * len(pairs)
