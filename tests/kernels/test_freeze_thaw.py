"""The covariance of curves that decay."""

import pytest
import torch
from gpytorch.priors import GammaPrior

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.kernels import FreezeThawKernel
from tests.oracles import compression as oracle


@pytest.mark.parametrize("pair", [(0.0, 0.0), (0.0, 1.5), (0.3, 2.0), (2.0, 2.0)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (2.5, 0.7)])
def test_it_is_the_mean_of_decays(pair, alpha, beta):
    kernel = FreezeThawKernel(alpha, beta).double()
    kernel.alpha, kernel.beta = alpha, beta
    first, second = (torch.tensor([[t]], dtype=torch.float64) for t in pair)
    covariance = kernel(first, second).to_dense().item()
    assert covariance == pytest.approx(oracle.freeze_thaw(*pair, alpha, beta, 50_000), abs=2e-4)


def test_several_columns_multiply(generator):
    X = torch.rand(4, 2, generator=generator, device=generator.device, dtype=torch.float64)
    kernel = FreezeThawKernel(1.3, 0.7).double()
    each = [kernel(X[:, i : i + 1]).to_dense() for i in range(2)]
    torch.testing.assert_close(kernel(X).to_dense(), each[0] * each[1])


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_parameters_are_positive(name, value):
    with pytest.raises(InvalidArgumentError, match=f"{name}: Expected a number > 0"):
        FreezeThawKernel(**{name: value})


def test_priors_reach_the_parameters():
    kernel = FreezeThawKernel(alpha_prior=GammaPrior(2.0, 1.0), beta_prior=GammaPrior(3.0, 1.0))
    for name, _, prior, closure, setting in kernel.named_priors():
        setting(kernel, 1.7)
        assert closure(kernel).item() == pytest.approx(1.7, rel=1e-6), name
        assert prior.log_prob(closure(kernel)).isfinite()


def test_columns_are_no_batch():
    with pytest.raises(InvalidShapeError, match="times are one input"):
        FreezeThawKernel().forward(torch.rand(3, 2), torch.rand(3, 2), last_dim_is_batch=True)
