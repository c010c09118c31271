"""Robust location, scale and ranks of rewards.

One round in which training diverges can cost more reward than a hundred good rounds gain. The mean and
the standard deviation follow such a reward; the median, the median absolute deviation and ranks do not.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import check

_FEW = 4  # values per allowed outlier
_MANY = 100  # most outliers: the search is quadratic in it
_APART = 10.0  # distance of an outlier from all other values, in ranges of these
_NORMAL_MEDIAN = 1.4826  # standard deviation of normal numbers over their median distance ...
_NORMAL_MEAN = math.sqrt(math.pi / 2)  # ... and over their mean distance


class Affine(NamedTuple):
    """The map between rewards and the units of the model, in which rewards have variance one."""

    center: float
    scale: float

    def standardize(self, reward: float) -> float:
        """Convert a reward to units of the model."""
        return (reward - self.center) / self.scale

    def restore(self, value: float) -> float:
        """Convert a value in units of the model to a reward."""
        return self.center + self.scale * value


def estimate_scale(rewards: Sequence[float], weights: Sequence[float] | None = None) -> Affine:
    """Return the weighted median of the rewards, and 1.4826 times their median distance from it.

    If more than half of the rewards coincide, the scale is 1.2533 times the mean distance. For normal
    rewards both are the standard deviation. If all rewards coincide, the scale is 1.

    References:
        P. J. Huber, E. M. Ronchetti. Robust statistics. Wiley, 2nd edition 2009, chapter 5.

    Args:
        rewards: ``n`` rewards; those that are not finite (failed queries) are ignored.
        weights: Weights of the rewards, at least 0; equal by default. Only their ratios matter.

    Returns:
        Center and scale, which is positive and finite; ``Affine(0, 1)`` without any reward.

    Raises:
        InvalidArgumentError: If the number of weights differs from that of rewards, or a weight is
            negative or not finite.

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
    # Constant rewards may differ by rounding errors.
    negligible = 1e-12 * max(abs(y) for y, _ in kept)
    if scale <= negligible:
        largest = max(w for _, w in kept)  # divide by it first: a sum could over- or underflow
        shares = [w / largest for _, w in kept]
        mean = math.fsum(d * p for (d, _), p in zip(distances, shares, strict=True)) / sum(shares)
        scale = _NORMAL_MEAN * mean
    return Affine(center, scale if negligible < scale < math.inf else 1.0)


def weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """Return the median of ``(value, weight)`` pairs; between two values it is their mean.

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
            # Halves of subnormal values are rounded.
            return value if value == after else value / 2 + after / 2
    return ordered[-1][0]


def outliers(values: Tensor) -> Tensor:
    """Return which values are outliers, such as diverged trainings or wrong units, bool ``(n,)``.

    At most a fourth of the values are outliers. Their distance from the other values is more than ten
    times the range of these; for high outliers also more than ten times the largest absolute value, since
    a training that succeeds among many that do not learn is no outlier. If all other values are equal,
    there are no outliers.

    Args:
        values: Finite values, shape ``(n,)``.

    Example:
        >>> outliers(torch.tensor([-1e6, 0.0, 1.0, 0.5, 0.25])).tolist()
        [True, False, False, False, False]
    """
    most = min(len(values) // _FEW, _MANY)
    nothing = torch.zeros_like(values, dtype=torch.bool)
    if not most:
        return nothing
    ordered = values.sort().values / 2  # keeps differences of huge values finite
    if ordered[-1] - ordered[0] <= _APART * (ordered[-1 - most] - ordered[most]):
        return nothing
    cut = torch.arange(most + 1, device=values.device)
    first, last = ordered[: most + 1].unsqueeze(-1), ordered.flip(0)[: most + 1]
    width = last - first  # range without the i lowest and the j highest values
    size = torch.maximum(first.abs(), last.abs())
    low_gaps, high_gaps = first.diff(dim=0, prepend=first[:1]), (-last).diff(prepend=-last[:1])
    below = (cut == 0).unsqueeze(-1) | (low_gaps > _APART * width)
    above = (cut == 0) | (high_gaps > _APART * torch.maximum(width, size))
    count = cut.unsqueeze(-1) + cut
    rounding = 100 * torch.finfo(values.dtype).eps * size
    fits = below & above & (count <= most) & (width > rounding)
    best = int(torch.where(fits, count, 0).argmax())
    low, high = first[best // (most + 1), 0], last[best % (most + 1)]
    return (values / 2 < low) | (values / 2 > high)


def tempered(values: Tensor) -> Tensor:
    """Return the values with ``outliers`` moved to the nearest other value.

    Example:
        >>> tempered(torch.tensor([-1e6, 0.0, 1.0, 0.5, 0.25])).tolist()
        [0.0, 0.0, 1.0, 0.5, 0.25]
    """
    is_outlier = outliers(values)
    if not bool(is_outlier.any()):
        return values
    return values.clamp(*values[~is_outlier].aminmax())


def weighted_scores(rewards: Tensor, weights: Tensor) -> Tensor:
    """Return ``normal_scores`` in which a reward of weight ``w`` counts as ``w`` rewards.

    A reward without a weight changes no other score, and has the score of its place among the others.

    Args:
        rewards: Finite rewards, shape ``(n,)``.
        weights: Weights in [0, 1], one of them 1, shape ``(n,)``.

    Example:
        >>> scores = weighted_scores(torch.tensor([5.0, 9.0, 6.0]), torch.tensor([1.0, 0.0, 1.0]))
        >>> [round(z, 2) for z in scores.tolist()]
        [-0.67, 0.67, 0.67]
    """
    rewards = rewards.contiguous()
    ordered, order = rewards.sort()
    totals = torch.cat([weights.new_zeros(1), weights[order].cumsum(0)])
    below = totals[torch.searchsorted(ordered, rewards)]
    through = totals[torch.searchsorted(ordered, rewards, right=True)]
    middle, number = (below + through) / 2, totals[-1]
    least = torch.full_like(number, 0.5)
    share = torch.minimum(torch.maximum(middle, least), number - least) / number
    return torch.special.ndtri(share)


def normal_scores(rewards: Tensor, among: Tensor | None = None) -> Tensor:
    """Return the normal quantile of each reward's rank, ``Phi^{-1}((rank - 1/2) / n)``.

    Equal rewards share their mean rank.

    Args:
        rewards: Finite rewards, any shape.
        among: Finite reference rewards for the ranks, shape ``(n,)``; ``rewards`` if omitted. Rewards
            below or above all of these have the score of the lowest or the highest.

    Example:
        >>> [round(z, 2) for z in normal_scores(torch.tensor([5.0, -1000.0, 6.0])).tolist()]
        [0.0, -0.97, 0.97]
    """
    ordered = (rewards.flatten() if among is None else among).sort().values
    below = torch.searchsorted(ordered, rewards.contiguous())
    through = torch.searchsorted(ordered, rewards.contiguous(), right=True)
    middle = (below + through).to(rewards) / 2  # mean of rank - 1/2 over equal rewards
    number = len(ordered)
    return torch.special.ndtri(middle.clamp(0.5, number - 0.5) / number)


def ranks_of(values: Tensor) -> Tensor:
    """Return the rank of each value from 0, equal ones with their mean rank, shape ``(n,)``.

    Example:
        >>> ranks_of(torch.tensor([3.0, 1.0, 3.0, 2.0])).tolist()
        [2.5, 0.0, 2.5, 1.0]
    """
    below = (values[:, None] > values).sum(-1)
    return below + 0.5 * ((values[:, None] == values).sum(-1) - 1)


def rank_correlation(one: Tensor, other: Tensor) -> float:
    """Return the correlation of the ranks of two rows, each of shape ``(n,)``; NaN if one is constant."""
    return float(torch.corrcoef(torch.stack([ranks_of(one), ranks_of(other)]))[0, 1])


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
