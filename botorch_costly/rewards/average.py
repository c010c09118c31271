"""An average of readings, the old ones counting less, and how old it is."""

import math
from dataclasses import dataclass

from botorch_costly.errors import check, check_nonnegative
from botorch_costly.plain import as_number


@dataclass(frozen=True)
class DiscountedAverage:
    r"""The average of readings of which one of ``k`` rounds ago has the weight :math:`\mu^k`.

    Args:
        level: The average.
        age: Mean age of the readings in rounds before the last one, with the same weights.
        weight: Sum of the weights; 0 if there is no reading.

    Raises:
        InvalidArgumentError: If one of them is no finite number, or the age or the weight is negative.
    """

    level: float
    age: float
    weight: float

    def __post_init__(self) -> None:
        check(math.isfinite(as_number("level", self.level)), "level", "a finite number", self.level)
        check_nonnegative("age", self.age)
        check_nonnegative("weight", self.weight)

    @classmethod
    def of(cls, reading: float) -> "DiscountedAverage":
        """Return the average of one reading, which is the last one."""
        return cls(reading, age=0.0, weight=1.0)

    def then(self, reading: float, elapsed: int, memory: float) -> "DiscountedAverage":
        """Return the average with one more reading.

        Args:
            reading: The new last one.
            elapsed: Rounds since the one before.
            memory: What a weight is multiplied by in each round, in [0, 1).
        """
        kept = self.weight * memory**elapsed
        share = kept / (kept + 1)  # of the readings before; exactly 0 without memory
        level = reading - share * (reading - self.level)
        return DiscountedAverage(level, share * (self.age + elapsed), kept + 1)


NOTHING = DiscountedAverage(level=0.0, age=0.0, weight=0.0)
"""The average before the first reading."""
