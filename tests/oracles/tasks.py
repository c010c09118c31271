"""Earlier tasks written out: loops, dense matrices and one joint Gaussian over weights and values."""

import math

import torch

from tests.oracles.dense_gp import matern

COMMON = 0.5


def gp_moments(x, y, lengthscale, variance, noise, X, nu=2.5):
    """Rasmussen and Williams (2.23) to (2.26), by a dense inverse."""
    K = matern(x, x, lengthscale, variance, nu) + noise * torch.eye(len(x)).to(x)
    k = matern(X, x, lengthscale, variance, nu)
    mean = k @ torch.linalg.inv(K) @ y
    return mean, gp_covariance(x, lengthscale, variance, noise, X, nu).diagonal().sqrt()


def gp_covariance(x, lengthscale, variance, noise, X, nu=2.5):
    K = matern(x, x, lengthscale, variance, nu) + noise * torch.eye(len(x)).to(x)
    k = matern(X, x, lengthscale, variance, nu)
    return matern(X, X, lengthscale, variance, nu) - k @ torch.linalg.inv(K) @ k.mT


def gp_evidence(x, y, lengthscale, variance, noise, nu=2.5):
    K = matern(x, x, lengthscale, variance, nu) + noise * torch.eye(len(x)).to(x)
    return torch.distributions.MultivariateNormal(torch.zeros(len(y)).to(y), K).log_prob(y)


def gap(values, mean, std, beta, largest):
    """Lemma 1 of Dai et al. (2022), entry by entry."""
    each = [
        max(abs(y - (m + beta * s)), abs(y - (m - beta * s)))
        for y, m, s in zip(values, mean, std, strict=True)
    ]
    return max(each) if largest else sum(each) / len(each)


def regularized_loss(weights, losses, rate):
    """(6) of Dai et al. (2022): linear losses and the entropy."""
    return (
        sum(w * c for w, c in zip(weights, losses, strict=True))
        + sum(w * math.log(w) for w in weights if w > 0) / rate
    )


def evidence_of_units(values, mean, cov, units, points=13, width=3.0):
    """Log evidence by a mixture over scales, each a multivariate normal of the raw values."""
    total, mass = 0.0, 0.0
    n = len(values)
    for k in range(points):
        away = -width + 2 * width * k / (points - 1)
        scale = math.exp(units.log_scale + units.log_scale_std * away)
        raw = scale**2 * cov + units.offset_std**2 * torch.ones(n, n).to(cov)
        normal = torch.distributions.MultivariateNormal(units.offset + scale * mean, raw)
        weight = math.exp(-0.5 * away**2)
        total += weight * math.exp(float(normal.log_prob(values)))
        mass += weight
    return math.log(total / mass)


def transfer_moments(means, stds, similarity, alike, values, rows, units, scale):
    """Posterior of the target at all points, from one Gaussian over (offset, level, weights, delta).

    means, stds (tasks, m): of the tasks at all m points; alike (m, m): correlation of what is the
    target's own; rows: numbers of the points where ``values`` were observed; scale: that of the target.
    """
    offset = torch.ones(1, means.shape[1]).to(means)
    start, root = units.offset / scale, units.offset_std / scale
    mean, cov = transfer_prior(means, stds, similarity, alike)
    mean, cov = mean + start, cov + root**2 * offset.mT @ offset
    noise = float(similarity.noise)
    noisy = cov[rows][:, rows] + noise * torch.eye(len(rows)).to(cov)
    gain = cov[:, rows] @ torch.linalg.inv(noisy)
    after = mean + gain @ (values / scale - mean[rows])
    left = cov - gain @ cov[rows]
    return scale * after, scale * left.diagonal().sqrt()


def transfer_prior(means, stds, similarity, alike):
    """Mean and covariance of the target at m points without offset: of level, weights and delta."""
    tasks, m = means.shape
    level, spread, own = (float(part) for part in similarity[:3])
    u = ((spread / tasks + (level / tasks) ** 2) * stds.square().sum(0)).sqrt()
    delta = torch.zeros(m, m, dtype=means.dtype)
    for i in range(m):
        for j in range(m):
            delta[i, j] = (own + u[i] * u[j]) * alike[i, j]
    design = torch.cat([means.mean(0, keepdim=True), means]).mT
    variance = torch.tensor([COMMON] + [spread / tasks] * tasks, dtype=means.dtype)
    start = torch.tensor([level] + [0.0] * tasks, dtype=means.dtype)
    return design @ start, design @ torch.diag(variance) @ design.mT + delta


def log_posterior_of_similarity(moved, learnt, means, stds, inputs, values, units):
    """Log posterior of a target's similarity, ``moved`` by so much in logarithms from what was learnt."""
    pairs = zip(learnt[:4], moved[:4], strict=True)
    level, spread, own, noise = (float(part) * math.exp(by) for part, by in pairs)
    lengthscale = learnt.lengthscale * torch.tensor([math.exp(by) for by in moved[4:]])
    alike = matern(inputs, inputs, lengthscale)
    mean, cov = transfer_prior(means, stds, (level, spread, own), alike)
    told = evidence_of_units(values, mean, cov + noise * torch.eye(len(values)).to(cov), units)
    return told - sum(by**2 for by in moved) / 2
