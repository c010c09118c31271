"""What the callbacks of all trainers share: readings, the guard, generators, states and the log."""

import logging
import math

import pytest
import torch
from torch.utils.data import DataLoader

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from botorch_costly.integrations.validation.in_trainer import TrainerValidation
from botorch_costly.rewards import recovery
from tests.integrations.validation.readings import Clock, readings, validation
from tests.rewards.guarding import Weights

STEPS = 12


def run_of(validated=None, **options):
    given = {"guard": True, "margin": None, "timeout": 9.0, "changed": (), **options}
    validated = validation(1.0) if validated is None else validated
    return TrainerValidation(validated, "metric", **given)


def play(run, values, weights=None, *, since=0, last=None, loaded=None):
    """Validate after each step, with a weight that counts the steps; return the weights afterwards."""
    weights, held = Weights(0.0) if weights is None else weights, []
    if loaded is not None:
        run.load_state_dict(loaded)
    run.begin((weights,), since, last=last)
    for step, value in enumerate(values, since + 1):
        weights.tensor.fill_(float(step))
        if run.after_step(step, train_loss=1.0, last=step == last):
            run.validated({"metric": value})
        held.append(weights.tensor.item())
    return held


# -- the guard -------------------------------------------------------------------------------------


def test_the_guard_has_the_kind_of_the_metric_and_its_margin():
    accuracies = [0.3, 0.8, 0.8, 0.5]
    assert play(run_of(validation(1.0, metric="accuracy")), accuracies)[-1] == 3.0
    assert play(run_of(), accuracies)[-1] == 1.0  # as losses
    wide = run_of(validation(1.0, metric="accuracy"), margin=0.6)
    assert play(wide, accuracies)[-1] == 4.0
    assert play(run_of(guard=False), accuracies)[-1] == 4.0


@pytest.mark.parametrize("device", ["cpu", None])
def test_the_guard_keeps_its_state_on_the_device_that_was_asked_for(device, monkeypatch):
    devices, copies = [], recovery.copied

    def copied(state, device=None):
        devices.append(device)
        return copies(state, device)

    monkeypatch.setattr(recovery, "copied", copied)
    assert play(run_of(device=device), [1.0, 0.5, 3.0]) == [1.0, 2.0, 2.0]
    assert len(devices) >= 2
    assert (torch.device("cpu") in devices) == (device is not None)


def test_a_device_that_does_not_exist_or_has_no_guard_is_refused():
    for options in ({"device": "abacus"}, {"device": "cpu", "guard": False}):
        with pytest.raises(InvalidArgumentError, match="device"):
            run_of(**options)


def test_readings_after_the_good_state_are_forgotten():
    run = run_of()
    assert play(run, [1.0, 0.5, 3.0]) == [1.0, 2.0, 2.0]
    assert readings(run.validation) == [[1, 1.0], [3, 0.5]]  # of the state that step 3 has now
    assert run.restores == 1
    assert run.validation.best.step == 2


def test_a_failed_reading_without_a_metric_does_not_go_back():
    run = run_of()
    run.begin((Weights(0.0),), 0, last=None)
    for step, metrics in enumerate([{"metric": 1.0}, {"metric": None}, {}], 1):
        run.after_step(step)
        run.validated(metrics)
    assert run.restores == 0
    assert run.validation.counts["failed"] == 2


# -- generators ------------------------------------------------------------------------------------


def test_generators_are_as_before_the_reading():
    run = run_of()
    run.begin((Weights(),), 0, last=None)
    run.after_step(1)
    before = torch.get_rng_state()
    torch.rand(5)
    run.restore_generators()
    assert torch.equal(torch.get_rng_state(), before)


def test_generators_are_as_before_a_reading_that_was_due_in_a_checkpoint():
    run, again = run_of(), run_of()
    run.begin((Weights(),), 0, last=None)
    assert run.after_step(1)
    again.load_state_dict(run.state_dict())
    again.begin((Weights(),), 1, last=None)
    assert again.is_due
    before = torch.get_rng_state()
    torch.rand(5)
    again.restore_generators()
    assert torch.equal(torch.get_rng_state(), before)


# -- states ----------------------------------------------------------------------------------------

VALUES = [1.0, 0.7, 0.5, math.nan, 0.45, 0.9, 0.44, 0.43, 2.0, 0.4, 0.39, 0.38]


