"""A target whose prior is a weighted sum of tasks: against loops, and properties of the weights."""

import numpy as np
import pytest
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.optim import optimize_acqf

from botorch_costly.baselines import ScaMLGP
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import TaskEnsemble
from tests.models.related_tasks import FUNCTIONS, ensemble, naive_posteriors, observed, points
from tests.oracles import transfer as oracle

DOUBLE = {"dtype": torch.float64}


@pytest.fixture(scope="module")
def tasks():
    return ensemble()


def residual_of(model):
    return oracle.matern52(model.lengthscale.tolist(), float(model.variance))


def naive_prior(model, X):
    parts = list(naive_posteriors(model.tasks, X))
    return oracle.scaled_prior(parts, model.weights.tolist(), residual_of(model), X.tolist())


def naive_posterior(model, X):
    """Mean and covariance at X in the units of the values."""
    n, y = len(model.inputs), model.train_targets.numpy()
    offset, scale = (y.mean(), y.std() or 1.0) if n else (0.0, 1.0)
    mean, K = naive_prior(model, torch.cat([model.inputs, X]))
    mean, K = oracle.conditioned(mean, K, float(model.noise), (y - offset) / scale)
    return offset + scale * mean[n:], scale**2 * K[n:, n:]


def log_density(model):
    mean, K = naive_prior(model, model.inputs)
    y = model.targets.numpy()
    return oracle.scaled_log_density(mean, K, y, model.weights.tolist(), model.theta.tolist())


def assert_posterior(model, X, mean, cov):
    actual = model.posterior(X)
    torch.testing.assert_close(actual.mean.squeeze(-1), torch.as_tensor(mean))
    torch.testing.assert_close(actual.covariance_matrix, torch.as_tensor(cov), atol=1e-7, rtol=1e-5)


def with_weights(model, weights):
    state = {**model.state_dict(), "weights": torch.tensor(weights, **DOUBLE)}
    model.load_state_dict(state)
    model._factor()
    return model


@pytest.mark.parametrize("n", [0, 1, 4, 12])
def test_the_posterior_is_that_of_the_paper(tasks, n):
    model, X = ScaMLGP(tasks, *observed(n)).fit(), points(5, 7)
    assert_posterior(model, X, *naive_posterior(model, X))
    model = with_weights(model, [0.3, 0.0, 1.7])
    assert_posterior(model, X, *naive_posterior(model, X))


def test_densities_differ_as_those_of_the_paper(tasks):
    model = ScaMLGP(tasks, *observed(6))
    draws = torch.Generator().manual_seed(2)
    weights = 3 * torch.rand(5, 3, generator=draws, **DOUBLE)
    theta = model.theta + 0.5 * torch.randn(5, 4, generator=draws, **DOUBLE)
    actual = model._evidence().log_density(weights, theta)
    expected = []
    for model.weights, model.theta in zip(weights, theta, strict=True):
        expected.append(log_density(model))
    expected = torch.tensor(expected, **DOUBLE)
    torch.testing.assert_close(actual - actual[0], expected - expected[0])


def test_what_is_learnt_has_the_highest_density(tasks):
    model = ScaMLGP(tasks, *observed(8))
    before = log_density(model)
    best = log_density(model.fit())
    assert best > before + 1
    weights, theta = model.weights.clone(), model.theta.clone()
    rng = np.random.default_rng(0)
    for spread in (0.02, 0.3, 2.0):
        for _ in range(20):
            model.weights = (weights + spread * torch.as_tensor(rng.normal(size=3))).clamp(0, 5)
            model.theta = theta + spread * torch.as_tensor(rng.normal(size=4))
            assert log_density(model) < best + 1e-3


def test_without_weights_it_is_a_plain_process(tasks):
    X, (x, y) = points(5, 7), observed(6)
    model = with_weights(ScaMLGP(tasks, x, y), [0.0, 0.0, 0.0])
    offset, scale = float(y.mean()), float(y.std(correction=0))
    z = ((y - offset) / scale).squeeze(-1).numpy()
    mean, cov = oracle.task_posterior(
        residual_of(model), x.tolist(), z, float(model.noise), X.tolist()
    )
    assert_posterior(model, X, offset + scale * mean, scale**2 * cov)


def test_a_target_that_is_a_task_is_known_after_a_few_observations(tasks):
    X = points(200, 5)
    truth = 1 + 4 * FUNCTIONS[0](X)
    model = ScaMLGP(tasks, *observed(4)).fit()
    alone = with_weights(ScaMLGP(tasks, *observed(4)), [0.0] * 3)
    with_tasks, without = (
        (m.posterior(X).mean.squeeze(-1) - truth).square().mean() for m in (model, alone)
    )
    assert with_tasks < 0.1 * without
    assert with_tasks < 0.05 * truth.var()


