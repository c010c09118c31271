"""The belief about the validation curve of one run, from its readings and the training loss.

The level of the curve is a local linear trend in the logarithm of the steps, in which learning curves
are close to straight; the training loss, which is free, is a regressor. Rates of change and noise are
integrated over a grid, weighted by the evidence.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.improvement import expected_improvement
from botorch_costly.numerics.trend import Trend, advance, observe, predict, prior

_SLOWEST, _FASTEST = -2, 3  # rates of the slope as powers of ten, for curves with a range of 1
_NOISES = [10.0**k for k in range(-6, -1)]  # variances of a whole reading
_WINDOW = 64  # latest readings that the belief is conditioned on
_LEAST = 4  # readings from which the first one, which a curve leaves abruptly, is left out
_WIDE = 3.0  # factor of the standard deviation of rare jumps, and
_JUMPS = 0.1  # their probability


class Reading(NamedTuple):
    """A reading of the validation set, as the belief sees it; lower values are better."""

    step: int
    value: float
    variance: float  # of the mean over part of the examples; 0 for all of them
    training: float  # smoothed training loss; NaN if unknown


class Forecast(NamedTuple):
    """A mixture of normal distributions, one for each pair of rates: the value at some step."""

    mean: Tensor  # shape: (m,)
    deviation: Tensor  # shape: (m,)
    weight: Tensor  # shape: (m,)

    def below(self, value: float, jumps: float = _JUMPS) -> float:
        """Return the probability of a value of at most ``value``, with rare jumps of a probability."""
        distance = (value - self.mean) / self.deviation
        normal, wide = torch.special.ndtr(distance), torch.special.ndtr(distance / _WIDE)
        return float(self.weight @ ((1 - jumps) * normal + jumps * wide))

    def improvement(self, best: float) -> float:
        """Return the expected decrease below ``best``, at least 0."""
        return float(self.weight @ expected_improvement(-self.mean, self.deviation, -best))


class CurveBelief:
    """The posterior of a validation curve given its readings; immutable.

    Args:
        readings: All readings so far, in the order of their steps; at least one.
        slowest: Smallest rate of the slope, as a power of ten; far forecasts of a curve that has become
            flat need smaller ones than the next readings do.
    """

    def __init__(self, readings: list[Reading], *, slowest: int | None = None) -> None:
        least = _SLOWEST if slowest is None else slowest
        usable = [reading for reading in readings if math.isfinite(reading.value)]
        usable = usable[1:] if len(usable) >= _LEAST else usable
        usable = usable[-_WINDOW:]
        self._start = readings[0].step + 1.0
        rates, noises = torch.meshgrid(
            torch.logspace(least, _FASTEST, _FASTEST - least + 1, dtype=torch.float64),
            torch.tensor(_NOISES, dtype=torch.float64),
            indexing="ij",
        )
        self._rates, self._noises = rates.reshape(-1), noises.reshape(-1)
        values = [reading.value for reading in usable]
        losses = [reading.training for reading in usable]
        self._origin, self._scale = values[0], _spread(values)
        self._has_losses = all(map(math.isfinite, losses))
        self._loss, self._loss_scale = losses[0], _spread(losses) if self._has_losses else 1.0
        self._trend, self._last, self._weight = self._filtered(usable)

    def _filtered(self, usable: list[Reading]) -> tuple[Trend, float, Tensor]:
        """Return the posteriors after the last reading, its time, and the weights of the filters."""
        responds = 1.0 if self._has_losses and len(usable) > 1 else 0.0
        trend = prior(len(self._rates), torch.tensor([1.0, 1.0, responds], dtype=torch.float64))
        times = [self._time(reading.step) for reading in usable]
        gaps, values, regressors, variances = (
            self._rates.new_tensor(numbers)
            for numbers in (
                [now - before for before, now in pairwise(times[:1] + times)],
                [(reading.value - self._origin) / self._scale for reading in usable],
                [self._regressor(reading.training) for reading in usable],
                [reading.variance / self._scale**2 for reading in usable],
            )
        )
        noises = self._noises + variances[:, None]
        trend, evidence = observe(trend, gaps, values, regressors, noises, self._rates)
        return trend, times[-1], torch.softmax(evidence, 0)

    def _time(self, step: int) -> float:
        return math.log(step + self._start)

    def _regressor(self, training: float) -> float:
        if not self._has_losses or not math.isfinite(training):
            return 0.0
        return (training - self._loss) / self._loss_scale

    def at(self, step: int, training: float = math.nan) -> Forecast:
        """Return the forecast of a reading at a step, from the last reading on.

        Args:
            step: Step of training.
            training: Smoothed training loss at the step; if NaN, that of the first reading counts.
        """
        trend = advance(self._trend, self._time(step) - self._last, self._rates)
        mean, variance = predict(trend, self._regressor(training))
        deviation = (variance.clamp_min(0.0) + self._noises).sqrt()
        return Forecast(mean * self._scale + self._origin, deviation * self._scale, self._weight)


def _spread(values: list[float]) -> float:
    """Return the range of values; a positive number if they are all equal."""
    spread = max(values) - min(values)
    return spread if spread > 0 else max(abs(values[0]), 1e-12)
