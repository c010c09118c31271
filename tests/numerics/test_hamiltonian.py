"""Hamiltonian moves: those of a loop over walkers, and draws of the density they are to have."""

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.numerics.hamiltonian import hamiltonian_walk
from tests.oracles import hamiltonian as oracle

NUMBERS = {"dtype": torch.float64}
MEAN = torch.tensor([1.0, -2.0, 0.5], **NUMBERS)
ROOT = torch.tensor([[2.0, 0.0, 0.0], [1.5, 0.3, 0.0], [0.0, 0.1, 0.05]], **NUMBERS)


def normal(x):
    """The logarithm of a normal density whose scales differ by forty, and its gradient."""
    white = torch.linalg.solve(ROOT.to(x), (x - MEAN.to(x)).mT).mT
    return -0.5 * white.square().sum(-1), -torch.linalg.solve(ROOT.mT.to(x), white.mT).mT


def drawn(count, seed=0):
    z = torch.randn(count, 3, generator=torch.Generator().manual_seed(seed), **NUMBERS)
    return MEAN + z @ ROOT.mT


def quartic(x):
    """A density with heavy curvature, at which some moves are refused."""
    return -(x.pow(4).sum(-1) + x[..., 0] * x[..., 1]), -(4 * x.pow(3) + x.flip(-1))


def test_moves_are_those_of_a_loop_over_walkers():
    start = 0.7 * torch.randn(12, 2, generator=torch.Generator().manual_seed(3), **NUMBERS)
    generator, again = (torch.Generator().manual_seed(4) for _ in range(2))
    halves = list(start.chunk(2))
    for _ in range(4):
        for moving, other in ((0, 1), (1, 0)):
            momenta = torch.randn(6, 2, generator=again, **NUMBERS)
            step = 0.35 * (1 + 0.3 * (2 * torch.rand((), generator=again, **NUMBERS) - 1))
            coins = torch.rand(6, generator=again, **NUMBERS)
            halves[moving] = oracle.moved(
                lambda x: quartic(x)[0],
                halves[moving],
                halves[other],
                momenta,
                step,
                coins,
                leaps=5,
            )
    moved = hamiltonian_walk(quartic, start, 4, generator, leaps=5)
    torch.testing.assert_close(moved, torch.cat(halves), rtol=1e-5, atol=1e-6)
    assert (moved != start).any(-1).sum() >= 6  # of 12


def test_draws_of_a_density_remain_draws_of_it():
    """The mean of 2,000 walkers has a standard error of 1/45; four of them are allowed."""
    moved = hamiltonian_walk(normal, drawn(2000), 5, torch.Generator().manual_seed(1))
    white = torch.linalg.solve(ROOT, (moved - MEAN).mT).mT
    assert white.mean(0).abs().max() < 4 / 2000**0.5
    assert (torch.cov(white.mT) - torch.eye(3, **NUMBERS)).abs().max() < 4 * (2 / 2000) ** 0.5
    assert (moved != drawn(2000)).any(-1).double().mean() > 0.9


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_walkers_find_a_density_elsewhere(dtype):
    """They begin three standard deviations away, at half of its scales."""
    start = MEAN + 0.5 * (drawn(200) - MEAN) + 3 * ROOT[:, 1]
    moved = hamiltonian_walk(normal, start.to(dtype), 40, torch.Generator().manual_seed(5))
    assert moved.dtype == dtype
    white = torch.linalg.solve(ROOT, (moved.double() - MEAN).mT).mT
    assert white.mean(0).abs().max() < 0.35
    assert (white.std(0) - 1).abs().max() < 0.3


def test_walkers_stay_where_there_is_a_density():
    """Beyond the edge the density is NaN, and so is its slope."""

    def half(x):
        value, slope = normal(x)
        outside = x[:, 0] < 0
        return value.masked_fill(outside, torch.nan), slope.masked_fill(outside[:, None], torch.nan)

    start = drawn(100)
    start[:, 0] = start[:, 0].abs()
    moved = hamiltonian_walk(half, start, 10, torch.Generator().manual_seed(1))
    assert moved.isfinite().all()
    assert (moved[:, 0] >= 0).all()
    assert (moved != start).any()


def test_walkers_at_one_place_come_apart():
    moved = hamiltonian_walk(normal, MEAN.repeat(8, 1), 3, torch.Generator().manual_seed(1))
    assert moved.isfinite().all()
    assert len(moved.unique(dim=0)) == 8


@pytest.mark.parametrize("walkers", [0, 2, 5])
def test_other_numbers_of_walkers_are_refused(walkers):
    with pytest.raises(InvalidArgumentError, match="even"):
        hamiltonian_walk(normal, drawn(walkers), 1, torch.Generator())
