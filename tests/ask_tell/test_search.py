"""Where a tuner may go: lattices, arms, and a cube whose points stand for configurations."""

import pytest
import torch

import botorch_costly as bc
from botorch_costly.ask_tell import search
from botorch_costly.ask_tell.search import CubeSearch, FiniteSearch, Search, search_of
from botorch_costly.optim.grid import lattice_neighbours
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.online.rivals import Rivals

DOUBLE = {"dtype": torch.float64, "device": torch.device("cpu")}
GRID = SearchSpace({"rows": bc.Integer(1, 4), "columns": bc.Integer(-1, 5)})


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def search_on(space, num_restarts=20, bandwidth=0.2):
    return search_of(space, Search(num_restarts, bandwidth), DOUBLE)


def candidate_and_rivals(search, function, rivals, generator):
    return Rivals(search).find(function, generator, rivals=rivals)


def configs(space, points):
    return [tuple(space.decode(point).values()) for point in points]


def bump(*center, width=0.3):
    """Return an acquisition function with one peak."""
    middle = torch.tensor(center, dtype=torch.float64)
    return lambda X: (-((X - middle) / width).square().sum((-1, -2)) / 2).exp()


# -- lattices -------------------------------------------------------------------------------------


def neighbours_of(space):
    return [sorted(i for i in row if i >= 0) for row in search._lattice(space).tolist()]


def test_a_grid_of_integers_has_the_neighbours_of_a_lattice():
    expected = [sorted(i for i in row if i >= 0) for row in lattice_neighbours((4, 7)).tolist()]
    assert neighbours_of(GRID) == expected


def test_options_of_a_choice_are_all_adjacent_and_integers_are_not():
    space = SearchSpace({"option": bc.Choice(["a", "b", "c"]), "level": bc.Integer(1, 3)})
    rows = list(space.configurations())
    for here, row in zip(rows, neighbours_of(space), strict=True):
        expected = [
            i
            for i, there in enumerate(rows)
            if (there["option"] != here["option"]) + abs(there["level"] - here["level"]) == 1
        ]
        assert row == expected


def test_a_constant_is_no_direction():
    space = SearchSpace({"only": bc.Choice(["one"]), "level": bc.Integer(1, 3)})
    assert neighbours_of(space) == [[1], [0, 2], [1]]


def test_no_configuration_lies_between_two_neighbours():
    """The definition behind the list, on a space with everything."""
    space = SearchSpace(
        {"a": bc.Integer(1, 3, log=True), "b": bc.Choice(["x", "y", "z"]), "c": bc.Integer(0, 1)}
    )
    points = torch.stack([space.encode(c) for c in space.configurations()])
    for i, row in enumerate(neighbours_of(space)):
        low, high = (f(points[i], points) for f in (torch.minimum, torch.maximum))
        inside = (points >= low.unsqueeze(1)) & (points <= high.unsqueeze(1))
        alone = inside.all(-1).sum(-1) == 2
        assert alone.nonzero().squeeze(-1).tolist() == row


def test_the_largest_lattice_is_listed_and_a_larger_one_is_a_cube():
    # Listing it by comparing all triples would take minutes.
    largest = search_on(SearchSpace({"a": bc.Integer(1, 40), "b": bc.Integer(1, 50)}))
    assert isinstance(largest, FiniteSearch)
    assert largest._neighbours.shape == (2000, 4)
    assert isinstance(search_on(SearchSpace({"a": bc.Integer(1, 2001)})), CubeSearch)
    astronomical = SearchSpace({n: bc.Integer(-(2**40), 2**40) for n in "abcdefgh"})
    assert isinstance(search_on(astronomical), CubeSearch)


def test_rivals_on_a_grid_are_the_other_local_maxima():
    found = search_on(GRID)
    peaks = dict.fromkeys([(1, -1), (4, 5)], 1.0) | {(4, -1): 2.0}
    table = torch.tensor([peaks.get(tuple(c.values()), 0.0) for c in GRID.configurations()])
    points = candidate_and_rivals(found, lambda X: table.double(), True, generator())
    assert configs(GRID, points[:1]) == [(4, -1)]
    assert set(configs(GRID, points[1:])) >= {(1, -1), (4, 5)}


def test_a_far_rival_stands_in_for_a_grid_with_one_peak_only():
    """It is the best point beyond the bandwidth, not the best neighbour."""
    single = bump(0.125, 1.0 / 14)  # (1, -1), a corner
    points = candidate_and_rivals(search_on(GRID, bandwidth=0.3), single, True, generator())
    assert len(points) == 2
    assert (points[1] - points[0]).norm() > 0.3
    values, everyone = single(search_on(GRID)._points.unsqueeze(-2)), search_on(GRID)._points
    far = (everyone - points[0]).norm(dim=-1) > 0.3
    assert single(points[1:].unsqueeze(-2)) == values[far].max()
    two = candidate_and_rivals(
        search_on(GRID),
        lambda X: bump(0.125, 1 / 14)(X) + bump(0.875, 13 / 14)(X),
        True,
        generator(),
    )
    assert {(1, -1), (4, 5)} == set(configs(GRID, two))


