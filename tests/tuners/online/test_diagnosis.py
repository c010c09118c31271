"""Whether tuning can help is said in numbers and words, and said rightly where it is known."""

import copy
import math
from functools import cache

import pytest
import torch

import botorch_costly as bc
from tests.cases import quick, slow
from tests.tuners.online.grouped import grouped
from tests.tuners.online.playing import ARMS, LATTICE, SPACE, through_a_file

START = {"lr": 1e-3, "dropout": 0.1}


def played(reward, space=SPACE, rounds=60, **options):
    """A tuner that was told the reward of every round."""
    usual = {"hold": 0.0, "num_restarts": 4, "seed": 1, "start": START if space is SPACE else None}
    usual["limits"] = bc.Limits(rate_factor=math.inf)
    tuner = bc.OnlineTuner(space, rounds, **grouped({**usual, **options}))
    noise = torch.randn(rounds, generator=torch.Generator().manual_seed(5)).tolist()
    for _ in range(rounds):
        decision = tuner.ask()
        tuner.tell(decision, reward(decision.config, noise[decision.round], decision.round))
    return tuner


def valley(config, noise, round):
    return -20 * (config["dropout"] - 0.5) ** 2 + 0.3 * noise


@cache
def valley_run():
    """A run that tests read, and copy to change it."""
    return played(valley)


def test_where_configurations_matter_tuning_pays():
    found = valley_run().diagnose()
    assert found.pays
    assert found.signal > 0.2  # most rounds play the best and differ by chance alone
    assert (
        found.nothing < 0.2
    )  # before the first query it is a half; a run of 60 intervals tells no more
    assert 0 < found.advantage < 3.2  # of 0.5 over 0.1
    assert found.has_paid
    told = (
        "which most of them deny" if found.negative > 2 / 3 else "One that earns more now is known."
    )
    assert told in str(found)


def test_where_only_chance_speaks_tuning_cannot_help():
    found = played(lambda config, noise, round: noise).diagnose()
    assert found.pays is False
    assert found.nothing > 0.5
    assert str(found).startswith("Tuning cannot help at this round length")


@pytest.mark.slow
def test_longer_rounds_are_recommended_where_the_noise_is_that_of_the_metric():
    level = [0.0]

    def gain(config, noise, round):
        before, level[0] = level[0], noise
        return 0.6 * (config["dropout"] - 0.3) + noise - before

    found = played(gain, query=bc.AlwaysQuery(), beta=100.0, rounds=120).diagnose()
    assert found.level_noise > 0.4
    assert found.longer > 1
    told = f"Rounds {found.longer} times as long"
    assert (told in str(found)) == (found.nothing >= 0.5 or found.bits < 1)


def test_a_good_start_is_left_alone():
    found = played(valley, start={"lr": 1e-3, "dropout": 0.5}).diagnose()
    assert found.pays is False
    assert found.nothing < 0.5
    told = (
        "cannot be told"
        if found.has_paid is None
        else "nothing clearly better than the first configuration"
    )
    assert told in str(found)


@pytest.mark.parametrize("maximize", quick([True, False], False))
def test_bad_rewards_are_warned_of_whatever_is_better(maximize):
    sign = -1 if maximize else 1
    options = {"maximize": maximize, "rounds": 20}
    found = played(lambda c, noise, r: sign * (5 + noise), **options).diagnose()
    assert found.negative == 1.0
    assert "its sign is reversed" in str(found)
    found = played(lambda c, noise, r: -sign * (5 + noise), **options).diagnose()
    assert found.negative == 0.0
    assert "reversed" not in str(found)


def test_failures_are_warned_of():
    found = played(lambda c, noise, round: noise if round % 4 == 0 else math.nan).diagnose()
    assert (found.queries, found.failed, found.rewards) == (60, 45, 15)
    assert "Most queries fail (45 of 60)" in str(found)


@pytest.mark.parametrize("rounds", [0, 1, 9])
def test_it_may_be_too_early(rounds):
    tuner = bc.OnlineTuner(SPACE, 60, search=bc.Search(num_restarts=4))
    for round in range(rounds):
        tuner.tell(tuner.ask(), float(round))
    found = tuner.diagnose()
    assert found.pays is None
    assert str(found).startswith(f"Too early to say: {rounds} reward")


def test_constant_rewards_are_named():
    still = played(lambda config, noise, round: 0.0, rounds=20).diagnose()
    assert still.pays is None
    assert "the metric does not move" in str(still)
    ruined = played(lambda config, noise, round: -1.0, rounds=20).diagnose()
    assert ruined.pays is None
    assert str(ruined).startswith("All rewards are -1: all configurations do the same")
    assert "does not move" not in str(ruined)


def test_of_one_configuration_alone_nothing_is_said():
    found = played(lambda c, noise, r: noise, rounds=30, start_rounds=30, initial_rounds=0)
    assert str(found.diagnose()).startswith("Nothing can be said: only one configuration")
    assert found.diagnose().pays is None


@pytest.mark.parametrize("scale", [slow(None), bc.RewardScale()])
def test_what_the_best_earns_more_is_said_in_units_of_the_reward(scale):
    def step(config, noise, round):
        return 10.0 * (config["dropout"] > 0.3) + 0.01 * noise

    found = played(step, rewards=scale, rounds=40).diagnose()
    assert found.pays
    assert found.sure > 0.95
    assert 5.0 < found.advantage < 11.0


@pytest.mark.slow
def test_huge_rewards_are_no_reason_to_fail():
    small, huge = (
        played(lambda c, noise, r, unit=unit: unit * valley(c, noise, r), dtype=torch.float32)
        for unit in (1.0, 1e25)
    )
    ours, theirs = small.diagnose(), huge.diagnose()
    assert theirs.advantage == pytest.approx(1e25 * ours.advantage, rel=1e-3)
    assert theirs.pays == ours.pays


@pytest.mark.parametrize("space", [ARMS, LATTICE])
def test_finite_spaces_are_diagnosed_as_well(space):
    def reward(config, noise, round):
        worth = {"left": 0.0, "middle": 1.0, "right": 2.0, 1: 0.0, 6: 3.0}
        return worth.get(next(iter(config.values())), 1.0) + 0.2 * noise

    found = played(reward, space, beta=100.0).diagnose()
    assert found.signal > 0.4
    assert 1 < found.bits < 20
    assert found.nothing < 0.01


def test_asking_changes_nothing():
    tuner = copy.deepcopy(valley_run())
    before = str(tuner.state_dict())
    tuner.diagnose()
    assert str(tuner.state_dict()) == before


def test_a_resumed_run_is_diagnosed_alike():
    tuner = valley_run()
    resumed = bc.OnlineTuner(
        SPACE,
        60,
        seed=1,
        start=START,
        hold=bc.Hold(share=0.0),
        search=bc.Search(num_restarts=4),
        limits=bc.Limits(rate_factor=math.inf),
    )
    resumed.load_state_dict(through_a_file(tuner.state_dict()))
    assert resumed.diagnose() == tuner.diagnose()


def test_levels_told_as_rewards_are_named():
    found = played(lambda c, noise, round: 3 - 0.04 * round + 0.01 * noise, rounds=30).diagnose()
    assert "Tell its gain" in str(found)
    gains = valley_run().diagnose()
    assert "Tell its gain" not in str(gains)


def test_queries_that_are_never_told_are_named():
    tuner = bc.OnlineTuner(SPACE, 60, start=START)
    for _ in range(60):
        tuner.ask()
    found = tuner.diagnose()
    assert found.told == 0
    assert "were never told" in str(found)
    assert "were never told" not in str(valley_run().diagnose())
