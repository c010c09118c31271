"""Differences of an additive process, entry by entry, from the text of ``numerics/differences.py``."""

import math

import torch
from torch.distributions import MultivariateNormal


def alike(a, b, lengthscale):
    s = math.sqrt(5) * abs(a - b) / lengthscale
    return (1 + s + s**2 / 3) * math.exp(-s)


def covariances(rows, others, smoothness):
    n, m, d = len(rows.points), len(others.points), rows.points.shape[1]
    found = torch.zeros(d, n, m, dtype=torch.float64)
    for j in range(d):
        for i in range(n):
            for k in range(m):
                x, c = float(rows.points[i, j]), float(rows.references[i, j])
                y, e = float(others.points[k, j]), float(others.references[k, j])
                paired = (
                    alike(x, y, smoothness.lengthscale)
                    - alike(x, e, smoothness.lengthscale)
                    - alike(c, y, smoothness.lengthscale)
                    + alike(c, e, smoothness.lengthscale)
                )
                lag = abs(float(rows.times[i]) - float(others.times[k]))
                found[j, i, k] = paired * math.exp(-smoothness.forgetting * lag)
    return found


def mixed(parts, scales):
    return sum(float(s) ** 2 * part for s, part in zip(scales, parts, strict=True))


def posterior(rows, values, asked, scales, smoothness):
    """Gaussian conditioning; the noise of an observation is that of the scales."""
    among = mixed(covariances(asked, asked, smoothness), scales.scales)
    if not len(values):
        return torch.zeros(len(among), dtype=torch.float64), among.diagonal()
    cov = mixed(covariances(rows, rows, smoothness), scales.scales)
    cov = cov + (scales.noise**2 + 1e-8) * torch.eye(len(values), dtype=torch.float64)
    cross = mixed(covariances(rows, asked, smoothness), scales.scales)
    mean = cross.mT @ torch.linalg.solve(cov, values)
    return mean, (among - cross.mT @ torch.linalg.solve(cov, cross)).diagonal()


def log_density(scales, parts, values, prior):
    """Log posterior density of scales and noise, up to a constant."""
    cov = mixed(parts, scales.scales)
    cov = cov + (scales.noise**2 + 1e-8) * torch.eye(len(values), dtype=torch.float64)
    fit = MultivariateNormal(torch.zeros_like(values), cov).log_prob(values)
    logs = [math.log(float(s)) for s in scales.scales]
    mean = sum(logs) / len(logs)
    beliefs = [((mean - math.log(prior.scale)) / prior.spread) ** 2]
    beliefs += [((log - mean) / prior.relevance) ** 2 for log in logs]
    beliefs += [(math.log(scales.noise / prior.noise) / prior.noise_spread) ** 2]
    return float(fit) - sum(beliefs) / 2
