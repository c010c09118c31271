"""The index of Pandora's box."""

import itertools

import pytest
import torch

from botorch_costly.numerics.gittins import gittins_index
from botorch_costly.numerics.improvement import excess, expected_improvement, log_excess
from tests.cases import quick
from tests.oracles import gittins as oracle

CASES = list(itertools.product([0.003, 0.4, 7.0], [0.1, 1.0, 5.0], [-2.0, 0.7]))


@pytest.mark.parametrize(("price", "sd", "mean"), quick(CASES, *CASES[::5], CASES[9]))
def test_it_is_a_search_over_rewards(mean, sd, price):
    actual = gittins_index(*(torch.tensor(v, dtype=torch.float64) for v in (mean, sd, price)))
    assert actual.item() == pytest.approx(oracle.index(mean, sd, price), abs=2e-3 * max(sd, 1))


def test_at_the_index_opening_is_worth_its_price_however_small_or_large():
    price = torch.logspace(-12, 6, 40, dtype=torch.float64)
    mean, sd = torch.zeros_like(price), torch.full_like(price, 2.0)
    index = gittins_index(mean, sd, price)
    assert (index.diff() < 0).all()
    gained = 2 * excess((mean - index) / 2)
    # The plain closed form is a difference of numbers of size one: it loses digits in the tail.
    wide = price > 1e-9
    torch.testing.assert_close(gained[wide], price[wide], rtol=1e-6, atol=1e-11)
    assert index.isfinite().all()


def test_it_moves_with_the_mean_and_scales_with_the_rewards(generator):
    mean, sd, price = (
        torch.rand(20, generator=generator, device=generator.device, dtype=torch.float64)
        for _ in range(3)
    )
    index = gittins_index(mean, sd + 0.1, price + 0.01)
    moved = gittins_index(mean + 3, sd + 0.1, price + 0.01)
    scaled = gittins_index(10 * mean, 10 * (sd + 0.1), 10 * (price + 0.01))
    torch.testing.assert_close(moved, index + 3)
    torch.testing.assert_close(scaled, 10 * index)
    assert (
        gittins_index(mean, sd + 0.2, price + 0.01) > index
    ).all()  # what is uncertain is worth more


def test_gradients_are_finite_differences(generator):
    parts = [
        torch.rand(6, generator=generator, device=generator.device, dtype=torch.float64) + 0.2
        for _ in range(3)
    ]
    assert torch.autograd.gradcheck(
        gittins_index, [argument.requires_grad_() for argument in parts]
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_is_kept(dtype):
    mean = torch.tensor([0.0, 1.0], dtype=dtype)
    actual = gittins_index(mean, torch.ones_like(mean), torch.full_like(mean, 0.1))
    assert actual.dtype == dtype
    assert (actual[1] - actual[0]).item() == pytest.approx(1.0, abs=1e-5)


def test_the_logarithm_of_the_excess_where_the_closed_form_is_good():
    u = torch.linspace(-5, 8, 200, dtype=torch.float64)
    torch.testing.assert_close(log_excess(u).exp(), excess(u), rtol=1e-9, atol=1e-11)


def test_the_logarithm_of_the_excess_far_out():
    u = -torch.logspace(0, 8, 60, dtype=torch.float64)
    values = log_excess(u)
    assert values.isfinite().all()
    assert (values.diff() < 0).all()
    far = u < -100
    expected = -0.5 * u.square() - 0.5 * torch.tensor(2 * torch.pi).log() - 2 * (-u).log()
    torch.testing.assert_close(values[far], expected[far], rtol=1e-6, atol=1e-3)
    u.requires_grad_()
    log_excess(u).sum().backward()
    assert u.grad.isfinite().all()


def test_the_logarithm_of_the_excess_in_single_precision():
    """BoTorch's, and ours in double precision."""
    u = -torch.logspace(-1, 6, 2001)
    values = log_excess(u)
    assert values.isfinite().all()
    torch.testing.assert_close(values.double(), log_excess(u.double()), rtol=1e-5, atol=2e-3)


def test_improvement_and_excess_agree():
    mean, sd = torch.tensor([0.3], dtype=torch.float64), torch.tensor([0.5], dtype=torch.float64)
    actual = expected_improvement(mean, sd, 0.1).item()
    assert actual == pytest.approx(oracle.excess(0.3, 0.5, 0.1), rel=1e-4)
