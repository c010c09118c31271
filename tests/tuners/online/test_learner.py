"""The belief inside a tuner: refits that move towards the truth, and failures that change nothing."""

import logging
import math
from dataclasses import replace

import pytest
import torch

from botorch_costly.errors import NumericalError
from botorch_costly.models.fitting import fit
from botorch_costly.numerics.stationary import Stationary, covariance
from botorch_costly.rewards.scale import RewardScale, normal_scores
from botorch_costly.tuners.online import learner as module
from botorch_costly.tuners.online.learner import Learner
from botorch_costly.tuners.online.options import Refit, ResolvedPrior

DOUBLE = {"dtype": torch.float64, "device": torch.device("cpu")}


def make(every=None, prior=None, tkwargs=DOUBLE, scale=None, **refits):
    options = {"kernel": "matern52", "lengthscale": 0.5, "noise": 0.5, "forgetting": 0.01}
    prior = ResolvedPrior(**{**options, **(prior or {})})
    return Learner(prior, Refit(every=every, **refits), scale or RewardScale(), tkwargs)


def drifting(n, lengthscale=0.15, noise=0.02, forgetting=0.005, dim=1, seed=0):
    """Draw inputs and rewards of a truth with known hyperparameters, one query a round."""
    draws = torch.Generator().manual_seed(seed)
    x = torch.rand(n, dim, generator=draws, dtype=torch.float64)
    times = torch.arange(n, dtype=torch.float64)
    kernel = Stationary("matern52", torch.full((dim,), lengthscale).double(), torch.ones(()))
    keep = (1 - forgetting) ** ((times.unsqueeze(-1) - times).abs() / 2)
    noisy = covariance(kernel, x, x) * keep + noise * torch.eye(n, dtype=torch.float64)
    normal = torch.randn(n, generator=draws, dtype=torch.float64)
    return x, (torch.linalg.cholesky(noisy) @ normal).tolist()


def feed(belief, x, rewards, start=0):
    for i, reward in enumerate(rewards[start:], start):
        belief.observe(x[i].to(belief.model.kernel.outputscale), i, reward)
    return belief


def settings_of(belief):
    model = belief.model
    kernel = model.kernel
    return (*kernel.lengthscale.tolist(), kernel.outputscale.item(), model.noise, model.forgetting)


def evidence(belief):
    """Return the log marginal likelihood of the belief's targets, without its constant."""
    chol, _, whitened = belief.model._factor
    return (-0.5 * whitened.square().sum() - chol.diagonal().log().sum()).item()


# -- what a refit learns --------------------------------------------------------------------------


def test_a_refit_moves_the_hyperparameters_towards_the_truth():
    x, rewards = drifting(100)
    belief = feed(make(100, seconds=60.0, forgetting=True), x, rewards)
    (lengthscale,) = belief.model.kernel.lengthscale.tolist()
    assert abs(math.log(lengthscale / 0.15)) < 0.6 * abs(math.log(0.5 / 0.15))
    assert abs(math.log(belief.model.noise / 0.02)) < 0.6 * abs(math.log(0.5 / 0.02))
    assert 0.0005 < belief.model.forgetting < 0.05
    assert belief.model.forgetting != 0.01  # where it began
    assert evidence(belief) > evidence(feed(make(), x, rewards)) + 10


def test_refitted_hyperparameters_carry_the_same_data():
    x, rewards = drifting(30)
    belief, never = (feed(make(every, seconds=60.0), x, rewards) for every in (30, None))
    model, other = belief.model, never.model
    assert torch.equal(model.inputs, other.inputs)
    assert torch.equal(model.rewards, other.rewards)
    assert torch.equal(model.targets, other.targets)
    assert (model.center, model.scale) == (other.center, other.scale)
    assert model.maximum_rows == other.maximum_rows
    before = model.mean_and_covariance(model.inputs[:5] + 0.25)
    model.refactorize()
    torch.testing.assert_close(model.mean_and_covariance(model.inputs[:5] + 0.25), before)


@pytest.mark.parametrize("kernel", ["matern12", "matern32", "matern52"])
def test_a_refit_keeps_the_family(kernel):
    x, rewards = drifting(12)
    belief = feed(make(12, {"kernel": kernel}), x, rewards)
    assert belief.model.kernel.family == kernel
    assert belief.model.kernel.lengthscale.item() != 0.5


