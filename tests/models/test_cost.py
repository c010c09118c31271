"""Models of the cost of an evaluation."""

import math
import pickle

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.models import LinearCost, LogCostGP, LogLinearCost

KINDS = [LinearCost, LogCostGP]
pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")


def rows(generator, n=20, d=3):
    return torch.rand(n, d, generator=generator, dtype=torch.float64)


def test_a_linear_cost_is_found_in_any_unit(generator):
    X = rows(generator)
    for unit in (1e-6, 1.0, 1e6):
        cost = unit * (2 + 3 * X[:, :1] + 5 * X[:, 2:])
        actual = LinearCost(X, cost)(X)
        torch.testing.assert_close(actual, cost, rtol=0.02, atol=0)


def test_it_is_the_least_squares_line_above_zero(generator):
    X = rows(generator)
    cost = 5 + X[:, :1] + 0.1 * torch.randn(20, 1, generator=generator, dtype=torch.float64)
    ones = torch.ones(20, 1, dtype=torch.float64)
    weights = torch.linalg.lstsq(torch.cat([X, ones], -1), cost).solution
    torch.testing.assert_close(
        LinearCost(X, cost)(X), torch.cat([X, ones], -1) @ weights, rtol=1e-3, atol=1e-3
    )


def test_no_cost_is_zero_or_less_far_away(generator):
    X = rows(generator)
    cost = 0.1 + 5 * X[:, :1]
    away = torch.tensor([[-5.0, 0.0, 0.0]], dtype=torch.float64)
    assert LinearCost(X, cost)(away).item() >= 0
    assert LinearCost(X, cost)(torch.zeros(1, 3, dtype=torch.float64)).item() > 0


def test_columns_that_never_changed_say_nothing():
    X = torch.tensor([[0.1, 0.5], [0.9, 0.5]], dtype=torch.float64)
    model = LinearCost(X, 3 + X[:, :1])
    other = torch.tensor([[0.1, 0.9]], dtype=torch.float64)
    assert model(other).item() == pytest.approx(3.1, rel=0.01)
    single = LinearCost(X[:1], torch.tensor([[4.0]], dtype=torch.float64))
    assert single(other).item() == pytest.approx(4.0, rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_columns_that_differ_by_rounding_say_nothing(dtype):
    X = torch.full((7, 2), 0.1, dtype=dtype)  # whose mean is not 0.1 to the last digit
    X[:, 0] = torch.arange(7)
    X[6, 1] = torch.nextafter(X[6, 1], torch.tensor(1.0, dtype=dtype))
    model = LinearCost(X, 1 + X[:, :1])
    other = torch.tensor([[2.0, 0.9]], dtype=dtype)
    assert model(other).item() == pytest.approx(3.0, rel=1e-3)


def test_products_are_learnt_by_the_logarithm(generator):
    X = rows(generator, 30)
    cost = (1 + 2 * X[:, :1] + 3 * X[:, 1:2]).exp()
    model = LogCostGP(X, cost)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.gp.likelihood, model.gp))
    fresh = rows(generator)
    truth = (1 + 2 * fresh[:, :1] + 3 * fresh[:, 1:2]).exp()
    assert (model(fresh) / truth).log().abs().max() < 0.1
    linear = LinearCost(X, cost)
    assert (model(fresh) - truth).abs().mean() < 0.2 * (linear(fresh) - truth).abs().mean()


@pytest.mark.parametrize("factor", [1e3, 1e6, 1e-12])
def test_one_absurd_cost_in_four_or_more_moves_no_prediction(factor, generator):
    """A single cost in another unit must not determine the predicted costs of all evaluations."""
    X = rows(generator, 12)
    cost = (X @ torch.tensor([1.0, 0.0, 5.0], dtype=torch.float64)).exp().unsqueeze(-1)
    cost[5] *= factor
    others = torch.arange(12) != 5
    assert torch.equal(LogLinearCost(X, cost)(X), LogLinearCost(X[others], cost[others])(X))


def test_of_costs_without_an_absurd_one_each_counts(generator):
    X = rows(generator, 12)
    noise = 0.3 * torch.randn(12, 1, generator=generator, dtype=torch.float64)
    logs = 5 * X[:, :1] + noise
    center, level = X.mean(0), logs.mean()
    gram = (X - center).mT @ (X - center) + 0.5 * torch.eye(3, dtype=torch.float64)
    weights = torch.linalg.solve(gram, (X - center).mT @ (logs - level))
    expected = (level + (X - center) @ weights).exp()
    torch.testing.assert_close(LogLinearCost(X, logs.exp())(X), expected)
    few = LogLinearCost(X[:3], logs[:3].exp() * torch.tensor([[1e6], [1.0], [1.0]]))
    assert few(X).log().mean() > logs.mean() + 1


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_dtypes_and_posteriors(kind, generator):
    X = rows(generator).float()
    model = kind(X, 1 + X[:, :1])
    batch = torch.rand(4, 2, 3, generator=generator)
    assert model(batch).shape == (4, 2, 1)
    assert model(batch).dtype == torch.float32
    assert model.posterior(batch).mean.shape == (4, 2, 1)
    assert (model(batch) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_states_and_pickles(kind, generator):
    X = rows(generator)
    model, other = kind(X, 1 + X[:, :1]), kind(X, 2 + X[:, :1])
    assert torch.equal(pickle.loads(pickle.dumps(model))(X), model(X))
    if kind is LinearCost:
        other.load_state_dict(model.state_dict())
        assert torch.equal(other(X), model(X))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_costs_are_positive_numbers(kind, bad, generator):
    X = rows(generator)
    cost = 1 + X[:, :1]
    cost[3] = bad
    with pytest.raises(InvalidArgumentError, match="train_cost: Expected finite numbers > 0"):
        kind(X, cost)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_costs_are_refused(kind, generator):
    X = rows(generator)
    with pytest.raises(InvalidShapeError, match="train_cost"):
        kind(X, torch.ones(19, 1, dtype=torch.float64))
    with pytest.raises(InvalidShapeError, match="train_X"):
        kind(X[:0], torch.ones(0, 1, dtype=torch.float64))
