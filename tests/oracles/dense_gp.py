"""The time-varying GP as the paper writes it: one dense solve over all observations."""

import math

import torch


def matern(x1, x2, lengthscale, outputscale=1.0, nu=2.5):
    """Textbook Matérn covariance, entry by entry."""
    covariance = torch.zeros(len(x1), len(x2), dtype=x1.dtype)
    for i, a in enumerate(x1):
        for j, b in enumerate(x2):
            r = (((a - b) / lengthscale) ** 2).sum().sqrt().item()
            if nu == 0.5:
                value = math.exp(-r)
            elif nu == 1.5:
                value = (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)
            elif nu == 2.5:
                value = (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r)
            else:
                value = math.exp(-0.5 * r * r)
            covariance[i, j] = outputscale * value
    return covariance


def posterior(space_cov, times, y, noise, cross_cov, target_cov, now, forgetting):
    """Wang et al. (2021), section 3.1: K o D, k o d, and a dense solve.

    space_cov (n, n), cross_cov (m, n), target_cov (m, m): prior covariances over configurations;
    noise: a number, or one for each observation.
    """
    n = len(y)
    noises = [noise] * n if isinstance(noise, float) else noise
    noisy = torch.zeros(n, n, dtype=space_cov.dtype)
    for i in range(n):
        for j in range(n):
            lag = abs(times[i] - times[j])
            noisy[i, j] = space_cov[i, j] * (1 - forgetting) ** (lag / 2) + (i == j) * noises[i]
    decay = space_cov.new_tensor([(1 - forgetting) ** (abs(now - t) / 2) for t in times])
    cross = cross_cov * decay
    gain = torch.linalg.solve(noisy, cross.mT).mT
    log_prob = torch.distributions.MultivariateNormal(torch.zeros(n).to(y), noisy).log_prob(y)
    return gain @ y, target_cov - gain @ cross.mT, log_prob
