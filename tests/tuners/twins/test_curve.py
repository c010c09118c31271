"""How fast a run learns, read off noisy levels."""

import math

import pytest
import torch

from botorch_costly.tuners.twins.curve import Curve, price


def curve_of(slope, *, noise=0.0, until=100, every=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    curve = Curve()
    for trained in range(every, until, every):
        shock = noise * torch.randn((), generator=generator).item()
        curve.add(trained, slope * math.log(trained) + shock)
    return curve


def test_a_slope_is_that_of_the_levels():
    learns = curve_of(0.1).slope(100, 0.1 * math.log(100))
    assert learns.expected == pytest.approx(0.1, rel=1e-6)
    assert 0.1 < learns.upper < 0.13


def test_one_noisy_level_looks_neither_like_a_stall_nor_like_cheap_rounds():
    for shock in (-0.15, 0.15):
        learns = curve_of(0.2, noise=0.02).slope(100, 0.2 * math.log(100) + shock)
        assert learns.expected > 0.05
        assert learns.upper > 0.12


def test_noise_makes_rounds_dearer():
    uppers = [
        sum(curve_of(0.05, noise=sd, seed=s).slope(100, 0.23).upper for s in range(20)) / 20
        for sd in (0.0, 0.05, 0.2)
    ]
    assert uppers == sorted(uppers)


def test_before_the_second_level_a_run_is_believed_to_learn_fast():
    assert Curve().slope(3, -1.0) == (0.3, 0.3)


@pytest.mark.parametrize("odd", [-math.inf, math.nan])
def test_levels_that_are_not_finite_tell_no_slope(odd):
    curve = curve_of(0.1)
    assert 0 < curve.slope(100, odd).upper < 0.01


def test_the_price_of_rounds_grows_with_slope_and_share():
    assert price(0.1, 10, 100) == pytest.approx(0.01)
    assert price(5.0, 10, 100) == price(1.0, 10, 100) == pytest.approx(0.02)
    assert price(0.1, 10, 0) == pytest.approx(1.0)