@pytest.mark.parametrize("rivals", [True, False])
def test_arms_all_rival_each_other(rivals):
    space = SearchSpace({"a": bc.Choice(["x", "y", "z"]), "b": bc.Choice([1, 2])})
    values = torch.tensor([0.0, 1.0, 5.0, 2.0, 3.0, 4.0])
    points = candidate_and_rivals(search_on(space), lambda X: values, rivals, generator())
    assert configs(space, points[:1]) == [("y", 1)]
    assert len(points) == (6 if rivals else 1)
    assert len(set(configs(space, points))) == len(points)


def test_ties_are_broken_by_the_generator():
    space = SearchSpace({"a": bc.Choice(["x", "y", "z"])})
    found = search_on(space)
    first = [
        configs(
            space, candidate_and_rivals(found, lambda X: torch.ones(3), False, generator(seed))
        )[0]
        for seed in range(20)
    ]
    assert len(set(first)) == 3


def test_few_points_represent_themselves_and_candidates_those_of_many():
    space = SearchSpace({"a": bc.Integer(1, 40), "b": bc.Integer(1, 50)})
    found = search_on(space)
    few = found.representatives()
    assert 128 <= len(few) <= 256
    rows = [space.decode(x)["a"] for x in few]
    assert max(rows.count(a) for a in range(1, 41)) - min(rows.count(a) for a in range(1, 41)) <= 1
    assert torch.equal(search_on(GRID).representatives(), search_on(GRID)._points)


@pytest.mark.parametrize("shape", [(2,), (17,), (1000,), (30, 30), (20, 100)])
def test_first_points_of_a_list_in_order_are_spread_over_it(shape):
    space = SearchSpace({f"n{i}": bc.Integer(1, n) for i, n in enumerate(shape)})
    found = search_on(space)
    assert found.order.sort().values.tolist() == list(range(len(found._points)))
    number = min(16, len(found._points))
    first = found.spread(number)
    assert torch.equal(first.unique(dim=0), found._points[found.order < number].unique(dim=0))
    far = torch.cdist(found._points, first).amin(-1).max()
    assert far <= 1.2 * number ** (-1 / len(shape))


# -- the cube -------------------------------------------------------------------------------------


def two_peaks(X):
    return bump(0.2, 0.2, width=0.2)(X) + 0.9 * bump(0.8, 0.8, width=0.2)(X)


SQUARE = SearchSpace({"x": bc.Real(0.0, 1.0), "y": bc.Real(0.0, 1.0)})


def test_the_candidate_comes_first_and_the_other_peak_is_its_rival():
    points = candidate_and_rivals(search_on(SQUARE), two_peaks, True, generator())
    torch.testing.assert_close(
        points, torch.tensor([[0.2, 0.2], [0.8, 0.8]]).double(), atol=0.01, rtol=0
    )


def test_a_far_rival_is_named_for_a_lone_peak_if_anybody_asks():
    points = candidate_and_rivals(search_on(SQUARE), bump(0.5, 0.5), True, generator())
    assert len(points) == 2
    assert (points[1] - points[0]).norm().item() == pytest.approx(0.2, abs=1e-6)
    assert len(candidate_and_rivals(search_on(SQUARE), bump(0.5, 0.5), False, generator())) == 1


def test_optima_rounded_to_one_configuration_count_once():
    """Four peaks in the cube, two configurations: one candidate, one rival."""
    space = SearchSpace({"x": bc.Integer(1, 2), "y": bc.Integer(1, 1100)})
    cube = search_on(space)
    assert isinstance(cube, CubeSearch)

    def peaks(X):  # (1, 1) from two sides, (2, 1) from two sides
        corners = [(0.0, 0.0), (0.35, 0.0), (0.65, 0.0), (1.0, 0.0)]
        return sum((1 - 0.1 * i) * bump(*c, width=0.05)(X) for i, c in enumerate(corners))

    points = candidate_and_rivals(cube, peaks, True, generator())
    assert len(cube._warm_starts) >= 4
    assert len(set(configs(space, points))) == len(points)
    assert torch.equal(points, space.round(points))


def test_the_candidate_is_the_best_after_rounding():
    """The relaxed maximum lies halfway between two integers, and its nearest integer is poor."""
    space = SearchSpace({"x": bc.Integer(1, 2), "y": bc.Real(0.0, 1.0)})

    def relaxed(X):  # a sharp peak at the seam of x, a lower but broad one at x = 2
        return 2 * bump(0.45, 0.1, width=0.05)(X) + bump(0.75, 0.9, width=0.2)(X)

    points = candidate_and_rivals(search_on(space), relaxed, True, generator())
    values = relaxed(points.unsqueeze(-2))
    assert values[0] == values.max()
    starts = space.round(torch.tensor([[0.45, 0.1], [0.7, 0.8]]).double())
    best = search_on(space).climb(relaxed, starts.unsqueeze(0)).squeeze(0)
    assert space.decode(best)["x"] == 2
    assert space.decode(points[0])["x"] == 2


