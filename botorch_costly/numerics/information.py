r"""Mutual information of an observation and the index of the smallest value, in nats (entropy search).

    I(J; y) = E_y sum_j q_j(y) log(q_j(y) / p_j),    p = E_y q(y).

In the literature the entropy of ``p`` is relative to a measure ``u`` of the points, but the term of the
measure, ``sum_j (q_j - p_j) log u_j``, is 0 on average over ``y``.

The outcome ``t`` is ``y`` standardized; expectations over it are Gauss-Hermite sums. ``c`` are the
covariances of the points with it. ``q`` is computed in one of two ways:

- *By moments* (``by_moments``), with Bayes' rule: ``q_j(t) ~ p_j N(t; c' pull_j, 1 - c' loss_j c)``. One
  run of expectation propagation gives the moments given ``j`` for all observations.
- *By outcomes* (``by_outcomes``): the mean becomes ``mean + c t`` and the covariance ``cov - c c'``.
  Expectation propagation runs again for each outcome.

The first way has an error of 7 % on average, the second one of 2 %.

References:
    P. Hennig, C. J. Schuler. Entropy search for information-efficient global optimization. JMLR 13, 2012.
"""

import math

import numpy as np
import torch
from torch import Tensor

from botorch_costly.numerics.ep import Minimum, log_prob_min

_AT_ONCE = 1 << 18  # numbers in a batch that fit into the cache
_LEAST = 1e-3  # least variance of a standardized observation given the smallest point


def by_moments(
    c: Tensor,  # covariances with the standardized observations, shape: (b, k, Z)
    least: Minimum,  # batch of k problems
    nodes: int,
) -> Tensor:  # shape: (b, k)
    """Return the information of each observation in each problem, from conditional moments."""
    t, log_weight = hermite(nodes, c)
    k, points = least.log_prob.shape
    loss = least.loss.permute(0, 2, 3, 1).reshape(k, points * points, points)
    size = max(1, _AT_ONCE // (k * points * max(points, nodes)))
    return torch.cat([_by_moments(x, least, loss, t, log_weight) for x in c.split(size)])


def _by_moments(
    c: Tensor,  # shape: (b, k, Z)
    least: Minimum,
    loss: Tensor,  # least.loss transposed, shape: (k, Z * Z, Z)
    t: Tensor,  # shape: (nodes,)
    log_weight: Tensor,  # shape: (nodes,)
) -> Tensor:  # shape: (b, k)
    c = c.transpose(0, 1)  # k x b x Z
    shift = c @ least.pull.mT
    reduction = (c.unsqueeze(-1) * c.unsqueeze(-2)).flatten(-2) @ loss
    variance = (1 - reduction).clamp_min(_LEAST)
    # log q = log p - ((t - shift)^2 / variance + log variance) / 2, as a polynomial in t.
    constant = least.log_prob.unsqueeze(-2) - 0.5 * (shift.square() / variance + variance.log())
    linear, square = shift / variance, -0.5 / variance
    log_q = constant.unsqueeze(-1) + linear.unsqueeze(-1) * t + square.unsqueeze(-1) * t.square()
    return _information(log_q, log_weight).mT


def by_outcomes(
    mean: Tensor,  # shape: (k, Z)
    cov: Tensor,  # shape: (k, Z, Z)
    c: Tensor,  # shape: (b, k, Z)
    nodes: int,
) -> Tensor:  # shape: (b, k)
    """Return the information, with expectation propagation for each outcome of each observation."""
    t, log_weight = hermite(nodes, c)
    means = mean.unsqueeze(-2) + c.unsqueeze(-2) * t.unsqueeze(-1)
    covs = cov - c.unsqueeze(-1) * c.unsqueeze(-2)
    return _information(log_prob_min(means, covs.unsqueeze(-3)).mT, log_weight)


def _information(
    log_q: Tensor,  # unnormalized, shape: (*batch, Z, nodes)
    log_weight: Tensor,  # shape: (nodes,)
) -> Tensor:  # shape: (*batch,)
    """Return the entropy of ``p`` minus the mean entropy of ``q`` over the outcomes."""
    total = log_q.logsumexp(-2, keepdim=True)
    q, weight = (log_q - total).exp(), log_weight.exp()
    negentropy = (q * log_q).sum(-2) - total.squeeze(-2)
    p = q @ weight
    log_p = p.clamp_min(torch.finfo(p.dtype).tiny).log()
    return (negentropy @ weight - (p * log_p).sum(-1)).clamp_min(0)


def hermite(nodes: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return nodes and log weights of Gauss-Hermite quadrature for a standard normal."""
    t, weight = np.polynomial.hermite_e.hermegauss(nodes)
    log_weight = np.log(weight) - 0.5 * math.log(2 * math.pi)
    return torch.from_numpy(t).to(like), torch.from_numpy(log_weight).to(like)
