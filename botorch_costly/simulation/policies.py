"""Policies on a grid, and the scores by which they choose a point."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from botorch_costly.calls import advised
from botorch_costly.errors import check, check_count, check_rate
from botorch_costly.numerics import improvement
from botorch_costly.query import QueryRule, UnqueriedPlay

Score = Callable[[Tensor, Tensor, float], Tensor]
"""``mean, std, beta -> score``; means, standard deviations and scores have shape ``(m, n)``."""

_LEAST_STD = 1e-12  # keeps the standardized improvement finite where the variance is zero
_LEAST_GAIN = 0.01  # improvement that PI asks for, in prior standard deviations


def upper_confidence_bound(mean: Tensor, std: Tensor, beta: float) -> Tensor:
    """Return ``mean + sqrt(beta) std``."""
    return torch.add(mean, std, alpha=beta**0.5)


def expected_improvement(mean: Tensor, std: Tensor, beta: float) -> Tensor:
    """Return the expected improvement over the largest posterior mean."""
    return improvement.expected_improvement(mean, std, mean.amax(-1, keepdim=True))


def probability_of_improvement(mean: Tensor, std: Tensor, beta: float) -> Tensor:
    """Return the log probability of a noticeable improvement over the largest posterior mean."""
    z = (mean - mean.amax(-1, keepdim=True) - _LEAST_GAIN) / std.clamp_min(_LEAST_STD)
    return torch.special.log_ndtr(z)


@advised
@dataclass(frozen=True)
class GridPolicy:
    """A score over the grid, a query rule, and optionally restarts.

    Args:
        name: Name of the policy in tables.
        rule: Query rule, which decides whether to query.
        score: Score of the points; the policy plays the point with the highest score.
        forgetting: Forgetting rate of the model, in [0, 1], per round; the true rate if omitted.
        restart_every: Rounds after which the model drops all observations, as in R-GP-UCB.
        lone_rival: Whether a lone optimum is compared with the best point beyond the bandwidth. If not,
            the literal rule has no rival for it and never queries again.
        merges: Whether local optima within the bandwidth of the candidate are merged with it, as by mean
            shift, so that they are not its rivals.
        joint: Whether the rule reads the covariances of the candidate and its rivals.
        unqueried_play: Point that a round without a query plays: the maximizer of the ``"acquisition"``
            or of the ``"mean"``. Ignored for rules with an outlook, which play the maximizer of the mean.
        ages: Whether the posterior ages in rounds without a query. In Algorithm 1 as printed (line 10)
            it does not, although the function changes, so the model's clock counts queries.

    Raises:
        InvalidArgumentError: If ``rule`` is not a query rule, or a number is outside its range.
    """

    name: str
    rule: QueryRule
    score: Score = upper_confidence_bound
    _: KW_ONLY
    forgetting: float | None = None
    restart_every: int | None = None
    lone_rival: bool = True
    merges: bool = False
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
        is_valid = self.unqueried_play in ("acquisition", "mean")
        check(is_valid, "unqueried_play", '"acquisition" or "mean"', self.unqueried_play)
