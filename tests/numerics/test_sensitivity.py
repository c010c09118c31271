"""Sobol indices against their definition on grids, and against a function whose indices are known."""

import math

import pytest
import torch

from botorch_costly.numerics.sensitivity import sensitivity
from tests.oracles.sensitivity import indices

COLUMNS = [slice(0, 1), slice(1, 2), slice(2, 3)]


def designs(n, generator, tkwargs, d=3):
    return torch.rand(2, n, d, generator=generator, **tkwargs)


def test_indices_match_the_definition(generator, tkwargs):
    """On all pairs of points of a grid nothing is left to chance."""
    grid = [0.0, 1.0, 3.0]

    def function(x, y):
        return x + x * y**2 - 0.5 * y

    cells = torch.cartesian_prod(*(torch.tensor(grid, **tkwargs),) * 2)
    pairs = torch.cartesian_prod(torch.arange(9), torch.arange(9)).to(cells.device)
    first, second = cells[pairs[:, 0]], cells[pairs[:, 1]]
    actual = sensitivity(lambda X: function(X[:, 0], X[:, 1]), first, second, COLUMNS[:2])
    alone, total = indices(function, [grid, grid])
    torch.testing.assert_close(
        actual.first_order, torch.tensor(alone, **tkwargs), atol=1e-5, rtol=0
    )
    torch.testing.assert_close(actual.total, torch.tensor(total, **tkwargs), atol=1e-5, rtol=0)
    assert total[0] > alone[0] + 0.05  # there is an interaction to find


def test_ishigami(generator, tkwargs):
    """The textbook function: a third input that matters by an interaction alone."""

    def function(U):
        x, y, z = (math.pi * (2 * U - 1)).unbind(-1)
        return x.sin() + 7 * y.sin().square() + 0.1 * z**4 * x.sin()

    actual = sensitivity(function, *designs(2**15, generator, tkwargs), COLUMNS)
    expected = torch.tensor([0.3139, 0.4424, 0.0], **tkwargs)
    torch.testing.assert_close(actual.first_order, expected, atol=0.03, rtol=0)
    expected = torch.tensor([0.5576, 0.4424, 0.2437], **tkwargs)
    torch.testing.assert_close(actual.total, expected, atol=0.03, rtol=0)


def test_columns_of_a_group_count_together(generator, tkwargs):
    first, second = designs(4096, generator, tkwargs)
    groups = [slice(0, 2), slice(2, 3)]
    actual = sensitivity(lambda X: X[:, 0] * X[:, 1], first, second, groups)
    torch.testing.assert_close(actual.total, torch.tensor([1.0, 0.0], **tkwargs), atol=0.05, rtol=0)


def test_a_batch_is_a_loop(generator, tkwargs):
    first, second = designs(64, generator, tkwargs)
    weights = torch.rand(2, 4, 3, generator=generator, **tkwargs)

    def function(X):
        return (weights.unsqueeze(-2) * X).sum(-1).sin()

    actual = sensitivity(function, first, second, COLUMNS)
    assert actual.total.shape == (2, 4, 3)
    for i in range(2):
        for j in range(4):
            alone = sensitivity(
                lambda X, w=weights[i, j]: (w * X).sum(-1).sin(), first, second, COLUMNS
            )
            for one, many in zip(alone, actual, strict=True):
                torch.testing.assert_close(many[i, j], one)


@pytest.mark.parametrize("level", [0.0, 1e6])
def test_a_constant_function_has_no_sensitivity(level, generator, tkwargs):
    first, second = designs(64, generator, tkwargs)
    actual = sensitivity(lambda X: torch.full_like(X[:, 0], level), first, second, COLUMNS)
    assert actual.first_order.tolist() == actual.total.tolist() == [0.0] * 3


def test_an_offset_changes_nothing(generator):
    first, second = designs(256, generator, {"dtype": torch.float64, "device": generator.device})
    plain = sensitivity(lambda X: X.sum(-1).sin(), first, second, COLUMNS)
    shifted = sensitivity(lambda X: X.sum(-1).sin() + 1e6, first, second, COLUMNS)
    torch.testing.assert_close(plain.first_order, shifted.first_order, atol=1e-6, rtol=0)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_shares_know_no_unit(generator, tkwargs, scale):
    first, second = designs(1024, generator, tkwargs)
    if tkwargs["dtype"] == torch.float32:
        scale = scale**0.3  # its square is a number in single precision, too
    one, other = (
        sensitivity(lambda X, s=s: s * X[:, 0], first, second, COLUMNS) for s in (1, scale)
    )
    torch.testing.assert_close(one.total, other.total, atol=1e-4, rtol=0)
    assert one.total[0] > 0.8


def test_nan_has_no_shares(generator, tkwargs):
    actual = sensitivity(lambda X: X[:, 0] / 0 * 0, *designs(64, generator, tkwargs), COLUMNS)
    assert actual.first_order.isnan().all()
    assert actual.total.isnan().all()
