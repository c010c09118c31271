"""What every query rule reads and returns.

A rule decides *whether* a query is worth its price. It knows no model and no domain: it reads a belief
about the candidate and its rivals, how far the run has come, and an explicit generator, and is a pure
function of the three: it changes none of them but for the draws of the generator. Any rule therefore
works with any model, one run or a batch of trials.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor

from botorch_costly.device import is_near, moved
from botorch_costly.randomness import check_generator

RECENT = 30  # rounds of which a rule hears what a query would have earned

UnqueriedPlay = Literal["acquisition", "mean"]
"""What a round without a query plays: the maximizer of the acquisition function or of the mean."""


class Prospect(NamedTuple):
    """What a query would find out, at the configuration where it promises most."""

    mean: Tensor  # of the configuration that would be queried, shape: (*batch,)
    gain: Tensor  # its knowledge gradient: what the query adds to the largest mean, (*batch,)
    lookahead: Tensor | float = 0.0  # what the next query would earn more after this one, (*batch,)


class Outlook(NamedTuple):
    """How a rule values a query: ``mean + effective_horizon * gain + lookahead_weight * lookahead``."""

    # Rounds for which the gain of a query counts.
    effective_horizon: Tensor | float  # shape: (*batch,)
    price: Tensor | float = 0.0  # of the next query, in units of the belief, shape: (*batch,)
    lookahead_weight: float = 0.0  # share of the lookahead that counts; at 0 it is not worked out


class Comparison(NamedTuple):
    """The belief about the candidate, the configuration about to be played, and its rivals.

    Rivals are the other local optima of the acquisition function (or the other arms). With a
    prospect the candidate is what a round without a query would play: the maximizer of the mean.
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
    """How far a run has come, and what a rule must know about it to weigh a query.

    Where configurations are held, ``round`` and ``horizon`` count intervals, of which each has at most
    one query.
    """

    round: int  # the current round, from 1
    queries: Tensor | int = 0  # queries paid for so far, shape: (*batch,)
    horizon: int | None = None  # rounds of the run, if known
    forgetting: Tensor | float = 0.0  # rate as believed now, per round, shape: (*batch,)
    # Sum over the queries so far, each by the share (1 - forgetting)^age that it still weighs.
    effective_queries: Tensor | float = 0.0  # shape: (*batch,)
    information_share: float = 1.0  # share that a query tells of what tells configurations apart
    scale: float = 1.0  # rewards in a unit of the belief
    reward_rate: float | None = None  # reward that a round earned on average, if known
    # Rates of the last RECENT verdicts in order, NaN if unknown.
    query_values: Tensor | None = None  # shape: (*batch, w)
    # A uniform number in [0, 1) for each trial, drawn beforehand: tossed instead of the generator's.
    coin: Tensor | None = None  # shape: (*batch,)


class Cause(IntEnum):
    """Why a rule decided as it did."""

    ALWAYS = 0
    CHANCE = 1  # a coin said query
    NO_CHANCE = 2  # a coin said skip
    UNSURE = 3  # some rival may well be better
    SURE = 4  # no rival is likely to be better
    SPENT = 5  # the quota is used up
    DUE = 6  # the rounds left are needed for the lower quota or the budget
    OVERLAP = 7  # some rival's confidence bound reaches the candidate's
    APART = 8  # no rival's confidence bound does
    FIRST = 9  # without a query nothing is known
    PAYS = 10  # the query earns more than its price
    DOES_NOT_PAY = 11  # it does not


class Verdict(NamedTuple):
    """Whether to query, and why."""

    query: Tensor  # bool, shape: (*batch,)
    # Least P(candidate beats rival): 1 without rivals, NaN where the rule does not work it out.
    confidence: Tensor  # shape: (*batch,)
    cause: Tensor  # Cause, long, shape: (*batch,)
    value: Tensor | None = None  # what a query earns, in units of the reward, shape: (*batch,)
    price: Tensor | None = None  # what a query costs, in units of the reward, shape: (*batch,)
    # What a query earns over its effective horizon, in units of the belief, NaN without a horizon.
    # A rule with a budget hears of it again in the query_values of later rounds.
    rate: Tensor | None = None  # shape: (*batch,)


