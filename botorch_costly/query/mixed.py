"""The mixed strategy of CE-GP-UCB: random queries up to a lower quota, further ones by a rule."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor

from botorch_costly.calls import advised
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
    fresh_coin,
    no_room,
    toss,
)


@advised
@dataclass(frozen=True)
class MixedQuery(QueryRule):
    """Query at random at rate ``B1 / T``; otherwise by another rule, thinned to rate ``(B2 - B1) / T``.

    The quotas then hold in expectation, as in the paper, over the rounds that the rule decides; queries
    of the initial design of ``OnlineTuner`` are additional. With ``hard=True`` the quotas hold in every
    run: the other rule is not thinned, queries end after ``B2`` of them, and all last rounds have a query
    where that is necessary for ``B1`` of them.

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, Algorithm 1 (version 2).

    Args:
        lower: ``B1``, the least number of queries, an integer >= 0.
        upper: ``B2``, the greatest number of queries.
        horizon: Rounds ``T``, an integer >= 1.
        rule: The rule that decides about the other queries.
        hard: Whether the quotas hold in every run or only in expectation.

    Raises:
        InvalidArgumentError: If a quota or the horizon is out of range, or ``rule`` is no ``QueryRule``.
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
        """Whether the inner rule needs rivals."""
        return self.rule.needs_rivals

    @property
    def reads_rewards(self) -> bool:
        """Whether the inner rule compares the posterior with numbers in units of the reward."""
        return self.rule.reads_rewards

    @property
    def spends_share(self) -> bool:
        """Whether the inner rule needs to know how many queries a share of the clock affords."""
        return self.rule.spends_share

    @property
    def has_outlook(self) -> bool:
        """Whether the inner rule has an outlook."""
        return self.rule.has_outlook

    def outlook(self, progress: Progress) -> Outlook | None:
        """Return how the inner rule values a query."""
        return self.rule.outlook(self._with_horizon(progress))

    def for_run(self, intervals: Callable[[int], int], horizon: int | None) -> "MixedQuery":
        """Return the rule with its horizon in intervals, and quotas of at most one query in each."""
        count = intervals(self.horizon)
        return self._with(
            lower=min(self.lower, count),
            upper=min(self.upper, count),
            horizon=count,
            rule=self.rule.for_run(intervals, horizon or self.horizon),
        )

    def unspendable(self, intervals: Callable[[int], int], horizon: int | None) -> str | None:
        """Return a note on a quota that the run has no room for, with a remedy; None if there is none."""
        rounds = self.horizon if horizon is None else min(self.horizon, horizon)
        count = intervals(rounds)
        if self.upper > count:
            name, quota = ("lower", self.lower) if self.lower > count else ("upper", self.upper)
            return no_room(f"The {name} quota of {quota} queries", count)
        if rounds < self.horizon:
            share = rounds / self.horizon
            return (
                f"The quotas of {self.lower} to {self.upper} queries are for {self.horizon} rounds, but"
                f" the run has {rounds}: about {share * self.lower:.0f} to"
                f" {share * self.upper:.0f} of them will be spent. With horizon={rounds} all are."
            )
        return self.rule.unspendable(intervals, horizon or self.horizon)

    def check_run(self, horizon: int | None) -> None:
        """Check the inner rule, with the horizon of the quotas if the run's is unknown."""
        self.rule.check_run(self.horizon if horizon is None else horizon)

    def __call__(
        self, comparison: Comparison, progress: Progress, generator: torch.Generator
    ) -> Verdict:
        """Decide for a comparison of any batch shape."""
        first, second = self.lower / self.horizon, (self.upper - self.lower) / self.horizon
        second_coin = fresh_coin(progress.coin, first)
        rule_progress = progress._replace(coin=fresh_coin(second_coin, second))
        inner = self.rule(comparison, self._with_horizon(rule_progress), generator)
        coin = toss(comparison, first, generator, progress.coin)
        thinning = toss(comparison, second, generator, second_coin)
        by_rule = inner.query if self.hard else inner.query & thinning
        skipped = choose(inner.query, Cause.NO_CHANCE, inner.cause)
        cause = choose(coin, Cause.CHANCE, choose(by_rule, inner.cause, skipped))
        query = coin | by_rule
        if self.hard:
            query, cause = self._bind(query, cause, progress)
        return inner._replace(query=query, cause=cause)

    def explain(self, verdict: Verdict) -> str:
        """Return the inner rule's explanation of a verdict."""
        return self.rule.explain(verdict)

    def _with_horizon(self, progress: Progress) -> Progress:
        """Return the progress with the horizon of the quotas if the run's is unknown."""
        return progress if progress.horizon else progress._replace(horizon=self.horizon)

    def _bind(self, query: Tensor, cause: Tensor, progress: Progress) -> tuple[Tensor, Tensor]:
        """Return query and cause such that the quotas hold in this run."""
        like = torch.empty_like(query, dtype=torch.long)
        queries = moved(torch.as_tensor(progress.queries), like).expand(query.shape)
        rounds_left = max(self.horizon - progress.round + 1, 1)  # a run may exceed its horizon
        due = self.lower - queries >= rounds_left
        spent = queries >= self.upper
        cause = choose(due & ~query, Cause.DUE, cause)
        cause = choose(spent & query, Cause.SPENT, cause)
        return (query | due) & ~spent, cause
