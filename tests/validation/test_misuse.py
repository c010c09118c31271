"""Loops that ask or tell otherwise than is meant earn one warning each; correct unusual ones none."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.integrations.validation.shared import SharedValidation
from tests.validation.clock import Clock, Run, falling

_ACCURACY = "If they are no loss, declare them as accuracy"


def _loop(told, count=120, *, name=lambda step: step, seconds=(1.0, 2.0), **options):
    """Play a run whose readings are told by a function of the validation and the step."""
    clock = Clock()
    validation = bc.Validation(**{"overhead": 0.2, **options}, clock=clock)
    for step in range(count):
        clock.seconds += seconds[0]
        if validation.due(name(step), train_loss=falling(step)):
            clock.seconds += seconds[1]
            told(validation, step)
    return validation


def _right(validation, step):
    validation.tell(falling(step))


def _messages(caplog):
    return [record.getMessage() for record in caplog.records]


# -- an end that never comes ----------------------------------------------------------------------------


def _until_it_stops(validation, step):
    _right(validation, step)
    validation.should_stop  # noqa: B018


def test_a_run_that_is_to_stop_early_and_cannot_warns_once(caplog):
    _loop(_until_it_stops, steps=119)
    (message,) = _messages(caplog)
    assert "should_stop stays False without false_stop=" in message


def test_a_run_that_may_stop_does_not_warn(caplog):
    _loop(_until_it_stops, steps=119, false_stop=0.02)
    shared = SharedValidation(bc.Validation(0.5))
    for step in range(40):
        if shared.due(step):
            shared.tell(falling(step))
    assert _messages(caplog) == []
    for _ in range(9):  # by the user
        assert not shared.should_stop
    assert len(_messages(caplog)) == 1


# -- readings that are not told ------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"steps": 119}, {"examples": 400}])
def test_a_value_that_is_never_told_warns_once(options, caplog):
    _loop(lambda validation, step: None, **options)
    (message,) = _messages(caplog)
    assert message.startswith("due was True 3 times in a row")
    assert "tell(value)" in message


def test_an_average_that_is_never_told_warns_once(caplog):
    def told(validation, step):
        validation.tell(falling(step))
        validation.due_average()

    _loop(told, count=300)
    (message,) = _messages(caplog)
    assert message.startswith("due_average was True 3 times in a row")


def test_asking_for_an_average_does_not_hide_a_value_that_is_never_told(caplog):
    _loop(lambda validation, step: validation.due_average())
    assert [message[:12] for message in _messages(caplog)] == ["due was True"]


def test_a_shared_validation_that_is_never_told_warns_once(caplog):
    shared = SharedValidation(bc.Validation(0.5))
    for step in range(40):
        shared.due(step)
    assert len(caplog.records) == 1


def test_readings_that_are_left_out_now_and_then_do_not_warn(caplog):
    """Such as two at the start, in a warm-up, or every other one."""
    _loop(lambda validation, step: step > 5 and _right(validation, step))
    due = iter(range(10**6))
    _loop(lambda validation, step: next(due) % 2 and _right(validation, step))
    assert not caplog.records


def test_a_reading_in_shards_that_is_broken_off_does_not_warn(caplog):
    def told(validation, step):
        validation.tell(falling(step) * torch.ones(len(validation.examples)))

    _loop(told, examples=800)
    assert not caplog.records


# -- steps that begin again ----------------------------------------------------------------------------


@pytest.mark.parametrize("batches", [30, 70])
@pytest.mark.parametrize("first", [0, 1])
def test_steps_that_begin_again_warn_once(batches, first, caplog):
    _loop(_right, name=lambda step: first + step % batches)
    (message,) = _messages(caplog)
    assert message.startswith(f"step={first} follows step {first + batches - 1}")
    assert "epoch * batches + batch" in message


def test_going_back_to_a_checkpoint_does_not_warn(caplog):
    run = Run(falling, overhead=0.2).play(200)
    for begin in (100, 150, 40):
        run.play(200, begin=begin)
    again = bc.Validation(0.2, clock=Clock())
    again.load_state_dict(run.validation.state_dict())
    for step in (150, 151, 120, 121):
        again.due(step)
    assert not caplog.records


# -- two values a step ---------------------------------------------------------------------------------


def test_two_metrics_of_a_step_warn_once(caplog):
    def told(validation, step):
        validation.tell(1.0 + falling(step))
        validation.tell(1.0 - falling(step) / 3)

    _loop(told)
    assert "tell(value) was called twice at step" in _messages(caplog)[0]
    assert "one metric" in _messages(caplog)[0]
    assert sum("called twice" in message for message in _messages(caplog)) == 1


def test_averages_shards_and_readings_of_the_callers_do_not_warn(caplog):
    def with_average(validation, step):
        validation.tell(falling(step))
        if validation.due_average():
            validation.tell(falling(step) / 2)

    _loop(with_average)
    run = Run(falling, overhead=0.3, examples=800, noise=0.3).play(300)
    assert run.validation.readings > 5
    own = Run(falling, overhead=0.2)
    for step in range(100):
        own.step(step)
        if step % 10 == 9 and step not in own.read:
            own.validation.tell(falling(step))
    own.validation.tell(falling(99))  # once more at the end
    assert not caplog.records


def test_a_network_that_was_put_back_may_be_read_again(caplog):
    def told(validation, step):
        validation.tell(math.nan if step % 2 else falling(step))
        if validation.has_diverged:
            validation.restored_to(max(step - 1, 0))
            validation.tell(falling(step))

    _loop(told)
    assert not caplog.records


# -- few, long steps -----------------------------------------------------------------------------------


def test_epochs_as_steps_without_a_last_one_warn_once(caplog):
    validation = _loop(_right, 20, seconds=(60.0, 5.0), overhead=0.03)
    assert validation.readings == 0
    (message,) = _messages(caplog)
    assert message.startswith("A step takes 60 s, and the first reading waits for about 33 of them")
    assert "steps=" in message


@pytest.mark.parametrize(
    "options", [{"steps": 19}, {"read_at": [3, 9, 19]}, {"overhead": 1.0}, {"overhead": 0.2}]
)
def test_epochs_whose_readings_are_planned_or_affordable_do_not_warn(options, caplog):
    validation = _loop(_right, 20, seconds=(60.0, 5.0), **{"overhead": 0.03, **options})
    assert validation.readings > 0
    assert not caplog.records


def test_short_steps_wait_for_their_first_reading_without_a_warning(caplog):
    _loop(_right, 20, seconds=(5.0, 5.0), overhead=0.03)
    assert not caplog.records


# -- scores told as losses -----------------------------------------------------------------------------


@pytest.mark.parametrize("top", [1.0, 100.0])
@pytest.mark.parametrize("share", [lambda t: 0.9 - 0.5 / (2 + t), lambda t: 0.1 + 0.002 * t])
def test_a_score_that_is_told_as_a_loss_warns_once(top, share, caplog):
    _loop(lambda validation, step: validation.tell(top * share(step)), 180)
    (message,) = _messages(caplog)
    assert _ACCURACY in message


@pytest.mark.parametrize(
    "loss",
    [
        lambda t: 10 + 0.01 * t,  # overfits slowly
        lambda t: 1 + 0.02 * t,
        lambda t: falling(t) if t < 60 else falling(60) + 0.1 * (t - 60),
        lambda t: 300.0 + t,  # no percentage
        lambda t: 40 + 50 / (2 + t),
    ],
)
def test_a_loss_above_1_that_rises_a_little_or_late_does_not_warn(loss, caplog):
    _loop(lambda validation, step: validation.tell(loss(step)), 180)
    assert not caplog.records


# -- another last step, and a patience that is not kept ------------------------------------------------


def _of_end(caplog):
    return [text for text in _messages(caplog) if "Validation was told steps=" in text]


@pytest.mark.parametrize("options", [{}, {"false_stop": 0.02, "min_delta": 1e-3}])
def test_steps_in_epochs_where_batches_are_asked_for_warn_once(options, caplog):
    _loop(_right, 300, steps=10, **options)
    (message,) = _of_end(caplog)
    assert message.startswith("Step 13 is beyond the end, and Validation was told steps=10")
    assert "in batches or in epochs" in message


@pytest.mark.parametrize("expected", [10, 10_000])
def test_steps_far_from_those_of_the_trainer_warn_once(expected, caplog):
    clock = Clock()
    validation = bc.Validation(0.2, steps=300, clock=clock)
    validation.expect(expected)
    for step in range(20):
        clock.seconds += 1
        if validation.due(step):
            validation.tell(falling(step))
    (message,) = _of_end(caplog)
    assert message.startswith(f"The run is to end with step {expected}")


@pytest.mark.parametrize(("steps", "count"), [(119, 120), (118, 121), (100, 111), (300, 120)])
def test_a_last_step_that_is_off_by_a_few_does_not_warn(steps, count, caplog):
    _loop(_right, count, steps=steps)
    assert not caplog.records


def test_a_trainer_with_about_the_same_last_step_does_not_warn(caplog):
    validation = bc.Validation(0.2, steps=300, clock=Clock())
    for expected in (299, 300, 320, None):
        validation.expect(expected)
        validation.due(1)
    assert not caplog.records


@pytest.mark.parametrize("options", [{}, {"steps": 2000}])
def test_a_patience_that_the_share_does_not_afford_warns_once(options, caplog):
    _loop(_right, 2000, patience=5, overhead=0.03, seconds=(1.0, 2.0), **options)
    (message,) = _messages(caplog)
    assert message.startswith("patience=5 is not kept: a reading takes as long as 2 steps")
    assert "afford one in 65 steps" in message
    assert "false_stop" in message


@pytest.mark.parametrize("overhead", [0.03, 1.0])
def test_a_patience_that_is_kept_or_nearly_so_does_not_warn(overhead, caplog):
    for patience in (40, 100, 500):
        _loop(_right, 2000, patience=patience, overhead=overhead)
    assert not caplog.records
