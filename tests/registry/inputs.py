"""Rows that kernels and models are meant for, drawn in float64 on the device of the generator."""

import torch


def unit(n, generator):
    return torch.rand(n, 2, generator=generator, dtype=torch.float64, device=generator.device)


def rounds(n, generator):
    return torch.randint(30, (n, 1), generator=generator, device=generator.device).double()


def times(n, generator):
    return 3 * torch.rand(n, 1, generator=generator, dtype=torch.float64, device=generator.device)


def shares(n, generator):
    return torch.rand(n, 1, generator=generator, dtype=torch.float64, device=generator.device)


def unit_and_share(n, generator):
    return torch.cat([unit(n, generator), shares(n, generator)], -1)


def units_and_shares(n, generator):
    return torch.stack([shares(n, generator).squeeze(-1) for _ in range(4)], -1)


def arms(n, generator):
    return torch.randint(3, (n, 1), generator=generator, device=generator.device).double()


def unit_and_round(n, generator):
    return torch.cat([unit(n, generator), rounds(n, generator)], -1)


def arm_and_round(n, generator):
    return torch.cat([arms(n, generator), rounds(n, generator)], -1)


def story(questions, n=12):
    generator = torch.Generator().manual_seed(11)
    X = questions(n, generator)
    return X, torch.randn(n, generator=generator, dtype=torch.float64)
