"""Location, scale and ranks of rewards, which a few extreme rewards do not change.

A round in which training diverged costs a network more than a hundred good rounds gain. Mean and
standard deviation follow such a reward; median, median absolute deviation and ranks do not.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import check

_NORMAL_MEDIAN = 1.4826  # standard deviation of normal numbers over their median distance ...
_NORMAL_MEAN = math.sqrt(math.pi / 2)  # ... and over their mean distance


class Affine(NamedTuple):
    """The map between rewards and the units of the model, in which rewards have variance one."""

    center: float
    scale: float

    def standardize(self, reward: float) -> float:
        """Reward in units of the model."""
        return (reward - self.center) / self.scale

    def restore(self, value: float) -> float:
        """Value of the model as a reward: the inverse of ``standardize``."""
        return self.center + self.scale * value


def estimate_scale(rewards: Sequence[float], weights: Sequence[float] | None = None) -> Affine:
    """Weighted median of the finite rewards, and 1.4826 times their median distance from it.

    Where more than half of the rewards coincide, 1.2533 times the mean distance takes the place of
    1.4826 times the median distance: of normal rewards both are the standard deviation. Where all
    rewards coincide the scale is 1. It is never zero and never NaN.

    References:
        P. J. Huber, E. M. Ronchetti. Robust statistics. Wiley, 2nd edition 2009, chapter 5.

    Args:
        rewards: The rewards, ``n`` of them; those that are not finite (failed queries) are left out.
        weights: The weight of each reward, at least 0; equal by default. Only their ratios matter.

    Returns:
        Center and scale; ``Affine(0, 1)`` without any reward.

    Raises:
        InvalidArgumentError: If there are not as many weights as rewards, or one is negative or
            not finite.

    Example:
        >>> estimate_scale([1.0, 2.0, 3.0, -1000.0, float("nan")])
        Affine(center=1.5, scale=1.4826)
    """
    weights = [1.0] * len(rewards) if weights is None else weights
    matched = len(weights) == len(rewards)
    check(matched, "weights", f"{len(rewards)} weights, one a reward", len(weights))
    valid = all(0 <= weight < math.inf for weight in weights)
    check(valid, "weights", "finite numbers >= 0", list(weights))
    kept = [(y, w) for w, y in zip(weights, rewards, strict=True) if w > 0 and math.isfinite(y)]
    if not kept:
        return Affine(0.0, 1.0)
    center = weighted_median(kept)
    distances = [(abs(y - center), w) for y, w in kept]
    scale = _NORMAL_MEDIAN * weighted_median(distances)
    # Rounding alone separates constant rewards.
    negligible = 1e-12 * max(abs(y) for y, _ in kept)
    if scale <= negligible:
        largest = max(w for _, w in kept)  # divided by first: a sum could over- or underflow
        shares = [w / largest for _, w in kept]
        mean = math.fsum(d * p for (d, _), p in zip(distances, shares, strict=True)) / sum(shares)
        scale = _NORMAL_MEAN * mean
    return Affine(center, scale if negligible < scale < math.inf else 1.0)


def weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """Return the median of ``(value, weight)`` pairs, the middle of two where it lies between them.

    Raises:
        InvalidArgumentError: If there is no pair.

    Example:
        >>> weighted_median([(1.0, 1.0), (2.0, 1.0), (10.0, 5.0)])
        10.0
    """
    check(len(values) > 0, "values", "at least one", values)
    ordered = sorted(values)
    largest = max(w for _, w in ordered)
    half = math.fsum(w / largest for _, w in ordered) / 2
    reached = 0.0
    for i, (value, weight) in enumerate(ordered):
        reached += weight / largest
        if reached > half * (1 + 1e-12):
            return value
        if reached >= half * (1 - 1e-12) and i + 1 < len(ordered):
            after = ordered[i + 1][0]
            # Halves of equal values may be rounded where they are as small as floats can be.
            return value if value == after else value / 2 + after / 2
    return ordered[-1][0]


def normal_scores(rewards: Tensor, among: Tensor | None = None) -> Tensor:
    """Return the normal quantile of each reward's rank, ``Phi^{-1}((rank - 1/2) / n)``.

    Equal rewards share their mean rank.

    Args:
        rewards: Finite, of any shape.
        among: Finite rewards that they are ranked among, shape ``(n,)``; themselves if omitted. What is
            below or above all of these has the score of the lowest or the highest.

    Example:
        >>> [round(z, 2) for z in normal_scores(torch.tensor([5.0, -1000.0, 6.0])).tolist()]
        [0.0, -0.97, 0.97]
    """
    ordered = (rewards.flatten() if among is None else among).sort().values
    below, through = (
        torch.searchsorted(ordered, rewards.contiguous(), right=r) for r in (False, True)
    )
    middle = (below + through).to(rewards) / 2  # rank - 1/2 of the middle one of equal rewards
    number = len(ordered)
    return torch.special.ndtri(middle.clamp(0.5, number - 0.5) / number)
