"""Theorem 1 of RM-GP-UCB: tasks are wrong by at most its error, and its regret is its formula."""

import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.numerics.transfer_bounds import (
    task_error,
    tasks_explore,
    transfer_regret_bound,
    width_of_bounds,
)

NOISE = 0.05


def posterior_mean(inputs, values, at):
    K = (-((inputs - inputs.T) ** 2) / (2 * 0.3**2)).exp()
    k = (-((at - inputs.T) ** 2) / (2 * 0.3**2)).exp()
    return k @ torch.linalg.solve(K + NOISE * torch.eye(len(inputs)).double(), values)


@pytest.mark.parametrize("gap", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_error_bounds_what_tasks_are_wrong_by(gap, seed):
    """Lemma 3: beside the means of hypothetical observations of the target at the tasks' inputs."""
    draws = torch.Generator().manual_seed(seed)
    weights, counts = torch.tensor([0.7, 0.3]).double(), torch.tensor([4, 9])
    at = torch.linspace(0, 1, 50, dtype=torch.float64).unsqueeze(-1)
    wrong = torch.zeros(50, dtype=torch.float64)
    for weight, count in zip(weights, counts.tolist(), strict=True):
        inputs = torch.rand(count, 1, generator=draws, dtype=torch.float64)
        target = torch.sin(5 * inputs.squeeze(-1))
        away = gap * (2 * torch.rand(count, generator=draws, dtype=torch.float64) - 1)
        noise = NOISE**0.5 * torch.randn(2, count, generator=draws, dtype=torch.float64)
        theirs = posterior_mean(inputs, target + away + noise[0], at)
        ours = posterior_mean(inputs, target + noise[1], at)
        wrong = wrong + weight * (theirs - ours)
    bound = task_error(weights, torch.full((2,), gap).double(), counts, NOISE)
    assert wrong.abs().max() <= bound


def test_formulas():
    error = task_error(torch.tensor([1.0]), torch.tensor([0.5]), torch.tensor([3]), 0.1, 0.2)
    assert error == pytest.approx(3 / 0.1 * (0.5 + 2 * math.sqrt(0.2 * math.log(90))), rel=1e-6)
    width = width_of_bounds(1.5, 0.1, 4.0, 0.2)
    assert width == pytest.approx(1.5 + math.sqrt(0.2 * (5 + math.log(15))))
    shares = torch.tensor([1.0, 0.5, 0.25])
    bound = transfer_regret_bound(shares, 10.0, 1.0, 2.0, 0.1, 4.0)
    expected = 2 * 11 * 1.75 + 2 * math.sqrt(8 * 3 * 4 / math.log(11))
    assert bound == pytest.approx(expected)


def test_without_tasks_the_bound_is_that_of_gp_ucb_and_it_grows_more_slowly_than_the_rounds():
    rounds = torch.arange(400)
    shares = 0.7**rounds
    bounds = [
        transfer_regret_bound(shares[:t], 1e3, 1.0, 2.0, 0.01, math.log(t)) / t
        for t in (25, 100, 400)
    ]
    assert bounds == sorted(bounds, reverse=True)
    none = transfer_regret_bound(torch.zeros(100), 1e3, 1.0, 2.0, 0.01, 3.0)
    assert none == pytest.approx(2 * math.sqrt(800 * 3 / math.log(101)))


def test_tasks_explore_where_they_are_sure():
    weights, std = torch.tensor([0.5, 0.5]), torch.tensor([[0.1, 0.8], [0.3, 1.0]])
    assert tasks_explore(weights, std, torch.tensor([0.2, 0.2]), 1.0, 2.0).tolist() == [True, False]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: task_error(torch.ones(2), torch.ones(3), torch.ones(2), 0.1), InvalidShapeError),
        (
            lambda: task_error(torch.ones(1), torch.ones(1), torch.zeros(1), 0.1),
            InvalidArgumentError,
        ),
        (lambda: width_of_bounds(-1.0, 0.1, 1.0), InvalidArgumentError),
        (lambda: transfer_regret_bound(torch.zeros(0), 1, 1, 1, 0.1, 1), InvalidShapeError),
        (
            lambda: transfer_regret_bound(torch.tensor([0.1, 0.2]), 1, 1, 1, 0.1, 1),
            InvalidArgumentError,
        ),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error, match="Expected"):
        call()
