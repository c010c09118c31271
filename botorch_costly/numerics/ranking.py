r"""Ranking losses of Gaussian processes, and weights for a ranking-weighted ensemble (RGPE).

The ranking loss of a function ``f`` counts the misordered pairs,

    L(f) = sum_j sum_k 1[(f(x_j) < f(x_k)) xor (y_j < y_k)].

The loss of a process that was fitted to the observations is a leave-one-out estimate: ``f_-j`` is
conditioned on all observations but ``y_j``, and ``f_-j(x_j)`` is compared with ``f_-j(x_k)``. With ``M``
the prior covariance with noise, ``P = M^{-1}``, ``G = K P``, the residual ``r`` and the posterior
``N(mu, C)`` given all observations,

    f_-j ~ N(mu - G_j (P r)_j / P_jj,  C + G_j G_j' / P_jj),

so that one root of ``C`` serves for samples of all of them.

References:
    M. Feurer, B. Letham, E. Bakshy. Scalable meta-learning for Bayesian optimization using
    ranking-weighted Gaussian process ensembles. AutoML workshop at ICML 2018.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.cholesky import sure_root

_AT_ONCE = 2**25  # pairs in a chunk
_DILUTES = 0.95  # quantile of the target's losses, the largest allowed median loss of a task


class Prior(NamedTuple):
    """Prior of a Gaussian process at the points of its observations."""

    mean: Tensor  # shape: (n,)
    cov: Tensor  # shape: (n, n)
    noisy: Tensor  # covariance with noise, positive definite, shape: (n, n)


class LeftOut(NamedTuple):
    """The ``n`` leave-one-out posteriors at all points."""

    mean: Tensor  # row j: without observation j, shape: (n, n)
    root: Tensor  # R of the posterior covariance given all, C = R R', shape: (n, n)
    loss: (
        Tensor  # row j: G_j / sqrt(P_jj), root of the variance added without observation j, (n, n)
    )


def leave_one_out(prior: Prior, values: Tensor) -> LeftOut:
    """Return the leave-one-out posteriors given values, shape ``(n,)``."""
    eye = torch.eye(len(values), dtype=values.dtype, device=values.device)
    precision = torch.cholesky_solve(eye, sure_root(prior.noisy))
    gain = prior.cov @ precision
    residual = values - prior.mean
    diagonal = precision.diagonal()
    mean = (prior.mean + gain @ residual) - (gain * (precision @ residual / diagonal)).mT
    cov = prior.cov - gain @ prior.cov
    return LeftOut(mean, symmetric_root(cov), (gain / diagonal.sqrt()).mT)


def draw_left_out(left: LeftOut, normals: Tensor) -> Tensor:
    """Return samples ``(*batch, n, n)`` of the leave-one-out posteriors; row ``j`` is without ``y_j``.

    Args:
        left: The posteriors.
        normals: Standard normals, ``(*batch, n, n + 1)``.
    """
    return left.mean + normals[..., :-1] @ left.root + normals[..., -1:] * left.loss


def draw(mean: Tensor, cov: Tensor, normals: Tensor) -> Tensor:
    """Return joint samples of ``t`` Gaussians from standard normals, both ``(t, *batch, n)``."""
    root = symmetric_root(cov)
    rows = normals.reshape(len(mean), -1, mean.shape[-1])
    return (mean.unsqueeze(-2) + rows @ root).reshape(normals.shape)


def symmetric_root(cov: Tensor) -> Tensor:
    """Return the symmetric root ``R`` of ``C = R R``, which is unique even if ``C`` is singular."""
    values, vectors = torch.linalg.eigh(0.5 * (cov + cov.mT))
    return (vectors * values.clamp_min(0).sqrt().unsqueeze(-2)) @ vectors.mT


def ranking_loss(samples: Tensor, values: Tensor) -> Tensor:
    """Return ``L`` of samples ``(*batch, n)`` given values ``(n,)``, integers of shape ``(*batch,)``."""
    flat = samples.reshape(-1, len(values))
    order = _order(values)
    chunks = flat.split(max(1, _AT_ONCE // max(1, order.numel())))
    wrong = [(_order(chunk) != order).sum((-1, -2)) for chunk in chunks]
    return torch.cat(wrong).reshape(samples.shape[:-1])


def left_out_loss(samples: Tensor, values: Tensor) -> Tensor:
    """Return ``L`` of samples ``(*batch, n, n)`` whose row ``j`` is without observation ``j``."""
    diagonal = samples.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    return ((diagonal < samples) != _order(values)).sum((-1, -2))


def discordance(predictions: Tensor, values: Tensor) -> Tensor:
    """Return the share of ordered pairs that predictions ``(*batch, n)`` misorder.

    It is 0 for the order of the values, 1 for the reverse order, and 0 if there is no pair.
    """
    pairs = max(1, len(values) * (len(values) - 1))
    return ranking_loss(predictions, values).to(values) / pairs


def ensemble_weights(losses: Tensor, own: Tensor) -> Tensor:
    """Return the share of the draws in which each process has the least loss; ties share a draw.

    Tasks whose median loss is above the 95th percentile of the target's are excluded, so that many
    useless tasks do not dilute the weights.

    Args:
        losses: Ranking losses of the tasks, ``tasks x draws``.
        own: Ranking losses of the target, ``(draws,)``.

    Returns:
        Weights of sum 1, ``(tasks + 1,)``, the target's last.
    """
    losses, own = losses.double(), own.double()
    dilutes = losses.quantile(0.5, -1) > own.quantile(_DILUTES)
    candidates = torch.cat([losses.masked_fill(dilutes.unsqueeze(-1), torch.inf), own[None]])
    best = (candidates == candidates.amin(0)).double()
    return (best / best.sum(0)).mean(-1)


def _order(values: Tensor) -> Tensor:
    """Return whether value ``j`` is less than value ``k``, bool ``(*batch, n, n)``."""
    return values.unsqueeze(-1) < values.unsqueeze(-2)
