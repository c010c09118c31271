"""Local maxima of chains, lattices and graphs against a search that walks every plateau."""

import pytest
import torch
from hypothesis import given, settings, strategies as st

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.optim.grid import (
    chain_local_maxima,
    far_rival_on_grid,
    grid_local_maxima,
    highest,
    lattice_neighbours,
)


def maximal_plateaus(values, neighbours):
    """Walk each plateau from its first point; return those that nothing beside them beats."""
    seen, plateaus = set(), []
    for start in range(len(values)):
        if start in seen:
            continue
        plateau, stack, beaten = [], [start], False
        seen.add(start)
        while stack:
            point = stack.pop()
            plateau.append(point)
            for other in neighbours[point]:
                if other < 0:
                    continue
                beaten |= values[other] > values[point]
                if values[other] == values[point] and other not in seen:
                    seen.add(other)
                    stack.append(other)
        if not beaten:
            plateaus.append(sorted(plateau))
    return plateaus


def marked(mask):
    return mask.nonzero().squeeze(-1).tolist()


few_values = st.lists(st.integers(0, 3), min_size=1, max_size=24)


@settings(deadline=None)
@given(few_values)
def test_chain_marks_the_middle_of_every_maximal_plateau(values):
    plateaus = maximal_plateaus(values, lattice_neighbours((len(values),)).tolist())
    expected = [plateau[(len(plateau) - 1) // 2] for plateau in plateaus]
    assert marked(chain_local_maxima(torch.tensor(values))) == expected


@settings(deadline=None)
@given(st.data(), st.sampled_from([(5,), (3, 4), (2, 1, 3), (2, 3, 4)]), st.booleans())
def test_lattice_marks_one_point_of_every_maximal_plateau(data, shape, diagonals):
    n = torch.Size(shape).numel()
    values = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    neighbours = lattice_neighbours(shape, diagonals=diagonals)
    expected = [plateau[0] for plateau in maximal_plateaus(values, neighbours.tolist())]
    assert marked(grid_local_maxima(torch.tensor(values), neighbours)) == expected


def test_a_winding_plateau_is_one():
    values = torch.tensor([[1, 1, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 2]])
    neighbours = lattice_neighbours((5, 4))
    assert marked(grid_local_maxima(values.flatten(), neighbours)) == [19]
    values[4, 3] = 0
    assert marked(grid_local_maxima(values.flatten(), neighbours)) == [0]


def test_a_batch_is_a_loop(generator):
    values = torch.randint(4, (2, 3, 30), generator=generator, device=generator.device).double()
    neighbours = lattice_neighbours((5, 6))
    chains, grids = chain_local_maxima(values), grid_local_maxima(values, neighbours)
    for i in range(2):
        for j in range(3):
            assert torch.equal(chains[i, j], chain_local_maxima(values[i, j]))
            assert torch.equal(grids[i, j], grid_local_maxima(values[i, j], neighbours))


def test_a_transposed_batch_is_the_same_batch(generator):
    values = torch.randint(4, (30, 5), generator=generator, device=generator.device).double()
    assert torch.equal(chain_local_maxima(values.mT), chain_local_maxima(values.mT.contiguous()))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0], [0]),
        ([2.0, 2.0, 2.0, 2.0], [1]),
        ([2.0, 2.0, 1.0], [0]),
        ([1.0, 2.0, 2.0], [1]),
        ([1.0, 2.0, 2.0, 3.0, 3.0, 0.0], [3]),
        ([0.0, float("nan"), 0.0, 1.0, 0.0], [3]),
    ],
)
def test_plateaus_at_the_border_and_alone(values, expected):
    assert marked(chain_local_maxima(torch.tensor(values))) == expected


def test_lattice_neighbours_are_the_points_one_step_away():
    points = torch.cartesian_prod(*map(torch.arange, (3, 2, 4)))
    distance = (points[:, None] - points).abs()
    for diagonals, near in ((False, distance.sum(-1) == 1), (True, distance.amax(-1) == 1)):
        neighbours = lattice_neighbours((3, 2, 4), diagonals=diagonals)
        indices = [sorted(i for i in row if i >= 0) for row in neighbours.tolist()]
        assert indices == [marked(row) for row in near]


def test_far_rival_is_the_best_of_the_far(generator):
    points = torch.rand(40, 2, generator=generator, device=generator.device)
    values = torch.randn(3, 4, 40, generator=generator, device=generator.device)
    candidate = values.argmax(-1)
    index, exists = far_rival_on_grid(values, candidate, points, 0.4)
    assert exists.all()
    for place in torch.cartesian_prod(torch.arange(3), torch.arange(4)).tolist():
        i, j = place
        far = [k for k in range(40) if (points[k] - points[candidate[i, j]]).norm() > 0.4]
        assert index[i, j] == max(far, key=lambda k: values[i, j, k])


def test_without_a_far_point_there_is_no_rival():
    points = torch.linspace(0, 1, 11)[:, None]
    values = torch.arange(22.0).reshape(2, 11)
    index, exists = far_rival_on_grid(values, torch.tensor([5, 0]), points, 0.5)
    assert exists.tolist() == [False, True]
    assert index.tolist() == [5, 10]


def test_bad_input_is_named():
    with pytest.raises(InvalidShapeError, match="values"):
        chain_local_maxima(torch.zeros(3, 0))
    with pytest.raises(InvalidArgumentError, match="shape"):
        lattice_neighbours((3, 0))
    with pytest.raises(InvalidShapeError, match="neighbours"):
        grid_local_maxima(torch.zeros(4), lattice_neighbours((3,)))
    with pytest.raises(InvalidArgumentError, match="neighbours"):
        grid_local_maxima(torch.zeros(2), torch.tensor([[1], [2]]))
    with pytest.raises(InvalidShapeError, match="candidate"):
        far_rival_on_grid(torch.zeros(2, 3), torch.tensor(0), torch.zeros(3, 1), 0.2)
    with pytest.raises(InvalidShapeError, match="points"):
        far_rival_on_grid(torch.zeros(3), torch.tensor(0), torch.zeros(4, 1), 0.2)


def test_of_equals_the_first_is_the_highest(generator):
    values = torch.rand(50, 9, generator=generator, device=generator.device, dtype=torch.float64)
    assert torch.equal(highest(values, 0.0), values.argmax(-1))
    for row, index in zip(values.tolist(), highest(values, 0.2).tolist(), strict=True):
        assert index == next(i for i, value in enumerate(row) if value >= max(row) - 0.2)
    query = torch.tensor([0.0, 1.0, 0.5, 1.0, 0.0], dtype=torch.float64)
    for shaken in (query, query + 1e-12 * torch.tensor([0, 0, 0, 1.0, 0]).double()):
        assert highest(shaken, 1e-9).item() == 1
