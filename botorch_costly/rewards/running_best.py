"""A check of told metrics: the best value so far, or an old one, in place of the latest measurement."""

import logging
import math
from collections.abc import Sequence
from typing import Literal

import torch

from botorch_costly.rewards.shares import examples_of

_COUNT = 20  # metrics after which there may be a warning
_STEPS = 3  # times that a metric is repeated exactly, and then clearly improved, ...
_REPEATS = 5  # exact repeats in all, ...
_DIFFERENT = 6  # and different metrics, of a best value so far
_CLEAR = 1e-3  # of a metric, by which it is clearly improved, ...
_UNITS = 5  # ... and least differences of rounded numbers, or of shares of examples
_LEAST = 1000  # examples; shares of fewer are often equal
_KEPT = 32  # different metrics that tell how numbers are rounded
_logger = logging.getLogger(__name__)


class RunningBest:
    """Warns once if metrics never get worse, and stay exactly as they are between their improvements.

    Losses of a training that converges do not get worse either, but differ each time. Metrics that are
    shares of few examples, or rounded to few digits, are often equal, and are not judged. A mean over the
    metrics so far leaves no such trace.

    Args:
        kind: Kind of the metrics: of ``"loss"`` smaller ones are better.
    """

    def __init__(self, kind: Literal["loss", "accuracy"]) -> None:
        self._sign = -1.0 if kind == "loss" else 1.0
        self._values: list[float] = []  # the first different ones
        self._steps: list[float] = []  # clear improvements after repeats
        self._count = self._repeats = 0
        self._latest: float | None = None
        self._is_repeated = self._is_over = False

    def restart(self) -> None:
        """Begin another training: its metrics are not compared with those before."""
        self._latest, self._is_repeated = None, False

    def watch(self, metric: float, *, is_next: bool = True) -> None:
        """Add the next metric; one that is not finite is ignored.

        Args:
            metric: The metric.
            is_next: Whether training went on from the metric before: a state that is returned to has the
                metric that it had.
        """
        if self._is_over or not math.isfinite(metric):
            return
        before, self._latest = self._latest, metric
        self._count += 1
        gain = 0.0 if before is None else self._sign * (metric - before)
        if gain < 0:
            self._is_over = True
        elif before is None or gain > 0:
            if len(self._values) < _KEPT and metric not in self._values:
                self._values.append(metric)
            if self._is_repeated and gain >= _CLEAR * abs(metric):
                self._steps.append(gain)
                self._judge()
            self._is_repeated = False
        else:
            self._repeats += is_next
            self._is_repeated = is_next

    def _judge(self) -> None:
        """Warn if enough of the improvements are larger than rounding explains."""
        are_few = len(self._values) < _DIFFERENT or len(self._steps) < _STEPS
        if are_few or self._repeats < _REPEATS or self._count < _COUNT:
            return
        unit = _unit_of(self._values)
        self._is_over = unit == math.inf  # and stays so
        if sum(gain >= _UNITS * unit for gain in self._steps) < _STEPS:
            return
        self._is_over = True
        _logger.warning(
            "The first %d metrics never get worse, and %d of them are exactly as the one before, as the "
            "best value so far is, or one that was not measured anew. Tell the metric as it was measured "
            "after this round: otherwise a setting that does harm looks as good as any.",
            self._count,
            self._repeats,
        )


def _unit_of(values: Sequence[float]) -> float:
    """Return the least difference of values that have few digits, or are shares of few examples."""
    largest = max(map(abs, values))
    unit = _unit_of_type(values)
    top = 10.0 ** max(math.ceil(math.log10(largest)), 0) if largest else 1.0
    examples = examples_of([abs(value) / top for value in values])
    if examples is None:
        return unit
    return max(unit, top / examples) if examples >= _LEAST else math.inf


def _unit_of_type(values: Sequence[float]) -> float:
    """Return the least difference of the largest value if all were computed in half precision."""
    row = torch.tensor(values, dtype=torch.float64)
    for dtype in (torch.bfloat16, torch.float16):
        if torch.equal(row.to(dtype).double(), row):
            return float(row.abs().max()) * torch.finfo(dtype).eps
    return 0.0
