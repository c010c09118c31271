"""The last step that a trainer estimates: it is read, and its price is put aside."""

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError
from tests.validation.clock import Run, falling

STEPS = 400


def _read(expected=None, **options):
    run = Run(falling, overhead=0.02, price=30.0, **options)
    if expected is not None:
        run.validation.expect(expected)
    return run.play(STEPS + 1).read


def test_an_expected_last_step_is_that_of_the_option():
    assert _read(STEPS) == _read(steps=STEPS)
    assert _read(STEPS)[-1] == STEPS
    assert _read(STEPS) != _read()


def test_the_option_goes_before_the_expectation():
    assert _read(77, steps=STEPS) == _read(steps=STEPS)
    validation = bc.Validation(steps=STEPS)
    validation.expect(77)
    assert validation.steps == STEPS


def test_a_length_that_changes_is_followed():
    run = Run(falling, overhead=0.02)
    run.validation.expect(100)
    run.play(50)
    run.validation.expect(150)
    run.play(200, begin=50)
    assert 100 not in run.read
    assert 150 in run.read
    run.validation.expect(None)
    assert run.validation.steps is None


def test_a_state_holds_it_and_one_without_it_loads():
    validation, resumed = bc.Validation(), bc.Validation()
    validation.expect(STEPS)
    state = validation.state_dict()
    resumed.load_state_dict(state)
    assert resumed.steps == STEPS
    del state["timing"]["expected"]  # as in earlier versions
    resumed.load_state_dict(state)
    assert resumed.steps is None


@pytest.mark.parametrize("steps", [0, -1, 2.5, "12"])
def test_a_last_step_that_is_none_is_refused(steps):
    validation = bc.Validation()
    validation.expect(7)
    with pytest.raises(InvalidArgumentError, match="steps"):
        validation.expect(steps)
    assert validation.steps == 7