@pytest.mark.parametrize("cut", range(1, STEPS))
def test_a_state_continues_with_its_good_state(cut):
    whole, first, second = run_of(), run_of(), run_of()
    expected = play(whole, VALUES, last=STEPS)
    weights = Weights(0.0)
    held = play(first, VALUES[:cut], weights, last=STEPS)
    held += play(second, VALUES[cut:], weights, since=cut, last=STEPS, loaded=first.state_dict())
    assert held == expected
    assert readings(second.validation) == readings(whole.validation)
    assert (second.restores, second.validation.steps) == (whole.restores, STEPS)


def test_a_state_before_a_fit_a_state_of_an_earlier_version_and_one_that_is_wrong():
    run, again = run_of(), run_of()
    assert play(again, [0.5], loaded=run.state_dict()) == [1.0]
    play(run, [0.5, 0.4])
    state = run.state_dict()
    del state["level"]  # as in earlier versions
    play(again, [0.3], since=2, loaded=state)
    assert readings(again.validation) == [[1, 0.5], [2, 0.4], [3, 0.3]]
    for wrong in (None, {}, {**state, "more": 1}, {"shared": {}, "good": None}):
        with pytest.raises(StateMismatchError):
            again.load_state_dict(wrong)


def test_options_that_are_named_may_change():
    run = run_of()
    play(run, [0.5])
    with pytest.raises(StateMismatchError, match="overhead"):
        play(run_of(validation(0.5)), [0.4], since=1, loaded=run.state_dict())
    changed = run_of(validation(0.5), changed=["overhead"])
    play(changed, [0.4], since=1, loaded=run.state_dict(), last=2)
    assert readings(changed.validation) == [[1, 0.5], [2, 0.4]]


def test_a_run_that_begins_anew_has_no_readings_and_no_level():
    run = run_of()
    first = play(run, VALUES)
    kept, count = readings(run.validation), run.validation.readings
    assert play(run, VALUES) == first
    assert readings(run.validation) == kept
    assert run.validation.readings == count


def test_the_last_step_is_read_whatever_the_share():
    run = run_of(bc.Validation(1e-6, clock=Clock()))
    play(run, STEPS * [0.5], last=STEPS)
    assert readings(run.validation)[-1][0] == STEPS


def test_a_step_that_ends_the_run_is_read_although_another_was_expected():
    run = run_of(bc.Validation(1e-6, clock=Clock()))
    run.begin((Weights(),), 0, last=999)
    assert [run.after_step(step, last=step == 5) for step in range(1, 6)] == [*4 * [False], True]


# -- its log ---------------------------------------------------------------------------------------


def test_the_log_and_the_figures(caplog):
    caplog.set_level(logging.INFO, "botorch_costly")
    run = run_of()
    run.connect()
    assert run.figures() == {"validation/readings": 0.0, "validation/share": 0.0}
    play(run, [0.5, 0.4, 0.6])
    figures = run.figures()
    assert figures["validation/best"] == 0.4
    assert figures["validation/best_step"] == 2.0
    assert figures["validation/readings"] == 3.0
    assert "validation/saved" not in figures  # readings of the whole set
    run.log()
    assert caplog.messages[-1] == f"Validation: {run.validation.summary()}."


# -- partial readings ------------------------------------------------------------------------------


def _guarded(factors, *, metric="loss", count=640):
    """Return a run that reads parts of examples, the first of which are easier than the others."""
    run = run_of(validation(1.0, examples=count, metric=metric))
    weights, held = Weights(0.0), []
    run.begin((weights,), 0, last=None)
    loader = DataLoader(torch.arange(count), batch_size=10)
    run.reader.use(loader)
    places = torch.tensor(run.validation._order).argsort()
    losses = torch.where(places < count // 8, 0.3, 0.7) + 0.01 * torch.sin(places.double())
    for step, factor in enumerate(factors, 1):
        weights.tensor.fill_(float(step))
        assert run.after_step(step, last=True)
        run.reader.begin()
        values = losses * factor + 0.01 * torch.cos(step * places)
        for batch in loader:
            run.reader.add(values[batch] if metric == "loss" else 1 - values[batch])
        run.reader.result()
        run.validated({})
        held.append(weights.tensor.item())
    return run, held


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_a_best_checkpoint_with_more_examples_is_no_divergence(metric):
    run, held = _guarded([1.0, 0.99, 1.0, 0.98, 0.985, 2.0], metric=metric)
    values = [value for _, value in run.validation.history]
    assert abs(values[1] - values[0]) > 0.1  # although the checkpoint is better
    assert held == [1.0, 2.0, 3.0, 4.0, 5.0, 5.0]
    assert run.validation.best.step == 4
