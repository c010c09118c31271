"""Capital against hypotheses about a finite population: against the naive bettor, and its guarantees."""

import itertools
import math

import pytest
import torch

from botorch_costly.numerics.betting import confidence_interval, log_capital
from tests.oracles import betting as oracle


def _sample(count: int, seed: int, shift: float = 0.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(count, generator=generator).double() * 0.3 + shift).clamp(-1, 1)


@pytest.mark.parametrize("pilot", [0, 7])
@pytest.mark.parametrize("shift", [-0.4, 0.0, 0.4])
def test_capital_equals_that_of_the_naive_bettor(shift: float, pilot: int) -> None:
    values = _sample(40, 1, shift)
    for null in (-0.5, 0.0, 0.3):
        ours = log_capital(values, null, population=50, lower=-1.0, upper=1.0, pilot=pilot)
        naive = oracle.log_capital(values.tolist(), null, 50, -1.0, 1.0, pilot)
        assert ours.tolist() == pytest.approx(naive, rel=1e-9, abs=1e-12)


def test_capital_is_batched() -> None:
    values = torch.stack([_sample(30, seed) for seed in range(3)])
    nulls = torch.tensor([-0.1, 0.0, 0.2]).double()
    batch = log_capital(values, nulls, population=60, lower=-1.0, upper=1.0)
    for row, value, null in zip(batch, values, nulls, strict=True):
        single = log_capital(value, null, population=60, lower=-1.0, upper=1.0)
        torch.testing.assert_close(row, single)


def test_capital_keeps_dtype_and_device(tkwargs) -> None:
    values = _sample(20, 0, shift=0.2)
    here = log_capital(values, 0.0, population=30, lower=-1.0, upper=1.0)
    there = log_capital(values.to(**tkwargs), 0.0, population=30, lower=-1.0, upper=1.0)
    assert there.dtype == tkwargs["dtype"]
    assert there.device.type == tkwargs["device"].type
    torch.testing.assert_close(there.cpu().double(), here, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_expected_capital_over_all_orders_never_exceeds_one(seed: int) -> None:
    population = _sample(6, seed)
    orders = torch.stack([population[list(p)] for p in itertools.permutations(range(6))])
    null = population.mean()
    log = log_capital(orders, null.expand(len(orders)), population=6, lower=-1.0, upper=1.0)
    capital = log[:, :-1].exp()  # the last value is certain, given the others
    assert (capital.mean(0) <= 1 + 1e-9).all()
    assert capital.std(0).max() > 0.01  # it does bet


def test_a_hypothesis_that_no_remaining_value_can_save_is_refuted() -> None:
    values = torch.full((8,), 1.0).double()
    log = log_capital(values, 0.5, population=10, lower=0.0, upper=1.0)
    assert log[5].isinf()  # 6 of 10 values are 1, so the mean is above 0.5
    assert not log[4].isinf()


def test_equal_values_say_nothing_without_a_bound_and_much_with_one() -> None:
    ones = torch.ones(64).double()
    assert confidence_interval(ones, population=100, level=0.01) == (-math.inf, math.inf)
    low, high = confidence_interval(ones, population=100, level=0.01, bound=1.0)
    assert 0.64 <= low < 1.0 <= high


def test_intervals_hold_the_mean_at_their_level_whenever_drawing_ends() -> None:
    level, trials, misses = 0.1, 60, 0
    for seed in range(trials):
        population = _sample(400, seed, shift=0.1)
        ends = [
            confidence_interval(population[:n], population=400, level=level) for n in (60, 120, 240)
        ]
        misses += any(not low <= float(population.mean()) <= high for low, high in ends)
        widths = [high - low for low, high in ends]
        assert widths[2] < widths[0] < 1.0
    # 60 trials at 0.1: more than 16 misses have a probability below 1e-4
    assert misses <= 16
