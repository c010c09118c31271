"""Intervals, the rounds for which a configuration is held: later ones need to be longer."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from botorch_costly.errors import check_count, check_rate


class Interval(NamedTuple):
    """The rounds for which one configuration is held."""

    number: int  # number of the interval, from 0
    first: int  # round of the interval
    length: int  # rounds of the interval

    def is_last(self, round: int) -> bool:
        """Return whether the interval ends with this round."""
        return round == self.first + self.length - 1


class Intervals:
    """Intervals whose length is a share of the rounds before them, with a lower bound.

    The gain of a network in a round falls about as one over the rounds it has trained, while the noise of
    a query stays constant. An interval whose length is a share of the run so far gains about the same
    early and late, and a run of ``T`` rounds has about ``(1 + log(share T)) / share`` intervals.

    Args:
        share: Length of an interval as a share of the rounds so far, in [0, 1]; at 0 each round is an
            interval.
        horizon: End of the last interval, if known.
        shortest: Fewest rounds of an interval, unless the share is 0.

    Example:
        >>> intervals = Intervals(0.5)
        >>> [intervals.at(round).number for round in range(10)]
        [0, 1, 2, 3, 4, 4, 5, 5, 5, 6]
    """

    def __init__(self, share: float, horizon: int | None = None, shortest: int = 1) -> None:
        self.share, self._horizon = check_rate("hold", share), horizon
        self.shortest = check_count("shortest_hold", shortest, minimum=1)
        self._firsts = [0]

    def at(self, round: int) -> Interval:
        """Return the interval that a round belongs to."""
        if self.share == 0:
            return Interval(round, round, 1)
        while self._firsts[-1] <= round:
            self._extend()
        number = bisect_right(self._firsts, round) - 1
        return Interval(number, self._firsts[number], self._length(self._firsts[number]))

    def first_of(self, interval: int) -> int:
        """Return the first round of an interval."""
        if self.share == 0:
            return interval
        while len(self._firsts) <= interval:
            self._extend()
        return self._firsts[interval]

    def lengths(self, intervals: Iterable[int]) -> list[int]:
        """Return the number of rounds of each interval."""
        if self.share == 0:
            return [1 for _ in intervals]
        return [self._length(self.first_of(interval)) for interval in intervals]

    def within(self, rounds: int) -> int:
        """Return the number of intervals that begin within a number of rounds."""
        return self.at(rounds - 1).number + 1 if rounds else 0

    def _extend(self) -> None:
        self._firsts.append(self._firsts[-1] + self._length(self._firsts[-1]))

    def _length(self, first: int) -> int:
        length = max(self.shortest, int(self.share * first))
        return length if self._horizon is None else max(1, min(length, self._horizon - first))
