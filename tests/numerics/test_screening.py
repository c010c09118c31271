"""Two-level designs are balanced and orthogonal, and reproducible."""

import pytest
import torch

from botorch_costly.numerics.screening import two_level


def drawn(runs, factors, seed=0):
    return two_level(runs, factors, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("runs", "factors"), [(2, 1), (4, 3), (8, 5), (16, 8), (16, 15), (64, 40)])
def test_a_whole_array_is_balanced_and_orthogonal(runs, factors):
    signs = 2 * drawn(runs, factors) - 1
    assert torch.equal(signs.sum(0), torch.zeros(factors, dtype=torch.float64))
    assert torch.equal(signs.T @ signs, runs * torch.eye(factors, dtype=torch.float64))


@pytest.mark.parametrize("runs", range(6))
@pytest.mark.parametrize("factors", range(1, 9))
def test_any_size_will_do_and_no_run_comes_twice(runs, factors):
    design = drawn(runs, factors)
    assert design.shape == (runs, factors)
    assert design.dtype == torch.float64
    assert ((design == 0) | (design == 1)).all()
    assert 2**factors < runs or len(design.unique(dim=0)) <= runs


def test_it_depends_on_the_generator_alone():
    assert torch.equal(drawn(16, 8, seed=3), drawn(16, 8, seed=3))
    assert not torch.equal(drawn(16, 8, seed=3), drawn(16, 8, seed=4))
    # Which level is which is a coin: the corner of all lows is in one half of the arrays.
    lowest = [bool((drawn(4, 3, seed).sum(-1) == 0).any()) for seed in range(40)]
    assert 10 < sum(lowest) < 30


@pytest.mark.parametrize(("runs", "factors"), [(4, 8), (7, 4), (8, 16), (12, 6), (15, 8)])
def test_where_rows_are_left_out_numbers_still_vary(runs, factors):
    for seed in range(10):
        high = drawn(runs, factors, seed).sum(0)
        assert (high > 0).all()
        assert (high < runs).all()
        assert runs < factors or (2 * high - runs).abs().max() <= 2
