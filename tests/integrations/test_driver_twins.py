"""The kind: a driver that takes a run to be in another state, or on other data, than its twins need.

A fit is a loop over steps of an optimizer, which no trainer runs.
"""

import copy
import logging
import math

import pytest
import torch

from botorch_costly.errors import (
    InvalidArgumentError,
    RankError,
    RestoreError,
    StateMismatchError,
)
from botorch_costly.integrations import Rewindable, RoundLength
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.loggers import LoggedTuner
from botorch_costly.integrations.training import Trained, TrainerOptions
from tests.integrations import twins
from tests.integrations.loggers.playing import Memory
from tests.integrations.twins import HORIZON, STEPS, Journal

OURS = "botorch_costly"
SAVED = (0, 1, 5, 6, 7, 20, 44, 61, 100, 119)  # steps before which the whole run is saved


class Average:
    """A part with a state, which may fail to be copied or restored."""

    def __init__(self):
        self.value, self.fails_to_save, self.fails_to_load = 0.0, False, False

    def state_dict(self):
        if self.fails_to_save:
            raise MemoryError
        return {"value": self.value}

    def load_state_dict(self, state):
        if self.fails_to_load:
            raise ValueError("too large")
        self.value = state["value"]


class Fit:
    """A network in training under a driver with twins."""

    def __init__(self, tuner=None, state=None, *, schedules=False, parts=(), ranks=None, **options):
        self.network = twins.network()
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1, momentum=0.9)
        self.tuner = twins.tuner() if tuner is None else tuner
        schedulers = ()
        if schedules:
            schedulers = (torch.optim.lr_scheduler.StepLR(self.optimizer, 10, 0.9),)
            options["rates"] = "multipliers"
        self.driver = Driver(self.tuner, TrainerOptions(RoundLength(steps=STEPS), **options))
        if ranks is not None:
            self.driver.connect().ranks = ranks
        rows = torch.arange(120).split(twins.BATCH)
        self.batches, self.journal = Rewindable(rows), Journal()
        if state is not None:
            self.driver.load_state_dict(state)
        parts = tuple(parts)
        self.trained = Trained(self.network, self.optimizer, schedulers, parts, (self.batches,))
        self.driver.start(self.trained)
        self.metric = None

    def train(self, steps=HORIZON * STEPS):
        x, y = twins.data().tensors
        schedulers = self.trained.schedulers
        for _ in range(steps):
            self.driver.before_step(self.optimizer)
            rows = next(self.batches)
            self.journal.begin(self.network, self.optimizer, schedulers, rows)
            self.network.train()
            self.optimizer.zero_grad()
            twins.loss(self.network, x[rows], y[rows]).backward()
            self.optimizer.step()
            for scheduler in schedulers:
                scheduler.step()
            self.journal.end(self.network, self.optimizer, schedulers)
            if self.driver.after_step():
                self.network.eval()
                with torch.no_grad():
                    value = twins.loss(self.network, x, y).item()
                self.driver.validated(value if self.metric is None else self.metric(value))
        return self

    def save(self):
        """States as a trainer's checkpoint holds them."""
        parts = (self.network, self.optimizer, *self.trained.schedulers)
        return copy.deepcopy([self.driver.state_dict(), *(part.state_dict() for part in parts)])

    @classmethod
    def from_saved(cls, saved, tuner=None, **options):
        state, *parts = copy.deepcopy(saved)
        torch.manual_seed(77)
        fit = cls(tuner, state, **options)
        for part, own in zip(
            (fit.network, fit.optimizer, *fit.trained.schedulers), parts, strict=True
        ):
            part.load_state_dict(own)
        return fit

    @property
    def weights(self):
        return [weight.tolist() for weight in self.network.parameters()]


@pytest.fixture(autouse=True)
def global_generator():
    with torch.random.fork_rng(devices=[]):
        yield


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, OURS)

    def lines():
        records = [one for one in caplog.records if one.name.startswith(OURS)]
        # Rates so large that a query finds no finite loss are no fault.
        return [one.getMessage() for one in records if not one.name.endswith("ledger")]

    return lines


@pytest.fixture(scope="module")
def whole():
    """A run that was never stopped, and was saved before some steps."""
    with torch.random.fork_rng(devices=[]):
        fit, saved = Fit(), {}
        for step in range(HORIZON * STEPS):
            if step in SAVED:
                saved[step] = fit.save()
            fit.train(1)
    return fit, saved


def before_going_back(fit, times=1):
    """Train up to the end of a round after which the run goes back."""
    ahead = copy.deepcopy(fit.tuner)
    while True:
        fit.train(STEPS)
        ahead = copy.deepcopy(fit.tuner)
        with ahead.asking() as decision:
            times -= decision.restore is not None
        if times <= 0:
            return fit


# -- states, batches, settings ---------------------------------------------------------------------


