"""Bandits, and what their callers do wrong: rewards that are none, states of others, no such device."""

import copy
import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly import bandits
from botorch_costly.bandits import (
    GPUCB,
    UCB1,
    ArmPrior,
    BanditPlayer,
    BanditPolicy,
    FitSchedule,
    RewardRange,
    Told,
    simulate_arms,
)
from botorch_costly.errors import (
    AlreadyToldError,
    InvalidArgumentError,
    InvalidShapeError,
    InvalidSpaceError,
    StateMismatchError,
    UnknownDecisionError,
)
from botorch_costly.query import AlwaysQuery, BernoulliQuery, ConfidenceQuery, PricedQuery
from botorch_costly.simulation import Chance
from tests.cases import quick
from tests.tuners.online.states import same

ARMS = bc.SearchSpace({"optimizer": bc.Choice(["sgd", "adam", "lion"])})
QUERIES = [AlwaysQuery(), ConfidenceQuery(0.9), PricedQuery(price=0.1)]
WORTH = {"sgd": 0.2, "adam": 0.8, "lion": 0.5}
STRATEGIES = {
    "EXP3S": bandits.EXP3S(0.2, 0.01),
    "EXP3R": bandits.EXP3R(0.2, interval=30.0),
    "EpsilonGreedy": bandits.EpsilonGreedy(0.2),
    "Softmax": bandits.Softmax(0.1, forgetting=0.02),
    "UCB1": UCB1(forgetting=0.02),
    "GPUCB": GPUCB(),
    "GPUCB that forgets": GPUCB(ArmPrior("matern12")),
}
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)


def tuner_of(strategy=None, query=None, seed=0, **options):
    return bc.BanditTuner(ARMS, 90, strategy=strategy, query=query, seed=seed, **options)


def worth_of(decision):
    return WORTH[decision.config["optimizer"]]


def play(tuner, rounds):
    for _ in range(rounds):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, worth_of(decision))
    return tuner


def is_finite(tuner):
    advice = tuner._strategy._player.advice
    numbers = (*advice.belief, advice.probability)
    return all(bool(number.isfinite().all()) for number in numbers)


class TestRewards:
    @every_strategy
    @pytest.mark.parametrize("value", quick([None, math.nan, math.inf, -math.inf], None, -math.inf))
    def test_where_every_query_fails_nothing_is_learnt_and_no_arm_is_given_up(
        self, strategy, value
    ):
        tuner, silent = tuner_of(strategy, AlwaysQuery()), tuner_of(strategy, BernoulliQuery(0.0))
        for _ in range(40):
            tuner.tell(tuner.ask(), value)
            silent.ask()
        assert tuner.queries == 40
        assert tuner.failed_queries == (0 if value is None else 40)
        played = [decision.config["optimizer"] for decision in tuner.decisions]
        assert set(played) == set(WORTH)
        assert played == [decision.config["optimizer"] for decision in silent.decisions]
        assert is_finite(tuner)

    @every_strategy
    @pytest.mark.parametrize("query", quick(QUERIES, *QUERIES[1:]))
    @pytest.mark.parametrize("far", quick([1e6, -1e6, 1e140, -1e140], -1e140))
    def test_a_run_survives_rewards_far_outside_of_their_range(self, strategy, query, far):
        tuner = tuner_of(strategy, query)
        for t in range(30):
            decision = tuner.ask()
            if decision.query or t % 3 == 0:
                tuner.tell(decision, far if t in (6, 9) else worth_of(decision))
        assert is_finite(tuner)
        assert tuner.decisions[-1].config in tuner._strategy._arms

    @pytest.mark.parametrize("name", ["EXP3S", "EXP3R"])
    def test_a_strategy_of_bounded_rewards_counts_the_nearer_end(self, name):
        ours, theirs = (
            tuner_of(STRATEGIES[name], AlwaysQuery(), rewards=RewardRange()) for _ in range(2)
        )
        for t in range(30):
            one, two = ours.ask(), theirs.ask()
            assert one == two
            ours.tell(one, (-1) ** t * 1e9)
            theirs.tell(two, 1.0 if t % 2 == 0 else 0.0)

    @every_strategy
    def test_a_reward_too_large_to_compute_with_is_named_and_changes_nothing(self, strategy):
        tuner = play(tuner_of(strategy, AlwaysQuery()), 5)
        decision = tuner.ask()
        before = copy.deepcopy(tuner.state_dict())
        for reward in (1e300, -1e300):
            with pytest.raises(
                InvalidArgumentError, match=r"reward: Expected .* Received -?1e\+300"
            ):
                tuner.tell(decision, reward)
        assert same(tuner.state_dict(), before)
        tuner.tell(decision, 0.5)

    def test_in_a_narrow_range_smaller_rewards_are_too_large(self):
        tuner = tuner_of(rewards=RewardRange(0.0, 1e-12))
        with pytest.raises(InvalidArgumentError, match="at most"):
            tuner.tell(tuner.ask(), 1e145)

    @every_strategy
    def test_trials_of_which_queries_fail_learn_nothing_and_the_others_do(self, strategy):
        """Whatever a simulator finds: NaN, an infinity, or single precision."""
        rewards = torch.tensor([0.5, math.nan, math.inf, 0.5])
        ours, theirs = (
            BanditPlayer(BanditPolicy("", strategy, AlwaysQuery()), 4, 3, 40) for _ in range(2)
        )
        for _ in range(12):
            chance = ours.chance()
            theirs.chance()
            (at, query), (other, _) = ours.decide(chance), theirs.decide(chance)
            assert at.equal(other)
            ours.take_in(at, rewards, query)
            told = torch.tensor([True, False, False, True])
            theirs.take_in(other, torch.full((4,), 0.5, dtype=torch.float64), told)
        for mine, wanted in zip(ours.advice.belief, theirs.advice.belief, strict=True):
            assert mine.equal(wanted)
        assert ours.advice.belief.mean.isfinite().all()


