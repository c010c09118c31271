"""The scale of rewards."""

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.rewards.scale import Affine, RewardScale, estimate_scale, normal_scores

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


def test_the_scale_of_normal_rewards_is_their_standard_deviation():
    draws = torch.randn(20000, generator=torch.Generator().manual_seed(0)).tolist()
    assert estimate_scale([3 + 5 * z for z in draws]) == pytest.approx((3, 5), rel=0.03)
    # Rounded so coarsely that more than half coincide, the mean distance stands in.
    coarse = estimate_scale([float(round(0.35 * z)) for z in draws])
    assert coarse == pytest.approx((0.0, 0.35), abs=0.2)
    assert coarse.scale != 1.0


def test_one_ruinous_reward_changes_nothing_much():
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


def test_targets_are_clipped_or_ranked():
    rewards = torch.tensor([0.0, 1.0, 100.0], dtype=torch.float64)
    clipped = RewardScale(clip=2.0).targets(rewards, Affine(1.0, 0.5))
    assert clipped.tolist() == [-2.0, 0.0, 2.0]
    ranked = RewardScale(ranks=True)
    assert torch.equal(ranked.targets(rewards, Affine(1.0, 0.5)), normal_scores(rewards))
    assert torch.equal(normal_scores(rewards), normal_scores(rewards.exp().clamp_max(1e9)))


def test_the_lowest_ranks_may_count_alike():
    """How deep the ruins are does not matter; the order of all others stays as it is."""
    rewards = torch.tensor([3.0, -7.0, 1.0, 2.0, -900.0, 4.0], dtype=torch.float64)
    scores = RewardScale(ranks=True, winsorize_lower=0.4).targets(rewards, Affine(0.0, 1.0))
    lowest = torch.special.ndtri(torch.tensor(0.4, dtype=torch.float64))
    assert scores[[1, 4]].tolist() == [lowest.item()] * 2
    others = [0, 2, 3, 5]
    assert torch.equal(scores[others], normal_scores(rewards)[others])
    assert (scores[others] > lowest).all()
    as_they_are = RewardScale(ranks=True, winsorize_lower=0.0).targets(rewards, Affine(0.0, 1.0))
    assert torch.equal(as_they_are, normal_scores(rewards))


def test_fixed_parts_stay():
    rewards = [1.0, 3.0]
    assert RewardScale().fit(rewards) == estimate_scale(rewards)
    assert RewardScale(center=5.0).fit(rewards) == pytest.approx((5.0, 1.4826))
    assert RewardScale(scale=0.5).fit(rewards) == Affine(2.0, 0.5)
    assert RewardScale(5.0, 0.5).fit([]) == Affine(5.0, 0.5)
    assert RewardScale().fit(rewards, [3, 1]) == estimate_scale(rewards, [3, 1])


@pytest.mark.parametrize(
    "options",
    [
        {"center": nan},
        {"center": "0"},
        {"scale": 0.0},
        {"scale": inf},
        {"clip": -1.0},
        {"ranks": 1},
        {"winsorize_lower": 0.95, "ranks": True},
        {"winsorize_lower": -0.1, "ranks": True},
        {"winsorize_lower": nan, "ranks": True},
        {"winsorize_lower": 0.3},
    ],
)
def test_impossible_scales_are_named(options):
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        RewardScale(**options)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, nan], [1.0, inf]])
def test_impossible_weights_are_named(weights):
    with pytest.raises(InvalidArgumentError, match="weights"):
        estimate_scale([1.0, 2.0], weights)
