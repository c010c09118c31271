"""Data of a drifting reward and two models of it, shared by the tests of acquisition functions."""

import torch

from botorch_costly.models import StreamingGP, TimeVaryingGP

NOW = 11.0
BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


def data(seed=0, batch=(), dtype=torch.float64):
    """Ten queries in rounds 0 .. 9 at rewards around 50."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(*batch, 10, 2, generator=generator, dtype=torch.float64)
    noise = 0.3 * torch.randn(*batch, 10, 1, generator=generator, dtype=torch.float64)
    rounds = torch.arange(10.0, dtype=torch.float64).unsqueeze(-1).expand(*batch, 10, 1)
    Y = 50 + torch.sin(6 * X[..., :1]) + X[..., 1:] + noise
    return torch.cat([X, rounds], -1).to(dtype), Y.to(dtype)


def dense(seed=0, kind=TimeVaryingGP, **kwargs):
    model = kind(*data(seed, **kwargs), forgetting=0.05)
    model.space_kernel.base_kernel.lengthscale = 0.4
    model.likelihood.noise = torch.full_like(model.likelihood.noise, 0.1)
    return model.eval()


def streaming(seed=0):
    belief = StreamingGP.from_model(dense(seed))
    for x, y in zip(*data(seed), strict=True):
        belief.observe(x, y.item())
    return belief
