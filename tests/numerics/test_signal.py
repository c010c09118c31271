"""Decomposition of the variance of rewards into configurations, time and noise."""

import pytest
import torch

from botorch_costly.numerics import signal
from botorch_costly.numerics.drift import retention
from botorch_costly.numerics.signal import explained
from tests.cases import quick
from tests.oracles import signal as oracle


def generator(seed):
    return torch.Generator().manual_seed(seed)


def correlations_of(points, lengthscales=(0.5, 1.0, 2.0)):
    squares = torch.cdist(points, points).square()
    return torch.stack([(-0.5 * squares / scale**2).exp() for scale in lengthscales])


def points_and_times(n, seed, dim=3):
    points = torch.rand(n, dim, generator=generator(seed), dtype=torch.float64)
    return points, torch.arange(n, dtype=torch.float64)


def draw(covariance, seed):
    noise = torch.randn(len(covariance), generator=generator(seed), dtype=torch.float64)
    values = torch.linalg.cholesky(covariance) @ noise
    return values - values.mean()


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_matches_the_definition(n, seed):
    points, times = points_and_times(n, seed)
    times = times**1.3
    targets = torch.randn(n, generator=generator(seed + 9), dtype=torch.float64)
    alike = correlations_of(points)
    grid = signal.SIGNALS, signal.TRENDS, signal.FORGETTING, signal.LEVEL_NOISE
    naive = oracle.explained(targets.numpy(), alike.numpy(), times.tolist(), *grid)
    ours = [float(value) for value in explained(targets, alike, times)]
    assert ours == pytest.approx(naive, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("level", quick([0.0, 0.48], 0.48))
def test_chance_is_not_taken_for_configurations(level):
    points, times = points_and_times(100, 0)
    lag = (times.unsqueeze(-1) - times).abs()
    covariance = signal._background(lag, 0.0, level)
    actual = [explained(draw(covariance, s), correlations_of(points), times) for s in range(8)]
    assert sum(float(f.nothing) > 0.5 for f in actual) >= 7
    assert max(float(f.signal) for f in actual) < 0.15
    mean = sum(float(f.level_noise) for f in actual) / 8
    assert mean < 0.1 if level == 0 else mean > 0.4


def test_progress_of_training_is_not_taken_for_configurations():
    for seed in range(6):
        points, times = points_and_times(100, seed)
        noise = torch.randn(100, generator=generator(seed + 50), dtype=torch.float64)
        gains = (-times / 25).exp() + 0.1 * noise
        actual = explained(gains - gains.mean(), correlations_of(points), times)
        assert actual.trend > 0.3
        assert actual.signal < 0.1


@pytest.mark.parametrize("rate", quick([0.0, 0.1], 0.1))
def test_configurations_that_matter_are_found_and_so_is_their_drift(rate):
    points, times = points_and_times(120, 3)
    lag = (times.unsqueeze(-1) - times).abs()
    alike = correlations_of(points, (0.25, 0.5, 1.0))
    moving = alike[1] * retention(torch.tensor(rate, dtype=torch.float64), lag)
    covariance = 0.8 * moving + 0.2 * torch.eye(120, dtype=torch.float64)
    actual = [explained(draw(covariance, s), alike, times) for s in range(8)]
    sure = [float(f.forgetting) for f in actual if f.nothing < 0.1]
    assert len(sure) >= 6
    drift = sum(sure) / len(sure)
    assert drift < 0.01 if rate == 0 else drift > 0.05
