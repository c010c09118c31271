"""The unit of growth: 0 is where trainings begin, 1 the root mean square distance of values from there.

Trainings begin at the median of their first values. Values further below the beginning than the best lies
above it count as equally far below, so that one loss of 1e6 does not set the unit.
"""

from typing import NamedTuple

from torch import Tensor

_FARTHEST = 4.0  # largest distance from the beginning, in units


class Unit(NamedTuple):
    """The unit of growth."""

    largest: float  # size of the larger of begin and best; differences of the two could overflow
    begin: float
    lowest: float  # values below count as this
    size: float

    @classmethod
    def of(cls, firsts: Tensor, values: Tensor) -> "Unit":
        """Return the unit of the first values of trainings, and of all values."""
        begin, best = float(firsts.median()), float(values.max())
        largest = max(abs(begin), abs(best)) or 1.0
        begin, best = begin / largest, best / largest
        lowest = min(begin, 2 * begin - best)
        apart = (values / largest).clamp_min(lowest) - begin
        return cls(largest, begin, lowest, float(apart.square().mean().sqrt()) or 1.0)

    def __call__(self, values: Tensor) -> Tensor:
        """Return values in the unit."""
        apart = (values / self.largest).clamp_min(self.lowest) - self.begin
        return (apart / self.size).clamp(-_FARTHEST, _FARTHEST)
