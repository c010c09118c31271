"""What every bandit strategy is: it keeps a state, says which arm it would play, and learns from queries.

A strategy is a frozen description; what it knows is in a state, a named tuple of tensors over ``m``
trials, which it never changes but replaces. So a state is copied by being kept, and saved by its fields.

Convention: rewards are those of ``bandits.rewards``, in [0, 1] but for noise; rounds count from 0.
"""

from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from botorch_costly.query.rule import fresh_coin


class ArmBelief(NamedTuple):
    """A Gaussian belief about the rewards of ``n`` arms in a round, for query rules to read."""

    mean: Tensor  # shape: (m, n)
    cov: Tensor  # shape: (m, n, n)
    prior_cov: Tensor  # shape: (m, n, n)
    noise: Tensor  # variance that a query adds, shape: (m,)
    forgetting: Tensor  # rate in [0, 1] per round at which it becomes old, shape: (m,)


class Advice(NamedTuple):
    """Which arm a strategy would play in a round."""

    arm: Tensor  # long, shape: (m,)
    probability: Tensor  # with which the strategy plays that arm, shape: (m,)
    explored: Tensor  # bool: whether it was drawn among all arms alike, shape: (m,)
    belief: ArmBelief


class Told(NamedTuple):
    """What a query found, where there was one."""

    round: Tensor  # in which the arm was played, float64, shape: (m,)
    arm: Tensor  # long, shape: (m,)
    reward: Tensor  # float64, shape: (m,)
    probability: Tensor  # of the advice, shape: (m,)
    explored: Tensor  # bool, of the advice, shape: (m,)
    query: Tensor  # bool: the trials that learn, shape: (m,)


S = TypeVar("S", bound=tuple)


class Strategy(ABC, Generic[S]):
    """Which arm to play, by what queries have told so far.

    It works under any query rule: in a round without a query it learns nothing.
    """

    bounded = False  # whether a reward beyond [0, 1] is counted as the nearer end
    # Whether a rule with an outlook may query another arm: not where the probability of the arm counts.
    chooses = True

    @abstractmethod
    def begin(self, trials: int, arms: int, device: torch.device | str = "cpu") -> S:
        """Return what is known before anything was told, of ``m`` trials with ``n`` arms."""

    def refresh(self, state: S, now: int) -> S:
        """Return the state with which round ``now`` is decided; the same unless there is work due."""
        return state

    @abstractmethod
    def advise(
        self,
        state: S,
        now: int,
        luck: Tensor,  # uniform in [0, 1), shape: (m,)
    ) -> Advice:
        """Return which arm to play in round ``now``."""

    @abstractmethod
    def learn(self, state: S, told: Told) -> S:
        """Return the state after queries; trials without one keep theirs."""


def among_best(
    score: Tensor,  # shape: (m, n)
    luck: Tensor,  # uniform in [0, 1), shape: (m,)
) -> Tensor:  # long, shape: (m,)
    """Return an arm of the highest score, any of them alike where there are several.

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
    """Return the arms that uniform numbers stand for; an arm of probability 0 is never drawn.

    Example:
        >>> drawn(torch.tensor([[0.2, 0.0, 0.8]]), torch.tensor([0.2]))
        tensor([2])
    """
    below = probabilities.cumsum(-1) <= luck[:, None]
    last = torch.where(probabilities > 0, torch.arange(probabilities.shape[-1]).to(luck.device), 0)
    # Rounding may leave the sum a little below 1, and a number between the two.
    return below.sum(-1).minimum(last.amax(-1))


def split(
    luck: Tensor,  # uniform in [0, 1), shape: (m,)
    share: float,
) -> tuple[Tensor, Tensor]:  # bool and uniform in [0, 1), both (m,)
    """Return whether uniform numbers are below a share, and fresh ones that are independent of that.

    Example:
        >>> split(torch.tensor([0.1, 0.6]), 0.2)
        (tensor([ True, False]), tensor([0.5000, 0.5000]))
    """
    rest = fresh_coin(luck, share)
    return luck < share, luck if rest is None else rest
