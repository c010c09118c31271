"""Rewards of bandits: a range of the caller's that becomes [0, 1]."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from botorch_costly.errors import check
from botorch_costly.numerics.robust import estimate_scale

_FAR = 0.5  # widths beyond an end up to which a reward is noise
_SOME = 0.1  # share of rewards that may be farther away
_NARROW, _ENOUGH = 0.01, 10  # of a width; rewards that such a spread is known from
_REACH = 2.0  # standard deviations from the middle of an estimated range to its ends


@dataclass(frozen=True)
class RewardRange:
    """Where rewards lie, noise aside: ``low`` becomes 0 and ``high`` 1.

    Strategies of bounded rewards count one beyond the range as the nearer end; others take it as it is.

    Args:
        low: What becomes 0.
        high: What becomes 1, larger.

    Raises:
        InvalidArgumentError: If the two are not finite numbers in that order.

    Example:
        >>> import torch
        >>> RewardRange(-1.0, 3.0).to_unit(torch.tensor([0.0, 4.0]), bounded=True)
        tensor([0.2500, 1.0000])
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        ends = self.low, self.high
        numbers = all(isinstance(end, int | float) for end in ends)
        ordered = numbers and self.low < self.high and 0 < self.width < float("inf")
        check(ordered, "low, high", "finite numbers low < high", ends)

    @property
    def width(self) -> float:
        """Rewards in a unit of a strategy."""
        return self.high - self.low

    def to_unit(self, reward: Tensor, *, bounded: bool) -> Tensor:
        """Return rewards as strategies are told them."""
        unit = (reward - self.low) / self.width
        return unit.clamp(0, 1) if bounded else unit

    def fits(self, rewards: Sequence[float]) -> bool:
        """Return whether these may be rewards of this range: not far outside, nor all in one place of it.

        Example:
            >>> RewardRange().fits([0.2, 0.9, 1.1]), RewardRange().fits([50.0, 20.0])
            (True, False)
        """
        least, most = self.low - _FAR * self.width, self.high + _FAR * self.width
        outside = sum(not least <= reward <= most for reward in rewards)
        if outside > _SOME * len(rewards):
            return False
        spread = max(rewards) - min(rewards) if len(rewards) >= _ENOUGH else self.width
        return spread == 0 or spread >= _NARROW * self.width

    @classmethod
    def of(cls, rewards: Sequence[float]) -> "RewardRange":
        """Return a range for these finite rewards, which a few extreme ones do not change.

        Example:
            >>> taken = RewardRange.of([50.0, 20.0])
            >>> round(taken.low, 3), round(taken.high, 3)
            (-9.478, 79.478)
        """
        center, scale = estimate_scale(rewards)
        # Rewards that differ in their last digits alone are no reason for a range without a width.
        reach = max(_REACH * scale, 1e-12 * abs(center))
        return cls(center - reach, center + reach)

    def nearest(self, reward: float) -> float:
        """Return a reward no farther outside than a belief can make use of."""
        return min(max(reward, self.low - 2 * self.width), self.high + 2 * self.width)
