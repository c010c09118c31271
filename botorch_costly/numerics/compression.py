r"""A learning curve as one number: the sum of its rewards, early ones weighted less.

    score(t) = sum_{u <= t} w(u) r(u),    w(u) = 1 / (1 + exp(-growth (s(u) - midpoint)))     (eq. 4)

The iteration ``u`` is scaled to ``s(u)`` in [-6, 6] over [1, T], so that midpoint and growth mean the
same for short and long trainings.

What the paper leaves open is a curve with gaps. Where ``r(u)`` is not known, the weighted mean of what
is known up to ``t`` takes its place, so that without a gap the score is that of the paper:

    score(t) = W(t) sum_known w r / sum_known w,    W(t) = sum_{u <= t} w(u).

Convention: curves are rows of ``T`` rewards, NaN where nothing is known, as after the end of a run. The
score of a prefix without any known reward is NaN; gradients of the others are not touched by it.

References:
    V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020.
"""

import torch
from torch import Tensor

HALF_WIDTH = 6.0  # of the range that iterations are scaled to


def scaled_iterations(longest: int, like: Tensor) -> Tensor:
    """Return ``s(u)`` for ``u = 1 .. longest``, shape ``(longest,)``; 0 where a training has one."""
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
    """Return the score of every prefix of every curve, all by one cumulative sum."""
    weights = weights.unsqueeze(-2)
    known = ~curves.isnan()
    rewards = torch.where(known, curves, 0.0)
    total = (weights * rewards).cumsum(-1)
    share = (weights * known).cumsum(-1)
    seen = known.cumsum(-1) > 0
    # A quotient of 0 by 0 would make gradients NaN even where it is not chosen.
    mean = total / torch.where(seen, share, 1.0)
    return torch.where(seen, weights.cumsum(-1) * mean, torch.nan)


def latest_rewards(curves: Tensor) -> Tensor:  # shape: (*batch, n, T)
    """Return the latest known reward of every prefix of every curve, NaN before the first."""
    at = torch.arange(curves.shape[-1], device=curves.device)
    latest = torch.where(curves.isnan(), 0, at).cummax(-1).values
    return curves.gather(-1, latest)