class TestDecisions:
    @every_strategy
    def test_a_repeated_tell_is_named_and_changes_nothing(self, strategy):
        tuner = play(tuner_of(strategy, AlwaysQuery()), 6)
        before = copy.deepcopy(tuner.state_dict())
        with pytest.raises(AlreadyToldError, match="first outcome of round 2"):
            tuner.tell(tuner.decisions[2], 0.9)
        assert same(tuner.state_dict(), before)

    @every_strategy
    def test_a_decision_of_another_tuner_is_named_and_changes_nothing(self, strategy):
        tuner = play(tuner_of(strategy, AlwaysQuery()), 4)
        before = copy.deepcopy(tuner.state_dict())
        later = play(tuner_of(strategy, AlwaysQuery(), seed=5), 8).decisions[-1]
        played = tuner.decisions[1].config["optimizer"]
        config = {"optimizer": next(other for other in WORTH if other != played)}
        another = bc.Decision(1, config, query=True, reason="")
        unknown = bc.Decision(1, {"optimizer": "lamb"}, query=True, reason="")
        for stranger in (later, another, unknown):
            with pytest.raises(UnknownDecisionError, match="one of the 4 decisions"):
                tuner.tell(stranger, 0.9)
        assert same(tuner.state_dict(), before)

    def test_before_the_first_decision_there_is_nothing_and_it_can_be_saved(self):
        tuner, other = tuner_of(), tuner_of()
        assert tuner.history == []
        assert tuner.decisions == tuner.observations == tuner.pending == ()
        assert tuner.queries == tuner.failed_queries == 0
        other.load_state_dict(tuner.state_dict())
        assert other.ask() == tuner.ask()
        player = BanditPlayer(BanditPolicy("", UCB1(), AlwaysQuery()), 2, 3)
        for what in ("advice", "verdict"):
            with pytest.raises(InvalidArgumentError, match=f"{what}: Expected a round"):
                getattr(player, what)

    @every_strategy
    def test_an_arm_that_was_never_seen_is_not_forgotten(self, strategy):
        """Two arms are queried again and again, and found to be bad; the third is what is left."""
        state = strategy.begin(1, 3)
        one = torch.ones(1, dtype=torch.float64)
        for t in range(40):
            flags = torch.tensor([True])
            arm = torch.tensor([t % 2])
            state = strategy.learn(state, Told(t * one, arm, 0 * one, one / 3, ~flags, flags))
        advice = [
            strategy.advise(strategy.refresh(state, 40), 40, torch.tensor([luck], dtype=one.dtype))
            for luck in torch.linspace(0, 0.999, 50).tolist()
        ]
        third = sum(int(each.arm) == 2 for each in advice)
        assert third > (0 if "EXP3" in type(strategy).__name__ else 5)
        belief = advice[0].belief
        assert belief.mean[0].argmax() == 2
        assert belief.cov[0].diagonal().argmax() == 2


