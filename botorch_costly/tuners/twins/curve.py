r"""How fast a run still learns, and what a round of it is worth at its end.

Levels, minus the logarithm of the loss, grow about linearly in the logarithm of the rounds for as long
as compute binds. With a slope ``b`` by unit of log-time, giving back ``k`` of the ``r`` rounds that are
left costs ``b k / r`` at the end; a run that has converged has ``b = 0``, and its rounds cost nothing.
"""

import math

AT_FIRST = 0.3  # slope of a run that begins: it has no level to be compared with
TYPICAL = 0.1  # slope of a run that compute binds, in log loss by unit of log-time, at its end
STUCK = 0.02  # a slope below which a run hardly learns
_LEAST = 1e-3


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

    def slope(self, trained: int, level: float) -> float:
        """Return the slope by unit of log-time up to a further level, over the latest doubling."""
        earlier = [point for point in self.points if 2 * point[0] <= trained] or self.points[:1]
        if not earlier:
            return AT_FIRST
        began, before = earlier[-1]
        if not (math.isfinite(before) and math.isfinite(level)):
            return _LEAST
        return max((level - before) / math.log(trained / max(began, 0.5)), _LEAST)


def price(slope: float, rounds: int, left: int) -> float:
    """Return what rounds that are given back cost at the end, in log loss.

    Early in a run the slope is not yet that of its end, which is at most the typical one; a run that is
    stuck loses next to nothing.
    """
    at_the_end = min(slope, TYPICAL) * (0.1 if slope < STUCK else 1.0)
    return at_the_end * rounds / max(left, 1)


def lasting(trained: int, rounds: int, horizon: int) -> float:
    r"""Return by what an advantage after some rounds is multiplied to stand for that at the end.

    An advantage may stay as it is, or grow with log-time: the geometric mean of both, at most 5.
    """
    share = math.log((trained + rounds) / trained) if trained >= rounds else 1.0
    ahead = max(math.log(horizon / (trained + rounds)), 0.05)
    return min(math.sqrt(max(ahead / share, 1.0)), 5.0)
