"""Merging of points that are near a better one, against a loop over all pairs."""

import pytest
import torch

from botorch_costly.optim.merging import followed, leaders_of, merged_into, points_at


def merged_by_loop(points, values, within):
    """Return the same by following each point to the best near it until it leads."""
    n = len(points)

    def best_near(i):
        better = [j for j in range(n) if (values[j], -j) > (values[i], -i)]
        near = [j for j in better if (points[i] - points[j]).abs().max() < within]
        return max(near, key=lambda j: (values[j], -j), default=i)

    into = []
    for i in range(n):
        while best_near(i) != i:
            i = best_near(i)
        into.append(i)
    return into


@pytest.mark.parametrize("within", [0.0, 0.02, 0.1, 0.3, 2.0])
@pytest.mark.parametrize("dim", [1, 3])
def test_a_batch_is_merged_as_pairs_are_one_by_one(dim, within):
    generator = torch.Generator().manual_seed(dim)
    points = torch.rand(4, 30, dim, generator=generator, dtype=torch.float64)
    values = torch.randint(12, (4, 30), generator=generator).double()  # with ties
    into = followed(merged_into(points, values, within))
    for k in range(4):
        assert into[k].tolist() == merged_by_loop(points[k], values[k].tolist(), within)


def test_a_chain_ends_at_its_top():
    points = torch.arange(20.0).unsqueeze(-1)
    assert followed(merged_into(points, torch.arange(20.0), 1.5)).tolist() == [19] * 20
    assert merged_into(points, -torch.arange(20.0), 0.5).tolist() == list(range(20))


def test_points_without_a_value_are_merged_into_those_with_one():
    points = torch.tensor([[0.0], [0.01], [0.5]])
    values = torch.tensor([-torch.inf, 1.0, -torch.inf])
    assert merged_into(points, values, 0.1).tolist() == [1, 1, 2]


def test_leaders_come_first_and_one_of_them_is_repeated():
    into = torch.tensor([[2, 1, 2, 1], [0, 0, 0, 3]])
    numbers, number = leaders_of(into)
    assert numbers.tolist() == [[1, 2, 1, 1], [0, 3, 0, 0]]
    assert number.tolist() == [2, 2]
    points = torch.arange(8.0).reshape(2, 4, 1)
    assert points_at(points, numbers)[1].flatten().tolist() == [4.0, 7.0, 4.0, 4.0]
