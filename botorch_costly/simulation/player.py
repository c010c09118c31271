"""Players, which decide the rounds of many simulated trials, and the loop that drives them.

In every round a player is asked which point or arm each trial plays and whether it queries; it then
observes the round. Policies on a grid and bandits are both players.

Convention: the last dimension of a player's batch is that of the ``m`` trials, ``(*batch, m)``. Random
numbers are drawn beforehand, so that all players meet the same.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Chance(NamedTuple):
    """Uniform random numbers in [0, 1) of a round, drawn beforehand."""

    coin: Tensor  # for the query rule, shape: (m,)
    luck: Tensor  # for a strategy that plays at random, shape: (m,)


class Decided(NamedTuple):
    """Decisions of a round; those of a whole run have one more dimension, which is the last."""

    where: Tensor  # index of the point or arm that is played, shape: (*batch, m)
    whether: Tensor  # bool, whether it is queried, shape: (*batch, m)


class Player(Protocol):
    """Decides the rounds of many trials, one after the other."""

    def decide(self, chance: Chance) -> Decided:
        """Return which point or arm each trial plays in the next round, and whether it queries."""

    def take_in(self, at: Tensor, reward: Tensor, query: Tensor) -> None:
        """Update the player by the round that was played.

        Args:
            at: Index of the point or arm that was played, ``(*batch, m)``.
            reward: Reward that a query observes there, ``(*batch, m)``; ignored without a query.
            query: Whether the round was queried, bool, ``(*batch, m)``.
        """


class TrialHistory(NamedTuple):
    """Decisions of all rounds, and the values of the points or arms that were played."""

    value: Tensor  # value played, without noise, shape: (*batch, m, horizon)
    choice: Tensor  # index, shape: (*batch, m, horizon)
    query: Tensor  # bool, shape: (*batch, m, horizon)


def drive(
    player: Player,
    values: Tensor,  # of every point or arm, shape: (m, horizon, n)
    noise: Tensor,  # added to the value by a query, shape: (m, horizon)
    coins: Tensor,  # shape: (m, horizon)
    luck: Tensor,  # shape: (m, horizon)
    history: Decided | None = None,
) -> TrialHistory:
    """Let a player decide all rounds, and return its decisions and the values played.

    Args:
        player: A player that has not played yet.
        values: True values.
        noise: Noise of the queries.
        coins: Uniform numbers for the query rules.
        luck: Uniform numbers for strategies that play at random.
        history: Decisions that are played in place of the player's, ``(*batch, m, horizon)``. The choices
            and queries returned are still those of the player; the values are those of the history.
    """
    played, decisions = [], []
    trials, horizon = noise.shape
    for t in range(horizon):
        decided = player.decide(Chance(coins[:, t], luck[:, t]))
        decisions.append(decided)
        choice, query = decided
        if history is not None:
            choice, query = history.where[..., t], history.whether[..., t]
        indices = choice.reshape(-1, trials).mT
        value = values[:, t].gather(-1, indices).mT.reshape(choice.shape)
        played.append(value)
        player.take_in(choice, value + noise[:, t], query)
    where, whether = (torch.stack(rounds, -1) for rounds in zip(*decisions, strict=True))
    return TrialHistory(torch.stack(played, -1), where, whether)
