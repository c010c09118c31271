"""The posterior of the best learning rate, by sums over a fine grid of rates."""

import math

import torch


def posterior(value, movement, *, noise, near, far, share):
    """Return the mean and the standard deviation of the best rate, in decades from the user's.

    The prior is ``(1 - share) N(0, near^2) + share N(0, far^2)``. The likelihood of ``value``
    is ``N(u, noise^2)`` for the choice of a part, and ``N(u, noise^2 + movement^2)`` within it.
    """
    grid = torch.linspace(-15, 15, 300_001, dtype=torch.float64)

    def normal(x, variance):
        return (-(x**2) / (2 * variance)).exp() / math.sqrt(2 * math.pi * variance)

    weights = torch.zeros_like(grid)
    for chance, spread in ((1 - share, near), (share, far)):
        prior = normal(grid, spread**2)
        evidence = (prior * normal(value - grid, noise**2)).sum()
        within = prior * normal(value - grid, noise**2 + movement**2)
        weights = weights + chance * evidence * within / within.sum()
    weights = weights / weights.sum()
    mean = (weights * grid).sum()
    return mean.item(), (weights * (grid - mean) ** 2).sum().sqrt().item()
