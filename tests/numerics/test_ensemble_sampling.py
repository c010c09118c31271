"""MCMC samples from a density, and convergence diagnostics."""

import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.numerics.ensemble_sampling import diagnose, walk

NUMBERS = {"dtype": torch.float64}


def gaussian(x):
    """Two problems: correlated, and of very unlike scales."""
    first = -0.5 * (x[0, ..., 0] ** 2 + (x[0, ..., 1] - 0.9 * x[0, ..., 0]) ** 2 / 0.19)
    second = -0.5 * ((x[1, ..., 0] / 1e-3 - 1) ** 2 + (x[1, ..., 1] / 1e3) ** 2)
    return torch.stack([first, second])


@pytest.fixture(scope="module")
def chain():
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(2, 40, 2, generator=generator, **NUMBERS)
    start[1] *= torch.tensor([1e-3, 1e3], **NUMBERS)
    return walk(gaussian, start, 1500, generator, every=3)


def test_moments_match_the_density_for_all_scales(chain):
    points = chain.points[100:]
    mean, cov = points.mean((0, 2)), [torch.cov(points[:, i].reshape(-1, 2).T) for i in (0, 1)]
    torch.testing.assert_close(mean[0], torch.zeros(2, **NUMBERS), atol=0.08, rtol=0)
    expected = torch.tensor([[1.0, 0.9], [0.9, 1.0]], **NUMBERS)
    torch.testing.assert_close(cov[0], expected, atol=0.1, rtol=0)
    unit = torch.tensor([1e-3, 1e3], **NUMBERS)
    torch.testing.assert_close(
        mean[1] / unit, torch.tensor([1.0, 0.0], **NUMBERS), atol=0.08, rtol=0
    )
    scaled = cov[1] / (unit[:, None] * unit)
    torch.testing.assert_close(scaled, torch.eye(2, **NUMBERS), atol=0.1, rtol=0)
    assert 0.3 < chain.accepted < 0.9


def test_recorded_log_densities_match_the_points(chain):
    torch.testing.assert_close(chain.log_density[-1], gaussian(chain.points[-1]))


def test_no_walker_goes_where_there_is_no_density_or_no_number():
    def bounded(x):
        inside = torch.where(x[..., 0] > 0.5, torch.nan, 0.0)
        return torch.where((x.abs() < 1).all(-1), inside, -torch.inf)

    generator = torch.Generator().manual_seed(0)
    start = 0.4 * torch.rand(12, 3, generator=generator, **NUMBERS)
    points = walk(bounded, start, 400, generator).points
    assert points.abs().max() < 1
    assert points[..., 0].max() <= 0.5
    assert points[..., 1].std() > 0.4  # uniform over all of (-1, 1)


def test_an_odd_ensemble_is_refused():
    with pytest.raises(InvalidArgumentError, match="even number"):
        walk(gaussian, torch.zeros(3, 2), 1, torch.Generator())


def test_independent_draws_count_in_full_and_correlated_ones_by_their_time():
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(2000, 10, 2, generator=generator, **NUMBERS)
    actual = diagnose(noise)
    assert (actual.r_hat - 1).abs().max() < 0.01
    assert (actual.effective / 20_000 - 1).abs().max() < 0.15
    chain, kept = torch.zeros_like(noise), 0.8
    for step in range(1, len(noise)):
        chain[step] = kept * chain[step - 1] + math.sqrt(1 - kept**2) * noise[step]
    share = diagnose(chain).effective / 20_000
    assert (share / ((1 - kept) / (1 + kept)) - 1).abs().max() < 0.2


def test_walkers_that_do_not_mix_are_found_out():
    generator = torch.Generator().manual_seed(0)
    stuck = torch.randn(500, 10, 1, generator=generator, **NUMBERS)
    stuck = stuck + 3 * torch.arange(10, **NUMBERS)[:, None]
    actual = diagnose(stuck)
    assert actual.r_hat.item() > 3
    assert actual.effective.item() < 50
    drifting = stuck[:, :1] + torch.linspace(0, 10, 500, **NUMBERS)[:, None, None]
    assert diagnose(drifting).r_hat.item() > 1.5
