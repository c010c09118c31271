"""Rewards told with variances: what they weigh, what a variance of 0 changes, states and errors."""

import json
import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.ask_tell.observed import observation_of
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.robust import normal_scores, weighted_scores
from botorch_costly.numerics.stationary import Stationary
from botorch_costly.rewards.scale import RewardScale
from botorch_costly.tuners import BanditTuner
from botorch_costly.tuners.online.learner import Learner
from botorch_costly.tuners.online.options import Refit, ResolvedPrior
from tests.cases import slow

DOUBLE = {"dtype": torch.float64, "device": torch.device("cpu")}
SPACE = bc.SearchSpace({"a": bc.Real(0.0, 1.0), "b": bc.Real(0.0, 1.0)})
SCALES = {
    "ranks": RewardScale(ranks=True, winsorize_lower=0.4),
    "all ranks": RewardScale(ranks=True),
    "values": RewardScale(),
    "given": RewardScale(0.0, 1.0),
    "unclipped": RewardScale(clip=math.inf),
}


def learner(scale, refit=None):
    prior = ResolvedPrior("matern52", 0.5, 0.5, 0.01)
    return Learner(prior, refit or Refit(), scale, DOUBLE)


def rewards_of(n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    noise = 0.2 * torch.randn(n, generator=generator, dtype=torch.float64)
    return x, (x[:, 0] - x[:, 1] ** 2 + noise).tolist()


def feed(belief, x, rewards, variances):
    for now, (row, reward, variance) in enumerate(zip(x, rewards, variances, strict=True)):
        belief.observe(row, now, reward, variance)
    return belief


def asked(now):
    x = torch.rand(12, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return torch.cat([x, torch.full((12, 1), float(now), dtype=torch.float64)], -1)


# -- the map from variances to noise --------------------------------------------------------------


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("reward", [-50.0, -0.3, 0.1, 50.0])
@pytest.mark.parametrize("place", [0, 5, 9])
def test_a_reward_of_huge_variance_moves_the_belief_hardly_at_all(name, reward, place):
    """Law of all scales: neither its row nor the targets of the others, wherever it lies."""
    x, rewards = rewards_of(10)
    plain = feed(learner(SCALES[name]), x, rewards, [0.0] * 10)
    more = learner(SCALES[name])
    for now in range(10):
        if now == place:
            more.observe(torch.tensor([0.3, 0.6]).double(), now, reward, 1e12)
        more.observe(x[now], now, rewards[now])
    before, after = (belief.model.mean_and_variance(asked(10)) for belief in (plain, more))
    for a, b in zip(before, after, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SCALES)
def test_the_more_variance_the_less_a_reward_moves_the_mean_at_its_place(name):
    x, rewards = rewards_of(10)
    x[9], place = torch.tensor([0.9, 0.1]).double(), torch.tensor([[0.9, 0.1, 9.0]]).double()
    before = feed(learner(SCALES[name]), x[:9], rewards[:9], [0.0] * 9).belief
    change = []
    for variance in (0.0, 0.01, 0.1, 1.0, 10.0, 1e3, 1e6):
        variances = [0.0] * 9 + [variance]
        after = feed(learner(SCALES[name]), x, [*rewards[:9], 3.0], variances).belief
        _, uncertainty = after.mean_and_variance(place)
        change.append(float(uncertainty))
    _, prior = before.mean_and_variance(place)
    assert change == sorted(change)
    assert change[0] < change[2] < change[4] < float(prior) * (1 + 1e-6)


def test_variances_are_converted_by_the_slope_of_the_map():
    """Of ranks as of values: 1 over the scale near the center, smaller far below the others."""
    generator = torch.Generator().manual_seed(1)
    rewards = 3 + 0.5 * torch.randn(400, generator=generator, dtype=torch.float64)
    rewards[0] = -500.0
    for name in ("all ranks", "values"):
        scale = SCALES[name]
        affine = scale.fit(rewards.tolist())
        slopes = scale.slopes(rewards, scale.targets(rewards, affine), affine)
        near = (rewards - 3).abs() < 1
        expected = torch.full_like(slopes[near], 1 / affine.scale)
        torch.testing.assert_close(slopes[near], expected, rtol=0.2, atol=0)
        assert 0 < slopes[0] < 0.01 / affine.scale
    within = (rewards - 3).abs() < 1
    torch.testing.assert_close(slopes[within], expected, rtol=1e-12, atol=0)  # of values exactly


@pytest.mark.parametrize("name", ["ranks", "values"])
def test_a_round_that_diverged_is_believed_although_its_loss_is_uncertain(name):
    """The deviation of its gain is large beside the usual gains, and small beside its own size."""
    x, rewards = rewards_of(12)
    rewards = [0.01 * reward for reward in rewards]
    rewards[4] = -1.0
    exact = feed(learner(SCALES[name]), x, rewards, [0.0] * 12)
    unsure = feed(learner(SCALES[name]), x, rewards, [0.0] * 4 + [0.05**2] + [0.0] * 7)
    usual = feed(learner(SCALES[name]), x, rewards, [0.0] * 5 + [0.05**2] + [0.0] * 6)
    assert unsure.model.extra_noise[4] < 0.1 * exact.model.noise
    assert usual.model.extra_noise[5] > 10 * exact.model.noise


def test_the_belief_is_a_naive_one_with_the_noise_of_each_row():
    x, rewards = rewards_of(15)
    variances = [0.0 if i % 3 else 0.02 for i in range(15)]
    belief = feed(learner(RewardScale(0.1, 2.0)), x, rewards, variances)
    kernel = Stationary("matern52", torch.tensor([0.5]).double(), torch.ones(()).double())
    for i, variance in enumerate(variances):
        assert belief.model.extra_noise[i] == pytest.approx(variance / 4)
    naive = StreamingGP(kernel, 0.01, 0.5)
    for i in range(15):
        row = torch.cat([x[i], torch.tensor([float(i)]).double()])
        naive.observe(row, (rewards[i] - 0.1) / 2, variances[i] / 4)
    torch.testing.assert_close(
        belief.belief.mean_and_covariance(asked(15)), naive.mean_and_covariance(asked(15))
    )


def test_weighted_ranks_of_equal_weights_are_ranks():
    rewards = torch.tensor([3.0, 1.0, 1.0, 9.0, 3.0, 3.0], dtype=torch.float64)
    ones = torch.ones(6, dtype=torch.float64)
    torch.testing.assert_close(weighted_scores(rewards, ones), normal_scores(rewards))
    doubled = weighted_scores(torch.cat([rewards, rewards]), torch.cat([ones, 0 * ones]))
    torch.testing.assert_close(doubled[:6], normal_scores(rewards))
    lone = weighted_scores(rewards, torch.eye(6, dtype=torch.float64)[2])
    assert lone.tolist() == [0.0] * 6  # as of a single reward, and finite


# -- tuners ---------------------------------------------------------------------------------------


def reward_of(decision):
    a, b = decision.config["a"], decision.config["b"]
    return -((a - 0.3) ** 2) - (b - 0.6) ** 2


def play(tuner, rounds, variance=None):
    for _ in range(rounds):
        decision = tuner.ask()
        if decision.query:
            told = {} if variance is None else {"variance": variance(decision.round)}
            tuner.tell(decision, reward_of(decision), **told)
    return [(d.config, d.query) for d in tuner.decisions]


def tuner_of(**options):
    return bc.OnlineTuner(SPACE, 24, hold=bc.Hold(share=0.0), **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"refit": bc.Refit(every=5, seconds=60.0)}, {"query": bc.PricedQuery(0.01)},
     {"dtype": torch.float32}],
    ids=["ranks", "refits", "a price", "single precision"],
)  # fmt: skip
def test_a_variance_of_zero_is_none(options):
    plain, zero = tuner_of(**options), tuner_of(**options)
    assert play(plain, 16) == play(zero, 16, lambda _: 0.0)
    assert all(map(torch.equal, plain.belief.factor, zero.belief.factor))


