r"""Probability that each of several jointly Gaussian values is the smallest, by quasi-Monte Carlo.

For ``f ~ N(mean, cov)`` the probability that ``f_j`` is the smallest is that of an orthant: all
differences ``u_i = f_i - f_j`` are positive. The variables are drawn one after another from their normal
distributions given the earlier ones, truncated to positive values (separation of variables); the weight
of a draw is the product of the probabilities of the truncations. The variable that is least likely to be
positive is drawn first. After 16 variables the others are nearly certain to be positive; the weight is
multiplied by their probabilities as if they were conditionally independent.

The draws are a fixed Sobol sequence, so that the result is a smooth function of mean and covariance,
except where the order of the variables changes. All is computed in float64.

References:
    - A. Genz. Numerical computation of multivariate normal probabilities. JCGS 1, 1992.
    - G. J. Gibson, C. A. Glasbey, D. A. Elston. Monte Carlo evaluation of multivariate normal integrals
      and sensitivity to variate ordering. Advances in Numerical Methods and Applications, 1994.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine
from torch.utils.checkpoint import checkpoint

from botorch_costly.errors import check_count
from botorch_costly.numerics.ep import check_problem, least_variance

_DRAWN = 16  # most variables that are drawn
_JITTER = 1e-8  # relative to the variances
_LEAST_VARIANCE = 1e-9  # of a variable given the earlier ones
_LOWEST, _HIGHEST = -20.0, 9.0  # standard deviations between which tail functions are accurate
_EDGE = 1e-9  # least distance of the uniform draws from 0 and 1
_SEED = 0
_AT_ONCE = {"cpu": 1 << 20}  # numbers in a batch
_AT_ONCE_ELSEWHERE = 1 << 26


def log_prob_min_by_draws(mean: Tensor, cov: Tensor, *, draws: int = 256) -> Tensor:
    r"""Return ``log P(f_j is the smallest)`` of ``f ~ N(mean, cov)``, differentiable.

    Args:
        mean: Means, ``batch_shape x Z``.
        cov: Covariances, ``batch_shape x Z x Z``; may be singular.
        draws: Number of draws, a power of 2.

    Returns:
        Logarithms of probabilities, ``batch_shape x Z``.

    Raises:
        InvalidShapeError: If the shapes do not fit.
        InvalidArgumentError: If ``draws`` is less than 1.
        NumericalError: If a number is not finite.

    Example:
        >>> log_prob_min_by_draws(torch.tensor([0.0, 1.0]), torch.eye(2)).exp()
        tensor([0.7602, 0.2398])
    """
    check_problem(mean, cov)
    check_count("draws", draws, minimum=1)
    batch = torch.broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    points = mean.shape[-1]
    if points == 1:
        return torch.zeros_like(mean).expand(*batch, 1)
    means = mean.double().expand(*batch, points).reshape(-1, points)
    covs = cov.double().expand(*batch, points, points).reshape(-1, points, points)
    level, correlation = _differences(means, covs)
    u = _sobol(min(_DRAWN, points - 1), draws).to(means.device)
    limit = _AT_ONCE.get(means.device.type, _AT_ONCE_ELSEWHERE)
    size = max(1, limit // ((points - 1) * draws))
    chunks = zip(level.split(size), correlation.split(size), strict=True)
    raw = torch.cat([_checkpointed(*chunk, u) for chunk in chunks])
    return raw.reshape(*batch, points).log_softmax(-1).to(mean)


def _differences(means: Tensor, covs: Tensor) -> tuple[Tensor, Tensor]:
    """Return means and correlations of the differences, ``k Z x (Z - 1)`` and ``... x (Z - 1)``."""
    points = means.shape[-1]
    itself = torch.eye(points, dtype=torch.bool, device=means.device)
    others = torch.arange(points, device=means.device).expand(points, -1)[~itself]
    others = others.reshape(points, points - 1)  # row j: all but j
    difference = means.unsqueeze(-2) - means.unsqueeze(-1)
    variances = covs.diagonal(dim1=-2, dim2=-1)
    variance = variances.unsqueeze(-2) + variances.unsqueeze(-1) - covs - covs.mT
    sd = variance.clamp_min(least_variance(variance, difference).detach()).sqrt()
    rows = torch.arange(points, device=means.device).unsqueeze(-1)
    sd, difference = sd[:, rows, others], difference[:, rows, others]
    across = covs[:, rows, others]  # k x Z x (Z - 1)
    joint = covs[:, others.unsqueeze(-1), others.unsqueeze(-2)] + variances[..., None, None]
    joint = joint - across.unsqueeze(-1) - across.unsqueeze(-2)
    correlation = joint / (sd.unsqueeze(-1) * sd.unsqueeze(-2))
    unit = torch.eye(points - 1, dtype=torch.bool, device=means.device)
    return (difference / sd).flatten(0, 1), correlation.masked_fill(unit, 1 + _JITTER).flatten(0, 1)


@lru_cache(maxsize=32)
@torch.inference_mode(mode=False)  # the cached tensor must work outside of inference mode, too
def _sobol(variables: int, draws: int) -> Tensor:  # shape: (variables, draws)
    drawn = SobolEngine(variables, scramble=True, seed=_SEED).draw(draws, dtype=torch.float64)
    return drawn.T.clamp(_EDGE, 1 - _EDGE)


def _checkpointed(level: Tensor, correlation: Tensor, u: Tensor) -> Tensor:
    """Return ``_log_orthant``; the backward pass recomputes its intermediate tensors chunk by chunk."""
    if not (torch.is_grad_enabled() and (level.requires_grad or correlation.requires_grad)):
        return _log_orthant(level, correlation, u)
    result: Tensor = checkpoint(_log_orthant, level, correlation, u, use_reentrant=False)
    return result


def _log_orthant(
    level: Tensor,  # means of normals of variance 1, shape: (b, m)
    correlation: Tensor,  # shape: (b, m, m)
    u: Tensor,  # shape: (drawn, n)
) -> Tensor:  # shape: (b,)
    """Return ``log P(all are positive)`` plus the logarithm of the number of draws."""
    order = _order(level.detach(), correlation.detach(), len(u))
    level = level.gather(-1, order)
    square = order.unsqueeze(-2).expand(correlation.shape)
    correlation = correlation.gather(-1, square).gather(-2, square.mT)
    mean = level.unsqueeze(-1).expand(*level.shape, u.shape[-1])  # conditional means, by draw
    columns: list[Tensor] = []
    log_weight = torch.zeros_like(mean[:, 0])
    for place, coins in enumerate(u):
        covariance = correlation[..., place]
        for column in columns:
            covariance = covariance - column * column[:, place : place + 1]
        sd = covariance[:, place : place + 1].clamp_min(_LEAST_VARIANCE).sqrt()
        columns.append(covariance / sd)
        z = mean[:, place] / sd
        log_weight = log_weight + _log_ndtr(z)
        mean = mean + columns[-1].unsqueeze(-1) * _truncated(z, coins).unsqueeze(-2)
    variance = 1 + _JITTER - torch.stack(columns).square().sum(0)
    sd = variance.clamp_min(_LEAST_VARIANCE).sqrt()
    log_weight = log_weight + _log_ndtr(mean[:, len(u) :] / sd[:, len(u) :].unsqueeze(-1)).sum(-2)
    return log_weight.logsumexp(-1)


def _order(level: Tensor, correlation: Tensor, drawn: int) -> Tensor:  # shape: (b, m)
    """Return the order in which the variables are drawn, followed by the others.

    The next variable is the one least likely to be positive, given the means of the truncated normals of
    the earlier ones.
    """
    rows = torch.arange(len(level), device=level.device)
    mean, variance = level, correlation.diagonal(dim1=-2, dim2=-1)
    undrawn = torch.ones_like(level, dtype=torch.bool)
    picks: list[Tensor] = []
    columns = level.new_zeros(*level.shape, drawn)
    for place in range(drawn):
        z = mean / variance.clamp_min(_LEAST_VARIANCE).sqrt()
        pick = z.masked_fill(~undrawn, torch.inf).argmin(-1)
        undrawn[rows, pick] = False
        picks.append(pick)
        sd = variance[rows, pick].clamp_min(_LEAST_VARIANCE).sqrt().unsqueeze(-1)
        earlier = columns @ columns[rows, pick].unsqueeze(-1)
        column = (correlation[rows, pick] - earlier.squeeze(-1)) / sd
        columns[..., place] = column
        mean = mean + column * _truncated_mean(mean[rows, pick].unsqueeze(-1) / sd)
        variance = variance - column.square()
    others = torch.arange(level.shape[-1], device=level.device).expand(level.shape)[undrawn]
    return torch.cat([torch.stack(picks, -1), others.reshape(len(level), -1)], -1)


def _log_ndtr(z: Tensor) -> Tensor:
    """Return the log of the standard normal CDF at ``z``, with finite derivatives."""
    low = z.clamp_max(_LOWEST)
    tail = 0.5 * (_LOWEST**2 - low.square()) - (low / _LOWEST).log()
    return torch.special.log_ndtr(z.clamp(_LOWEST, _HIGHEST)) + tail


def _truncated(z: Tensor, coins: Tensor) -> Tensor:
    """Return draws of a standard normal truncated to values above ``-z``, from uniform coins.

    For ``z < -20`` the draw at -20 is shifted: the excess over the bound hardly changes there.
    """
    near = z.clamp_min(_LOWEST)
    below = torch.special.log_ndtr(near).exp()  # ``ndtr`` is 0 from 9 standard deviations on
    return near - z - torch.special.ndtri(coins * below)


def _truncated_mean(z: Tensor) -> Tensor:
    """Return the mean of a standard normal truncated to values above ``-z``, with ``|z|`` at most 20."""
    z = z.clamp(_LOWEST, -_LOWEST)
    log_density = -0.5 * z.square() - 0.5 * math.log(2 * math.pi)
    return (log_density - torch.special.log_ndtr(z)).exp()
