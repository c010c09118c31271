"""MCMC samples from a density, and convergence diagnostics."""

import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.numerics.ensemble_sampling import anneal, diagnose, further, walk

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


def standard(x):
    return -0.5 * x.square().sum(-1)


def test_walkers_anneal_to_two_narrow_modes_far_away_by_their_masses():
    """Walks that start in the wide density would find one mode, or none in so many steps."""

    def narrow(x):
        left, right = (((x - at) / 0.05).square().sum(-1) for at in (-1.5, 1.5))
        return torch.logsumexp(torch.stack([-0.5 * left, math.log(3) - 0.5 * right]), 0)

    generator = torch.Generator().manual_seed(0)
    ends = []
    for _ in range(10):
        start = torch.randn(40, 3, generator=generator, **NUMBERS)
        ends.append(walk(narrow, anneal(narrow, standard, start, 8, generator), 5, generator))
    points = torch.cat([end.points[-1] for end in ends])
    right = points.mean(-1) > 0
    assert 0.5 < right.double().mean() < 0.95  # 3 in 4; ten groups, each with its own share
    assert ((points.abs() - 1.5).mean(0).abs() < 0.02).all()
    assert ((points[right].std(0) / 0.05 - 1).abs() < 0.2).all()


def test_the_next_density_leaves_four_walkers_in_five():
    """The naive twin tries all steps of a grid."""
    gained = 30 * torch.randn(50, generator=torch.Generator().manual_seed(1), **NUMBERS)
    gained[::7] = -torch.inf
    inside = gained[gained.isfinite()]

    def effective(step):
        weights = (step * inside).exp()
        return float(weights.sum() ** 2 / weights.square().sum()) / len(inside)

    for b in (0.0, 0.4):
        expected = max(k for k in range(1, 6000) if effective(k * 1e-4) >= 0.8) * 1e-4
        assert further(gained, b) - b == pytest.approx(expected, rel=0.03)
    assert further(1e-6 * gained, 0.4) == 1.0
    assert further(torch.full((5,), -torch.inf), 0.0) == 1.0


def test_where_no_walker_has_a_density_annealing_ends():
    start = torch.randn(6, 2, generator=torch.Generator().manual_seed(0), **NUMBERS)

    def nowhere(x):
        return torch.full_like(x[..., 0], torch.nan)

    generator = torch.Generator().manual_seed(0)
    assert anneal(nowhere, standard, start, 2, generator).shape == start.shape
