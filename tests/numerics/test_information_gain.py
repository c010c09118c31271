"""Information gain: determinant and sum agree, greedy choices keep their share of the maximum."""

import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.numerics.information_gain import greedy_information_gain, information_gain
from botorch_costly.numerics.stationary import Stationary, covariance
from tests.cases import quick
from tests.oracles import information_gain as oracle

NOISE = 0.1
CASES = [((0, 0, 0, 0), 0.0, 1 - 1 / math.e), ((0, 1, 2, 3), 0.3, 0.5), ((0, 2, 2, 7), 0.05, 0.5)]


def prior(count=5, seed=0, dtype=torch.float64):
    points = torch.rand(count, 2, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    kernel = Stationary("matern32", points.new_full((2,), 0.4), points.new_tensor(1.3))
    return covariance(kernel, points, points)


def greedy_picks(cov, rounds, forgetting):
    """Choose point by point, by the information of all choices so far."""
    picks = []
    for number in range(1, len(rounds) + 1):
        gains = [
            oracle.information(cov, [*picks, point], rounds[:number], NOISE, forgetting)
            for point in range(len(cov))
        ]
        picks.append(int(torch.stack(gains).argmax()))
    return picks


@pytest.mark.parametrize(("rounds", "forgetting", "share"), CASES)
@pytest.mark.parametrize("seed", quick(range(3), 0))
def test_it_is_the_information_of_the_greedy_choice(rounds, forgetting, share, seed):
    cov = prior(seed=seed)
    gains = greedy_information_gain(cov, NOISE, rounds, forgetting)
    picks = greedy_picks(cov, rounds, forgetting)
    for number, gain in enumerate(gains, 1):
        expected = oracle.information(cov, picks[:number], rounds[:number], NOISE, forgetting)
        torch.testing.assert_close(gain, expected)
    most = oracle.maximum(cov, rounds, NOISE, forgetting)
    assert share * most <= gains[-1] <= most + 1e-9


def test_of_one_block_it_is_the_determinant():
    cov = torch.stack([prior(seed=seed) for seed in range(4)])
    expected = [oracle.information(one, range(5), [0] * 5, NOISE, 0.0) for one in cov]
    torch.testing.assert_close(information_gain(cov, NOISE), torch.stack(expected))


def test_of_points_without_correlation_it_is_a_sum():
    gains = greedy_information_gain(torch.eye(4, dtype=torch.float64), 0.5, range(4))
    expected = 0.5 * math.log(3) * torch.arange(1, 5, dtype=torch.float64)
    torch.testing.assert_close(gains, expected)


def test_what_is_forgotten_at_once_is_learnt_anew_in_every_round():
    gains = greedy_information_gain(prior(), NOISE, range(6), forgetting=1.0)
    expected = 0.5 * math.log1p(1.3 / NOISE) * torch.arange(1, 7, dtype=torch.float64)
    torch.testing.assert_close(gains, expected)


def test_single_precision_and_no_query(tkwargs):
    cov = prior(count=30).to(**tkwargs)
    gains = greedy_information_gain(cov, NOISE, range(0, 100, 3), 0.02)
    assert gains.dtype == cov.dtype
    assert gains.device == cov.device
    reference = greedy_information_gain(prior(count=30), NOISE, range(0, 100, 3), 0.02)
    torch.testing.assert_close(gains.cpu().double(), reference, rtol=1e-3, atol=1e-3)
    assert greedy_information_gain(cov, NOISE, []).shape == (0,)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cov": torch.ones(2, 3)}, InvalidShapeError),
        ({"cov": torch.eye(2).expand(4, 2, 2)}, InvalidShapeError),
        ({"noise": 0.0}, InvalidArgumentError),
        ({"forgetting": 1.5}, InvalidArgumentError),
        ({"rounds": [3, 2]}, InvalidArgumentError),
    ],
)
def test_bad_input(changes, error):
    good = {"cov": torch.eye(2), "noise": 0.1, "rounds": [0, 1], "forgetting": 0.1}
    with pytest.raises(error, match=next(iter(changes))):
        greedy_information_gain(**{**good, **changes})
