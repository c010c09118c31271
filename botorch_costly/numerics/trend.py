r"""Local linear trends with a known regressor: a bank of Kalman filters that differ in their two rates.

The value at time ``s`` is ``level(s) + response x(s)`` plus noise, where the level follows an integrated
Wiener process (its slope a Wiener process of rate ``q``), and the response is constant. With a gap ``g``
between two times,

    level' = level + g slope,   noise of (level, slope) = q [[g^3/3, g^2/2], [g^2/2, g]]        (1)

which is the exact discretization, so the gaps may be uneven. The posterior mean of such a process is a
cubic smoothing spline.

Notation: states ``(level, slope, response)``; ``m`` filters; all tensors in float64 and in the units of
the caller.

References:
    A. C. Harvey. Forecasting, structural time series models and the Kalman filter. 1989. Chapter 4.
    G. Wahba. Improper priors, spline smoothing and the problem of guarding against model errors in
    regression. JRSS B 40, 1978.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Trend(NamedTuple):
    """The posteriors of a bank of filters at one time."""

    mean: Tensor  # shape: (m, 3)
    covariance: Tensor  # shape: (m, 3, 3)


def prior(filters: int, deviations: Tensor) -> Trend:
    """Return ``m`` filters with mean 0 and independent ``deviations`` of the three states, ``(3,)``."""
    covariance = torch.diag(deviations.square()).expand(filters, 3, 3)
    return Trend(deviations.new_zeros(filters, 3), covariance)


def advance(
    trend: Trend,
    gap: float,  # at least 0
    rates: Tensor,  # q, shape: (m,)
) -> Trend:
    """Return the posteriors after a gap without an observation, equation (1)."""
    if gap <= 0:
        return trend
    step, noise = (part[0] for part in _steps(rates.new_tensor([gap]), rates))
    return Trend(trend.mean @ step.mT, step @ trend.covariance @ step.mT + noise)


def _steps(
    gaps: Tensor,  # shape: (n,)
    rates: Tensor,  # shape: (m,)
) -> tuple[Tensor, Tensor]:  # shapes: (n, 3, 3), (n, m, 3, 3)
    """Return the matrices and the noises of equation (1)."""
    step = torch.eye(3).to(rates).repeat(len(gaps), 1, 1)
    step[:, 0, 1] = gaps
    noise = torch.zeros_like(step)
    noise[:, 0, 0], noise[:, 1, 1] = gaps**3 / 3, gaps
    noise[:, 0, 1] = noise[:, 1, 0] = gaps**2 / 2
    return step, rates[:, None, None] * noise[:, None]


def predict(trend: Trend, regressor: float) -> tuple[Tensor, Tensor]:
    """Return mean and variance of the noiseless value for a regressor ``x``, each ``(m,)``."""
    design = trend.mean.new_tensor([1.0, 0.0, regressor])
    return trend.mean @ design, (trend.covariance @ design) @ design


def observe(
    trend: Trend,
    gaps: Tensor,  # before each value, since the one before; at least 0, shape: (n,)
    values: Tensor,  # shape: (n,)
    regressors: Tensor,  # x, shape: (n,)
    noises: Tensor,  # variances of the observations, shape: (n, m)
    rates: Tensor,  # q, shape: (m,)
) -> tuple[Trend, Tensor]:  # the second: log density of the values, shape: (m,)
    """Return the posteriors given values one after the other, and how likely these were."""
    ones = torch.ones_like(regressors)
    designs = torch.stack([ones, torch.zeros_like(ones), regressors], -1)
    mean, covariance, errors, variances = *trend, [], []
    rows = zip(*_steps(gaps, rates), designs, values, noises, strict=True)
    for step, spread, design, value, noise in rows:
        mean, covariance = mean @ step.mT, step @ covariance @ step.mT + spread
        column = covariance @ design
        variance, error = column @ design + noise, value - mean @ design
        weight = column / variance[:, None]
        mean = torch.addcmul(mean, weight, error[:, None])
        covariance = torch.addcmul(covariance, weight[:, :, None], column[:, None, :], value=-1)
        errors.append(error)
        variances.append(variance)
    spreads = torch.stack(variances)
    terms = torch.stack(errors).square() / spreads + (2 * torch.pi * spreads).log()
    return Trend(mean, covariance), -0.5 * terms.sum(0)
