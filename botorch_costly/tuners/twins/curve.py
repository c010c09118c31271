r"""How fast a run still learns, and what a round of it is worth at its end.

Levels, minus the logarithm of the loss, grow about linearly in the logarithm of the rounds for as long
as compute binds. With a slope ``b`` by unit of log-time, giving back ``k`` of the ``r`` rounds that are
left costs ``b k / r`` at the end; a run that has converged has ``b = 0``, and its rounds cost nothing.
"""

import math
from typing import NamedTuple

import torch

from botorch_costly.tuners.twins.constants import CONSTANTS


class Slope(NamedTuple):
    """How fast a run learns, in log loss by unit of log-time."""

    expected: float
    upper: float  # by a standard error


class Curve:
    """Levels of the run by the rounds it was trained for."""

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []

    def add(self, trained: int, level: float) -> None:
        """Enter a level; those of states that were given up go."""
        self.points = [point for point in self.points if point[0] < trained]
        self.points.append((trained, level))

    @property
    def best(self) -> float:
        """The best level so far; -inf before the first."""
        return max((level for _, level in self.points), default=-math.inf)

    @property
    def latest(self) -> Slope:
        """The slope up to the latest level; NaN before the second."""
        if len(self.points) < 2:
            return Slope(math.nan, math.nan)
        return self.slope(*self.points[-1])

    def slope(self, trained: int, level: float) -> Slope:
        """Return the slope by unit of log-time up to a further level.

        The line is fitted to the levels of the latest rounds; a single one may be off by the noise of a
        query, which must neither look like a stall nor make rounds look cheap.
        """
        points = [*self._recent(trained), (trained, level)]
        if len(points) < 2:
            return Slope(CONSTANTS.first_slope, CONSTANTS.first_slope)
        if not all(math.isfinite(value) for _, value in points):
            return Slope(CONSTANTS.least_slope, CONSTANTS.least_slope)
        times = torch.tensor([math.log(max(rounds, 0.5)) for rounds, _ in points]).double()
        levels = torch.tensor([value for _, value in points]).double()
        away = times - times.mean()
        spread = away.square().sum()
        slope = (away @ levels) / spread
        left = levels - levels.mean() - slope * away
        noise = left.square().sum() / max(len(points) - 2, 1)
        error = (noise.clamp_min(CONSTANTS.level_noise**2) / spread).sqrt()
        few = len(points) < CONSTANTS.slope_levels
        upper = max(float(slope + error), CONSTANTS.least_slope)
        return Slope(upper if few else float(slope), upper)

    def _recent(self, trained: int) -> list[tuple[int, float]]:
        """Return the levels of the latest doubling or more, and of one state before."""
        earlier = [point for point in self.points if point[0] < trained]
        old = [point for point in earlier if CONSTANTS.slope_window * point[0] <= trained]
        return old[-1:] + earlier[len(old) :]


def price(slope: float, rounds: int, left: int) -> float:
    """Return what rounds that are given back cost at the end, in log loss.

    Early in a run the slope is not yet that of its end, which is hardly steeper than so.
    """
    return min(slope, CONSTANTS.steepest_final_slope) * rounds / max(left, 1)


def lasting(trained: int, rounds: int, horizon: int) -> float:
    r"""Return by what an advantage after some rounds is multiplied to stand for that at the end.

    An advantage may stay as it is, or grow with log-time: the geometric mean of both,
    at most ``CONSTANTS.largest_extrapolation``.
    """
    share = math.log((trained + rounds) / trained) if trained >= rounds else 1.0
    ahead = max(math.log(horizon / (trained + rounds)), CONSTANTS.least_log_time)
    return min(math.sqrt(max(ahead / share, 1.0)), CONSTANTS.largest_extrapolation)
