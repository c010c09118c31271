"""After a single study, the best configuration that it observed is evaluated first."""

import math

import pytest

import botorch_costly as bc

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0), "y": bc.Real(0.0, 1.0)})


def study_of_one_axis():
    """A study whose few values tell nothing of ``y``, and little of ``x`` between them."""
    good = [(0.42, 0.72, 0.96), (0.40, 0.54, 0.47), (0.42, 0.56, 0.81), (0.96, 0.53, 0.97)]
    bad = [(0.0, 0.3, 0.1), (0.15, 0.1, 0.1), (0.2, 0.88, 0.1), (0.09, 0.04, 0.1), (0.8, 0.97, 0.1)]
    rows = [
        *good,
        *bad,
        (0.31, 0.69, 0.59),
        (0.69, 0.32, 0.92),
        (0.69, 0.84, 0.92),
        (0.02, 0.75, 0.1),
    ]
    return bc.Task([{"x": x, "y": y} for x, y, _ in rows], [value for *_, value in rows])


@pytest.mark.parametrize("warm_start", [0, 1, 3])
def test_the_first_configuration_after_a_single_study_is_the_best_that_it_observed(warm_start):
    task = study_of_one_axis()
    optimizer = bc.TransferOptimizer(SPACE, [task], warm_start=warm_start)
    first = [dict(optimizer.ask().config) for _ in range(max(warm_start, 1))]
    observed = [tuple(config.values()) for config in task.configs]
    assert all(any(math.dist(c.values(), o) < 1e-9 for o in observed) for c in first)
    assert dict(first[0]) in [{"x": 0.96, "y": 0.53}, {"x": 0.42, "y": 0.72}]  # .97 and .96
    assert optimizer.ask().reason != optimizer.decisions[0].reason


def test_after_a_single_study_a_list_begins_with_what_was_observed_if_it_holds_it():
    task = study_of_one_axis()
    elsewhere = [{"x": k / 10, "y": 1.0} for k in range(11)]
    known = [dict(task.configs[number]) for number in (1, 3, 5)]
    optimizer = bc.TransferOptimizer(SPACE, [task], candidates=[*elsewhere, *known])
    assert dict(optimizer.ask().config) == known[1]
    other = bc.TransferOptimizer(SPACE, [task], candidates=elsewhere)
    assert dict(other.ask().config) in elsewhere


def test_as_published_the_bound_decides_at_once():
    optimizer = bc.TransferOptimizer(SPACE, [study_of_one_axis()], robust=bc.ByGaps())
    assert "portfolio" not in optimizer.ask().reason
