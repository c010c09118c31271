"""What is known of a training whose segments stop early, going on or begun anew."""

import random

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from tests.tuners.curves.playing import LENGTH, made


@pytest.mark.parametrize("resumes", [False, True])
def test_a_training_knows_the_latest_value_of_each_iteration(resumes):
    """The naive twin is a dictionary; a training that begins anew may stop before what is known."""
    optimizer, told, drawn = made(resumes=resumes), {}, random.Random(3)
    config, number, reached = {"lr": 0.01, "width": 5}, None, 0
    while reached < LENGTH:
        segment = optimizer.enqueue(config, drawn.randint(reached + 1, LENGTH), training=number)
        curve = [
            drawn.choice([None, drawn.random()])
            for _ in range(drawn.randint(1, min(segment.iterations, 6 if resumes else LENGTH)))
        ]
        optimizer.tell(segment, curve, broken=False)
        for at, value in enumerate(curve, segment.since + 1):
            told.update({} if value is None else {at: value})
        (training,) = optimizer.trainings
        number, reached = training.number, max(reached, segment.since + len(curve))
        assert {at: training.curve[at - 1] for at in training.known} == told
        assert (training.done, training.may_go_on) == (reached, reached < LENGTH)
    again = made(resumes=resumes)
    again.load_state_dict(optimizer.state_dict())
    (loaded,) = again.trainings
    assert loaded.known == training.known
    assert loaded.latest == training.latest


def test_what_was_begun_anew_and_stopped_early_stays_the_best():
    optimizer = made(resumes=False)
    good, bad = (optimizer.enqueue({"lr": lr, "width": 5}, 4) for lr in (0.01, 0.1))
    optimizer.tell(good, [0.1, 0.2, 0.3, 0.9], cost=4.0)
    optimizer.tell(bad, [0.1, 0.2, 0.3, 0.4], cost=4.0)
    for curve in ([0.15], [None], [0.12, 0.25]):
        longer = optimizer.enqueue(good.config, 8, training=good.training)
        optimizer.tell(longer, curve, cost=1.0)
        assert optimizer.best() == dict(good.config)
    best = optimizer.best_training
    assert best.curve == (0.12, 0.25, 0.3, 0.9)
    assert (best.done, best.iterations, best.paid) == (4, 8, 7.0)


@pytest.mark.parametrize("resumes", [False, True])
def test_a_training_that_comes_to_nothing_twice_is_left(resumes):
    space = bc.SearchSpace({"arm": bc.Choice(["good", "bad"])})
    optimizer = bc.CurveOptimizer(space, 16, resumes=resumes)
    for arm, value in (("good", 1.0), ("bad", -1.0)):
        optimizer.tell(optimizer.enqueue({"arm": arm}, 2), [0.0, value], cost=2.0)
    asked = []
    for _ in range(4):
        segment = optimizer.ask()
        assert (segment.since, segment.until) == (2 if resumes else 0, 4)
        told = optimizer.tell(segment, None, cost=1.0)
        assert (told.curve, told.failed, told.broken) == ((), True, False)
        asked.append(segment.config["arm"])
    assert sorted(asked) == ["bad", "bad", "good", "good"]
    with pytest.raises(errors.HorizonExceededError, match="left"):
        optimizer.ask()
    good, bad = optimizer.trainings
    assert (good.curve, good.paid, good.iterations) == ((0.0, 1.0), 4.0, 2)
    assert good.is_left
    assert good.may_go_on
    assert optimizer.best_training == good
    assert "2 of them left" in optimizer.summary()
    again = bc.CurveOptimizer(space, 16, resumes=resumes)
    again.load_state_dict(optimizer.state_dict())
    assert again.trainings == optimizer.trainings
    longer = again.enqueue({"arm": "bad"}, 4, training=bad.number)  # a user may
    again.tell(longer, [0.5] * longer.iterations, cost=1.0)
    assert again.ask().config["arm"] == "bad"  # it has come farther, and is no longer left


def test_one_that_came_to_nothing_once_goes_on():
    optimizer = made(resumes=True)
    first = optimizer.enqueue({"lr": 0.01, "width": 5}, 4)
    optimizer.tell(first, [0.1] * 4)
    for curve, stalled in ((None, 1), ([0.2], 0), (None, 1), ([None], 0), (None, 1), (None, 2)):
        segment = optimizer.enqueue(first.config, LENGTH, training=0)
        optimizer.tell(segment, curve)
        (training,) = optimizer.trainings
        assert (training.stalled, training.is_left) == (stalled, stalled == 2)
    assert optimizer.total_cost == 4 + 6  # what came to nothing counts as one iteration
    assert training.done == 6


def test_a_first_segment_that_came_to_nothing_may_have_diverged():
    optimizer = made()
    first, other = optimizer.ask(), optimizer.ask()
    assert optimizer.tell(first, None, broken=True).broken
    assert not optimizer.tell(other, None).broken
    assert [one.done for one in optimizer.trainings] == [0, 0]
    assert optimizer.ask().training == 2


def test_one_begun_anew_that_always_stops_before_what_is_known_is_left():
    optimizer = made(resumes=False)
    first = optimizer.enqueue({"lr": 0.01, "width": 5}, 4)
    optimizer.tell(first, [0.1] * 4)
    for stalled in (1, 2):
        longer = optimizer.enqueue(first.config, LENGTH, training=0)
        optimizer.tell(longer, [0.3, 0.4])
        (training,) = optimizer.trainings
        assert (training.stalled, training.is_left) == (stalled, stalled == 2)
    assert training.curve == (0.3, 0.4, 0.1, 0.1)  # the latest of what was shown


@pytest.mark.parametrize("wild", [1e6, 1e300])
def test_a_training_far_above_all_others_counts_as_the_best_of_these_until_others_confirm_it(wild):
    optimizer = made()
    trainings = optimizer._strategy.trainings

    space = optimizer.space
    points = iter(space.sample(6, torch.Generator().manual_seed(0)))

    def told(value):
        segment = optimizer.enqueue(space.decode(next(points)))
        optimizer.tell(segment, [value])

    for value in (0.1, 0.2, 0.4, wild):
        told(value)
    assert trainings.highest == trainings.best_latest == 0.4
    assert float(trainings.rewards.max()) == 0.4
    for value in (wild, 0.9 * wild):
        told(value)
    assert trainings.highest == wild
