"""Padded Gaussian processes in one batch against each of them alone."""

import math

import pytest
import torch

from botorch_costly.numerics import padded
from botorch_costly.numerics.radial import ARMS, PROFILES
from tests.oracles import tasks as oracle

SIZES = (5, 1, 8)
DIM = 2


@pytest.fixture
def problems():
    draws = torch.Generator().manual_seed(3)

    def drawn(*shape):
        return torch.rand(*shape, generator=draws, dtype=torch.float64)

    return [(drawn(n, DIM), drawn(n) - 0.5) for n in SIZES]


@pytest.fixture
def theta():
    first = torch.tensor([math.log(0.4), math.log(0.7), 0.2, math.log(0.05)], dtype=torch.float64)
    return torch.stack([first, first + 0.3, first - 0.2])


def hyper(theta):
    return theta[:-2].exp(), float(theta[-2].exp()), float(theta[-1].exp())


def test_evidence_is_that_of_each_problem_alone(problems, theta):
    value, _ = padded.log_evidence("matern52", padded.pad(problems), theta)
    for (x, y), single, ours in zip(problems, theta, value, strict=True):
        assert ours == pytest.approx(float(oracle.gp_evidence(x, y, *hyper(single))), abs=1e-9)


def test_gradient_is_the_finite_difference(problems, theta):
    rows, step = padded.pad(problems), 1e-5
    _, gradient = padded.log_evidence("matern52", rows, theta)
    for column in range(theta.shape[-1]):
        away = torch.zeros_like(theta)
        away[:, column] = step
        up, _ = padded.log_evidence("matern52", rows, theta + away)
        down, _ = padded.log_evidence("matern52", rows, theta - away)
        torch.testing.assert_close(gradient[:, column], (up - down) / (2 * step), atol=1e-6, rtol=0)


def test_information_is_that_of_each_problem_alone(problems, theta):
    value, gradient, actual = padded.average_information("matern52", padded.pad(problems), theta)
    plain = padded.log_evidence("matern52", padded.pad(problems), theta)
    torch.testing.assert_close((value, gradient), plain)
    for number, single in enumerate(problems):
        alone = padded.average_information("matern52", padded.pad([single]), theta[number, None])
        torch.testing.assert_close(actual[number], alone[2][0])


@pytest.mark.parametrize("own_points", [False, True])
def test_moments_match_each_problem_alone(problems, theta, own_points):
    X = torch.rand(4, DIM, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    asked = torch.stack([X, X.flip(0), X / 2]) if own_points else X
    rows = padded.pad(problems)
    factored = padded.factor("matern52", rows, theta)
    mean, variance = padded.moments("matern52", rows, theta, factored, asked)
    torch.testing.assert_close(padded.means("matern52", rows, theta, factored, asked), mean)
    for number, (x, y) in enumerate(problems):
        points = asked[number] if own_points else asked
        theirs = oracle.gp_moments(x, y, *hyper(theta[number]), points)
        torch.testing.assert_close(mean[number], theirs[0], atol=1e-9, rtol=0)
        torch.testing.assert_close(variance[number].sqrt(), theirs[1], atol=1e-7, rtol=0)


@pytest.mark.parametrize("family", [family for family in PROFILES if family != ARMS])
@pytest.mark.parametrize("own_points", [False, True])
def test_moments_have_the_slopes_of_finite_differences(problems, theta, own_points, family):
    draws = torch.Generator().manual_seed(4)
    X = torch.rand(*([3] if own_points else []), 4, DIM, generator=draws, dtype=torch.float64)
    rows = padded.pad(problems)
    factored = padded.factor(family, rows, theta)
    factors = torch.randn(2, 3, 4, generator=draws, dtype=torch.float64)

    def total(X):
        mean, variance = padded.moments(family, rows, theta, factored, X)
        return (factors[0] * mean + factors[1] * variance).sum()

    asked = X.clone().requires_grad_(True)
    value = total(asked)
    assert float(value.detach()) == pytest.approx(float(total(X)), abs=1e-12)
    (slope,) = torch.autograd.grad(value, asked)
    assert slope.shape == X.shape
    if not own_points:
        mean, variance, vjp = padded.moments_and_vjp(family, rows, theta, factored)(X)
        expected = padded.moments(family, rows, theta, factored, X)
        torch.testing.assert_close((mean, variance), expected)
        torch.testing.assert_close(vjp(*factors), slope)
    for number in range(X.numel()):
        away = torch.zeros(X.numel(), dtype=torch.float64)
        away[number] = 1e-6
        away = away.reshape(X.shape)
        there = (total(X + away) - total(X - away)) / 2e-6
        assert float(slope.flatten()[number]) == pytest.approx(float(there), abs=1e-6)


def test_a_variance_of_which_nothing_is_left_is_flat():
    x = torch.full((1, DIM), 0.5, dtype=torch.float64)
    rows = padded.pad([(x, torch.ones(1, dtype=torch.float64))])
    theta = torch.tensor([[0.0, 0.0, 0.0, -40.0]], dtype=torch.float64)
    factored = padded.factor("rbf", rows, theta)
    X = x.clone().requires_grad_(True)
    _, variance = padded.moments("rbf", rows, theta, factored, X)
    variance.sqrt().sum().backward()
    assert float(X.grad.abs().max()) == 0.0


def test_a_singular_problem_has_no_evidence_and_does_not_disturb_the_others(problems, theta):
    x = torch.zeros(5, DIM, dtype=torch.float64)
    rows = padded.pad([(x, torch.arange(5.0, dtype=torch.float64)), problems[2]])
    theta = theta[:2].clone()
    theta[0, -1] = -200.0
    value, gradient = padded.log_evidence("matern52", rows, theta)
    assert value[0] == -torch.inf
    assert torch.equal(gradient[0], torch.zeros(4, dtype=torch.float64))
    alone, _ = padded.log_evidence("matern52", padded.pad([problems[2]]), theta[1:])
    assert value[1] == pytest.approx(float(alone[0]), abs=1e-9)


@pytest.mark.parametrize("first", [0, 1, 7])
def test_a_root_that_is_bordered_is_that_of_a_factorization(problems, theta, first):
    x, y = problems[2]
    for family in ("matern52", "rbf"):
        whole = padded.factor(family, padded.pad([(x, y)]), theta[:1]).inverse_root[0]
        grown = padded.bordered(family, whole[:first, :first], x, theta[0])
        torch.testing.assert_close(grown, whole, rtol=1e-9, atol=1e-9)
        in_turn = padded.bordered(family, whole[:first, :first], x[:-1], theta[0])
        assert torch.equal(padded.bordered(family, in_turn, x, theta[0]), grown)
