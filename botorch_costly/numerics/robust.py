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

_FEW = 4  # of so many values one may be an outlier, of eight two
_MANY = 100  # outliers are told apart one by one
_APART = 10.0  # ranges of all other values that an outlier is away from them
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


def outliers(values: Tensor) -> Tensor:
    """Return which of some values lie far off all others, bool of shape ``(n,)``.

    They are at most a fourth of the values, and ten ranges of all others away from them: a diverged
    training, a wrong unit. High ones are ten sizes away as well, for a training that succeeds alone among
    many that do not learn is no outlier. Where all others are equal there is none.

    Args:
        values: Finite, shape ``(n,)``.

    Example:
        >>> outliers(torch.tensor([-1e6, 0.0, 1.0, 0.5, 0.25])).tolist()
        [True, False, False, False, False]
    """
    most = min(len(values) // _FEW, _MANY)
    nothing = torch.zeros_like(values, dtype=torch.bool)
    if not most:
        return nothing
    ordered = values.sort().values / 2  # differences of huge values are finite
    if ordered[-1] - ordered[0] <= _APART * (ordered[-1 - most] - ordered[most]):
        return nothing
    cut = torch.arange(most + 1, device=values.device)
    first, last = ordered[: most + 1].unsqueeze(-1), ordered.flip(0)[: most + 1]
    width = last - first  # of the others, less so many low and so many high values
    size = torch.maximum(first.abs(), last.abs())
    lowest, highest = (_steps(one) for one in (first.squeeze(-1), -last))
    below = (cut == 0).unsqueeze(-1) | (lowest.unsqueeze(-1) > _APART * width)
    above = (cut == 0) | (highest > _APART * torch.maximum(width, size))
    count = cut.unsqueeze(-1) + cut
    rounding = 100 * torch.finfo(values.dtype).eps * size
    fits = below & above & (count <= most) & (width > rounding)
    best = int(torch.where(fits, count, 0).argmax())
    low, high = first[best // (most + 1), 0], last[best % (most + 1)]
    return (values / 2 < low) | (values / 2 > high)


def tempered(values: Tensor) -> Tensor:
    """Return values, ``outliers`` among them moved to the nearest of all others.

    Example:
        >>> tempered(torch.tensor([-1e6, 0.0, 1.0, 0.5, 0.25])).tolist()
        [0.0, 0.0, 1.0, 0.5, 0.25]
    """
    far = outliers(values)
    if not bool(far.any()):
        return values
    return values.clamp(*values[~far].aminmax())


def _steps(ordered: Tensor) -> Tensor:
    """Return how far each value is above the one before it; the first has none."""
    return torch.cat([torch.zeros_like(ordered[:1]), ordered.diff()])


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


def rewards_at(scores: Tensor, among: Tensor) -> Tensor:
    """Return the rewards that have given normal scores, the inverse of ``normal_scores``.

    Args:
        scores: Normal scores, of any shape.
        among: Finite rewards, shape ``(n,)``; values between them are interpolated linearly.

    Example:
        >>> among = torch.tensor([1.0, 2.0, 4.0])
        >>> rewards_at(normal_scores(torch.tensor([2.0, 4.0]), among), among)
        tensor([2., 4.])
    """
    ordered, number = among.sort().values, len(among)
    place = (torch.special.ndtr(scores.to(ordered)) * number - 0.5).clamp(0, number - 1)
    below = place.floor().long()
    above = (below + 1).clamp_max(number - 1)
    return torch.lerp(ordered[below], ordered[above], place - below)
