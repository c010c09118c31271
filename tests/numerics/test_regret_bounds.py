"""Bounds of the paper: their formulas, their limits, and that they bound what they speak of."""

import math
from statistics import NormalDist

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.numerics.information_gain import greedy_information_gain
from botorch_costly.numerics.regret_bounds import (
    balanced_queries,
    drifting_gain_bound,
    regret_bound,
    regret_without_query,
)
from botorch_costly.numerics.stationary import Stationary, covariance


def prior(count=40):
    points = torch.linspace(0, 1, count, dtype=torch.float64).unsqueeze(-1)
    kernel = Stationary("matern52", points.new_full((1,), 0.2), points.new_ones(()))
    return covariance(kernel, points, points)


def test_theorem_4_is_its_formula():
    expected = math.sqrt(8 / math.log(1 + 1 / 0.01) * 3.0 * 500**2 / 100 * 7.0)
    assert regret_bound(500, 100, 3.0, 0.01, 7.0) == pytest.approx(expected)


def test_four_times_the_queries_with_as_much_information_halve_the_regret():
    assert regret_bound(500, 400, 3.0, 0.01, 7.0) == regret_bound(500, 100, 3.0, 0.01, 7.0) / 2


@pytest.mark.parametrize("forgetting", [0.0, 0.001, 0.03, 0.5])
@pytest.mark.parametrize("queries", [1, 10, 60])
def test_lemma_5_bounds_the_greedy_gain_of_even_queries(forgetting, queries):
    horizon = 120
    rounds = range(0, horizon, horizon // queries)[:queries]
    drifting = greedy_information_gain(prior(), 0.01, rounds, forgetting)[-1]
    steady = greedy_information_gain(prior(), 0.01, range(queries))
    assert drifting <= drifting_gain_bound(steady, horizon, forgetting)


def test_lemma_5_takes_the_best_length_of_a_block():
    gains, horizon, forgetting = torch.tensor([1.0, 1.5, 1.8, 2.0]), 8, 0.01
    each = [(4 / n + 1) * (float(gains[n - 1]) + 8 / 4 * n**3 * forgetting) for n in (1, 2, 3, 4)]
    assert drifting_gain_bound(gains, horizon, forgetting) == pytest.approx(min(each))
    assert min(each) not in (each[0], each[-1])


def test_corollary_6_for_both_kernels():
    assert balanced_queries(1000, 0.0) == pytest.approx(1000 ** (2 / 3))
    assert balanced_queries(1000, 0.1) == pytest.approx(1000 * 0.1 ** (1 / 7))
    assert balanced_queries(1000, 1.0) == 1000
    c = 2 / (2 * 2.5 + 2)  # Matérn 5/2 of one variable
    assert balanced_queries(1000, 0.001, c) == pytest.approx(
        max(1000 ** (2 / (3 - c)), 1000 * 0.001 ** ((1 - c) / (7 - 3 * c)))
    )


def test_at_the_balance_orders_of_regret_and_cost_agree():
    """With ``eta = T / B`` in (41): both terms are of one order, for a steady and a drifting function."""
    horizon = 10_000
    for forgetting in (0.0, 0.05):
        queries = balanced_queries(horizon, forgetting)
        eta = horizon / queries
        regret = max(math.sqrt(horizon * eta), horizon * (eta * forgetting) ** (1 / 6))
        assert regret == pytest.approx(queries)


def test_equation_58_broadcasts_and_vanishes_at_the_kappa_of_the_bounds():
    std, rivals = torch.tensor([[0.5], [1.0]]), torch.tensor([0.1, 0.2, 0.3])
    kappa = NormalDist().cdf(math.sqrt(2 * 0.7))
    left = regret_without_query(0.7, kappa, std, rivals)
    assert left.shape == (2, 3)
    assert left.abs().max() < 1e-6
    torch.testing.assert_close(
        regret_without_query(0.7, 0.5, std, rivals), 0.7**0.5 * (std + rivals)
    )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: regret_bound(0, 1, 1.0, 0.1, 1.0), InvalidArgumentError),
        (lambda: regret_bound(10, 11, 1.0, 0.1, 1.0), InvalidArgumentError),
        (lambda: regret_bound(10, 5, -1.0, 0.1, 1.0), InvalidArgumentError),
        (lambda: regret_bound(10, 5, 1.0, 0.0, 1.0), InvalidArgumentError),
        (lambda: drifting_gain_bound(torch.zeros(0), 5, 0.1), InvalidShapeError),
        (lambda: drifting_gain_bound(torch.zeros(6), 5, 0.1), InvalidArgumentError),
        (lambda: balanced_queries(10, 0.1, 1.0), InvalidArgumentError),
        (
            lambda: regret_without_query(1.0, 0.4, torch.ones(1), torch.ones(1)),
            InvalidArgumentError,
        ),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error, match="Expected"):
        call()
