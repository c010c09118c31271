"""A run that was put back to an earlier state: its later readings are no part of its curve."""

import math

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError


def run(steps, spike=None, restores=True):
    """Steps that are read in a run whose every reading is affordable, and the validation."""
    validation, read = bc.Validation(overhead=1.0), []
    for step in range(steps):
        if validation.due(step, train_loss=1 / (1 + step)):
            read.append(step)
            is_bad = spike is not None and step >= spike and len(read) > 2 and restores is not None
            validation.tell(50.0 if is_bad else 1 / (1 + step))
            if is_bad:
                if restores:
                    validation.restored_to(read[-2])
                restores = None  # once
    return read, validation


def test_a_bad_reading_after_a_good_state_is_forgotten():
    _, validation = run(200, spike=30)
    state = validation.state_dict()["history"]
    assert max(value for _, value, *_ in state["all"]) <= 1.0
    assert state["counts"][0] == validation.readings  # it was read, and its seconds count


def test_the_good_reading_counts_for_the_present_step():
    validation = bc.Validation(overhead=1.0)
    for step in range(50):
        validation.due(step, train_loss=1.0 + (step > 10))
        if step in (5, 10, 49):
            validation.tell(9.0 if step == 49 else 1 / step)
    validation.restored_to(10)
    state = validation.state_dict()
    assert [reading[:2] for reading in state["history"]["all"]][-2:] == [[5, 0.2], [49, 0.1]]
    assert state["training"]["level"] == pytest.approx(1.0)
    assert validation.best.step == 10
    assert not validation.has_diverged


def test_without_training_losses_and_before_any_reading():
    validation = bc.Validation(overhead=1.0)
    validation.due(3)
    validation.restored_to(3)
    assert math.isnan(validation.state_dict()["training"]["level"])
    assert validation.due(4)


@pytest.mark.parametrize("step", [-1, 4, 1.5, "2"])
def test_a_step_that_has_not_been_is_refused(step):
    validation = bc.Validation()
    validation.due(3)
    with pytest.raises(InvalidArgumentError, match="step"):
        validation.restored_to(step)
