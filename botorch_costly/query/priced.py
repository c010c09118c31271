r"""Query when the query earns more than it costs.

A query at ``x`` raises the expected reward of the best configuration by the knowledge gradient
``KG(x)``, in each of the rounds for which what it found out still holds: the effective horizon ``H``. It
costs its price and, for one round, what is lost by playing ``x`` instead of the best. So a round

    queries at  argmax mean(x) + H KG(x) + w lookahead(x)   if that exceeds   max mean + price,

and plays argmax mean otherwise. The lookahead is what the next query is expected to earn more because
of this one, see ``numerics/lookahead.py``. Without it the rule would never climb a hill of which one
query shows only the foot. It counts in part, by the lookahead weight ``w``: the next query has a next
one, too, which the lookahead leaves out.

**The effective horizon H.** Without later queries a mean decays by ``a = sqrt(1 - forgetting)`` a round,
and so does the advantage of one configuration over another. The query alone is therefore worth ``KG
sum_s a^s``, about ``2 / forgetting`` rounds of its gain. Later queries shorten that: this is the
supersession of a query. What they will find out anew, this query need not have found out.

Supersession is counted by the information share, the share that one query tells of what tells
configurations apart (see ``numerics/stationary.py``). Queries at a rate ``r`` a round replace the share
``r * information share`` of what is known in each round, and so

    H = sum_{s = 1}^{T - t} b^s,    b = discount * a * (1 - supersession * information share * r),

where ``T - t`` rounds are left, and the factor ``supersession`` was chosen by simulation. The rate is
that of the run itself: ``r = forgetting * effective queries``, where ``effective queries = sum_i (1 -
forgetting)^{age_i}`` over its queries. At a constant rate that sum is ``r / forgetting``.

**A budget** is a price that the run finds by itself: what the queries that can be afforded would earn
now. With ``need = queries left / rounds left`` and ``even = budget / rounds`` of the whole run, the
price is ``H`` times the ``1 - need^2 / even`` quantile of what a query would have earned in each of the
recent rounds, over the effective horizon of that round.

- Queries that earn so much come at the rate that is needed, and a run ahead of an even pace slows down.
- The division by the horizon of the time matters since ``H`` falls towards the end of a run. Compared
  with the earnings over longer horizons no late query would do, and the budget would be hoarded.
- Recent are the rounds in which three queries are due, at least 12 and at most 30 of them. Fewer rounds
  say nothing about so rare an event; more are slow to notice that the run has changed.
- Where less than one query is due in the recent rounds, their maximum is raised by the root of what is
  missing.
- Once the queries left suffice for all rounds left they are spent, for they are paid for.

Sources: the knowledge gradient is that of Frazier, Powell & Dayanik (2009); price, effective horizon
and budget are this package's own.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields

import torch
from torch import Tensor

from botorch_costly.device import moved
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
    no_room,
)

# Chosen by the regret and price of simulated runs at five forgetting rates and four prices; see
# benchmarks/README.md for the comparison and for the fresh seeds it was confirmed on.
SUPERSESSION = 0.8
LOOKAHEAD_WEIGHT = 0.5
_DUE, _FEWEST_RECENT = 3, 12  # queries due in the rounds that are recent, and the fewest of these
_FEWEST_QUERY_VALUES = 8  # below which the value of queries is unknown, and each is taken,
_FIRST_SHARE = 0.2  # but no more than this share of a budget is spent on finding out


@dataclass(frozen=True, repr=False)
class PricedQuery(QueryRule):
    """Query when that earns more than its price; play the best known otherwise.

    Exactly one of ``price``, ``price_seconds`` and ``budget`` says what a query costs. Rounds of an
    initial design, such as that of ``OnlineTuner``, have a query at any price, and count. The
    derivation is at the head of this module.

    Args:
        price: Of a query, in units of the reward of one round, or of one interval where
            configurations are held: with ``GainReward("loss")`` a price of 0.02 is what lowers the loss
            by 2 %. At an infinite price only the first query is taken.
        price_seconds: What a query takes, in seconds. Its price is what training earned on average in as
            many seconds of the rounds that still weigh, so rewards must be gains of a
            round: where rewards are negative on average, a second is worth nothing.
        round_seconds: What a round of training takes without a query, for a price in seconds.
        budget: Queries over the horizon instead of a price, spent where they earn most, at most one in
            each interval for which a configuration is held. The only one of the three
            that goes with rewards counted by their ranks.
        horizon: Rounds of the run, an integer >= 1; the run's own if omitted.
        discount: What a reward is worth a round later, in (0, 1]; needed where the horizon is unknown.
        supersession: How quickly later queries make the current one old, >= 0.
        lookahead_weight: Share that counts of what the next query would earn more after this one, in
            [0, 1]. At 0 it is not worked out, and a decision takes less time.

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
    _: KW_ONLY
    price_seconds: float | None = None
    round_seconds: float | None = None
    budget: int | None = None
    horizon: int | None = None
    discount: float = 1.0
    supersession: float = SUPERSESSION
    lookahead_weight: float = LOOKAHEAD_WEIGHT

    def __post_init__(self) -> None:
        given = [v for v in (self.price, self.price_seconds, self.budget) if v is not None]
        expected = "exactly one of the three"
        check(len(given) == 1, "price, price_seconds, budget", expected, given)
        if self.budget is not None:
            object.__setattr__(self, "budget", check_count("budget", self.budget, minimum=1))
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
            object.__setattr__(self, "horizon", check_count("horizon", self.horizon, minimum=1))
            self.check_run(self.horizon)

    def __repr__(self) -> str:
        """Return the arguments that differ from their defaults."""
        own = ((field, getattr(self, field.name)) for field in fields(self))
        chosen = (f"{field.name}={value!r}" for field, value in own if value != field.default)
        return f"{type(self).__name__}({', '.join(chosen)})"

    def for_run(self, intervals: Callable[[int], int], horizon: int | None) -> "PricedQuery":
        """Return the rule with its own horizon in intervals, and at most one query in each of them."""
        rounds = self._horizon(horizon)
        if rounds is None:
            return self
        own = None if self.horizon is None else intervals(self.horizon)
        budget = None if self.budget is None else min(self.budget, intervals(rounds))
        return self._with(horizon=own, budget=budget)

    def unspendable(self, intervals: Callable[[int], int], horizon: int | None) -> str | None:
        """Return that the run has no room for the budget, and what helps, or None."""
        rounds = self._horizon(horizon)
        if self.budget is None or rounds is None:
            return None
        most = intervals(rounds)
        return no_room(f"The budget of {self.budget} queries", most) if self.budget > most else None

    def check_run(self, horizon: int | None) -> None:
        """Raise unless the rule can serve a run of ``horizon`` rounds, None if unknown.

        Raises:
            InvalidArgumentError: If the horizon is unknown and there is no discount.
            InvalidBudgetError: If there are more queries than rounds, if the number of rounds is
                unknown, or if the run ends before the rounds that the budget is for.
        """
        rounds = self._horizon(horizon)
        finite = rounds is not None or self.discount < 1
        check(finite, "horizon", "a number of rounds, or a discount below 1 without one", rounds)
        if self.budget is None:
            return
        if rounds is None:
            raise InvalidBudgetError("horizon", "how many rounds the budget is for", None)
        fits, expected = self.budget <= rounds, f"at most {rounds} rounds"
        check(fits, "budget", expected, self.budget, InvalidBudgetError)
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
        """Return the rounds for which the gain of a query counts, shape ``(*batch,)``.

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
        # Differences from 1 by their logarithms: 1 - keep would lose its digits where little fades.
        forgets = torch.as_tensor(progress.forgetting, dtype=torch.float64)
        log_keep = math.log(self.discount) + 0.5 * (-forgets).log1p() + (-share).log1p()
        log_keep = torch.where(fades, log_keep.clamp(min=-700), -1.0)
        series = keep * (left * log_keep).expm1() / log_keep.expm1()
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
        lasting = moved(effective_horizon, like) * prospect.gain
        lookahead = torch.zeros_like(like)
        if self.lookahead_weight > 0:
            foreseen = torch.as_tensor(prospect.lookahead, dtype=torch.float64)
            lookahead = self.lookahead_weight * moved(foreseen, like)
        earns = prospect.mean + lasting + lookahead - comparison.mean
        price = moved(self._price_of(progress), like).expand(like.shape)
        first = torch.as_tensor(progress.queries) == 0
        first, due = (
            moved(mask, torch.empty_like(like, dtype=torch.bool)).expand(like.shape)
            for mask in (first, self._is_due(progress))
        )
        pays = earns > price
        cause = choose(pays, Cause.PAYS, choose(due, Cause.DUE, Cause.DOES_NOT_PAY))
        cause = choose(first, Cause.FIRST, cause)
        confidence = torch.full_like(like, torch.nan)
        earns_exactly = earns.double()
        rounds = moved(effective_horizon, earns_exactly)
        rate = torch.where(rounds > 0, earns_exactly / rounds, torch.nan)
        value, price = (progress.scale * amount for amount in (earns, price))
        return Verdict(first | pays | due, confidence, cause, value, price, rate)

    @property
    def reads_rewards(self) -> bool:
        """Whether the price is in rewards: a budget is not."""
        return self.budget is None

    def explain(self, verdict: Verdict) -> str:
        """Say in words why a verdict without a batch fell as it did, in units of the reward."""
        words = super().explain(verdict)
        if verdict.value is None or verdict.price is None:
            return words
        return f"{words} (value {float(verdict.value):.3g}, price {float(verdict.price):.3g})"

    def _is_due(self, progress: Progress) -> Tensor:
        """Return whether the budget suffices for every round left, in each of which it is spent then."""
        if self.budget is None:
            return torch.zeros((), dtype=torch.bool)
        return self._queries_left(progress) >= self._rounds_left(progress) + 1

    def _queries_left(self, progress: Progress) -> Tensor:
        assert self.budget is not None
        return self.budget - torch.as_tensor(progress.queries, dtype=torch.float64)

    def _price_of(self, progress: Progress) -> Tensor:
        """Return the price of a query in units of the belief."""
        if self.budget is not None:
            return self._price_of_budget(progress)
        price = self.price
        if price is None:
            assert self.price_seconds is not None
            assert self.round_seconds is not None
            # Where training earns nothing, or what it earns is unknown, time is worth nothing.
            reward_rate = max(progress.reward_rate or 0.0, 0.0)
            endless = self.price_seconds == math.inf
            price = math.inf if endless else self.price_seconds / self.round_seconds * reward_rate
        return torch.tensor(price / progress.scale, dtype=torch.float64)

    def _price_of_budget(self, progress: Progress) -> Tensor:
        """Return what the queries that can be afforded would earn now, in units of the belief."""
        assert self.budget is not None
        need = (self._queries_left(progress) / (self._rounds_left(progress) + 1)).clamp(0, 1)
        price = torch.zeros_like(need)
        if progress.query_values is not None:
            rounds = self._horizon(progress.horizon)
            assert rounds is not None
            share = (need.square() * rounds / self.budget).clamp(max=1)
            query_values, known = _lately(progress.query_values, _DUE / need)
            due = share * known
            rank = (known - due).long().clamp_min(0).minimum((known - 1).clamp_min(0))
            dearer = query_values.gather(-1, rank.unsqueeze(-1)).squeeze(-1).clamp_min(0)
            now = self.effective_horizon(progress) * dearer * due.clamp(max=1).rsqrt()
            fewest = min(_FEWEST_QUERY_VALUES, _FIRST_SHARE * self.budget)
            price = torch.where(known >= fewest, now, price)
        return torch.where(need > 0, price, torch.inf)

    def _horizon(self, of_run: int | None) -> int | None:
        """Return the rule's own horizon, or else the run's."""
        return of_run if self.horizon is None else self.horizon

    def _rounds_left(self, progress: Progress) -> float:
        horizon = self._horizon(progress.horizon)
        return math.inf if horizon is None else max(horizon - progress.round, 0)


def _lately(query_values: Tensor, rounds: Tensor) -> tuple[Tensor, Tensor]:
    """Return the values known of the last ``rounds`` (``*batch``), ascending, and their number."""
    ages = torch.arange(query_values.shape[-1], dtype=rounds.dtype, device=rounds.device).flip(0)
    recent = (ages < rounds.clamp(_FEWEST_RECENT, RECENT).unsqueeze(-1)) & query_values.isfinite()
    ascending = torch.where(recent, query_values.double(), torch.inf).sort(-1).values
    return ascending, recent.sum(-1)
