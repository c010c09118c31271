"""Gaps, weights and their share against loops and a numerical minimizer."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from botorch_costly.numerics.online_weights import (
    decayed,
    entropic_weights,
    function_gaps,
    without_small,
)
from tests.oracles import tasks as oracle


@pytest.mark.parametrize("largest", [False, True])
def test_gaps_match_the_paper(largest, generator, tkwargs):
    values, mean, std = torch.randn(3, 2, 4, generator=generator, **tkwargs)
    std = std.abs()
    seen = torch.tensor([[True] * 4, [True, True, False, False]], device=values.device)
    ours = function_gaps(values, seen, mean, std, beta=1.7, largest=largest)
    for row, many in enumerate((4, 2)):
        parts = (column[row, :many].tolist() for column in (values, mean, std))
        assert float(ours[row]) == pytest.approx(oracle.gap(*parts, 1.7, largest), rel=1e-5)


@pytest.mark.parametrize("rate", [0.1, 1.0, 5.0])
def test_weights_minimize_the_regularized_loss(rate):
    losses = [0.3, 1.1, 0.9, 2.0]
    ours = entropic_weights(torch.tensor(losses, dtype=torch.float64), rate)
    actual = minimize(
        oracle.regularized_loss,
        np.full(4, 0.25),
        args=(losses, rate),
        bounds=[(1e-12, 1)] * 4,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(ours.numpy(), actual.x, atol=2e-5)


def test_weights_of_huge_losses_are_finite():
    weights = entropic_weights(torch.tensor([1e9, 2e9, 1e9], dtype=torch.float64), 1.0)
    torch.testing.assert_close(weights, torch.tensor([0.5, 0.0, 0.5], dtype=torch.float64))


@pytest.mark.parametrize(
    ("gap", "expected"), [(0.0, 0.35), (0.5, 0.35), (1.0, 0.35), (4.0, 0.5 * 4**-0.7)]
)
def test_the_share_falls_faster_where_gaps_are_large(gap, expected):
    weights, gaps = torch.tensor([0.25, 0.75]), torch.full((2,), gap)
    assert decayed(0.5, weights, gaps, decay=0.7, power=0.7) == pytest.approx(expected)


def test_weights_below_a_thousandth_of_the_largest_are_left_out():
    weights = torch.tensor([0.5, 0.6e-3, 0.4e-3, 0.4], dtype=torch.float64)
    expected = torch.tensor([0.5, 0.6e-3, 0.0, 0.4], dtype=torch.float64) / 0.9006
    torch.testing.assert_close(without_small(weights), expected)
