"""Who decides in a simulation: a player of many trials, whatever it believes and however it chooses.

A player is asked in every round where each of its trials goes and whether it queries, and is then told
what was played. Policies on a grid and bandits are both players, and one program drives them.

Convention: ``m`` trials are the last dimension of a player's batch, ``(*batch, m)``; what chance decides
is drawn beforehand, so that players meet equal luck.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Chance(NamedTuple):
    """Uniform numbers in [0, 1) of a round, drawn beforehand."""

    coin: Tensor  # for the query rule, shape: (m,)
    luck: Tensor  # for a strategy that plays at random, shape: (m,)


class Decided(NamedTuple):
    """What a round plays, or what all rounds of a run do, which have a last dimension more."""

    where: Tensor  # index of a point or an arm, shape: (*batch, m)
    whether: Tensor  # bool, whether it is queried, shape: (*batch, m)


class Player(Protocol):
    """Decides the rounds of many trials, one after the other."""

    def decide(self, chance: Chance) -> Decided:
        """Return where each trial goes in the next round, and whether it queries."""

    def take_in(self, at: Tensor, reward: Tensor, query: Tensor) -> None:
        """Take in the round that was played.

        Args:
            at: Index of what was played, ``(*batch, m)``.
            reward: What a query finds there, ``(*batch, m)``; it is read where there was one.
            query: Whether there was one, bool, ``(*batch, m)``.
        """


class Course(NamedTuple):
    """What was decided in every round, and what it was worth."""

    value: Tensor  # of what was played, without noise, shape: (*batch, m, horizon)
    choice: Tensor  # index, shape: (*batch, m, horizon)
    query: Tensor  # bool, shape: (*batch, m, horizon)


def drive(
    player: Player,
    values: Tensor,  # of every point or arm, shape: (m, horizon, n)
    noise: Tensor,  # what a query adds to the value, shape: (m, horizon)
    coins: Tensor,  # shape: (m, horizon)
    luck: Tensor,  # shape: (m, horizon)
    history: Decided | None = None,
) -> Course:
    """Let a player play all rounds, or those of a history, and return what it decided in each.

    Args:
        player: That has not played yet.
        values: The truth.
        noise: Of the queries.
        coins: For the query rules.
        luck: For strategies that play at random.
        history: Rounds that are played instead, ``(*batch, m, horizon)``; what is returned of choices and
            queries is still what the player would have done, and values are those of the history.
    """
    played, wanted = [], []
    trials, horizon = noise.shape
    for t in range(horizon):
        decided = player.decide(Chance(coins[:, t], luck[:, t]))
        wanted.append(decided)
        at, query = decided
        if history is not None:
            at, query = history.where[..., t], history.whether[..., t]
        places = at.reshape(-1, trials).mT
        value = values[:, t].gather(-1, places).mT.reshape(at.shape)
        played.append(value)
        player.take_in(at, value + noise[:, t], query)
    where, whether = (torch.stack(part, -1) for part in zip(*wanted, strict=True))
    return Course(torch.stack(played, -1), where, whether)
