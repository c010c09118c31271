"""The ranking-weighted ensemble of tasks."""

import numpy as np
import pytest
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.optim import optimize_acqf

from botorch_costly.baselines import RankWeightedGP
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from tests.cases import quick
from tests.models.related_tasks import ensemble, naive_posteriors, observed, points, process
from tests.oracles import transfer as oracle

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
DOUBLE = {"dtype": torch.float64}


@pytest.fixture(scope="module")
def tasks():
    return ensemble()


def naive_weights(tasks, model, draws, seed):
    X, y = model.train_inputs[0], model.train_targets.numpy()
    rng = np.random.default_rng(seed)
    losses = [
        [oracle.ranking_loss(f, y) for f in rng.multivariate_normal(mean, cov, draws)]
        for mean, cov in naive_posteriors(tasks, X)
    ]
    with torch.no_grad():
        prior = model.forward(X)
        mean, cov = prior.mean.numpy(), prior.covariance_matrix.numpy()
    noise = model.likelihood.noise.item()
    left = [oracle.left_out_posterior(mean, cov, noise, y, j) for j in range(len(y))]
    samples = np.stack([rng.multivariate_normal(m, c, draws) for m, c in left], 1)
    return oracle.ensemble_weights(losses, [oracle.left_out_loss(f, y) for f in samples])


@pytest.mark.parametrize("n", quick([3, 6], 3))
def test_weights_are_those_of_the_paper(tasks, n):
    target = process(n)
    weights = RankWeightedGP(tasks, target, draws=4000).weights
    expected = naive_weights(tasks, target, 4000, seed=1)
    assert weights.tolist() == pytest.approx(expected, abs=0.05)  # 4 standard errors of draws


def test_the_posterior_is_a_weighted_sum(tasks):
    target, X = process(6), points(5, 7)
    model = RankWeightedGP(tasks, target)
    assert (model.weights > 0).sum() >= 2
    own = target.posterior(X)
    mean, scale = observed(6)[1].mean(), observed(6)[1].std()
    parts = [
        (mean.numpy() + scale.numpy() * m, scale.numpy() ** 2 * c)
        for m, c in naive_posteriors(tasks, X)
    ]
    parts.append((own.mean.squeeze(-1).detach().numpy(), own.covariance_matrix.detach().numpy()))
    expected = oracle.ensemble_posterior(model.weights.tolist(), *zip(*parts, strict=True))
    actual = model.posterior(X)
    torch.testing.assert_close(actual.mean.squeeze(-1).detach(), torch.as_tensor(expected[0]))
    torch.testing.assert_close(actual.covariance_matrix.detach(), torch.as_tensor(expected[1]))


def test_the_target_itself_gets_the_weight_and_its_negative_none(tasks):
    weights = RankWeightedGP(tasks, process(25)).weights
    assert weights[0] + weights[-1] > 0.9
    assert weights[2] == 0
    assert weights.sum().item() == pytest.approx(1)


def test_the_order_of_tasks_does_not_matter(tasks):
    other = ensemble((2, 0, 1))
    first, two = (
        RankWeightedGP(earlier, process(6), draws=4000).weights for earlier in (tasks, other)
    )
    torch.testing.assert_close(two[[1, 2, 0, 3]], first, atol=0.05, rtol=0)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.filterwarnings("ignore:.*not standardized")
def test_two_observations_rank_nothing(tasks, n):
    X, Y = observed(n)
    model = RankWeightedGP(tasks, SingleTaskGP(X, Y, outcome_transform=None))
    assert model.weights.tolist() == [0.25] * 4
    assert (model.posterior(points(4, 7)).variance > 0).all()


def test_without_observations_the_tasks_weigh_the_same(tasks):
    model, X = RankWeightedGP(tasks, None), points(4, 7)
    assert model.weights.tolist() == pytest.approx([1 / 3] * 3 + [0])
    torch.testing.assert_close(model.posterior(X).mean.squeeze(-1), tasks.means(X).mean(0))


def test_a_seed_repeats_and_the_global_generator_is_left_alone(tasks):
    state = torch.get_rng_state()
    first, two, other = (RankWeightedGP(tasks, process(6), seed=s).weights for s in (3, 3, 4))
    assert torch.equal(first, two)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("batch", [(3,), (2, 3)])
