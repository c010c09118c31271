r"""A Gaussian process of which only differences are observed: the advantage of one point over another.

Two runs from one state on the same batches differ by the effect of their configurations and by little
else. With an additive ``f(x, t) = sum_j f_j(x_j, t)`` of independent terms,

.. math::

    y_i = f(x_i, t_i) - f(c_i, t_i) + \epsilon_i, \qquad
    \operatorname{cov}(f_j(a, t), f_j(b, u)) = s_j^2\, \phi(|a - b| / \ell)\, e^{-\phi_t |t - u|},

each term ``j`` contributes to the covariance of two differences

.. math:: s_j^2 [\phi(x, x') - \phi(x, c') - \phi(c, x') + \phi(c, c')]\, e^{-\phi_t |t - t'|}.

This is a kernel over ``[x, c, t]``. The scales ``s_j`` and the noise are maximum a posteriori estimates
on a grid, whose points are factorized in one batch.

Convention: a difference is ``f(point) - f(reference)``, positive where the point is better.

Notation: ``n`` and ``m`` differences, ``d`` columns.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.numerics.cholesky import squared_norm_and_log_det, sure_root
from botorch_costly.numerics.radial import PROFILES

_SCALES = torch.logspace(-2.3, 0.2, 12, dtype=torch.float64)  # grid of s_j, 0.005 to 1.5
_NOISES = torch.tensor([0.5, 1.0, 2.0, 4.0], dtype=torch.float64)  # multiples of the prior noise
_JITTER = 1e-8  # in squared units of y
_SWEEPS = 2  # passes over the columns; more hardly change the scales


class Differences(NamedTuple):
    """Pairs of points and the times of their comparison."""

    points: Tensor  # x, in the unit cube, shape: (n, d)
    references: Tensor  # c, in the unit cube, shape: (n, d)
    times: Tensor  # t, shape: (n,)


class Smoothness(NamedTuple):
    """Correlation over points and over times."""

    lengthscale: float  # of each column of the unit cube
    forgetting: float  # phi_t, per unit of time


class ScalePrior(NamedTuple):
    """Log-normal priors of the scales and of the noise."""

    scale: float  # median of all s_j, in units of y
    spread: float = 1.0  # sd of the mean of log s_j over the columns
    relevance: float = 1.0  # sd of log s_j around that mean
    noise: float = 0.05  # median of the sd of the noise, in units of y
    noise_spread: float = 0.7  # sd of the logarithm of the sd of the noise


class Scales(NamedTuple):
    """Estimated scales and noise."""

    scales: Tensor  # s_j, shape: (d,)
    noise: float  # sd, in units of y


def covariances(rows: Differences, others: Differences, smoothness: Smoothness) -> Tensor:
    """Return each column's covariances of differences for unit scales, shape ``d x n x m``."""
    profile = PROFILES["matern52"]

    def correlation(a: Tensor, b: Tensor) -> Tensor:  # shape: (d, n, m)
        distance = (a.mT.unsqueeze(-1) - b.mT.unsqueeze(-2)).abs()
        return profile.phi(profile.constant * distance / smoothness.lengthscale)

    (x, c, t), (y, e, u) = rows, others
    paired = correlation(x, y) - correlation(x, e) - correlation(c, y) + correlation(c, e)
    return paired * (-smoothness.forgetting * (t.unsqueeze(-1) - u).abs()).exp()


def fit_scales(parts: Tensor, values: Tensor, prior: ScalePrior) -> Scales:
    """Return the scales and the noise of greatest posterior density.

    Args:
        parts: ``covariances`` of the differences with themselves, ``d x n x n``.
        values: Observed differences, shape ``(n,)``.
        prior: Priors of the scales and of the noise.
    """
    d = len(parts)
    if not len(values):
        return Scales(parts.new_full((d,), prior.scale), prior.noise)
    grid, multiples = moved(_SCALES, parts), moved(_NOISES, parts)
    shared = grid.repeat_interleave(len(multiples)).unsqueeze(-1).expand(-1, d)
    noises = prior.noise * multiples.repeat(len(grid))
    best = int(_log_density(shared, noises, parts, values, prior).argmax())
    scales, noise = shared[best].clone(), noises[best]
    for column in list(range(d)) * _SWEEPS:
        several = scales.expand(len(grid), d).clone()
        several[:, column] = grid
        density = _log_density(several, noise.expand(len(grid)), parts, values, prior)
        scales = several[int(density.argmax())]
    return Scales(scales, float(noise))


def _log_density(
    scales: Tensor,  # shape: (k, d)
    noises: Tensor,  # shape: (k,)
    parts: Tensor,  # shape: (d, n, n)
    values: Tensor,  # shape: (n,)
    prior: ScalePrior,
) -> Tensor:  # shape: (k,)
    """Return the log posterior density of ``k`` scales and noises, up to a constant."""
    cov = torch.einsum("kd,dij->kij", scales.square(), parts)
    cov.diagonal(dim1=-2, dim2=-1).add_((noises.square() + _JITTER).unsqueeze(-1))
    squares, log_det = squared_norm_and_log_det(sure_root(cov), values)
    logs = scales.log()
    mean = logs.mean(-1)
    shared = (mean - math.log(prior.scale)) / prior.spread
    deviation = (logs - mean.unsqueeze(-1)) / prior.relevance
    noise = (noises / prior.noise).log() / prior.noise_spread
    return (
        -squares / 2 - log_det - (shared.square() + deviation.square().sum(-1) + noise.square()) / 2
    )


def posterior(
    rows: Differences, values: Tensor, asked: Differences, scales: Scales, smoothness: Smoothness
) -> tuple[Tensor, Tensor]:
    """Return posterior means and variances of differences, each of shape ``(m,)``.

    Args:
        rows: Observed differences.
        values: Values of the observed differences, shape ``(n,)``.
        asked: Differences to predict.
        scales: Result of ``fit_scales``.
        smoothness: Smoothness with which the scales were fitted.
    """
    weights = scales.scales.square()
    distance = (asked.points - asked.references).abs() / smoothness.lengthscale
    profile = PROFILES["matern52"]
    prior = (2 * (1 - profile.phi(profile.constant * distance)) * weights).sum(-1)
    if not len(values):
        return torch.zeros_like(prior), prior
    cov = torch.einsum("d,dij->ij", weights, covariances(rows, rows, smoothness))
    cross = torch.einsum("d,dij->ij", weights, covariances(rows, asked, smoothness))
    cov.diagonal().add_(scales.noise**2 + _JITTER)
    columns = torch.cat([cross, values.unsqueeze(-1)], -1)
    white = torch.linalg.solve_triangular(sure_root(cov), columns, upper=False)
    white_cross, white_values = white[:, :-1], white[:, -1]
    return white_cross.mT @ white_values, (prior - white_cross.square().sum(0)).clamp_min(0)
