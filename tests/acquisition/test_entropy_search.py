"""Entropy search against brute force and its limits."""

import copy
import math

import pytest
import torch
from botorch.acquisition import ProbabilityOfImprovement
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from scipy.stats import spearmanr

from botorch_costly.acquisition import EntropySearch, EntropySearchPerCost
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import HyperparameterEnsemble, LinearCost
from botorch_costly.numerics.information import by_moments
from tests.cases import slow
from tests.oracles import entropy_search as oracle

NUMBERS = {"dtype": torch.float64}

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")


def model_of(seed, n=4, lengthscale=0.12, noise=1e-3, dim=1):
    """A belief after some observations of a draw of its prior."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, dim, generator=generator, **NUMBERS)
    Y = 0.5 * torch.randn(n, 1, generator=generator, **NUMBERS)
    model = SingleTaskGP(X, Y, outcome_transform=None)
    model.covar_module.lengthscale = lengthscale
    model.likelihood.noise = noise
    return model.eval()


def points_of(seed, count, dim=1):
    return torch.rand(count, dim, generator=torch.Generator().manual_seed(seed), **NUMBERS)


def brute_force(model, points, X, maximize=True):
    sign = -1.0 if maximize else 1.0
    with torch.no_grad():
        posterior = model.posterior(points)
        mean, cov = sign * posterior.mean.squeeze(-1), posterior.distribution.covariance_matrix
        values = []
        for x in X:
            joint = model.posterior(torch.cat([x, points]), observation_noise=True)
            joint = joint.distribution.covariance_matrix
            generator = torch.Generator().manual_seed(0)
            values.append(
                oracle.information(mean, cov, joint[0, 1:], joint[0, 0].item(), generator)
            )
    return torch.tensor(values, **NUMBERS)


@pytest.mark.parametrize(
    ("maximize", "outcomes", "order", "error"),
    [
        (False, None, 0.92, 0.12),
        slow((False, 16, 0.98, 0.06)),
        slow((True, 16, 0.98, 0.06)),
        slow((True, None, 0.92, 0.12)),
    ],
)
def test_it_is_brute_force(outcomes, order, error, maximize):
    orders, errors = [], []
    for seed, lengthscale in ((0, 0.1), (1, 0.2), (2, 0.15))[: 3 if maximize else 1]:
        model, points = model_of(seed, 3 + seed, lengthscale), points_of(seed, 15)
        X = points_of(seed + 50, 20).unsqueeze(-2)
        truth = brute_force(model, points, X, maximize)
        with torch.no_grad():
            acquisition = EntropySearch(model, points, maximize=maximize, outcomes=outcomes)
            information = acquisition(X)
        orders.append(spearmanr(information, truth).statistic)
        informative = truth > 0.02 * truth.max()
        errors.append(((information - truth).abs() / truth)[informative].mean().item())
    assert min(orders) > order
    assert sum(errors) / len(errors) < error


def test_the_probability_is_that_of_being_the_optimum():
    model, points = model_of(3), points_of(3, 8)
    p = EntropySearch(model, points).probability
    draws = model.posterior(points).sample(torch.Size([40_000])).squeeze(-1)
    shares = torch.bincount(draws.argmax(-1), minlength=8) / 40_000
    assert 0.5 * (p - shares).abs().sum() < 0.02
    assert p.sum().item() == pytest.approx(1)


@pytest.mark.parametrize("outcomes", [None, 8])
def test_what_is_known_tells_nothing_and_no_information_is_negative(outcomes):
    model, points = model_of(4, n=4, lengthscale=0.05), points_of(4, 6) * 0.2
    points = torch.cat([points, points[:2] + 0.01])
    far = torch.full((1, 1, 1), 50.0, **NUMBERS)  # correlated with nothing
    acquisition = EntropySearch(model, points, outcomes=outcomes)
    assert acquisition(far).item() == pytest.approx(0, abs=1e-6)
    X = points_of(9, 200).unsqueeze(-2)
    assert (acquisition(X[: 200 if outcomes is None else 20]) >= 0).all()


def test_noise_and_the_entropy_bound_it():
    model, points = model_of(0), points_of(5, 10)
    with torch.no_grad():
        acquisition = EntropySearch(model, points)
        p, least = acquisition.probability, acquisition.minimum
        assert (
            acquisition(points_of(6, 30).unsqueeze(-2)) <= -torch.special.xlogy(p, p).sum()
        ).all()
        cov = model.posterior(points).distribution.covariance_matrix
        c = (cov / cov.diagonal().sqrt()).mT.unsqueeze(1)  # of observations without noise
        for quiet, noisy in ((1.0, 0.9), (0.9, 0.5), (0.5, 0.1)):
            assert (by_moments(noisy * c, least, 8) < by_moments(quiet * c, least, 8)).all()


def test_of_one_point_and_a_rival_without_doubt_it_ranks_like_the_probability_of_improvement():
    """Whether ``f(x)`` exceeds a known value: the more even the odds, the more there is to learn."""
    X = torch.tensor([[0.0], [10.0]], **NUMBERS)
    model = SingleTaskGP(X, torch.tensor([[0.5], [-1.0]], **NUMBERS), outcome_transform=None)
    model.covar_module.lengthscale, model.likelihood.noise = 1.0, 1e-4
    model = model.eval()
    candidates = torch.linspace(0.6, 4.0, 12, **NUMBERS).reshape(-1, 1, 1)
    odds = ProbabilityOfImprovement(model, best_f=0.5)(candidates)
    evenness = -(odds * odds.log() + (1 - odds) * (1 - odds).log())
    information = [
        EntropySearch(model, torch.cat([X[:1], x]))(x.unsqueeze(0)).item() for x in candidates
    ]
    assert spearmanr(information, evenness.detach()).statistic > 0.95


def test_gradients_lead_to_a_maximum_and_through_outcomes_too():
    model, points = model_of(7, dim=2, lengthscale=0.4), points_of(7, 12, 2)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], **NUMBERS)
    acquisition = EntropySearch(model, points)
    _, value = optimize_acqf(acquisition, bounds, 1, num_restarts=4, raw_samples=32)
    grid = torch.cartesian_prod(*[torch.linspace(0, 1, 15, **NUMBERS)] * 2).unsqueeze(-2)
    assert value >= 0.99 * acquisition(grid).max()
    by_outcomes = EntropySearch(model, points[:5], outcomes=5)
    X = points_of(8, 2, 2).unsqueeze(-2).requires_grad_()
    assert torch.autograd.gradcheck(by_outcomes, X, eps=1e-4, atol=1e-3, rtol=1e-2)


@pytest.mark.parametrize("outcomes", [None, 5])
def test_gradients_can_be_taken_again_and_a_copy_has_the_same_ones(outcomes):
    acquisition = EntropySearch(model_of(7), points_of(7, 6), outcomes=outcomes)
    X = points_of(8, 2).unsqueeze(-2).requires_grad_()
    for asked in (acquisition, acquisition, copy.deepcopy(acquisition)):
        asked(X).sum().backward()
    (alone,) = torch.autograd.grad(acquisition(X).sum(), X)
    torch.testing.assert_close(X.grad, 3 * alone)


def test_an_ensemble_is_averaged():
    X, Y = points_of(1, 6), torch.randn(6, 1, generator=torch.Generator().manual_seed(2), **NUMBERS)
    together = SingleTaskGP(X.expand(3, 6, 1), Y.expand(3, 6, 1), outcome_transform=None)
    scales = torch.tensor([0.1, 0.2, 0.5], **NUMBERS)
    together.covar_module.lengthscale = scales[:, None, None]
    together.likelihood.noise = 1e-2
    together = together.eval()
    together._is_ensemble = True
    points, asked = points_of(2, 7), points_of(3, 4).unsqueeze(-2)
    parts = []
    for scale in scales:
        alone = SingleTaskGP(X, Y, outcome_transform=None)
        alone.covar_module.lengthscale, alone.likelihood.noise = scale, 1e-2
        parts.append(EntropySearch(alone.eval(), points)(asked))
    averaged = EntropySearch(_Ensemble(together), points)(asked)
    torch.testing.assert_close(averaged, torch.stack(parts).mean(0), rtol=1e-6, atol=1e-8)
    prepared = EntropySearch(HyperparameterEnsemble(together), points)
    torch.testing.assert_close(prepared(asked), averaged, rtol=1e-3, atol=1e-5)


class _Ensemble(torch.nn.Module):
    """A batch of models that answers as one ensemble."""

    _is_ensemble = True
    num_outputs = 1
    batch_shape = torch.Size([3])

    def __init__(self, models):
        super().__init__()
        self.models = models

    def posterior(self, X, **options):
        return self.models.posterior(X.unsqueeze(-3), **options)


def test_by_cost_it_is_a_quotient():
    model, points = model_of(8), points_of(8, 6)
    X = points_of(9, 5).unsqueeze(-2)
    cost = LinearCost(points, 1 + 9 * points)
    per_cost = EntropySearchPerCost(model, points, cost, overhead=0.5)(X)
    paid = cost(X).flatten() + 0.5
    torch.testing.assert_close(per_cost, EntropySearch(model, points)(X) / paid)


def test_one_point_is_no_question_and_duplicates_are_none():
    model = model_of(1)
    X = points_of(3, 4).unsqueeze(-2)
    alone = EntropySearch(model, points_of(2, 1))(X)
    assert (
        0 <= alone.min() <= alone.max() < 1e-10
    )  # the weights of a quadrature sum to one but for rounding
    twice = points_of(2, 1).expand(3, 1)
    assert EntropySearch(model, twice)(X).max() < 1e-3
    assert EntropySearch(model, twice)(X).isfinite().all()


def test_what_makes_no_sense_is_refused():
    model, points = model_of(0), points_of(0, 3)
    with pytest.raises(InvalidShapeError, match="Z x d"):
        EntropySearch(model, points[0])
    with pytest.raises(InvalidShapeError, match="Z x d"):
        EntropySearch(model, points[:0])
    with pytest.raises(InvalidArgumentError, match="outcomes"):
        EntropySearch(model, points, outcomes=0)
    with pytest.raises(InvalidArgumentError, match="overhead"):
        EntropySearchPerCost(model, points, LinearCost(points, points + 1), overhead=-math.inf)
