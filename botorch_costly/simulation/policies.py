"""A player on a grid: where it goes, whether it queries, and what it forgets."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from botorch_costly.errors import check, check_count, check_rate
from botorch_costly.query import QueryRule, UnqueriedPlay

Score = Callable[[Tensor, Tensor, float], Tensor]
"""``mean, std, beta -> score``, means, deviations and scores of shape ``(m, n)``."""

_LEAST_STD = 1e-12  # keeps the standardized gains finite where nothing is left to learn
_LEAST_GAIN = 0.01  # prior standard deviations by which PI asks to improve


def upper_confidence_bound(mean: Tensor, std: Tensor, beta: float) -> Tensor:
    """Return ``mean + sqrt(beta) std``."""
    return torch.add(mean, std, alpha=beta**0.5)


def expected_improvement(mean: Tensor, std: Tensor, beta: float) -> Tensor:
    """Return the expected improvement over the largest posterior mean."""
    std = std.clamp_min(_LEAST_STD)
    z = (mean - mean.amax(-1, keepdim=True)) / std
    density = torch.exp(-0.5 * z.square()) / (2 * torch.pi) ** 0.5
    return std * (z * torch.special.ndtr(z) + density)


def probability_of_improvement(mean: Tensor, std: Tensor, beta: float) -> Tensor:
    """Return the log probability of a noticeable improvement over the largest posterior mean."""
    z = (mean - mean.amax(-1, keepdim=True) - _LEAST_GAIN) / std.clamp_min(_LEAST_STD)
    return torch.special.log_ndtr(z)


@dataclass(frozen=True)
class GridPolicy:
    """Where and whether: a score over the grid, a query rule, and perhaps restarts.

    Args:
        name: Of the policy in tables.
        rule: Whether to query.
        score: Where to go: the point with the highest score is played.
        forgetting: Rate in [0, 1] that the model assumes, per round; the truth's if omitted.
        restart_every: Rounds after which the model forgets everything, as in R-GP-UCB.
        lone_rival: Whether a lone optimum is held against the best point beyond the bandwidth.
            Without it, the literal rule has no rival to compare it with and never queries again.
        joint: Whether the rule reads the covariances of the candidate and its rivals.
        unqueried_play: What a round without a query plays: the maximizer of the ``"acquisition"`` or
            of the ``"mean"``. Rules with an outlook choose themselves.
        ages: Whether the belief ages in rounds without a query. Algorithm 1 as printed (line 10)
            leaves it as it was, although the function has moved on; so the model's clock counts queries.

    Raises:
        InvalidArgumentError: If the rule is no rule, or a number is outside its range.
    """

    name: str
    rule: QueryRule
    score: Score = upper_confidence_bound
    _: KW_ONLY
    forgetting: float | None = None
    restart_every: int | None = None
    lone_rival: bool = True
    joint: bool = False
    ages: bool = True
    unqueried_play: UnqueriedPlay = "acquisition"

    def __post_init__(self) -> None:
        check(isinstance(self.rule, QueryRule), "rule", "a QueryRule", self.rule)
        if self.forgetting is not None:
            check_rate("forgetting", self.forgetting)
        if self.restart_every is not None:
            period = check_count("restart_every", self.restart_every, minimum=1)
            object.__setattr__(self, "restart_every", period)
        known = self.unqueried_play in ("acquisition", "mean")
        check(known, "unqueried_play", '"acquisition" or "mean"', self.unqueried_play)
