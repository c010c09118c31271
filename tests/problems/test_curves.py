"""Recorded learning curves."""

import math

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.problems import CurveProblem

NAN = math.nan
REWARDS = [
    [0.1, 0.3, 0.6, 0.5],  # whole
    [0.2, 0.4, NAN, NAN],  # whole after two
    [0.3, NAN, NAN, NAN],  # breaks after one of three
    [NAN, NAN, NAN, NAN],  # breaks at once
]
ELAPSED = [[2.0, 4.0, 7.0, 9.0], [1.0, 3.0, NAN, NAN], [5.0, NAN, NAN, NAN], [NAN] * 4]
LENGTHS = [4, 2, 3, 4]


def problem(**changes):
    parts = {"rewards": REWARDS, "elapsed": ELAPSED, "lengths": LENGTHS, **changes}
    rewards = torch.tensor(parts["rewards"], dtype=torch.float64)
    elapsed = torch.tensor(parts["elapsed"], dtype=torch.float64)
    return CurveProblem(
        torch.rand(len(rewards), 2), rewards, elapsed, parts["lengths"], startup=0.5
    )


def test_ends_costs_and_what_is_whole():
    curves = problem()
    assert len(curves) == 4
    assert curves.ends.tolist() == pytest.approx([0.5, 0.4, 0.3, NAN], nan_ok=True)
    assert curves.costs.tolist() == [9.0, 3.0, 5.0, 0.5]
    assert curves.whole.tolist() == [True, True, False, False]
    assert (curves.best, curves.worst) == (0.5, 0.1)


@pytest.mark.parametrize("stops", [[4], [1, 4], [1, 2, 3, 4], [3, 4]])
def test_a_training_in_parts_shows_and_costs_what_it_does_at_once(stops):
    curves, since, cost = problem(), 0, 0.0
    for until in stops:
        segment = curves.advance(0, since, until)
        assert segment.curve.tolist() == REWARDS[0][:until]
        since, cost = until, cost + segment.cost
    assert cost == pytest.approx(9.0)
    assert not segment.broken


def test_a_training_that_diverges_has_cost_the_time_until_then():
    curves = problem()
    segment = curves.advance(2, 0, 3)
    assert segment.broken
    assert (segment.curve.tolist(), segment.cost) == ([0.3], 5.0)
    assert not curves.advance(2, 0, 1).broken
    assert curves.advance(2, 1, 2)[1:] == (0.0, True)
    assert curves.advance(3, 0, 1).cost == 0.5


@pytest.mark.parametrize(
    ("config", "since", "until", "name"),
    [(0, 2, 2, "until"), (1, 0, 3, "until"), (2, 2, 3, "since"), (0, -1, 2, "since")],
)
def test_what_cannot_go_on_is_named(config, since, until, name):
    with pytest.raises(InvalidArgumentError, match=f"{name}: Expected"):
        problem().advance(config, since, until)


@pytest.mark.parametrize(
    ("changes", "error", "name"),
    [
        ({"lengths": [4, 2, 3]}, InvalidShapeError, "lengths"),
        ({"lengths": [5, 2, 3, 4]}, InvalidArgumentError, "lengths"),
        ({"lengths": [0, 2, 3, 4]}, InvalidArgumentError, "lengths"),
        ({"elapsed": ELAPSED[:3]}, InvalidShapeError, "elapsed"),
        ({"elapsed": [[2.0, 1.0, 7.0, 9.0], *ELAPSED[1:]]}, InvalidArgumentError, "elapsed"),
        ({"rewards": [[NAN] * 4] * 4}, InvalidArgumentError, "rewards"),
    ],
)
def test_tables_that_make_no_sense_are_refused(changes, error, name):
    with pytest.raises(error, match=f"{name}: Expected"):
        problem(**changes)
