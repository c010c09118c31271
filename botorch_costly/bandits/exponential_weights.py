r"""Exponential weights, what the EXP3 family has in common.

With weights ``w_i`` the arms are played with the probabilities

    p_i = (1 - mixing) w_i / sum_j w_j + mixing / n,

drawn in two steps: an arm alike with probability ``mixing``, and one by its weight otherwise. The first
are *explored*. A query of arm ``i`` with reward ``x`` in [0, 1] multiplies its weight by ``exp(mixing x /
(n p_i))``. A round without a query is none: weights stay.

Convention: weights are kept as logarithms, of which the largest is 0; so none overflows.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.bandits.sample_means import SampleMeans, belief_of, no_means, with_told
from botorch_costly.bandits.strategy import Advice, Told, drawn, split


class Weights(NamedTuple):
    """Weights of the arms, and the means that query rules read."""

    log_weight: Tensor  # the largest is 0, shape: (m, n)
    total: Tensor  # sum of the rewards of each arm, shape: (m, n)
    queries: Tensor  # queries of each arm, shape: (m, n)


def even_weights(trials: int, arms: int, device: torch.device | str) -> Weights:
    """Return what is known before the first query."""
    nothing = no_means(trials, arms, device).total
    return Weights(nothing, nothing, nothing)


def advise(weights: Weights, luck: Tensor, mixing: float) -> Advice:
    """Return an arm drawn by the mixture."""
    explored, rest = split(luck, mixing)
    by_weight = weights.log_weight.softmax(-1)
    alike = torch.full_like(by_weight, 1 / by_weight.shape[-1])
    arm = torch.where(explored, drawn(alike, rest), drawn(by_weight, rest))
    mixture = (1 - mixing) * by_weight + mixing * alike
    probability = mixture.gather(-1, arm[:, None]).squeeze(-1)
    means = SampleMeans(weights.total, weights.queries, torch.zeros_like(probability))
    return Advice(arm, probability, explored, belief_of(means, 0, 0.0))


def raised(weights: Weights, told: Told, mixing: float, sharing: float = 0.0) -> Weights:
    """Return the weights after queries.

    Args:
        weights: Before.
        told: The queries.
        mixing: Share of the rounds that is explored.
        sharing: Share of the sum of all weights, times e, that all arms receive alike.
    """
    n = weights.log_weight.shape[-1]
    here = told.arm[:, None]
    estimate = told.reward / told.probability  # the reward of the arm, unbiased
    up = torch.zeros_like(weights.log_weight).scatter(-1, here, (mixing / n * estimate)[:, None])
    log_weight = weights.log_weight + up
    if sharing > 0:
        gift = weights.log_weight.exp().sum(-1, keepdim=True) * (torch.e * sharing / n)
        log_weight = torch.logaddexp(log_weight, gift.log())
    log_weight = log_weight - log_weight.amax(-1, keepdim=True)
    means = SampleMeans(weights.total, weights.queries, torch.zeros_like(told.reward))
    seen = with_told(means, told._replace(round=torch.zeros_like(told.round)), 0.0)
    log_weight = torch.where(told.query[:, None], log_weight, weights.log_weight)
    return Weights(log_weight, seen.total, seen.weight)
