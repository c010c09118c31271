"""Every classical strategy against its naive twin, under any query rule, and on what stands still."""

import math

import pytest
import torch

from botorch_costly import bandits
from botorch_costly.bandits import BanditPlayer, BanditPolicy, RewardRange, Told, simulate_arms
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.query import (
    AlwaysQuery,
    BernoulliQuery,
    ConfidenceBoundQuery,
    ConfidenceQuery,
    MixedQuery,
    PricedQuery,
)
from botorch_costly.simulation import Chance
from tests.cases import quick
from tests.oracles import bandits as twins

TRIALS, ROUNDS, ARMS = 3, 200, 3

PAIRS = {
    "UCB1": (bandits.UCB1(), lambda: twins.UCB1(ARMS)),
    "UCB1 that forgets": (bandits.UCB1(forgetting=0.05), lambda: twins.UCB1(ARMS, 0.05)),
    "UCB1 of narrow bounds": (bandits.UCB1(0.3), lambda: twins.UCB1(ARMS, scale=0.3)),
    "epsilon-greedy": (bandits.EpsilonGreedy(0.3), lambda: twins.EpsilonGreedy(ARMS, 0.3)),
    "epsilon-greedy that forgets": (
        bandits.EpsilonGreedy(0.3, forgetting=0.1),
        lambda: twins.EpsilonGreedy(ARMS, 0.3, 0.1),
    ),
    "softmax": (bandits.Softmax(0.2), lambda: twins.Softmax(ARMS, 0.2)),
    "softmax that forgets": (
        bandits.Softmax(0.2, forgetting=0.1),
        lambda: twins.Softmax(ARMS, 0.2, 0.1),
    ),
    "EXP3.S": (bandits.EXP3S(0.3, 0.02), lambda: twins.EXP3S(ARMS, 0.3, 0.02)),
    "EXP3": (bandits.EXP3S(0.3, 0.0), lambda: twins.EXP3S(ARMS, 0.3, 0.0)),
    "EXP3.R": (
        bandits.EXP3R(0.25, interval=48.0, doubt=0.65),
        lambda: twins.EXP3R(ARMS, 0.25, 48.0, 0.65),
    ),
}


class Switching:
    """Two levels that change places halfway."""

    noise = 0.01

    def values(self, horizon):
        early = torch.tensor([0.9, 0.2, 0.3], dtype=torch.float64)
        late = torch.tensor([0.1, 0.2, 0.9], dtype=torch.float64)
        half = horizon // 2
        return torch.cat([early.expand(half, -1), late.expand(horizon - half, -1)])


class Still:
    """Three arms that do not drift."""

    noise = 0.01
    means = (0.75, 0.5, 0.25)

    def values(self, horizon):
        return torch.tensor(self.means, dtype=torch.float64).expand(horizon, -1)


@pytest.mark.parametrize("name", PAIRS)
def test_a_strategy_is_its_twin_in_every_trial(name):
    strategy, twin = PAIRS[name]
    draws = torch.Generator().manual_seed(5)
    shape = TRIALS, ROUNDS
    coins, luck, noise = (torch.rand(shape, generator=draws, dtype=torch.float64) for _ in range(3))
    values = Switching().values(ROUNDS)
    policy = BanditPolicy("", strategy, BernoulliQuery(0.7))
    player = BanditPlayer(policy, TRIALS, ARMS, ROUNDS)
    naive = [twin() for _ in range(TRIALS)]
    for t in range(ROUNDS):
        at, query = player.decide(Chance(coins[:, t], luck[:, t]))
        rewards = values[t][at] + 0.4 * (noise[:, t] - 0.5)  # now and then beyond [0, 1]
        for i, one in enumerate(naive):
            arm, probability = one.decide(float(luck[i, t]), t)
            assert arm == int(at[i]), (i, t)
            assert float(player.advice.probability[i]) == pytest.approx(probability, rel=1e-9)
            assert bool(player.advice.explored[i]) == one.explored
            assert bool(query[i]) == (float(coins[i, t]) < 0.7)
            if query[i]:
                one.learn(arm, float(rewards[i]), t)
        player.take_in(at, rewards, query)
    if name == "EXP3.R":
        assert sum(one.resets for one in naive) > 0


