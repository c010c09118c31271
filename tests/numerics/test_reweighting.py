"""Resampling of walkers by their weights."""

import math

import pytest
import torch

from botorch_costly.numerics.reweighting import resample
from tests.oracles import reweighting as oracle


def coin(at):
    return torch.tensor(at, dtype=torch.float64)


@pytest.mark.parametrize("seed", range(20))
def test_indices_match_the_naive_resampling(seed, tkwargs):
    generator = torch.Generator().manual_seed(seed)
    log_weight = torch.rand(30, generator=generator, dtype=torch.float64) + 700
    assert oracle.counted(log_weight.tolist()) > 15  # no power is taken
    at = float(torch.rand((), generator=generator))
    actual = resample(log_weight.to(**tkwargs), coin(at).to(**tkwargs)).tolist()
    expected = oracle.resample(log_weight.tolist(), at)
    assert sum(a != b for a, b in zip(actual, expected, strict=True)) <= 1  # rounding of a tooth


@pytest.mark.parametrize("level", [0.0, -1e6, 1e30])
def test_equal_weights_change_nothing(level, tkwargs):
    for at in (0.01, 0.3, 0.7):
        actual = resample(torch.full((8,), level).to(**tkwargs), coin(at).to(**tkwargs))
        assert actual.tolist() == list(range(8))


@pytest.mark.parametrize("huge", [30.0, 1e4, 1e300])
def test_half_of_the_walkers_count_however_unlike_the_weights_are(huge):
    log_weight = huge * torch.linspace(-1, 0, 40, dtype=torch.float64)
    actual = resample(log_weight, coin(0.5))
    assert len(actual.unique()) >= 15
    copies = actual.bincount(minlength=40)
    assert (copies.diff() >= -1).all()  # the better the more, but for the comb
    assert copies[-1] > copies[0]


@pytest.mark.parametrize("never", [-torch.inf, torch.nan, torch.inf])
def test_walkers_without_a_finite_weight_are_dropped(never):
    log_weight = torch.tensor([never, 0.0, never, 0.1, never], dtype=torch.float64)
    for at in (0.0, 0.5, 1 - 2**-53):
        assert set(resample(log_weight, coin(at)).tolist()) == {1, 3}
    alone = torch.tensor([never, -5.0, never])
    assert resample(alone, coin(0.5)).tolist() == [1, 1, 1]


def test_if_all_are_impossible_all_stay():
    log_weight = torch.full((4,), -math.inf)
    assert resample(log_weight, coin(0.5)).tolist() == [0, 1, 2, 3]
