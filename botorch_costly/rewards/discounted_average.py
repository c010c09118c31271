"""The average of observations whose weights fall with their age."""

import math
from dataclasses import dataclass

from botorch_costly.errors import check, check_nonnegative
from botorch_costly.plain import as_number


@dataclass(frozen=True)
class DiscountedAverage:
    r"""The average of observations in which one from ``k`` rounds ago has the weight :math:`\mu^k`.

    Args:
        level: The average; 0 before the first observation.
        age: Mean age of the observations in rounds before the last one, with the same weights.
        weight: Sum of the weights; 0 before the first observation.
        variance: Variance of the average, if the observations are independent.

    Raises:
        InvalidArgumentError: If an argument is no finite number, or one but the level is negative.
    """

    level: float
    age: float
    weight: float
    variance: float = 0.0

    def __post_init__(self) -> None:
        check(math.isfinite(as_number("level", self.level)), "level", "a finite number", self.level)
        check_nonnegative("age", self.age)
        check_nonnegative("weight", self.weight)
        check_nonnegative("variance", self.variance)

    def updated(
        self, observation: float, elapsed: int, memory: float, variance: float = 0.0
    ) -> "DiscountedAverage":
        """Return the average with one more observation.

        Args:
            observation: The new observation.
            elapsed: Rounds since the last observation.
            memory: Factor of a weight per round, in [0, 1).
            variance: Variance of the new observation.
        """
        kept = self.weight * memory**elapsed
        share = kept / (kept + 1)  # of the earlier observations; exactly 0 without memory
        level = observation - share * (observation - self.level)
        spread = share**2 * self.variance + (1 - share) ** 2 * variance
        return DiscountedAverage(level, share * (self.age + elapsed), kept + 1, spread)