def test_a_given_forgetting_rate_is_kept_to_the_last_digit():
    x, rewards = drifting(12)
    for tkwargs in (DOUBLE, {**DOUBLE, "dtype": torch.float32}):
        belief = feed(make(4, {"forgetting": 0.013}, tkwargs), x, rewards)
        assert belief.model.forgetting == 0.013


# -- when, from where, and for how long -----------------------------------------------------------


def spy_on_fits(monkeypatch, fit=None):
    fits = []

    def watched(family, inputs, targets, present, **kwargs):
        start, *rest = present
        fits.append(((*start.tolist(), *(value.item() for value in rest)), kwargs))
        return (fit or original)(family, inputs, targets, present, **kwargs)

    original = module.fit
    monkeypatch.setattr(module, "fit", watched)
    return fits


def test_refits_come_on_schedule_and_start_from_the_last_one(monkeypatch):
    fits = spy_on_fits(monkeypatch)
    x, rewards = drifting(13)
    belief = make(4, {"noise": 0.4}, forgetting=True)
    for i, reward in enumerate(rewards):
        before = settings_of(belief)
        belief.observe(x[i], i, reward)
        assert len(fits) == (i + 1) // 4
        if (i + 1) % 4 == 0:
            assert fits[-1][0] == before
            assert settings_of(belief) != before
        else:
            assert settings_of(belief) == before


def test_by_default_nothing_is_refitted(monkeypatch):
    fits = spy_on_fits(monkeypatch)
    before = settings_of(make())
    assert settings_of(feed(make(), *drifting(12))) == before
    assert fits == []


def test_the_time_cap_is_respected(monkeypatch):
    """A cap of nothing stops every fit after a step, and what it reached is taken over."""
    x, rewards = drifting(150, dim=3)
    belief = feed(make(), x, rewards)
    belief.refit = Refit(every=1, seconds=1e-6)
    fits = spy_on_fits(monkeypatch)
    before = settings_of(belief)
    belief._refit()
    assert fits[0][1]["seconds"] == 1e-6
    hurried = evidence(belief)
    assert settings_of(belief) != before
    belief.refit = Refit(every=1, seconds=60.0)
    belief._refit()
    assert evidence(belief) > hurried + 1  # so it was the cap that stopped it


