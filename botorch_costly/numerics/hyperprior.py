r"""Log priors of hyperparameters in log units, with gradient and curvature.

Notation: ``u`` is a column of the ``theta`` of ``numerics.evidence``. The densities are those of the
hyperparameters ``exp(u)``, *without* the Jacobian of the logarithm, as in GPyTorch: the maximizer does
not depend on the parametrization of the search.

    log-normal(mu, sigma):   -u - (u - mu)^2 / (2 sigma^2) - log(sigma sqrt(2 pi))
    gamma(k, b):             (k - 1) u - b exp(u) + k log b - log Gamma(k)

Where ``u = log lam`` of a rate ``eps = 1 - exp(-lam)``, ``d log eps / du = lam / (exp(lam) - 1)``.
Curvatures are second derivatives of the negative log prior, without that of ``log eps``, so that they are
never negative.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class LogNormal(NamedTuple):
    """Mean and standard deviation of the logarithm."""

    mu: float
    sigma: float


class Gamma(NamedTuple):
    """Shape and rate."""

    shape: float
    rate: float


class Hyperprior(NamedTuple):
    """Independent priors of all hyperparameters; the noise variance has none."""

    lengthscale: LogNormal
    outputscale: Gamma
    forgetting: LogNormal


class LogPrior(NamedTuple):
    """The log prior and its derivatives."""

    value: Tensor  # shape: (*batch,)
    gradient: Tensor  # shape: (*batch, p)
    curvature: Tensor  # diagonal, shape: (*batch, p)


def log_prior(
    prior: Hyperprior,
    theta: Tensor,  # shape: (*batch, p)
    dim: int,
) -> LogPrior:
    """Return the log prior of ``theta``, whose first ``dim`` entries are lengthscales."""
    parts = [
        _log_normal(prior.lengthscale, theta[..., :dim], torch.ones_like(theta[..., :dim])),
        _gamma(prior.outputscale, theta[..., dim : dim + 1]),
        LogPrior(*(torch.zeros_like(theta[..., :1]) for _ in range(3))),  # the noise has no prior
    ]
    if theta.shape[-1] > dim + 2:
        decay = theta[..., dim + 2 :].exp()
        log_rate = (-torch.expm1(-decay)).log()
        parts.append(_log_normal(prior.forgetting, log_rate, decay / torch.expm1(decay)))
    value, gradient, curvature = (torch.cat(columns, -1) for columns in zip(*parts, strict=True))
    return LogPrior(value.sum(-1), gradient, curvature)


def draw(
    prior: Hyperprior,
    shape: torch.Size,
    dim: int,
    noise: tuple[float, float],
    generator: torch.Generator,
) -> Tensor:  # shape: (*shape, dim + 3)
    """Draw ``theta`` with a rate; the noise, which has no prior, is log-uniform between two bounds."""
    like = torch.empty(0, dtype=torch.float64, device=generator.device)
    normal = like.new_empty(*shape, dim + 1).normal_(generator=generator)
    (mu, sigma), (slow, spread) = prior.lengthscale, prior.forgetting
    k = like.new_full((*shape, 1), prior.outputscale.shape)
    outputscale = torch._standard_gamma(k, generator=generator) / prior.outputscale.rate
    low, high = map(math.log, noise)
    log_noise = like.new_empty(*shape, 1).uniform_(low, high, generator=generator)
    rate = (slow + spread * normal[..., dim:]).exp().clamp(max=0.5)  # rates above 1 are invalid
    log_lam, lengthscale = (-torch.log1p(-rate)).log(), mu + sigma * normal[..., :dim]
    return torch.cat([lengthscale, outputscale.log(), log_noise, log_lam], -1)


def _log_normal(prior: LogNormal, u: Tensor, inner: Tensor) -> LogPrior:
    """Return the log prior at ``exp(u)``; ``inner`` is the derivative of ``u`` by the unknown."""
    mu, sigma = prior
    standard = (u - mu) / sigma
    value = -u - 0.5 * standard.square() - math.log(sigma * math.sqrt(2 * math.pi))
    return LogPrior(value, -(1 + standard / sigma) * inner, inner.square() / sigma**2)


def _gamma(prior: Gamma, u: Tensor) -> LogPrior:
    shape, rate = prior
    linear = rate * u.exp()
    value = (shape - 1) * u - linear + shape * math.log(rate) - math.lgamma(shape)
    return LogPrior(value, shape - 1 - linear, linear)
