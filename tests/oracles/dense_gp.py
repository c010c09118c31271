"""The time-varying GP as the paper writes it: one dense solve over all observations."""

import math

import torch


def matern(x1, x2, lengthscale, outputscale=1.0, nu=2.5):
    """Textbook Matérn covariance, entry by entry."""
    width = torch.as_tensor(lengthscale, dtype=x1.dtype).expand(x1.shape[-1])
    rows, columns = (x.div(width).tolist() for x in (x1, x2))
    values = [[float(outputscale) * _matern(math.dist(a, b), nu) for b in columns] for a in rows]
    return torch.tensor(values, dtype=x1.dtype).reshape(len(rows), len(columns))


def _matern(r, nu):
    if nu == 0.5:
        return math.exp(-r)
    if nu == 1.5:
        return (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)
    if nu == 2.5:
        return (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r)
    return math.exp(-0.5 * r * r)


def posterior(space_cov, times, y, noise, cross_cov, target_cov, now, forgetting):
    """Wang et al. (2021), section 3.1: K o D, k o d, and a dense solve.

    space_cov (n, n), cross_cov (m, n), target_cov (m, m): prior covariances over configurations;
    noise: a number, or one for each observation.
    """
    n = len(y)
    noises = [noise] * n if isinstance(noise, float) else [float(own) for own in noise]
    prior, noisy = space_cov.tolist(), [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            lag = abs(times[i] - times[j])
            noisy[i][j] = prior[i][j] * (1 - forgetting) ** (lag / 2) + (i == j) * noises[i]
    noisy = space_cov.new_tensor(noisy).reshape(n, n)
    decay = space_cov.new_tensor([(1 - forgetting) ** (abs(now - t) / 2) for t in times])
    cross = cross_cov * decay
    gain = torch.linalg.solve(noisy, cross.mT).mT
    log_prob = torch.distributions.MultivariateNormal(torch.zeros(n).to(y), noisy).log_prob(y)
    return gain @ y, target_cov - gain @ cross.mT, log_prob
