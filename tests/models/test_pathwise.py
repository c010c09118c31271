"""BoTorch's pathwise sampling of a drifting function."""

import subprocess
import sys
from functools import partial

import pytest
import torch
from botorch.acquisition.thompson_sampling import PathwiseThompsonSampling
from botorch.models.transforms.input import Normalize
from botorch.optim import optimize_acqf
from botorch.sampling.pathwise import (
    draw_kernel_feature_paths,
    draw_matheron_paths,
    gen_kernel_features,
    get_matheron_path_model,
)
from gpytorch.kernels import MaternKernel, ProductKernel, RBFKernel, ScaleKernel

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.kernels import ArmKernel, ForgettingKernel
from botorch_costly.models import TimeVaryingGP
from tests.oracles import dense_gp

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
FEATURES, DRAWS = 2048, 1024
FORGETTING = 0.1


def story(n=10, batch=(), seed=0, **tkwargs):
    """Rewards of ``n`` rounds of two hyperparameters."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(*batch, n, 2, generator=generator, dtype=torch.float64)
    t = torch.arange(n, dtype=torch.float64).expand(*batch, n).unsqueeze(-1)
    y = (4 * x[..., :1] + t / 5).sin() + x[..., 1:]
    return torch.cat([x, t], -1).to(**tkwargs), (3 + 2 * y).to(**tkwargs)


def asked(now=11.0, n=6, **tkwargs):
    x = torch.rand(n, 2, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    return torch.cat([x, torch.full((n, 1), now, dtype=torch.float64)], -1).to(**tkwargs)


def believed(X, Y, **kwargs):
    model = TimeVaryingGP(X, Y, forgetting=FORGETTING, **kwargs)
    model.likelihood.noise = torch.full_like(model.likelihood.noise, 0.05)
    return model.eval()


def drawn(model, draws=DRAWS, seed=0):
    sampler = partial(draw_kernel_feature_paths, num_features=FEATURES)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return draw_matheron_paths(model, torch.Size([draws]), prior_sampler=sampler)


def errors_of(model, X, paths):
    """Return how far moments of paths are from the posterior's, in units of five standard errors.

    Given the features, the mean over paths is the posterior's exactly, and the variance is off by
    ``e' (F F' - K) e`` with ``e`` one at the point and minus its weights at the data: a mean over
    ``FEATURES / 2`` frequencies of numbers between 0 and ``top = k |e|_1^2`` whose expectation
    ``e' K e`` is at most the posterior variance, so that their variance is at most that times ``top``.
    """
    with torch.no_grad():
        posterior, values = model.posterior(X), paths(X)
        (seen,), scale = model.train_inputs, model.outcome_transform.stdvs.squeeze(-1)
        noisy = model.covar_module(seen).to_dense() + 0.05 * torch.eye(seen.shape[-2]).to(seen)
        inside = X if not hasattr(model, "input_transform") else model.input_transform(X)
        weights = torch.linalg.solve(noisy, model.covar_module(seen, inside).to_dense())
        prior = model.covar_module(inside, diag=True)
    mean, variance = posterior.mean.squeeze(-1), posterior.variance.squeeze(-1)
    top = prior * scale**2 * (1 + weights.abs().sum(-2)) ** 2
    of_features, of_draws = (variance * top / (FEATURES / 2)).sqrt(), variance * (2 / DRAWS) ** 0.5
    mean_error = (values.mean(0) - mean).abs() / ((variance + 5 * of_features) / DRAWS).sqrt()
    return mean_error / 5, (values.var(0) - variance).abs() / (of_features + of_draws) / 5


def space_kernels():
    return {
        "default": None,
        "rbf": RBFKernel(ard_num_dims=2),
        "matern12": ScaleKernel(MaternKernel(0.5)),
        "product": RBFKernel(active_dims=(0,)) * ScaleKernel(MaternKernel(1.5, active_dims=(1,))),
    }


def test_columns_are_selected_once_after_a_move_copied_them(tkwargs):
    model = believed(*story(**tkwargs), space_kernel=space_kernels()["product"]).to(**tkwargs)
    expected = drawn(model, draws=2)(asked(**tkwargs))
    for kernel in model.covar_module.modules():
        if getattr(kernel, "active_dims", None) is not None:
            kernel.active_dims = kernel.active_dims.clone()
    assert torch.equal(drawn(model, draws=2)(asked(**tkwargs)), expected)


@pytest.mark.parametrize("space", space_kernels())
def test_paths_have_the_moments_of_the_posterior(space, tkwargs):
    model = believed(*story(**tkwargs), space_kernel=space_kernels()[space]).to(**tkwargs)
    X = asked(**tkwargs)
    paths = drawn(model)
    assert paths(X).shape == (DRAWS, 6)
    assert paths(X).dtype == tkwargs["dtype"]
    for error in errors_of(model, X, paths):
        assert error.max() < 1


def test_the_posterior_that_paths_are_compared_with_is_the_dense_one():
    X, Y = story()
    model, asking = believed(X, Y), asked()
    matern = model.space_kernel.base_kernel
    kernel = partial(
        dense_gp.matern,
        lengthscale=matern.lengthscale.detach().squeeze(0),
        outputscale=model.space_kernel.outputscale.item(),
    )
    x, at, y = X[:, :2], asking[:, :2], ((Y - Y.mean()) / Y.std()).squeeze(-1)
    among = kernel(x, x), X[:, 2], y, 0.05, kernel(at, x), kernel(at, at), 11.0, FORGETTING
    mean, cov, _ = dense_gp.posterior(*among)
    predicted = model.posterior(asking)
    torch.testing.assert_close(predicted.mean.squeeze(-1), Y.mean() + Y.std() * mean)
    torch.testing.assert_close(predicted.variance.squeeze(-1), Y.var() * cov.diagonal())


def test_paths_remember_as_long_as_the_model_does():
    """Two rounds of one configuration, long after the data, covary as the kernel says."""
    X = torch.tensor([[0.4, 0.6, 200.0], [0.4, 0.6, 206.0]], dtype=torch.float64)
    values = drawn(believed(*story()))(X).detach()
    kept = (1 - FORGETTING) ** 3
    # Standard errors of a correlation, and of a mean of cosines whose mean is kept.
    cosines = (1 + kept**2) / 2 - kept**2
    error = (1 - kept**2) / DRAWS**0.5 + (cosines / (FEATURES / 2)) ** 0.5
    assert values.mT.corrcoef()[0, 1].item() == pytest.approx(kept, abs=5 * error)


def test_a_batch_of_models_and_input_transforms(tkwargs):
    X, Y = story(batch=(2,), **tkwargs)
    Y[1] = -Y[1]
    rounds = Normalize(3, indices=[0, 1], batch_shape=torch.Size([2]))
    model = believed(X, Y, input_transform=rounds).to(**tkwargs)
    at = asked(**tkwargs).expand(2, 6, 3)
    paths = drawn(model)
    assert paths(at).shape == (DRAWS, 2, 6)
    for error in errors_of(model, at, paths):
        assert error.max() < 1


def test_gradients_are_finite_differences():
    model, X = believed(*story()), asked(n=2).requires_grad_()
    model.requires_grad_(False)
    assert torch.autograd.gradcheck(drawn(model, draws=3), (X,))


def test_thompson_sampling_maximizes_a_path():
    model = believed(*story())
    bounds = torch.tensor([[0.0, 0.0, 11.0], [1.0, 1.0, 12.0]], dtype=torch.float64)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        acquisition = PathwiseThompsonSampling(model)
        X, value = optimize_acqf(
            acquisition, bounds, 1, num_restarts=4, raw_samples=64, fixed_features={2: 11.0}
        )
    assert X[0, 2] == 11
    assert value >= acquisition(asked(n=50).unsqueeze(-2)).max() - 1e-6


def test_a_path_is_a_deterministic_model():
    with torch.random.fork_rng():
        path = get_matheron_path_model(believed(*story()))
    assert path.posterior(asked()).mean.shape == (6, 1)


def test_nothing_forgets_at_rate_0():
    with torch.random.fork_rng():
        features = gen_kernel_features(ForgettingKernel(0.0), num_inputs=1, num_outputs=64)
    rounds = torch.tensor([[0.0], [1000.0]])
    values = features(rounds)
    assert torch.equal(values[0], values[1])


def test_several_columns_of_rounds_multiply():
    """Lags add up, so frequencies are independent: not those of a multivariate Cauchy density."""
    kernel = ForgettingKernel(0.3).double()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        features = gen_kernel_features(kernel, num_inputs=2, num_outputs=32768)
    rounds = torch.tensor([[0.0, 0.0], [2.0, 3.0]], dtype=torch.float64)
    values = features(rounds).detach()
    assert (values[0] @ values[1]).item() == pytest.approx(0.7**2.5, abs=5 / 16384**0.5)


@pytest.mark.parametrize(
    ("kernel", "count", "named"),
    [
        (ForgettingKernel(1.0), 64, "forgetting: Expected a rate below 1"),
        (ForgettingKernel(0.1), 63, "num_outputs: Expected an even number"),
        (RBFKernel() * ForgettingKernel(0.1), 63, "num_outputs: Expected an even number"),
    ],
)
def test_what_has_no_features_is_named(kernel, count, named):
    with pytest.raises(InvalidArgumentError, match=named):
        gen_kernel_features(kernel, num_inputs=1, num_outputs=count)


def test_a_factor_without_a_spectral_density_is_named():
    kernel = ProductKernel(ArmKernel(), ForgettingKernel(0.1))
    with pytest.raises(NotImplementedError, match="ArmKernel"):
        gen_kernel_features(kernel, num_inputs=1, num_outputs=64)


def test_a_product_may_see_some_columns_and_be_scaled():
    product = RBFKernel(active_dims=(0,)) * ForgettingKernel(0.2, active_dims=(1,))
    product.active_dims = torch.tensor([2, 0])
    kernel = ScaleKernel(product).double()
    kernel.outputscale = 2.5
    with torch.random.fork_rng():
        torch.manual_seed(0)
        features = gen_kernel_features(kernel, num_inputs=3, num_outputs=32768)
    X = story(5)[0].roll(1, -1)
    values, exact = features(X).detach(), kernel(X).to_dense().detach()
    assert (values @ values.mT - exact).abs().max() < 5 * 2.5 / 16384**0.5


@pytest.mark.slow
def test_importing_the_models_is_enough():
    code = "import botorch_costly.models; from botorch.sampling.pathwise.features import generators"
    code += "; print(sorted(k[0].__name__ for k in generators.GenKernelFeatures.funcs))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'ForgettingKernel'" in done.stdout
    assert "'ProductKernel'" in done.stdout
