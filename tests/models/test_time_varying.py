"""The drifting GP as a BoTorch model: fitting, batches, acquisition functions, files."""

import pickle
import warnings

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms.input import Normalize
from botorch.optim import optimize_acqf
from botorch.utils.datasets import SupervisedDataset
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.kernels import ArmKernel, ForgettingKernel
from botorch_costly.models import StreamingGP, TimeVaryingGP

EXACT = {"rtol": 1e-8, "atol": 1e-8}


def drifting_data(forgetting=0.05, n=200, seed=0, **tkwargs):
    """Draw n rounds of a drifting function of one column from its dense GP."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 1, generator=generator, dtype=torch.float64)
    t = torch.arange(n, dtype=torch.float64)[:, None]
    kernel = (-((x - x.mT) ** 2) / (2 * 0.3**2)).exp() * (1 - forgetting) ** ((t - t.mT).abs() / 2)
    factor = torch.linalg.cholesky(kernel + 0.01 * torch.eye(n, dtype=torch.float64))
    y = factor @ torch.randn(n, 1, generator=generator, dtype=torch.float64)
    return torch.cat([x, t], -1).to(**tkwargs), (10 + 3 * y).to(**tkwargs)


def fit(model):
    return fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))


@pytest.fixture(scope="module")
def fitted():
    X, Y = drifting_data()
    model = TimeVaryingGP(X, Y)
    fit(model)
    return model


def test_the_rate_is_learnt(fitted):
    assert 0.05 / 3 < fitted.time_kernel.forgetting.item() < 0.05 * 3
    noise = fitted.likelihood.noise.item() * fitted.outcome_transform.stdvs.item() ** 2
    assert 0.09 / 3 < noise < 0.09 * 3


@pytest.mark.parametrize("forgetting", [0.0, 0.01, 1.0])
def test_a_given_rate_is_not_learnt(forgetting):
    model = TimeVaryingGP(*drifting_data(n=20), forgetting=forgetting)
    assert model.time_kernel.forgetting.item() == pytest.approx(forgetting, rel=1e-14)
    before = model.space_kernel.outputscale.item()
    fit(model)
    assert model.time_kernel.forgetting.item() == pytest.approx(forgetting, rel=1e-14)
    assert model.space_kernel.outputscale.item() != before


def test_a_fitted_model_streams(fitted):
    X, Y = drifting_data()
    belief = StreamingGP.from_model(fitted, tolerance=1e-12)
    for x, y in zip(X, Y.flatten().tolist(), strict=True):
        belief.observe(x, y)
    asked = torch.tensor([[0.2, 201.0], [0.7, 201.0]], dtype=torch.float64)
    ours, theirs = belief.posterior(asked), fitted.posterior(asked)
    torch.testing.assert_close(ours.mean, theirs.mean, **EXACT)
    torch.testing.assert_close(ours.covariance_matrix, theirs.covariance_matrix, **EXACT)


@pytest.mark.parametrize("trained", [False, True])
def test_pickling_keeps_the_posterior(fitted, trained):
    model = fitted if trained else TimeVaryingGP(*drifting_data(n=10))
    copy = pickle.loads(pickle.dumps(model))
    asked = torch.tensor([[0.2, 201.0], [0.7, 201.0]], dtype=torch.float64)
    assert torch.equal(copy.posterior(asked).mean, model.posterior(asked).mean)
    if not trained:
        fit(copy)  # priors and their closures survived


def test_a_batch_of_models_is_a_loop():
    data = [drifting_data(n=15, seed=seed) for seed in range(3)]
    X, Y = (torch.stack(tensors) for tensors in zip(*data, strict=True))
    many = TimeVaryingGP(X, Y)
    rates = torch.tensor([0.01, 0.1, 0.5], dtype=torch.float64)
    many.time_kernel.forgetting = rates[:, None, None]
    asked = torch.tensor([[0.2, 16.0], [0.7, 18.0]], dtype=torch.float64)
    together = many.posterior(asked.expand(3, 2, 2))
    for i in range(3):
        alone = TimeVaryingGP(X[i], Y[i])
        alone.time_kernel.forgetting = rates[i]
        expected = alone.posterior(asked)
        torch.testing.assert_close(together.mean[i], expected.mean, **EXACT)
        torch.testing.assert_close(together.variance[i], expected.variance, **EXACT)
    fit(many)
    assert many.time_kernel.forgetting.unique().numel() == 3


def test_single_precision_works():
    X, Y = drifting_data(n=30, dtype=torch.float32)
    with warnings.catch_warnings():
        # BoTorch asks for float64 in general.
        warnings.simplefilter("ignore")
        model = TimeVaryingGP(X, Y)
        fit(model)
    posterior = model.posterior(X[:3])
    assert posterior.mean.dtype == torch.float32 == model.time_kernel.forgetting.dtype
    assert posterior.variance.isfinite().all()


def test_acquisition_functions_are_optimized_at_a_fixed_round():
    X, Y = drifting_data(n=30)
    model = TimeVaryingGP(X, Y, forgetting=0.05)
    acquisition = UpperConfidenceBound(model, beta=2.0)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 40.0]], dtype=torch.float64)
    best, value = optimize_acqf(
        acquisition, bounds, q=1, num_restarts=4, raw_samples=32, fixed_features={1: 31.0}
    )
    assert best[0, 1] == 31
    grid = torch.linspace(0, 1, 201, dtype=torch.float64)[:, None, None]
    grid = torch.cat([grid, torch.full_like(grid, 31.0)], -1)
    assert value >= acquisition(grid).max() - 1e-6


def test_gradients_are_finite_at_the_observations_and_at_full_forgetting():
    X, Y = drifting_data(n=10)
    for rate in (0.0, 0.05, 1.0):
        asked = X.clone().requires_grad_()
        TimeVaryingGP(X, Y, forgetting=rate).posterior(asked).mean.sum().backward()
        assert asked.grad.isfinite().all()


def test_construct_inputs_takes_a_dataset():
    X, Y = drifting_data(n=10)
    data = SupervisedDataset(X, Y, feature_names=["x", "round"], outcome_names=["reward"])
    model = TimeVaryingGP(**TimeVaryingGP.construct_inputs(data), forgetting=0.1)
    expected = TimeVaryingGP(X, Y, forgetting=0.1)
    assert torch.equal(model.posterior(X).mean, expected.posterior(X).mean)


def test_no_warning_for_rounds_outside_the_unit_cube():
    X, Y = drifting_data(n=10)
    X[:, -1] += 1e5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TimeVaryingGP(X, Y)
        model.posterior(X)
        fit(model)


def test_a_space_kernel_does_not_see_the_round():
    X, Y = drifting_data(n=10)
    plain = TimeVaryingGP(X, Y, forgetting=0.0, space_kernel=ScaleKernel(RBFKernel()).double())
    later = X + torch.tensor([0.0, 500.0])
    torch.testing.assert_close(plain.posterior(X).mean, plain.posterior(later).mean)


def test_a_space_kernel_may_be_a_product():
    X, Y = drifting_data(n=10)
    X = torch.cat([X[:, :1], torch.arange(10)[:, None] % 3, X[:, 1:]], -1)
    space = MaternKernel(active_dims=(0,)) * ArmKernel(active_dims=(1,))
    model = TimeVaryingGP(X, Y, forgetting=0.3, space_kernel=space.double())
    assert model.space_kernel is space
    assert isinstance(model.time_kernel, ForgettingKernel)
    apart = (X[:, 2:] - X[:, 2:].mT).abs()
    expected = space(X[:, :2]).to_dense() * 0.7 ** (apart / 2)
    torch.testing.assert_close(model.covar_module(X).to_dense(), expected)


def test_an_input_transform_is_applied_and_cannot_be_streamed():
    X, Y = drifting_data(n=10)
    wide = X * torch.tensor([7.0, 1.0])
    normalize = Normalize(2, indices=[0], bounds=torch.tensor([[0.0], [7.0]]).double())
    model = TimeVaryingGP(wide, Y, forgetting=0.1, input_transform=normalize)
    expected = TimeVaryingGP(X, Y, forgetting=0.1)
    torch.testing.assert_close(model.posterior(wide).mean, expected.posterior(X).mean)
    with pytest.raises(InvalidArgumentError, match="no input transform"):
        StreamingGP.from_model(model)


def test_bad_input_is_named():
    X, Y = drifting_data(n=10)
    with pytest.raises(InvalidShapeError, match=r"train_X: Expected columns \[x_1 .. x_d, round\]"):
        TimeVaryingGP(X[:, :1], Y)
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(InvalidArgumentError, match=r"forgetting: Expected a rate in \[0, 1\]"):
            TimeVaryingGP(X, Y, forgetting=rate)
    broken = X.clone()
    broken[3, 1] = float("inf")
    for name, data in {
        "train_X": (broken, Y),
        "train_Y": (X, Y * float("nan")),
        "train_Yvar": (X, Y, -torch.ones_like(Y)),
    }.items():
        with pytest.raises(InvalidArgumentError, match=f"{name}: Expected finite numbers"):
            TimeVaryingGP(*data)
