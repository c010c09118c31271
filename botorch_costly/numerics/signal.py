r"""What explains the variance of rewards: the configuration, the time, or chance.

Rewards of configurations ``x_i`` played in rounds ``t_i`` are modelled as

    y_i = trend(t_i) + f(x_i, t_i) + noise_i.

The trend is common to all configurations, and smooth over a quarter of the run. ``f`` is what
configurations do beyond what they have in common; it drifts as everywhere in this package. The noise is
white, or, as in gains of a metric, the difference of white noise of the *level*, which gives neighbours
the correlation -1/2. The shares of the variance, the drift, the lengthscale and the kind of noise lie on
a grid; the variance itself is integrated out. One half of the prior is on configurations that explain
nothing.
"""

import math
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.cholesky import sure_root
from botorch_costly.numerics.drift import retention

SIGNALS = (0.03, 0.1, 0.25, 0.5, 0.8)  # share of the variance that configurations explain, if any
TRENDS = (0.0, 0.1, 0.3, 0.6, 0.9)  # share of the rest that time alone explains
FORGETTING = (0.0, 0.01, 0.1)  # of what configurations explain
LEVEL_NOISE = (0.0, 0.25, 0.48)  # minus the correlation of neighbours; at 1/2 it would be singular
_LENGTHS_OF_TREND = 4  # in a run
_LEAST_VARIANCE = 1e-9  # between configurations that are all equal


class Explained(NamedTuple):
    """Posterior means, each of shape ``()``."""

    signal: Tensor  # share of the variance that configurations explain
    trend: Tensor  # share that time alone explains
    forgetting: Tensor  # if configurations explain anything
    level_noise: Tensor  # minus the correlation of the noise of neighbours, at most 1/2
    nothing: Tensor  # probability that configurations explain nothing


class _Cell(NamedTuple):
    signal: float
    trend: float
    forgetting: float
    level_noise: float


def explained(targets: Tensor, correlations: Tensor, times: Tensor) -> Explained:
    """Return the shares of the variance of the targets, as posterior means over the grid.

    Args:
        targets: Of mean zero and not all zero, shape ``(n,)``.
        correlations: Between the configurations, for each lengthscale, shape ``(k, n, n)``.
        times: Their rounds, ascending, shape ``(n,)``.
    """
    lag = (times.unsqueeze(-1) - times).abs()
    shares = list(product(TRENDS, LEVEL_NOISE))
    rest = torch.stack([_rest(lag, trend, level) for trend, level in shares])
    cells = [_Cell(0.0, trend, math.nan, level) for trend, level in shares]
    evidence = [_log_evidence(rest, targets)]
    for contrast, rate in product(contrasts(correlations), FORGETTING):
        moving = contrast * retention(lag.new_tensor(rate), lag)
        for signal in SIGNALS:
            cells += [_Cell(signal, (1 - signal) * t, rate, level) for t, level in shares]
            evidence.append(_log_evidence(signal * moving + (1 - signal) * rest, targets))
    grid = torch.tensor(cells, dtype=targets.dtype, device=targets.device)
    return _average(grid, torch.cat(evidence))


def contrasts(correlations: Tensor) -> Tensor:
    """Return the covariances of differences between configurations, of variance one on average.

    What all configurations share is no difference between them, and belongs to the trend.

    Args:
        correlations: Between the configurations, for each lengthscale, shape ``(k, n, n)``.

    Returns:
        The covariances, shape ``(k, n, n)``.
    """
    among = correlations - correlations.mean(-1, keepdim=True)
    among = among - among.mean(-2, keepdim=True)
    variance = among.diagonal(dim1=-2, dim2=-1).mean(-1)
    return among / variance.clamp_min(_LEAST_VARIANCE).reshape(-1, 1, 1)


def _rest(lag: Tensor, trend: float, level: float) -> Tensor:
    """Return the covariance of the part that does not depend on configurations, ``(n, n)``."""
    eye = torch.eye(len(lag)).to(lag)
    # Neighbours in the order of queries, however many rounds lie between.
    neighbours = torch.ones_like(lag).tril(1).triu(-1) - eye
    noise = eye - level * neighbours
    smooth = (-0.5 * (_LENGTHS_OF_TREND * lag / lag.max().clamp_min(1)).square()).exp()
    return trend * smooth + (1 - trend) * noise


def _log_evidence(covariance: Tensor, targets: Tensor) -> Tensor:
    """Return the log evidence of each covariance (``b x n x n``) up to an unknown scale, ``(b,)``."""
    factor = sure_root(covariance)
    white = torch.linalg.solve_triangular(factor, targets.unsqueeze(-1), upper=False)
    log_root_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return -log_root_det - len(targets) / 2 * white.square().sum((-2, -1)).log()


def _average(cells: Tensor, evidence: Tensor) -> Explained:
    """Return the means over the grid; one half of the prior is on no signal."""
    none = cells[:, 0] == 0
    prior = torch.where(none, 0.5 / none.to(cells).sum(), 0.5 / (~none).to(cells).sum())
    weight = (evidence + prior.log()).softmax(0)
    signal, trend, forgetting, level_noise = cells.unbind(-1)
    some = weight * ~none
    rate = (some * forgetting.nan_to_num()).sum() / some.sum().clamp_min(1e-300)
    signal, trend, level_noise = ((weight * part).sum() for part in (signal, trend, level_noise))
    return Explained(signal, trend, rate, level_noise, weight[none].sum())
