"""Curves that stand still."""

import math

import pytest

from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.standstill import Movement, movements
from tests.oracles.growth import chance_of_movement
from tests.tuners.curves.test_ranks import training, trainings_of

LADDER = Ladder(1)  # rungs of 16 iterations: 1, 2, 4, 8, 12, 16
STILL = training(0, 0.1, [0.5] * 4)  # segments: one value, still, still
MOVING = training(1, 0.3, [0.1, 0.2, 0.3, 0.4])
MOVED = training(2, 0.5, [0.2, 0.2, 0.2, 0.9])
UNKNOWN = training(3, 0.7, [0.5, math.nan, math.nan, math.nan])
WHOLE = training(4, 0.9, [0.4] * 16)


def test_a_training_that_moves_has_no_entry():
    assert movements(trainings_of(MOVING, MOVED, UNKNOWN), LADDER) == {}


def test_it_is_estimated_from_the_segments_that_followed():
    found = movements(trainings_of(STILL), LADDER)
    # One segment followed one that stood still, and stood still as well.
    assert found == {0: Movement(pytest.approx(1 / 3), pytest.approx(1 - (2 / 3) ** 3))}


def test_it_is_the_chance_of_the_text():
    segments = [[False, True, True], [False, True, False], [False, True, True, True, True, True]]
    found = movements(trainings_of(STILL, MOVED, MOVING, WHOLE), LADDER)
    soon = pytest.approx(chance_of_movement(segments, 1))
    ever = pytest.approx(chance_of_movement(segments, 3))
    assert found == {0: Movement(soon, ever), 4: Movement(soon, 0.0)}


def test_iterations_without_a_value_are_no_movement():
    gaps = training(0, 0.1, [0.5, 0.5, math.nan, 0.5])
    assert movements(trainings_of(gaps), LADDER).keys() == {0}


def test_a_single_value_or_none_does_not_stand_still():
    begun = training(0, 0.1, [0.5]), training(1, 0.2, []), training(2, 0.3, [math.nan] * 3)
    assert movements(trainings_of(*begun), LADDER) == {}


def test_a_segment_without_a_value_is_no_movement():
    gap = training(0, 0.1, [0.1] * 4 + [math.nan] * 4)
    begun = training(0, 0.1, [0.1] * 4)
    assert (
        movements(trainings_of(gap), LADDER)[0].soon
        == movements(trainings_of(begun), LADDER)[0].soon
    )
    later = training(1, 0.3, [0.1] * 4 + [math.nan] * 4 + [0.1] * 8)
    flat = training(1, 0.3, [0.1] * 16)
    with_gap, without = (
        movements(trainings_of(begun, other), LADDER)[0] for other in (later, flat)
    )
    assert with_gap.soon < 0.3
    assert without.soon < 0.3
