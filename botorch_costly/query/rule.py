"""The interface of query rules: their inputs and outputs.

A rule decides *whether* to pay for a query. It depends on no model and no domain: its inputs are the
posterior at the candidate and its rivals, the progress of the run, and an explicit generator. It changes
none of them, except that it draws from the generator. Any rule therefore works with any model, for one
run or a batch of trials.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor

from botorch_costly.device import is_near, moved
from botorch_costly.errors import check
from botorch_costly.randomness import check_generator

RECENT = 30  # last rounds whose query values ``Progress`` holds

UnqueriedPlay = Literal["acquisition", "mean"]
"""The configuration of a round without a query: the maximizer of the acquisition function or the mean."""


class Prospect(NamedTuple):
    """The expected benefit of a query, at the configuration where a query is worth most."""

    mean: Tensor  # of the configuration that would be queried, shape: (*batch,)
    gain: Tensor  # its knowledge gradient: expected increase of the largest mean, (*batch,)
    lookahead: Tensor | float = 0.0  # expected increase of the next query's value, (*batch,)


class Outlook(NamedTuple):
    """How a rule values a query: ``mean + effective_horizon * gain + lookahead_weight * lookahead``."""

    # Rounds for which the gain of a query counts.
    effective_horizon: Tensor | float  # shape: (*batch,)
    price: Tensor | float = 0.0  # of the next query, in units of the belief, shape: (*batch,)
    lookahead_weight: float = 0.0  # share of the lookahead that counts; at 0 it is not computed


class Comparison(NamedTuple):
    """The posterior at the candidate, the configuration about to be played, and at its rivals.

    Rivals are the other local optima of the acquisition function (or the other arms). With a prospect
    the candidate is the configuration that a round without a query would play, the maximizer of the mean.
    """

    mean: Tensor  # of the candidate, shape: (*batch,)
    variance: Tensor  # of the candidate, shape: (*batch,)
    rival_mean: Tensor  # shape: (*batch, m)
    rival_variance: Tensor  # shape: (*batch, m)
    rival_covariance: Tensor | None  # with the candidate, shape: (*batch, m)
    exists: Tensor  # which of the m places hold a rival, bool, shape: (*batch, m)
    beta: Tensor  # of the round's confidence bounds, shape: (*batch,)
    prospect: Prospect | None = None  # for rules with an outlook


class Progress(NamedTuple):
    """The progress of a run, and the quantities of the run by which a rule values a query.

    Where configurations are held for several rounds, ``round`` and ``horizon`` count these intervals,
    each of which has at most one query.
    """

    round: int  # the current round, from 1
    queries: Tensor | int = 0  # queries paid for so far, shape: (*batch,)
    horizon: int | None = None  # rounds of the run, if known
    forgetting: Tensor | float = 0.0  # current estimate of the rate per round, shape: (*batch,)
    # Sum of the weights (1 - forgetting)^age of the queries so far.
    effective_queries: Tensor | float = 0.0  # shape: (*batch,)
    # Share of one query in the information that distinguishes configurations.
    information_share: float = 1.0
    scale: float = 1.0  # reward that corresponds to 1 in units of the posterior
    reward_rate: float | None = None  # mean reward of a round, if known
    # Rates of the last RECENT verdicts in order, NaN if unknown.
    query_values: Tensor | None = None  # shape: (*batch, w)
    # Further queries that a share of the clock affords until the end of the run, if there is a share; in
    # the next RECENT rounds if the end is not known.
    affordable: float | None = None
    # Uniform number in [0, 1) for each trial, drawn beforehand; replaces a draw from the generator.
    coin: Tensor | None = None  # shape: (*batch,)


class Cause(IntEnum):
    """The reason for a verdict."""

    ALWAYS = 0
    CHANCE = 1  # the coin came up for a query
    NO_CHANCE = 2  # the coin came up against a query
    UNSURE = 3  # some rival may well be better
    SURE = 4  # no rival is likely to be better
    SPENT = 5  # the quota is used up
    DUE = 6  # the lower quota or the budget needs all remaining rounds
    OVERLAP = 7  # the confidence interval of some rival overlaps with the candidate's
    APART = 8  # no rival's confidence interval overlaps
    FIRST = 9  # there is no observation yet
    PAYS = 10  # the query earns more than its price
    DOES_NOT_PAY = 11  # the query earns at most its price


_REASONS: dict[int, str] = {
    Cause.ALWAYS: "full feedback",
    Cause.CHANCE: "drawn for a query",
    Cause.NO_CHANCE: "not drawn for a query",
    Cause.UNSURE: "a rival may be better (confidence {confidence:.2f})",
    Cause.SURE: "no rival is likely to be better (confidence {confidence:.2f})",
    Cause.SPENT: "the quota of queries is spent",
    Cause.DUE: "every round left is needed to spend the quota",
    Cause.OVERLAP: "the confidence bounds of a rival overlap with the candidate's",
    Cause.APART: "no rival's confidence bounds overlap with the candidate's",
    Cause.FIRST: "nothing is known yet",
    Cause.PAYS: "a query is worth its price",
    Cause.DOES_NOT_PAY: "a query is not worth its price",
}


class Verdict(NamedTuple):
    """Whether to query, and why."""

    query: Tensor  # bool, shape: (*batch,)
    # Least P(candidate beats rival): 1 without rivals, NaN where the rule does not compute it.
    confidence: Tensor  # shape: (*batch,)
    cause: Tensor  # Cause, long, shape: (*batch,)
    value: Tensor | None = None  # of a query, in units of the reward, shape: (*batch,)
    price: Tensor | None = None  # of a query, in units of the reward, shape: (*batch,)
    # Value of a query divided by the effective horizon, in units of the posterior; NaN for a horizon
    # of 0. It is among the query_values of later rounds, which a rule with a budget reads.
    rate: Tensor | None = None  # shape: (*batch,)


class QueryRule(ABC):
    """A rule that decides whether to pay for a query.

    A subclass sets ``needs_rivals = True`` if the comparison has to include rivals: finding them takes a
    multistart optimization in continuous domains. A rule that compares the value of a query with its
    price overrides ``outlook``; its comparisons then have a prospect.

    A call does not change the rule. Settings for a single run, such as its number of intervals, are in
    the rule that ``for_run`` returns, which makes and explains the decisions of that run.
    """

    budget: int | None = None  # queries for a run, including those of an initial design

    @property
    def needs_rivals(self) -> bool:
        """Whether the comparison has to include rivals."""
        return False

    @property
    def reads_covariances(self) -> bool:
        """Whether the covariances of the candidate with its rivals are used."""
        return True

    @property
    def reads_rewards(self) -> bool:
        """Whether the rule compares the posterior with numbers in units of the reward."""
        return False

    @property
    def spends_share(self) -> bool:
        """Whether the rule needs to know how many queries a share of the clock affords."""
        return False

    @property
    def has_outlook(self) -> bool:
        """Whether ``outlook`` returns one, which takes less time than to compute it."""
        return type(self).outlook is not QueryRule.outlook

    def outlook(self, progress: Progress) -> Outlook | None:
        """Return how the rule values a query, or None if its decision does not depend on that.

        With an outlook, a round with a query plays the configuration where a query is worth most, and a
        round without one plays the maximizer of the mean.
        """
        return None

    def for_run(self, intervals: Callable[[int], int], horizon: int | None) -> "QueryRule":
        """Return the rule for one run with at most one query in each interval.

        Args:
            intervals: Function from a number of rounds to the number of intervals that begin in them.
            horizon: Rounds of the run, None if unknown.
        """
        return self

    def unspendable(self, intervals: Callable[[int], int], horizon: int | None) -> str | None:
        """Return a note on queries that the run has no room for, with a remedy; None if there are none.

        Args:
            intervals: Function from a number of rounds to the number of intervals that begin in them.
            horizon: Rounds of the run, None if unknown.
        """
        return None

    def check_run(self, horizon: int | None) -> None:  # noqa: B027  most rules serve any run
        """Raise unless the rule can serve a run of ``horizon`` rounds, None if unknown."""

    @abstractmethod
    def __call__(
        self, comparison: Comparison, progress: Progress, generator: torch.Generator
    ) -> Verdict:
        """Decide for a comparison of any batch shape."""

    def explain(self, verdict: Verdict) -> str:
        """Return the reason for a verdict without a batch, in words.

        A rule with its own causes numbers them from 100 and overrides this method.
        """
        reason = _REASONS.get(int(verdict.cause))
        if reason is None:  # the rule has its own causes and does not explain them
            return f"decided by {type(self).__name__}"
        return reason.format(confidence=float(verdict.confidence))

    def _with(self, **changes: Any) -> Self:
        """Return a copy of the same class with some attributes replaced."""
        other = copy.copy(self)
        for name, value in changes.items():
            object.__setattr__(other, name, value)  # rules are frozen
        return other


def check_priced(rule: QueryRule, overhead: float | None = None) -> None:
    """Raise if a rule spends a share of the clock, and there is none.

    Args:
        rule: Query rule.
        overhead: Share of the clock, if the run is on the clock.

    Raises:
        InvalidArgumentError: If it is such a rule.
    """
    expected = "a price, price_seconds or budget, or overhead= of the tuner"
    check(overhead is not None or not rule.spends_share, "query", expected, rule)


def no_room(quota: str, intervals: int) -> str:
    """Return the note that a run has fewer intervals than the quota has queries."""
    return (
        f"{quota} cannot be spent: the run has {intervals} intervals (rounds that hold a configuration),"
        f" each with at most one query. With hold=Hold(share=0) each round is an interval."
    )


def toss(
    comparison: Comparison,
    probability: float,
    generator: torch.Generator,
    coin: Tensor | None = None,  # shape: (*batch,)
) -> Tensor:  # shape: (*batch,)
    """Return a Bernoulli variable for each trial, true with ``probability``.

    Args:
        comparison: Comparison that sets shape and device.
        probability: Probability of true.
        generator: Generator on any device; used only without ``coin``.
        coin: Uniform numbers drawn beforehand, see :class:`Progress`.

    Raises:
        InvalidArgumentError: If there is neither coin nor generator; the global generator is never used.
    """
    if coin is not None:
        return _at(coin < probability, comparison).expand(comparison.mean.shape)
    generator = check_generator(generator)
    shape, device = comparison.mean.shape, generator.device
    coins = torch.rand(shape, generator=generator, device=device, dtype=torch.float64)
    return _at(coins < probability, comparison)


def _at(mask: Tensor, comparison: Comparison) -> Tensor:
    """Return a mask on the device of the comparison, without synchronizing with that device."""
    return mask.to(comparison.mean.device, non_blocking=is_near(mask))


def fresh_coin(coin: Tensor | None, probability: float) -> Tensor | None:
    """Return a uniform number that is independent of whether ``coin < probability``.

    Conditional on either side of the probability a coin is uniform on that side; stretched to [0, 1) it
    is a fresh coin.

    Example:
        >>> fresh_coin(torch.tensor([0.1, 0.6]), 0.2)
        tensor([0.5000, 0.5000])
    """
    if coin is None:
        return None
    below = coin < probability
    # The guards against division by 0 are never read: no coin falls on a side of width 0.
    return torch.where(
        below, coin / max(probability, 1e-300), (coin - probability) / max(1 - probability, 1e-300)
    )


def choose(query: Tensor, if_query: Tensor | Cause, if_skip: Tensor | Cause) -> Tensor:
    """Return ``if_query`` for the trials that query, and ``if_skip`` for the others."""
    if isinstance(if_query, Cause) and isinstance(if_skip, Cause):
        return torch.where(query, int(if_query), int(if_skip))
    long = query.new_zeros((), dtype=torch.long)
    yes, no = (
        torch.full_like(long, int(cause)) if isinstance(cause, Cause) else moved(cause, long)
        for cause in (if_query, if_skip)
    )
    return torch.where(query, yes, no)
