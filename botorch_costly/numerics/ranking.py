r"""How well a Gaussian process ranks observations, and weights for an ensemble of such processes.

The ranking loss of a function ``f`` counts the ordered pairs it puts the wrong way round,

    L(f) = sum_j sum_k 1[(f(x_j) < f(x_k)) xor (y_j < y_k)].

A process that has seen the observations is judged without them, one at a time: ``f_-j`` is conditioned
on all but ``y_j``, and ``f_-j(x_j)`` compared with ``f_-j(x_k)``. With ``M`` the prior covariance with
noise, ``P = M^{-1}``, ``G = K P`` and the posterior ``N(mu, C)`` given all observations,

    f_-j ~ N(mu - G_j (P r)_j / P_jj,  C + G_j G_j' / P_jj),

so that one root of ``C`` draws from all of them.

References:
    M. Feurer, B. Letham, E. Bakshy. Scalable meta-learning for Bayesian optimization using
    ranking-weighted Gaussian process ensembles. AutoML workshop at ICML 2018.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.cholesky import sure_root

_AT_ONCE = 2**25  # pairs that are compared at once
_DILUTES = 0.95  # quantile of the target's losses above which the median of a task is too large


class Prior(NamedTuple):
    """A Gaussian process at the points of its observations, before these are seen."""

    mean: Tensor  # shape: (n,)
    cov: Tensor  # shape: (n, n)
    noisy: Tensor  # the covariance with noise, positive definite, shape: (n, n)


class LeftOut(NamedTuple):
    """What a process says of all points without one observation, for each of them."""

    mean: Tensor  # row j: without observation j, shape: (n, n)
    root: Tensor  # R of the posterior covariance given all, C = R R', shape: (n, n)
    loss: Tensor  # row j: G_j / sqrt(P_jj), what leaving observation j out adds, shape: (n, n)


def leave_one_out(prior: Prior, values: Tensor) -> LeftOut:
    """Return the posteriors without one of the values (``n``) each."""
    eye = torch.eye(len(values), dtype=values.dtype, device=values.device)
    precision = torch.cholesky_solve(eye, sure_root(prior.noisy))
    gain = prior.cov @ precision
    residual = values - prior.mean
    own = precision.diagonal()
    told = precision @ residual / own
    mean = (prior.mean + gain @ residual) - (gain * told).mT
    cov = prior.cov - gain @ prior.cov
    return LeftOut(mean, symmetric_root(cov), (gain / own.sqrt()).mT)


def draw_left_out(left: LeftOut, normals: Tensor) -> Tensor:
    """Return samples without one observation each, from standard normals.

    Args:
        left: The posteriors.
        normals: Shape ``(*batch, n, n + 1)``.

    Returns:
        Shape ``(*batch, n, n)``; row ``j`` is without observation ``j``.
    """
    return left.mean + normals[..., :-1] @ left.root + normals[..., -1:] * left.loss


def draw(mean: Tensor, cov: Tensor, normals: Tensor) -> Tensor:
    """Return joint samples ``(t, *batch, n)`` of ``t`` normals from standard normals of that shape."""
    root = symmetric_root(cov)
    rows = normals.reshape(len(mean), -1, mean.shape[-1])
    return (mean.unsqueeze(-2) + rows @ root).reshape(normals.shape)


def symmetric_root(cov: Tensor) -> Tensor:
    """Return the symmetric ``R`` of ``C = R R``, which is unique even if ``C`` is singular."""
    values, vectors = torch.linalg.eigh(0.5 * (cov + cov.mT))
    return (vectors * values.clamp_min(0).sqrt().unsqueeze(-2)) @ vectors.mT


def ranking_loss(samples: Tensor, values: Tensor) -> Tensor:
    """Return ``L`` of samples at the points of the values.

    Args:
        samples: Shape ``(*batch, n)``.
        values: Shape ``(n,)``.

    Returns:
        Whole numbers, ``(*batch,)``.
    """
    flat = samples.reshape(-1, len(values))
    order = _order(values)
    parts = flat.split(max(1, _AT_ONCE // max(1, order.numel())))
    wrong = [(_order(part) != order).sum((-1, -2)) for part in parts]
    return torch.cat(wrong).reshape(samples.shape[:-1])


def left_out_loss(samples: Tensor, values: Tensor) -> Tensor:
    """Return ``L`` of samples ``(*batch, n, n)`` of which row ``j`` is without observation ``j``."""
    own = samples.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    return ((own < samples) != _order(values)).sum((-1, -2))


def discordance(predictions: Tensor, values: Tensor) -> Tensor:
    """Return which share of all ordered pairs predictions ``(*batch, n)`` put the wrong way round.

    It is 0 for the order of the values and 1 for its reverse; 0 where there is no pair.
    """
    pairs = max(1, len(values) * (len(values) - 1))
    return ranking_loss(predictions, values).to(values) / pairs


def ensemble_weights(losses: Tensor, own: Tensor) -> Tensor:
    """Return how often each process ranks best; equally good ones share a draw.

    A task whose median loss is above the 95th percentile of the target's takes no part: without that,
    many useless tasks would dilute the others.

    Args:
        losses: Ranking losses of the tasks, ``tasks x draws``.
        own: Those of the target, ``(draws,)``.

    Returns:
        Shape ``(tasks + 1,)``, the target's last; of sum 1.
    """
    losses, own = losses.double(), own.double()
    dilutes = losses.quantile(0.5, -1) > own.quantile(_DILUTES)
    entering = torch.cat([losses.masked_fill(dilutes.unsqueeze(-1), torch.inf), own[None]])
    best = (entering == entering.amin(0)).double()
    return (best / best.sum(0)).mean(-1)


def _order(values: Tensor) -> Tensor:
    """Return whether value ``j`` is less than value ``k``, ``(*batch, n, n)``."""
    return values.unsqueeze(-1) < values.unsqueeze(-2)
