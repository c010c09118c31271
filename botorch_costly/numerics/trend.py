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
    step = rates.new_tensor([[1.0, gap, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    level, both = gap**3 / 3, gap**2 / 2
    noise = rates.new_tensor([[level, both, 0.0], [both, gap, 0.0], [0.0, 0.0, 0.0]])
    mean = trend.mean @ step.mT
    return Trend(mean, step @ trend.covariance @ step.mT + rates[:, None, None] * noise)


def predict(trend: Trend, regressor: float) -> tuple[Tensor, Tensor]:
    """Return mean and variance of the noiseless value for a regressor ``x``, each ``(m,)``."""
    design = trend.mean.new_tensor([1.0, 0.0, regressor])
    return trend.mean @ design, (trend.covariance @ design) @ design


def observe(
    trend: Trend,
    value: float,
    regressor: float,  # x
    noise: Tensor,  # variance of the observation, shape: (m,)
) -> tuple[Trend, Tensor]:  # the second: log density of the value, shape: (m,)
    """Return the posteriors given a value, and how likely it was."""
    design = trend.mean.new_tensor([1.0, 0.0, regressor])
    column = trend.covariance @ design
    variance = column @ design + noise
    error = value - trend.mean @ design
    weight = column / variance[:, None]
    mean = trend.mean + weight * error[:, None]
    covariance = trend.covariance - weight[:, :, None] * column[:, None, :]
    density = -0.5 * (error.square() / variance + (2 * torch.pi * variance).log())
    return Trend(mean, covariance), density
