r"""The mean reward of each arm, over all queries equally or with more weight on recent ones.

A query ``s`` rounds ago has the weight ``(1 - forgetting)^s``, as in discounted UCB; without forgetting
the means are the ordinary ones. For ``N`` queries (the sum of the weights) whose rewards sum to ``S``,
query rules use the normal posterior

    mean = (S + 1/2) / (N + 1),    variance = 1/4 / (N + 1),

for a prior with mean 1/2 and variance 1/4, and noise of variance 1/4, the largest variance of a reward
in [0, 1].

References:
    A. Garivier, E. Moulines. On upper-confidence bound policies for switching bandit problems.
    ALT 2011, section 3: discounted UCB.
"""

from abc import ABC
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.bandits.strategy import ArmBelief, Strategy, Told
from botorch_costly.errors import check_rate

_LEVEL, _LARGEST_VARIANCE = 0.5, 0.25


class SampleMeans(NamedTuple):
    """Weighted sums of the rewards of each arm, in a round."""

    total: Tensor  # sum of the weighted rewards, shape: (m, n)
    weight: Tensor  # sum of the weights, shape: (m, n)
    round: Tensor  # of the latest query, shape: (m,)

    @property
    def mean(self) -> Tensor:
        """The mean reward of each arm, 0 without queries, shape ``(m, n)``."""
        return torch.where(self.weight > 0, self.total / self.weight.clamp_min(1e-300), 0.0)


class SampleMeanStrategy(Strategy[SampleMeans], ABC):
    """A strategy whose state is the mean reward of each arm, over all queries or mainly recent ones.

    Attributes:
        forgetting: Share in [0, 1] by which the weight of a query decreases per round.
    """

    forgetting: float

    def __post_init__(self) -> None:
        check_rate("forgetting", self.forgetting)

    def begin(self, trials: int, arms: int, device: torch.device | str = "cpu") -> SampleMeans:
        """Return means without queries."""
        return no_means(trials, arms, device)

    def learn(self, state: SampleMeans, told: Told) -> SampleMeans:
        """Return the means after queries."""
        return with_observations(state, told, self.forgetting)


def no_means(trials: int, arms: int, device: torch.device | str) -> SampleMeans:
    """Return means without queries."""
    zeros = torch.zeros(trials, arms, dtype=torch.float64, device=device)
    return SampleMeans(zeros, zeros, zeros[:, 0])


def with_observations(means: SampleMeans, observed: Told, forgetting: float) -> SampleMeans:
    """Return the means after observations, possibly of rounds before the latest query."""
    newest = torch.maximum(means.round, observed.round)
    aged = (1 - forgetting) ** (newest - means.round)
    late = (1 - forgetting) ** (newest - observed.round)
    weight = torch.zeros_like(means.total).scatter(-1, observed.arm[:, None], late[:, None])
    total = aged[:, None] * means.total + weight * observed.reward[:, None]
    weight = aged[:, None] * means.weight + weight
    query = observed.query
    return SampleMeans(
        torch.where(query[:, None], total, means.total),
        torch.where(query[:, None], weight, means.weight),
        torch.where(query, newest, means.round),
    )


def weights_at(means: SampleMeans, now: int, forgetting: float) -> Tensor:
    """Return the sums of the weights in round ``now``, shape ``(m, n)``."""
    return means.weight * (1 - forgetting) ** (now - means.round).clamp_min(0)[:, None]


def belief_of(means: SampleMeans, now: int, forgetting: float) -> ArmBelief:
    """Return the posterior for query rules."""
    weight = weights_at(means, now, forgetting)
    n = weight.shape[-1]
    eye = torch.eye(n, dtype=weight.dtype, device=weight.device)
    mean = (means.mean * weight + _LEVEL) / (weight + 1)
    cov = torch.diag_embed(_LARGEST_VARIANCE / (weight + 1))
    prior_cov = (_LARGEST_VARIANCE * eye).expand_as(cov)
    noise = torch.full_like(means.round, _LARGEST_VARIANCE)
    return ArmBelief(mean, cov, prior_cov, noise, torch.full_like(means.round, forgetting))
