r"""Compression of a learning curve to a score: the sum of its rewards, with less weight on early ones.

    score(t) = sum_{u <= t} w(u) r(u),    w(u) = 1 / (1 + exp(-growth (s(u) - midpoint)))     (eq. 4)

Iterations ``u`` in [1, T] are scaled to ``s(u)`` in [-6, 6], so that midpoint and growth have the same
meaning for short and long trainings.

The paper does not treat curves with gaps. Here the weighted mean of the observed rewards up to ``t``
replaces a missing reward, which gives the paper's score for a curve without gaps:

    score(t) = W(t) sum_observed w r / sum_observed w,    W(t) = sum_{u <= t} w(u).

Convention: curves are rows of ``T`` rewards; missing rewards, such as those after the end of a run, are
NaN. A prefix without any reward has the score NaN, which does not affect the gradients of the others.

References:
    V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020.
"""

import torch
from torch import Tensor

HALF_WIDTH = 6.0  # iterations are scaled to [-HALF_WIDTH, HALF_WIDTH]


def scaled_iterations(longest: int, like: Tensor) -> Tensor:
    """Return ``s(u)`` for ``u = 1 .. longest``, shape ``(longest,)``; 0 if ``longest`` is 1."""
    if longest == 1:
        return like.new_zeros(1)
    return torch.linspace(-HALF_WIDTH, HALF_WIDTH, longest, dtype=like.dtype, device=like.device)


def sigmoid_weights(
    longest: int,
    midpoint: Tensor,  # in [-6, 6], shape: (*batch, 1)
    growth: Tensor,  # shape: (*batch, 1)
) -> Tensor:  # shape: (*batch, longest)
    """Return the weights of the iterations."""
    return torch.sigmoid(growth * (scaled_iterations(longest, midpoint) - midpoint))


def prefix_scores(
    curves: Tensor,  # shape: (*batch, n, T)
    weights: Tensor,  # > 0, shape: (*batch, T)
) -> Tensor:  # shape: (*batch, n, T)
    """Return the score of every prefix of every curve."""
    weights = weights.unsqueeze(-2)
    observed = ~curves.isnan()
    rewards = torch.where(observed, curves, 0.0)
    total = (weights * rewards).cumsum(-1)
    share = (weights * observed).cumsum(-1)
    has_reward = observed.cumsum(-1) > 0
    # 0 / 0 would make gradients NaN even where `where` discards it.
    mean = total / torch.where(has_reward, share, 1.0)
    return torch.where(has_reward, weights.cumsum(-1) * mean, torch.nan)


def latest_rewards(curves: Tensor) -> Tensor:  # shape: (*batch, n, T)
    """Return the latest observed reward of every prefix of every curve, NaN before the first."""
    iterations = torch.arange(curves.shape[-1], device=curves.device)
    latest = torch.where(curves.isnan(), 0, iterations).cummax(-1).values
    return curves.gather(-1, latest)
