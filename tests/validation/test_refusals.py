"""Bad input of ``Validation``: named errors, and nothing that is stored is lost."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from tests.tuners.online.states import same
from tests.validation.clock import Run, falling

BAD = {
    "overhead": [0.0, -0.1, 1.5, math.nan, "3 %"],
    "metric": ["bleu", None, 3],
    "examples": [0, -1, 2.5],
    "steps": [0, -3, 1.5],
    "read_at": [[-1], 5, "12"],
    "target": [math.nan, "low", math.inf],
    "patience": [0, 0.5],
    "min_delta": [-0.1, math.inf, math.nan],
    "false_stop": [0.0, 1.0, 2],
    "level": [0.0, 1.0],
    "seed": [-1, 0.5],
}


@pytest.mark.parametrize(("name", "value"), [(k, v) for k, values in BAD.items() for v in values])
def test_options_outside_their_range_are_refused(name, value):
    options = {"steps": 10} | {name: value}
    with pytest.raises(errors.InvalidArgumentError, match=r"Expected .*; Received"):
        bc.Validation(**options)


def test_a_stop_needs_to_know_the_last_step():
    with pytest.raises(errors.InvalidArgumentError, match="steps"):
        bc.Validation(false_stop=0.02)


def test_telling_before_any_step_is_refused():
    with pytest.raises(errors.InvalidArgumentError, match=r"validation\.due"):
        bc.Validation().tell(0.5)


@pytest.mark.parametrize("step", [-1, 0.5, "3", None, True])
def test_a_step_is_a_number(step):
    validation = bc.Validation()
    with pytest.raises(errors.InvalidArgumentError, match="step"):
        validation.due(step)


@pytest.mark.parametrize("loss", ["low", [1.0, 2.0], torch.ones(2), object()])
def test_a_training_loss_that_is_no_number_is_refused_and_changes_nothing(loss):
    run = Run(falling, overhead=0.2).play(50)
    before = run.validation.state_dict()
    with pytest.raises(errors.InvalidArgumentError, match="train_loss"):
        run.validation.due(50, train_loss=loss)
    assert same(run.validation.state_dict(), before)


@pytest.mark.parametrize(
    "value",
    ["low", None, torch.ones(3), [0.1, 0.2], torch.ones(64, 1), [["a"]], object()],
)
def test_values_that_fit_no_examples_are_refused_and_change_nothing(value):
    validation = bc.Validation(overhead=1.0, examples=512)
    assert validation.due(0, last=True)
    before, examples = validation.state_dict(), validation.examples
    with pytest.raises((errors.InvalidArgumentError, errors.InvalidShapeError), match="value"):
        validation.tell(value)
    assert same(validation.state_dict(), before)
    assert validation.examples == examples
    validation.tell(torch.ones(len(examples)))
    assert validation.readings == 1


def test_more_values_than_examples_are_refused():
    validation = bc.Validation(overhead=1.0, examples=512)
    validation.due(0, last=True)
    expected = f"{len(validation.examples)} values"
    with pytest.raises(errors.InvalidShapeError, match=expected):
        validation.tell(torch.ones(512))


def test_values_of_examples_without_a_reading_that_is_due_are_refused():
    validation = bc.Validation(overhead=1.0, examples=64)
    validation.due(0, last=True)
    validation.tell(torch.ones(len(validation.examples)))
    with pytest.raises(errors.InvalidArgumentError, match="no examples are due"):
        validation.tell(torch.ones(64))


def test_a_reading_of_the_callers_counts_like_the_others():
    run = Run(falling, overhead=0.05, steps=1000).play(200)
    count = run.validation.readings
    run.clock.seconds += 3.0
    run.validation.tell(0.01)
    assert run.validation.readings == count + 1
    assert run.validation.is_best
    assert run.validation.best.step == 199


def test_a_clock_that_jumps_counts_as_usual(caplog):
    run = Run(falling, overhead=0.1, steps=2000).play(100)
    run.clock.seconds += 1e6
    run.step(100)
    run.clock.seconds -= 2e6
    run.play(300, begin=101)
    assert run.validation._tariff.training.total == pytest.approx(300, rel=0.1)
    assert "jumped" in caplog.text


def test_examples_that_change_between_readings_are_only_noise():
    run = Run(falling, overhead=0.5, examples=400, noise=0.2, steps=500).play(501)
    assert run.validation.best.step > 100


def test_lists_are_read_in_double_precision():
    validation = bc.Validation(1.0, examples=3)
    validation.due(0, last=True)
    values = [0.1, 0.2, 0.3]
    validation.tell([values[example] for example in validation.examples])
    assert validation.history[-1][1] == pytest.approx(0.2, abs=1e-12)