@pytest.mark.parametrize("refit", [slow(None), bc.Refit(every=5, seconds=60.0)])
def test_a_run_with_variances_continues_from_its_state(refit):
    def variance(t):
        return 0.01 * (t % 3)

    whole, first, second = (tuner_of(refit=refit) for _ in range(3))
    play(whole, 20, variance)
    play(first, 11, variance)
    second.load_state_dict(first.state_dict())
    assert play(second, 9, variance) == [(d.config, d.query) for d in whole.decisions]
    assert second.observations == whole.observations
    assert second.observations[2].variance == 0.02
    assert [row["variance"] for row in second.history] == [
        variance(t) if second.decisions[t].query else None for t in range(20)
    ]
    json.dumps(second.history)


def test_states_of_earlier_versions_load():
    old, new = tuner_of(), tuner_of()
    play(old, 8)
    state = old.state_dict()
    model = state["learner"]["model"]
    del model["variances"], model["extra"]
    outcomes = json.loads(state["ledger"]["outcomes"])
    for outcome in outcomes:
        del outcome["variance"]
    state["ledger"]["outcomes"] = json.dumps(outcomes)
    new.load_state_dict(state)
    assert play(new, 6, lambda _: 0.1) == play(old, 6, lambda _: 0.1)


@pytest.mark.parametrize("maximize", [True, False])
def test_the_sign_of_rewards_leaves_their_variance(maximize):
    tuner = tuner_of(maximize=maximize)
    for _ in range(6):
        decision = tuner.ask()
        tuner.tell(decision, (1 if maximize else -1) * reward_of(decision), variance=0.3)
    assert (tuner.belief.extra_noise > 0).all()
    assert tuner.belief.variances.tolist() == [0.3] * 6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_variances_leave_finite_decisions(dtype):
    tuner = tuner_of(dtype=dtype)
    extremes = [1e-300, 1e300 if dtype == torch.float64 else 1e50, 0.0, 1.0, 1e20]
    play(tuner, 20, lambda t: extremes[t % 5])
    mean, std = tuner.predict([{"a": 0.5, "b": 0.5}])
    assert bool(mean.isfinite().all() & std.isfinite().all())


