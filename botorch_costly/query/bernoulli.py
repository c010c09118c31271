"""Query rules that do not depend on the model: always, and with a fixed probability."""

from dataclasses import dataclass

import torch

from botorch_costly.calls import advised
from botorch_costly.errors import check_rate
from botorch_costly.query.rule import Cause, Comparison, Progress, QueryRule, Verdict, choose, toss


@advised
@dataclass(frozen=True)
class AlwaysQuery(QueryRule):
    """Query in every round: full feedback, as in TV-GP-UCB."""

    def __call__(
        self, comparison: Comparison, progress: Progress, generator: torch.Generator
    ) -> Verdict:
        """Decide for a comparison of any batch shape."""
        query = torch.ones_like(comparison.mean, dtype=torch.bool)
        cause = torch.full_like(query, Cause.ALWAYS, dtype=torch.long)
        return Verdict(query, torch.full_like(comparison.mean, torch.nan), cause)


@advised
@dataclass(frozen=True)
class BernoulliQuery(QueryRule):
    """Query with a fixed probability.

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, section 3.2.

    Args:
        rate: Probability of a query, in [0, 1] (the paper's ``B / T``).

    Raises:
        InvalidArgumentError: If the rate is outside [0, 1].
    """

    rate: float

    def __post_init__(self) -> None:
        check_rate("rate", self.rate)

    def __call__(
        self, comparison: Comparison, progress: Progress, generator: torch.Generator
    ) -> Verdict:
        """Decide for a comparison of any batch shape."""
        query = toss(comparison, self.rate, generator, progress.coin)
        unknown = torch.full_like(comparison.mean, torch.nan)
        return Verdict(query, unknown, choose(query, Cause.CHANCE, Cause.NO_CHANCE))
