"""Hamiltonian moves, walker by walker, with a mass matrix as in Neal's chapter."""

import torch


def moved(log_density, walkers, others, momenta, step, coins, leaps):
    """Move each walker once; ``momenta`` are standard normal, of masses one in the units of the others.

    The density is a function of one point; its gradient is taken by central differences.
    """
    spread = torch.cov(others.T)
    inverse_mass = 0.9 * spread + 0.1 * spread.diagonal().diag()
    root = torch.linalg.cholesky(inverse_mass)
    ends = []
    for x, r, coin in zip(walkers, momenta, coins, strict=True):
        q, p = x.clone(), torch.linalg.solve(root.T, r)
        start_energy = -log_density(q) + 0.5 * p @ inverse_mass @ p
        for _ in range(leaps):
            p = p + 0.5 * step * slope(log_density, q)
            q = q + step * inverse_mass @ p
            p = p + 0.5 * step * slope(log_density, q)
        energy = -log_density(q) + 0.5 * p @ inverse_mass @ p
        ends.append(q if coin < torch.exp(start_energy - energy) else x)
    return torch.stack(ends)


def slope(function, x, width=1e-5):
    slopes = []
    for unit in torch.eye(len(x), dtype=x.dtype):
        slopes.append((function(x + width * unit) - function(x - width * unit)) / (2 * width))
    return torch.stack(slopes)