@pytest.mark.parametrize("variance", [-1.0, math.nan, math.inf, "much", True, None, 1e308])
def test_bad_variances_are_named_and_change_nothing(variance):
    tuner = tuner_of()
    decision = tuner.ask()
    with pytest.raises(InvalidArgumentError, match=r"variance: Expected .*; Received"):
        tuner.tell(decision, 1.0, variance=variance)
    assert tuner.observations == ()
    tuner.tell(decision, 1.0, variance=torch.tensor(0.5))
    assert tuner.observations[0].variance == 0.5


def test_a_failed_query_keeps_its_record():
    tuner = tuner_of()
    decisions = [tuner.ask() for _ in range(2)]
    assert tuner.tell(decisions[0], math.nan, variance=0.1).failed
    assert tuner.tell(decisions[1], None, variance=0.1).reward is None
    assert tuner.belief.num_rows == 0


def test_an_observation_is_read_back_with_and_without_a_variance():
    told = observation_of(bc.Decision(4, {"a": 0.1}, query=True, reason=""), 1.0, variance=0.25)
    values = told.to_dict()
    assert bc.Observation.from_dict(values) == told
    del values["variance"]
    assert bc.Observation.from_dict(values).variance == 0.0


def test_a_bandit_has_one_noise_for_all_rewards():
    space = bc.SearchSpace({"a": bc.Choice([0, 1])})
    bandit = BanditTuner(space, 10)
    decision = bandit.ask()
    with pytest.raises(InvalidArgumentError, match=r"variance: Expected 0, .*OnlineTuner"):
        bandit.tell(decision, 0.5, variance=0.1)
    bandit.tell(decision, 0.5, variance=0.0)
    arms = bc.OnlineTuner(space, 10)
    arms.tell(arms.ask(), 0.5, variance=0.1)
    assert arms.belief.variances.tolist() == [0.1]


def test_told_on_a_device_as_on_the_cpu(tkwargs):
    """The belief of a device, with its scale and ranks, is that of the CPU."""
    device = tkwargs["device"]
    here, there = tuner_of(), tuner_of(device=device)
    for t in range(12):
        decision = here.ask()
        other = there.enqueue(decision.config)
        for tuner, which in ((here, decision), (there, other)):
            tuner.tell(which, reward_of(which), variance=0.02 * (t % 2))
    rows = asked(12)
    means = [
        tuner.belief.mean_and_variance(rows.to(tuner.belief.inputs)) for tuner in (here, there)
    ]
    for a, b in zip(*means, strict=True):
        torch.testing.assert_close(a, b.cpu())
