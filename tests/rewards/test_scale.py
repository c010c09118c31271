"""The scale of rewards."""

import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.numerics.robust import Affine, estimate_scale, normal_scores
from botorch_costly.rewards.scale import RewardScale

nan, inf = math.nan, math.inf


def test_targets_are_clipped_or_ranked():
    rewards = torch.tensor([0.0, 1.0, 100.0], dtype=torch.float64)
    clipped = RewardScale(clip=2.0).targets(rewards, Affine(1.0, 0.5))
    assert clipped.tolist() == [-2.0, 0.0, 2.0]
    ranked = RewardScale(ranks=True)
    assert torch.equal(ranked.targets(rewards, Affine(1.0, 0.5)), normal_scores(rewards))
    assert torch.equal(normal_scores(rewards), normal_scores(rewards.exp().clamp_max(1e9)))


def test_the_lowest_ranks_may_be_winsorized():
    """By how much the worst rewards are worse does not matter; the order of all others is kept."""
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


def test_ranks_are_named():
    with pytest.raises(TypeError):
        RewardScale(0.0, 1.0, 3.0)