def test_a_lone_configuration_is_not_its_own_rival():
    """Beyond the bandwidth everything nearby still rounds to the candidate."""
    space = SearchSpace({n: bc.Integer(1, 2) for n in "abcdefghijk"})  # 2048 of them
    corner = [0.25] * space.dim
    for seed in range(5):
        points = candidate_and_rivals(
            search_on(space), bump(*corner, width=2.0), True, generator(seed)
        )
        assert len(points) == 2
        assert not torch.equal(points[0], points[1])
        assert configs(space, points[:1]) == [(1,) * 11]


def test_the_next_search_starts_from_the_last_optima():
    cube = search_on(SQUARE)
    candidate_and_rivals(cube, two_peaks, False, generator())
    assert torch.equal(cube.state_dict()["warm_starts"], cube._warm_starts)
    other = search_on(SQUARE, num_restarts=1)  # little but what it is given
    other.load_state_dict(cube.state_dict())
    points = candidate_and_rivals(other, two_peaks, False, generator())
    torch.testing.assert_close(points[0], torch.tensor([0.2, 0.2]).double(), atol=0.01, rtol=0)


def test_climbs_go_side_by_side_and_the_next_search_begins_where_they_ended():
    cube, tops = search_on(SQUARE), torch.tensor([[0.2, 0.3], [0.9, 0.6]]).double()

    def hills(X):  # one for each of the batch
        return -(X.squeeze(-2) - tops.unsqueeze(-2)).square().sum(-1)

    starts = torch.tensor([[0.4, 0.4], [0.5, 0.1]]).double().expand(2, 2, 2)
    peaks = cube.climb(hills, starts)
    torch.testing.assert_close(peaks, tops, atol=1e-3, rtol=0)
    seen = torch.tensor([[0.1, 0.1]]).double()
    fixed, others = cube.candidates(seen)
    assert fixed is cube.representatives()
    assert torch.equal(others, torch.cat([peaks, seen]))
    assert torch.equal(cube.order, torch.arange(len(fixed)))
    assert torch.equal(cube.spread(7), fixed[:7])
    other = search_on(SQUARE)
    assert torch.equal(other.candidates(seen)[1], seen)
    other.load_state_dict(cube.state_dict())
    assert torch.equal(other.candidates(seen)[1], others)


def test_among_finitely_many_points_the_field_is_all_of_them():
    for space in (GRID, SearchSpace({n: bc.Integer(1, 30) for n in "ab"})):
        found = search_on(space)
        fixed, others = found.candidates(found._points[:2])
        assert torch.equal(fixed, found._points)
        assert others.shape == (0, space.dim)
        starts = found._points[torch.tensor([[3, 5], [7, 1]])]  # the best of all points come first
        assert torch.equal(found.climb(lambda X: X.sum((-1, -2)), starts), starts[:, 0])


def test_flat_ground_does_not_pile_up_starts():
    """Every start on flat ground is an optimum, and would be started from again, for ever."""
    space = SearchSpace({n: bc.Real(0.0, 1.0) for n in "abcdefgh"})
    cube = search_on(space, num_restarts=120)
    draws = generator()
    for _ in range(6):
        candidate_and_rivals(cube, lambda X: 0 * X.sum((-1, -2)), False, draws)
    assert len(cube._warm_starts) == search._MOST_WARM_STARTS


def test_a_cube_is_anchored_at_what_was_found_and_spread_over_evenly_and_its_faces():
    state = torch.get_rng_state()
    space = SearchSpace({**dict(SQUARE.parameters), "n": bc.Integer(1, 3)})
    cube = CubeSearch(space.dim, space.round, Search(4, 0.2), DOUBLE)
    points = cube.representatives()
    assert torch.equal(points, space.round(points))
    assert torch.equal(points, cube.representatives())
    quarters = (points[:, :2] >= 0.5).double() @ torch.tensor([2.0, 1.0]).double()
    assert quarters.long().bincount().tolist() == [128] * 4
    on_a_face = ((points[:, :2] == 0) | (points[:, :2] == 1)).double().mean(0)
    assert on_a_face.tolist() == pytest.approx([0.5 * (1 - 1 / 1.6)] * 2, abs=0.02)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_points_have_the_dtype_of_the_search(dtype):
    for space in (SQUARE, GRID):
        found = search_of(space, Search(4, 0.2), {"dtype": dtype, "device": torch.device("cpu")})
        points = candidate_and_rivals(found, lambda X: X.sum((-1, -2)), True, generator())
        assert points.dtype == dtype
        assert found.climb(lambda X: X.sum((-1, -2)), points.unsqueeze(0)).dtype == dtype
        dtypes = {found.representatives().dtype, *(x.dtype for x in found.candidates(points))}
        assert dtypes == {dtype}
