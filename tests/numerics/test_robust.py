"""Location, scale and ranks of rewards."""

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.numerics.robust import Affine, estimate_scale, normal_scores, weighted_median

quick = settings(derandomize=True, deadline=None, max_examples=200)
nan, inf = math.nan, math.inf


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([], (0.0, 1.0)),
        ([nan, inf], (0.0, 1.0)),
        ([3.0], (3.0, 1.0)),
        ([3.0, nan], (3.0, 1.0)),
        ([0.1] * 7, (0.1, 1.0)),
        ([0.0] * 3, (0.0, 1.0)),
        ([1.0, 3.0, -inf], (2.0, 1.4826)),
    ],
)
def test_few_or_constant_rewards_have_scale_one(rewards, expected):
    assert estimate_scale(rewards) == pytest.approx(expected)


@pytest.mark.parametrize("units", [1, 3])
def test_equal_rewards_are_their_center_even_the_smallest_of_all(units):
    tiny = units * 5e-324
    assert weighted_median([(tiny, 1.0), (tiny, 1.0)]) == tiny
    assert estimate_scale([tiny, tiny]) == (tiny, 1.0)


def test_the_scale_of_normal_rewards_is_their_standard_deviation():
    draws = torch.randn(20000, generator=torch.Generator().manual_seed(0)).tolist()
    assert estimate_scale([3 + 5 * z for z in draws]) == pytest.approx((3, 5), rel=0.03)
    # Rounded so coarsely that more than half coincide, the mean distance stands in.
    coarse = estimate_scale([float(round(0.35 * z)) for z in draws])
    assert coarse == pytest.approx((0.0, 0.35), abs=0.2)
    assert coarse.scale != 1.0


def test_one_extreme_reward_changes_nothing_much():
    rewards = [0.01 * k for k in range(-10, 11)]
    calm, shaken = estimate_scale(rewards), estimate_scale([*rewards, -1e6])
    assert shaken == pytest.approx(calm, abs=0.02)


def test_a_weight_is_a_number_of_copies():
    assert estimate_scale([1.0, 5.0, 6.0], [3, 1, 2]) == estimate_scale(
        [1.0] * 3 + [5.0] + [6.0] * 2
    )
    assert estimate_scale([1.0, 5.0, 6.0], [0.3, 0.1, 0.2]) == estimate_scale(
        [1.0, 5.0, 6.0], [3, 1, 2]
    )


def test_weights_of_zero_count_as_absent():
    assert estimate_scale([1.0, 3.0, 99.0], [1, 1, 0]) == estimate_scale([1.0, 3.0])
    assert estimate_scale([1.0, 3.0], [0, 0]) == Affine(0.0, 1.0)
    assert estimate_scale([1.0, 3.0], [1.0, 1e-300]) == pytest.approx((1.0, 1.0))


finite = st.floats(-1e150, 1e150)
weighted = st.lists(
    st.tuples(finite | st.sampled_from([nan, inf]), st.floats(0, 1e300)), max_size=8
)


@quick
@given(weighted)
def test_scale_is_always_usable(pairs):
    rewards, weights = [y for y, _ in pairs], [w for _, w in pairs]
    center, scale = estimate_scale(rewards, weights)
    assert math.isfinite(center)
    assert 0 < scale < inf
    kept = [y for y, w in pairs if w > 0 and math.isfinite(y)]
    if kept:
        slack = 1e-12 * max(map(abs, kept))
        assert min(kept) - slack <= center <= max(kept) + slack


@quick
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=6), st.floats(0.1, 10), st.floats(-5, 5))
def test_scale_follows_units_of_the_reward(rewards, factor, shift):
    rewards = [*rewards, 7.0, -7.0]
    center, scale = estimate_scale(rewards)
    moved = estimate_scale([factor * y + shift for y in rewards])
    assert moved == pytest.approx((factor * center + shift, factor * scale), abs=1e-9)


def test_standardizing_and_back():
    affine = estimate_scale([1.0, 3.0])
    assert affine.standardize(2.0) == 0.0
    assert affine.restore(affine.standardize(7.5)) == pytest.approx(7.5)
    assert affine.standardize(2.0 + 1.4826) == pytest.approx(1.0)


def test_normal_scores_are_those_of_mean_ranks():
    scores = normal_scores(torch.tensor([3.0, 1.0, 1.0, 9.0, 3.0, 3.0], dtype=torch.float64))
    ranks = torch.tensor([4.0, 1.5, 1.5, 6.0, 4.0, 4.0], dtype=torch.float64)
    assert torch.allclose(torch.special.ndtr(scores), (ranks - 0.5) / 6)
    assert normal_scores(torch.tensor([7.0])).tolist() == [0.0]


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, nan], [1.0, inf]])
def test_impossible_weights_are_named(weights):
    with pytest.raises(InvalidArgumentError, match="weights"):
        estimate_scale([1.0, 2.0], weights)


def test_the_median_of_nothing_is_refused():
    with pytest.raises(InvalidArgumentError, match="values: Expected at least one"):
        weighted_median([])
