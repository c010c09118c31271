"""Functions to minimize, and boxes to do so in."""

import torch


def rosenbrock(x):
    return (100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2).sum(-1)


def branin(x):
    a, b = x.unbind(-1)
    bowl = b - 5.1 / (4 * torch.pi**2) * a**2 + 5 / torch.pi * a - 6
    return bowl**2 + 10 * (1 - 1 / (8 * torch.pi)) * torch.cos(a) + 10


def quadratic(x):
    generator = torch.Generator().manual_seed(3)
    root = torch.randn(8, 8, generator=generator, dtype=x.dtype)
    slope = 3 * torch.randn(8, generator=generator, dtype=x.dtype)
    return 0.5 * (x @ root).square().sum(-1) + 0.05 * x.square().sum(-1) + x @ slope


def hartmann6(x):
    weight = torch.tensor([1.0, 1.2, 3.0, 3.2], dtype=x.dtype)
    a = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8]]
    a = torch.tensor([*a, [17, 8, 0.05, 10, 0.1, 14]], dtype=x.dtype)
    p = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991]]
    p += [[2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]
    p = 1e-4 * torch.tensor(p, dtype=x.dtype)
    return -((-(a * (x[..., None, :] - p).square()).sum(-1)).exp() @ weight)


def box(d, lower, upper):
    return torch.tensor([[lower] * d, [upper] * d], dtype=torch.float64)


def starts(bounds, n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    unit = torch.rand(n, bounds.shape[1], generator=generator, dtype=bounds.dtype)
    return bounds[0] + (bounds[1] - bounds[0]) * unit


PROBLEMS = {
    "rosenbrock": (rosenbrock, box(2, -2.0, 2.0)),
    "rosenbrock with active bounds": (rosenbrock, box(4, -0.5, 0.7)),
    "branin": (branin, torch.tensor([[-5.0, 0.0], [10.0, 15.0]], dtype=torch.float64)),
    "quadratic with active bounds": (quadratic, box(8, -1.0, 1.0)),
    "quadratic, ill-conditioned": (quadratic, box(8, -100.0, 100.0)),
    "hartmann6": (hartmann6, box(6, 0.0, 1.0)),
}
