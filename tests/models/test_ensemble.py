"""Draws of hyperparameters from their posterior, and the model of a batch of GPs."""

import pickle
from copy import deepcopy

import pytest
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.models import SingleTaskGP
from gpytorch.constraints import Interval
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.priors import GammaPrior

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import HyperparameterEnsemble, SubsetGP, sample_hyperparameters
from botorch_costly.models.covariance import JointObservations
from botorch_costly.models.ensemble import Walkers
from botorch_costly.models.log_posterior import LogPosterior
from tests.oracles import hyperparameters as oracle

NUMBERS = {"dtype": torch.float64}

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")


def data(n=12, dim=3):
    generator = torch.Generator().manual_seed(4)
    X = torch.rand(n, dim, generator=generator, **NUMBERS)
    Y = torch.sin(4 * X[:, :1]) + (1 - X[:, -1:]) ** 2
    return X, (Y - Y.mean()) / Y.std()


def build(batch, n=12):
    X, Y = data(n)
    return SubsetGP(X.expand(*batch, *X.shape), Y.expand(*batch, *Y.shape))


def scaled_rbf(batch):
    """A GP whose one free hyperparameter is its variance."""
    X, Y = data(8, 1)
    kernel = ScaleKernel(
        RBFKernel(batch_shape=batch), outputscale_prior=GammaPrior(2.0, 1.0), batch_shape=batch
    )
    kernel.base_kernel.lengthscale = 0.3
    kernel.base_kernel.raw_lengthscale.requires_grad_(False)
    likelihood = GaussianLikelihood(batch_shape=batch)
    likelihood.noise = 0.1
    return SingleTaskGP(
        X.expand(*batch, *X.shape),
        Y.expand(*batch, *Y.shape),
        likelihood=likelihood,
        covar_module=kernel,
        mean_module=ZeroMean(),
        outcome_transform=None,
    )


def of_interval(batch):
    """A GP whose noise is bounded on both sides, by a transform whose slope has no formula of ours."""
    model = scaled_rbf(batch)
    noise = model.likelihood.noise_covar
    noise.register_constraint("raw_noise", Interval(1e-4, 1.0, initial_value=0.1))
    return model


@pytest.fixture(scope="module")
def ensemble():
    draws = sample_hyperparameters(build, torch.Generator().manual_seed(0), steps=60)
    return HyperparameterEnsemble(draws.models)


def of_parameters(models):
    """The log posterior at the parameters that models have."""
    free = [parameter for parameter in models.parameters() if parameter.requires_grad]
    raw = torch.cat([parameter.detach().reshape(len(parameter), -1) for parameter in free], -1)
    return LogPosterior(models)(raw)


def whole(batch):
    """All that ``SubsetOptimizer`` believes in: moving optima and a shared gain."""
    X, Y = data()
    X, Y = X.expand(*batch, *X.shape), Y.expand(*batch, *Y.shape)
    return SubsetGP(X, Y, level=True, moving=(0,))


@pytest.mark.parametrize("made", [build, scaled_rbf, whole])
def test_the_posterior_of_a_batch_is_each_members_evidence_and_priors(made):
    """The naive twin asks GPyTorch for each part; the fast one computes priors and slopes together."""
    models, generator = made(torch.Size([3])).train(), torch.Generator().manual_seed(1)
    for parameter in models.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator, **NUMBERS)
    together = of_parameters(models)
    torch.testing.assert_close(together, oracle.log_posterior(models), rtol=1e-7, atol=1e-7)
    for i in range(3):
        alone = made(torch.Size([1])).train()
        for mine, theirs in zip(alone.parameters(), models.parameters(), strict=True):
            mine.data.copy_(theirs.data[i : i + 1])
        torch.testing.assert_close(of_parameters(alone)[0], together[i])


@pytest.mark.parametrize("made", [build, scaled_rbf, whole, of_interval])
def test_its_gradient_is_that_of_differences(made):
    models, generator = made(torch.Size([3])).train(), torch.Generator().manual_seed(1)
    posterior = LogPosterior(models)
    count = sum(p[0].numel() for p in models.parameters() if p.requires_grad)
    raw = 0.3 * torch.randn(3, count, generator=generator, **NUMBERS)
    value, gradient = posterior.with_gradient(raw)
    torch.testing.assert_close(value, posterior(raw).detach())
    for column in range(count):
        step = torch.zeros_like(raw)
        step[:, column] = 1e-5
        with torch.no_grad():
            slope = (posterior(raw + step) - posterior(raw - step)) / 2e-5
        torch.testing.assert_close(gradient[:, column], slope, rtol=1e-4, atol=1e-5)


def test_a_covariance_without_a_factor_leaves_the_other_gradients_as_they_are():
    models = build(torch.Size([2])).train()
    count = sum(p[0].numel() for p in models.parameters())
    raw = torch.zeros(2, count, **NUMBERS)
    alone = LogPosterior(models).with_gradient(raw)
    raw[1] = 1e3
    value, gradient = LogPosterior(models).with_gradient(raw)
    torch.testing.assert_close(value[0], alone[0][0])
    torch.testing.assert_close(gradient[0], alone[1][0])
    assert not value[1].isfinite()


