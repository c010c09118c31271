"""What callbacks of all trainers share: rounds, queries and the guard, without a trainer."""

import copy
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.training import Trained, TrainerOptions
from tests.validation.clock import Clock

SPACE = bc.SearchSpace({"lr": bc.Real(1e-3, 1.0, log=True)})
START = {"lr": 0.1}


class Run:
    """A network in training under a driver, whose decisions are all queries or all skips."""

    def __init__(self, horizon=3, steps=2, queries=True, schedules=False):
        torch.manual_seed(0)
        self.network = nn.Linear(2, 1)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1, momentum=0.9)
        schedulers = ()
        if schedules:
            schedulers = (torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.5),)
        skips = bc.FixedTuner(SPACE, START, horizon=horizon)
        asks = bc.OnlineTuner.as_published(SPACE, horizon=horizon, query=bc.AlwaysQuery())
        self.tuner = asks if queries else skips
        options = TrainerOptions(
            RoundLength(steps=steps), rates="multipliers" if schedules else "values"
        )
        self.driver = Driver(self.tuner, options)
        self.trained = Trained(self.network, self.optimizer, schedulers)

    def step(self, metric=1.0):
        """Train a step; validate if it is time to. Return whether it was."""
        self.driver.before_step()
        due = self.driver.after_step()
        if due:
            self.driver.validated(metric)
        return due


@pytest.fixture
def run():
    begun = Run()
    begun.driver.start(begun.trained)
    return begun


def test_a_round_ends_after_its_steps_and_the_run_with_its_horizon(run):
    assert [run.step() for _ in range(8)] == [False, True] * 3 + [False, False]
    assert len(run.tuner.decisions) == len(run.tuner.observations) == 3


def test_the_last_round_is_queried_whatever_is_decided():
    run = Run(queries=False)
    run.driver.start(run.trained)
    assert [run.step() for _ in range(6)] == [False] * 5 + [True]
    assert [one.round for one in run.tuner.observations] == [2]


TUNERS = {
    "online": bc.OnlineTuner(SPACE, 4, start=START),
    "random": bc.RandomTuner(SPACE, horizon=4),
    "bandit": bc.BanditTuner(bc.SearchSpace({"lr": bc.Choice([0.1, 0.01])}), horizon=4),
}
each_tuner = pytest.mark.parametrize("tuner", TUNERS.values(), ids=TUNERS)


@each_tuner
def test_what_a_query_cost_is_recorded(tuner):
    one = copy.deepcopy(tuner)
    assert one.tell(one.ask(), 0.5, seconds=2.0).seconds == 2.0
    with pytest.raises(InvalidArgumentError, match="seconds"):
        one.tell(one.ask(), 0.5, seconds=-1.0)
    assert len(one.observations) == 1


def test_a_tuner_within_a_share_of_the_clock_is_told_the_seconds_of_its_queries(monkeypatch):
    """Exactly, since a trainer knows when a round of training ends; other records do not change."""
    clock = Clock()
    monkeypatch.setattr(
        "botorch_costly.integrations.driver.time", SimpleNamespace(perf_counter=clock)
    )
    runs = []
    for overhead in (0.2, None):
        run = Run()
        run.tuner = bc.OnlineTuner(SPACE, 60, start=START, overhead=overhead, clock=clock)
        run.driver = Driver(run.tuner, TrainerOptions(RoundLength(steps=2)))
        run.driver.start(run.trained)
        for step in range(120):
            run.driver.before_step()
            clock.seconds += 0.5 + 0.1 * (step % 3)  # the noise of training
            if run.driver.after_step():
                clock.seconds += 0.25
                run.driver.validated(1.0)
        runs.append(run)
    told = [one.seconds for one in runs[0].tuner.observations]
    assert len(told) >= 10
    assert told == pytest.approx([0.25] * len(told))
    assert runs[0].tuner.state_dict()["tariff"]["validation"]["recent"] == pytest.approx([0.25] * 9)
    assert all(one.seconds is None for one in runs[1].tuner.observations)


