"""The kernel of a fidelity, and the noise of subsets."""

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.utils.datasets import SupervisedDataset
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.kernels import SubsetKernel
from botorch_costly.likelihoods import SubsetNoiseLikelihood
from botorch_costly.models import SubsetGP

NUMBERS = {"dtype": torch.float64}

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")


@pytest.mark.parametrize(
    ("basis", "second"), [("loss", lambda s: (1 - s) ** 2), ("cost", lambda s: s)]
)
def test_it_is_the_sum_over_a_full_covariance(basis, second):
    kernel = SubsetKernel(basis).double()
    kernel.end, kernel.change = 1.5, 0.3
    kernel.link = -0.7
    sigma = kernel.sigma
    assert torch.linalg.eigvalsh(sigma).min() > 0
    torch.testing.assert_close(sigma[0, 1], torch.tensor(-0.7 * 1.5, **NUMBERS))
    torch.testing.assert_close(sigma[1, 1], torch.tensor(0.7**2 + 0.3**2, **NUMBERS))
    for s in (0.0, 0.2, 1.0):
        for t in (0.1, 1.0):
            phi, psi = (
                torch.tensor([1, second(s)], **NUMBERS),
                torch.tensor([1, second(t)], **NUMBERS),
            )
            value = kernel(
                torch.tensor([[s]], **NUMBERS), torch.tensor([[t]], **NUMBERS)
            ).to_dense()
            torch.testing.assert_close(value.squeeze(), phi @ sigma @ psi)


def test_a_loss_is_flat_on_all_of_the_data_and_a_cost_is_linear():
    s = torch.ones(1, 1, **NUMBERS).requires_grad_()
    kernel = SubsetKernel("loss").double()
    (slope,) = torch.autograd.grad(kernel(s, torch.zeros(1, 1, **NUMBERS)).to_dense().sum(), s)
    assert slope.item() == pytest.approx(0, abs=1e-12)
    kernel = SubsetKernel("cost").double()
    shares = torch.tensor([[0.0], [0.5], [1.0]], **NUMBERS)
    at = kernel(shares, torch.ones(1, 1, **NUMBERS)).to_dense().squeeze(-1)
    assert (at[0] + at[2]).item() == pytest.approx(2 * at[1].item())


def test_noise_vanishes_towards_the_whole_and_as_printed_grows():
    shares = torch.linspace(0, 1, 6, **NUMBERS).unsqueeze(-1)
    likelihood = SubsetNoiseLikelihood().double()
    likelihood.noise_covar.noise = 0.01
    likelihood.noise_covar.alpha, likelihood.noise_covar.beta = 0.5, 3.0
    variances = likelihood.noise_covar(shares).diagonal()
    torch.testing.assert_close(variances, 0.01 + 0.5 * (1 - shares[:, 0]) ** 3)
    printed = SubsetNoiseLikelihood(as_printed=True).double()
    assert (printed.noise_covar(shares).diagonal().diff() > 0).all()
    with pytest.raises(InvalidArgumentError, match="inputs"):
        likelihood.noise_covar()
    several = (
        SubsetNoiseLikelihood((0, 1), beta_prior=LogNormalPrior(0.0, 1.0)).double().noise_covar
    )
    several.noise, several.alpha = 0.01, 0.5
    at = torch.tensor([[0.2, 0.6], [1.0, 1.0]], **NUMBERS)
    expected = torch.tensor(
        [0.01 + 0.5 * 0.6, 0.01], **NUMBERS
    )  # to the power of the prior's median
    torch.testing.assert_close(several(at).diagonal(), expected)
    with pytest.raises(InvalidArgumentError, match="columns"):
        SubsetNoiseLikelihood(())


def test_a_fit_finds_where_the_noise_is():
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(160, 2, generator=generator, **NUMBERS)
    noise = 0.5 * (1 - X[:, 1:]) ** 4 * torch.randn(160, 1, generator=generator, **NUMBERS)
    Y = torch.sin(5 * X[:, :1]) + (1 - X[:, 1:]) ** 2 + noise
    model = SubsetGP(X, (Y - Y.mean()) / Y.std())
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    at = torch.tensor([[0.5, 0.02], [0.5, 0.95]], **NUMBERS)
    small, large = model.likelihood.noise_covar(at).diagonal()
    assert small > 10 * large
    truth = ((torch.sin(5 * X[:, :1]) - Y.mean()) / Y.std()).squeeze(-1)
    whole = torch.cat([X[:, :1], torch.ones_like(X[:, :1])], -1)
    errors = model.posterior(whole).mean.squeeze(-1) - truth
    assert (
        errors.square().mean().sqrt() < 0.15
    )  # the end is known though most of the data are not of it


def test_several_fidelities_multiply():
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(12, 4, generator=generator, **NUMBERS)
    model = SubsetGP(
        X, torch.randn(12, 1, generator=generator, **NUMBERS), fidelities=(2, -1)
    ).eval()
    assert model.fidelities == (2, 3)
    first, second, third = model.covar_module.kernels
    cov = model.covar_module(X).to_dense()
    torch.testing.assert_close(
        cov, first(X).to_dense() * second(X).to_dense() * third(X).to_dense()
    )
    assert model.posterior(X).mean.isfinite().all()


def test_what_makes_no_sense_is_refused():
    X, Y = torch.rand(4, 2, **NUMBERS), torch.zeros(4, 1, **NUMBERS)
    with pytest.raises(InvalidArgumentError, match="basis"):
        SubsetKernel("time")
    with pytest.raises(InvalidShapeError, match="one column"):
        SubsetKernel()(X, X).to_dense()
    with pytest.raises(InvalidArgumentError, match=r"\[0, 1\]"):
        SubsetGP(X + 2, Y)
    with pytest.raises(InvalidShapeError, match="fidelities"):
        SubsetGP(X, Y, fidelities=(0, 1))
    with pytest.raises(InvalidShapeError, match="train_Y"):
        SubsetGP(X, Y[:, 0])
    for name, value in (("end", 0.0), ("change", -1.0)):
        with pytest.raises(InvalidArgumentError, match=name):
            setattr(SubsetKernel(), name, value)


def test_botorch_constructs_the_inputs_of_the_model():
    generator = torch.Generator().manual_seed(3)
    X = torch.rand(6, 3, generator=generator, dtype=torch.float64)
    dataset = SupervisedDataset(X, X[:, :1], feature_names=["a", "share", "b"], outcome_names=["y"])
    arguments = SubsetGP.construct_inputs(dataset, fidelity_features=[1], basis="cost")
    assert SubsetGP(**arguments).fidelities == (1,)
    assert arguments["basis"] == "cost"
