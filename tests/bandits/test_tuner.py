"""A bandit that is asked and told: what its user does wrong, and what may go wrong."""

import math
from functools import cache

import pytest
import torch

import botorch_costly as bc
from botorch_costly.bandits import (
    EXP3R,
    EXP3S,
    GPUCB,
    UCB1,
    ArmPrior,
    EpsilonGreedy,
    RewardRange,
    Softmax,
)
from botorch_costly.errors import InvalidArgumentError, InvalidSpaceError
from botorch_costly.query import AlwaysQuery, BernoulliQuery, PricedQuery
from tests.cases import quick

ARMS = bc.SearchSpace({"optimizer": bc.Choice(["sgd", "adam", "lion"])})
WORTH = {"sgd": 0.2, "adam": 0.8, "lion": 0.5}


def play(tuner, rounds):
    for _ in range(rounds):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, WORTH[decision.config["optimizer"]])
    return [row["config"]["optimizer"] for row in tuner.history]


@pytest.mark.parametrize(
    "strategy", [None, UCB1(), GPUCB(ArmPrior("matern12", 500.0))], ids=["default", "UCB1", "TV"]
)
def test_the_best_arm_is_found(strategy):
    query = AlwaysQuery() if isinstance(strategy, UCB1) else None
    chosen = play(bc.BanditTuner(ARMS, 120, strategy=strategy, query=query, seed=1), 120)
    assert chosen[60:].count("adam") > 45


def test_a_price_saves_queries():
    tuner = bc.BanditTuner(ARMS, 100, query=PricedQuery(price=0.5), seed=1)
    chosen = play(tuner, 100)
    assert tuner.queries < 20
    assert chosen[50:].count("adam") > 40
    assert "worth its price" in tuner.decisions[-1].reason


def test_all_arms_failing_is_recorded_and_the_run_goes_on():
    tuner = bc.BanditTuner(ARMS, 40, query=AlwaysQuery(), seed=2)
    for _ in range(20):
        tuner.tell(tuner.ask(), math.nan)
    assert tuner.failed_queries == 20
    tried = {row["config"]["optimizer"] for row in tuner.history}
    assert tried == {"sgd", "adam", "lion"}  # none is better than another
    for _ in range(20):
        decision = tuner.ask()
        tuner.tell(decision, WORTH[decision.config["optimizer"]])
    assert tuner.decisions[-1].config["optimizer"] == "adam"


def test_an_unqueried_round_may_be_told_all_the_same():
    tuner = bc.BanditTuner(ARMS, 40, strategy=EXP3S(0.3), query=BernoulliQuery(0.0), seed=0)
    decision = tuner.ask()
    assert not decision.query
    tuner.tell(decision, 1.0)
    assert tuner.queries == 1


def test_rewards_of_another_range_make_the_same_choices():
    ours = bc.BanditTuner(ARMS, 40, seed=3)
    theirs = bc.BanditTuner(ARMS, 40, seed=3, rewards=RewardRange(-10.0, 30.0))
    for _ in range(30):
        one, two = ours.ask(), theirs.ask()
        assert (one.config, one.query) == (two.config, two.query)
        if one.query:
            worth = WORTH[one.config["optimizer"]]
            ours.tell(one, worth)
            theirs.tell(two, 40 * worth - 10)


@pytest.mark.parametrize(
    "space",
    [
        bc.SearchSpace({"lr": bc.Real(0.1, 1.0)}),
        bc.SearchSpace({"many": bc.Integer(1, 3000)}),
    ],
    ids=["numbers", "many"],
)
def test_a_space_that_is_no_set_of_arms_is_refused(space):
    with pytest.raises(InvalidSpaceError, match="2 to 2000 configurations"):
        bc.BanditTuner(space)


def test_options_are_checked():
    with pytest.raises(InvalidArgumentError, match="strategy"):
        bc.BanditTuner(ARMS, strategy="UCB1")
    with pytest.raises(InvalidArgumentError, match="rule"):
        bc.BanditTuner(ARMS, query=0.1)
    with pytest.raises(InvalidArgumentError, match="seed"):
        bc.BanditTuner(ARMS, seed=-1)
    with pytest.raises(InvalidArgumentError, match="horizon"):
        bc.BanditTuner(ARMS, query=PricedQuery(price=0.1))


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    play(bc.BanditTuner(ARMS, 20), 10)
    assert torch.equal(torch.get_rng_state(), before)


# -- rewards in other units: the kind is a strategy with fixed units that is told others --------

UNITS = {"large": (60.0, 0.0), "tiny": (1e-6, 0.0), "huge": (1e6, 0.0), "negative": (1.0, -40.0)}


def played(strategy, scale=1.0, shift=0.0, rewards=None, rounds=60):
    tuner = bc.BanditTuner(
        ARMS, rounds, strategy=strategy, query=AlwaysQuery(), seed=1, rewards=rewards
    )
    for _ in range(rounds):
        decision = tuner.ask()
        tuner.tell(decision, scale * WORTH[decision.config["optimizer"]] + shift)
    return tuner


