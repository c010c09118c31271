"""A cubic smoothing spline with one regressor, as a Gaussian process with dense matrices."""

import torch


def covariance(times, others, regressors, other_regressors, rate, deviations, start):
    """Return the prior covariance of values at two sets of times, all at least ``start``."""
    s, t = (times - start)[:, None], (others - start)[None]
    least = torch.minimum(s, t)
    spline = least**2 * torch.maximum(s, t) / 2 - least**3 / 6
    level, slope, response = (deviation**2 for deviation in deviations)
    return (
        level
        + slope * s * t
        + rate * spline
        + response * regressors[:, None] * other_regressors[None]
    )


def posterior(times, values, regressors, noise, rate, deviations, time, regressor):
    """Return mean and variance of the value at ``time``, and the log density of ``values``."""
    start = times[0]
    at, x = times.new_tensor([time]), times.new_tensor([regressor])
    K = covariance(times, times, regressors, regressors, rate, deviations, start)
    k = covariance(times, at, regressors, x, rate, deviations, start)
    c = covariance(at, at, x, x, rate, deviations, start)
    density = torch.distributions.MultivariateNormal(
        torch.zeros_like(values), K + torch.diag(noise)
    )
    weights = torch.linalg.solve(K + torch.diag(noise), k)
    return (
        (weights.mT @ values).item(),
        (c - weights.mT @ k).item(),
        density.log_prob(values).item(),
    )
