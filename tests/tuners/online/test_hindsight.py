"""After the loop as on the way, a run says whether tuning has paid: by runs whose truth is known."""

import math
from functools import cache
from itertools import pairwise

import pytest
import torch

import botorch_costly as bc
from botorch_costly.records import Observation
from botorch_costly.tuners.online.diagnosis import Diagnosis
from botorch_costly.tuners.online.hindsight import Run as Told, projected, run_of
from tests.tuners.twins.running import GOOD, RATE, Run, alone

KNOWN = {
    "negative": 0.2,
    "signal": 0.5,
    "trend": 0.1,
    "drift": 0.0,
    "nothing": 0.1,
    "bits": 2.0,
}
HORIZON = 120
SHARES = (0.5, 0.9, 1.0)


@cache
def asked(start):
    """What is said after shares of a run, and by how much it is ahead of the start alone."""
    tuner = bc.OnlineTuner(
        RATE, HORIZON, start={"lr": start}, search=bc.Search(num_restarts=4), seed=0
    )
    run, said = Run(noise=0.003), {}
    reward = bc.GuardedReward(bc.GainReward("loss"), run.state_dict, run.load_state_dict)
    due = {math.ceil(share * HORIZON): share for share in SHARES}
    for round in range(HORIZON):
        decision = tuner.ask()
        run.train(decision.config)
        if decision.query:
            tuner.tell(decision, reward(run.loss(), decision))
        if round + 1 in due:
            untuned = alone({"lr": start}, round + 1)
            said[due[round + 1]] = (tuner.diagnose(), run.level - untuned.level)
    return said


@pytest.mark.parametrize("share", SHARES)
def test_a_rescued_run_has_paid_on_the_way_and_after_the_loop(share):
    found, ahead = asked(GOOD / 30)[share]
    assert ahead > 0.2
    assert found.has_paid
    assert str(found).startswith("Tuning has paid: the first configuration alone")


@pytest.mark.parametrize("share", SHARES)
def test_the_best_start_is_not_said_to_have_been_improved(share):
    found, ahead = asked(GOOD)[share]
    assert ahead < 0.02
    assert found.has_paid is False
    assert "has paid" not in str(found)


def test_with_few_rewards_it_is_too_early():
    tuner = bc.OnlineTuner(RATE, HORIZON, start={"lr": GOOD / 30})
    for round in range(8):
        tuner.tell(tuner.ask(), 0.1 * round)
    found = tuner.diagnose()
    assert found.has_paid is None
    assert str(found).startswith("Too early to say")


def curve(rounds):
    """Gains of a level that is linear in the logarithm of the rounds."""
    return [math.log(late / early) for early, late in pairwise(rounds)]


def test_a_start_whose_curve_goes_on_would_have_earned_the_same():
    rounds = list(range(2, 60, 2))
    found = projected(Told(curve(rounds), rounds[1:], before=2, first=4))
    assert found.earned == pytest.approx(math.log(58 / 2), rel=1e-12)
    assert found.ahead == pytest.approx(0.0, abs=1e-12)
    assert not found.later


def test_what_others_earn_above_the_curve_of_the_start_is_ahead_of_it():
    rounds = list(range(2, 60, 2))
    slow = [0.1 * gain for gain in curve(rounds)]
    rewards = [*slow[:4], *[0.5] * 4, *slow[8:]]
    found = projected(Told(rewards, rounds[1:], before=2, first=4))
    would = 0.1 * math.log(58 / 2)
    assert found.later
    assert found.ahead == pytest.approx(1 - would / sum(rewards), rel=1e-12)


def test_steady_rewards_are_no_sign_of_a_bad_start():
    noise = torch.randn(60, generator=torch.Generator().manual_seed(2)).tolist()
    rewards = [1 + 0.1 * shock for shock in noise]
    assert not projected(Told(rewards, list(range(60)), before=0, first=4)).later


def test_falls_that_were_rolled_back_are_not_lost():
    gains = [0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.02, -0.01, 0.01, 0.0]
    fallen = [*gains[:6], -1.0, *gains[6:]]
    ours, theirs = (
        projected(Told(g, range(1, len(g) + 1), before=0, first=2)) for g in (gains, fallen)
    )
    assert ours.earned == pytest.approx(sum(gains), rel=1e-12)
    assert theirs.earned == pytest.approx(ours.earned, rel=1e-12)


