r"""Decomposition of the variance of rewards into effects of the configuration, of time, and noise.

Rewards of configurations ``x_i`` played in rounds ``t_i`` are modelled as

    y_i = trend(t_i) + f(x_i, t_i) + noise_i.

The trend is common to all configurations and smooth, with a lengthscale of a quarter of the run. ``f`` is
the effect of a configuration relative to the average one; it drifts as everywhere in this package. The
noise is white or, for gains of a metric, the difference of white noise of the *level* of the metric,
which correlates neighbours by -1/2. Shares of the variance, drift, lengthscale and kind of noise are on a
grid; the variance itself is integrated out. The prior probability of no effect of configurations is 1/2.
"""

import math
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.cholesky import squared_norm_and_log_det, sure_root
from botorch_costly.numerics.drift import retention

SIGNALS = (0.03, 0.1, 0.25, 0.5, 0.8)  # share of the variance that configurations explain, if any
TRENDS = (0.0, 0.1, 0.3, 0.6, 0.9)  # share of the remaining variance that time alone explains
FORGETTING = (0.0, 0.01, 0.1)  # drift of the effect of configurations
LEVEL_NOISE = (0.0, 0.25, 0.48)  # minus the correlation of neighbours; 1/2 would be singular
_LENGTHS_OF_TREND = 4  # lengthscales of the trend in a run
_LEAST_VARIANCE = 1e-9  # of the differences between configurations, which may all be equal


class Explained(NamedTuple):
    """Posterior means, each of shape ``()``."""

    signal: Tensor  # share of the variance that configurations explain
    trend: Tensor  # share of the variance that time alone explains
    forgetting: Tensor  # given that configurations have an effect
    level_noise: Tensor  # minus the correlation of the noise of neighbours, at most 1/2
    nothing: Tensor  # probability that configurations have no effect


def explained(targets: Tensor, correlations: Tensor, times: Tensor) -> Explained:
    """Return the shares of the variance of the targets, as posterior means over the grid.

    Args:
        targets: Rewards minus their mean, not all zero, shape ``(n,)``.
        correlations: Correlations of the configurations for ``k`` lengthscales, shape ``(k, n, n)``.
        times: Rounds of the rewards, ascending, shape ``(n,)``.
    """
    lag = (times.unsqueeze(-1) - times).abs()
    shares = list(product(TRENDS, LEVEL_NOISE))
    background = torch.stack([_background(lag, trend, level) for trend, level in shares])
    cells = [(0.0, trend, math.nan, level) for trend, level in shares]  # as in `Explained`
    evidence = [_log_evidence(background, targets)]
    for contrast, rate in product(contrasts(correlations), FORGETTING):
        effect = contrast * retention(lag.new_tensor(rate), lag)
        for signal in SIGNALS:
            cells += [(signal, (1 - signal) * trend, rate, level) for trend, level in shares]
            cov = signal * effect + (1 - signal) * background
            evidence.append(_log_evidence(cov, targets))
    grid = torch.tensor(cells, dtype=targets.dtype, device=targets.device)
    return _average(grid, torch.cat(evidence))


def contrasts(correlations: Tensor) -> Tensor:
    """Return the covariances of effects relative to the average configuration, of mean variance 1.

    The average effect is part of the trend.

    Args:
        correlations: Correlations of the configurations for ``k`` lengthscales, shape ``(k, n, n)``.

    Returns:
        Covariances, shape ``(k, n, n)``.
    """
    centered = correlations - correlations.mean(-1, keepdim=True)
    centered = centered - centered.mean(-2, keepdim=True)
    variance = centered.diagonal(dim1=-2, dim2=-1).mean(-1)
    return centered / variance.clamp_min(_LEAST_VARIANCE).reshape(-1, 1, 1)


def _background(lag: Tensor, trend: float, level: float) -> Tensor:
    """Return the covariance of trend and noise, ``(n, n)``."""
    eye = torch.eye(len(lag)).to(lag)
    # Neighbours in the order of queries, regardless of the number of rounds between them.
    neighbours = torch.ones_like(lag).tril(1).triu(-1) - eye
    noise = eye - level * neighbours
    smooth = (-0.5 * (_LENGTHS_OF_TREND * lag / lag.max().clamp_min(1)).square()).exp()
    return trend * smooth + (1 - trend) * noise


def _log_evidence(covariance: Tensor, targets: Tensor) -> Tensor:
    """Return the log evidence of covariances (``b x n x n``) with unknown scale, ``(b,)``."""
    squares, log_det = squared_norm_and_log_det(sure_root(covariance), targets)
    return -log_det - len(targets) / 2 * squares.log()


def _average(cells: Tensor, evidence: Tensor) -> Explained:
    """Return the posterior means over the cells of the grid."""
    none = cells[:, 0] == 0
    prior = torch.where(none, 0.5 / none.to(cells).sum(), 0.5 / (~none).to(cells).sum())
    weight = (evidence + prior.log()).softmax(0)
    signal, trend, forgetting, level_noise = cells.unbind(-1)
    with_signal = weight * ~none
    rate = (with_signal * forgetting.nan_to_num()).sum() / with_signal.sum().clamp_min(1e-300)
    signal, trend, level_noise = ((weight * v).sum() for v in (signal, trend, level_noise))
    return Explained(signal, trend, rate, level_noise, weight[none].sum())
