r"""How fast a run still learns, and what a round of it is worth at its end.

Levels, minus the logarithm of the loss, grow about linearly in the logarithm of the rounds for as long
as compute binds. With a slope ``b`` by unit of log-time, giving back ``k`` of the ``r`` rounds that are
left costs ``b k / r`` at the end; a run that has converged has ``b = 0``, and its rounds cost nothing.
"""

import math
from typing import NamedTuple

import torch

AT_FIRST = 0.3  # slope of a run that begins: it has no level to be compared with
TYPICAL = 0.1  # slope of a run that compute binds, in log loss by unit of log-time
_STEEPEST = 0.2  # slope at the end of a run, at most
STUCK = 0.02  # a slope below which a run hardly learns
_LEAST = 1e-3
_NOISE = 0.01  # of a level, at least
_FEWEST = 4  # levels that tell a stall
_WINDOW = 2.0  # factor in rounds trained over which a slope is fitted


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
            return Slope(AT_FIRST, AT_FIRST)
        if not all(math.isfinite(value) for _, value in points):
            return Slope(_LEAST, _LEAST)
        times = torch.tensor([math.log(max(rounds, 0.5)) for rounds, _ in points]).double()
        levels = torch.tensor([value for _, value in points]).double()
        away = times - times.mean()
        spread = away.square().sum()
        slope = (away @ levels) / spread
        left = levels - levels.mean() - slope * away
        noise = left.square().sum() / max(len(points) - 2, 1)
        error = (noise.clamp_min(_NOISE**2) / spread).sqrt()
        few = len(points) < _FEWEST
        upper = max(float(slope + error), _LEAST)
        return Slope(upper if few else float(slope), upper)

    def _recent(self, trained: int) -> list[tuple[int, float]]:
        """Return the levels of the latest doubling or more, and of one state before."""
        earlier = [point for point in self.points if point[0] < trained]
        old = [point for point in earlier if _WINDOW * point[0] <= trained]
        return old[-1:] + earlier[len(old) :]


def price(slope: float, rounds: int, left: int) -> float:
    """Return what rounds that are given back cost at the end, in log loss.

    Early in a run the slope is not yet that of its end, which is hardly steeper than so.
    """
    return min(slope, _STEEPEST) * rounds / max(left, 1)


def lasting(trained: int, rounds: int, horizon: int) -> float:
    r"""Return by what an advantage after some rounds is multiplied to stand for that at the end.

    An advantage may stay as it is, or grow with log-time: the geometric mean of both, at most 5.
    """
    share = math.log((trained + rounds) / trained) if trained >= rounds else 1.0
    ahead = max(math.log(horizon / (trained + rounds)), 0.05)
    return min(math.sqrt(max(ahead / share, 1.0)), 5.0)
