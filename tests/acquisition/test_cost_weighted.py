"""Improvement per cost, and the index of Pandora's box."""

import math

import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.utils.datasets import SupervisedDataset

from botorch_costly.acquisition import PBGI, LogEIPerCost, best_mean
from botorch_costly.acquisition.cost_weighted import predicted_cost
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.models import LinearCost
from tests.acquisition.beliefs import BOUNDS
from tests.oracles import acquisition as oracle, gittins


@pytest.fixture
def data(generator):
    X = torch.rand(12, 2, generator=generator, dtype=torch.float64)
    return X, torch.sin(5 * X[:, :1]) - X[:, 1:]


@pytest.fixture
def model(data):
    return SingleTaskGP(*data).eval()


@pytest.fixture
def cost(data):
    X, _ = data
    return LinearCost(X, 1 + 9 * X[:, 1:])


def beliefs(model, cost, points):
    posterior = model.posterior(points)
    moments = posterior.mean, posterior.variance, cost(points)
    return zip(*(moment.flatten().tolist() for moment in moments), strict=True)


def test_it_is_the_logarithm_of_a_quotient(model, cost, points):
    values = LogEIPerCost(model, cost, 0.2, overhead=0.5)(points).tolist()
    for value, (mean, variance, paid) in zip(values, beliefs(model, cost, points), strict=True):
        expected = oracle.log_ei(mean, variance, 0.2) - math.log(paid + 0.5)
        assert value == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_as_published_both_pass_a_softplus(model, cost, points):
    values = LogEIPerCost(model, cost, 0.2, as_published=True)(points).exp().tolist()
    for value, (mean, variance, paid) in zip(values, beliefs(model, cost, points), strict=True):
        improvement = oracle.ei(mean, variance, 0.2)
        expected = math.log1p(math.exp(improvement)) / math.log1p(math.exp(paid))
        assert value == pytest.approx(expected, rel=1e-6)


def test_the_index_is_that_of_each_belief(model, cost, points):
    values = PBGI(model, cost, price=0.03, overhead=0.5)(points).tolist()
    for value, (mean, variance, paid) in zip(values, beliefs(model, cost, points), strict=True):
        expected = gittins.index(mean, math.sqrt(variance), 0.03 * (paid + 0.5))
        assert value == pytest.approx(expected, abs=2e-3)


def test_what_costs_less_is_preferred_among_equals(model, points):
    X = points.squeeze(-2)
    cheap, dear = (LinearCost(X, torch.full((7, 1), c, dtype=torch.float64)) for c in (1.0, 4.0))
    gap = LogEIPerCost(model, cheap, 0.2)(points) - LogEIPerCost(model, dear, 0.2)(points)
    torch.testing.assert_close(gap, torch.full_like(gap, math.log(4.0)), rtol=1e-3, atol=1e-3)
    assert (PBGI(model, cheap, 0.1)(points) > PBGI(model, dear, 0.1)(points)).all()


def test_minimizing_is_maximizing_the_negative(data, cost, points):
    X, Y = data
    up, down = SingleTaskGP(X, Y).eval(), SingleTaskGP(X, -Y).eval()
    for maximizing, minimizing in (
        (LogEIPerCost(up, cost, 0.2), LogEIPerCost(down, cost, -0.2, maximize=False)),
        (PBGI(up, cost, 0.1), PBGI(down, cost, 0.1, maximize=False)),
    ):
        torch.testing.assert_close(maximizing(points), minimizing(points), rtol=1e-6, atol=1e-6)


def test_the_search_is_over_when_nothing_is_worth_its_cost(model, cost, points):
    X = points.squeeze(-2)
    assert PBGI(model, cost, price=100.0).is_over(X, best=0.0)
    assert not PBGI(model, cost, price=1e-4).is_over(X, best=0.0)
    index = PBGI(model, cost, price=0.01)(points).max().item()
    assert PBGI(model, cost, price=0.01).is_over(X, best=index + 1e-9)
    assert not PBGI(model, cost, price=0.01).is_over(X, best=index - 1e-9)


@pytest.mark.parametrize(
    "make", [lambda m, c: LogEIPerCost(m, c, 0.2), lambda m, c: PBGI(m, c, 0.1)]
)
def test_botorch_optimizes_them(make, model, cost):
    acquisition = make(model, cost)
    point, value = optimize_acqf(acquisition, BOUNDS, q=1, num_restarts=4, raw_samples=64)
    grid = torch.rand(500, 1, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert value >= acquisition(grid).max() - 1e-3
    assert ((point >= 0) & (point <= 1)).all()


def test_the_threshold_is_the_largest_posterior_mean(model, data, cost):
    X, Y = data
    dataset = SupervisedDataset(X, Y, feature_names=["a", "b"], outcome_names=["y"])
    construct = get_acqf_input_constructor(LogEIPerCost)
    kwargs = construct(model=model, training_data=dataset, cost_model=cost)
    expected = model.posterior(X).mean.max()
    torch.testing.assert_close(kwargs["best_f"], expected.detach())
    torch.testing.assert_close(best_mean(model, X), expected.detach())
    LogEIPerCost(**kwargs)(X.unsqueeze(-2))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda m, c: LogEIPerCost(m, c, 0.0, overhead=-1.0), "overhead"),
        (lambda m, c: PBGI(m, c, 0.0), "price"),
        (lambda m, c: PBGI(m, c, 1.0, overhead=math.nan), "overhead"),
    ],
)
def test_bad_options_are_named(make, name, model, cost):
    with pytest.raises(InvalidArgumentError, match=f"{name}: Expected"):
        make(model, cost)


@pytest.mark.parametrize(("kind", "more"), [(LogEIPerCost, {}), (PBGI, {"price": 0.1})])
def test_input_constructors_know_costs_by_columns(kind, more, model, data):
    X, Y = data
    dataset = SupervisedDataset(X, Y, feature_names=["a", "b"], outcome_names=["y"])
    construct = get_acqf_input_constructor(kind)
    arguments = construct(
        model=model,
        training_data=dataset,
        fidelity_weights={"1": 2.0},
        overhead=0.5,
        target_fidelities={1: 1.0},
        **more,
    )
    points = X.unsqueeze(-2)
    cost = predicted_cost(arguments["cost_model"], points, arguments["overhead"])
    torch.testing.assert_close(cost, 0.5 + 2 * X[:, 1], check_dtype=False)
    assert kind(**arguments)(points).isfinite().all()
    if "best_f" in arguments:
        at_target = torch.stack([X[:, 0], torch.ones_like(X[:, 1])], -1)
        torch.testing.assert_close(arguments["best_f"], best_mean(model, at_target))


@pytest.mark.parametrize("given", ["neither", "both"])
def test_a_cost_is_a_model_or_known(given, model, data, cost):
    costs = {"cost_model": cost, "fidelity_weights": {1: 2.0}} if given == "both" else {}
    construct = get_acqf_input_constructor(PBGI)
    with pytest.raises(InvalidArgumentError, match=f"cost_model: Expected .*Received '{given}'"):
        construct(model=model, price=0.1, **costs)
