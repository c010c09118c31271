"""Steps that cannot be read take little: no belief, one look at the clock, losses a few at a time."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError
from tests.cases import quick, slow
from tests.validation.clock import Clock, Run, falling


def _slowly(run):
    """Let no step of a run pass."""
    run.validation._timing.may_pass = lambda step, since: False
    return run


@pytest.mark.parametrize(
    "options",
    [
        slow({"steps": 2999}),
        {"read_at": [1001, 2222]},
        slow({"examples": 200, "steps": 2999}),
        {"target": 0.3, "patience": 90},
    ],
)
def test_a_run_reads_the_same_steps_as_one_in_which_none_passes(options):
    fast = Run(falling, overhead=0.05, **options).play(3000)
    slow = _slowly(Run(falling, overhead=0.05, **options)).play(3000)
    assert fast.read == slow.read
    assert fast.validation.best == slow.validation.best
    assert fast.validation.counts == pytest.approx(slow.validation.counts)
    assert fast.validation._training.level == pytest.approx(slow.validation._training.level)


def test_most_late_steps_pass_and_take_one_look_at_the_clock():
    looks = 0

    class Counting(Clock):
        def __call__(self):
            nonlocal looks
            looks += 1
            return self.seconds

    validation, clock = None, Counting()
    validation = bc.Validation(0.01, clock=clock)
    for step in range(20_000):
        clock.seconds += 1.0
        if step == 10_000:
            looks = 0
        if validation.due(step, train_loss=falling(step)):
            clock.seconds += 50.0
            validation.tell(falling(step))
    assert looks <= 1.1 * 10_000


def test_a_reading_of_the_callers_after_steps_that_passed_is_charged_alone():
    clock = Clock()
    validation = bc.Validation(0.01, clock=clock)
    for step in range(10_001):
        clock.seconds += 1.0
        if validation.due(step, train_loss=falling(step)):
            clock.seconds += 5.0
            validation.tell(falling(step))
    before, training = validation.counts["seconds"], validation._tariff.training.total
    for step in range(10_001, 10_004):
        clock.seconds += 1.0
        assert not validation.due(step, train_loss=falling(step))
    clock.seconds += 7.0
    validation.tell(0.1)
    assert validation.counts["seconds"] == pytest.approx(before + 7.0)
    assert validation._tariff.training.total == pytest.approx(training + 3.0)


@pytest.mark.parametrize(
    ("loss", "kind"),
    [(math.nan, torch.tensor), (50.0, float), slow((math.nan, float)), slow((50.0, torch.tensor))],
)
def test_a_spike_among_steps_that_pass_is_read_at_once(loss, kind):
    run = Run(falling, price=1.0, overhead=0.05, steps=20_000).play(10_001)
    for step in range(10_001, 10_006):
        run.clock.seconds += 1.0
        if run.validation.due(step, train_loss=kind(loss)):
            break
    assert run.validation.reason == "the training loss has spiked"


@pytest.mark.parametrize("step", quick([9_000, 10_003, 10_500], 9_000, 10_500))
def test_steps_back_and_far_ahead_do_not_pass_unseen(step):
    run = Run(falling, overhead=0.05, read_at=[10_300]).play(10_003)
    slow = _slowly(Run(falling, overhead=0.05, read_at=[10_300])).play(10_003)
    assert run.step(step) == slow.step(step)
    assert run.validation.history == slow.validation.history


@pytest.mark.parametrize("wrong", [{"step": 10_001.5}, {"step": -1}, {"train_loss": "low"}])
def test_wrong_arguments_are_refused_among_steps_that_pass(wrong):
    run = Run(falling, overhead=0.05).play(10_001)
    with pytest.raises(InvalidArgumentError):
        run.validation.due(**({"step": 10_001} | wrong))
