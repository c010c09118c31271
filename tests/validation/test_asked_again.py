"""``due`` asked again for a step gives the same answer until it is told, and costs nothing."""

import pytest
import torch

import botorch_costly as bc
from botorch_costly.integrations.validation.shared import SharedValidation
from tests.tuners.online.states import same
from tests.validation.clock import Clock, falling


def _play(times, make=lambda validation: validation, steps=90, **options):
    """Play a run whose steps are asked a number of times; return it, and the steps that were read."""
    clock, read = Clock(), []
    validation = bc.Validation(0.2, clock=clock, **options)
    shared = make(validation)
    for step in range(steps):
        clock.seconds += 1.0
        answers = [shared.due(step, train_loss=falling(step)) for _ in range(times)]
        assert len(set(answers)) == 1
        if answers[0]:
            read.append(step)
            clock.seconds += 2.0
            shared.tell(falling(step))
            assert not shared.due(step)
            assert not validation.due(step, last=True)
    return validation, read


@pytest.mark.parametrize("make", [lambda validation: validation, SharedValidation])
@pytest.mark.parametrize("options", [{}, {"steps": 89}, {"read_at": [7, 8]}])
def test_steps_that_are_asked_twice_are_read_like_those_asked_once(make, options):
    (once, read), (twice, again) = (_play(times, make, **options) for times in (1, 2))
    assert len(read) > 5
    assert again == read
    assert same(twice.state_dict(), once.state_dict())


def test_the_training_loss_may_come_with_either_question():
    validation = bc.Validation(0.2, clock=Clock())
    for step in range(20):
        validation.due(step)
        validation.due(step, train_loss=1.0 + step)
        validation.due(step, train_loss=1.0 + step)
    assert validation.state_dict()["training"]["count"] == 20


def test_a_step_that_is_not_due_is_read_once_it_is_named_as_the_last():
    validation = bc.Validation(0.01, clock=Clock())
    assert not validation.due(0)
    assert validation.due(0, last=True)
    assert validation.due(0)
    assert validation.reason == "the last step"


def test_a_due_step_that_is_the_last_one_is_read_with_its_average():
    clock = Clock()
    validation = bc.Validation(0.2, clock=clock, read_at=[3])
    for step in range(4):
        clock.seconds += 1.0
        validation.due(step)
    assert validation.due(3, last=True)
    clock.seconds += 9.0
    validation.tell(0.5)
    assert validation.due_average()
    assert validation.due_average()


def test_a_reading_in_shards_goes_on():
    validation = bc.Validation(1.0, examples=400, clock=Clock())
    validation.due(0, last=True)
    validation.tell(torch.ones(len(validation.examples)))
    assert validation.due(1, last=True)
    read = []
    for _ in range(400):
        if not validation.due(1, last=True):
            break
        read += validation.examples
        validation.tell(0.9 * torch.ones(len(validation.examples)))
    assert 0 < len(read) <= 400
    assert len(read) == len(set(read))
    assert validation.readings == 2


def test_a_step_is_decided_about_anew_after_a_state_is_loaded():
    """A checkpoint may be saved between ``due`` and the reading."""
    first = bc.Validation(0.2, read_at=[5], clock=Clock())
    assert first.due(5)
    second = bc.Validation(0.2, read_at=[5], clock=Clock())
    second.load_state_dict(first.state_dict())
    assert second.due(5, last=True)
