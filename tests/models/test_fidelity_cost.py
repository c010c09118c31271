"""The model of the cost of an evaluation at several fidelities."""

import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.models.fidelity_cost import FidelityCost
from tests.cases import quick
from tests.oracles import fidelity_cost as oracle

RANGE = math.log(512)


def log_shares(encoded):
    return RANGE * (encoded - 1)


def evaluations(generator, n, dim=2, highest=1.0):
    X = torch.rand(n, dim + 1, generator=generator, dtype=torch.float64)
    X[:, -1] *= highest
    return X


def power_law(X, power=1.0, floor=0.0):
    """A cost that depends on the first column tenfold, and is 1 at the target in the middle of it."""
    return floor + (10 ** (X[:, :1] - 0.5)) * log_shares(X[:, -1:]).mul(power).exp()


@pytest.mark.parametrize(
    "after",
    quick(
        ["no studies", "a study", "a study of other costs"], "no studies", "a study of other costs"
    ),
)
def test_it_predicts_as_the_naive_twin_does(after, generator):
    X = torch.rand(9, 4, generator=generator, dtype=torch.float64)
    lowest = torch.tensor([-RANGE, -2.0], dtype=torch.float64)

    def shares(encoded):
        return -lowest.to(encoded) * (encoded - 1)

    cost = 0.01 + (X[:, :1] + shares(X[:, 2:]).sum(-1, keepdim=True)).exp()
    fresh = torch.rand(5, 4, generator=generator, dtype=torch.float64)
    earlier, studied = None, None
    if after != "no studies":
        E = torch.rand(20, 4, generator=generator, dtype=torch.float64)
        sign = 1 if after == "a study" else -1
        told = (sign * E[:, :1] + sign * shares(E[:, 2:]).sum(-1, keepdim=True)).exp()
        earlier = FidelityCost(E, told, shares, fidelities=2)

        def studied(row):
            *x, first, second = row
            at = [*x, 1 + first / RANGE, 1 + second / 2.0]
            return float(earlier(torch.tensor([at], dtype=torch.float64)))

    rows, points = (torch.cat([x[:, :2], shares(x[:, 2:])], -1).tolist() for x in (X, fresh))
    expected = oracle.predicted(rows, cost.flatten().tolist(), lowest.tolist(), points, studied)
    actual = FidelityCost(X, cost, shares, fidelities=2, expected=earlier)(fresh).flatten()
    torch.testing.assert_close(actual, torch.tensor(expected).double(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("power", [0.7, 1.0, 1.5])
@pytest.mark.parametrize("floor", [0.0, 0.005])
def test_the_cost_of_the_target_follows_from_low_fidelities(power, floor, generator):
    """A line through the logarithms would be off by the floor: a factor of 5 and more."""
    X = evaluations(generator, 30, highest=0.8)
    target = evaluations(generator, 20)
    target[:, -1] = 1.0
    cost = power_law(X, power, floor)
    ratio = power_law(target, power, floor) / FidelityCost(X, cost, log_shares)(target)
    assert ratio.log().abs().mean() < math.log(1.3)


def test_a_priori_costs_are_in_proportion_to_the_shares():
    X = torch.tensor([[0.1, 0.0], [0.5, 0.0], [0.8, 0.0]], dtype=torch.float64)
    model = FidelityCost(X, power_law(X), log_shares)
    ends = torch.tensor([[0.5, 0.0], [0.5, 1.0]], dtype=torch.float64)
    lowest, whole = model(ends).flatten().tolist()
    assert whole / lowest == pytest.approx(512, rel=0.3)


def test_costs_of_earlier_studies_count_from_the_first_evaluation(generator):
    """Of a study in another unit: a tenfold effect of the configuration and a power of 1.4."""
    E, X = evaluations(generator, 40), evaluations(generator, 4, highest=0.3)
    target = evaluations(generator, 20)
    target[:, -1] = 1.0
    earlier = FidelityCost(E, 37.0 * power_law(E, 1.4), log_shares)
    truth, errors = power_law(target, 1.4), {}
    for name, expected in {"alone": None, "after": earlier}.items():
        model = FidelityCost(X, power_law(X, 1.4), log_shares, expected=expected)
        errors[name] = float((model(target) / truth).log().abs().mean())
    assert errors["after"] < min(math.log(1.5), errors["alone"])


def test_costs_of_a_study_that_misleads_are_left_out(generator):
    E, X, target = (
        evaluations(generator, 40),
        evaluations(generator, 30),
        evaluations(generator, 20),
    )
    opposite = FidelityCost(E, 1 / power_law(E), log_shares)
    alone, after = (FidelityCost(X, power_law(X), log_shares, expected=e) for e in (None, opposite))
    torch.testing.assert_close(after(target), alone(target))


def test_the_unit_of_costs_changes_nothing(generator):
    X, fresh = evaluations(generator, 20), evaluations(generator, 9)
    cost = power_law(X, floor=0.01)
    one = FidelityCost(X, cost, log_shares)(fresh)
    for unit in (1e-9, 1e9):
        torch.testing.assert_close(FidelityCost(X, unit * cost, log_shares)(fresh), unit * one)


@pytest.mark.parametrize("factor", [1e4, 1e-12])
def test_one_cost_in_another_unit_moves_no_prediction(factor, generator):
    X = evaluations(generator, 12)
    cost = power_law(X)
    others = torch.arange(12) != 5
    expected = FidelityCost(X[others], cost[others], log_shares)(X)
    cost[5] *= factor
    torch.testing.assert_close(FidelityCost(X, cost, log_shares)(X), expected)


def test_many_costs_are_thinned(generator):
    X, target = evaluations(generator, 700), evaluations(generator, 20)
    model = FidelityCost(X, power_law(X), log_shares)
    assert sum(buffer.numel() for buffer in model.buffers()) < 2_000
    assert (model(target) / power_law(target)).log().abs().max() < 0.2


def test_shapes_dtypes_and_derivatives(generator):
    X = evaluations(generator, 20)
    model = FidelityCost(X.float(), power_law(X).float(), log_shares)
    batch = torch.rand(4, 2, 3, generator=generator, dtype=torch.float32, requires_grad=True)
    cost = model(batch)
    assert cost.shape == (4, 2, 1)
    assert cost.dtype == torch.float32
    (slope,) = torch.autograd.grad(cost.log().sum(), batch)
    assert (slope[..., -1] > 0).all()
    assert (FidelityCost(X[:1], X[:1, :1] + 1, log_shares)(X) > 0).all()


def test_constant_costs_are_no_failure(generator):
    X = evaluations(generator, 10)
    model = FidelityCost(X, torch.full((10, 1), 3.0, dtype=torch.float64), log_shares)
    assert (model(X) / 3.0).log().abs().max() < 0.3


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_costs_are_positive_numbers(bad, generator):
    X = evaluations(generator, 5)
    cost = power_law(X)
    cost[3] = bad
    with pytest.raises(InvalidArgumentError, match="train_cost: Expected finite numbers > 0"):
        FidelityCost(X, cost, log_shares)