def test_a_trial_is_the_same_among_many_as_alone():
    policies = [BanditPolicy(n, s, BernoulliQuery(0.5)) for n, (s, _) in PAIRS.items()]
    many = simulate_arms(Switching(), policies, trials=4, horizon=40, seed=3)
    alone = simulate_arms(Switching(), policies[::-1], trials=1, horizon=40, seed=3, first_trial=2)
    assert many.choice[:, 2].equal(alone.choice.flip(0)[:, 0])
    assert many.query[:, 2].equal(alone.query.flip(0)[:, 0])


@pytest.mark.parametrize("name", PAIRS)
def test_without_a_query_nothing_is_learnt(name):
    strategy, _ = PAIRS[name]
    state = strategy.begin(2, ARMS)
    flags = torch.tensor([True, False])
    number = torch.tensor([0.9, 0.9], dtype=torch.float64)
    arm = torch.tensor([1, 1])
    after = strategy.learn(state, Told(5 * number, arm, number, number, flags, flags))

    def of(state, trial):
        parts = state if isinstance(state, tuple) else (state,)
        nested = [p for part in parts for p in (part if isinstance(part, tuple) else (part,))]
        return [part[trial] for part in nested]

    assert all(a.equal(b) for a, b in zip(of(after, 1), of(state, 1), strict=True))
    assert not all(a.equal(b) for a, b in zip(of(after, 0), of(state, 0), strict=True))


@pytest.mark.parametrize(
    "strategy",
    [bandits.UCB1(forgetting=0.1), bandits.Softmax(forgetting=0.1)],
    ids=lambda strategy: type(strategy).__name__,
)
def test_queries_told_late_weigh_as_much_as_they_would_have(strategy):
    draws = torch.Generator().manual_seed(2)
    yes = torch.ones(2, dtype=torch.bool)
    told = [
        Told(
            torch.full((2,), t, dtype=torch.float64),
            torch.randint(ARMS, (2,), generator=draws),
            torch.rand(2, generator=draws, dtype=torch.float64),
            torch.ones(2, dtype=torch.float64),
            ~yes,
            yes,
        )
        for t in range(12)
    ]
    beliefs = []
    for order in (told, told[::-1], told[1::2] + told[::2]):
        state = strategy.begin(2, ARMS)
        for one in order:
            state = strategy.learn(state, one)
        beliefs.append(strategy.advise(state, 15, torch.zeros(2, dtype=torch.float64)).belief)
    for other in beliefs[1:]:
        torch.testing.assert_close(other.mean, beliefs[0].mean)
        torch.testing.assert_close(other.cov, beliefs[0].cov)


@pytest.mark.parametrize("rounds", quick([300, 1500], 300))
@pytest.mark.parametrize("strategy", [bandits.EXP3S(0.3), bandits.EXP3R(0.5, interval=1e6)])
def test_weights_neither_overflow_nor_vanish(strategy, rounds):
    """The probability of the arm counts, so a rule with an outlook queries that arm and no other."""
    player = BanditPlayer(BanditPolicy("", strategy, PricedQuery(price=0.0)), 2, ARMS, rounds)
    one = torch.ones(2, dtype=torch.float64)
    for _ in range(rounds):
        at, query = player.decide(player.chance())
        assert at[query].equal(player.advice.arm[query])
        player.take_in(at, one * (at == 1), query)
    weights = player._state if isinstance(strategy, bandits.EXP3S) else player._state.weights
    assert weights.log_weight.amax(-1).eq(0).all()
    assert player.advice.probability.isfinite().all()


def test_ucb1_stays_below_its_bound():
    horizon, trials = 600, 30
    policy = BanditPolicy("", bandits.UCB1(), AlwaysQuery())
    paid = simulate_arms(Still(), [policy], trials, horizon).regret.sum(-1).mean()
    gaps = [Still.means[0] - mean for mean in Still.means[1:]]
    bound = sum(8 * math.log(horizon) / gap for gap in gaps) + (1 + math.pi**2 / 3) * sum(gaps)
    # Every suboptimal arm is queried about 2 log(T) / gap^2 times, so there is a lower end as well.
    assert sum(math.log(horizon) / gap for gap in gaps) / 2 < paid < bound


