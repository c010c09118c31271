"""Which of several beliefs decides."""

import math
import random
from dataclasses import replace

import pytest

from botorch_costly.tuners.curves.shares import Shares
from tests.tuners.curves.test_ranks import training, trainings_of

BAR = 0.5
BEGUN = training(0, 0.1, [0.1, 0.2])


def loss(chance, happened):
    return -math.log(0.9 * (chance if happened else 1 - chance) + 0.05)


def told(shares, chances, value, *, until=4, **more):
    """Let the beliefs foretell a segment of training 0, and tell its last value."""
    shares.foretell(BEGUN, until, BAR, chances)
    shares.learn(trainings_of(training(0, 0.1, [0.1, 0.1, 0.1, value], **more)))


def test_weights_are_those_of_the_log_losses():
    shares = Shares(2)
    told(shares, (0.9, 0.2), 0.7)
    told(shares, (0.6, 0.3), 0.2)
    losses = [loss(0.9, True) + loss(0.6, False), loss(0.2, True) + loss(0.3, False)]
    factors = [math.exp(-0.5 * value) for value in losses]
    assert shares.weights == pytest.approx([factor / sum(factors) for factor in factors])


def test_without_a_difference_the_turns_alternate():
    shares = Shares(3)
    turns = [shares.turn() for _ in range(9)]
    assert sorted(turns[:3]) == [0, 1, 2]
    assert [turns.count(member) for member in range(3)] == [3, 3, 3]


def test_turns_follow_the_weights():
    shares = Shares(2)
    for _ in range(4):
        told(shares, (0.5, 0.9), 0.7)
    weights, turns = shares.weights, [shares.turn() for _ in range(200)]
    assert turns.count(1) == pytest.approx(200 * weights[1], abs=1)


@pytest.mark.parametrize("seed", range(5))
def test_the_mixture_foretells_almost_as_well_as_the_best_belief(seed):
    """The bound of exponential weights, log M / eta, for beliefs that are right by turns."""
    draw, shares, mixed = random.Random(seed), Shares(3), 0.0
    losses = [0.0, 0.0, 0.0]
    for step in range(200):
        happened = draw.random() < 0.5
        chances = [draw.random() for _ in range(3)]
        chances[step // 70] = 0.8 if happened else 0.3
        each = [loss(chance, happened) for chance in chances]
        weights = shares.weights
        mixed -= math.log(sum(w * math.exp(-value) for w, value in zip(weights, each, strict=True)))
        losses = [total + value for total, value in zip(losses, each, strict=True)]
        told(shares, chances, 0.7 if happened else 0.2)
    assert mixed <= min(losses) + math.log(3) / 0.5


def test_an_equal_value_does_not_exceed_the_bar():
    shares = Shares(2)
    told(shares, (0.9, 0.2), BAR)
    assert shares.weights[1] > shares.weights[0]


def test_a_segment_without_a_value_decides_nothing():
    shares = Shares(2)
    shares.foretell(BEGUN, 4, BAR, (0.9, 0.2))
    shares.learn(trainings_of(replace(BEGUN, curve=(*BEGUN.curve, math.nan, math.nan))))
    assert shares.weights == [0.5, 0.5]
    assert shares.state_dict()["open"] == []


def test_a_training_that_diverged_did_not_exceed_the_bar():
    shares = Shares(2)
    told(shares, (0.9, 0.2), 0.9, until=8, broken=True)
    assert shares.weights[1] > shares.weights[0]


def test_a_forecast_waits_for_its_segment_and_is_forgotten_without_it():
    shares = Shares(2)
    shares.foretell(BEGUN, 8, BAR, (0.9, 0.1))
    shares.learn(trainings_of(replace(BEGUN, until=8)))
    assert len(shares.state_dict()["open"]) == 1
    shares.learn(trainings_of(BEGUN))  # cancelled, failed, or stopped before
    assert shares.state_dict()["open"] == []
    shares.foretell(BEGUN, 8, BAR, (0.9, 0.1))
    shares.learn(trainings_of())
    assert shares.state_dict()["open"] == []
    assert shares.weights == [0.5, 0.5]


def test_a_state_continues():
    shares, other = Shares(2), Shares(2)
    told(shares, (0.9, 0.2), 0.7)
    shares.turn()
    shares.foretell(BEGUN, 8, BAR, (0.9, 0.1))
    other.load_state_dict(shares.state_dict())
    assert other.state_dict() == shares.state_dict()
    assert [other.turn() for _ in range(5)] == [shares.turn() for _ in range(5)]
