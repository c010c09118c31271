"""Where the best value of a hyperparameter might be, as rectangles over the rounds."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from math import sqrt
from typing import NamedTuple

from botorch_costly.tuners import BestValues

HALF = 0.5  # a round, by which the last one is drawn beyond its number
_HALF_OPTION = 0.4


class Rectangle(NamedTuple):
    """Rounds from ``left`` to ``right``, and values from ``low`` to ``high``."""

    left: float
    right: float
    low: float
    high: float


def are_numbers(values: Sequence[object]) -> bool:
    """Return whether values lie on an axis of numbers; bools, text and tuples are levels."""
    return all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)


def rectangles(found: BestValues, behind: float, last: int) -> list[Rectangle]:
    """Return the values that are less than so many standard deviations behind the best one.

    Numbers are at their own place; options of other kinds at their number, from 0.

    Args:
        found: Of a run.
        behind: Standard deviations of the difference.
        last: The last round that is drawn.
    """
    cells = _cells(found)
    ends = [*found.rounds, max(last, found.rounds[-1]) + HALF]
    columns = zip(pairwise(ends), found.behind, strict=True)
    drawn = []
    # Rounds of one interval are alike, and one rectangle.
    for close, group in groupby(columns, key=lambda one: tuple(b < behind for b in one[1])):
        sides = [side for side, _ in group]
        for first, final in _runs(close):
            low, high = cells[first][0], cells[final][1]
            drawn.append(Rectangle(sides[0][0], sides[-1][1], low, high))
    return drawn


def _runs(close: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last index of each run of true values."""
    at = 0
    for is_close, group in groupby(close):
        length = len(list(group))
        if is_close:
            yield at, at + length - 1
        at += length


def _cells(found: BestValues) -> list[tuple[float, float]]:
    """Return where each value begins and ends: halfway to its neighbours, on the scale of the values."""
    places = [float(one) for one in found.values if isinstance(one, int | float)]
    if not are_numbers(found.values) or len(places) < 2:
        return [(i - _HALF_OPTION, i + _HALF_OPTION) for i in range(len(found.values))]
    middles = [sqrt(a * b) if found.log else (a + b) / 2 for a, b in pairwise(places)]
    return list(pairwise([places[0], *middles, places[-1]]))