@pytest.mark.parametrize(
    "strategy",
    [
        bandits.UCB1(),
        bandits.EpsilonGreedy(0.05),
        bandits.Softmax(0.05),
        bandits.EXP3S(0.05, 0.0),
        bandits.EXP3R(0.05),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
def test_regret_of_arms_that_stand_still_grows_more_and_more_slowly(strategy):
    policy = BanditPolicy("", strategy, BernoulliQuery(0.5))
    regret = simulate_arms(Still(), [policy], trials=40, horizon=400).regret[0].mean(0)
    early, late = regret[:100].mean(), regret[-100:].mean()
    assert late < 0.7 * early


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (bandits.EpsilonGreedy(0.3), 0.3 * 0.25),
        (bandits.EXP3S(0.2, 0.0), 0.2 * 0.25),
        # Half as much of an arm that is worse by log(2) temperatures.
        (bandits.Softmax(0.25 / math.log(2)), (0.25 * 2 + 0.5) / (4 + 2 + 1)),
    ],
    ids=["epsilon-greedy", "EXP3", "softmax"],
)
def test_what_explores_for_ever_pays_for_it_for_ever(strategy, expected):
    """Drawn alike, the arms lose 0, 0.25 and 0.5: 0.25 on average."""
    policy = BanditPolicy("", strategy, AlwaysQuery())
    regret = simulate_arms(Still(), [policy], trials=20, horizon=600).regret[0, :, 400:].mean()
    assert regret == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize(
    ("explored", "better", "reset", "over"),
    [
        ([0, 0, 1, 1, 2, 2], 0.95, True, True),
        ([0, 0, 1, 1, 2, 2], 0.90, False, True),
        ([0, 0, 1, 1, 2], 0.95, False, False),
    ],
    ids=["a drift", "too small", "not every arm"],
)
def test_exp3r_begins_anew_at_twice_the_width(explored, better, reset, over):
    """Two explored queries of each arm end an interval; twice the width is 0.833."""
    strategy = bandits.EXP3R(0.5, interval=12.0, doubt=0.5)
    one, yes = torch.ones(1, dtype=torch.float64), torch.tensor([True])

    def learn(state, arm, reward, explored):
        return strategy.learn(
            state, Told(0 * one, torch.tensor([arm]), reward * one, one / 3, explored, yes)
        )

    state = strategy.begin(1, ARMS)
    for _ in range(8):
        state = learn(state, 1, 1.0, ~yes)  # now the arm that is played most
    assert state.explored.eq(0).all()
    for arm in explored:
        state = learn(state, arm, {0: better, 1: 0.1, 2: 0.1}[arm], yes)
    assert bool(state.weights.log_weight.eq(0).all()) == reset
    assert bool(state.explored.eq(0).all() and state.total.eq(0).all()) == over


def test_without_a_drift_exp3r_is_exp3():
    """Means of 0.25, 0.5 and 0.75 differ by less than twice the width, 0.587."""
    strategies = bandits.EXP3R(0.2, interval=200.0, doubt=0.1), bandits.EXP3S(0.2, 0.0)
    policies = [BanditPolicy("", strategy, AlwaysQuery()) for strategy in strategies]
    detecting, plain = simulate_arms(Still(), policies, trials=5, horizon=700).choice
    assert detecting.equal(plain)


def test_a_gaussian_process_knows_the_best_arm_soon():
    policy = BanditPolicy("", bandits.GPUCB(bandits.ArmPrior("rbf", 300.0)), ConfidenceQuery(0.95))
    run = simulate_arms(Still(), [policy], trials=5, horizon=200)
    assert run.regret[0, :, 100:].mean() < 0.02
    assert run.query[0, :, 100:].double().mean() < 0.3


