r"""Which of several jointly Gaussian values is the smallest, by quasi-random draws of few variables.

For ``f ~ N(mean, cov)`` the probability that ``f_j`` is the smallest is that of an orthant: all
differences ``u_i = f_i - f_j`` are positive. One variable after another is drawn from its normal,
truncated to positive values, given those before; the weight of a draw is the product of the
probabilities that were cut to. The variable that is least likely to be positive comes first. After
some variables the rest is nearly certain: the weight is then multiplied by the probability of each of
the rest, as if these were independent given what was drawn.

The draws are a Sobol sequence that is always the same, so that the result is a smooth function of mean
and covariance, but where the order of the variables changes. All is computed in float64.

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

_DRAWN = 16  # variables that are drawn
_JITTER = 1e-8  # of the variances
_LEAST_VARIANCE = 1e-9  # of a variable given those before
_LOWEST, _HIGHEST = -20.0, 9.0  # standard deviations between which functions of tails are good
_EDGE = 1e-9  # of the draws in (0, 1)
_SEED = 0
_AT_ONCE = {"cpu": 1 << 20}  # numbers of a batch
_AT_ONCE_ELSEWHERE = 1 << 26


def log_prob_min_by_draws(
    mean: Tensor,  # shape: (*batch, Z)
    cov: Tensor,  # shape: (*batch, Z, Z)
    *,
    draws: int = 256,
) -> Tensor:  # shape: (*batch, Z)
    r"""Return ``log P(f_j is the smallest)`` of ``f ~ N(mean, cov)``, differentiable.

    Args:
        mean: Means, ``batch_shape x Z``.
        cov: Covariances, ``batch_shape x Z x Z``; may be singular.
        draws: How many, a power of 2.

    Returns:
        Logarithms of probabilities, ``batch_shape x Z``.

    Raises:
        InvalidShapeError: If the shapes do not fit.
        InvalidArgumentError: If there are no draws.
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
    size = max(1, _at_once(means.device) // ((points - 1) * draws))
    parts = zip(level.split(size), correlation.split(size), strict=True)
    raw = torch.cat([_checkpointed(*part, u) for part in parts])
    return raw.reshape(*batch, points).log_softmax(-1).to(mean)


def _at_once(device: torch.device) -> int:
    return _AT_ONCE.get(device.type, _AT_ONCE_ELSEWHERE)


def _differences(means: Tensor, covs: Tensor) -> tuple[Tensor, Tensor]:
    """Return means and correlations of the differences, ``k Z x (Z - 1)`` and ``... x (Z - 1)``."""
    points = means.shape[-1]
    own = torch.eye(points, dtype=torch.bool, device=means.device)
    others = torch.arange(points, device=means.device).expand(points, -1)[~own]
    others = others.reshape(points, points - 1)  # row j: all but j
    difference = means.unsqueeze(-2) - means.unsqueeze(-1)
    alone = covs.diagonal(dim1=-2, dim2=-1)
    variance = alone.unsqueeze(-2) + alone.unsqueeze(-1) - covs - covs.mT
    sd = variance.clamp_min(least_variance(variance, difference).detach()).sqrt()
    rows = torch.arange(points, device=means.device).unsqueeze(-1)
    sd, difference = sd[:, rows, others], difference[:, rows, others]
    across = covs[:, rows, others]  # k x Z x (Z - 1)
    joint = covs[:, others.unsqueeze(-1), others.unsqueeze(-2)] + alone[..., None, None]
    joint = joint - across.unsqueeze(-1) - across.unsqueeze(-2)
    correlation = joint / (sd.unsqueeze(-1) * sd.unsqueeze(-2))
    unit = torch.eye(points - 1, dtype=torch.bool, device=means.device)
    return (difference / sd).flatten(0, 1), correlation.masked_fill(unit, 1 + _JITTER).flatten(0, 1)


@lru_cache(maxsize=32)
@torch.inference_mode(mode=False)  # what is kept serves calls outside of it, too
def _sobol(variables: int, draws: int) -> Tensor:  # shape: (variables, draws)
    drawn = SobolEngine(variables, scramble=True, seed=_SEED).draw(draws, dtype=torch.float64)
    return drawn.T.clamp(_EDGE, 1 - _EDGE)


def _checkpointed(level: Tensor, correlation: Tensor, u: Tensor) -> Tensor:
    """Return the logarithms; what derivatives need is computed again for one part at a time."""
    if not (torch.is_grad_enabled() and (level.requires_grad or correlation.requires_grad)):
        return _log_orthant(level, correlation, u)
    result: Tensor = checkpoint(_log_orthant, level, correlation, u, use_reentrant=False)
    return result


def _log_orthant(
    level: Tensor,  # means of unit normals, shape: (b, m)
    correlation: Tensor,  # shape: (b, m, m)
    u: Tensor,  # shape: (drawn, n)
) -> Tensor:  # shape: (b,)
    """Return ``log P(all are positive)`` up to a constant of the number of draws."""
    order = _order(level.detach(), correlation.detach(), len(u))
    level = level.gather(-1, order)
    square = order.unsqueeze(-2).expand(correlation.shape)
    correlation = correlation.gather(-1, square).gather(-2, square.mT)
    given = level.unsqueeze(-1).expand(*level.shape, u.shape[-1])  # means given the draws
    columns: list[Tensor] = []
    log_weight = torch.zeros_like(given[:, 0])
    for place, coins in enumerate(u):
        covariance = _given(correlation[..., place], columns, place)
        sd = covariance[:, place : place + 1].clamp_min(_LEAST_VARIANCE).sqrt()
        column = covariance / sd
        columns.append(column)
        at = given[:, place] / sd
        log_weight = log_weight + _log_ndtr(at)
        given = given + column.unsqueeze(-1) * _truncated(at, coins).unsqueeze(-2)
    rest = given[:, len(u) :] / _spread(columns)[:, len(u) :].unsqueeze(-1)
    log_weight = log_weight + _log_ndtr(rest).sum(-2)
    return log_weight.logsumexp(-1)


def _given(covariance: Tensor, columns: list[Tensor], place: int) -> Tensor:
    """Return the covariances with a variable, ``b x m``, given what the columns stand for."""
    for column in columns:
        covariance = covariance - column * column[:, place : place + 1]
    return covariance


def _spread(columns: list[Tensor]) -> Tensor:
    """Return the standard deviations given the columns, ``b x m``."""
    variance = 1 + _JITTER - torch.stack(columns).square().sum(0)
    return variance.clamp_min(_LEAST_VARIANCE).sqrt()


def _order(level: Tensor, correlation: Tensor, drawn: int) -> Tensor:  # shape: (b, m)
    """Return the variables in the order of their drawing, the rest in any order.

    Each is the least likely to be positive given that those before have the means of their truncated
    normals.
    """
    rows = torch.arange(len(level), device=level.device)
    given, variance = level, correlation.diagonal(dim1=-2, dim2=-1)
    left = torch.ones_like(level, dtype=torch.bool)
    picks: list[Tensor] = []
    columns = level.new_zeros(*level.shape, drawn)
    for place in range(drawn):
        height = given / variance.clamp_min(_LEAST_VARIANCE).sqrt()
        pick = height.masked_fill(~left, torch.inf).argmin(-1)
        left[rows, pick] = False
        picks.append(pick)
        sd = variance[rows, pick].clamp_min(_LEAST_VARIANCE).sqrt().unsqueeze(-1)
        earlier = columns @ columns[rows, pick].unsqueeze(-1)
        column = (correlation[rows, pick] - earlier.squeeze(-1)) / sd
        columns[..., place] = column
        given = given + column * _truncated_mean(given[rows, pick].unsqueeze(-1) / sd)
        variance = variance - column.square()
    rest = torch.arange(level.shape[-1], device=level.device).expand(level.shape)[left]
    return torch.cat([torch.stack(picks, -1), rest.reshape(len(level), -1)], -1)


def _log_ndtr(at: Tensor) -> Tensor:
    """Return the log probability below a standard normal's ``at``; its derivatives are finite, too."""
    low = at.clamp_max(_LOWEST)
    tail = 0.5 * (_LOWEST**2 - low.square()) - (low / _LOWEST).log()
    return torch.special.log_ndtr(at.clamp(_LOWEST, _HIGHEST)) + tail


def _truncated(at: Tensor, coins: Tensor) -> Tensor:
    """Return draws of a standard normal above ``-at``, by uniform coins.

    Beyond 20 standard deviations it is the draw there, moved: what exceeds the bound hardly changes.
    """
    near = at.clamp_min(_LOWEST)
    below = torch.special.log_ndtr(near).exp()  # ``ndtr`` is 0 from 9 standard deviations on
    return near - at - torch.special.ndtri(coins * below)


def _truncated_mean(at: Tensor) -> Tensor:
    """Return the mean of a standard normal above ``-at``, no higher than 20."""
    at = at.clamp(_LOWEST, -_LOWEST)
    log_density = -0.5 * at.square() - 0.5 * math.log(2 * math.pi)
    return (log_density - torch.special.log_ndtr(at)).exp()