def test_a_posterior_gives_the_model_the_parameters_it_is_asked_for():
    models, raw = whole(torch.Size([2])).train(), torch.linspace(-1, 1, 2).double()
    posterior, count = LogPosterior(models), sum(p[0].numel() for p in models.parameters())
    values = posterior(raw.unsqueeze(-1).expand(2, count))
    assert all(torch.equal(p[1], torch.ones_like(p[1])) for p in models.parameters())
    torch.testing.assert_close(values, oracle.log_posterior(models), rtol=1e-7, atol=1e-7)


def test_draws_are_those_of_the_density_on_a_grid():
    """Of two free hyperparameters, the density of all draws beside that computed on a grid."""
    generator = torch.Generator().manual_seed(0)
    start, pooled = None, []
    for _ in range(25):
        draws = sample_hyperparameters(scaled_rbf, generator, start=start, steps=20)
        start = draws.walkers
        pooled.append(draws.models.covar_module.outputscale.log().flatten())
    drawn = torch.cat(pooled[5:])
    names = [name for name, _ in scaled_rbf(torch.Size([1])).named_parameters()]
    grid = torch.linspace(-6, 6, 61, **NUMBERS)
    raw = torch.cartesian_prod(grid, torch.linspace(-6, 3, 61, **NUMBERS))
    models = scaled_rbf(torch.Size([len(raw)])).train()
    for name, parameter in models.named_parameters():
        if "outputscale" in name:
            parameter.data.copy_(raw[:, 0].reshape(parameter.shape))
        elif "noise" in name:
            parameter.data.copy_(raw[:, 1].reshape(parameter.shape))
    with torch.no_grad():
        weight = of_parameters(models).softmax(0)
        level = models.covar_module.outputscale.log().flatten()
    assert len(names) == 3
    mean = (weight * level).sum()
    sd = (weight * (level - mean).square()).sum().sqrt()
    assert drawn.mean().item() == pytest.approx(mean.item(), abs=0.35 * sd.item())
    assert drawn.std().item() == pytest.approx(sd.item(), rel=0.4)


def test_walkers_that_new_data_contradict_are_left_behind():
    """Half of the walkers believe in hardly any signal and noise, as if that had been as likely."""
    raw = torch.zeros(20, 2, **NUMBERS)
    raw[10:] = -30.0
    raw += 0.1 * torch.randn(raw.shape, generator=torch.Generator().manual_seed(1), **NUMBERS)
    walkers = Walkers(raw, torch.zeros(20, **NUMBERS))
    generator = torch.Generator().manual_seed(0)
    draws = sample_hyperparameters(scaled_rbf, generator, start=walkers, steps=8)
    assert draws.walkers.log_density.min() > -100  # -30: less than -10,000
    same = sample_hyperparameters(scaled_rbf, generator, start=draws.walkers, steps=8)
    assert len(same.walkers.raw.unique(dim=0)) >= 15  # equal weights: none is copied


def test_it_goes_on_from_where_it_was_and_says_how_well_it_went():
    generator = torch.Generator().manual_seed(0)
    first = sample_hyperparameters(build, generator, steps=40)
    again = sample_hyperparameters(build, generator, start=first.walkers, steps=8)
    before, after = first.walkers.raw, again.walkers.raw
    assert before.shape == after.shape == (36, 9)  # four walkers a number
    assert ((after.mean(0) - before.mean(0)).abs() < 1.5 * before.std(0)).all()
    assert again.diagnosis.r_hat.shape == first.walkers.raw.shape[1:]
    assert 0 < first.accepted < 1
    more = sample_hyperparameters(build, generator, walkers=50, start=first.walkers, steps=8)
    assert len(more.walkers.raw) == 50
    with pytest.raises(InvalidArgumentError, match="steps"):
        sample_hyperparameters(build, generator, steps=7)


