"""Rounds of steps, epochs and seconds."""

import pytest

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.integrations import RoundClock, RoundLength


class Watch:
    """A clock that a test turns."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


def steps_of_a_round(clock, seconds, watch, limit=1000):
    clock.begin()
    for step in range(1, limit):
        watch.time += seconds
        if clock.step():
            return step
    return limit


def test_rounds_of_steps():
    watch = Watch()
    clock = RoundClock(RoundLength(steps=3), watch)
    assert [steps_of_a_round(clock, 1.0, watch) for _ in range(3)] == [3, 3, 3]


def test_rounds_of_epochs():
    clock = RoundClock(RoundLength(epochs=2))
    clock.begin()
    ends = [clock.step(ends_epoch=step % 4 == 3) for step in range(8)]
    assert ends == [False] * 7 + [True]


@pytest.mark.parametrize("unit", ["steps", "epochs", "seconds"])
def test_an_epoch_may_end_without_a_step_and_steps_may_come_together(unit):
    """The kind: what a trainer counts by, taken for one step of the optimizer each."""
    clock = RoundClock(RoundLength(**{unit: 2}), Watch())
    clock.begin()
    ends = [clock.step(steps=0, ends_epoch=True), clock.step(steps=12, ends_epoch=True)]
    assert ends == [False, True]
    clock.begin()
    assert clock.step(steps=3) == (unit == "steps")


def test_rounds_of_seconds_follow_the_pace():
    watch = Watch()
    clock = RoundClock(RoundLength(seconds=2.0), watch)
    rounds = [steps_of_a_round(clock, pace, watch) for pace in (0.1, 0.1, 0.5, 0.5, 8.0, 8.0)]
    assert rounds == [10, 20, 20, 4, 4, 1]


def test_time_between_rounds_does_not_count():
    watch = Watch()
    clock = RoundClock(RoundLength(seconds=2.0), watch)
    steps_of_a_round(clock, 0.1, watch)
    watch.time += 1000  # validation
    assert steps_of_a_round(clock, 0.1, watch) == 20


def test_processes_agree_on_the_steps_of_a_round():
    clock = RoundClock(RoundLength(seconds=2.0))
    clock.begin(lambda steps: steps - 8)
    assert [clock.step(), clock.step()] == [False, True]


@pytest.mark.parametrize("unit", ["steps", "epochs", "seconds"])
def test_a_state_continues_within_a_round(unit):
    watch = Watch()
    clock, resumed = (RoundClock(RoundLength(**{unit: 3}), watch) for _ in range(2))
    steps_of_a_round(clock, 0.1, watch, limit=11)
    clock.begin()
    clock.step(ends_epoch=True)
    resumed.load_state_dict(clock.state_dict())
    left = 2 if unit != "seconds" else 29
    assert resumed.is_running
    assert [resumed.step(ends_epoch=True) for _ in range(left)] == [False] * (left - 1) + [True]
    assert not resumed.is_running


@pytest.mark.parametrize("unit", ["steps", "epochs", "seconds"])
def test_a_caller_may_count_steps_that_are_not_enough(unit):
    """Three clocks: counted by each step, by a caller where it may, and the second one resumed."""
    length = RoundLength(**{unit: 5})
    clock, counted, resumed = (RoundClock(length, Watch()) for _ in range(3))
    assert not clock.done + 1 < clock.enough  # there is no round
    for one in (clock, counted):
        one.begin()
    for number in range(1, 60):
        steps, ends_epoch = (1, 1, 0, 2)[number % 4], number % 7 == 0
        ends = clock.step(steps=steps, ends_epoch=ends_epoch)
        if not ends_epoch and counted.done + steps < counted.enough:
            counted.done += steps
            assert not ends
        else:
            assert counted.step(steps=steps, ends_epoch=ends_epoch) == ends
        assert counted.state_dict() == clock.state_dict()
        resumed.load_state_dict(counted.state_dict())
        assert (resumed.enough, resumed.is_running) == (counted.enough, counted.is_running)
        if ends:
            clock.begin()
            counted.begin()


def test_a_step_outside_of_a_round():
    with pytest.raises(InvalidArgumentError, match="a round that has begun"):
        RoundClock(RoundLength(steps=1)).step()


@pytest.mark.parametrize(
    "wrong", [{}, {"steps": 1, "epochs": 1}, {"steps": 0}, {"epochs": 0.5}, {"seconds": 0}]
)
def test_lengths_that_are_wrong(wrong):
    with pytest.raises(InvalidArgumentError):
        RoundLength(**wrong)
