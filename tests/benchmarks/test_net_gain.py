"""What a tuner hears of a round that costs more than another."""

import math

import pytest

from benchmarks.suite.protocol import Metrics
from benchmarks.training.schedule.methods import NetGainPolicy, extra_cost
from benchmarks.training.schedule.recipes import TRAIN, TUNE
from botorch_costly import Decision


class Listener:
    """Plays the arms it is given, queries always, and keeps what it hears."""

    def __init__(self, arms):
        self.arms, self.heard, self.round = arms, [], 0

    def ask(self):
        self.round += 1
        arm = {"arm": self.arms[self.round - 1]}
        return Decision(self.round - 1, arm, query=True, reason="always")

    def tell(self, decision, reward):
        self.heard.append(reward)

    def state_dict(self):
        return {"round": self.round}

    def load_state_dict(self, state):
        self.round = state["round"]


def heard(arms, losses, step_cost):
    listener = Listener(arms)
    policy = NetGainPolicy(listener, step_cost)
    for loss in losses:
        policy.query(policy.decide(), Metrics(loss, 0.5))
    return listener.heard


def test_a_tuning_round_pays_for_the_training_it_takes_the_place_of():
    # Each loss is 10 % less than the one before; a tuning round takes the time of 1.5 rounds.
    losses = [0.9**k for k in range(4)]
    gain = -math.log(0.9)
    first, trained, tuned, last = heard([TRAIN, TRAIN, TUNE, TRAIN], losses, step_cost=0.5)
    assert first is None
    assert trained == pytest.approx(gain)
    pace = 2 * gain / 2.5
    assert tuned == pytest.approx(gain - 0.5 * pace)
    assert last == pytest.approx(gain)


def test_while_training_gets_worse_its_time_is_worth_nothing():
    _, tuned = heard([TRAIN, TUNE], [1.0, 2.0], step_cost=1.0)
    assert tuned == pytest.approx(-math.log(2.0))


def test_rarer_tuning_costs_less():
    costs = [extra_cost({"arm": arm}, 2.0) for arm in (TRAIN, TUNE, "5 to 1")]
    assert costs == pytest.approx([0.0, 2.0, 0.4])


def test_a_run_goes_on_with_what_it_had_spent():
    arms, losses = [TRAIN, TUNE, TUNE, TRAIN], [1.0, 0.9, 0.7, 0.6]
    listener = Listener(arms)
    policy = NetGainPolicy(listener, 1.0)
    for loss in losses[:2]:
        policy.query(policy.decide(), Metrics(loss, 0.5))
    other = Listener(arms)
    again = NetGainPolicy(other, 1.0)
    again.load_state_dict(policy.state_dict())
    for loss in losses[2:]:
        again.query(again.decide(), Metrics(loss, 0.5))
    assert other.heard == pytest.approx(heard(arms, losses, 1.0)[2:])