STRATEGIES = {
    "GPUCB": GPUCB(),
    "UCB1": UCB1(),
    "EXP3S": EXP3S(0.3),
    "EXP3R": EXP3R(0.3),
    "EpsilonGreedy": EpsilonGreedy(0.3),
}


def times_best(tuner):
    return [decision.config["optimizer"] for decision in tuner.decisions].count("adam")


@cache
def usual(name):
    """How often the best arm is played where rewards are in the unit interval."""
    return times_best(played(STRATEGIES[name]))


@pytest.mark.parametrize("units", quick(UNITS, "tiny", "negative"))
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_finds_the_best_arm_whatever_the_units_and_says_so_once(name, units, caplog):
    tuner = played(STRATEGIES[name], *UNITS[units])
    assert times_best(tuner) > min(20, usual(name) / 2)
    said = [record.message for record in caplog.records]
    assert len(said) == (name not in ("GPUCB", "EpsilonGreedy"))  # which need no range
    assert all("their range is estimated" in text for text in said)


@pytest.mark.parametrize(
    "arms", quick([["worse", "better"], ["better", "worse"]], ["worse", "better"])
)
def test_two_arms_of_50_and_20_are_told_apart(arms):
    space = bc.SearchSpace({"arm": bc.Choice(arms)})
    for seed in range(4):
        tuner = bc.BanditTuner(space, 100, seed=seed)
        for _ in range(100):
            decision = tuner.ask()
            if decision.query:
                tuner.tell(decision, 50.0 if decision.config["arm"] == "better" else 20.0)
        assert [d.config["arm"] for d in tuner.decisions].count("better") > 60


def test_one_reward_that_has_diverged_does_not_change_the_range(caplog):
    tuner = bc.BanditTuner(ARMS, 40, query=AlwaysQuery(), seed=1)
    for i in range(40):
        decision = tuner.ask()
        tuner.tell(decision, -1e6 if i == 20 else WORTH[decision.config["optimizer"]])
    assert caplog.text == ""


def test_a_range_that_was_said_stays_and_rewards_of_another_are_reported(caplog):
    tuner = played(EXP3S(0.3), 60.0, rewards=RewardRange(0.0, 1.0))
    assert tuner._strategy._player.policy.rewards == RewardRange(0.0, 1.0)
    assert len(caplog.records) == 1
    assert "say where they lie: rewards=RewardRange(low, high)" in caplog.text


@pytest.mark.parametrize("strategy", [UCB1(), Softmax(), EpsilonGreedy(), GPUCB()], ids=repr)
def test_a_range_that_was_said_is_a_unit_where_nothing_is_clipped(strategy, caplog):
    """It stays, and is named once if no reward lies in it: a query then looks as if it told little."""
    tuner = played(strategy, 60.0, rewards=RewardRange(0.0, 1.0))
    assert tuner._strategy._player.policy.rewards == RewardRange(0.0, 1.0)
    assert len(caplog.records) == 1
    assert "are none of a range from 0 to 1" in caplog.text


def test_a_range_that_holds_most_rewards_earns_no_warning(caplog):
    played(GPUCB(), 1.5, rewards=RewardRange(0.0, 1.0))
    assert caplog.text == ""


@pytest.mark.parametrize(("rounds", "warnings"), [(1, 1), (2, 1), (3, 0), (40, 0), (None, 0)])
def test_fewer_rounds_than_arms_are_named(rounds, warnings, caplog):
    space = bc.SearchSpace({"arm": bc.Choice(["a", "b", "c"])})
    bc.BanditTuner(space, rounds, query=AlwaysQuery())
    assert len(caplog.records) == warnings
    assert all("at least" in message for message in caplog.messages)


def test_a_prior_that_is_not_fitted_needs_a_range(caplog):
    played(GPUCB(fit=None), 60.0)
    assert "their range is estimated" in caplog.text


@pytest.mark.parametrize("stop", [1, 5, 13])
def test_an_estimated_range_is_part_of_the_state(stop):
    ours, theirs = (bc.BanditTuner(ARMS, 40, query=AlwaysQuery(), seed=3) for _ in range(2))

    def go_on(tuner, rounds):
        for _ in range(rounds):
            decision = tuner.ask()
            tuner.tell(decision, 100 * WORTH[decision.config["optimizer"]] - 10)
        return tuner.decisions

    go_on(ours, stop)
    theirs.load_state_dict(ours.state_dict())
    assert go_on(ours, 20) == go_on(theirs, 20)


def test_a_state_that_knows_no_range_keeps_that_of_then():
    """One of an earlier version does not say by what chance told rounds were played, either."""
    ours, theirs = (bc.BanditTuner(ARMS, 40, query=AlwaysQuery(), seed=3) for _ in range(2))
    for _ in range(3):
        ours.tell(ours.ask(), 0.5)
    state = ours.state_dict()
    del state["player"]["range"]
    theirs.load_state_dict({**state, "advised": state["advised"][:0]})
    for _ in range(9):
        theirs.tell(theirs.ask(), 70.0)
    assert theirs._strategy._player.policy.rewards == RewardRange()
