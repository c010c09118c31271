"""The belief about arms against dense algebra, and its hyperparameters against the evidence itself."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal

from botorch_costly.bandits import GPUCB, ArmPrior, FitSchedule, Told
from botorch_costly.bandits.arm_fitting import _log_density, refitted
from botorch_costly.bandits.arm_process import LEVEL
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from tests.oracles import bandits as twins

PHI = {
    "rbf": lambda r: math.exp(-(r**2) / 2),
    "matern12": lambda r: math.exp(-r),
    "matern32": lambda r: (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r),
    "matern52": lambda r: (1 + math.sqrt(5) * r + 5 * r**2 / 3) * math.exp(-math.sqrt(5) * r),
}
ARMS = ((1.0, 0.6, 0.1), (0.6, 1.2, 0.0), (0.1, 0.0, 0.9))
EYE = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
STD, NOISE, LENGTHSCALE = 0.4, 0.2, 30.0


def queries(trials, rounds, seed=0, rate=0.6):
    """What is told in each round, and the same trial by trial; some rounds of some are not queried."""
    draws = torch.Generator().manual_seed(seed)
    every, alone = [], [[] for _ in range(trials)]
    for t in range(rounds):
        arm = torch.randint(3, (trials,), generator=draws)
        reward = torch.rand(trials, generator=draws, dtype=torch.float64)
        query = torch.rand(trials, generator=draws) < rate
        now = torch.full_like(reward, t)
        every.append(Told(now, arm, reward, torch.ones_like(reward), ~query, query))
        for i in query.nonzero().flatten().tolist():
            alone[i].append((t, int(arm[i]), float(reward[i])))
    return every, alone


def strategy(family="rbf", arms=None, **options):
    prior = ArmPrior(family, LENGTHSCALE, std=STD, noise_std=NOISE)
    return GPUCB(prior, arms=arms, fit=None, **options)


def learnt(bandit, every, trials):
    state = bandit.begin(trials, 3)
    for told in every:
        state = bandit.learn(state, told)
    return state


@pytest.mark.parametrize("family", PHI)
@pytest.mark.parametrize("arms", [None, ARMS], ids=["independent", "correlated"])
def test_the_belief_is_the_dense_one(family, arms):
    every, alone = queries(trials=3, rounds=60)
    bandit = strategy(family, arms)
    state = learnt(bandit, every, 3)
    now = 75
    belief = bandit.advise(state, now, torch.rand(3, dtype=torch.float64)).belief
    for i, told in enumerate(alone):
        mean, cov, level = twins.arm_process(
            arms or EYE, lambda lag: PHI[family](lag / LENGTHSCALE), STD, NOISE, told, now
        )
        torch.testing.assert_close(belief.mean[i], mean, rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(belief.cov[i], cov, rtol=1e-7, atol=1e-9)
        assert float(state.level[i]) == pytest.approx(level, rel=1e-8)


def test_before_the_first_query_every_arm_is_as_good():
    bandit = strategy()
    belief = bandit.advise(bandit.begin(2, 3), 0, torch.zeros(2, dtype=torch.float64)).belief
    assert belief.mean.eq(LEVEL).all()
    assert belief.cov.equal(belief.prior_cov)


# After one loss of the oldest quarter, and after many.
@pytest.mark.parametrize("rounds", [26, 70])
def test_of_more_queries_than_fit_the_latest_are_kept(rounds):
    every, alone = queries(trials=2, rounds=rounds, rate=0.9)
    bandit = strategy(capacity=20)
    state = learnt(bandit, every, 2)
    assert state.told.tolist() == [len(told) for told in alone]
    assert (state.taken <= 20).all()
    belief = bandit.advise(state, rounds, torch.rand(2, dtype=torch.float64)).belief
    for i, told in enumerate(alone):
        kept = told[-int(state.taken[i]) :]
        assert 15 <= len(kept) < len(told)
        mean, *_ = twins.arm_process(
            EYE, lambda lag: PHI["rbf"](lag / LENGTHSCALE), STD, NOISE, kept, rounds
        )
        torch.testing.assert_close(belief.mean[i], mean, rtol=1e-7, atol=1e-9)


def test_queries_told_late_make_the_same_belief():
    every, _ = queries(trials=2, rounds=20)
    bandit = strategy()
    luck = torch.rand(2, dtype=torch.float64)
    ours = bandit.advise(learnt(bandit, every, 2), 20, luck).belief
    theirs = bandit.advise(learnt(bandit, every[::-1], 2), 20, luck).belief
    torch.testing.assert_close(ours.mean, theirs.mean)
    torch.testing.assert_close(ours.cov, theirs.cov)


@pytest.mark.parametrize("family", PHI)
def test_the_rate_at_which_a_belief_becomes_old_is_that_of_its_memory(family):
    """The forgetting kernel of that rate has the same integral as the time kernel."""
    bandit = strategy(family)
    belief = bandit.advise(bandit.begin(1, 3), 0, torch.zeros(1, dtype=torch.float64)).belief
    rate = float(belief.forgetting)
    lags = torch.arange(0, 600.0, 0.05, dtype=torch.float64)
    integral = sum(PHI[family](lag / LENGTHSCALE) for lag in lags.tolist()) * 0.05
    assert -2 / math.log1p(-rate) == pytest.approx(integral, rel=2e-3)


@pytest.mark.parametrize("family", PHI)
def test_what_is_learnt_is_the_highest_density(family):
    every, alone = queries(trials=3, rounds=40)
    spreads = {"lengthscale_spread": 0.8, "std_spread": 0.3, "noise_spread": 0.7}
    prior = ArmPrior(family, LENGTHSCALE, std=STD, noise_std=NOISE, **spreads)
    bandit = GPUCB(prior, arms=ARMS, fit=None)
    state = learnt(bandit, every, 3)

    def density(i, theta):
        """Log evidence and log prior, up to a constant, by the definition."""
        length, std, noise = theta[0].exp(), (theta[1] / 2).exp(), (theta[2] / 2).exp()
        t, a, y = (torch.tensor(part).double() for part in zip(*alone[i], strict=True))
        y = torch.tensor([reward for *_, reward in alone[i]], dtype=torch.float64)
        lag = (t[:, None] - t).abs() / length
        phi = [[PHI[family](float(x)) for x in row] for row in lag]
        arms = torch.tensor(ARMS, dtype=torch.float64)[a.long()][:, a.long()]
        K = std**2 * arms * torch.tensor(phi, dtype=torch.float64) + noise**2 * torch.eye(
            len(y), dtype=torch.float64
        )
        level = state.level[i].expand(len(y))
        away = (theta - prior.center()) / prior.spread()
        return float(MultivariateNormal(level, K).log_prob(y) - away.square().sum() / 2)

    ours = _log_density(state, prior)
    draws = torch.Generator().manual_seed(1)
    others = prior.center() + prior.spread() * torch.randn(3, 20, 3, generator=draws).double()
    value, gradient = ours(others)
    for i in range(3):
        expected = torch.tensor([density(i, one) for one in others[i]], dtype=torch.float64)
        torch.testing.assert_close(value[i], expected, rtol=1e-8, atol=1e-8)
    step = 1e-5
    for k in range(3):
        away = step * torch.eye(3, dtype=torch.float64)[k]
        slope = (ours(others + away)[0] - ours(others - away)[0]) / (2 * step)
        torch.testing.assert_close(gradient[..., k], slope, rtol=1e-4, atol=1e-5)

    fitted = refitted(state, prior, torch.tensor([0, 2]))
    assert fitted.theta[1].equal(state.theta[1])
    assert fitted.fitted.tolist() == [int(state.told[0]), 0, int(state.told[2])]
    for i in (0, 2):
        assert density(i, fitted.theta[i]) >= float(value[i].max()) - 1e-6
    again = bandit.advise(fitted, 40, torch.zeros(3, dtype=torch.float64)).belief
    theta = fitted.theta[0]
    mean, *_ = twins.arm_process(
        ARMS,
        lambda lag: PHI[family](lag / float(theta[0].exp())),
        float((theta[1] / 2).exp()),
        float((theta[2] / 2).exp()),
        alone[0],
        40,
    )
    torch.testing.assert_close(again.mean[0], mean, rtol=1e-6, atol=1e-8)


def test_a_hyperparameter_without_spread_stays():
    every, _ = queries(trials=2, rounds=40)
    prior = ArmPrior("rbf", LENGTHSCALE, noise_std=NOISE, lengthscale_spread=0, noise_spread=0)
    bandit = GPUCB(prior)
    state = bandit.refresh(learnt(bandit, every, 2), 40)
    assert state.fitted.equal(state.told)
    torch.testing.assert_close(state.theta[:, 0].exp(), torch.full((2,), LENGTHSCALE).double())
    torch.testing.assert_close(state.theta[:, 2].exp(), torch.full((2,), NOISE**2).double())
    assert not state.theta[:, 1].eq(prior.center()[1]).any()


def test_the_schedule_waits_for_a_share_more_queries():
    every, _ = queries(trials=1, rounds=40, rate=1.0)
    bandit = GPUCB(fit=FitSchedule(first=4, growth=2.0, every=3))
    state, times = bandit.begin(1, 3), []
    for t, told in enumerate(every):
        before = int(state.fitted)
        state = bandit.refresh(state, t)
        times += [t] if int(state.fitted) != before else []
        state = bandit.learn(state, told)
    assert times == [6, 12, 24]


def test_the_arm_with_the_largest_bound_is_advised():
    """Beta is 0 in odd rounds, counted from 1, and 0.09 in even ones."""
    every, alone = queries(trials=60, rounds=12)
    bandit = strategy("matern32", ARMS, beta=lambda t: 0.0 if t % 2 else 0.09)
    state, chosen = learnt(bandit, every, 60), []
    for now in (25, 26, 40, 41):
        advice = bandit.advise(state, now, torch.full((60,), 0.5, dtype=torch.float64))
        scale = 0.0 if (now + 1) % 2 else 0.3
        for i, told in enumerate(alone):
            mean, cov, _ = twins.arm_process(
                ARMS, lambda lag: PHI["matern32"](lag / LENGTHSCALE), STD, NOISE, told, now
            )
            bound = mean + scale * cov.diagonal().sqrt()
            assert advice.arm[i] == bound.argmax()
            chosen.append((int(mean.argmax()), int(bound.argmax())))
    assert any(mean != bound for mean, bound in chosen)
    assert advice.probability.eq(1).all()
    assert not advice.explored.any()


def test_medians_and_spreads_are_those_of_logarithms():
    prior = ArmPrior(
        "rbf",
        50.0,
        std=0.4,
        noise_std=0.2,
        lengthscale_spread=0.7,
        std_spread=0.3,
        noise_spread=0.6,
    )
    # The square of a lognormal number has twice the spread.
    assert prior.center().exp().tolist() == pytest.approx([50.0, 0.16, 0.04])
    assert prior.spread().tolist() == pytest.approx([0.7, 0.6, 1.2])


@pytest.mark.parametrize("arms", [((1.0, 0.2), (0.3, 1.0)), ((1.0, 2.0), (2.0, 1.0))])
def test_a_covariance_that_is_none_is_refused(arms):
    with pytest.raises(InvalidArgumentError, match="symmetric positive definite"):
        GPUCB(arms=arms)


def test_a_covariance_of_other_arms_is_refused():
    with pytest.raises(InvalidShapeError, match="covariance of 4 arms"):
        GPUCB(arms=ARMS).begin(1, 4)
