"""The learning curve of a run, and the price of its rounds.

While compute binds, levels (minus the logarithm of the loss) grow about linearly in the logarithm of the
rounds. With a slope ``b`` per unit of log-time, giving back ``k`` of the remaining ``r`` rounds costs
``b k / r`` at the end. A run that has converged has ``b = 0``, so its rounds cost nothing.
"""

import math
from typing import NamedTuple

import torch

from botorch_costly.tuners.twins.constants import CONSTANTS

_FIRST = 0.3  # slope before there are two levels
_LEAST = 1e-3  # smallest upper bound of a slope
_FEW = 4  # levels; with fewer the upper bound stands for the slope
_WINDOW = 2.0  # factor of the rounds trained over which a slope is fitted


class Slope(NamedTuple):
    """Learning speed, in log loss per unit of log-time."""

    expected: float
    upper: float  # one standard error above


class Curve:
    """Levels of the run by rounds trained."""

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []

    def add(self, trained: int, level: float) -> None:
        """Add a level; remove those of abandoned later states."""
        self.points = [point for point in self.points if point[0] < trained]
        self.points.append((trained, level))

    @property
    def best(self) -> float:
        """Best level so far; -inf before the first."""
        return max((level for _, level in self.points), default=-math.inf)

    @property
    def first(self) -> float:
        """First level; inf before it."""
        return self.points[0][1] if self.points else math.inf

    @property
    def latest(self) -> Slope:
        """Slope up to the latest level; NaN before the second."""
        if len(self.points) < 2:
            return Slope(math.nan, math.nan)
        return self.slope(*self.points[-1])

    def slope(self, trained: int, level: float) -> Slope:
        """Return the slope per unit of log-time up to a further level.

        A line is fitted to the latest levels, so that the noise of one query neither looks like a stall
        nor makes rounds look cheap.
        """
        points = [*self._recent(trained), (trained, level)]
        if len(points) < 2:
            return Slope(_FIRST, _FIRST)
        if not all(math.isfinite(value) for _, value in points):
            return Slope(_LEAST, _LEAST)
        times = torch.tensor([math.log(max(rounds, 0.5)) for rounds, _ in points]).double()
        levels = torch.tensor([value for _, value in points]).double()
        centred = times - times.mean()
        spread = centred.square().sum()
        slope = (centred @ levels) / spread
        residuals = levels - levels.mean() - slope * centred
        noise = residuals.square().sum() / max(len(points) - 2, 1)
        error = (noise.clamp_min((CONSTANTS.level_noise / 2) ** 2) / spread).sqrt()
        upper = max(float(slope + error), _LEAST)
        return Slope(upper if len(points) < _FEW else float(slope), upper)

    def _recent(self, trained: int) -> list[tuple[int, float]]:
        """Return the levels within the window, and the last one before it."""
        earlier = [point for point in self.points if point[0] < trained]
        old = [point for point in earlier if _WINDOW * point[0] <= trained]
        return old[-1:] + earlier[len(old) :]


def price(slope: float, rounds: int, left: int) -> float:
    """Return the cost of rounds that are given back, in log loss at the end.

    The slope is capped: early in a run it is steeper than at the end.
    """
    return min(slope, 2 * CONSTANTS.typical_slope) * rounds / max(left, 1)
