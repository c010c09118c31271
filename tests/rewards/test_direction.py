"""A metric that is declared as the other kind is reported once: the worst would look best."""

import math
import random
from itertools import pairwise

import pytest

import botorch_costly as bc
from botorch_costly.rewards import GainReward
from botorch_costly.rewards.direction import watch_segments

WAYS = {
    "an accuracy told as a loss": ("loss", lambda t: 0.9 - 0.8 * math.exp(-t / 4)),
    "a loss told as an accuracy": ("accuracy", lambda t: 0.1 + 0.8 * math.exp(-t / 4)),
    "an accuracy that grows slowly": ("loss", lambda t: 0.4 + 0.015 * t),
}
FINE = {
    "a loss that falls": ("loss", lambda t: 0.1 + 2 * math.exp(-t / 4)),
    "a loss in [0, 1] that falls": ("loss", lambda t: 0.1 + 0.8 * math.exp(-t / 4)),
    "an accuracy that grows": ("accuracy", lambda t: 0.9 - 0.8 * math.exp(-t / 4)),
    "a loss beyond 1 that rises": ("loss", lambda t: 0.8 + 0.1 * t),
    "a level with noise": ("loss", lambda t: 0.5 + 0.2 * random.Random(t).random()),
    "what hardly moves": ("loss", lambda t: 0.5 + 0.001 * t),
    "fine-tuning whose loss rises at first": ("loss", lambda t: 0.2 + 0.02 * min(t, 12) - 0.01 * t),
    "what diverges": ("loss", lambda t: math.nan if t > 3 else 0.5),
}


def told(way):
    kind, metric = way
    reward = GainReward(kind)
    for t in range(30):
        reward(metric(t), round=t)


@pytest.mark.parametrize("name", WAYS)
def test_a_metric_of_the_other_kind_is_reported_once(name, caplog):
    told(WAYS[name])
    assert len(caplog.records) == 1
    other = "accuracy" if WAYS[name][0] == "loss" else "loss"
    assert f"If they are no {WAYS[name][0]}, declare them as {other}; if they are," in caplog.text


def test_the_metrics_after_rounds_are_watched_too(caplog):
    reward = bc.rewards.BeforeAfterReward("loss")
    for t in range(12):
        reward.before(0.1 + 0.05 * t)
        reward.after(0.15 + 0.05 * t)
    assert [record.getMessage()[:32] for record in caplog.records] == [
        "The first 10 metrics rise from 0"
    ]


@pytest.mark.parametrize("unit", [1.0, 3.0, 100.0])
def test_what_validation_takes_for_a_score_may_lie_above_1(unit, caplog):
    """A loss that is declared as an accuracy, also one above 1."""
    validation = bc.Validation(0.5, "accuracy")
    for t in range(12):
        validation.due(t)
        validation.tell(unit * (0.1 + 0.8 * math.exp(-t / 4)))
    assert "declare them as loss" in caplog.text


def test_percentages_that_grow_or_hardly_move_are_fine(caplog):
    for score in (lambda t: 90 - 80 * math.exp(-t / 4), lambda t: 70 - 0.5 * t, lambda t: -t):
        validation = bc.Validation(0.5, "accuracy")
        for t in range(25):
            validation.due(t)
            validation.tell(score(t))
    assert caplog.records == []


@pytest.mark.parametrize("name", FINE)
def test_a_metric_that_moves_as_it_should_or_says_nothing_is_not(name, caplog):
    told(FINE[name])
    assert caplog.records == []


def test_a_population_says_it_too(caplog):
    space = bc.SearchSpace({"lr": bc.Real(0.1, 1.0)})
    tuner = bc.PopulationTuner(space, 12, members=2, metric="loss")
    for t in range(12):
        tuner.tell(tuner.ask(), [0.1 + 0.05 * t, 0.11 + 0.05 * t])
    assert "declare them as accuracy" in caplog.text


def test_tuning_does_not_pay_without_a_condition_where_most_rewards_are_negative():
    diagnosis = bc.tuners.online.diagnosis.Diagnosis(
        queries=30,
        failed=0,
        rewards=30,
        negative=0.9,
        signal=0.5,
        trend=0.0,
        nothing=0.0,
        bits=3.0,
        advantage=1.0,
        sure=0.99,
        configurations=9,
        told=30,
    )
    assert str(diagnosis).startswith("Tuning pays if the rewards have the right sign")


def test_a_reward_that_goes_on_judges_no_direction(caplog):
    """A loss that rises after sixty rounds overfits."""
    reward = bc.GainReward("loss")
    for number in range(60):
        reward(1.0 / (1 + number), round=number)
    again = bc.GainReward("loss")
    again.load_state_dict(reward.state_dict())
    for number in range(60, 90):
        again(0.01 * (number - 58), round=number)
    assert "declare them" not in caplog.text


def rising(examples, *, by=1.0, rise=0.1):
    """Eight segments that raise a share of examples from a fifth, by default by a tenth in all."""
    steps = [round(examples * (0.2 + rise * t / 8)) / examples for t in range(9)]
    return [(by * before, by * after) for before, after in pairwise(steps)]


@pytest.mark.parametrize(
    ("segments", "warns"),
    [
        (rising(997), True),
        (rising(997, by=100.0), True),
        (rising(997, by=math.sqrt(0.5)), False),  # no shares
        (rising(60), False),  # by chance
        (rising(1000), False),  # perhaps a loss of three decimals
        ([(after, before) for before, after in rising(997)], False),
        ([(300 / 997, 200 / 997), *rising(997, rise=0.3)], False),  # one improves it clearly
    ],
    ids=["shares", "percent", "a loss", "few", "rounded", "falling", "both ways"],
)
def test_segments_of_shares_worsen_it_surely(segments, warns, caplog):
    told = [watch_segments("loss", segments[: n + 1]) for n in range(len(segments))]
    assert any(told) == warns == ("declare them as accuracy" in caplog.text)


def test_segments_are_watched_for_a_while_only(caplog):
    late = [(0.5, 0.5)] * 30 + rising(997)
    told = [watch_segments("loss", late[: n + 1]) for n in range(len(late))]
    assert told.index(True) == 29
    assert caplog.text == ""
