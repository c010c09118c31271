"""Which value is the smallest: one site after another with dense inverses, and by drawing."""

import math

import torch
from torch.special import log_ndtr


def log_prob_min(mean, cov, sweeps=200):
    """EP of each point's orthant, site by site, and the normalized logarithms."""
    points = len(mean)
    raw = []
    for j in range(points):
        D = torch.eye(points, dtype=mean.dtype)
        D[:, j] -= 1
        D = D[[i for i in range(points) if i != j]]
        raw.append(log_orthant(D @ mean, D @ cov @ D.T, sweeps))
    return torch.stack(raw).log_softmax(0)


def log_orthant(mean, cov, sweeps):
    """``log P(u > 0)`` by expectation propagation (Minka 2001)."""
    n = len(mean)
    tau, nu, scale = (torch.zeros(n, dtype=mean.dtype) for _ in range(3))
    prior = torch.linalg.inv(cov)
    for _ in range(sweeps):
        for i in range(n):
            C = torch.linalg.inv(prior + tau.diag())
            m = C @ (prior @ mean + nu)
            precision = 1 / C[i, i] - tau[i]
            shift = m[i] / C[i, i] - nu[i]
            c, mu = 1 / precision, shift / precision
            z = mu / c.sqrt()
            r = torch.exp(-0.5 * z * z - 0.5 * math.log(2 * math.pi) - log_ndtr(z))
            tilted_mean, tilted_variance = mu + c.sqrt() * r, c * (1 - r * (r + z))
            tau[i] = 1 / tilted_variance - precision
            nu[i] = tilted_mean / tilted_variance - shift
            # The site's scale: its cavity's mass is that of the step.
            mass = 0.5 * ((shift + nu[i]) ** 2 / (precision + tau[i]) - shift**2 / precision)
            scale[i] = log_ndtr(z) + 0.5 * torch.log1p(tau[i] * c) - mass
    C = torch.linalg.inv(prior + tau.diag())
    pull = prior @ mean + nu
    together = 0.5 * (pull @ C @ pull - mean @ prior @ mean)
    return scale.sum() + together + 0.5 * (torch.logdet(C) - torch.logdet(cov))


def drawn_prob_min(mean, cov, draws, generator):
    """Shares of draws in which each value is the smallest."""
    values, vectors = torch.linalg.eigh(cov)
    root = vectors * values.clamp_min(0).sqrt()
    counts = torch.zeros(len(mean), dtype=mean.dtype)
    for _ in range(draws // 50_000):
        z = torch.randn(50_000, len(mean), dtype=mean.dtype, generator=generator)
        counts += torch.bincount((z @ root.T + mean).argmin(-1), minlength=len(mean))
    return counts / counts.sum()