def test_twins_start_from_one_state_on_the_same_batches(whole, said):
    assert whole[0].journal.check(whole[0].tuner.decisions) >= 5
    assert whole[0].driver.restores == sum(
        decision.restore is not None for decision in whole[0].tuner.decisions
    )
    assert said() == []


def test_a_scheduler_goes_back_and_its_multiplier_is_set(said):
    fit = Fit(twins.tuner(space=twins.FACTOR), schedules=True).train()
    assert fit.journal.check(fit.tuner.decisions) >= 5
    counted = HORIZON * STEPS - STEPS * fit.tuner.given_back
    assert fit.trained.schedulers[0].last_epoch == counted
    assert said() == []


def test_two_schedules_of_one_rate_earn_one_warning(said):
    space = twins.bc.SearchSpace({"lr": twins.bc.Real(0.01, 100, log=True)})
    Fit(twins.bc.TwinTuner(space, HORIZON, start={"lr": 1.0}), schedules=True).train(30)
    (line,) = said()
    assert "A scheduler is among the parts" in line


def test_the_metric_itself_is_told(whole):
    assert all(one.reward > 0 for one in whole[0].tuner.observations if not one.failed)
    assert len(whole[0].tuner.observations) == whole[0].tuner.queries


def test_what_is_logged_is_every_round(whole):
    memory = Memory()
    fit = Fit(LoggedTuner(twins.tuner(), memory)).train()
    fit.driver.finish()
    assert [entry.round for entry in memory.entries] == list(range(HORIZON))
    assert fit.tuner.decisions == whole[0].tuner.decisions
    assert fit.tuner.tuner.diagnose().by_hand is False


# -- checkpoints -----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", SAVED)
def test_a_resumed_run_goes_on_identically_also_within_a_trial(whole, step):
    fit = Fit.from_saved(whole[1][step])
    fit.train(HORIZON * STEPS - step)
    assert fit.tuner.decisions == whole[0].tuner.decisions
    assert fit.journal.batches == whole[0].journal.batches[step:]
    assert fit.weights == whole[0].weights
    assert fit.driver.restores == whole[0].driver.restores


def test_a_query_that_was_due_is_told_after_a_resume(whole):
    fit = before_going_back(Fit())
    query = next(d.round for d in fit.tuner.decisions if d.query)
    first = Fit().train((query + 1) * STEPS - 1)
    first.driver.before_step()
    assert first.driver.after_step()
    again = Fit.from_saved(first.save())
    assert again.driver.is_due
    again.driver.validated(whole[0].tuner.observations[0].reward)
    assert again.tuner.observations == whole[0].tuner.observations[:1]


@pytest.mark.parametrize("step", [7, 44])
def test_with_another_number_of_ranks_the_network_goes_back_and_the_data_go_on(whole, step, said):
    saved = copy.deepcopy(whole[1][step])
    saved[0]["twins"]["ranks"] *= 2
    fit = Fit.from_saved(saved).train(HORIZON * STEPS - step)
    assert len(fit.tuner.decisions) == HORIZON
    assert fit.driver.restores >= 5
    assert all(weight.isfinite().all() for weight in fit.network.parameters())
    (line,) = said()
    assert "another number of ranks" in line


def test_a_state_that_other_ranks_share_is_taken_up_by_one(whole):
    """Rank 0 of several has the others as its first part."""
    saved = copy.deepcopy(whole[1][7])
    for pair in saved[0]["shared"]["tuner"]["kept"].values():
        pair[0].insert(0, {"number": 9})
    fit = Fit.from_saved(saved).train(HORIZON * STEPS - 7)
    assert fit.tuner.decisions == whole[0].tuner.decisions
    assert fit.weights == whole[0].weights


