r"""The mean reward of each arm, of all queries alike or of the recent ones more.

A query that was told ``s`` rounds ago weighs ``(1 - forgetting)^s``, as in discounted UCB; without
forgetting the means are those of the textbooks. Of ``N`` queries (the sum of the weights) with rewards
that sum to ``S``, query rules read the normal belief

    mean = (S + 1/2) / (N + 1),    variance = 1/4 / (N + 1),

that of a prior with mean 1/2 and variance 1/4 and of noise of variance 1/4: the largest that a reward in
[0, 1] can have.

References:
    A. Garivier, E. Moulines. On upper-confidence bound policies for switching bandit problems.
    ALT 2011, section 3: discounted UCB.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.bandits.strategy import ArmBelief, Told

_LEVEL, _LARGEST_VARIANCE = 0.5, 0.25


class SampleMeans(NamedTuple):
    """What was told of each arm, as of a round."""

    total: Tensor  # sum of the weighted rewards, shape: (m, n)
    weight: Tensor  # sum of the weights, shape: (m, n)
    round: Tensor  # of the latest query, shape: (m,)

    @property
    def mean(self) -> Tensor:
        """The mean reward of each arm, 0 where there is none, shape ``(m, n)``."""
        return torch.where(self.weight > 0, self.total / self.weight.clamp_min(1e-300), 0.0)


def no_means(trials: int, arms: int, device: torch.device | str) -> SampleMeans:
    """Return what is known before the first query."""
    nothing = torch.zeros(trials, arms, dtype=torch.float64, device=device)
    return SampleMeans(nothing, nothing, nothing[:, 0])


def with_told(means: SampleMeans, told: Told, forgetting: float) -> SampleMeans:
    """Return the means after queries, which may be told late."""
    newest = torch.maximum(means.round, told.round)
    aged = (1 - forgetting) ** (newest - means.round)
    late = (1 - forgetting) ** (newest - told.round)
    here = torch.zeros_like(means.total).scatter(-1, told.arm[:, None], late[:, None])
    new = SampleMeans(
        aged[:, None] * means.total + here * told.reward[:, None],
        aged[:, None] * means.weight + here,
        newest,
    )
    return where_queried(told.query, new, means)


def where_queried(query: Tensor, new: SampleMeans, old: SampleMeans) -> SampleMeans:
    """Return the new means of the trials with a query, and the old ones of the others."""
    which = query[:, None]
    return SampleMeans(
        torch.where(which, new.total, old.total),
        torch.where(which, new.weight, old.weight),
        torch.where(query, new.round, old.round),
    )


def weights_at(means: SampleMeans, now: int, forgetting: float) -> Tensor:
    """Return the sums of the weights in round ``now``, shape ``(m, n)``."""
    return means.weight * (1 - forgetting) ** (now - means.round).clamp_min(0)[:, None]


def belief_of(means: SampleMeans, now: int, forgetting: float) -> ArmBelief:
    """Return what a query rule reads."""
    weight = weights_at(means, now, forgetting)
    n = weight.shape[-1]
    eye = torch.eye(n, dtype=weight.dtype, device=weight.device)
    mean = (means.mean * weight + _LEVEL) / (weight + 1)
    cov = torch.diag_embed(_LARGEST_VARIANCE / (weight + 1))
    prior_cov = (_LARGEST_VARIANCE * eye).expand_as(cov)
    noise = torch.full_like(means.round, _LARGEST_VARIANCE)
    return ArmBelief(mean, cov, prior_cov, noise, torch.full_like(means.round, forgetting))
