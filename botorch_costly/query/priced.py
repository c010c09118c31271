r"""Query when a query earns more than it costs.

A query at ``x`` raises the expected reward of the best configuration by the knowledge gradient
``KG(x)`` in each of ``H`` rounds, the effective horizon for which its information stays valid. It costs
its price and the regret of playing ``x`` for one round. So a round

    queries at  argmax mean(x) + H KG(x) + w lookahead(x)   if the maximum exceeds   max mean + price,

and plays argmax mean otherwise. The lookahead is the expected increase of the next query's value due to
this query, see ``numerics/lookahead.py``. Without it the rule never climbs a hill of which one query
shows only the foot. It counts in part, by the lookahead weight ``w``, since it ignores all queries after
the next one.

**The effective horizon H.** Without later queries a mean decays by ``a = sqrt(1 - forgetting)`` a round,
and so does the advantage of one configuration over another. A single query is therefore worth ``KG sum_s
a^s``, the gain of about ``2 / forgetting`` rounds. Later queries supersede it: they would have provided
part of its information anyway.

Supersession depends on the information share, the share of one query in the information that
distinguishes configurations (see ``numerics/stationary.py``). Queries at a rate ``r`` per round replace
the share ``r * information share`` of this information in each round, and so

    H = sum_{s = 1}^{T - t} b^s,    b = discount * a * (1 - supersession * information share * r),

for ``T - t`` remaining rounds; the factor ``supersession`` was chosen by simulation. The rate is that of
the run itself, ``r = forgetting * effective queries`` with ``effective queries = sum_i (1 -
forgetting)^{age_i}`` over its queries: at a constant rate this sum is ``r / forgetting``.

**A budget** determines the price within the run: the current value of the last query that the budget can
afford. With ``need = queries left / rounds left`` and ``even = budget / rounds`` of the whole run, the
price is ``H`` times the ``1 - need^2 / even`` quantile of the values of queries in recent rounds, each
divided by the effective horizon of its round.

- A share ``need^2 / even`` of rounds is queried: a run that is ahead of an even pace slows down.
- The division by the effective horizon matters since ``H`` falls towards the end of a run: undivided, no
  late query would reach the values of earlier ones, and part of the budget would remain.
- The recent rounds are those in which three queries are due, at least 12 and at most 30. Fewer rounds
  are too few for a quantile of so rare an event; more adapt slowly when the run changes.
- Where less than one query is due in the recent rounds, the price is their maximum divided by the square
  root of the number due.
- Once the queries left suffice for all rounds left, every round has one, for they are already paid.

**A share of the clock** is such a budget, of as many queries as the seconds measured so far allow until
the end of the run, or in the next 30 rounds if the end is not known. Where ``need^2 / even`` is 1 or
more, the price is 0: else a run whose queries were worth more before would lose its share.

Sources: the knowledge gradient is that of Frazier, Powell & Dayanik (2009); price, effective horizon
and budget are this package's own.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields

import torch
from torch import Tensor

from botorch_costly.calls import advised
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
    warn_caller,
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
# benchmarks/README.md for the comparison and its confirmation on fresh seeds.
SUPERSESSION = 0.8
LOOKAHEAD_WEIGHT = 0.5
_DUE, _FEWEST_RECENT = (
    3,
    12,
)  # queries due in the recent rounds, and the least number of recent rounds
# With fewer values a price cannot be estimated, and every round is queried, but the number of values that
# is required is at most this share of the budget.
_FEWEST_QUERY_VALUES = 8
_FIRST_SHARE = 0.2
_SEEMS_A_COUNT = 2  # whole number above which a price seems one: the largest gain of GainReward


@advised
@dataclass(frozen=True, repr=False)
class PricedQuery(QueryRule):
    """Query when a query earns more than its price; play the maximizer of the posterior mean otherwise.

    One of ``price``, ``price_seconds`` and ``budget`` sets the cost of a query. Without all three the
    budget is that of the tuner's ``overhead``: the queries that this share of the clock affords until the
    end of the run, by measured seconds. Rounds of an initial design, such as that of ``OnlineTuner``,
    have a query at any price, and count. This module's docstring has the derivation.

    Args:
        price: Price of a query in units of the reward of one round, or of one interval where
            configurations are held: with ``GainReward("loss")`` a price of 0.02 corresponds to a decrease
            of the loss by 2 %. At an infinite price only the first query is taken.
        price_seconds: Duration of a query in seconds. Its price is the mean reward of training over the
            same time, recent rounds weighing more. Rewards must therefore be gains of a round; if their
            mean is negative, the price is 0.
        round_seconds: Duration of a round of training without a query, for a price in seconds.
        budget: Queries over the horizon instead of a price, spent where they earn most, at most one in
            each interval for which a configuration is held. The only one of the three
            that is compatible with rewards replaced by their ranks, as is the budget of an ``overhead``.
        horizon: Rounds of the run, an integer >= 1; the run's own if omitted.
        discount: Factor by which a reward loses value per round, in (0, 1]; below 1 without a horizon.
        supersession: Factor for how quickly later queries supersede the current one, >= 0.
        lookahead_weight: Share in [0, 1] of the lookahead that counts. At 0 it is not computed, and a
            decision takes less time.

    Raises:
        InvalidArgumentError: If more than one of the three is given, or one is outside its range.
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
        costs = [v for v in (self.price, self.price_seconds, self.budget) if v is not None]
        expected = "at most one of the three"
        check(len(costs) <= 1, "price, price_seconds, budget", expected, costs)
        if self.budget is not None:
            object.__setattr__(self, "budget", check_count("budget", self.budget, minimum=1))
        elif costs and costs[0] != math.inf:
            check_nonnegative("price" if self.price_seconds is None else "price_seconds", costs[0])
        if self.price_seconds is None:
            is_unset = self.round_seconds is None
            check(is_unset, "round_seconds", "None without price_seconds", self.round_seconds)
        elif self.round_seconds is None:
            raise InvalidArgumentError("round_seconds", "the duration of a round of training", None)
        else:
            check_positive("round_seconds", self.round_seconds)
        if type(self.price) is int and self.price > _SEEMS_A_COUNT:
            warn_caller(
                f"PricedQuery({self.price}) is a price of {self.price} units of the reward for a query. "
                f"A number of queries is PricedQuery(budget={self.price}); a price that is meant is "
                f"{float(self.price)}."
            )
        check_nonnegative("supersession", self.supersession)
        check_rate("lookahead_weight", self.lookahead_weight)
        if self.discount != 1 or isinstance(self.discount, bool):
            check_probability("discount", self.discount)
        if self.horizon is not None:
            object.__setattr__(self, "horizon", check_count("horizon", self.horizon, minimum=1))
            self.check_run(self.horizon)

    def __repr__(self) -> str:
        """Return the arguments that differ from their defaults."""
        values = ((field, getattr(self, field.name)) for field in fields(self))
        chosen = (f"{field.name}={value!r}" for field, value in values if value != field.default)
        return f"{type(self).__name__}({', '.join(chosen)})"

    def for_run(self, intervals: Callable[[int], int], horizon: int | None) -> "PricedQuery":
        """Return the rule with its horizon in intervals, and a budget of at most one query in each."""
        rounds = self._horizon(horizon)
        if rounds is None:
            return self
        return self._with(
            horizon=None if self.horizon is None else intervals(self.horizon),
            budget=None if self.budget is None else min(self.budget, intervals(rounds)),
        )

    def unspendable(self, intervals: Callable[[int], int], horizon: int | None) -> str | None:
        """Return a note that the run has no room for the budget, with a remedy; None if it has."""
        rounds = self._horizon(horizon)
        if self.budget is None or rounds is None or self.budget <= intervals(rounds):
            return None
        return no_room(f"The budget of {self.budget} queries", intervals(rounds))

    def check_run(self, horizon: int | None) -> None:
        """Raise unless the rule can serve a run of ``horizon`` rounds, None if unknown.

        Raises:
            InvalidArgumentError: If the horizon is unknown and there is no discount.
            InvalidBudgetError: If the budget exceeds the number of rounds, if that number is unknown, or
                if the rule's horizon exceeds the run's.
        """
        rounds = self._horizon(horizon)
        finite = rounds is not None or self.discount < 1
        check(finite, "horizon", "a number of rounds, or a discount below 1 without one", rounds)
        if self.budget is None:  # a share of the clock may be of a run without a known end
            return
        if rounds is None:
            raise InvalidBudgetError("horizon", "how many rounds the budget is for", None)
        fits, expected = self.budget <= rounds, f"at most {rounds} rounds"
        check(fits, "budget", expected, self.budget, InvalidBudgetError)
        lasts = horizon is None or rounds <= horizon
        expected = f"at most the {horizon} rounds of the run"
        check(lasts, "horizon", expected, rounds, InvalidBudgetError)

    def outlook(self, progress: Progress) -> Outlook:
        """Return how the rule values a query.

        Raises:
            CostlyError: If the rule cannot serve the run, see ``check_run``.
        """
        return Outlook(
            self.effective_horizon(progress), self._price_of(progress), self.lookahead_weight
        )

    def effective_horizon(self, progress: Progress) -> Tensor:
        """Return the rounds for which the gain of a query counts, shape ``(*batch,)``.

        Raises:
            CostlyError: If the rule cannot serve the run, see ``check_run``.
        """
        self.check_run(progress.horizon)
        rate, left = progress.forgetting, self._rounds_left(progress)
        scale = self.supersession * progress.information_share
        replaced = scale * (rate * progress.effective_queries)
        if not (isinstance(rate, Tensor) or isinstance(replaced, Tensor)):
            # Python's numbers take a tenth of the time.
            rounds = _rounds_of_gain(self.discount, rate, min(replaced, 1.0), left)
            return torch.tensor(rounds, dtype=torch.float64)
        rate, replaced = (torch.as_tensor(x, dtype=torch.float64) for x in (rate, replaced))
        # Logarithms keep the digits that 1 - keep would lose for a slow decay.
        log_keep = 0.5 * (-rate).log1p() + (-replaced.clamp(max=1)).log1p()
        log_keep = (log_keep + math.log(self.discount)).clamp(
            min=-1e4
        )  # minus infinity becomes finite
        series = log_keep.exp() * (left * log_keep).expm1() / log_keep.expm1()
        # Without decay, each of the rounds left counts in full.
        return torch.where(log_keep < 0, series, left)

    def __call__(
        self, comparison: Comparison, progress: Progress, generator: torch.Generator
    ) -> Verdict:
        """Decide for a comparison of any batch shape."""
        prospect = comparison.prospect
        if prospect is None:
            raise InvalidArgumentError("prospect", "a Prospect of the query", None)
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
    def spends_share(self) -> bool:
        """Whether the budget is that of a share of the clock."""
        return self.budget is None and not self.reads_rewards

    @property
    def reads_rewards(self) -> bool:
        """Whether the price is in units of the reward, which a budget is not."""
        return self.price is not None or self.price_seconds is not None

    def explain(self, verdict: Verdict) -> str:
        """Return the reason for a verdict without a batch, with value and price in reward units."""
        words = super().explain(verdict)
        if verdict.value is None or verdict.price is None:
            return words
        return f"{words} (value {float(verdict.value):.3g}, price {float(verdict.price):.3g})"

    def _is_due(self, progress: Progress) -> Tensor:
        """Return whether the budget suffices for a query in every round left."""
        if self.reads_rewards:
            return torch.zeros((), dtype=torch.bool)
        return self._queries_left(progress) >= self._rounds_left(progress) + 1

    def _queries_left(self, progress: Progress) -> Tensor:
        """Return the queries that the budget has left; of a share at most one in each round left."""
        if self.budget is not None:
            return self.budget - torch.as_tensor(progress.queries, dtype=torch.float64)
        if progress.affordable is None:
            expected = "a price, price_seconds or budget, or a tuner with overhead="
            raise InvalidArgumentError("query", expected, self)
        rounds = self._rounds_in_view(progress) - progress.round + 1
        affordable = min(max(progress.affordable, 0.0), rounds)
        return torch.as_tensor(affordable, dtype=torch.float64)

    def _price_of(self, progress: Progress) -> Tensor:
        """Return the price of a query in units of the posterior."""
        if not self.reads_rewards:
            return self._price_of_budget(progress)
        price = self.price
        if price is None:
            assert self.price_seconds is not None
            assert self.round_seconds is not None
            # Time is free where the mean reward is unknown or not positive.
            reward_rate = max(progress.reward_rate or 0.0, 0.0)
            infinite = self.price_seconds == math.inf
            price = math.inf if infinite else self.price_seconds / self.round_seconds * reward_rate
        return torch.tensor(price / progress.scale, dtype=torch.float64)

    def _price_of_budget(self, progress: Progress) -> Tensor:
        """Return the current value of the last query that the budget can afford, in posterior units."""
        rounds, left = self._rounds_in_view(progress), self._queries_left(progress)
        need = (left / max(rounds - progress.round + 1, 1)).clamp(0, 1)
        price = torch.zeros_like(need)
        if progress.query_values is not None:
            queries = torch.as_tensor(progress.queries, dtype=torch.float64)
            budget = torch.as_tensor(self.budget or (queries + left).clamp(min=1)).double()
            share = (need.square() * rounds / budget).clamp(max=1)
            query_values, count = _recent(progress.query_values, _DUE / need)
            due = share * count
            rank = (count - due).long().clamp_min(0).minimum((count - 1).clamp_min(0))
            quantile = query_values.gather(-1, rank.unsqueeze(-1)).squeeze(-1).clamp_min(0)
            current = self.effective_horizon(progress) * quantile * due.clamp(max=1).rsqrt()
            fewest = (_FIRST_SHARE * budget).clamp(max=_FEWEST_QUERY_VALUES)
            if self.spends_share:
                current = torch.where(share >= 1, 0.0, current)
            price = torch.where(count >= fewest, current, price)
        return torch.where(need > 0, price, torch.inf)

    def _horizon(self, run_horizon: int | None) -> int | None:
        return run_horizon if self.horizon is None else self.horizon

    def _rounds_in_view(self, progress: Progress) -> int:
        """Return the rounds of the run; those so far and ``RECENT`` more if its end is not known."""
        horizon = self._horizon(progress.horizon)
        return progress.round - 1 + RECENT if horizon is None else horizon

    def _rounds_left(self, progress: Progress) -> float:
        horizon = self._horizon(progress.horizon)
        return math.inf if horizon is None else max(horizon - progress.round, 0)


def _rounds_of_gain(discount: float, rate: float, replaced: float, left: float) -> float:
    """Return ``sum_s b^s`` over the rounds left, ``b = discount sqrt(1 - rate) (1 - replaced)``."""
    if rate == 1 or replaced == 1:
        return 0.0
    log_keep = math.log(discount) + 0.5 * math.log1p(-rate) + math.log1p(-replaced)
    if log_keep >= 0:
        return float(left)
    return math.exp(log_keep) * math.expm1(left * log_keep) / math.expm1(log_keep)


def _recent(query_values: Tensor, rounds: Tensor) -> tuple[Tensor, Tensor]:
    """Return the finite values of the last ``rounds`` (``*batch``), ascending, and their number."""
    ages = torch.arange(query_values.shape[-1], dtype=rounds.dtype, device=rounds.device).flip(0)
    recent = (ages < rounds.clamp(_FEWEST_RECENT, RECENT).unsqueeze(-1)) & query_values.isfinite()
    ascending = torch.where(recent, query_values.double(), torch.inf).sort(-1).values
    return ascending, recent.sum(-1)