@pytest.mark.slow
def test_exp3_with_sharing_or_detection_comes_back_after_a_switch():
    policies = [
        BanditPolicy("EXP3", bandits.EXP3S(0.2, 0.0), AlwaysQuery()),
        BanditPolicy("EXP3.S", bandits.EXP3S(0.2, 0.001), AlwaysQuery()),
        BanditPolicy("EXP3.R", bandits.EXP3R(0.2, interval=200.0, doubt=0.3), AlwaysQuery()),
    ]
    regret = simulate_arms(Switching(), policies, trials=20, horizon=2400).regret
    plain, shared, detected = regret[:, :, 1200:].mean((1, 2)).tolist()
    assert shared < 0.8 * plain
    assert detected < 0.8 * plain


RULES = {
    "always": AlwaysQuery(),
    "coin": BernoulliQuery(0.4),
    "confidence": ConfidenceQuery(0.9),
    "joint": ConfidenceQuery(0.9, joint=True),
    "bounds": ConfidenceBoundQuery(),
    "mixed": MixedQuery(5, 30, 40),
    "price": PricedQuery(price=0.5),
    "budget": PricedQuery(budget=12),
    "mixed price": MixedQuery(5, 30, 40, PricedQuery(price=0.1)),
}


@pytest.mark.parametrize("rule", quick(RULES, "joint"))
def test_any_strategy_goes_with_any_rule(rule):
    strategies = {name: strategy for name, (strategy, _) in PAIRS.items()}
    strategies["GP-UCB"] = bandits.GPUCB()
    policies = [BanditPolicy(name, s, RULES[rule]) for name, s in strategies.items()]
    run = simulate_arms(Still(), policies, trials=2, horizon=40)
    assert run.regret.isfinite().all()
    assert (run.query.sum(-1) >= 1).all()
    if rule == "budget":
        assert (run.query.sum(-1) <= 12).all()


def test_rewards_of_another_range_make_the_same_decisions():
    class Shifted(Still):
        noise = 0.01 * 16

        def values(self, horizon):
            return 4 * super().values(horizon) - 3

    for strategy in (bandits.EXP3S(0.2), bandits.UCB1(), bandits.GPUCB()):
        there = BanditPolicy("", strategy, BernoulliQuery(0.5), rewards=RewardRange(-3.0, 1.0))
        here = BanditPolicy("", strategy, BernoulliQuery(0.5))
        theirs = simulate_arms(Shifted(), [there], trials=3, horizon=60)
        ours = simulate_arms(Still(), [here], trials=3, horizon=60)
        assert theirs.choice.equal(ours.choice)


NONSENSE = [
    (bandits.UCB1, -1.0),
    (bandits.UCB1, 1.0, 1.5),
    (bandits.EpsilonGreedy, 1.5),
    (bandits.EpsilonGreedy, 0.1, -0.1),
    (bandits.Softmax, 0.0),
    (bandits.Softmax, 0.1, 2.0),
    (bandits.EXP3S, 0.0),
    (bandits.EXP3S, 0.1, 1.5),
    (bandits.EXP3R, 0.0),
    (bandits.EXP3R, 0.1, 0.0),
    (bandits.EXP3R, 0.1, 10.0, 1.0),
    (bandits.GPUCB, "rbf"),
    (bandits.ArmPrior, "season"),
    (bandits.ArmPrior, "rbf", 0.0),
    (bandits.FitSchedule, 0),
    (bandits.FitSchedule, 6, 1.0),
    (RewardRange, 1.0, 0.0),
    (RewardRange, 0.0, math.inf),
    (RewardRange, math.nan, 1.0),
    (BanditPolicy, "", "UCB1", AlwaysQuery()),
    (BanditPolicy, "", bandits.UCB1(), "always"),
]


@pytest.mark.parametrize("case", NONSENSE, ids=lambda case: f"{case[0].__name__}{case[1:]}")
def test_what_makes_no_sense_is_refused_when_it_is_made(case):
    kind, *arguments = case
    with pytest.raises(InvalidArgumentError, match=r"Expected .*; Received"):
        kind(*arguments)
