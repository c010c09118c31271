"""Optima that appear while nothing is learnt: found in parts, a part a round."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import botorch_costly as bc
from botorch_costly.acquisition import TimeVaryingUCB
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.optim.local_optima import local_optima
from botorch_costly.query import Progress
from botorch_costly.tuners.online import path_following
from botorch_costly.tuners.online.newcomers import Followed, Watch
from botorch_costly.tuners.online.path_following import RoundsAhead, SearchResult
from tests.cases import quick
from tests.tuners.online.playing import make, through_a_file
from tests.tuners.online.states import same
from tests.tuners.online.test_path_following import believed, cube, searches_of, strategy_on

ROUNDS = 60


def decide(strategy, belief, now, generator, again=True):
    progress = Progress(now + 1, now, 500, belief.forgetting)
    return strategy.decide(belief, progress, True, generator, again)


def all_optima(belief, now, dim):
    bounds = torch.tensor([[0.0] * dim, [1.0] * dim], dtype=torch.float64)
    return local_optima(TimeVaryingUCB(belief, 1.0, now), bounds, 200).points


@pytest.mark.parametrize("dim", quick([1, 2], 1))
def test_optima_that_are_not_followed_are_found_without_a_whole_search(dim):
    missed = others = searched = 0
    for seed in range(6):
        belief, strategy = believed(dim, seed, ratio=0.15), strategy_on(cube(dim))
        generator = torch.Generator().manual_seed(seed)
        decide(strategy, belief, 40, generator, again=False)
        paths, searches = strategy._rivals.paths, searches_of(strategy)
        best = paths.search.optima[:1]
        paths.begin(paths.search._replace(optima=best))  # as if the others were new
        for now in range(41, 101):
            play = decide(strategy, belief, now, generator)
        last = all_optima(belief, 100, dim)
        others += len(last) - 1
        missed += int((torch.cdist(last, paths.search.optima).amin(-1) > 0.1).sum())
        searched += len(searches)
        assert torch.linalg.vector_norm(play.query_at - last[0]) < 0.02
    assert others >= 6
    assert missed <= others // 5
    assert searched <= 2


class _Operations(TorchDispatchMode):
    """Counts operations."""

    def __init__(self):
        super().__init__()
        self.number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.number += 1
        return func(*args, **(kwargs or {}))


def test_no_waiting_round_takes_a_search():
    belief, strategy = believed(5, 0, rows=120), strategy_on(cube(5), restarts=50)
    generator = torch.Generator().manual_seed(0)
    with _Operations() as search:
        decide(strategy, belief, 120, generator, again=False)
    counts = []
    for later in range(1, ROUNDS):
        with _Operations() as operations:
            decide(strategy, belief, 120 + later, generator)
        counts.append(operations.number)
    assert max(counts) < 0.7 * search.number
    assert sorted(counts)[int(0.8 * len(counts))] < 60  # most rounds read a plan


def test_a_run_saved_in_the_middle_of_a_search_for_newcomers_goes_on_identically():
    def build():
        return make(
            cube(2),
            horizon=200,
            query=bc.ConfidenceQuery(1e-9),
            acquisition="ucb",
            forgetting=0.05,
            initial_rounds=12,
        )

    whole, relay = build(), build()
    in_the_middle = 0
    for i in range(80):
        for tuner in (whole, relay):
            decision = tuner.ask()
            if i < 12:
                tuner.tell(decision, math.sin(5 * sum(decision.config.values())))
        followed = whole._rivals.paths.search
        in_the_middle += followed is not None and followed.newcomers is not None
        fresh = build()
        fresh.load_state_dict(through_a_file(relay.state_dict()))
        relay = fresh
    assert in_the_middle >= 6
    assert relay.history == whole.history
    assert same(relay.state_dict(), whole.state_dict())


def test_a_state_of_an_earlier_version_is_continued():
    def build():
        return make(cube(2), query=bc.ConfidenceQuery(1e-9), acquisition="ucb", initial_rounds=4)

    tuner, other = build(), build()
    for i in range(7):
        decision = tuner.ask()
        if i < 4:
            tuner.tell(decision, math.sin(i))
    state = tuner.state_dict()
    rivals = state["strategy"]["rivals"]
    rivals["followed"] = rivals["followed"][:3]  # no first round, and no newcomers
    other.load_state_dict(state)
    assert other.ask().config == tuner.ask().config


def peaks(*places, height=(), dim=2):
    """Return a belief with a reward at each place, and the bound of its newest round."""
    one = torch.ones((), dtype=torch.float64)
    belief = StreamingGP(Stationary("matern52", 0.1 * one.reshape(1), one), 0.02, 0.01)
    for place, reward in zip(places, height, strict=True):
        x = torch.full((dim,), place, dtype=torch.float64)
        belief.observe(torch.cat([x, x.new_zeros(1)]), reward)
    return belief, belief.snapshot(0).upper_bound(one * 0.01)


def watch_of(dim=2):
    bounds = torch.tensor([[0.0] * dim, [1.0] * dim], dtype=torch.float64)
    strategy = strategy_on(cube(dim))
    return Watch(bounds, strategy._rivals.search.representatives(), 0.2)


def followed_at(bound, *points, left=(), ended=()):
    points = torch.tensor(points, dtype=torch.float64)
    flags = [
        torch.tensor([i in which for i in range(len(points))], dtype=torch.bool)
        for which in (left, ended)
    ]
    return Followed(points, bound(points.unsqueeze(-2)), *flags)


def searched(watch, bound, followed):
    """Return the result of all parts of a search."""
    generator = torch.Generator().manual_seed(0)
    values = bound(watch.points.unsqueeze(-2))
    points = watch.begin(bound, generator, values, followed)
    return watch.end(bound, watch.go_on(bound, points, followed), followed)


def test_a_search_in_parts_finds_what_a_search_in_one_go_finds():
    _, bound = peaks(0.1, 0.5, 0.85, height=(1.0, 2.0, 1.5))
    watch = watch_of()
    found = searched(watch, bound, followed_at(bound, [0.5, 0.5]))
    whole = local_optima(bound, watch.bounds, 200)
    high = whole.points[whole.values > 0.5]
    assert len(high) == 3
    assert torch.cdist(high, found).amin(-1).max() < 0.01


def test_an_optimum_that_has_ended_is_left_out_unless_it_is_the_best():
    _, bound = peaks(0.1, 0.85, height=(1.0, 1.5))
    watch = watch_of()
    poor = followed_at(bound, [0.85, 0.85], [0.5, 0.45], ended=(1,))
    assert torch.cdist(searched(watch, bound, poor), poor.points[1:]).min() > 0.1
    best = followed_at(bound, [0.85, 0.85], ended=(0,))
    torch.testing.assert_close(watch.end(bound, best.points[:0], best), best.points)


def test_an_optimum_that_has_left_its_neighbourhood_is_replaced_by_the_maximum_near_it():
    _, bound = peaks(0.1, 0.85, height=(1.0, 1.5))
    watch = watch_of()
    top = local_optima(bound, watch.bounds, 200).points[0]
    moved = followed_at(bound, (top - 0.03).tolist(), [0.1, 0.1], left=(0,))
    moved = moved._replace(values=moved.values + 1)  # as in an earlier round, with a higher bound
    found = searched(watch, bound, moved)
    distance = torch.linalg.vector_norm(found - top, dim=-1)
    assert distance.min() < 1e-3
    assert int((distance < 0.2).sum()) == 1


def test_newcomers_of_a_box_are_those_of_the_cube_that_it_is_mapped_to():
    _, bound = peaks(0.1, 0.5, 0.85, height=(1.0, 2.0, 1.5))
    box = torch.tensor([[0.3, 0.3], [1.0, 1.0]], dtype=torch.float64)
    strategy = strategy_on(cube(2))
    strategy._rivals.confine(box)
    watch = Watch(box, strategy._rivals.search.representatives(), 0.2)
    found = searched(watch, bound, followed_at(bound, [0.5, 0.5]))
    assert torch.cdist(found, found.new_tensor([[0.85, 0.85]])).min() < 0.02
    assert bool(((found >= box[0]) & (found <= box[1])).all())


def test_corners_without_hessians_have_the_plan_that_they_have_with_them(monkeypatch):
    belief = believed(6, 1, rows=30, ratio=0.5, forgetting=0.01)
    corners = torch.cartesian_prod(*6 * [torch.tensor([0.0, 1.0], dtype=torch.float64)])
    inner = torch.full((1, 6), 0.5, dtype=torch.float64)

    def plan():
        paths = strategy_on(cube(6))._rivals.paths
        search = SearchResult(torch.cat([corners, inner]), belief.retained(31), None)
        retained = [belief.retained(now) for now in range(31, 41)]
        return paths._plan_around(search, belief, RoundsAhead(31, lambda t: 1.0), False, retained)

    some = plan()
    monkeypatch.setattr(path_following, "_MANY", 1000)
    every = plan()
    for ours, expected in zip(some.paths[:2], every.paths[:2], strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(some.variance, every.variance, rtol=1e-9, atol=1e-9)
    assert int(some.valid) == int(every.valid)
