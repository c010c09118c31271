"""Log evidence and log priors written from the formulas: loops over entries, one dense solve."""

import math

import torch

from tests.oracles import dense_gp

NU = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5, "matern52_nugget": 2.5, "rbf": None}


def noisy_covariance(family, inputs, lengthscale, outputscale, noise, forgetting, extra=None):
    """Entry by entry: inputs (n, d + 1) of configurations and rounds, lengthscale (d,), extra (n,)."""
    x, t = inputs[:, :-1], inputs[:, -1].tolist()
    covariance = dense_gp.matern(x, x, lengthscale, outputscale, NU[family])
    if family == "matern52_nugget":
        same = torch.tensor([[float(torch.equal(a, b)) for b in x] for a in x], dtype=x.dtype)
        covariance = 0.9 * covariance + 0.1 * outputscale * same
    noisy = covariance.tolist()
    for i in range(len(t)):
        for j in range(len(t)):
            noisy[i][j] *= (1 - forgetting) ** (abs(t[i] - t[j]) / 2)
        noisy[i][i] += float(noise) + (0.0 if extra is None else extra[i].item())
    return torch.tensor(noisy, dtype=x.dtype)


def log_evidence(family, inputs, y, lengthscale, outputscale, noise, forgetting, extra=None):
    noisy = noisy_covariance(family, inputs, lengthscale, outputscale, noise, forgetting, extra)
    quadratic = float(y @ torch.linalg.solve(noisy, y))
    log_det = float(torch.linalg.eigvalsh(noisy).log().sum())
    return -0.5 * quadratic - 0.5 * log_det - 0.5 * len(y) * math.log(2 * math.pi)


def log_normal(value, mu, sigma):
    density = math.exp(-((math.log(value) - mu) ** 2) / (2 * sigma**2))
    return math.log(density / (value * sigma * math.sqrt(2 * math.pi)))


def gamma(value, shape, rate):
    return math.log(
        rate**shape * value ** (shape - 1) * math.exp(-rate * value) / math.gamma(shape)
    )


def log_prior(lengthscale, outputscale, forgetting=None):
    """BoTorch's dimension-scaled prior, Gamma(2, 0.15), and the package's prior of a learnt rate."""
    mu = math.sqrt(2) + math.log(len(lengthscale)) / 2
    total = sum(log_normal(value, mu, math.sqrt(3)) for value in lengthscale)
    total += gamma(outputscale, 2.0, 0.15)
    return total if forgetting is None else total + log_normal(forgetting, -4.605, 1.5)


def average_information(derivatives, noisy, y):
    """1/2 (K_a alpha)' K^{-1} (K_b alpha), derivatives dK/dtheta_a given one by one."""
    inverse = torch.linalg.inv(noisy)
    moved = [derivative @ inverse @ y for derivative in derivatives]
    return torch.stack([torch.stack([0.5 * a @ inverse @ b for b in moved]) for a in moved])


def differences(value, theta, step):
    """Central differences of a batched function, exact to about step^4."""
    columns = []
    for unit in torch.eye(len(theta), dtype=theta.dtype):
        near, far = (
            value(theta + k * step * unit) - value(theta - k * step * unit) for k in (1, 2)
        )
        columns.append((8 * near - far) / (12 * step))
    return torch.stack(columns, -1)
