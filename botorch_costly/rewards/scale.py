"""Conversion of rewards to the units of the model."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from botorch_costly.calls import advised
from botorch_costly.errors import check, check_positive, check_rate
from botorch_costly.numerics.robust import Affine, estimate_scale, normal_scores, weighted_scores

_MOST_WINSORIZED = 0.9  # share of the ranks; the others have to distinguish the best configuration
_LEAST_WEIGHT = 1e-3  # of a reward with a variance; a smaller one counts as 0


@advised
@dataclass(frozen=True)
class RewardScale:
    """The conversion of rewards to targets of a model whose prior has mean 0 and variance 1.

    Args:
        center: Prior mean in units of the reward; estimated from the rewards if None.
        scale: Prior standard deviation in units of the reward; estimated if None.
        clip: Scaled rewards are clipped to ``[-clip, clip]``, beyond which they are implausible under
            the prior; ``math.inf`` for no clipping.
        ranks: Whether each reward is replaced by the normal score of its rank among all rewards of
            the model. Nothing protects better from the rewards of rounds in which training diverged,
            but differences between rewards are lost.
        winsorize_lower: Share of the lowest ranks, in [0, 0.9], that get the same score, the normal
            quantile of this share. The reward of a diverged round contains no information about the
            best configuration, yet a stationary model extends the slope at a cliff to the opposite
            corner. The scores are not centred again, so configurations not yet played are expected to
            be a little worse than the average.

    Raises:
        InvalidArgumentError: If ``center`` is not finite, ``scale`` or ``clip`` not positive, ``ranks``
            no bool, or ``winsorize_lower`` outside its range or positive without ``ranks``.

    Example:
        >>> RewardScale(center=0.0).fit([1.0, 3.0])
        Affine(center=0.0, scale=1.4826)
    """

    center: float | None = None
    scale: float | None = None
    _: KW_ONLY
    clip: float = 3.0
    ranks: bool = False
    winsorize_lower: float = 0.0

    def __post_init__(self) -> None:
        if self.center is not None:
            is_number = isinstance(self.center, int | float) and not isinstance(self.center, bool)
            is_finite = is_number and math.isfinite(self.center)
            check(is_finite, "center", "a finite number or None", self.center)
        if self.scale is not None:
            check_positive("scale", self.scale)
        if self.clip != math.inf:
            check_positive("clip", self.clip)
        check(isinstance(self.ranks, bool), "ranks", "a bool", self.ranks)
        share = check_rate("winsorize_lower", self.winsorize_lower)
        expected = f"a number in [0, {_MOST_WINSORIZED}]"
        check(share <= _MOST_WINSORIZED, "winsorize_lower", expected, share)
        expected = "0 without ranks=True, for values are clipped by clip"
        check(self.ranks or share == 0, "winsorize_lower", expected, share)

    def targets(self, rewards: Tensor, affine: Affine, weights: Tensor | None = None) -> Tensor:
        """Return the targets of the model: scaled and clipped rewards, or winsorized normal scores.

        Args:
            rewards: Finite rewards, shape ``(n,)``.
            affine: Result of ``fit``.
            weights: Weight of each reward among the ranks, in [0, 1], the largest 1, shape ``(n,)``; all
                1 if omitted.

        Returns:
            The targets, shape ``(n,)``.
        """
        if self.ranks:
            lowest = torch.special.ndtri(rewards.new_tensor(self.winsorize_lower))  # -inf at 0
            scores = (
                normal_scores(rewards) if weights is None else weighted_scores(rewards, weights)
            )
            return scores.clamp_min(lowest)
        return ((rewards - affine.center) / affine.scale).clamp(-self.clip, self.clip)

    def slopes(self, rewards: Tensor, targets: Tensor, affine: Affine) -> Tensor:
        r"""Return the slopes of the map from rewards to targets, by which their deviations are converted.

        .. math:: \frac{1}{s} \sqrt{\frac{1 + t^2}{1 + z^2}}, \qquad z = (r - c) / s

        This is the slope of the chord from the center of the map, kept from 0 / 0 near it. It is
        ``1 / s`` where targets are scaled rewards, or ranks of normal ones. Far out, where targets are
        clipped or ranks, it falls: noise of a reward far below the others does not move its rank. The map
        of ranks has steps, so it has no slope of its own; that among a few neighbours would be noisy.

        Args:
            rewards: Finite rewards, shape ``(n,)``.
            targets: Result of ``targets``, shape ``(n,)``.
            affine: Result of ``fit``.

        Returns:
            The slopes, positive, shape ``(n,)``.
        """
        scaled = (rewards - affine.center) / affine.scale
        unit = torch.ones_like(scaled)  # hypot: squares could overflow
        return torch.hypot(unit, targets) / torch.hypot(unit, scaled) / affine.scale

    def fit(self, rewards: Sequence[float], weights: Sequence[float] | None = None) -> Affine:
        """Return center and scale, estimated by ``estimate_scale`` where they are None.

        Args:
            rewards: The ``n`` rewards.
            weights: Weight of each reward, at least 0; equal by default.
        """
        center, scale = estimate_scale(rewards, weights)
        return Affine(
            center if self.center is None else self.center,
            scale if self.scale is None else self.scale,
        )


def trusts(variances: Tensor, scale: float) -> Tensor:
    """Return the weights that rewards with these variances have for scale and ranks, the largest 1.

    The weight is ``1 / (1 + variance / scale^2)``, or 0 below a thousandth: a reward that is known much
    less precisely than rewards differ must not move the targets of the others.

    Args:
        variances: Variances of the rewards, at least 0, shape ``(n,)``.
        scale: Standard deviation of the rewards, positive.

    Returns:
        The weights, in [0, 1], shape ``(n,)``.
    """
    weights = 1 / (1 + (variances.sqrt() / scale).square())
    weights = weights / weights.max()
    return torch.where(weights > _LEAST_WEIGHT, weights, 0.0)
