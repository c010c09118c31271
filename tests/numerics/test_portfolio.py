"""The greedy portfolio."""

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.numerics.portfolio import greedy_portfolio
from tests.oracles import transfer as oracle


def drawn(tasks, m, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tasks, m, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("seed", range(4))
def test_each_step_tries_all(seed):
    values = drawn(6, 9, seed)
    assert greedy_portfolio(values, 9).tolist() == oracle.greedy_portfolio(values.tolist(), 9)


def test_the_units_and_the_order_of_tasks_do_not_matter():
    values = drawn(5, 12)
    factors = torch.tensor([1.0, 100.0, 0.01, 3.0, 7.0], dtype=torch.float64).unsqueeze(-1)
    moved = (5 + factors * values)[[3, 0, 4, 2, 1]]
    assert torch.equal(greedy_portfolio(moved, 6), greedy_portfolio(values, 6))


def test_it_complements_and_does_not_repeat():
    # The second best everywhere adds nothing to the best; a specialist does.
    values = torch.tensor([[1.0, 0.9, 0.0, 0.1], [1.0, 0.9, 0.1, 0.0], [0.0, 0.1, 1.0, 0.2]])
    assert greedy_portfolio(values, 2).tolist() == [0, 2]


def test_constant_tasks_and_a_single_one():
    values = torch.tensor([[2.0, 2.0, 2.0], [0.0, 3.0, 1.0]])
    assert greedy_portfolio(values, 3).tolist() == [1, 2, 0]
    assert greedy_portfolio(values[1:], 0).tolist() == []


def test_wrong_shapes_are_refused():
    for bad, count in ((torch.zeros(0, 3), 1), (torch.zeros(3), 1), (torch.zeros(2, 3), 4)):
        with pytest.raises(InvalidShapeError, match="values"):
            greedy_portfolio(bad, count)
    with pytest.raises(InvalidArgumentError, match="finite"):
        greedy_portfolio(torch.tensor([[0.0, torch.nan]]), 1)
    with pytest.raises(InvalidArgumentError, match="count"):
        greedy_portfolio(torch.zeros(1, 2), -1)