def test_the_rewards_of_the_start_end_where_another_configuration_begins():
    lr, other = {"lr": 0.1}, {"lr": 0.2}
    told = [(1, lr, None), (3, lr, 2.0), (5, lr, 1.0), (7, other, 4.0), (9, lr, 3.0)]
    outcomes = [Observation(round, config, reward) for round, config, reward in told]
    assert run_of(outcomes, -1.0) == Told(
        [-2.0, -1.0, -4.0, -3.0], [4, 6, 8, 10], before=2, first=2
    )
    assert math.isnan(projected(run_of(outcomes, -1.0)).ahead)  # nothing was earned


@pytest.mark.parametrize(
    ("changes", "paid", "said"),
    [
        ({"later": True, "ahead": 0.6}, True, "Tuning has paid: the first"),
        ({"sure_surpassed": 0.96}, True, "Tuning has paid: the first"),
        ({"later": True, "ahead": 0.6, "nothing": 0.7}, None, "has paid cannot be told"),
        ({"later": True, "ahead": 0.6, "nothing": 0.81}, False, "Tuning cannot help"),
        ({"sure_surpassed": 0.96, "nothing": 0.7}, False, "Tuning cannot help"),
        ({"later": True, "ahead": 0.4}, None, "Whether tuning has paid cannot be told"),
        ({"ahead": 0.6}, None, "Whether tuning has paid cannot be told"),
        ({"ahead": 0.4, "sure": 0.99}, None, "Tuning pays: a configuration is known"),
        ({"ahead": 0.2}, False, "Tuning has found nothing clearly better"),
        ({"ahead": 0.2, "sure": 0.99}, False, "So far it has not paid."),
        (
            {"later": True, "ahead": 0.6, "negative": 0.9},
            True,
            "if the rewards have the right sign",
        ),
    ],
)
def test_the_verdict_follows_from_what_the_start_would_have_earned(changes, paid, said):
    rest = {"sure": 0.5, "advantage": 0.1, "earned": 1.0, "surpassed": 0.1, "sure_surpassed": 0.1}
    found = Diagnosis(20, 0, 20, **{**KNOWN, **rest, "configurations": 5, "told": 20, **changes})
    assert found.has_paid is paid
    assert said in str(found)


@pytest.mark.parametrize(
    ("changes", "denied"),
    [
        ({"later": True, "ahead": 0.6, "surpassed": 0.1}, None),
        ({"later": True, "ahead": 0.6, "surpassed": -0.1}, "In the rounds of the others"),
        ({"sure_surpassed": 0.96, "ahead": -0.2, "surpassed": 0.1}, "The rewards sum to"),
        ({"ahead": 0.2, "surpassed": -0.1}, None),  # it has not paid
    ],
)
def test_an_estimate_that_denies_the_verdict_says_so(changes, denied):
    rest = {"sure": 0.5, "advantage": 0.1, "earned": 1.0, "sure_surpassed": 0.1}
    found = Diagnosis(20, 0, 20, **{**KNOWN, **rest, "configurations": 5, "told": 20, **changes})
    assert found.has_paid is (changes != {"ahead": 0.2, "surpassed": -0.1})
    but = "By one estimate it has not paid. "
    assert str(found).count(but) == (denied is not None)
    assert denied is None or but + denied in str(found)


@pytest.mark.parametrize(
    ("surpassed", "said"),
    [
        (0.0453, "have earned 0.0453 less than they did, clearly with a probability of 0.02."),
        (
            -0.0453,
            "have earned 0.0453 more than they did, and clearly less with a probability of 0.02.",
        ),
    ],
)
def test_what_the_start_would_have_earned_has_no_sign(surpassed, said):
    rest = {"sure": 0.5, "advantage": 0.1, "earned": 1.0, "configurations": 5, "told": 20}
    found = Diagnosis(20, 0, 20, **KNOWN, **rest, surpassed=surpassed, sure_surpassed=0.02)
    assert said in str(found)
