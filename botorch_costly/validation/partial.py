"""A reading of part of the validation set, in shards, until it is decided or too expensive."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.betting import PILOT, confidence_interval
from botorch_costly.validation.comparison import Comparison, compared, needed

_FIRST_SHARE = 8  # the first reading of a run reads one of so many examples
_NEXT_GAIN = 0.5  # assumed gain over a new best checkpoint, in units of its own gain
_UNCOMPARED = Comparison("undecided", math.nan, math.nan, 0)


class Rules(NamedTuple):
    """The options of all partial readings of a run."""

    population: int  # examples of the whole set
    level: float  # largest probability of a wrong verdict
    tolerance: float  # largest difference of the means that does not matter
    is_score: bool = False  # whether values of examples up to 1 are shares, not unbounded losses

    def first_plan(self) -> int:
        """Return the number of examples of the first reading."""
        return max(self.least(), self.population // _FIRST_SHARE)

    def interval(self, losses: Tensor) -> tuple[float, float] | None:
        """Return an interval of the mean over the whole set; None if all of it was read."""
        if len(losses) >= self.population:
            return None
        least, most = float(losses.min()), float(losses.max())
        is_share = self.is_score and least >= -1 and most <= 0  # accuracies have the sign of a loss
        bound = 1.0 if is_share else None
        low, high = confidence_interval(
            losses, population=self.population, level=self.level, bound=bound
        )
        return (max(low, -1.0), min(high, 0.0)) if is_share else (low, high)

    def least(self) -> int:
        """Return the smallest number of examples of a shard, which the test can decide on."""
        return min(2 * PILOT, self.population)


class PartialReading:
    """A checkpoint that is compared with the best one so far on more and more examples.

    Args:
        rules: Options of the run.
        earlier: Losses of the best checkpoint so far in the order of drawing, ``(k,)``, if there is one.
        planned: Number of examples to read at first.
        most: Largest number of examples to read in all.
    """

    def __init__(self, rules: Rules, earlier: Tensor | None, planned: int, most: int) -> None:
        self._rules, self._earlier, self.planned, self._most = rules, earlier, planned, most
        self.losses = torch.zeros(0, dtype=torch.float64)
        self.comparison = _UNCOMPARED

    @property
    def is_complete(self) -> bool:
        """Whether no further example is needed."""
        return len(self.losses) >= self.planned

    @property
    def is_better(self) -> bool:
        """Whether the checkpoint is the best one so far, by the verdict or, without one, its mean."""
        if not self._is_finite:
            return False
        if self._earlier is None or self.comparison.verdict == "better":
            return True
        return self.comparison.verdict == "undecided" and self.comparison.difference < 0

    @property
    def _is_finite(self) -> bool:
        return bool(self.losses.isfinite().all())

    def value(self, earlier: float | None) -> float:
        """Return the estimated mean over all examples; NaN if a loss is not finite.

        Args:
            earlier: The estimate for the earlier checkpoint, to which the paired difference is added. A
                better one has an estimate of its own, from more examples.
        """
        if not self._is_finite:
            return math.nan
        unpaired = len(self.losses) == self._rules.population or self.is_better
        if unpaired or earlier is None:
            return float(self.losses.mean())
        return earlier + self.comparison.difference

    @property
    def variance(self) -> float:
        """Variance of the estimate given the earlier one, for sampling without replacement."""
        deviation = self.deviation
        n = self.comparison.examples or len(self.losses)
        if not math.isfinite(deviation):
            return 0.0
        return deviation**2 / n * (1 - n / self._rules.population)

    @property
    def deviation(self) -> float:
        """Standard deviation of the differences of examples, or of the losses of a first reading."""
        if self.comparison.examples:
            return self.comparison.deviation
        return float(self.losses.std()) if len(self.losses) > 1 else math.nan

    def add(self, losses: Tensor, affordable: int) -> None:
        """Add the losses of the next examples, and decide how many are read in all.

        Args:
            losses: Lower is better, shape ``(n,)``.
            affordable: Number of further examples that the share of the clock leaves.
        """
        self.losses = torch.cat([self.losses, losses])
        n, rules = len(self.losses), self._rules
        if not self._is_finite:
            self.planned = n
        elif self._earlier is not None:
            self.comparison = compared(
                self.losses,
                self._earlier,
                population=rules.population,
                level=rules.level,
                tolerance=rules.tolerance,
                is_score=rules.is_score,
            )
            wanted = self._wanted(n, len(self._earlier))
            self.planned = max(n, min(wanted, n + affordable, self._most))

    def _wanted(self, n: int, earlier: int) -> int:
        """Return the number of examples to read in all, without regard to the price."""
        rules, comparison = self._rules, self.comparison
        if comparison.verdict in ("worse", "close"):
            return n
        if comparison.verdict == "better":
            # Later checkpoints, with smaller gains, are compared with this one.
            gain = _NEXT_GAIN * comparison.difference
            return max(needed(gain, comparison.deviation, rules.level, rules.population), earlier)
        if n < earlier:
            return min(2 * n, earlier)
        # All examples of the earlier checkpoint are used up. If this one leads, the next comparison
        # needs more than it had.
        return min(2 * earlier, rules.population) if comparison.difference < 0 else n
