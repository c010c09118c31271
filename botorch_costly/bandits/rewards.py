"""Rewards of bandits: a range of the caller's that becomes [0, 1]."""

from dataclasses import dataclass

from torch import Tensor

from botorch_costly.errors import check


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
