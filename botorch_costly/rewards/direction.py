"""A check of the declared kind of metrics: an accuracy declared as a loss makes the worst look best."""

import logging
import math
from collections.abc import Sequence
from typing import Literal

from botorch_costly.rewards.running_best import RunningBest
from botorch_costly.rewards.shares import TENS, examples_of

_COUNT = 10  # metrics that are checked, and segments of training
_BALANCE = 0.8  # of their pairs, from which a trend is no coincidence
_LEAST = 0.1  # total worsening that is reported
_WAY = 0.3  # and that of the whole way to the top of the range
_PERCENT = 100.0  # top of percentages
_CLEAR = 0.3  # total worsening that needs no confirmation by as many metrics again
_SEGMENTS = 30  # of training, that are watched where the metrics are shares of examples
_EARLIEST = 4  # of these, after which there may be a warning
_SURE = 4.0  # standard errors of a share by which segments worsen it in all, and
_AGAINST = 0.2  # of which they may improve it
_IN_DOUBT = 50  # examples as which one of the TENS counts, in fractions, if it is
_IN_DOUBT_FROM = 1000  # at least so large
_OTHER = {"loss": "accuracy", "accuracy": "loss"}
_TREND = {"loss": "rise", "accuracy": "fall"}
_ADVICE = (
    "If they are no %s, declare them as %s; if they are, training makes the network worse from the "
    "start, as overfitting or too high a learning rate does."
)
_logger = logging.getLogger(__name__)

Declared = Literal["loss", "accuracy"]


class Direction:
    """Warns once if the first metrics of a run worsen steadily, as metrics of the other kind do.

    It also warns of the best value so far in place of metrics, see ``RunningBest``.

    Most runs improve their metric at first. What is declared as a loss may be an accuracy, a share up to
    1 or a percentage up to 100, that rises by a tenth of its range, or by a third of the way to the top.
    What is declared as an accuracy and lies above 1 may be a loss: there a tenth of the first metric has
    to be lost. A loss that fine-tuning raises at first turns soon, so that a small rise has to go on for
    as long again.

    Args:
        kind: Declared kind of the metrics.
    """

    def __init__(self, kind: Declared) -> None:
        self._kind: Declared = kind
        self._metrics: list[float] = []
        self._is_known, self._best = False, RunningBest(kind)

    def watch(self, metric: float) -> None:
        """Add the next metric of the network in training; one that is not finite is ignored."""
        self._best.watch(metric)
        if not self._is_known and math.isfinite(metric):
            self._metrics.append(metric)
            self._is_known = watch_metrics(self._kind, self._metrics)

    def settle(self) -> None:
        """Watch no longer, as in a run that goes on, whose first metrics are over."""
        self._is_known = True


def watch_metrics(kind: Declared, metrics: Sequence[float]) -> bool:
    """Warn if the first metrics worsen steadily; return whether it is known that they do, or do not.

    Call it with all metrics so far after each of them, until it is known.

    Args:
        kind: Declared kind of the metrics.
        metrics: Finite metrics so far.
    """
    count = len(metrics)
    if count not in (_COUNT, 2 * _COUNT):
        return count > 2 * _COUNT
    worsening = _worsening(kind, metrics)
    is_known = count > _COUNT or worsening < _LEAST or worsening >= _CLEAR
    if is_known and worsening >= _LEAST:
        _logger.warning(
            f"The first %d metrics %s from %.3g to %.3g. {_ADVICE}",
            *(count, _TREND[kind], metrics[0], metrics[-1], kind, _OTHER[kind]),
        )
    return is_known


def watch_segments(kind: Declared, segments: Sequence[tuple[float, float]]) -> bool:
    """Warn if training worsens the metric whatever the settings; return whether that is known.

    Call it after each segment, until it is known. Shares of one number of examples, as accuracies and
    error rates are, tell it early, by their standard errors; other metrics with the tenth segment.

    Args:
        kind: Declared kind of the metrics.
        segments: Metrics before and after each segment of training so far.
    """
    count = len(segments)
    steady = count == _COUNT and _worsen_steadily(kind, segments)
    if steady or (_EARLIEST <= count <= _SEGMENTS and _worsen_surely(kind, segments)):
        worse = sum(_sign(kind) * (after - before) > 0 for before, after in segments)
        _logger.warning(
            "In %d of the first %d segments of training, with all settings tried, the metrics %s. "
            f"{_ADVICE}",
            *(worse, count, _TREND[kind], kind, _OTHER[kind]),
        )
        return True
    return count >= _SEGMENTS


def _worsen_steadily(kind: Declared, segments: Sequence[tuple[float, float]]) -> bool:
    """Return whether most segments worsen metrics, and all together by a tenth of the range."""
    changes = [_sign(kind) * (after - before) for before, after in segments]
    balance = sum((change > 0) - (change < 0) for change in changes)
    top = _top(kind, [metric for segment in segments for metric in segment])
    within = top in (1.0, _PERCENT if kind == "loss" else 1.0)
    return within and balance >= _BALANCE * _COUNT and sum(changes) >= _LEAST * (top or 1.0)


def _worsen_surely(kind: Declared, segments: Sequence[tuple[float, float]]) -> bool:
    """Return whether the metrics are shares of examples, and worsen by more than these tell by chance."""
    sign, metrics = _sign(kind), [metric for segment in segments for metric in segment]
    top = _top(kind, metrics)
    if top not in (1.0, _PERCENT) or sign * sum(after - before for before, after in segments) <= 0:
        return False
    examples = examples_of([metric / top for metric in metrics])
    if examples is None or (examples in TENS and (top > 1 or examples < _IN_DOUBT_FROM)):
        return False
    count = _IN_DOUBT if examples in TENS else examples
    moves = [
        sign * _standard_errors(before / top, after / top, count) for before, after in segments
    ]
    worse, better = sum(m for m in moves if m > 0), -sum(m for m in moves if m < 0)
    return worse - better >= _SURE and better <= _AGAINST * worse


def _standard_errors(before: float, after: float, examples: int) -> float:
    """Return the change of a share in standard errors of the difference of two independent shares."""
    middle = (before + after) / 2
    variance = max(2 * middle * (1 - middle), 2 / examples) / examples
    return (after - before) / math.sqrt(variance)


def _sign(kind: Declared) -> int:
    return 1 if kind == "loss" else -1


def _worsening(kind: Declared, metrics: Sequence[float]) -> float:
    """Return by how much metrics worsen in all, in units of the range that they may have; 0 if not."""
    top = _top(kind, metrics)
    pairs = [(metrics[i], metrics[j]) for j in range(len(metrics)) for i in range(j)]
    balance = sum((later > before) - (later < before) for before, later in pairs) * _sign(kind)
    change = _sign(kind) * (metrics[-1] - metrics[0])
    if top is None or change <= 0 or balance < _BALANCE * len(pairs):
        return 0.0
    way = _WAY * change / (top - metrics[0]) if kind == "loss" else 0.0
    return max(change / top, way)


def _top(kind: Declared, metrics: Sequence[float]) -> float | None:
    """Return the top of the range of metrics of the other kind; None if they cannot be such metrics."""
    largest = max(metrics)
    if min(metrics) < 0 or (kind == "loss" and largest > _PERCENT):
        return None
    if largest <= 1:
        return 1.0
    return _PERCENT if kind == "loss" else largest
