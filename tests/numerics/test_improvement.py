"""Expected improvements against draws, limits and each other."""

import math

import pytest
import torch

from botorch_costly.numerics.improvement import excess, expected_improvement


def test_excess_against_draws(generator, tkwargs):
    if tkwargs["device"].type != "cpu":
        pytest.skip("draws of the CPU")
    z = torch.randn(400_000, generator=generator, dtype=torch.float64)
    for u in (-2.0, -0.5, 0.0, 1.0, 3.0):
        drawn = (u + z).clamp_min(0)
        exact = excess(torch.tensor(u, dtype=torch.float64)).item()
        assert exact == pytest.approx(drawn.mean().item(), abs=6 * drawn.std().item() / 632)


def test_expected_improvement_against_draws():
    generator = torch.Generator().manual_seed(3)
    mean = torch.tensor([[0.0, 0.4], [-1.0, 2.0]], dtype=torch.float64)
    sd = torch.tensor([[1.0, 0.3], [2.0, 0.1]], dtype=torch.float64)
    z = torch.randn(400_000, 1, 1, generator=generator, dtype=torch.float64)
    drawn = (mean + sd * z - 0.5).clamp_min(0)
    ours = expected_improvement(mean, sd, 0.5)
    assert ours.shape == mean.shape
    assert ((ours - drawn.mean(0)).abs() <= 6 * drawn.std(0) / 632 + 1e-9).all()


def test_certain_values_improve_by_their_difference():
    mean = torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64, requires_grad=True)
    ours = expected_improvement(mean, torch.zeros(3, dtype=torch.float64), 0.5)
    assert ours.tolist() == [0.0, 0.0, 1.5]
    ours.sum().backward()
    assert mean.grad.isfinite().all()
    nearly = expected_improvement(mean, torch.full((3,), 1e-9, dtype=torch.float64), 0.5)
    assert torch.allclose(ours, nearly, rtol=0, atol=1e-8)


def test_far_away_nothing_or_everything_is_left():
    u = torch.tensor([-1e3, -40.0, 40.0, 1e3], dtype=torch.float64)
    assert excess(u).tolist() == pytest.approx([0.0, 0.0, 40.0, 1e3], abs=1e-12)
    assert (excess(torch.linspace(-50, 50, 501, dtype=torch.float64)).diff() >= -1e-12).all()


def test_more_spread_promises_more():
    sd = torch.linspace(0, 3, 50, dtype=torch.float64)
    promised = expected_improvement(torch.full_like(sd, -0.2), sd, 0.0)
    assert (promised.diff() >= 0).all()
    assert promised[-1] < 3 / math.sqrt(2 * math.pi)
