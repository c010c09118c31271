"""Gains of a round alone."""

import json
import math

import pytest

from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from botorch_costly.rewards import BeforeAfterReward, GainReward

nan, inf = math.nan, math.inf


def test_before_and_after_span_one_round():
    reward = BeforeAfterReward("loss", scale=1.0)
    reward.before(1.0)
    assert reward.after(0.5) == pytest.approx(math.log(2))
    reward.before(0.4)  # what happened in between belongs to no round
    assert reward.after(0.4) == 0.0


def test_after_needs_its_own_before():
    reward = BeforeAfterReward("loss")
    with pytest.raises(InvalidArgumentError, match="before first"):
        reward.after(1.0)
    reward.before(1.0)
    reward.after(0.5)
    with pytest.raises(InvalidArgumentError, match="before first"):
        reward.after(0.4)


def test_failed_passes_before_or_after():
    reward = BeforeAfterReward("loss", scale=1.0)
    reward.before(nan)
    assert math.isnan(reward.after(0.5))
    reward.before(1.0)
    assert math.isnan(reward.after(inf))
    assert reward.after(0.5) == pytest.approx(math.log(2))  # reference unchanged: measure again


def test_each_class_has_its_own_calls():
    assert not callable(BeforeAfterReward())
    assert not hasattr(GainReward(), "before")
    assert not hasattr(GainReward(), "after")


def test_gains_are_clipped():
    reward = BeforeAfterReward("accuracy")
    reward.before(0.5)
    assert reward.after(0.9) == 2.0


def test_state_between_before_and_after():
    one, two = (BeforeAfterReward("accuracy") for _ in range(2))
    one.before(0.5)
    two.load_state_dict(json.loads(json.dumps(one.state_dict())))
    assert one.after(0.51) == two.after(0.51) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "change",
    [{"kind": "accuracy"}, {"clip": 0.5}, {"before": "0.5"}, {"before": -1.0}, {"extra": 1}],
)
def test_foreign_states_are_named(change):
    reward = BeforeAfterReward("loss")
    reward.before(1.0)
    for state in ({**reward.state_dict(), **change}, {}, GainReward("loss").state_dict()):
        with pytest.raises(StateMismatchError):
            reward.load_state_dict(state)
    assert reward.state_dict()["before"] == 1.0
