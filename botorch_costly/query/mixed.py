"""A lower quota by coin, the rest by confidence: the mixed strategy of CE-GP-UCB."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.errors import InvalidBudgetError, check, check_count
from botorch_costly.query.confidence import ConfidenceQuery
from botorch_costly.query.rule import (
    Cause,
    Comparison,
    Outlook,
    Progress,
    QueryRule,
    Verdict,
    choose,
    left_of,
    no_room,
    toss,
)


@dataclass(frozen=True)
class MixedQuery(QueryRule):
    """Query by coin at rate ``B1 / T``; otherwise by another rule, thinned to rate ``(B2 - B1) / T``.

    The quotas then hold in expectation, as in the paper, over the rounds in which the rule is asked: an
    initial design of ``OnlineTuner`` comes on top. With ``hard=True`` they hold in every run:
    the other rule is not thinned, queries end once ``B2`` are spent, and the last rounds all have a
    query when fewer than ``B1`` would otherwise come together.

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, Algorithm 1 (version 2).

    Args:
        lower: ``B1``, the least number of queries, an integer >= 0.
        upper: ``B2``, the greatest number of queries.
        horizon: Rounds ``T``, an integer >= 1.
        rule: The rule that spends the difference.
        hard: Whether the quotas bind every run or only their expectation.

    Raises:
        InvalidArgumentError: If a quota or the horizon is no such integer, or ``rule`` no rule.
        InvalidBudgetError: If not ``lower <= upper <= horizon``.
    """

    lower: int
    upper: int
    horizon: int
    rule: QueryRule = field(default_factory=ConfidenceQuery)
    _: KW_ONLY
    hard: bool = False

    def __post_init__(self) -> None:
        for name, minimum in (("lower", 0), ("upper", 0), ("horizon", 1)):
            object.__setattr__(self, name, check_count(name, getattr(self, name), minimum))
        check(isinstance(self.rule, QueryRule), "rule", "a QueryRule", self.rule)
        ordered = self.lower <= self.upper <= self.horizon
        quotas = (self.lower, self.upper, self.horizon)
        expected = "0 <= lower <= upper <= horizon"
        check(ordered, "lower, upper, horizon", expected, quotas, InvalidBudgetError)

    @property
    def needs_rivals(self) -> bool:
        """Whether the rule inside needs rivals."""
        return self.rule.needs_rivals

    @property
    def reads_rewards(self) -> bool:
        """Whether the rule inside compares beliefs with numbers in units of the reward."""
        return self.rule.reads_rewards

    def outlook(self, progress: Progress) -> Outlook | None:
        """Return how the rule inside weighs what a query would earn."""
        return self.rule.outlook(self._with_horizon(progress))

    def for_run(self, intervals: Callable[[int], int], horizon: int | None) -> "MixedQuery":
        """Return the rule with its horizon in intervals, and quotas that are no more than these."""
        most = intervals(self.horizon)
        return self._with(
            lower=min(self.lower, most),
            upper=min(self.upper, most),
            horizon=most,
            rule=self.rule.for_run(intervals, horizon or self.horizon),
        )

    def unspendable(self, intervals: Callable[[int], int], horizon: int | None) -> str | None:
        """Return which of the quotas the run has no room for, and what helps, or None."""
        rounds = self.horizon if horizon is None else min(self.horizon, horizon)
        most = intervals(rounds)
        if self.upper > most:
            name, quota = ("lower", self.lower) if self.lower > most else ("upper", self.upper)
            return no_room(f"The {name} quota of {quota} queries", most)
        if rounds < self.horizon:
            share = rounds / self.horizon
            return (
                f"The quotas of {self.lower} to {self.upper} queries are for {self.horizon} rounds, of"
                f" which the run has {rounds}: about {share * self.lower:.0f} to"
                f" {share * self.upper:.0f} of them will be spent. With horizon={rounds} all are."
            )
        return self.rule.unspendable(intervals, horizon or self.horizon)

    def check_run(self, horizon: int | None) -> None:
        """Raise as the rule inside, over the horizon of the quotas if the run's is unknown."""
        self.rule.check_run(self.horizon if horizon is None else horizon)

    def __call__(
        self, comparison: Comparison, progress: Progress, generator: torch.Generator
    ) -> Verdict:
        """Decide for a comparison of any batch shape."""
        first, second = self.lower / self.horizon, (self.upper - self.lower) / self.horizon
        again = left_of(progress.coin, first)
        rest = progress._replace(coin=left_of(again, second))
        inner = self.rule(comparison, self._with_horizon(rest), generator)
        coin = toss(comparison, first, generator, progress.coin)
        thinning = toss(comparison, second, generator, again)
        by_rule = inner.query if self.hard else inner.query & thinning
        skipped = choose(inner.query, Cause.NO_CHANCE, inner.cause)
        cause = choose(coin, Cause.CHANCE, choose(by_rule, inner.cause, skipped))
        query = coin | by_rule
        if self.hard:
            query, cause = self._bind(query, cause, progress)
        return inner._replace(query=query, cause=cause)

    def explain(self, verdict: Verdict) -> str:
        """Say in the words of the rule inside why a verdict fell as it did."""
        return self.rule.explain(verdict)

    def _with_horizon(self, progress: Progress) -> Progress:
        """Let the rule inside know the horizon of the quotas where the run's is unknown."""
        return progress if progress.horizon else progress._replace(horizon=self.horizon)

    def _bind(self, query: Tensor, cause: Tensor, progress: Progress) -> tuple[Tensor, Tensor]:
        """Make the quotas hold in this run."""
        like = torch.empty_like(query, dtype=torch.long)
        queries = moved(torch.as_tensor(progress.queries), like).expand(query.shape)
        rounds_left = max(self.horizon - progress.round + 1, 1)  # a run may outlast its horizon
        due = self.lower - queries >= rounds_left
        spent = queries >= self.upper
        cause = choose(due & ~query, Cause.DUE, cause)
        cause = choose(spent & query, Cause.SPENT, cause)
        return (query | due) & ~spent, cause
