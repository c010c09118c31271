"""A process of differences against its definition, entry by entry, and its properties."""

import itertools

import pytest
import torch

from botorch_costly.numerics import differences
from botorch_costly.numerics.differences import (
    Differences,
    ScalePrior,
    Scales,
    Smoothness,
    covariances,
    fit_scales,
    posterior,
)
from tests.oracles import differences as naive

SMOOTHNESS = Smoothness(lengthscale=0.6, forgetting=0.4)
PRIOR = ScalePrior(scale=0.3)
SCALES = Scales(torch.tensor([0.5, 0.1, 0.02], dtype=torch.float64), 0.05)


def drawn(n, d=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    cube = torch.rand(2, n, d, generator=generator, dtype=torch.float64)
    times = 3 * torch.rand(n, generator=generator, dtype=torch.float64)
    return Differences(cube[0], cube[1], times)


def values_of(n, seed=1):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def close(ours, theirs):
    return torch.allclose(ours, theirs, rtol=0, atol=1e-8)


def test_covariances_entry_by_entry():
    rows, others = drawn(6), drawn(4, seed=2)
    ours = covariances(rows, others, SMOOTHNESS)
    assert ours.shape == (3, 6, 4)
    assert close(ours, naive.covariances(rows, others, SMOOTHNESS))


def test_covariances_match_a_gaussian_process():
    rows = drawn(12)
    parts = covariances(rows, rows, SMOOTHNESS)
    assert close(parts, parts.mT)
    assert torch.linalg.eigvalsh(parts).min() > -1e-10
    swapped = Differences(rows.references, rows.points, rows.times)
    assert close(covariances(swapped, rows, SMOOTHNESS), -parts)
    itself = Differences(rows.points, rows.points, rows.times)
    assert covariances(itself, rows, SMOOTHNESS).abs().max() < 1e-14


@pytest.mark.parametrize("n", [0, 1, 7])
def test_posteriors_by_conditioning(n):
    rows, values, asked = drawn(n), values_of(n), drawn(5, seed=3)
    mean, variance = posterior(rows, values, asked, SCALES, SMOOTHNESS)
    average, spread = naive.posterior(rows, values, asked, SCALES, SMOOTHNESS)
    assert close(mean, average)
    assert close(variance, spread)


def test_noiseless_observations_are_interpolated():
    rows, values = drawn(1), torch.tensor([0.3], dtype=torch.float64)
    mean, variance = posterior(rows, values, rows, SCALES._replace(noise=0.0), SMOOTHNESS)
    assert mean.item() == pytest.approx(0.3, abs=1e-5)
    assert variance.item() == pytest.approx(0, abs=1e-6)
    swapped = Differences(rows.references, rows.points, rows.times)
    worse, _ = posterior(rows, values, swapped, SCALES, SMOOTHNESS)
    better, _ = posterior(rows, values, rows, SCALES, SMOOTHNESS)
    assert close(worse, -better)


def test_a_point_is_no_better_than_itself():
    rows, asked = drawn(5), drawn(4, seed=3)
    asked = asked._replace(references=asked.points)
    mean, variance = posterior(rows, values_of(5), asked, SCALES, SMOOTHNESS)
    assert mean.abs().max() < 1e-12
    assert variance.abs().max() < 1e-12


def test_densities_match_the_definition():
    rows, values = drawn(6), values_of(6)
    parts = covariances(rows, rows, SMOOTHNESS)
    several = [
        Scales(torch.tensor(scales, dtype=torch.float64), noise)
        for scales, noise in itertools.product([[0.5, 0.1, 0.02], [0.3, 0.3, 0.3]], [0.05, 0.2])
    ]
    scales = torch.stack([candidate.scales for candidate in several])
    noises = torch.tensor([candidate.noise for candidate in several], dtype=torch.float64)
    ours = differences._log_density(scales, noises, parts, values, PRIOR)
    theirs = [naive.log_density(candidate, parts, values, PRIOR) for candidate in several]
    theirs = torch.tensor(theirs, dtype=torch.float64)
    assert close(ours - ours[0], theirs - theirs[0])


def test_fitted_scales_are_better_than_those_around_them():
    """No single column can be moved to a greater density, of which the prior is part."""
    rows, values = drawn(8), 0.2 * values_of(8)
    parts = covariances(rows, rows, SMOOTHNESS)
    actual = fit_scales(parts, values, PRIOR)
    best = naive.log_density(actual, parts, values, PRIOR)
    for column, factor in itertools.product(range(3), (0.25, 4.0)):
        moved = actual.scales.clone()
        moved[column] = (moved[column] * factor).clamp(0.006, 1.5)
        other = naive.log_density(Scales(moved, actual.noise), parts, values, PRIOR)
        assert other <= best + 0.1  # up to the steps of the grid


@pytest.mark.parametrize("matters", [0, 2])
def test_the_column_that_matters_has_the_largest_scale(matters):
    right = 0
    for seed in range(5):
        rows = drawn(25, d=4, seed=seed)
        truth = torch.full((4,), 0.01, dtype=torch.float64)
        truth[matters] = 0.8
        parts = covariances(rows, rows, SMOOTHNESS)
        cov = naive.mixed(parts, truth) + 0.03**2 * torch.eye(25, dtype=torch.float64)
        values = torch.linalg.cholesky(cov) @ values_of(25, seed=seed + 50)
        right += int(fit_scales(parts, values, PRIOR).scales.argmax()) == matters
    assert right >= 4


def test_without_data_the_prior_is_returned():
    none = drawn(0)
    parts = covariances(none, none, SMOOTHNESS)
    actual = fit_scales(parts, torch.zeros(0, dtype=torch.float64), PRIOR)
    assert actual.scales.tolist() == [PRIOR.scale] * 3
    assert actual.noise == PRIOR.noise
