"""An average of weights is read as one more checkpoint, which the curve of the run leaves out."""

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError
from tests.validation.clock import Clock, falling

STEPS = 400


def _played(gain, *, examples=None, overhead=0.05, steps=STEPS, until=STEPS):
    """Return a run whose average is better by a factor, and how often the average was read."""
    clock, read = Clock(), 0
    validation = bc.Validation(overhead, examples=examples, steps=steps, clock=clock)

    def tell(loss):
        if examples is None:
            clock.seconds += 2.0
            validation.tell(loss)
        while wanted := validation.examples:
            clock.seconds += 2.0 * len(wanted) / examples
            spread = 1 + 0.1 * torch.tensor(wanted, dtype=torch.float64) / examples
            validation.tell(loss * spread)

    for step in range(until + 1):
        clock.seconds += 1.0
        if validation.due(step, train_loss=falling(step)):
            tell(falling(step))
            if validation.due_average():
                tell(falling(step) / gain)
                read += 1
    return validation, read


@pytest.mark.parametrize("examples", [None, 500])
def test_an_average_that_is_better_is_the_best_checkpoint(examples):
    validation, read = _played(2.0, examples=examples)
    assert read > 0
    assert validation.best.averaged
    assert validation.best.step == STEPS
    assert validation.is_best


@pytest.mark.parametrize("examples", [None, 500])
def test_an_average_that_is_worse_is_not(examples):
    validation, read = _played(0.5, examples=examples)
    assert read > 0
    assert not validation.best.averaged
    assert not validation.is_best
    if examples is not None:
        assert validation.verdict == "worse"


def test_averages_are_no_part_of_the_curve_and_keep_to_the_share():
    validation, read = _played(2.0)
    assert validation.readings == len(validation.history) + read
    assert all(value == falling(step) for step, value in validation.history)
    assert validation.counts["share"] <= 0.05


def test_the_average_of_the_last_step_is_read_in_any_case():
    validation, read = _played(2.0, overhead=1e-6)
    assert read == 1
    assert validation.best == (STEPS, falling(STEPS) / 2, None, None, True)


def test_no_average_is_due_without_a_reading_of_the_step():
    clock = Clock()
    validation = bc.Validation(clock=clock)
    with pytest.raises(InvalidArgumentError, match="due_average"):
        validation.due_average()
    clock.seconds += 1.0
    validation.due(0)
    clock.seconds += 2.0
    validation.tell(1.0)
    clock.seconds += 1.0
    assert not validation.due(1)
    assert not validation.due_average()
    assert validation.examples == []


def test_a_failed_average_counts_and_leaves_the_best_checkpoint():
    validation, _ = _played(2.0, until=STEPS - 1)
    best, failed = validation.best, validation.counts["failed"]
    validation.due(STEPS, last=True)
    validation.tell(best.value + 1)
    assert validation.due_average()
    validation.tell(float("nan"))
    assert validation.best == best
    assert validation.counts["failed"] == failed + 1
    assert not validation.has_diverged


def test_a_resumed_run_still_knows_that_its_best_checkpoint_is_an_average():
    validation, _ = _played(2.0)
    resumed = bc.Validation(0.05, steps=STEPS)
    resumed.load_state_dict(validation.state_dict())
    assert resumed.best == validation.best
    old = validation.state_dict()
    old["history"]["best"] = old["history"]["best"][:2]  # a state of the version without averages
    del old["timing"]["averages"], old["tariff"]["watching"]
    resumed.load_state_dict(old)
    assert not resumed.best.averaged


@pytest.mark.parametrize("work", [0.0, 0.5])
def test_seconds_before_the_question_are_training(work):
    clock = Clock()
    validation = bc.Validation(0.05, steps=STEPS, clock=clock)
    for step in range(STEPS + 1):
        clock.seconds += 1.0 - work
        is_due = validation.due(step)
        if is_due:
            clock.seconds += 2.0
            validation.tell(falling(step))
        clock.seconds += work  # such as an update of the average, or a file of the checkpoint
        if validation.due_average():
            clock.seconds += 2.0
            validation.tell(falling(step) / 2)
    assert validation.readings >= 8
    assert validation.counts["share"] <= 0.05


def _at_the_end():
    validation, _ = _played(2.0, overhead=1e-6, until=STEPS - 1)
    validation.due(STEPS, last=True)
    validation.tell(1.0)
    return validation


def test_the_average_of_the_last_step_is_due_in_a_resumed_run():
    resumed = bc.Validation(1e-6, steps=STEPS)
    resumed.load_state_dict(_at_the_end().state_dict())
    assert resumed.due_average()
    earlier, _ = _played(2.0, overhead=1e-6, until=STEPS - 1)
    earlier.tell(1.0)
    resumed.load_state_dict(earlier.state_dict())
    assert not resumed.due_average()


@pytest.mark.parametrize(
    "then",
    [
        lambda validation: validation.tell(0.5),
        lambda validation: validation.restored_to(STEPS),
        lambda validation: validation.load_state_dict(validation.state_dict()),
    ],
)
def test_what_is_told_without_an_average_that_is_due_is_a_reading_of_the_run(then):
    validation = _at_the_end()
    assert validation.due_average()
    then(validation)
    validation.tell(0.1)
    assert validation.history[-1] == (STEPS, 0.1)
    assert not validation.best.averaged


def test_what_is_told_although_no_average_is_due_is_a_reading_of_the_run():
    validation, _ = _played(2.0, overhead=1e-6, until=STEPS - 1)
    assert not validation.due_average()
    validation.tell(0.1)
    assert validation.history[-1] == (STEPS - 1, 0.1)
    assert not validation.best.averaged


def test_a_better_average_does_not_stop_a_run_that_improves():
    clock, generator = Clock(), torch.Generator().manual_seed(0)
    options = {"false_stop": 0.05, "min_delta": 0.001}
    validation = bc.Validation(0.2, steps=STEPS, clock=clock, **options)
    for step in range(STEPS):
        clock.seconds += 1.0
        loss = 1 + 5 / (1 + step) ** 0.5
        if validation.due(step):
            clock.seconds += 1.0
            validation.tell(1.2 * loss + 0.002 * torch.randn((), generator=generator).item())
            if validation.due_average():
                clock.seconds += 1.0
                validation.tell(loss)
        assert not validation.should_stop
    assert validation.best.averaged