@each_tuner
def test_any_tuner_that_is_told_gains_is_driven(tuner):
    run, tuner = Run(), copy.deepcopy(tuner)
    run.driver = Driver(tuner, TrainerOptions(RoundLength(steps=2)))
    run.driver.start(run.trained)
    due = [run.step() for _ in range(8)]
    assert sum(due) == len(tuner.observations) > 0
    assert due[-1]
    assert run.optimizer.param_groups[0]["lr"] == tuner.decisions[-1].config["lr"]
    assert tuner.observations[-1].round == 3


def test_a_validation_that_was_not_asked_for_tells_nothing(run):
    run.driver.validated(1.0)  # before training, such as a trainer's check of its loaders
    run.driver.before_step()
    run.driver.validated(1.0)
    assert run.tuner.observations == ()
    run.driver.after_step()
    run.driver.before_step()
    assert run.driver.after_step()
    assert run.driver.is_due
    run.driver.validated(1.0)
    assert not run.driver.is_due
    run.driver.validated(1.0)
    assert len(run.tuner.observations) == 1


@pytest.mark.parametrize("steps", range(1, 8))
def test_a_state_is_continued_within_a_round_after_it_and_when_all_is_over(run, steps):
    for _ in range(steps):
        run.step()
    state = copy.deepcopy(run.driver.state_dict())
    again = Run()
    again.driver.load_state_dict(state)
    assert again.driver.state_dict() == state  # saved before it began
    again.driver.start(again.trained)
    assert [again.step() for _ in range(8 - steps)] == [run.step() for _ in range(8 - steps)]
    assert [o.to_dict() for o in again.tuner.observations] == [
        o.to_dict() for o in run.tuner.observations
    ]


def test_what_is_due_is_due_after_a_resume(run):
    run.step()
    run.driver.before_step()
    assert run.driver.after_step()
    again = Run()
    again.driver.load_state_dict(run.driver.state_dict())
    again.driver.start(again.trained)
    assert again.driver.is_due
    again.driver.validated(1.0)
    assert len(again.tuner.observations) == 1


def test_network_and_optimizer_go_back_from_what_diverged_and_a_scheduler_goes_on():
    run = Run(schedules=True)
    run.driver.start(run.trained)
    (scheduler,) = run.trained.schedulers
    [run.step(metric=1.0) for _ in range(2)]
    run.driver.before_step()
    run.optimizer.step()
    scheduler.step()
    with torch.no_grad():
        run.network.weight.fill_(float("nan"))
    run.driver.after_step()
    run.step(metric=float("nan"))
    assert run.driver.restores == 1
    assert scheduler.last_epoch == 1
    assert run.optimizer.param_groups[0]["lr"] == 0.05
    assert run.network.weight.isfinite().all()


def test_a_step_within_a_round_costs_a_few_calls_and_no_operation():
    """A round of a hundred steps would feel more."""
    run = Run(steps=100)
    run.driver.start(run.trained)
    run.step()
    called = []

    def note(frame, event, argument):
        if event in ("call", "c_call"):
            called.append(frame.f_code.co_name if event == "call" else argument.__name__)

    sys.setprofile(note)
    try:
        run.driver.before_step(run.optimizer)
        run.driver.after_step()
    finally:
        sys.setprofile(None)
    assert [name for name in called if name != "setprofile"] == ["before_step", "after_step"]
    assert run.driver.state_dict()["clock"]["steps"] == 2


def test_an_optimizer_belongs_to_the_driver_that_has_started_last(run):
    other = Driver(bc.FixedTuner(SPACE, START, horizon=3), TrainerOptions(RoundLength(steps=2)))
    run.step()
    other.start(run.trained)
    with pytest.raises(InvalidArgumentError, match="one tuner for an optimizer"):
        run.step()
    other.before_step(run.optimizer)
    run.driver.prepare()
    run.driver.start(run.trained)
    run.step()
    with pytest.raises(InvalidArgumentError, match="one tuner for an optimizer"):
        other.before_step()
