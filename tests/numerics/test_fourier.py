"""Random features: inner products are the kernel, and draws have the exact posterior."""

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.numerics.fourier import fourier_features, frequencies, posterior_weights
from botorch_costly.numerics.radial import SMOOTHNESS
from botorch_costly.numerics.stationary import Stationary, covariance

MANY = 20_000


def drawn(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("family", [*SMOOTHNESS, "rbf"])
def test_inner_products_of_features_are_the_kernel(family):
    X = drawn(6, 2)
    lengthscale = torch.tensor([[0.4, 0.9]], dtype=torch.float64)
    variance = torch.tensor([[1.7]], dtype=torch.float64)
    draws = frequencies(family, MANY, 2, torch.Generator().manual_seed(1))
    features = fourier_features(X, draws, lengthscale, variance)
    exact = covariance(Stationary(family, lengthscale, variance), X, X)
    # Four standard errors of a mean of cosines.
    torch.testing.assert_close(features @ features.mT, exact, atol=1.7 * 4 / MANY**0.5, rtol=0)
    torch.testing.assert_close(features.square().sum(-1), torch.full((6,), 1.7).double())


def test_draws_of_weights_have_the_posterior_of_bayesian_regression():
    features, values = drawn(5, 8, seed=2), drawn(5, seed=3)
    noise = torch.tensor([0.3], dtype=torch.float64)
    ours = posterior_weights(features, values, noise, MANY, torch.Generator().manual_seed(4))
    precision = torch.eye(8, dtype=torch.float64) + features.mT @ features / noise
    cov = torch.linalg.inv(precision)
    mean = cov @ features.mT @ values / noise
    torch.testing.assert_close(ours.mean(0), mean, atol=5 / MANY**0.5, rtol=0)
    torch.testing.assert_close(ours.mT.cov(), cov, atol=10 / MANY**0.5, rtol=0)


def test_rows_that_are_padded_change_no_draw_s_distribution():
    features, values = drawn(3, 8, seed=2), drawn(3, seed=3)
    noise = torch.tensor([0.1], dtype=torch.float64)
    wider = torch.cat([features, torch.zeros(2, 8, dtype=torch.float64)])
    padded = torch.cat([values, torch.zeros(2, dtype=torch.float64)])
    ours = posterior_weights(wider, padded, noise, MANY, torch.Generator().manual_seed(4))
    theirs = posterior_weights(features, values, noise, MANY, torch.Generator().manual_seed(5))
    torch.testing.assert_close(ours.mean(0), theirs.mean(0), atol=8 / MANY**0.5, rtol=0)


def test_a_family_without_spectral_density_is_refused():
    with pytest.raises(InvalidArgumentError, match="family"):
        frequencies("arms", 5, 2, torch.Generator())
