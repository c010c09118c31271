"""Log priors against their densities, their derivatives against differences, draws against both."""

import math

import pytest
import torch

from botorch_costly.models.fitting import priors_and_bounds
from botorch_costly.numerics.hyperprior import draw, log_prior
from tests.oracles import evidence as oracle


def theta_of(dim, learnt):
    generator = torch.Generator().manual_seed(dim)
    theta = torch.randn(dim + 3, generator=generator, dtype=torch.float64)
    theta[-1] -= 3
    return theta if learnt else theta[:-1]


@pytest.mark.parametrize("learnt", [True, False])
@pytest.mark.parametrize("dim", [1, 4])
def test_it_is_the_sum_of_the_densities(dim, learnt):
    theta = theta_of(dim, learnt)
    values = theta.exp().tolist()
    rate = -math.expm1(-values[-1]) if learnt else None
    expected = oracle.log_prior(values[:dim], values[dim], rate)
    actual = log_prior(priors_and_bounds(dim)[0], theta, dim)
    assert actual.value.item() == pytest.approx(expected, rel=1e-6)  # the modules are in float32


@pytest.mark.parametrize("learnt", [True, False])
def test_its_gradient_is_its_finite_difference(learnt):
    prior, theta = priors_and_bounds(3)[0], theta_of(3, learnt)
    expected = oracle.differences(lambda at: log_prior(prior, at, 3).value, theta, 1e-3)
    torch.testing.assert_close(log_prior(prior, theta, 3).gradient, expected, rtol=1e-8, atol=1e-8)


def test_its_curvature_is_that_of_the_density():
    """Exactly for all but the rate, for which it is where the rate is small."""
    prior, theta = priors_and_bounds(3)[0], theta_of(3, True)
    theta[-1] = -9.0
    slopes = [
        -oracle.differences(lambda at, i=i: log_prior(prior, at, 3).gradient[..., i], theta, 1e-3)[
            i
        ]
        for i in range(6)
    ]
    torch.testing.assert_close(log_prior(prior, theta, 3).curvature, torch.stack(slopes),
                               rtol=1e-3, atol=1e-8)  # fmt: skip


def test_draws_are_from_the_priors():
    prior, generator = priors_and_bounds(2)[0], torch.Generator().manual_seed(0)
    theta = draw(prior, torch.Size([100, 200]), 2, (1e-3, 1.0), generator)
    assert theta.shape == (100, 200, 5)
    assert theta.dtype == torch.float64
    lengthscale, outputscale, noise, decay = theta.reshape(-1, 5).tensor_split([2, 3, 4], -1)
    assert lengthscale.mean().item() == pytest.approx(prior.lengthscale.mu, abs=0.05)
    assert lengthscale.std().item() == pytest.approx(prior.lengthscale.sigma, rel=0.03)
    assert outputscale.exp().mean().item() == pytest.approx(2 / 0.15, rel=0.03)
    assert outputscale.exp().std().item() == pytest.approx(2**0.5 / 0.15, rel=0.05)
    assert math.log(1e-3) <= noise.min() <= noise.max() <= 0
    rate = -torch.expm1(-decay.exp())
    assert rate.log().median().item() == pytest.approx(-4.605, abs=0.05)
    assert 0 < rate.min() <= rate.max() <= 0.5 + 1e-9
    again = torch.Generator().manual_seed(0)
    assert torch.equal(theta, draw(prior, torch.Size([100, 200]), 2, (1e-3, 1.0), again))
