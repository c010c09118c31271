"""The record of what was told."""

import math

import pytest
import torch

from botorch_costly import Decision, Observation
from botorch_costly.ask_tell.observed import observation_of
from botorch_costly.errors import InvalidArgumentError

DECISION = Decision(4, {"lr": 0.1}, query=True, reason="")


@pytest.mark.parametrize(
    ("reward", "expected", "failed"),
    [
        (torch.tensor(2), 2.0, False),
        (None, None, False),
        (math.nan, None, True),
        (-math.inf, None, True),
    ],
    ids=str,
)
def test_a_reward_becomes_a_record(reward, expected, failed):
    told = observation_of(DECISION, reward, seconds=3.0)
    assert told == Observation(4, {"lr": 0.1}, expected, failed=failed, seconds=3.0)


def test_what_cannot_be_recorded_is_named():
    with pytest.raises(InvalidArgumentError, match="reward: Expected a number; Received"):
        observation_of(DECISION, "much")
    with pytest.raises(InvalidArgumentError, match="seconds"):
        observation_of(DECISION, 1.0, seconds=-1.0)