def test_a_refit_draws_nothing_from_the_global_generator():
    before = torch.random.get_rng_state()
    feed(make(6, forgetting=True), *drifting(12))
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(
    "prior",
    [{"noise": 1e-6}, {"lengthscale": 1e-3}, {"forgetting": 0.0}, {"forgetting": 1.0}],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_prior_outside_the_bounds_of_a_fit_is_fitted_too(prior, dtype, caplog):
    """Without a warning: in single precision as in double, and from where no slope leads away."""
    belief = make(8, prior, {**DOUBLE, "dtype": dtype}, forgetting=True)
    before = settings_of(belief)
    feed(belief, *drifting(16))
    assert caplog.text == ""
    assert settings_of(belief) != before
    assert all(math.isfinite(value) for value in settings_of(belief))
    assert belief.model.kernel.lengthscale.dtype == belief.model.inputs.dtype == dtype


# -- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        torch.linalg.LinAlgError("no"),
        ValueError("no"),
        RuntimeError("no"),
        NumericalError("matrix", "a positive definite matrix", "no"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failing_fit_keeps_the_hyperparameters_and_warns(error, monkeypatch, caplog):
    def fail(*args, **kwargs):
        raise error

    spy_on_fits(monkeypatch, fail)
    x, rewards = drifting(12)
    with caplog.at_level(logging.WARNING):
        belief = feed(make(6), x, rewards)
    assert caplog.text.count("A refit failed and the hyperparameters stay as they were") == 2
    assert settings_of(belief) == settings_of(make())
    asked = torch.tensor([[0.3, 12.0]]).double()
    unfitted = feed(make(), x, rewards).model
    torch.testing.assert_close(
        belief.model.mean_and_variance(asked), unfitted.mean_and_variance(asked)
    )


def test_rewards_without_an_evidence_keep_the_hyperparameters_with_a_warning(monkeypatch, caplog):
    def lost(family, inputs, targets, present, **kwargs):
        fitted, report = fit(family, inputs, targets, present, **kwargs)
        return fitted, replace(report, after=torch.full_like(report.after, -torch.inf))

    spy_on_fits(monkeypatch, lost)
    belief = feed(make(6), *drifting(6))
    assert caplog.text.count("Expected a finite log evidence; Received -inf") == 1
    assert settings_of(belief) == settings_of(make())


def test_a_fit_that_was_not_worth_it_changes_no_digit(monkeypatch):
    x, rewards = drifting(30)
    belief = feed(make(30, forgetting=True, seconds=60.0), x, rewards)
    model = belief.model
    belief._refit()  # which starts where the last one ended
    assert belief.model is model


def test_an_interrupted_fit_leaves_nothing_half_learnt(monkeypatch):
    """The reward may be told again: it is learnt once."""
    x, rewards = drifting(6)
    belief = feed(make(6), x[:5], rewards[:5])
    before = belief.state_dict()

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        spy_on_fits(patch, interrupt)
        with pytest.raises(KeyboardInterrupt):
            belief.observe(x[5], 5, rewards[5])
    after = belief.state_dict()
    assert after["num_told"] == before["num_told"] == 5
    assert torch.equal(after["model"]["rewards"], before["model"]["rewards"])
    assert torch.equal(after["model"]["factor"][2], before["model"]["factor"][2])
    feed(belief, x, rewards, start=5)
    assert settings_of(belief) == settings_of(feed(make(6), x, rewards))


# -- the scale ------------------------------------------------------------------------------------


def test_the_scale_forgets_as_the_model_does():
    belief = make(prior={"forgetting": 0.05})  # under which no row of these is dropped
    for i in range(40):
        belief.observe(torch.zeros(1).double(), i, 100.0 + i % 2)
    for i in range(100, 140):
        belief.observe(torch.zeros(1).double(), i, float(i % 2))
    assert belief.model.center == pytest.approx(0.5, abs=0.5)
    assert belief.model.scale < 2
    assert belief.model.num_rows == 80


def test_late_rewards_leave_the_belief_of_the_right_order():
    x, rewards = drifting(20)
    asked = torch.tensor([[0.1, 21.0], [0.7, 5.0]]).double()
    straight, shuffled = feed(make(), x, rewards), make()
    for i in torch.randperm(20, generator=torch.Generator().manual_seed(0)).tolist():
        shuffled.observe(x[i], i, rewards[i])
    assert shuffled.model.scale == straight.model.scale
    torch.testing.assert_close(
        shuffled.model.mean_and_covariance(asked), straight.model.mean_and_covariance(asked)
    )


def test_scores_of_ranks_are_as_precise_as_the_rewards():
    """Counts of ranks are integers, which would be divided in the default dtype."""
    rewards = torch.tensor([2.0, 9.0, 4.0], dtype=torch.float64)
    expected = torch.special.ndtri(torch.tensor([1.0, 5.0, 3.0], dtype=torch.float64) / 6)
    torch.testing.assert_close(normal_scores(rewards), expected, rtol=0, atol=1e-14)
    belief = feed(
        make(3, scale=RewardScale(ranks=True)), rewards.unsqueeze(-1) / 10, [2.0, 9.0, 4.0]
    )
    torch.testing.assert_close(belief.model.targets, expected, rtol=0, atol=1e-14)


def test_a_belief_may_be_told_on_another_scale_and_stays_as_it_was():
    """As if it had been on that scale from the beginning."""
    x, rewards = drifting(12)
    asked = torch.tensor([[0.1, 12.0], [0.7, 12.0]]).double()
    ranks = RewardScale(ranks=True, winsorize_lower=0.4)
    plain, ranked = feed(make(), x, rewards), feed(make(scale=ranks), x, rewards)
    before = plain.model.mean_and_covariance(asked)
    torch.testing.assert_close(
        plain.rescaled_by(ranks).mean_and_covariance(asked), ranked.model.mean_and_covariance(asked)
    )
    torch.testing.assert_close(plain.model.mean_and_covariance(asked), before, rtol=0, atol=0)
    assert not torch.equal(before[0], ranked.model.mean_and_covariance(asked)[0])
