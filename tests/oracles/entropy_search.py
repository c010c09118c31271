"""Entropy search by brute force: condition on an outcome, count which point is smallest, average."""

import math

import torch


def information(mean, cov, c, variance, generator, draws=30_000, outcomes=37):
    """Mutual information of the smallest point and an observation of covariance ``c`` with all points.

    Outcomes are a grid over 9 standard deviations, and all use the same draws.
    """
    slope = c / math.sqrt(variance)
    values, vectors = torch.linalg.eigh(cov - torch.outer(slope, slope))
    z = torch.randn(draws, len(mean), generator=generator, dtype=mean.dtype)
    rest = z @ (vectors * values.clamp_min(0).sqrt()).T + mean
    grid = torch.linspace(-4.5, 4.5, outcomes, dtype=mean.dtype)
    weight = (-0.5 * grid.square()).softmax(0)
    shares = []
    for t in grid:
        smallest = (rest + slope * t).argmin(-1)
        shares.append(torch.bincount(smallest, minlength=len(mean)) / draws)
    q = torch.stack(shares).to(mean)
    left = torch.stack([entropy(one) for one in q])
    return (entropy(weight @ q) - weight @ left).item()


def entropy(p):
    return -torch.where(p > 0, p * p.clamp_min(1e-300).log(), 0.0).sum()
