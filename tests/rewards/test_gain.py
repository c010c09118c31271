"""Gains since the last query."""

import json
import math
from itertools import pairwise

import pytest

from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from botorch_costly.records import Decision
from botorch_costly.rewards import BeforeAfterReward, GainReward
from botorch_costly.rewards.metric_gain import least_loss, log_gain
from tests.oracles import gains as oracle

nan, inf = math.nan, math.inf


def last(metric, round):
    when = {"round": round, "interval": None, "given": "round"}
    return {"metric": metric, **when, "least": metric}


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


@pytest.mark.parametrize("round", [5, 4, -1, 6.5, True])
def test_rounds_go_forwards(round):
    reward = GainReward()
    reward(1.0, 5)
    with pytest.raises(InvalidArgumentError, match="round"):
        reward(0.9, round)
    assert reward.state_dict()["last"] == last(1.0, 5)


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
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
        BeforeAfterReward(kind).before(metric)


# --- a loss of exactly 0: a legal extreme of a metric is no error, and no gain or loss without end ----


def test_a_loss_of_zero_counts_as_the_smallest_so_far():
    reward = GainReward("loss", clip=100.0)
    told = [reward(loss, round) for round, loss in enumerate([0.5, 0.1, 0.0, 0.0, 0.2, 0.05, 0.0])]
    expected = [None, 5.0, 1.0, 1.0, 0.5, 4.0, 1.0]  # ratios of losses
    assert told == [None if r is None else pytest.approx(math.log(r)) for r in expected]


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_before_the_first_loss_above_zero_there_is_no_reference(memory):
    reward = GainReward("loss", memory=memory)
    assert [reward(loss, round) for round, loss in enumerate([0.0, 0.0, 0.4])] == [None] * 3
    assert reward(0.2, 3) == pytest.approx(math.log(2))
    again = GainReward("loss", memory=memory)
    again.load_state_dict(json.loads(json.dumps(reward.state_dict())))
    assert again(0.0, 4) == reward(0.0, 4)
    assert math.isfinite(again.level(0.0))


def test_zero_may_come_before_a_round_and_after_it():
    reward = BeforeAfterReward("loss", clip=inf)
    pairs = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.1), (0.5, 0.0), (0.0, 0.5)]
    for (before, after), ratio in zip(pairs, [1.0, 1.0, 1.0, 5.0, 5.0, 0.2], strict=True):
        again = BeforeAfterReward("loss", clip=inf)
        again.load_state_dict(json.loads(json.dumps(reward.state_dict())))
        for either in (reward, again):
            either.before(before)
            assert either.after(after) == pytest.approx(math.log(ratio))


def test_the_smallest_number_is_a_loss():
    tiny = 5e-324
    assert log_gain(tiny, None) == log_gain(0.0, tiny) == -math.log(tiny)
    assert GainReward("loss").level(tiny) == -math.log(tiny)
    assert math.isnan(log_gain(0.0, None))
    assert all(math.isnan(log_gain(loss, 0.1)) for loss in (nan, inf, -inf))
    assert least_loss([None, 0.0, nan, inf, 0.3, 0.2]) == 0.2
    assert least_loss([0.0, nan]) is None


def test_states_without_a_smallest_loss_load():
    reward = BeforeAfterReward("loss")
    reward.before(0.5)
    state = reward.state_dict()
    del state["least"]
    again = BeforeAfterReward("loss")
    again.load_state_dict(state)
    assert again.after(0.25) == pytest.approx(math.log(2))


def test_a_loss_that_can_be_negative_is_told_a_way_out():
    with pytest.raises(InvalidArgumentError, match=r"tell math\.exp\(loss\)"):
        GainReward("loss")(-0.1, 0)


# --- gains over an average of earlier metrics -----------------------------------------------------

METRICS = [2.0, 1.7, 1.9, 1.2, 1.25, 1.1, 0.9]
ROUNDS = [0, 1, 4, 5, 6, 11, 12]


@pytest.mark.parametrize("memory", [0.0, 0.3, 0.8, 0.99])
def test_gains_over_an_average_agree_with_all_metrics_at_once(memory):
    reward = GainReward("loss", clip=inf, memory=memory)
    found = [reward(m, r) for m, r in zip(METRICS, ROUNDS, strict=True)]
    expected = oracle.gains(METRICS, ROUNDS, memory)
    assert found[0] is expected[0] is None
    assert found[1:] == pytest.approx(expected[1:], rel=1e-12)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_steady_growth_has_the_same_gain_under_every_memory(memory):
    reward = GainReward("accuracy", memory=memory)
    found = [reward(0.1 + 0.01 * round, round) for round in ROUNDS]
    assert found[1:] == pytest.approx([1.0] * (len(ROUNDS) - 1))


def test_without_memory_gains_are_those_of_the_last_metric_to_the_bit():
    reward, parts = GainReward("loss"), BeforeAfterReward("loss")
    for round, (before, after) in enumerate(pairwise(METRICS)):
        reward.rebase(before, 2 * round)
        parts.before(before)
        assert reward(after, 2 * round + 1) == parts.after(after)


def test_memory_credits_what_lasts_for_longer():
    short, long = GainReward("accuracy"), GainReward("accuracy", memory=0.8)
    levels = [0.3] * 10 + [0.32] * 4  # one step up, under a configuration that stays
    found = [(short(m, r), long(m, r)) for r, m in enumerate(levels)]
    assert all(gain == 0 for gain, _ in found[11:])
    assert all(gain > 0.1 for _, gain in found[11:])