class TestStates:
    @every_strategy
    @pytest.mark.parametrize("choices", [["sgd", "adam"], ["sgd", "adam", "lion", "lamb"]])
    def test_a_state_of_fewer_or_more_arms_is_refused_by_name(self, strategy, choices):
        state = play(tuner_of(strategy), 10).state_dict()
        space = bc.SearchSpace({"optimizer": bc.Choice(choices)})
        other = bc.BanditTuner(space, 90, strategy=strategy)
        before = copy.deepcopy(other.state_dict())
        with pytest.raises(StateMismatchError, match=r"option space\.optimizer"):
            other.load_state_dict(state)
        assert same(other.state_dict(), before)

    @every_strategy
    def test_a_tensor_of_another_kind_or_of_more_trials_is_refused(self, strategy):
        tuner = play(tuner_of(strategy, AlwaysQuery()), 6)
        state = tuner.state_dict()
        before = copy.deepcopy(state)
        tensors = {k: v for k, v in state["player"].items() if isinstance(v, torch.Tensor)}
        tensors.pop("generator")
        for name, tensor in tensors.items():
            for damaged in (tensor.half(), torch.cat([tensor, tensor]), tensor[None], None):
                with pytest.raises(StateMismatchError):
                    tuner.load_state_dict({**state, "player": {**state["player"], name: damaged}})
        assert same(tuner.state_dict(), before)

    def test_a_player_names_what_is_wrong_and_stays(self):
        player = BanditPlayer(BanditPolicy("", UCB1(), AlwaysQuery()), 2, 3, 10)
        state, other = player.state_dict(), BanditPlayer(player.policy, 4, 3, 10)
        with pytest.raises(
            StateMismatchError, match=r"state\.0: Expected .*4 trials; Received .*2"
        ):
            other.load_state_dict(state)
        chance = Chance(*torch.rand(2, 4, dtype=torch.float64))
        assert len(other.decide(chance).where) == 4


class Known:
    """Arms with known rewards."""

    def __init__(self, values, noise=0.01):
        self.table, self.noise = values, noise

    def values(self, horizon):
        return self.table


POLICY = BanditPolicy("", UCB1(), AlwaysQuery())


@pytest.mark.parametrize(
    ("problem", "error", "said"),
    [
        (Known(torch.rand(20)), InvalidShapeError, "20 x arms"),
        (Known(torch.rand(19, 3)), InvalidShapeError, "20 x arms"),
        (Known(torch.rand(20, 1)), InvalidArgumentError, "arms: Expected an integer >= 2"),
        (Known(torch.full((20, 3), math.nan)), InvalidArgumentError, "finite mean rewards"),
        (Known(torch.rand(20, 3), noise=-1.0), InvalidArgumentError, "noise"),
    ],
    ids=["no arms", "too short", "one arm", "nan", "noise"],
)
def test_a_problem_that_makes_no_sense_is_named(problem, error, said):
    with pytest.raises(error, match=said):
        simulate_arms(problem, [POLICY], trials=2, horizon=20)


def test_known_rewards_in_single_precision_are_taken():
    run = simulate_arms(Known(torch.rand(20, 3)), [POLICY], trials=2, horizon=20)
    assert run.regret.dtype == torch.float64


@pytest.mark.parametrize("device", ["cuda:77", "nowhere"])
def test_a_device_that_is_not_there_is_named(device):
    for make in (
        lambda: tuner_of(device=device),
        lambda: BanditPlayer(POLICY, 2, 3, device=device),
        lambda: simulate_arms(Known(torch.rand(20, 3)), [POLICY], 2, 20, device=device),
    ):
        with pytest.raises(
            InvalidArgumentError, match="device: Expected a device that this machine"
        ):
            make()


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: bc.BanditTuner("sgd"), InvalidSpaceError, "SearchSpace"),
        (lambda: tuner_of(rewards=(0.0, 1.0)), InvalidArgumentError, "RewardRange"),
        (lambda: RewardRange("0", 1.0), InvalidArgumentError, "low < high"),
        (lambda: RewardRange(None, 1.0), InvalidArgumentError, "low < high"),
        (lambda: RewardRange(-1.7e308, 1.7e308), InvalidArgumentError, "low < high"),
        (lambda: GPUCB(beta=0.5), InvalidArgumentError, "BetaSchedule"),
        (lambda: GPUCB(fit=5), InvalidArgumentError, "FitSchedule"),
        (lambda: GPUCB(capacity=3), InvalidArgumentError, "capacity"),
        (lambda: GPUCB(arms=((1.0,), (1.0, 2.0))), InvalidShapeError, "n x n numbers"),
        (lambda: GPUCB(arms="abc"), InvalidShapeError, "n x n numbers"),
        (lambda: FitSchedule(6, "1"), InvalidArgumentError, "growth"),
        (lambda: BanditPolicy("", UCB1(), AlwaysQuery(), bounds=3), InvalidArgumentError, "bounds"),
        (
            lambda: BanditPolicy("", UCB1(), AlwaysQuery(), unqueried_play="best"),
            InvalidArgumentError,
            "unqueried_play",
        ),
        (lambda: BanditPlayer("UCB1", 2, 3), InvalidArgumentError, "BanditPolicy"),
        (lambda: BanditPlayer(POLICY, 0, 3), InvalidArgumentError, "trials"),
        (lambda: BanditPlayer(POLICY, 2, 1), InvalidArgumentError, "arms"),
        (lambda: simulate_arms(Known(None), []), InvalidArgumentError, "policies"),
        (lambda: simulate_arms(Known(None), ["UCB1"]), InvalidArgumentError, "BanditPolicy"),
    ],
)
def test_what_is_none_of_its_kind_is_named_when_it_is_made(make, error, said):
    with pytest.raises(error, match=r"Expected .*; Received") as caught:
        make()
    assert said in str(caught.value)
