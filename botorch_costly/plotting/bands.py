"""Bands of the values of a hyperparameter that may be the best, as rectangles over the rounds."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from math import sqrt
from typing import NamedTuple

from botorch_costly.tuners.online import BestValues

HALF = 0.5  # rounds by which the last interval is drawn beyond the last round
_HALF_OPTION = 0.4  # half the height of an option's rectangle


class Rectangle(NamedTuple):
    """Rounds from ``left`` to ``right``, and values from ``low`` to ``high``."""

    left: float
    right: float
    low: float
    high: float


def are_numbers(values: Sequence[object]) -> bool:
    """Return whether all values are numbers; bools, text and tuples are levels."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def rectangles(best: BestValues, behind: float, last: int) -> list[Rectangle]:
    """Return the values that are less than ``behind`` standard deviations behind the best one.

    Numbers are drawn at their value, other options at their index.

    Args:
        best: Best values of a hyperparameter over the rounds.
        behind: Threshold, in standard deviations of the difference to the best value.
        last: The last round that is drawn.
    """
    cells = _cells(best)
    ends = [*best.rounds, max(last, best.rounds[-1]) + HALF]
    columns = zip(pairwise(ends), best.behind, strict=True)
    areas = []
    # Consecutive rounds with the same values share their rectangles.
    for close, group in groupby(columns, key=lambda column: tuple(b < behind for b in column[1])):
        sides = [side for side, _ in group]
        for first, final in _runs(close):
            low, high = cells[first][0], cells[final][1]
            areas.append(Rectangle(sides[0][0], sides[-1][1], low, high))
    return areas


def _runs(close: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last index of each run of true values."""
    start = 0
    for is_close, group in groupby(close):
        length = len(list(group))
        if is_close:
            yield start, start + length - 1
        start += length


def _cells(best: BestValues) -> list[tuple[float, float]]:
    """Return the limits of each value: halfway to its neighbours, on the scale of the values."""
    numbers = [float(value) for value in best.values if isinstance(value, int | float)]
    if not are_numbers(best.values) or len(numbers) < 2:
        return [(i - _HALF_OPTION, i + _HALF_OPTION) for i in range(len(best.values))]
    middles = [sqrt(a * b) if best.log else (a + b) / 2 for a, b in pairwise(numbers)]
    return list(pairwise([numbers[0], *middles, numbers[-1]]))
