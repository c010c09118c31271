"""Rewards of bandits: a range that is mapped to [0, 1]."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from botorch_costly.calls import advised
from botorch_costly.errors import check
from botorch_costly.numerics.robust import estimate_scale

_FAR = 0.5  # widths beyond an end that noise may explain
_OUTLIERS = 0.1  # share of rewards that may lie farther outside
_NARROW, _ENOUGH = 0.01, 10  # least spread in widths, which is checked for at least so many rewards
_REACH = 2.0  # standard deviations from the center of an estimated range to its ends


@advised
@dataclass(frozen=True)
class RewardRange:
    """The range of rewards without noise: ``low`` is mapped to 0 and ``high`` to 1.

    Strategies for bounded rewards clip rewards to the range; others do not.

    Args:
        low: Lower end of the range.
        high: Upper end of the range.

    Raises:
        InvalidArgumentError: If the ends are not finite numbers with ``low < high``.

    Example:
        >>> import torch
        >>> RewardRange(-1.0, 3.0).to_unit(torch.tensor([0.0, 4.0]), bounded=True)
        tensor([0.2500, 1.0000])
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        ends = self.low, self.high
        is_valid = all(isinstance(end, int | float) for end in ends)
        is_valid = is_valid and self.low < self.high and 0 < self.width < float("inf")
        check(is_valid, "low, high", "finite numbers low < high", ends)

    @property
    def width(self) -> float:
        """Difference of the ends."""
        return self.high - self.low

    def to_unit(self, reward: Tensor, *, bounded: bool) -> Tensor:
        """Return rewards in the unit of strategies, clipped to [0, 1] if ``bounded``."""
        unit = (reward - self.low) / self.width
        return unit.clamp(0, 1) if bounded else unit

    def fits(self, rewards: Sequence[float]) -> bool:
        """Return whether the range suits the rewards: few are far outside, and their spread is not tiny.

        Example:
            >>> RewardRange().fits([0.2, 0.9, 1.1]), RewardRange().fits([50.0, 20.0])
            (True, False)
        """
        least, most = self.low - _FAR * self.width, self.high + _FAR * self.width
        outside = sum(not least <= reward <= most for reward in rewards)
        if outside > _OUTLIERS * len(rewards):
            return False
        spread = max(rewards) - min(rewards) if len(rewards) >= _ENOUGH else self.width
        return spread == 0 or spread >= _NARROW * self.width

    @classmethod
    def from_rewards(cls, rewards: Sequence[float]) -> "RewardRange":
        """Return a robust estimate of the range from finite rewards.

        Example:
            >>> estimated = RewardRange.from_rewards([50.0, 20.0])
            >>> round(estimated.low, 3), round(estimated.high, 3)
            (-9.478, 79.478)
        """
        center, scale = estimate_scale(rewards)
        # Rewards may differ in their last digits alone; the width is positive all the same.
        reach = max(_REACH * scale, 1e-12 * abs(center))
        return cls(center - reach, center + reach)

    def nearest(self, reward: float) -> float:
        """Return a reward clipped to two widths beyond the ends."""
        return min(max(reward, self.low - 2 * self.width), self.high + 2 * self.width)