def test_it_answers_as_its_members_do(ensemble):
    X = torch.rand(5, 2, 1, 3, generator=torch.Generator().manual_seed(2), **NUMBERS)
    for noisy in (False, True):
        actual = ensemble.posterior(X, observation_noise=noisy)
        expected = ensemble.models.posterior(X.unsqueeze(-3), observation_noise=noisy)
        assert actual.mean.shape == (5, 2, len(ensemble.models.train_targets), 1, 1)
        torch.testing.assert_close(actual.mean, expected.mean, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(actual.variance, expected.variance, rtol=1e-3, atol=1e-4)
    together = X.reshape(1, 10, 3)
    assert ensemble.posterior(together).mean.shape[-2:] == (10, 1)
    joint, expected = ensemble.posterior(together[0]), ensemble.models.posterior(together)
    assert joint.mean.shape == (len(ensemble.models.train_targets), 10, 1)
    torch.testing.assert_close(joint.mean, expected.mean, rtol=1e-3, atol=1e-4)
    covariances = (p.distribution.covariance_matrix for p in (joint, expected))
    torch.testing.assert_close(*covariances, rtol=1e-3, atol=1e-5)


def test_means_alone_are_those_of_the_posterior(ensemble):
    X = data(7)[0]
    torch.testing.assert_close(
        ensemble.mean(X), ensemble.posterior(X.unsqueeze(-2)).mean[..., 0, 0].mT
    )


def test_it_follows_its_type_and_a_state_that_is_loaded(ensemble):
    X, (model, loaded, other) = data(7)[0], (deepcopy(ensemble) for _ in range(3))
    before = model.posterior(X).mean
    assert model.float().posterior(X.float()).mean.dtype == torch.float32
    torch.testing.assert_close(model.double().posterior(X).mean, before, rtol=1e-4, atol=1e-4)
    for parameter in other.models.parameters():
        parameter.data.add_(0.1)
    other = HyperparameterEnsemble(other.models)
    torch.testing.assert_close(loaded.posterior(X).mean, before)
    loaded.load_state_dict(other.state_dict())
    torch.testing.assert_close(loaded.posterior(X).mean, other.posterior(X).mean)


def test_it_is_pickled_after_it_has_predicted(ensemble):
    X = data(7)[0]
    mean = ensemble.posterior(X).mean
    restored = pickle.loads(pickle.dumps(ensemble))
    torch.testing.assert_close(restored.posterior(X).mean, mean)


def test_hyperparameters_are_drawn_in_inference_mode():
    """They move by gradients, and the data are inference tensors."""

    def made(batch):
        X, Y = data(6)
        return SubsetGP(X.expand(*batch, *X.shape), Y.expand(*batch, *Y.shape))

    plain = sample_hyperparameters(made, torch.Generator().manual_seed(0), steps=8)
    with torch.inference_mode():
        drawn = sample_hyperparameters(made, torch.Generator().manual_seed(0), steps=8)
        X, Y = data(6)
        shared = sample_hyperparameters(
            lambda batch: SubsetGP(X.expand(*batch, *X.shape), Y.expand(*batch, *Y.shape)),
            torch.Generator().manual_seed(0),
            steps=8,
        )
    torch.testing.assert_close(drawn.walkers.raw, plain.walkers.raw)
    assert shared.walkers.raw.isfinite().all()


def test_covariances_of_observations_are_those_of_the_joint_posterior(ensemble):
    generator = torch.Generator().manual_seed(3)
    X, points = (torch.rand(n, 3, generator=generator, **NUMBERS) for n in (4, 6))
    variance, cov = ensemble.observed_with(X.unsqueeze(-2), ensemble.project(points))
    joint = JointObservations(ensemble)
    expected = joint.observed_with(X.unsqueeze(-2), joint.project(points))
    torch.testing.assert_close(variance, expected[0], rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(cov, expected[1], rtol=1e-3, atol=1e-5)


def test_botorch_averages_it(ensemble):
    X = torch.rand(7, 1, 3, generator=torch.Generator().manual_seed(2), **NUMBERS)
    actual = LogExpectedImprovement(ensemble, best_f=0.5)(X)
    members = LogExpectedImprovement(ensemble.models, best_f=torch.tensor(0.5, **NUMBERS))
    each = members(X.unsqueeze(-3))
    average = each.logsumexp(-1) - torch.tensor(float(each.shape[-1])).log()
    torch.testing.assert_close(actual, average, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("q", [1, 2])
def test_known_noise_is_added_as_it_is(ensemble, q):
    """The kind of fault: a promise of BoTorch's ``Model`` that a model of ours breaks."""
    X = torch.rand(5, q, 3, generator=torch.Generator().manual_seed(3), **NUMBERS)
    members = ensemble.batch_shape.numel()
    noise = torch.full((5, members, q, 1), 0.25, **NUMBERS)
    plain, noisy = (ensemble.posterior(X, observation_noise=option) for option in (False, noise))
    torch.testing.assert_close(noisy.variance - plain.variance, noise, rtol=1e-3, atol=1e-6)


def test_what_it_does_not_do_is_refused_by_name(ensemble):
    X, Y = data()
    for ask in (ensemble.condition_on_observations, ensemble.fantasize):
        with pytest.raises(InvalidArgumentError, match="Expected"):
            ask(X, Y)


def test_a_model_without_a_batch_is_refused():
    with pytest.raises(InvalidShapeError, match="batch shape"):
        HyperparameterEnsemble(build(torch.Size()))


def test_bounds_that_no_transform_keeps_are_kept():
    X = torch.linspace(0, 1, 8, **NUMBERS).unsqueeze(-1)
    Y = torch.sin(7 * X)

    def build(batch):  # BoTorch's own: a lower bound of lengthscale and noise, and no transform
        return SingleTaskGP(X.expand(*batch, 8, 1), Y.expand(*batch, 8, 1), outcome_transform=None)

    draws = sample_hyperparameters(build, torch.Generator().manual_seed(0), steps=60)
    models = draws.models
    assert (models.covar_module.lengthscale >= 0.025).all()
    assert (models.likelihood.noise >= 1e-4).all()
    assert models.covar_module.lengthscale.std() > 0.01
