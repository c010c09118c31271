r"""Query when the query earns more than it costs.

Querying at ``x`` raises what can be expected of the best configuration by the knowledge gradient
``KG(x)`` in each of the rounds for which the query still tells something, its effective horizon
``H``; it costs the price and, for one round, what is lost by playing ``x`` instead of the best. So

    query at  argmax mean(x) + H KG(x) + w lookahead(x)   if that exceeds   max mean + price,

else play argmax mean. The lookahead is what the next query would earn more after this one, see
``numerics/next_query.py``; without it the rule would never climb a hill of which one query shows only
the foot. It counts in part (``w``, the lookahead_weight), for the next query has a next one, too.

**The effective horizon.** Nothing seen after it, a query would go on to help: means decay by ``a =
sqrt(1 - forgetting)`` a round, and so does the advantage of one over another. So the query alone is
worth ``KG sum_s a^s``, about ``2 / forgetting`` rounds, and sums of such terms are exactly what a run
earns by its queries. But later queries are not chosen yet, and what they find out anew the current
one need not have told. Of what tells configurations apart a query tells the share
``information_share`` (see ``numerics/stationary.py``), so queries at a rate ``r`` replace the share
``r information_share`` of what is known each round, and

    H = sum_{s = 1}^{T - t} b^s,    b = discount * a * (1 - supersession * information share * r).

The rate is that of the run itself: ``r = forgetting * effective``, where ``effective = sum_i (1 -
forgetting)^{age_i}`` over its queries; at a constant rate that is just ``r / forgetting``.

**A budget** is a price nobody has to name: what the queries that can be afforded would now be worth. With
``need = queries left / rounds left`` and ``even = queries / rounds`` of the whole run, it is the
effective horizon times the ``1 - need^2 / even`` quantile of what a query would have been worth in
recent rounds, over its effective horizon then. So queries worth that much come at the rate needed,
and a run ahead of an even pace slows down. (The effective horizon falls as the end comes near: held
against what longer ones were worth, no query would do, and the budget be hoarded.) Recent are the
rounds in which three queries are due, 12 to 30 of them: fewer know nothing of so rare a thing, more
are slow to learn that the run has changed. Where less than one of them is due, their maximum is
raised by the root of what is missing. What is left once every round may be queried at is spent, for
it is paid for.

Sources: the knowledge gradient is that of Frazier, Powell & Dayanik (2009); price, effective horizon
and budget are this package's own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidBudgetError,
    check,
    check_count,
    check_nonnegative,
    check_positive,
    check_probability,
    check_rate,
)
from botorch_costly.query.rule import (
    RECENT,
    Cause,
    Comparison,
    Outlook,
    Progress,
    QueryRule,
    Verdict,
    choose,
)

# Chosen by the regret and price of simulated runs at five forgetting rates and four prices; see
# benchmarks/README.md for the comparison and for the fresh seeds it was confirmed on.
SUPERSESSION = 0.8
LOOKAHEAD_WEIGHT = 0.5
_DUE, _FEWEST_RECENT = 3, 12  # queries due in the rounds that are recent, and the fewest of these
_FEWEST_QUERY_VALUES = 8  # below which nobody knows what queries are worth, and each is taken,
_FIRST_SHARE = 0.2  # but no more than this share of a budget is spent on finding out


@dataclass(frozen=True, repr=False)
class PricedQuery(QueryRule):
    """Query when that earns more than its price; play the best known otherwise.

    Exactly one of ``price``, ``price_seconds`` and ``queries`` says what a query costs. Rounds of an
    initial design, such as that of ``OnlineTuner``, are queried at whatever that costs, and count.

    Args:
        price: Of a query, in units of the reward of one round, or of one interval where
            configurations are
            held: with ``GainReward("loss")`` a price of 0.02 is what lowers the loss by 2 %. Infinite
            never queries after the first.
        price_seconds: What a query takes, in seconds. Its price is what training earned on average in as
            many seconds of the rounds that are still remembered, so rewards must be gains of a
            round: of rewards that are negative on average a second is worth nothing.
        round_seconds: What a round of training takes without a query, for a price in seconds.
        queries: A budget instead of a price: so many queries over the horizon, where they earn most, but
            where configurations are held for some rounds at most one each time. The
            only one of the three that goes with ``RewardScale(ranks=True)``.
        horizon: Rounds of the run; the run's own if omitted.
        discount: What a reward is worth a round later, in (0, 1]; needed if nobody knows the horizon.
        supersession: How quickly later queries make the current one old.
        lookahead_weight: Share that counts of what the next query would earn more after this one, in
            [0, 1]. At 0 nobody works that out, and a decision takes less time.

    Raises:
        InvalidArgumentError: If not exactly one of the three is given, or one is outside its range.
        InvalidBudgetError: If there are more queries than rounds.

    Example:
        >>> from botorch_costly.query import Prospect
        >>> number = torch.tensor
        >>> comparison = Comparison(number(1.0), number(0.1), torch.zeros(0), torch.zeros(0), None,
        ...     torch.zeros(0, dtype=torch.bool), number(1.0), Prospect(number(0.9), number(0.02)))
        >>> progress = Progress(round=50, queries=9, horizon=101, forgetting=0.0)
        >>> bool(PricedQuery(price=0.5)(comparison, progress, None).query)  # 0.9 + 51 * 0.02 > 1 + 0.5
        True
    """

    price: float | None = None
    price_seconds: float | None = None
    round_seconds: float | None = None
    queries: int | None = None
    horizon: int | None = None
    discount: float = 1.0
    supersession: float = SUPERSESSION
    lookahead_weight: float = LOOKAHEAD_WEIGHT

    def __post_init__(self) -> None:
        given = [v for v in (self.price, self.price_seconds, self.queries) if v is not None]
        expected = "exactly one of the three"
        check(len(given) == 1, "price, price_seconds, queries", expected, given)
        if self.queries is not None:
            check_count("queries", self.queries, minimum=1)
        elif given[0] != math.inf:
            check_nonnegative("price" if self.price_seconds is None else "price_seconds", given[0])
        if self.price_seconds is None:
            idle = self.round_seconds is None
            check(idle, "round_seconds", "None without price_seconds", self.round_seconds)
        else:
            timed = self.round_seconds is not None
            check(timed, "round_seconds", "what a round of training takes", None)
        if self.round_seconds is not None:
            check_positive("round_seconds", self.round_seconds)
        check_nonnegative("supersession", self.supersession)
        check_rate("lookahead_weight", self.lookahead_weight)
        if self.discount != 1 or isinstance(self.discount, bool):
            check_probability("discount", self.discount)
        if self.horizon is not None:
            check_count("horizon", self.horizon, minimum=1)
            self.check_run(self.horizon)

    def __repr__(self) -> str:
        """Return what was chosen, without what is as it always is."""
        own = ((field, getattr(self, field.name)) for field in fields(self))
        chosen = (f"{field.name}={value!r}" for field, value in own if value != field.default)
        return f"{type(self).__name__}({', '.join(chosen)})"

    def counted(self, intervals: Callable[[int], int], horizon: int | None) -> "PricedQuery":
        """Return the rule with its own horizon in intervals, and at most one query in each of them."""
        rounds = self._horizon(horizon)
        if rounds is None:
            return self
        own = None if self.horizon is None else intervals(self.horizon)
        return replace(
            self, horizon=own, queries=self.queries and min(self.queries, intervals(rounds))
        )

    def check_run(self, horizon: int | None) -> None:
        """Raise unless the rule can serve a run of ``horizon`` rounds, None if nobody knows.

        Raises:
            InvalidArgumentError: If the horizon is unknown and there is no discount.
            InvalidBudgetError: If there are more queries than rounds, if nobody knows of how many rounds,
                or if the run ends before those the budget is for.
        """
        rounds = self._horizon(horizon)
        finite = rounds is not None or self.discount < 1
        check(finite, "discount", "a number in (0, 1) without a horizon", self.discount)
        if self.queries is None:
            return
        if rounds is None:
            raise InvalidBudgetError("horizon", "how many rounds the budget is for", None)
        fits, expected = self.queries <= rounds, f"at most {rounds} rounds"
        check(fits, "queries", expected, self.queries, InvalidBudgetError)
        lasts = horizon is None or rounds <= horizon
        expected = f"at most the {horizon} rounds of the run"
        check(lasts, "horizon", expected, rounds, InvalidBudgetError)

    def outlook(self, progress: Progress) -> Outlook:
        """Return how the rule weighs queries.

        Raises:
            CostlyError: As ``check_run``.
        """
        return Outlook(
            self.effective_horizon(progress), self._price_of(progress), self.lookahead_weight
        )

    def effective_horizon(self, progress: Progress) -> Tensor:
        """Return for how many rounds the gain of a query counts, shape ``(*batch,)``.

        Raises:
            CostlyError: As ``check_run``.
        """
        self.check_run(progress.horizon)
        rate = progress.forgetting * torch.as_tensor(
            progress.effective_queries, dtype=torch.float64
        )
        share = (self.supersession * progress.information_share * rate).clamp(max=1)
        keep = self.discount * (1 - progress.forgetting) ** 0.5 * (1 - share)
        left = self._rounds_left(progress)
        # Where nothing fades, each of the rounds left counts in full.
        fades = keep < 1
        series = keep * (1 - keep**left) / torch.where(fades, 1 - keep, 1.0)
        return torch.where(fades, series, left)

    def __call__(
        self, comparison: Comparison, progress: Progress, generator: torch.Generator
    ) -> Verdict:
        """Decide for a comparison of any batch shape."""
        prospect = comparison.prospect
        if prospect is None:
            raise InvalidArgumentError("prospect", "what a query would find out", None)
        like = comparison.mean
        effective_horizon = self.effective_horizon(progress)
        lasting = effective_horizon.to(like) * prospect.gain
        lookahead = torch.zeros_like(like)
        if self.lookahead_weight > 0:
            lookahead = self.lookahead_weight * torch.as_tensor(
                prospect.lookahead, dtype=torch.float64
            ).to(like)
        earns = prospect.mean + lasting + lookahead - comparison.mean
        price = self._price_of(progress).to(like).expand(like.shape)
        first = torch.as_tensor(progress.queries, device=like.device).expand(like.shape) == 0
        pays, due = earns > price, self._is_due(progress).to(like.device).expand(like.shape)
        cause = choose(pays, Cause.PAYS, choose(due, Cause.DUE, Cause.NOT_WORTH_IT))
        cause = choose(first, Cause.FIRST, cause)
        confidence = torch.full_like(like, torch.nan)
        rate = torch.where(
            effective_horizon > 0,
            earns.double().to(effective_horizon.device) / effective_horizon,
            torch.nan,
        )
        value, price = (progress.scale * amount for amount in (earns, price))
        return Verdict(first | pays | due, confidence, cause, value, price, rate)

    @property
    def budget(self) -> int | None:  # type: ignore[override]
        """Queries it has for a run."""
        return self.queries

    @property
    def reads_rewards(self) -> bool:  # type: ignore[override]
        """Whether the price is in rewards: a budget is not."""
        return self.queries is None

    def explain(self, verdict: Verdict) -> str:
        """Say in words why a verdict without a batch fell as it did, in units of the reward."""
        words = super().explain(verdict)
        if verdict.value is None or verdict.price is None:
            return words
        return f"{words} (value {float(verdict.value):.3g}, price {float(verdict.price):.3g})"

    def _is_due(self, progress: Progress) -> Tensor:
        """Return whether the budget, which is paid for, suffices for every round left."""
        if self.queries is None:
            return torch.zeros((), dtype=torch.bool)
        return self._queries_left(progress) >= self._rounds_left(progress) + 1

    def _queries_left(self, progress: Progress) -> Tensor:
        assert self.queries is not None
        return self.queries - torch.as_tensor(progress.queries, dtype=torch.float64)

    def _price_of(self, progress: Progress) -> Tensor:
        """Return the price of a query in units of the belief."""
        if self.queries is not None:
            return self._price_of_budget(progress)
        price = self.price
        if price is None:
            assert self.price_seconds is not None
            assert self.round_seconds is not None
            # Where training earns nothing, or nobody knows yet, time is worth nothing.
            reward_rate = max(progress.reward_rate or 0.0, 0.0)
            endless = self.price_seconds == math.inf
            price = math.inf if endless else self.price_seconds / self.round_seconds * reward_rate
        return torch.tensor(price / progress.scale, dtype=torch.float64)

    def _price_of_budget(self, progress: Progress) -> Tensor:
        """Return what the queries that can be afforded would now be worth."""
        assert self.queries is not None
        need = (self._queries_left(progress) / (self._rounds_left(progress) + 1)).clamp(0, 1)
        price = torch.zeros_like(need)
        if progress.query_values is not None:
            rounds = self._horizon(progress.horizon)
            assert rounds is not None
            share = (need.square() * rounds / self.queries).clamp(max=1)
            query_values, known = _lately(progress.query_values, _DUE / need)
            due = share * known
            rank = (known - due).long().clamp_min(0).minimum((known - 1).clamp_min(0))
            dearer = query_values.gather(-1, rank.unsqueeze(-1)).squeeze(-1).clamp_min(0)
            now = self.effective_horizon(progress) * dearer * due.clamp(max=1).rsqrt()
            fewest = min(_FEWEST_QUERY_VALUES, _FIRST_SHARE * self.queries)
            price = torch.where(known >= fewest, now, price)
        return torch.where(need > 0, price, torch.inf)

    def _horizon(self, of_run: int | None) -> int | None:
        """Return the rule's own horizon, or else the run's."""
        return of_run if self.horizon is None else self.horizon

    def _rounds_left(self, progress: Progress) -> float:
        horizon = self._horizon(progress.horizon)
        return math.inf if horizon is None else max(horizon - progress.round, 0)


def _lately(query_values: Tensor, rounds: Tensor) -> tuple[Tensor, Tensor]:
    """Return what is known of the last so many rounds (``*batch``), ascending, and of how many."""
    ages = torch.arange(query_values.shape[-1]).to(rounds).flip(0)
    recent = (ages < rounds.clamp(_FEWEST_RECENT, RECENT).unsqueeze(-1)) & query_values.isfinite()
    ascending = torch.where(recent, query_values.double(), torch.inf).sort(-1).values
    return ascending, recent.sum(-1)
