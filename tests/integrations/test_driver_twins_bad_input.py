"""The kind: a run that its twins cannot go back in, and that goes on as if they could."""

import gc
import math
import sys

import pytest
import torch

from botorch_costly.errors import InvalidArgumentError, RankError, RestoreError
from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.training import TrainerOptions
from botorch_costly.tuners.twins import left_open
from tests.integrations import twins
from tests.integrations.twin_fits import Average, Fit, before_going_back
from tests.integrations.twins import HORIZON, STEPS


@pytest.fixture(autouse=True)
def global_generator():
    with torch.random.fork_rng(devices=[]):
        yield


def test_a_state_that_cannot_be_copied_is_said_once_and_the_incumbent_goes_on(warned):
    average = Average()
    fit = before_going_back(Fit(parts=[average]), times=2)
    average.fails_to_save = True
    fit.train(HORIZON * STEPS - len(fit.journal.before))
    (line,) = warned()
    assert "could not be copied (MemoryError" in line
    assert fit.tuner.is_settled
    assert dict(fit.tuner.decisions[-1].peak) == fit.tuner.incumbent


def test_a_state_that_is_not_held_is_said_once_and_the_incumbent_goes_on(warned):
    fit = before_going_back(Fit(), times=2)
    fit.tuner.kept.clear()
    fit.train(HORIZON * STEPS - len(fit.journal.before))
    (line,) = warned()
    assert "not held" in line
    assert fit.tuner.is_settled


def test_a_part_that_cannot_go_back_is_named_and_nothing_has_changed():
    average = Average()
    fit = before_going_back(Fit(parts=[average]), times=2)
    weights, played = fit.weights, len(fit.tuner.decisions)
    average.fails_to_load = True
    with pytest.raises(RestoreError, match="Average"):
        fit.train(1)
    assert (fit.weights, len(fit.tuner.decisions)) == (weights, played)
    average.fails_to_load = False
    fit.train(HORIZON * STEPS - len(fit.journal.before))
    assert len(fit.tuner.decisions) == HORIZON


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("lost", [False, True], ids=["refused", "not held"])
def test_a_state_of_the_incumbent_that_cannot_be_handed_over_is_said_once(alone, lost, warned):
    average = Average()
    fit = before_going_back(Fit(parts=[average]), times=2).train(1)
    weights, average.fails_to_load = fit.weights, True
    if lost:
        fit.tuner.kept.clear()
    fit.driver.hand_over(alone=alone)
    fit.driver.finish()
    (line,) = warned()
    assert "not in the state of the incumbent (RestoreError" in line
    assert fit.weights == weights


def test_seconds_of_queries_are_told_to_a_tuner_with_a_share_of_the_clock():
    fit = Fit(twins.tuner(overhead=0.9)).train()
    assert fit.tuner.observations
    assert all(one.seconds >= 0 for one in fit.tuner.observations)


def test_rounds_in_seconds_are_refused():
    with pytest.raises(InvalidArgumentError, match="equal numbers of steps"):
        Driver(twins.tuner(), TrainerOptions(RoundLength(seconds=1)))


def test_a_part_without_a_state_is_refused():
    with pytest.raises(InvalidArgumentError, match="state_dict"):
        Fit(parts=[object()])


def test_a_metric_that_never_comes_counts_as_no_query(warned):
    fit, lost = Fit(), []
    validated = fit.driver.validated
    fit.driver.validated = lambda metric: (
        lost.append(metric) if len(lost) < 3 else validated(metric)
    )
    fit.train()
    fit.driver.validated(0.5)  # nor one that comes too late
    assert len(fit.tuner.decisions) == HORIZON
    assert len(fit.tuner.observations) == fit.tuner.queries - 3
    assert warned() == []


def test_a_network_that_diverges_in_a_trial_goes_back(warned):
    fit = Fit()
    fit.metric = lambda value: math.nan if fit.driver.config["lr"] > 5e-4 else value
    assert fit.driver.mends
    fit.train()
    assert fit.tuner.failed_queries > 0
    assert fit.tuner.incumbent["lr"] <= 5e-4


def test_another_optimizer_within_a_fit_is_refused():
    fit = Fit().train(5)
    fit.optimizer = torch.optim.SGD(fit.network.parameters(), lr=0.1)
    with pytest.raises(InvalidArgumentError, match="the one that the fit started with"):
        fit.train(2)


def test_gradients_that_a_round_has_left_are_dropped_before_a_trial(warned):
    fit = before_going_back(Fit(), times=1)
    fit.driver.after_step(steps=0)  # a batch without a step
    assert any(weight.grad is not None for weight in fit.network.parameters())
    fit.driver.before_step()
    assert all(weight.grad is None for weight in fit.network.parameters())
    (line,) = warned()
    assert "gradients accumulated before a trial are dropped" in line


def test_a_guard_has_no_effect():
    on, off = Fit(guard=True).train(60), Fit(guard=False).train(60)
    assert on.weights == off.weights


@pytest.mark.parametrize("steps", [60, 61])
def test_an_error_between_ranks_is_passed_on(steps, monkeypatch):
    fit = Fit().train(steps)

    def lost(*_, **__):
        raise RankError("ranks", "all", "one")

    monkeypatch.setattr(fit.driver.connect().ranks, "meet", lost)
    with pytest.raises(RankError):
        fit.driver.finish()


def test_a_trainer_that_is_given_up_in_a_trial_has_no_loop_to_end(warned, monkeypatch):
    monkeypatch.setattr(left_open, "_said", [])
    monkeypatch.delattr(sys, "last_value", raising=False)
    fit = Fit()
    while fit.tuner.state_of_incumbent is None:
        fit.train(STEPS)
    del fit
    gc.collect()
    assert not warned()
