"""Gains against a reference."""

import json
import math

import pytest

from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from botorch_costly.rewards.gain import GainReward

nan, inf = math.nan, math.inf


# --- gains since the last query -----------------------------------------------------------------


def test_the_first_query_has_no_reference():
    assert GainReward("loss")(2.0, 0) is None


def test_loss_gains_are_log_ratios_per_elapsed_round():
    reward = GainReward("loss", scale=1.0)
    reward(2.0, 3)
    assert reward(1.0, 4) == pytest.approx(math.log(2))
    assert reward(0.25, 8) == pytest.approx(math.log(4) / 4)
    assert reward(0.5, 9) == pytest.approx(-math.log(2))


def test_accuracy_gains_are_percentage_points_per_elapsed_round():
    reward = GainReward("accuracy")
    reward(0.50, 0)
    assert reward(0.51, 1) == pytest.approx(1.0)
    assert reward(0.57, 5) == pytest.approx(1.5)
    assert reward(0.56, 6) == pytest.approx(-1.0)


def test_losses_gain_in_nats_and_no_more_than_one_by_default():
    reward = GainReward("loss")
    reward(1.0, 0)
    assert reward(math.exp(-0.15), 1) == pytest.approx(0.15)
    assert reward(100.0, 2) == -1.0


def test_gains_are_clipped_per_elapsed_round():
    reward = GainReward("accuracy", clip=2.0)
    reward(0.1, 0)
    assert reward(0.2, 10) == pytest.approx(1.0)  # 10 points, but 1 a round: not clipped
    assert reward(0.9, 11) == 2.0
    assert reward(0.0, 12) == -2.0
    free = GainReward("accuracy", clip=inf)
    free(0.0, 0)
    assert free(1.0, 1) == 100.0


@pytest.mark.parametrize("bad", [nan, inf, -inf])
@pytest.mark.parametrize("kind", ["loss", "accuracy"])
def test_failed_queries_leave_the_reference(kind, bad):
    reward = GainReward(kind, scale=1.0)
    assert math.isnan(reward(bad, 0))
    assert reward(0.5, 1) is None  # still without a reference
    assert math.isnan(reward(bad, 2))
    expected = math.log(2) if kind == "loss" else -0.25
    assert reward(0.25, 3) == pytest.approx(expected / 2)


def test_extreme_losses_do_not_overflow():
    reward = GainReward("loss", clip=inf, scale=1.0)
    reward(1e308, 0)
    assert reward(1e-308, 1) == pytest.approx(616 * math.log(10))


@pytest.mark.parametrize("round", [5, 4, -1, 6.0, True])
def test_rounds_go_forwards(round):
    reward = GainReward()
    reward(1.0, 5)
    with pytest.raises(InvalidArgumentError, match="round"):
        reward(0.9, round)
    assert reward.state_dict()["query"] == {"metric": 1.0, "round": 5, "interval": None}


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("loss", 0.0),
        ("loss", -1.0),
        ("accuracy", 1.01),
        ("accuracy", 57.0),
        ("accuracy", -0.1),
        ("loss", "1"),
        ("loss", None),
        ("accuracy", True),
    ],
)
def test_impossible_metrics_are_named(kind, metric):
    with pytest.raises(InvalidArgumentError, match="metric: Expected"):
        GainReward(kind)(metric, 0)
    with pytest.raises(InvalidArgumentError, match="metric: Expected"):
        GainReward(kind, "before_after").before(metric)


# --- gains before and after --------------------------------------------------------------------


def test_before_and_after_span_one_round():
    reward = GainReward("loss", "before_after", scale=1.0)
    reward.before(1.0)
    assert reward.after(0.5) == pytest.approx(math.log(2))
    reward.before(0.4)  # what happened in between is nobody's gain
    assert reward.after(0.4) == 0.0


def test_after_needs_its_own_before():
    reward = GainReward("loss", "before_after")
    with pytest.raises(InvalidArgumentError, match="before first"):
        reward.after(1.0)
    reward.before(1.0)
    reward.after(0.5)
    with pytest.raises(InvalidArgumentError, match="before first"):
        reward.after(0.4)


def test_failed_passes_before_or_after():
    reward = GainReward("loss", "before_after", scale=1.0)
    reward.before(nan)
    assert math.isnan(reward.after(0.5))
    reward.before(1.0)
    assert math.isnan(reward.after(inf))
    assert reward.after(0.5) == pytest.approx(math.log(2))  # reference unchanged: measure again


def test_each_reference_has_its_own_calls():
    with pytest.raises(InvalidArgumentError, match="calls of reward"):
        GainReward().before(1.0)
    with pytest.raises(InvalidArgumentError, match="calls of reward"):
        GainReward().after(1.0)
    with pytest.raises(InvalidArgumentError, match="calls of before and after"):
        GainReward(reference="before_after")(1.0, 0)


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "error"},
        {"reference": "best"},
        {"clip": 0.0},
        {"clip": nan},
        {"scale": -1.0},
        {"scale": inf},
        {"kind": None},
    ],
)
def test_unknown_options_are_named(options):
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        GainReward(**options)


# --- state -------------------------------------------------------------------------------------


@pytest.mark.parametrize("queries", [[], [(2.0, 0)], [(2.0, 0), (nan, 3)], [(2.0, 0), (1.5, 3)]])
def test_state_continues_as_if_never_stopped(queries):
    one, two = GainReward("loss"), GainReward("loss")
    for metric, round in queries:
        one(metric, round)
    two.load_state_dict(json.loads(json.dumps(one.state_dict())))
    assert one(1.4, 7) == two(1.4, 7)


def test_state_between_before_and_after():
    one, two = (GainReward("accuracy", "before_after") for _ in range(2))
    one.before(0.5)
    two.load_state_dict(one.state_dict())
    assert one.after(0.51) == two.after(0.51) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "accuracy"},
        {"reference": "before_after"},
        {"clip": 0.5},
        {"scale": 10.0},
        {"query": None},
        {"query": {"loss": 1.0}},
        {"extra": 1},
        {"query": {"metric": "1", "round": 0}},
        {"query": {"metric": 1.0, "round": -1}},
    ],
)
def test_foreign_states_are_named(change):
    reward = GainReward("loss")
    reward(1.0, 2)
    with pytest.raises(StateMismatchError):
        reward.load_state_dict({**reward.state_dict(), **change})
    with pytest.raises(StateMismatchError):
        reward.load_state_dict({})
    assert reward.state_dict()["query"] == {"metric": 1.0, "round": 2, "interval": None}