def test_a_batch_of_questions_is_a_loop(tasks, batch):
    model = RankWeightedGP(tasks, process())
    number = torch.Size(batch).numel()
    X = points(4 * number, 8).view(*batch, 4, 2)
    together = model.posterior(X, observation_noise=True)
    for i, x in enumerate(X.view(number, 4, 2)):
        alone = model.posterior(x, observation_noise=True)
        torch.testing.assert_close(together.mean.view(number, 4, 1)[i], alone.mean)
        covs = together.covariance_matrix.view(number, 4, 4)
        torch.testing.assert_close(covs[i], alone.covariance_matrix)


def test_noise_is_that_of_the_target_in_its_units(tasks):
    model, X = RankWeightedGP(tasks, process()), points(4, 8)
    added = model.posterior(X, observation_noise=True).variance - model.posterior(X).variance
    expected = 1e-3 * observed(9)[1].var()
    torch.testing.assert_close(added.detach(), expected.expand(4, 1), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_is_kept(dtype):
    model = RankWeightedGP(ensemble(dtype=dtype), process(dtype=dtype))
    posterior = model.posterior(points(4, 8, dtype=dtype))
    for tensor in (model.weights, posterior.mean, posterior.covariance_matrix):
        assert tensor.dtype == dtype
    assert (posterior.variance > 0).all()
    double = RankWeightedGP(ensemble(), process()).posterior(points(4, 8))
    torch.testing.assert_close(posterior.mean.double(), double.mean, rtol=0.1, atol=0.1)


def test_gradients_are_finite_differences(tasks):
    model = RankWeightedGP(tasks, process(6))
    X = points(3, 9).requires_grad_()

    def moments(X):
        posterior = model.posterior(X)
        return posterior.mean, posterior.covariance_matrix

    assert torch.autograd.gradcheck(moments, (X,))


def test_botorch_maximizes_acquisition_functions_of_it(tasks):
    model = RankWeightedGP(tasks, process(6))
    acquisition = LogExpectedImprovement(model, observed(6)[1].max())
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    torch.manual_seed(0)
    X, value = optimize_acqf(acquisition, bounds, q=1, num_restarts=2, raw_samples=16)
    assert X.shape == (1, 2)
    assert value >= acquisition(points(50, 4).unsqueeze(-2)).max() - 1e-6


@pytest.mark.parametrize("X", [torch.zeros(3, 1, **DOUBLE), torch.zeros(2, **DOUBLE)])
def test_points_of_another_shape_are_refused(tasks, X):
    with pytest.raises(InvalidShapeError, match="X"):
        RankWeightedGP(tasks, process()).posterior(X)


def test_targets_that_do_not_fit_are_refused(tasks):
    X, Y = observed(5)
    for bad in (
        SingleTaskGP(X[:, :1], Y),
        SingleTaskGP(X, torch.cat([Y, Y], -1)),
        SingleTaskGP(X.expand(2, 5, 2), Y.expand(2, 5, 1)),
        process(dtype=torch.float32),
    ):
        with pytest.raises(InvalidShapeError, match="target"):
            RankWeightedGP(tasks, bad)
    with pytest.raises(InvalidArgumentError, match="input transform"):
        RankWeightedGP(tasks, SingleTaskGP(X, Y, input_transform=Normalize(2)))
    with pytest.raises(InvalidArgumentError, match="draws"):
        RankWeightedGP(tasks, process(), draws=0)


def test_further_observations_rank_the_tasks_anew(tasks):
    (X, Y), asked = observed(9), points(5, 7)
    target = process(6)
    later = RankWeightedGP(tasks, target, draws=64).condition_on_observations(X[6:], Y[6:])
    with torch.no_grad():
        target.posterior(X[6:])
        expected = RankWeightedGP(tasks, target.condition_on_observations(X[6:], Y[6:]), draws=64)
    assert torch.equal(later.weights, expected.weights)
    torch.testing.assert_close(later.posterior(asked).mean, expected.posterior(asked).mean)
    assert not torch.allclose(later.weights, RankWeightedGP(tasks, target, draws=64).weights)


def test_no_target_is_conditioned(tasks):
    X, Y = observed(2)
    with pytest.raises(InvalidArgumentError, match="Expected a process"):
        RankWeightedGP(tasks, None).condition_on_observations(X, Y)


@pytest.mark.parametrize("bad", ["rows", "numbers"])
def test_observations_that_do_not_fit_are_refused(tasks, bad):
    X, Y = observed(2)
    wrong = (X, Y[:1]) if bad == "rows" else (X, Y * torch.nan)
    with pytest.raises((InvalidShapeError, InvalidArgumentError), match="Expected"):
        RankWeightedGP(tasks, process(6)).condition_on_observations(*wrong)
