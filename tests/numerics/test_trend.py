"""Local linear trends against a dense Gaussian process with the same prior."""

import pytest
import torch

from botorch_costly.numerics import trend
from tests.oracles import trend as oracle

DEVIATIONS = torch.tensor([1.0, 2.0, 0.5]).double()


def _data(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(count)
    times = torch.rand(count, generator=generator).double().cumsum(0)
    values = (0.5 * times).sin() + 0.1 * torch.randn(count, generator=generator).double()
    return (
        times,
        values,
        torch.randn(count, generator=generator).double(),
        times.new_full((count,), 0.02),
    )


@pytest.mark.parametrize("ahead", [0.0, 0.7])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_filters_equal_the_dense_process(count: int, ahead: float) -> None:
    times, values, regressors, noise = _data(count)
    rates = torch.tensor([1e-3, 1.0]).double()
    gaps = torch.cat([times.new_zeros(1), times.diff()])
    rows = gaps, values, regressors, noise[:, None].expand(-1, 2)
    state, density = trend.observe(trend.prior(2, DEVIATIONS), *rows, rates)
    state = trend.advance(state, ahead, rates)
    mean, variance = trend.predict(state, 0.4)
    for i, rate in enumerate(rates.tolist()):
        time = float(times[-1]) + ahead
        dense = oracle.posterior(times, values, regressors, noise, rate, DEVIATIONS, time, 0.4)
        ours = (mean[i].item(), variance[i].item(), density[i].item())
        assert ours == pytest.approx(dense, rel=1e-7, abs=1e-9)


def observed(state: trend.Trend, gap: float, rates: torch.Tensor):
    """Return the posteriors given one value, after a gap."""
    row = (rates.new_tensor([number]) for number in (gap, 1.0, 0.2))
    return trend.observe(state, *row, torch.full_like(rates, 0.1)[None], rates)


def test_two_gaps_equal_one() -> None:
    rates = torch.tensor([0.3]).double()
    state, _ = observed(trend.prior(1, DEVIATIONS), 0.0, rates)
    once = trend.advance(state, 1.5, rates)
    twice = trend.advance(trend.advance(state, 0.4, rates), 1.1, rates)
    torch.testing.assert_close(once.mean, twice.mean)
    torch.testing.assert_close(once.covariance, twice.covariance)


def test_values_at_once_are_values_one_by_one() -> None:
    rates = torch.tensor([0.3, 2.0]).double()
    state, density = observed(trend.prior(2, DEVIATIONS), 0.4, rates)
    ahead, more = observed(trend.advance(state, 0.7, rates), 0.0, rates)
    rows = ([numbers] * 2 for numbers in (1.0, 0.2))
    values, regressors = map(rates.new_tensor, rows)
    gaps, noises = rates.new_tensor([0.4, 0.7]), rates.new_full((2, 2), 0.1)
    both, whole = trend.observe(trend.prior(2, DEVIATIONS), gaps, values, regressors, noises, rates)
    torch.testing.assert_close(both.mean, ahead.mean)
    torch.testing.assert_close(both.covariance, ahead.covariance)
    torch.testing.assert_close(whole, density + more)


def test_filters_keep_the_device(tkwargs) -> None:
    rates = torch.tensor([0.3, 3.0]).to(**tkwargs)
    state, density = observed(trend.prior(2, DEVIATIONS.to(rates)), 0.5, rates)
    mean, variance = trend.predict(trend.advance(state, 1.0, rates), -0.2)
    for value in (density, mean, variance):
        assert value.device.type == tkwargs["device"].type
        assert value.dtype == tkwargs["dtype"]
        assert value.isfinite().all()
