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
    state, density = trend.prior(2, DEVIATIONS), torch.zeros(2).double()
    for k in range(count):
        state = trend.advance(state, float(times[k] - times[max(k - 1, 0)]), rates)
        state, term = trend.observe(
            state, float(values[k]), float(regressors[k]), noise[k].expand(2)
        )
        density = density + term
    state = trend.advance(state, ahead, rates)
    mean, variance = trend.predict(state, 0.4)
    for i, rate in enumerate(rates.tolist()):
        time = float(times[-1]) + ahead
        dense = oracle.posterior(times, values, regressors, noise, rate, DEVIATIONS, time, 0.4)
        ours = (mean[i].item(), variance[i].item(), density[i].item())
        assert ours == pytest.approx(dense, rel=1e-7, abs=1e-9)


def test_two_gaps_equal_one() -> None:
    rates = torch.tensor([0.3]).double()
    state, _ = trend.observe(trend.prior(1, DEVIATIONS), 1.0, 0.2, torch.tensor([0.1]).double())
    once = trend.advance(state, 1.5, rates)
    twice = trend.advance(trend.advance(state, 0.4, rates), 1.1, rates)
    torch.testing.assert_close(once.mean, twice.mean)
    torch.testing.assert_close(once.covariance, twice.covariance)


def test_filters_keep_the_device(tkwargs) -> None:
    rates = torch.tensor([0.3, 3.0]).to(**tkwargs)
    state = trend.advance(trend.prior(2, DEVIATIONS.to(rates)), 0.5, rates)
    state, density = trend.observe(state, 0.4, 0.2, rates)
    mean, variance = trend.predict(trend.advance(state, 1.0, rates), -0.2)
    for value in (density, mean, variance):
        assert value.device.type == tkwargs["device"].type
        assert value.dtype == tkwargs["dtype"]
        assert value.isfinite().all()
