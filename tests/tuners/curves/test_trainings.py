"""What is known of a training whose stretches stop early, going on or begun anew."""

import random

import pytest

from tests.tuners.curves.playing import LENGTH, made


@pytest.mark.parametrize("resumes", [False, True])
def test_a_training_knows_the_latest_value_of_each_iteration(resumes):
    """The naive twin is a dictionary; a training that begins anew may stop before what is known."""
    optimizer, told, drawn = made(resumes=resumes), {}, random.Random(3)
    config, number, reached = {"lr": 0.01, "width": 5}, None, 0
    while reached < LENGTH:
        stretch = optimizer.adopt(config, drawn.randint(reached + 1, LENGTH), training=number)
        curve = [
            drawn.choice([None, drawn.random()])
            for _ in range(drawn.randint(1, min(stretch.iterations, 6 if resumes else LENGTH)))
        ]
        optimizer.tell(stretch, curve, broken=False)
        for at, value in enumerate(curve, stretch.since + 1):
            told.update({} if value is None else {at: value})
        (training,) = optimizer.trainings
        number, reached = training.number, max(reached, stretch.since + len(curve))
        assert {at: training.curve[at - 1] for at in training.known} == told
        assert (training.done, training.may_go_on) == (reached, reached < LENGTH)
    again = made(resumes=resumes)
    again.load_state_dict(optimizer.state_dict())
    (loaded,) = again.trainings
    assert loaded.known == training.known
    assert loaded.latest == training.latest


def test_what_was_begun_anew_and_stopped_early_stays_the_best():
    optimizer = made(resumes=False)
    good, bad = (optimizer.adopt({"lr": lr, "width": 5}, 4) for lr in (0.01, 0.1))
    optimizer.tell(good, [0.1, 0.2, 0.3, 0.9], cost=4.0)
    optimizer.tell(bad, [0.1, 0.2, 0.3, 0.4], cost=4.0)
    for curve in ([0.15], [None], [0.12, 0.25]):
        longer = optimizer.adopt(good.config, 8, training=good.training)
        optimizer.tell(longer, curve, cost=1.0)
        assert optimizer.best_seen() == dict(good.config)
    best = optimizer.best_training
    assert best.curve == (0.12, 0.25, 0.3, 0.9)
    assert (best.done, best.iterations, best.paid) == (4, 8, 7.0)
