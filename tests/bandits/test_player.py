"""What a player tells its query rule in each round, and what its copies leave alone."""

import math

import pytest
import torch

from botorch_costly.bandits import (
    EXP3S,
    GPUCB,
    UCB1,
    BanditPlayer,
    BanditPolicy,
    EpsilonGreedy,
    FitSchedule,
    RewardRange,
    Softmax,
)
from botorch_costly.query import RECENT, AlwaysQuery, QueryRule
from botorch_costly.query.rule import Verdict
from tests.oracles import bandits as twins, knowledge_gradient as oracle

TRIALS, ARMS, ROUNDS = 3, 3, 45
SHARE = 0.05


class Listening(QueryRule):
    """Queries by the coin, and keeps what it was told."""

    def __init__(self):
        self.heard = []

    def __call__(self, comparison, progress, generator):
        self.heard.append((comparison, progress))
        query = progress.coin < 0.4
        rate = progress.coin + progress.round  # a number that tells rounds and trials apart
        nothing = torch.zeros_like(progress.coin)
        return Verdict(query, nothing, nothing.long(), rate=rate)


def told_what(strategy, **options):
    """Play some rounds; return the player, what its rule heard, and what was queried in each trial."""
    rule = Listening()
    policy = BanditPolicy("", strategy, rule, **options)
    player = BanditPlayer(policy, TRIALS, ARMS, ROUNDS)
    draws = torch.Generator().manual_seed(4)
    queried = [[] for _ in range(TRIALS)]
    for t in range(ROUNDS):
        at, query = player.decide(player.chance())
        rewards = torch.rand(TRIALS, generator=draws, dtype=torch.float64)
        player.take_in(at, rewards, query)
        for i in query.nonzero().flatten().tolist():
            queried[i].append((t, int(at[i]), float(rewards[i])))
    return player, rule.heard, queried


def before(told, now):
    return [one for one in told if one[0] < now]


def test_a_rule_hears_how_far_each_trial_has_come():
    rewards = RewardRange(-2.0, 3.0)
    _, heard, queried = told_what(
        UCB1(forgetting=SHARE), rewards=rewards, bounds=lambda t: 1.0 + 0.5 * t
    )
    assert len(heard) == ROUNDS
    share = oracle.information_share([[float(a == b) for b in range(ARMS)] for a in range(ARMS)])
    for t, (comparison, progress) in enumerate(heard):
        assert progress.round == t + 1
        assert progress.horizon == ROUNDS
        assert progress.scale == 5.0
        assert progress.information_share == pytest.approx(share)
        assert comparison.beta.tolist() == [1.0 + 0.5 * (t + 1)] * TRIALS
        for i, told in enumerate(queried):
            rounds = [s for s, *_ in before(told, t)]
            assert progress.queries[i] == len(rounds)
            assert progress.forgetting[i] == SHARE
            effective = oracle.effective_queries(rounds, t, SHARE)
            assert float(progress.effective_queries[i]) == pytest.approx(effective)
            rates = [float(heard[s][1].coin[i]) + s + 1 for s in range(max(0, t - RECENT), t)]
            values = progress.query_values[i].tolist()
            assert values[RECENT - len(rates) :] == pytest.approx(rates)
            assert all(map(math.isnan, values[: RECENT - len(rates)]))


@pytest.mark.parametrize(
    ("strategy", "forgetting"),
    [
        (UCB1(forgetting=SHARE), SHARE),
        (EpsilonGreedy(0.3, forgetting=SHARE), SHARE),
        (Softmax(0.2, forgetting=SHARE), SHARE),
        (EXP3S(0.3, 0.01), 0.0),
    ],
    ids=lambda case: type(case).__name__,
)
def test_the_belief_of_a_strategy_without_one_is_normal(strategy, forgetting):
    _, heard, queried = told_what(strategy)
    for t in (0, 1, 7, 20, ROUNDS - 1):
        comparison, progress = heard[t]
        assert progress.forgetting.tolist() == [forgetting] * TRIALS
        for i, told in enumerate(queried):
            mean, variance = twins.sample_belief(before(told, t), ARMS, forgetting, t)
            assert comparison.rival_mean[i].tolist() == pytest.approx(mean)
            assert comparison.rival_variance[i].tolist() == pytest.approx(variance)
            own = comparison.exists[i].tolist().index(False)
            covariance = [variance[k] * (k == own) for k in range(ARMS)]
            assert comparison.rival_covariance[i].tolist() == pytest.approx(covariance)


@pytest.mark.parametrize("strategy", [UCB1(forgetting=SHARE), EXP3S(0.3)])
def test_noise_and_prior_of_such_a_belief_are_those_of_the_largest_variance(strategy):
    player, *_ = told_what(strategy)
    belief = player.advice.belief
    assert belief.noise.tolist() == [0.25] * TRIALS
    assert belief.prior_cov.equal(0.25 * torch.eye(ARMS).double().expand(TRIALS, -1, -1))


def test_hyperparameters_are_learnt_while_it_plays():
    player, _, queried = told_what(GPUCB(fit=FitSchedule(first=3, growth=1.5, every=1)))
    assert min(map(len, queried)) > 6
    assert player._state.fitted.gt(3).all()
    assert player._state.theta.unique(dim=0).shape[0] == TRIALS


@pytest.mark.parametrize("strategy", [Softmax(0.2), GPUCB()], ids=["softmax", "GP-UCB"])
def test_a_copy_goes_on_alone(strategy):
    player, other = (
        BanditPlayer(BanditPolicy("", strategy, AlwaysQuery()), TRIALS, ARMS) for _ in range(2)
    )
    one = torch.ones(TRIALS, dtype=torch.float64)
    for _ in range(8):
        copied = player.copy()
        at, query = copied.decide(copied.chance())
        copied.take_in(at, 9 * one, query)
        at, query = player.decide(player.chance())
        assert at.equal(other.decide(other.chance()).where)
        player.take_in(at, one / 2, query)
        other.take_in(at, one / 2, query)
    assert all(a.equal(b) for a, b in zip(player.advice.belief, other.advice.belief, strict=True))
