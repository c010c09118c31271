"""Rewards as numbers, and rewards in the units of the model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, check, check_positive, check_rate

_MOST_WINSORIZED = 0.9  # share of the ranks: someone must win
_NORMAL_MEDIAN = 1.4826  # standard deviation of normal numbers over their median distance ...
_NORMAL_MEAN = math.sqrt(math.pi / 2)  # ... and over their mean distance


def as_number(name: str, value: object) -> float:
    """Return a number as a float; scalars of torch and NumPy are welcome.

    Raises:
        InvalidArgumentError: If it is no number.
    """
    try:
        if not isinstance(value, str | bytes | bool):
            return float(value.detach() if isinstance(value, Tensor) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass
    raise InvalidArgumentError(name, "a number", value)


class Affine(NamedTuple):
    """The map between rewards and the model's units of unit variance."""

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

    One ruinous round costs a network more than a hundred good ones gain. It would stretch a standard
    deviation until all other rewards look alike; median and median absolute deviation do not notice
    it. Where more than half of the rewards coincide the mean distance takes the place of the median
    one (times 1.2533, which makes both the standard deviation of normal rewards), and the scale is 1
    where all of them do: it is never zero and never NaN.

    Args:
        rewards: The rewards; those that are not finite (failed queries) are left out.
        weights: Their weights, at least 0; equal by default. Only their ratios matter.

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
    """Return the median of ``(value, weight)`` pairs, the middle of two where it falls between them.

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
            return value / 2 + ordered[i + 1][0] / 2
    return ordered[-1][0]


def normal_scores(rewards: Tensor) -> Tensor:
    """Return the normal quantile of each reward's rank, ``Phi^{-1}((rank - 1/2) / n)``.

    Equal rewards share their mean rank.

    Args:
        rewards: Finite, shape ``(n,)``.

    Example:
        >>> [round(z, 2) for z in normal_scores(torch.tensor([5.0, -1000.0, 6.0])).tolist()]
        [0.0, -0.97, 0.97]
    """
    _, place, copies = rewards.unique(return_inverse=True, return_counts=True)
    copies = copies.to(rewards)  # or integers would be divided in the default dtype
    middle = copies.cumsum(0) - copies / 2  # rank - 1/2 of the middle one
    return torch.special.ndtri(middle / len(rewards))[place]


@dataclass(frozen=True)
class RewardScale:
    """How rewards become values of a model whose prior has mean 0 and variance 1.

    Args:
        center: The reward the prior expects; estimated from the rewards if None.
        scale: The prior's standard deviation in units of the reward; estimated if None.
        clip: Scaled rewards are clipped to ``[-clip, clip]``, beyond which the prior calls them
            impossible; ``math.inf`` for no clipping.
        ranks: Whether only the order of the rewards counts: each takes the normal score of its rank
            among those the model remembers, old and new alike.
            The surest protection from ruinous rounds, at the price of how much better is better.
        winsorize_lower: Share of the lowest ranks, in [0, 0.9], that all take one score, the normal
            quantile of this share. How deep a ruin is says nothing about where the best is, yet a
            stationary model would carry its slope there: away from every cliff, into the opposite
            corner. The scores are not centred again: what is unseen is believed a little worse than
            the average.

    Raises:
        InvalidArgumentError: If ``center`` is not finite, ``scale`` or ``clip`` not positive, ``ranks``
            no bool, ``winsorize_lower`` outside its range, or given without ``ranks``.

    Example:
        >>> RewardScale(center=0.0).fit([1.0, 3.0])
        Affine(center=0.0, scale=1.4826)
    """

    center: float | None = None
    scale: float | None = None
    clip: float = 3.0
    ranks: bool = False
    winsorize_lower: float = 0.0

    def __post_init__(self) -> None:
        if self.center is not None:
            number = isinstance(self.center, int | float) and not isinstance(self.center, bool)
            finite = number and math.isfinite(self.center)
            check(finite, "center", "a finite number or None", self.center)
        if self.scale is not None:
            check_positive("scale", self.scale)
        if self.clip != math.inf:
            check_positive("clip", self.clip)
        check(isinstance(self.ranks, bool), "ranks", "a bool", self.ranks)
        some_differ = check_rate("winsorize_lower", self.winsorize_lower) <= _MOST_WINSORIZED
        check(
            some_differ,
            "winsorize_lower",
            f"a number in [0, {_MOST_WINSORIZED}]",
            self.winsorize_lower,
        )
        ranked = self.ranks or self.winsorize_lower == 0
        check(
            ranked, "winsorize_lower", "0, or ranks=True: values are clipped", self.winsorize_lower
        )

    def targets(self, rewards: Tensor, affine: Affine) -> Tensor:
        """Return the values of the model: scaled and clipped rewards, or normal scores, the lowest alike.

        Args:
            rewards: Finite, shape ``(n,)``.
            affine: What ``fit`` returned.
        """
        if self.ranks:
            lowest = torch.special.ndtri(rewards.new_tensor(self.winsorize_lower))  # -inf at 0
            return normal_scores(rewards).clamp_min(lowest)
        return ((rewards - affine.center) / affine.scale).clamp(-self.clip, self.clip)

    def fit(self, rewards: Sequence[float], weights: Sequence[float] | None = None) -> Affine:
        """Fixed parts as given, the others by ``estimate_scale``."""
        center, scale = estimate_scale(rewards, weights)
        return Affine(
            center if self.center is None else self.center,
            scale if self.scale is None else self.scale,
        )