def test_weights_are_those_that_the_target_is_made_of():
    X = points(40, 1)
    parts = torch.stack([(6 * X[:, 0]).sin(), (7 * X[:, 1]).cos(), (8 * X.sum(-1)).sin()])
    tasks = TaskEnsemble([X] * 3, [5 + 2 * tensor for tensor in parts]).fit()
    values = 0.8 * parts[0] + 0.3 * parts[1]
    model = ScaMLGP(tasks, X[:25], 10 * values[:25].unsqueeze(-1)).fit()
    expected = torch.tensor([0.8, 0.3, 0.0], **DOUBLE) * parts.std(-1, correction=0)
    expected = expected / values[:25].std(correction=0)
    torch.testing.assert_close(model.weights, expected, atol=0.05, rtol=0)


@pytest.mark.parametrize("n", [2, 5])
def test_conditioning_is_that_of_a_normal_belief(tasks, n):
    model, X = ScaMLGP(tasks, *observed(7)).fit(), points(n + 3, 8)
    mean, cov, noise = model.joint(X)
    Y = 1 + 4 * FUNCTIONS[0](X[:n]).unsqueeze(-1)
    expected = oracle.conditioned(mean.numpy(), cov.numpy(), noise, Y.squeeze(-1).numpy())
    after = model.condition_on_observations(X[:n], Y)
    assert torch.equal(after.weights, model.weights)
    torch.testing.assert_close(after.train_targets[-n:], Y.squeeze(-1))
    assert_posterior(after, X, *expected)


def test_before_any_observation_each_task_weighs_one(tasks):
    X = points(6, 7)
    x, y = observed(3)
    model = ScaMLGP(tasks, x[:0], y[:0]).fit()
    torch.testing.assert_close(model.posterior(X).mean.squeeze(-1), tasks.means(X).sum(0))
    conditioned, anew = model.condition_on_observations(x, y), ScaMLGP(tasks, x, y)
    torch.testing.assert_close(conditioned.posterior(X).mean, anew.posterior(X).mean)


@pytest.mark.parametrize("n", [1, 4])
def test_values_that_are_all_alike_say_nothing_of_weights(tasks, n):
    x, y = observed(n)
    model = ScaMLGP(tasks, x, torch.full_like(y, 1e8)).fit()
    assert model.weights.tolist() == [1.0] * 3
    assert float(model.scale) == 1.0
    posterior = model.posterior(points(4, 7))
    assert posterior.mean.isfinite().all()
    assert (posterior.variance > 0).all()


def test_values_that_come_twice_are_no_failure(tasks):
    x, y = observed(4)
    model = ScaMLGP(tasks, x.repeat(5, 1), y.repeat(5, 1)).fit()
    assert (model.posterior(x).variance > 0).all()


def test_single_precision_believes_as_double_does(tasks):
    x, y = observed(8)
    X, single = points(6, 7), ensemble(dtype=torch.float32)
    model = ScaMLGP(single, x.float(), y.float()).fit()
    exact = ScaMLGP(tasks, x, y).fit()
    assert model.posterior(X.float()).mean.dtype == model.weights.dtype == torch.float32
    torch.testing.assert_close(
        model.posterior(X.float()).mean.double(), exact.posterior(X).mean, atol=0.1, rtol=0.1
    )


def test_many_tasks_and_many_single_points():
    X = points(12, 4)
    values = [(3 * X[:, 0] + k).sin() + 0.1 * k * X[:, 1] for k in range(25)]
    tasks = TaskEnsemble([X] * 25, values)
    model = ScaMLGP(tasks, *observed(10)).fit()
    asked = points(2000, 5)
    alone = model.posterior(asked.unsqueeze(-2))
    assert alone.mean.shape == (2000, 1, 1)
    together = model.posterior(asked[:50])
    torch.testing.assert_close(alone.mean[:50].squeeze(-1), together.mean)
    torch.testing.assert_close(alone.variance[:50].squeeze(-1), together.variance)


@pytest.mark.parametrize("shape", [(3, 2), (3, 1, 2)])
def test_gradients_are_finite_differences(tasks, shape):
    model = ScaMLGP(tasks, *observed(6)).fit()
    X = points(3, 9).reshape(shape).requires_grad_()
    assert torch.autograd.gradcheck(lambda X: model.joint(X)[:2], (X,))


def test_botorch_maximizes_an_acquisition_function_of_it(tasks):
    model = ScaMLGP(tasks, *observed(6)).fit()
    acquisition = LogExpectedImprovement(model, observed(6)[1].max())
    torch.manual_seed(0)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], **DOUBLE)
    _, value = optimize_acqf(acquisition, bounds, q=1, num_restarts=2, raw_samples=16)
    assert value >= acquisition(points(50, 4).unsqueeze(-2)).max() - 1e-6


def test_what_does_not_fit_is_refused(tasks):
    x, y = observed(4)
    for bad in ((x[:, :1], y), (x, y[:3]), (x, y.squeeze(-1)), (x.float(), y.float())):
        with pytest.raises(InvalidShapeError, match="train_X, train_Y"):
            ScaMLGP(tasks, *bad)
    with pytest.raises(InvalidArgumentError, match="finite"):
        ScaMLGP(tasks, x, y / 0)
    with pytest.raises(InvalidShapeError, match="X"):
        ScaMLGP(tasks, x, y).posterior(x[:, :1])
