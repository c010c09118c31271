"""The unit of growth: 0 is where trainings begin, 1 the root mean square distance of values from there.

Trainings begin at the median of their first values. Values further below the beginning than the best lies
above it count as equally far below, so that one loss of 1e6 does not set the unit; if the best is where
trainings begin, further below than nine in ten are. Values far above are compressed: y becomes
4 + log(y - 3) beyond 4.
"""

from typing import NamedTuple

import torch
from torch import Tensor

_FAR = 4.0  # distance from the beginning, in units, beyond which values are compressed
_LOW = 0.1  # quantile
_FARTHEST = 1e100  # of which squares are finite


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
        scaled = values / largest
        lowest = min(begin, 2 * begin - best)
        if best <= begin:
            lowest = min(begin, float(scaled.clamp_min(-_FARTHEST).quantile(_LOW)))
        apart = scaled.clamp_min(lowest) - begin
        return cls(largest, begin, lowest, float(apart.square().mean().sqrt()) or 1.0)

    def __call__(self, values: Tensor) -> Tensor:
        """Return values in the unit."""
        apart = (values / self.largest).clamp_min(self.lowest) - self.begin
        growth = (apart / self.size).clamp_min(-_FAR)
        return torch.where(growth > _FAR, _FAR + (growth.clamp_min(_FAR) - _FAR + 1).log(), growth)
