"""Sampling without replacement."""

import pytest
import torch

from botorch_costly.numerics.gumbel import without_replacement

NUMBERS = {"dtype": torch.float64}


def test_draws_are_in_proportion_to_the_remaining_weights():
    p = torch.tensor([0.1, 0.2, 0.3, 0.4], **NUMBERS)
    coins = torch.rand(100_000, 4, generator=torch.Generator().manual_seed(0), **NUMBERS)
    drawn = without_replacement((100 * p).log().expand(100_000, 4), 2, coins)
    shares = torch.bincount(4 * drawn[:, 0] + drawn[:, 1], minlength=16).reshape(4, 4) / 100_000
    expected = p[:, None] * p / (1 - p)[:, None]
    torch.testing.assert_close(
        shares.double(), expected - expected.diag().diag(), atol=0.006, rtol=0
    )


def test_nothing_is_drawn_twice_and_a_weight_of_0_comes_last():
    log_weight = torch.tensor([0.0, -torch.inf, -800.0, 9.0], **NUMBERS)
    coins = torch.tensor([0.5, 0.99, 0.01, 0.1], **NUMBERS)
    assert without_replacement(log_weight, 4, coins).tolist() == [3, 0, 2, 1]
    coins[:] = 0  # whose Gumbel draws are minus infinity
    assert sorted(without_replacement(log_weight, 9, coins).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("count", [1, 3])
def test_a_batch_is_a_loop(count, generator, tkwargs):
    log_weight = torch.randn(5, 6, generator=generator, **tkwargs)
    coins = torch.rand(5, 6, generator=generator, **tkwargs)
    alone = [without_replacement(w, count, coin) for w, coin in zip(log_weight, coins, strict=True)]
    assert torch.equal(without_replacement(log_weight, count, coins), torch.stack(alone))
