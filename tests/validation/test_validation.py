"""When ``Validation`` reads, what it calls the best, and when it would stop."""

import itertools
import math

import pytest
import torch

import botorch_costly as bc
from tests.cases import quick
from tests.validation.clock import Run, falling, turning


@pytest.mark.parametrize(
    ("price", "overhead"),
    quick(
        itertools.product([0.5, 5.0, 40.0], [0.03, 0.2]),
        (0.5, 0.2),
        (5.0, 0.03),
        (40.0, 0.03),
        (40.0, 0.2),
    ),
)
def test_validation_keeps_to_its_share_of_the_clock(overhead, price):
    run = Run(falling, price=price, overhead=overhead, steps=1999).play(2000)
    assert run.validation.counts["share"] <= overhead + price / run.clock.seconds
    assert run.read[-1] == 1999
    if price < 10.0:
        assert len(run.read) >= 6
        assert run.validation.counts["share"] <= overhead


def test_without_a_limit_readings_are_spaced_by_the_belief():
    assert 6 < len(Run(falling, overhead=1.0, steps=999).play(1000).read) < 500


def test_the_best_checkpoint_of_a_run_that_turns_is_near_its_turn():
    run = Run(turning, price=1.0, overhead=0.2, steps=999).play(1000)
    best = run.validation.best
    assert best.step == run.best[-1]
    assert abs(best.step - 400) < 60
    assert best.value == turning(best.step)
    assert best.interval is None


def test_known_steps_and_the_last_one_are_read_whatever_they_cost():
    run = Run(falling, price=500.0, overhead=0.01, read_at=[50, 70]).play(100)
    assert {50, 70} <= set(run.read)
    assert run.step(100, last=True)
    assert run.validation.reason == "the last step"


def test_patience_bounds_the_steps_between_readings_that_are_affordable():
    def flat(step):
        return 1.0 if step else 2.0

    run = Run(flat, price=0.1, overhead=0.5, patience=20).play(400)
    gaps = [later - earlier for earlier, later in zip(run.read, run.read[1:], strict=False)]
    assert max(gaps[2:]) <= 22


def test_a_spike_of_the_training_loss_is_read_soon():
    run = Run(falling, price=1.0, overhead=0.1, steps=2000)
    for step in range(1000):
        run.step(step)
    reasons = []
    for step in range(1000, 1006):
        run.clock.seconds += 1.0
        if run.validation.due(step, train_loss=30.0):
            reasons.append(run.validation.reason)
            run.clock.seconds += 1.0
            run.validation.tell(30.0)
    assert "the training loss has spiked" in reasons


def test_a_training_loss_that_is_not_finite_is_a_spike():
    run = Run(falling, price=1.0, overhead=0.1, steps=2000).play(500)
    run.clock.seconds += 1.0
    assert run.validation.due(500, train_loss=math.nan)
    assert run.validation.reason == "the training loss has spiked"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_failed_reading_is_never_the_best(value):
    validation = bc.Validation(overhead=1.0)
    assert validation.due(0) or validation.due(1)
    validation.tell(value)
    assert validation.has_diverged
    assert validation.best is None
    assert not validation.is_best
    assert validation.due(2, last=True)
    validation.tell(0.5)
    assert validation.is_best
    assert not validation.has_diverged
    assert validation.due(3, last=True)
    validation.tell(value)
    assert validation.best.value == 0.5
    assert validation.counts["failed"] == 2


def test_an_accuracy_is_maximized():
    validation = bc.Validation(1.0, "accuracy")
    for step, value in enumerate((0.3, 0.8, 0.5)):
        assert validation.due(step, last=True)
        validation.tell(value)
        assert validation.is_best is (step < 2)
    assert validation.best.value == 0.8


def test_going_back_forgets_later_readings_and_keeps_the_best():
    run = Run(falling, price=1.0, overhead=0.5, steps=2000).play(300)
    best = run.validation.best
    run.step(100)
    assert run.validation.best.step >= best.step or run.validation.best == best
    for step in range(101, 200):
        run.step(step)
    assert run.validation.best.value <= best.value


def test_the_target_is_seen_soon_after_it_is_reached():
    target = falling(700)
    run = Run(falling, price=10.0, overhead=0.111, steps=1999, target=target).play(2000)
    seen = next(step for step in run.read if falling(step) <= target)
    assert 700 <= seen <= 740
    blind = Run(falling, price=10.0, overhead=0.111, steps=1999).play(2000)
    assert seen <= next(step for step in blind.read if falling(step) <= target)


def test_stops_are_never_by_default_and_come_on_a_plateau():
    def flat(step):
        return falling(min(step, 200))

    silent = Run(flat, price=1.0, overhead=0.2, steps=9999)
    options = {"overhead": 0.2, "steps": 9999, "false_stop": 0.02, "min_delta": 0.01}
    plateau, going = Run(flat, price=1.0, **options), Run(falling, price=1.0, **options)
    stops = (step for step in range(3000) if plateau.step(step) and _tenth_stops(plateau))
    stop = next(stops)
    assert stop > 200
    assert not silent.play(3000).validation.should_stop
    assert not any(going.step(step) and _tenth_stops(going) for step in range(3000))


def _tenth_stops(run):
    """Return whether every tenth reading of a run says that it should stop."""
    return run.validation.readings % 10 == 0 and run.validation.should_stop


def test_no_stop_comes_before_a_step_of_read_at():
    def flat(step):
        return falling(min(step, 200))

    run = Run(flat, overhead=0.2, steps=9999, false_stop=0.02, min_delta=0.01, read_at=[2500])
    for step in range(2500):
        run.step(step)
        assert not run.validation.should_stop


def test_training_is_left_alone():
    before = torch.get_rng_state()
    Run(falling, price=1.0, overhead=0.2, steps=999, examples=500).play(1000)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_default_dtype() == torch.float32


def test_losses_may_be_tensors_with_a_graph():
    validation = bc.Validation(overhead=0.5)
    weight = torch.ones((), requires_grad=True)
    for step in range(30):
        validation.due(step, train_loss=weight * (1 + 1 / (1 + step)))
    weight.backward()
    assert weight.grad == 1.0


@pytest.mark.parametrize("flips", [0, 40])
def test_accuracies_of_examples_are_compared_within_their_bounds(flips):
    """Most examples agree: the first ones may all be equal, which bounds nothing by itself."""
    validation = bc.Validation(1.0, "accuracy", examples=4000)
    generator = torch.Generator().manual_seed(0)
    right = torch.rand(4000, generator=generator) < 0.5
    better = right.clone()
    wrong = (~right).nonzero().squeeze(1)
    better[wrong[: 20 * flips]] = True
    for step, values in enumerate((right, better)):
        assert validation.due(step, last=True)
        while validation.examples:
            validation.tell(values[validation.examples].double())
    assert validation.verdict == ("better" if flips else "undecided")
    low, high = validation.best.interval or (0.0, 1.0)
    assert low <= float(values.double().mean()) <= high
