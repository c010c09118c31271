"""The kind: a driver that takes a run to be in another state, or on other data, than its twins need.

A fit is a loop over steps of an optimizer, which no trainer runs.
"""

import copy

import pytest
import torch

from botorch_costly.errors import StateMismatchError
from botorch_costly.integrations.loggers import LoggedTuner
from tests.integrations import twins
from tests.integrations.loggers.playing import Memory
from tests.integrations.twin_fits import Average, Fit, before_going_back
from tests.integrations.twins import HORIZON, STEPS

SAVED = (0, 1, 5, 6, 7, 20, 44, 61, 100, 119)  # steps before which the whole run is saved


@pytest.fixture(autouse=True)
def global_generator():
    with torch.random.fork_rng(devices=[]):
        yield


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


# -- states, batches, settings ---------------------------------------------------------------------


def test_twins_start_from_one_state_on_the_same_batches(whole, warned):
    assert whole[0].journal.check(whole[0].tuner.decisions) >= 3
    assert whole[0].driver.restores == sum(
        decision.restore is not None for decision in whole[0].tuner.decisions
    )
    assert warned() == []


def test_a_scheduler_goes_back_and_its_multiplier_is_set(warned):
    fit = Fit(twins.tuner(space=twins.FACTOR), schedules=True).train()
    assert fit.journal.check(fit.tuner.decisions) >= 3
    counted = HORIZON * STEPS - STEPS * fit.tuner.given_back
    assert fit.trained.schedulers[0].last_epoch == counted
    assert warned() == []


def test_two_schedules_of_one_rate_earn_one_warning(warned):
    space = twins.bc.SearchSpace({"lr": twins.bc.Real(0.01, 100, log=True)})
    Fit(twins.bc.TwinTuner(space, HORIZON, start={"lr": 1.0}), schedules=True).train(30)
    (line,) = warned()
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
def test_with_another_number_of_ranks_the_network_goes_back_and_the_data_go_on(whole, step, warned):
    saved = copy.deepcopy(whole[1][step])
    saved[0]["twins"]["ranks"] *= 2
    fit = Fit.from_saved(saved).train(HORIZON * STEPS - step)
    assert len(fit.tuner.decisions) == HORIZON
    assert fit.driver.restores >= 3
    assert all(weight.isfinite().all() for weight in fit.network.parameters())
    (line,) = warned()
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


def test_after_all_rounds_the_last_state_stands(whole, warned):
    fit = Fit().train()
    weights, config = fit.weights, dict(fit.driver.config)
    fit.driver.finish()
    assert fit.weights == weights == whole[0].weights
    assert not fit.tuner.is_settled
    fit.train(2 * STEPS)
    assert dict(fit.driver.config) == config  # the rate has fallen: it does not rise again
    assert ["the last configuration" in one for one in warned()] == [True]


def test_a_fit_that_ends_before_its_first_round_changes_nothing():
    fit = Fit()
    fit.driver.hand_over(alone=True)
    assert not fit.tuner.is_settled


def test_another_fit_plays_the_incumbent(warned):
    first = Fit().train(20)
    first.driver.finish()
    second = Fit(first.tuner).train(30)
    assert second.driver.restores == 0
    (line,) = warned()
    assert "for a new run make a new tuner" in line