def test_a_new_start_forgets_earlier_metrics():
    reward, fresh = GainReward("loss", memory=0.8), GainReward("loss", memory=0.8)
    for metric, round in ((3.0, 0), (2.0, 1)):
        reward(metric, round)
    reward.rebase(1.5, 2)
    fresh.rebase(1.5, 2)
    assert reward(1.4, 3) == fresh(1.4, 3)
    assert reward(1.3, 4) == fresh(1.3, 4)


def test_failed_queries_leave_the_average():
    reward, whole = GainReward("loss", memory=0.8), GainReward("loss", memory=0.8)
    for metric, round in ((2.0, 0), (1.5, 1), (nan, 2), (1.4, 3)):
        found = reward(metric, round)
        expected = whole(metric, round) if metric == metric else nan
    assert found == expected


# --- decisions or bare rounds ------------------------------------------------------------------


def decision(round, interval=None):
    return Decision(round, {"lr": 0.1}, query=True, reason="", interval=interval)


def test_gains_between_decisions_count_intervals():
    reward = GainReward("loss")
    reward(1.0, decision(40, 30))
    assert reward(0.5, decision(49, 32)) == pytest.approx(math.log(2) / 2)
    assert reward(0.25, decision(50, 32)) == pytest.approx(math.log(2))  # at least one


@pytest.mark.parametrize("first", [1.0, nan])
def test_the_first_call_decides_how_rounds_are_given(first):
    bare, decided = GainReward("loss"), GainReward("loss")
    bare(first, 3)
    decided(first, decision(3))
    before = bare.state_dict(), decided.state_dict()
    for call in (bare, bare.rebase):
        with pytest.raises(InvalidArgumentError, match="round: Expected bare rounds, as in the"):
            call(0.5, decision(4))
    for call in (decided, decided.rebase):
        with pytest.raises(InvalidArgumentError, match=r"Expected decisions, as .*; Received 4"):
            call(0.5, 4)
    assert (bare.state_dict(), decided.state_dict()) == before
    bare(0.9, 5)
    decided(0.9, decision(5))


def test_a_call_that_fails_decides_nothing():
    reward = GainReward("loss")
    with pytest.raises(InvalidArgumentError, match="metric"):
        reward(-1.0, 0)
    with pytest.raises(InvalidArgumentError, match="round"):
        reward(1.0, 0.5)
    assert reward(1.0, decision(0)) is None


def test_a_resumed_reward_knows_how_rounds_were_given():
    one, two = GainReward("loss"), GainReward("loss")
    one(1.0, decision(0))
    two.load_state_dict(json.loads(json.dumps(one.state_dict())))
    with pytest.raises(InvalidArgumentError, match="Expected decisions"):
        two(0.5, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "error"},
        {"kind": ["loss"]},
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
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        BeforeAfterReward(**options)


@pytest.mark.parametrize("memory", [-0.1, 1.0, 1.5, nan, "0.5", None, True])
def test_an_impossible_memory_is_named(memory):
    with pytest.raises(InvalidArgumentError, match="memory: Expected"):
        GainReward(memory=memory)


def test_a_memory_is_shown():
    assert repr(GainReward(memory=0.8)) == "GainReward('loss', clip=1.0, scale=1.0, memory=0.8)"


@pytest.mark.parametrize("reward", [GainReward, BeforeAfterReward])
def test_options_after_the_kind_are_named(reward):
    with pytest.raises(TypeError):
        reward("loss", 1.0)
    assert repr(reward("loss")) == f"{reward.__name__}('loss', clip=1.0, scale=1.0)"


# --- state -------------------------------------------------------------------------------------


def test_the_option_that_differs_is_named():
    state = GainReward("loss", clip=0.5).state_dict()
    with pytest.raises(StateMismatchError, match=r"state clip: Expected 1\.0; Received 0\.5"):
        GainReward("loss").load_state_dict(state)


@pytest.mark.parametrize("queries", [[], [(2.0, 0)], [(2.0, 0), (nan, 3)], [(2.0, 0), (1.5, 3)]])
@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_state_continues_as_if_never_stopped(queries, memory):
    one, two = GainReward("loss", memory=memory), GainReward("loss", memory=memory)
    for metric, round in queries:
        one(metric, round)
    two.load_state_dict(json.loads(json.dumps(one.state_dict())))
    assert one(1.4, 7) == two(1.4, 7)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "accuracy"},
        {"type": "BeforeAfterReward"},
        {"clip": 0.5},
        {"scale": 10.0},
        {"memory": 0.5},
        {"reference": None},
        {"reference": {}},
        {"reference": {"level": 0.0, "age": 0.0, "weight": 0.0}},
        {"reference": {"level": "1", "age": 0.0, "weight": 1.0}},
        {"reference": {"level": nan, "age": 0.0, "weight": 1.0}},
        {"reference": {"level": 0.0, "age": 0.0, "weight": -1.0}},
        {"last": None},
        {"last": {"loss": 1.0}},
        {"extra": 1},
        {"last": {"metric": "1", "round": 0}},
        {"last": {"metric": 1.0, "round": -1}},
        {"last": {"given": "epoch"}},
    ],
)
def test_foreign_states_are_named(change):
    reward = GainReward("loss")
    reward(1.0, 2)
    with pytest.raises(StateMismatchError):
        reward.load_state_dict({**reward.state_dict(), **change})
    for state in ({}, None, BeforeAfterReward("loss").state_dict()):
        with pytest.raises(StateMismatchError, match="a state_dict of GainReward"):
            reward.load_state_dict(state)
    assert reward.state_dict()["last"] == last(1.0, 2)
