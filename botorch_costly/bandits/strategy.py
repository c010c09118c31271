"""The interface of bandit strategies, which advise an arm and learn from queries.

A strategy is a frozen configuration. Its knowledge is in a state, a named tuple of tensors over ``m``
trials that is replaced and never modified: a reference to a state is a copy, and its fields are saved.

Convention: rewards are in the unit of ``bandits.rewards``, [0, 1] without noise; rounds count from 0.
"""

from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from botorch_costly.query.rule import fresh_coin


class ArmBelief(NamedTuple):
    """A Gaussian posterior of the rewards of ``n`` arms in a round, an input of query rules."""

    mean: Tensor  # shape: (m, n)
    cov: Tensor  # shape: (m, n, n)
    prior_cov: Tensor  # shape: (m, n, n)
    noise: Tensor  # variance that a query adds, shape: (m,)
    forgetting: Tensor  # rate in [0, 1] per round at which observations lose weight, shape: (m,)


class Advice(NamedTuple):
    """The arms that a strategy would play in a round."""

    arm: Tensor  # long, shape: (m,)
    probability: Tensor  # with which the strategy plays that arm, shape: (m,)
    explored: Tensor  # bool: whether the arm was drawn uniformly among all arms, shape: (m,)
    belief: ArmBelief


class Told(NamedTuple):
    """The observations of a round, at most one for each trial."""

    round: Tensor  # in which the arm was played, float64, shape: (m,)
    arm: Tensor  # long, shape: (m,)
    reward: Tensor  # float64, shape: (m,)
    probability: Tensor  # of the advice, shape: (m,)
    explored: Tensor  # bool, of the advice, shape: (m,)
    query: Tensor  # bool: the trials with an observation, shape: (m,)


S = TypeVar("S", bound=tuple)


class Strategy(ABC, Generic[S]):
    """A strategy that chooses an arm by the observations so far.

    It works with any query rule: a round without a query does not change its state.
    """

    bounded = False  # whether rewards are clipped to [0, 1]

    @property
    def assumes_range(self) -> bool:
        """Whether a width, a temperature or a prior of the strategy is in units of the range."""
        return self.bounded

    # Whether a rule with an outlook may query another arm; no if learning needs the arm's probability.
    chooses = True

    @abstractmethod
    def begin(self, trials: int, arms: int, device: torch.device | str = "cpu") -> S:
        """Return the initial state of ``m`` trials with ``n`` arms."""

    def refresh(self, state: S, now: int) -> S:
        """Return the state for round ``now``, unchanged unless an update is due."""
        return state

    @abstractmethod
    def advise(
        self,
        state: S,
        now: int,
        luck: Tensor,  # uniform in [0, 1), shape: (m,)
    ) -> Advice:
        """Return the arm of each trial for round ``now``."""

    @abstractmethod
    def learn(self, state: S, told: Told) -> S:
        """Return the state after observations; that of trials without an observation is unchanged."""


def among_best(
    score: Tensor,  # shape: (m, n)
    luck: Tensor,  # uniform in [0, 1), shape: (m,)
) -> Tensor:  # long, shape: (m,)
    """Return an arm with the highest score, drawn uniformly among equals.

    Example:
        >>> among_best(torch.tensor([[1.0, 0.0, 1.0]]), torch.tensor([0.6]))
        tensor([2])
    """
    best = (score >= score.amax(-1, keepdim=True)).double()
    return drawn(best / best.sum(-1, keepdim=True), luck)


def drawn(
    probabilities: Tensor,  # shape: (m, n)
    luck: Tensor,  # uniform in [0, 1), shape: (m,)
) -> Tensor:  # long, shape: (m,)
    """Return arms drawn by inverting the distribution function; an arm of probability 0 is never drawn.

    Example:
        >>> drawn(torch.tensor([[0.2, 0.0, 0.8]]), torch.tensor([0.2]))
        tensor([2])
    """
    below = probabilities.cumsum(-1) <= luck[:, None]
    last = torch.where(probabilities > 0, torch.arange(probabilities.shape[-1]).to(luck.device), 0)
    # Rounding may leave the sum a little below 1, and a uniform number above it.
    return below.sum(-1).minimum(last.amax(-1))


def split(
    luck: Tensor,  # uniform in [0, 1), shape: (m,)
    share: float,
) -> tuple[Tensor, Tensor]:  # bool and uniform in [0, 1), both (m,)
    """Return whether uniform numbers are below a share, and uniform numbers independent of that.

    Example:
        >>> split(torch.tensor([0.1, 0.6]), 0.2)
        (tensor([ True, False]), tensor([0.5000, 0.5000]))
    """
    fresh = fresh_coin(luck, share)
    return luck < share, luck if fresh is None else fresh
