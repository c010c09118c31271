"""What a query rule is asked about a bandit, against a loop over trials and arms."""

import pytest
import torch

from botorch_costly.bandits.strategy import Advice, ArmBelief
from botorch_costly.bandits.weighing import arm_proposal
from botorch_costly.query import Outlook
from tests.oracles import bandits as twins

TRIALS, ARMS, BETA = 12, 4, 1.7


def beliefs(generator):
    """Correlated beliefs of some trials, each with its own noise and forgetting, and an advised arm."""

    def draw(*size):
        return torch.randn(size, generator=generator, dtype=torch.float64)

    prior_root, root = draw(TRIALS, ARMS, ARMS), 0.5 * draw(TRIALS, ARMS, ARMS)
    noise = 0.02 + 0.3 * torch.rand(TRIALS, generator=generator, dtype=torch.float64)
    forgetting = 0.3 * torch.rand(TRIALS, generator=generator, dtype=torch.float64)
    mean, cov = 0.3 * draw(TRIALS, ARMS), root @ root.mT / ARMS
    prior_cov = cov + prior_root @ prior_root.mT / ARMS
    belief = ArmBelief(mean, cov, prior_cov, noise, forgetting)
    arm = torch.randint(ARMS, (TRIALS,), generator=generator)
    return Advice(arm, torch.ones_like(noise), torch.zeros_like(arm).bool(), belief)


def of_trial(belief, i):
    return [part[i].tolist() for part in belief]


@pytest.mark.parametrize("weight", [0.0, 0.6])
@pytest.mark.parametrize("chooses", [True, False])
def test_where_a_query_is_weighed_is_a_loop_over_trials_and_arms(weight, chooses, generator):
    advice = beliefs(generator)
    horizon = torch.linspace(0.5, 20, TRIALS, dtype=torch.float64)
    outlook = Outlook(horizon, 0.4, weight)
    found = arm_proposal(advice, outlook, BETA, plays_mean=False, chooses=chooses)
    for i in range(TRIALS):
        at, unqueried, promise = twins.proposal(
            of_trial(advice.belief, i),
            int(advice.arm[i]),
            (float(horizon[i]), 0.4, weight),
            False,
            chooses,
        )
        assert (int(found.query_at[i]), int(found.play_unqueried[i])) == (at, unqueried)
        prospect = [float(part[i]) for part in found.comparison.prospect]
        assert prospect == pytest.approx(promise, abs=2e-3)
        # With an outlook the candidate is what a round without a query plays.
        assert found.comparison.mean[i] == advice.belief.mean[i, unqueried]


@pytest.mark.parametrize("plays_mean", [True, False])
def test_without_an_outlook_the_strategy_says_where(plays_mean, generator):
    advice = beliefs(generator)
    found = arm_proposal(advice, None, BETA, plays_mean=plays_mean, chooses=True)
    for i in range(TRIALS):
        terms = of_trial(advice.belief, i), int(advice.arm[i]), None, plays_mean, True
        at, unqueried, _ = twins.proposal(*terms)
        assert (int(found.query_at[i]), int(found.play_unqueried[i])) == (at, unqueried)
    assert found.comparison.prospect is None


def test_every_other_arm_is_a_rival_of_the_candidate(generator):
    advice = beliefs(generator)
    comparison = arm_proposal(advice, None, BETA, plays_mean=False, chooses=True).comparison
    for i, arm in enumerate(advice.arm.tolist()):
        mean, cov, *_ = of_trial(advice.belief, i)
        assert (comparison.mean[i], comparison.variance[i]) == (mean[arm], cov[arm][arm])
        assert comparison.rival_mean[i].tolist() == mean
        assert comparison.rival_variance[i].tolist() == [cov[k][k] for k in range(ARMS)]
        assert comparison.rival_covariance[i].tolist() == pytest.approx(cov[arm])
        assert comparison.exists[i].tolist() == [k != arm for k in range(ARMS)]
        assert comparison.beta[i] == BETA