DAMAGED = {
    "none": lambda state: state.pop("twins"),
    "keys": lambda state: state["twins"].pop("ranks"),
    "parts": lambda state: state["twins"].update(parts=["Sequential", "SGD"]),
    "kept": lambda state: state["shared"]["tuner"]["kept"].update({0: [1]}),
    "decision": lambda state: state.update(decision='{"peak": 1}'),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_state_is_refused_and_changes_nothing(whole, damage):
    saved = copy.deepcopy(whole[1][7])
    DAMAGED[damage](saved[0])
    tuner = twins.tuner()
    with pytest.raises(StateMismatchError):
        Fit.from_saved(saved, tuner)
    assert tuner.decisions == ()


def test_a_run_with_other_parts_is_refused_when_it_is_resumed(whole):
    with pytest.raises(StateMismatchError, match="parts"):
        Fit.from_saved(whole[1][7], parts=[Average()])


def test_a_run_is_trained_for_longer(whole):
    saved = whole[1][100]
    fit = Fit.from_saved(saved, twins.tuner(60), changed=["horizon"]).train(60 * STEPS - 100)
    assert len(fit.tuner.decisions) == 60
    assert fit.tuner.decisions[:33] == whole[0].tuner.decisions[:33]


# -- the end of a fit ------------------------------------------------------------------------------


@pytest.mark.parametrize("alone", [False, True], ids=["finished", "interrupted"])
@pytest.mark.parametrize("step", [4, 7, 10, 20, 31, 47])
def test_a_fit_that_ends_early_hands_over_the_incumbent(step, alone):
    fit = Fit().train(step)
    tuner = fit.tuner
    number = tuner.state_of_incumbent
    kept = None if number is None else copy.deepcopy(tuner.kept[number][0])
    present = fit.weights
    fit.driver.hand_over(alone=True) if alone else fit.driver.finish()
    expected = present if kept is None else [w.tolist() for w in kept[0].values()]
    assert fit.weights == expected
    assert dict(fit.driver.config) == tuner.incumbent
    assert fit.network[1].p == tuner.incumbent["dropout"]
    assert tuner.is_settled
    assert fit.weights == Fit.from_saved(fit.save()).weights
    fit.driver.finish()  # once


def test_what_was_handed_over_is_trained_for_longer():
    fit = Fit().train(47)
    fit.driver.finish()
    longer = Fit.from_saved(fit.save(), twins.tuner(60), changed=["horizon"])
    longer.train(30)
    assert not longer.tuner.is_settled
    assert longer.tuner.decisions[16].restore is None


def test_after_all_rounds_the_last_state_stands(whole, said):
    fit = Fit().train()
    weights, config = fit.weights, dict(fit.driver.config)
    fit.driver.finish()
    assert fit.weights == weights == whole[0].weights
    assert not fit.tuner.is_settled
    fit.train(2 * STEPS)
    assert dict(fit.driver.config) == config  # the rate has fallen: it does not rise again
    assert ["the last configuration" in one for one in said()] == [True]


def test_a_fit_that_ends_before_its_first_round_changes_nothing():
    fit = Fit()
    fit.driver.hand_over(alone=True)
    assert not fit.tuner.is_settled


def test_another_fit_plays_the_incumbent(said):
    first = Fit().train(20)
    first.driver.finish()
    second = Fit(first.tuner).train(30)
    assert second.driver.restores == 0
    (line,) = said()
    assert "for a new run make a new tuner" in line


# -- bad input -------------------------------------------------------------------------------------


def test_a_state_that_cannot_be_copied_is_said_once_and_the_incumbent_goes_on(said):
    average = Average()
    fit = before_going_back(Fit(parts=[average]), times=2)
    average.fails_to_save = True
    fit.train(HORIZON * STEPS - len(fit.journal.before))
    (line,) = said()
    assert "could not be copied (MemoryError" in line
    assert fit.tuner.is_settled
    assert dict(fit.tuner.decisions[-1].peak) == fit.tuner.incumbent


def test_a_state_that_is_not_held_is_said_once_and_the_incumbent_goes_on(said):
    fit = before_going_back(Fit(), times=2)
    fit.tuner.kept.clear()
    fit.train(HORIZON * STEPS - len(fit.journal.before))
    (line,) = said()
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
def test_a_state_of_the_incumbent_that_cannot_be_handed_over_is_said_once(alone, lost, said):
    average = Average()
    fit = before_going_back(Fit(parts=[average]), times=2).train(1)
    weights, average.fails_to_load = fit.weights, True
    if lost:
        fit.tuner.kept.clear()
    fit.driver.hand_over(alone=alone)
    fit.driver.finish()
    (line,) = said()
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


def test_a_metric_that_never_comes_counts_as_no_query(said):
    fit, lost = Fit(), []
    validated = fit.driver.validated
    fit.driver.validated = lambda metric: (
        lost.append(metric) if len(lost) < 3 else validated(metric)
    )
    fit.train()
    fit.driver.validated(0.5)  # nor one that comes too late
    assert len(fit.tuner.decisions) == HORIZON
    assert len(fit.tuner.observations) == fit.tuner.queries - 3
    assert said() == []


def test_a_network_that_diverges_in_a_trial_goes_back(said):
    fit = Fit()
    fit.metric = lambda value: math.nan if fit.driver.config["lr"] > 0.05 else value
    assert fit.driver.mends
    fit.train()
    assert fit.tuner.failed_queries > 0
    assert fit.tuner.incumbent["lr"] <= 0.05


def test_another_optimizer_within_a_fit_is_refused():
    fit = Fit().train(5)
    fit.optimizer = torch.optim.SGD(fit.network.parameters(), lr=0.1)
    with pytest.raises(InvalidArgumentError, match="the one that the fit started with"):
        fit.train(2)


def test_gradients_that_a_round_has_left_are_dropped_before_a_trial(said):
    fit = before_going_back(Fit(), times=1)
    fit.driver.after_step(steps=0)  # a batch without a step
    assert any(weight.grad is not None for weight in fit.network.parameters())
    fit.driver.before_step()
    assert all(weight.grad is None for weight in fit.network.parameters())
    (line,) = said()
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
