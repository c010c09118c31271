"""Coins that were drawn beforehand: how they fall, and what is left of them for a second toss."""

import pytest
import torch

from botorch_costly.query import BernoulliQuery, MixedQuery, Progress
from botorch_costly.query.rule import fresh_coin
from tests.strategies import comparisons


@pytest.mark.parametrize("probability", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_a_fresh_coin_is_uniform_and_independent_of_the_first_toss(probability):
    coin = (torch.arange(100_000, dtype=torch.float64) + 0.5) / 100_000
    left = fresh_coin(coin, probability)
    assert (left >= 0).all()
    assert (left < 1).all()
    for side in (coin < probability, coin >= probability):
        if side.any():
            shares = left[side].histc(10, 0, 1) / side.sum()
            torch.testing.assert_close(shares, torch.full_like(shares, 0.1), rtol=0, atol=1e-3)
    assert fresh_coin(None, probability) is None


def test_a_coin_drawn_beforehand_falls_as_its_number_says(generator):
    comparison = comparisons((3,), 1, generator)
    coin = torch.tensor([0.1, 0.3, 0.5], dtype=torch.float64)
    query = BernoulliQuery(0.3)(comparison, Progress(1, coin=coin), generator).query
    assert query.tolist() == [True, False, False]


def test_the_quotas_of_mixed_queries_hold_with_one_number_a_round(generator):
    """Two coins from one number are as good as two: quotas 10 and 40 of 100 rounds."""
    unsure = comparisons((20_000,), 1, generator, absent=0.0)
    unsure = unsure._replace(mean=unsure.mean * 0, rival_mean=unsure.rival_mean * 0)
    coin = torch.rand(20_000, generator=generator, dtype=torch.float64)
    query = MixedQuery(10, 40, 100)(unsure, Progress(1, coin=coin), generator).query
    assert query.double().mean().item() == pytest.approx(0.1 + 0.9 * 0.3, abs=0.01)
