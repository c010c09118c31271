"""The search that all fits share: the best end of each problem, and normal priors."""

import torch

from botorch_costly.models.hyperparameter_search import NormalPrior, most_probable, posterior
from botorch_costly.optim.smooth import by_autograd


def two_hills(theta):
    """The left hill is lower; the function has no value beyond 4."""
    x = theta.squeeze(-1)
    value = torch.logaddexp(-4 * (x + 2).square(), 1 - 4 * (x - 2).square())
    return torch.where(x > 4, torch.nan, value)


def test_the_best_end_of_each_problem_is_returned():
    starts = torch.tensor([[-2.5, 2.5, 5.0], [5.0, -1.5, -2.5]], dtype=torch.float64).unsqueeze(-1)
    bounds = torch.tensor([[-9.0], [9.0]], dtype=torch.float64)
    end = most_probable(by_autograd(two_hills), starts, bounds)
    torch.testing.assert_close(end.theta, torch.tensor([[2.0], [-2.0]]).double())
    torch.testing.assert_close(end.log_density, torch.tensor([1.0, 0.0]).double())
    assert end.converged.all()
    assert (end.iterations > 0).all()


def test_a_flat_prior_adds_nothing():
    prior = NormalPrior(torch.tensor([1.0, 3.0]), torch.tensor([2.0, torch.inf]))
    flat = by_autograd(lambda theta: 0 * theta.sum(-1))
    value, gradient = posterior(flat, prior)(torch.tensor([[5.0, 7.0]]))
    assert value.tolist() == [-2.0]
    assert gradient.tolist() == [[-1.0, 0.0]]