class QueryRule(ABC):
    """Whether to pay for a query.

    A subclass says with ``needs_rivals = True`` that the comparison has to name rivals: finding them
    costs a multistart optimization in continuous domains. A rule that weighs what a query earns says with
    ``outlook`` how; it is then asked about a comparison with a prospect.

    A rule is not changed by being asked. What holds for one run only, such as the number of its
    intervals, is in the rule that ``for_run`` returns, which decides in that run and explains it.
    """

    budget: int | None = None  # queries it has for a run, those of an initial design among them

    @property
    def needs_rivals(self) -> bool:
        """Whether the comparison has to name rivals."""
        return False

    @property
    def reads_covariances(self) -> bool:
        """Whether the covariances of the candidate with its rivals are used."""
        return True

    @property
    def reads_rewards(self) -> bool:
        """Whether the rule compares beliefs with numbers in units of the reward."""
        return False

    def outlook(self, progress: Progress) -> Outlook | None:
        """Return how the rule weighs what a query would earn, or None if it does not ask.

        With an outlook, a round with a query plays the configuration at which that is most, and one
        without the maximizer of the mean.
        """
        return None

    def for_run(self, intervals: Callable[[int], int], horizon: int | None) -> "QueryRule":
        """Return the rule that decides and explains one run, in which each interval has one query.

        Args:
            intervals: From a number of rounds to the number of intervals that begin in them.
            horizon: Rounds of the run, None if unknown.
        """
        return self

    def unspendable(self, intervals: Callable[[int], int], horizon: int | None) -> str | None:
        """Return which of the queries asked for the run has no room for, and what helps, or None.

        Args:
            intervals: From a number of rounds to the number of intervals that begin in them.
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
        """Say in words why a verdict without a batch fell as it did.

        A rule with causes of its own numbers them from 100 and overrides this.
        """
        number = int(verdict.cause)
        if number not in set(Cause):  # the cause of a rule that does not explain it
            return f"decided by {type(self).__name__}"
        cause = Cause(number)
        words = {
            Cause.ALWAYS: "full feedback",
            Cause.CHANCE: "drawn for a query",
            Cause.NO_CHANCE: "not drawn for a query",
            Cause.UNSURE: f"a rival may be better (confidence {float(verdict.confidence):.2f})",
            Cause.SURE: f"no rival is likely to be better (confidence {float(verdict.confidence):.2f})",
            Cause.SPENT: "the quota of queries is spent",
            Cause.DUE: "every round left is needed to spend the quota",
            Cause.OVERLAP: "the confidence bounds of a rival overlap with the candidate's",
            Cause.APART: "no rival's confidence bounds overlap with the candidate's",
            Cause.FIRST: "nothing is known yet",
            Cause.PAYS: "a query is worth its price",
            Cause.DOES_NOT_PAY: "a query is not worth its price",
        }
        return words[cause]

    def _with(self, **changes: Any) -> Self:
        """Return a copy with other values of some attributes, of the class of a caller's subclass."""
        other = copy.copy(self)
        for name, value in changes.items():
            object.__setattr__(other, name, value)  # rules are frozen
        return other


def no_room(what: str, most: int) -> str:
    """Return the note on queries that a run has too few intervals for."""
    return (
        f"{what} cannot be spent: the run has {most} intervals, rounds for which one configuration is"
        f" held, of which each has at most one query. With hold=Hold(share=0) each round is an interval."
    )


def toss(
    comparison: Comparison,
    probability: float,
    generator: torch.Generator,
    coin: Tensor | None = None,  # shape: (*batch,)
) -> Tensor:  # shape: (*batch,)
    """Return one coin for each trial, true with ``probability``.

    Args:
        comparison: Gives shape and device.
        probability: Of true.
        generator: Drawn from unless there is a coin, on whichever device it is.
        coin: Uniform numbers drawn beforehand, see :class:`Progress`.

    Raises:
        InvalidArgumentError: If there is neither coin nor generator; the global one is never drawn from.
    """
    if coin is not None:
        return _at(coin < probability, comparison).expand(comparison.mean.shape)
    generator = check_generator(generator)
    shape, device = comparison.mean.shape, generator.device
    coins = torch.rand(shape, generator=generator, device=device, dtype=torch.float64)
    return _at(coins < probability, comparison)


def _at(mask: Tensor, comparison: Comparison) -> Tensor:
    """Return a mask on the device of the comparison, which is not waited for."""
    return mask.to(comparison.mean.device, non_blocking=is_near(mask))


def left_of(coin: Tensor | None, probability: float) -> Tensor | None:
    """Return the uniform number that a coin still is, whichever way it fell.

    Below ``p`` it is uniform there, above as well: stretched to [0, 1) it is independent of how it fell,
    and may be tossed again.

    Example:
        >>> left_of(torch.tensor([0.1, 0.6]), 0.2)
        tensor([0.5000, 0.5000])
    """
    if coin is None:
        return None
    below = coin < probability
    # No coin is on a side of no width.
    return torch.where(
        below, coin / max(probability, 1e-300), (coin - probability) / max(1 - probability, 1e-300)
    )


def choose(query: Tensor, if_query: Tensor | Cause, if_skip: Tensor | Cause) -> Tensor:
    """Return the cause for each trial, by whether it queries."""
    long = query.new_zeros((), dtype=torch.long)
    yes, no = (
        torch.full_like(long, int(c)) if isinstance(c, Cause) else moved(c, long)
        for c in (if_query, if_skip)
    )
    return torch.where(query, yes, no)
