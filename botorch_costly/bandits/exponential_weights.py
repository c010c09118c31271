r"""Exponential weights, the common base of the EXP3 family.

With weights ``w_i`` the arms are played with the probabilities

    p_i = (1 - mixing) w_i / sum_j w_j + mixing / n,

drawn in two steps: a uniformly random arm with probability ``mixing``, in which case the arm is
*explored*, and otherwise an arm by its weight. A query of arm ``i`` with reward ``x`` in [0, 1]
multiplies its weight by ``exp(mixing x / (n p_i))``. A round without a query does not change the weights.

Convention: weights are stored as logarithms with maximum 0, so none overflows.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.bandits.sample_means import SampleMeans, belief_of, no_means, with_observations
from botorch_costly.bandits.strategy import Advice, Told, drawn, split


class Weights(NamedTuple):
    """Weights of the arms, and their sample means for query rules."""

    log_weight: Tensor  # the largest is 0, shape: (m, n)
    total: Tensor  # sum of the rewards of each arm, shape: (m, n)
    queries: Tensor  # queries of each arm, shape: (m, n)


def even_weights(trials: int, arms: int, device: torch.device | str) -> Weights:
    """Return equal weights without queries."""
    zeros = no_means(trials, arms, device).total
    return Weights(zeros, zeros, zeros)


def advise(weights: Weights, luck: Tensor, mixing: float) -> Advice:
    """Return an arm drawn from the mixture of the weights and the uniform distribution."""
    explored, luck = split(luck, mixing)
    by_weight = weights.log_weight.softmax(-1)
    uniform = torch.full_like(by_weight, 1 / by_weight.shape[-1])
    arm = torch.where(explored, drawn(uniform, luck), drawn(by_weight, luck))
    mixture = (1 - mixing) * by_weight + mixing * uniform
    probability = mixture.gather(-1, arm[:, None]).squeeze(-1)
    means = SampleMeans(weights.total, weights.queries, torch.zeros_like(probability))
    return Advice(arm, probability, explored, belief_of(means, 0, 0.0))


def raised(weights: Weights, observed: Told, mixing: float, sharing: float = 0.0) -> Weights:
    """Return the weights after observations.

    Args:
        weights: Weights before the observations.
        observed: Observations, rewards in [0, 1].
        mixing: Share of explored rounds.
        sharing: Share of the sum of all weights, times e, that is distributed equally over all arms.
    """
    n = weights.log_weight.shape[-1]
    estimate = observed.reward / observed.probability  # unbiased, of the arm's mean reward
    change = (mixing / n * estimate)[:, None]
    zeros = torch.zeros_like(weights.log_weight)
    log_weight = weights.log_weight + zeros.scatter(-1, observed.arm[:, None], change)
    if sharing > 0:
        shared = weights.log_weight.exp().sum(-1, keepdim=True) * (torch.e * sharing / n)
        log_weight = torch.logaddexp(log_weight, shared.log())
    log_weight = log_weight - log_weight.amax(-1, keepdim=True)
    log_weight = torch.where(observed.query[:, None], log_weight, weights.log_weight)
    means = SampleMeans(weights.total, weights.queries, torch.zeros_like(observed.reward))
    observed = observed._replace(round=torch.zeros_like(observed.round))
    means = with_observations(means, observed, forgetting=0.0)
    return Weights(log_weight, means.total, means.weight)
