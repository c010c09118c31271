"""Location, scale and ranks of rewards."""

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.numerics.robust import (
    Affine,
    estimate_scale,
    normal_scores,
    tempered,
    weighted_median,
)

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


def test_normal_scores_use_mean_ranks():
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


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-1e3, 0.0, 1.0, 0.5, 0.25], [0.0, 0.0, 1.0, 0.5, 0.25]),
        ([1e300, 0.0, 1.0, 0.5, 0.25], [1.0, 0.0, 1.0, 0.5, 0.25]),
        (
            [-1.7e308, 0.0, 1.0, 0.5, 0.25, 0.1, 0.2, 1.7e308],
            [0.0, 0.0, 1.0, 0.5, 0.25, 0.1, 0.2, 1.0],
        ),
        ([-5.0, 0.0, 1.0, 0.5, 0.25], None),  # no ten ranges away
        ([-1e3, 1.0], None),  # too few to say which is the outlier
        ([-1e3, 0.0, 1.0], None),
        ([1.0] * 9, None),
        ([1.0] * 8 + [-1e3], None),  # all that is known is that one is worse
        ([0.1, 0.1001, 0.1002, 0.1, 0.9], None),  # one alone that learns
        ([-1e3, -1e3, 0.0, 1.0, 0.5], None),  # two of five are no few
    ],
)
def test_outliers_are_tempered_and_all_else_stays(values, expected):
    values = torch.tensor(values, dtype=torch.float64)
    wanted = values if expected is None else values.new_tensor(expected)
    assert tempered(values).tolist() == pytest.approx(wanted.tolist())


def test_three_outliers_of_thirty_are_tempered():
    values = torch.linspace(0, 1, 30, dtype=torch.float64)
    values[4], values[11], values[20] = -1e3, -1e6, 1e150
    ours = tempered(values)
    assert ours.min() >= 0
    assert ours.max() <= 1
    kept = torch.ones(30, dtype=torch.bool)
    kept[[4, 11, 20]] = False
    assert torch.equal(ours[kept], values[kept])
