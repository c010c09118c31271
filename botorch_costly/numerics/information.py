r"""What an observation tells about which point is the smallest: mutual information, in nats.

    I(J; y) = E_y sum_j q_j(y) log(q_j(y) / p_j),    p = E_y q(y).

This is the entropy search of the literature. There the entropy of ``p`` is relative to a measure ``u`` of
the points, but the share of the measure, ``sum_j (q_j - p_j) log u_j``, is 0 on average over ``y``.

The outcome ``t`` is ``y`` standardized, and its expectation a Gauss-Hermite sum; ``c`` are the
covariances of the points with it. There are two ways to ``q``:

- *By moments* (``by_moments``), with Bayes' rule: ``q_j(t) ~ p_j N(t; c' pull_j, 1 - c' loss_j c)``. One
  expectation propagation says for all observations which moments they have if ``j`` is the smallest.
- *By outcomes* (``by_outcomes``): the outcome moves the mean to ``mean + c t`` and the covariance to
  ``cov - c c'``. Expectation propagation is done anew for each outcome.

The first way errs by 7 % on average, the second by 2 %.

References:
    P. Hennig, C. J. Schuler. Entropy search for information-efficient global optimization. JMLR 13, 2012.
"""

import math

import numpy as np
import torch
from torch import Tensor

from botorch_costly.numerics.ep import Minimum, log_prob_min

_LEAST = 1e-3  # share of the variance of an observation that knowing the smallest point leaves


def by_moments(
    c: Tensor,  # covariances with the standardized observations, shape: (b, k, Z)
    least: Minimum,  # of k beliefs
    nodes: int,
) -> Tensor:  # shape: (b, k)
    """Return the information of each observation by each belief, in closed form."""
    t, log_weight = hermite(nodes, c)
    shift = torch.einsum("bki,kji->bkj", c, least.pull)
    lost = torch.einsum("bkjl,bkl->bkj", torch.einsum("bki,kjil->bkjl", c, least.loss), c)
    rest = (1 - lost).clamp_min(_LEAST).unsqueeze(-2)
    distance = t.unsqueeze(-1) - shift.unsqueeze(-2)  # b x k x nodes x Z
    log_q = least.log_prob.unsqueeze(-2) - 0.5 * (distance.square() / rest + rest.log())
    return _information(log_q.log_softmax(-1), log_weight)


def by_outcomes(
    mean: Tensor,  # shape: (k, Z)
    cov: Tensor,  # shape: (k, Z, Z)
    c: Tensor,  # shape: (b, k, Z)
    nodes: int,
) -> Tensor:  # shape: (b, k)
    """Return the information by expectation propagation for each outcome of each observation."""
    t, log_weight = hermite(nodes, c)
    means = mean.unsqueeze(-2) + c.unsqueeze(-2) * t.unsqueeze(-1)
    covs = cov - c.unsqueeze(-1) * c.unsqueeze(-2)
    return _information(log_prob_min(means, covs.unsqueeze(-3)), log_weight)


def _information(
    log_q: Tensor,  # shape: (*batch, nodes, Z)
    log_weight: Tensor,  # shape: (nodes,)
) -> Tensor:  # shape: (*batch,)
    """Return the information of outcomes about the points."""
    log_p = (log_q + log_weight.unsqueeze(-1)).logsumexp(-2, keepdim=True)
    of_outcome = (log_q.exp() * (log_q - log_p)).sum(-1)
    return (of_outcome * log_weight.exp()).sum(-1).clamp_min(0)


def hermite(nodes: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return the nodes of a Gauss-Hermite sum over a standard normal, and the log weights."""
    t, weight = np.polynomial.hermite_e.hermegauss(nodes)
    log_weight = np.log(weight) - 0.5 * math.log(2 * math.pi)
    return torch.from_numpy(t).to(like), torch.from_numpy(log_weight).to(like)
