"""Rows that stand for many: evenly spread over their order."""

import torch
from torch import Tensor


def evenly_spread(count: int, most: int) -> Tensor:
    """Return at most so many numbers of rows, from the first to the last in equal steps.

    Args:
        count: Number of rows, at least 1.
        most: Largest number of rows to return, at least 1.

    Example:
        >>> evenly_spread(9, 3), evenly_spread(2, 3)
        (tensor([0, 4, 8]), tensor([0, 1]))
    """
    steps = min(count, most)
    return torch.linspace(0, count - 1, steps, dtype=torch.float64).round().long()
