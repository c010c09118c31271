"""The kind: the state of one fit used in another, and settings of a run that do not fit its tuner.

A driver is all that callbacks share. Here a fit is a loop over steps of an optimizer, which no trainer
runs: resumed, interrupted, repeated on another network, shorter or longer than the tuner expects.
"""

import copy
import logging
import math

import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly.errors import (
    HorizonExceededError,
    InvalidArgumentError,
    StateMismatchError,
)
from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.loggers import LoggedTuner, Logger
from botorch_costly.integrations.rounds import RoundClock
from botorch_costly.integrations.training import Trained, TrainerOptions

SPACE = bc.SearchSpace({"lr": bc.Real(1e-3, 10.0, log=True), "dropout": bc.Real(0.0, 0.6)})
START = {"lr": 1.0, "dropout": 0.1}
STEPS = 2  # a round


class Silent(Logger):
    def log(self, entry):
        pass


def tuner(horizon=4):
    return bc.OnlineTuner(
        SPACE, horizon, start=START, query=bc.AlwaysQuery(), hold=bc.Hold(share=0.0)
    )


def driver_of(tuner, **options):
    return Driver(tuner, TrainerOptions(RoundLength(steps=STEPS), **options))


class Fit:
    """A network in training under a driver."""

    def __init__(self, driver, *, optimizer=None, steps=None, scheduled=False):
        self.driver = driver
        self.network = nn.Sequential(nn.Linear(2, 1), nn.Dropout(0.5))
        self.optimizer = optimizer or torch.optim.SGD(self.network.parameters(), lr=0.1)
        schedulers = [torch.optim.lr_scheduler.LambdaLR(self.optimizer, float)] if scheduled else []
        driver.start(Trained(self.network, self.optimizer, tuple(schedulers)), steps=steps)
        self.metrics = 0

    def train(self, steps, metric=1.0):
        for _ in range(steps):
            self.driver.before_step()
            if self.driver.after_step():
                self.metrics += 1
                self.driver.validated(metric * 0.9**self.metrics)
        return self

    @property
    def rate(self):
        """The rate in effect within a step."""
        seen = []
        hook = self.optimizer.register_step_pre_hook(
            lambda o, *_: seen.append(o.param_groups[0]["lr"])
        )
        self.optimizer.step()
        hook.remove()
        return seen[0]

    @property
    def dropout(self):
        return self.network[1].p


# -- resumed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 3, 8, 9, 14], ids=lambda n: f"after {n} steps")
@pytest.mark.parametrize("rates", ["values", "multipliers"])
def test_what_no_state_holds_is_in_effect_after_a_resume(steps, rates):
    """Within a round, between two, at the horizon and past it; network and optimizer are built anew."""
    whole = Fit(driver_of(tuner(), rates=rates)).train(steps)
    driver = driver_of(tuner(), rates=rates)
    driver.load_state_dict(copy.deepcopy(whole.driver.state_dict()))
    resumed = Fit(driver)
    resumed.optimizer.load_state_dict(copy.deepcopy(whole.optimizer.state_dict()))
    for _ in range(3):
        resumed.train(1)
        whole.train(1)
        assert resumed.dropout == whole.dropout == whole.driver.config["dropout"]
        assert resumed.rate == whole.rate
        assert dict(resumed.driver.config) == dict(whole.driver.config)


def test_dropout_is_in_effect_before_the_first_step_of_a_resume():
    whole = Fit(driver_of(tuner())).train(4 * STEPS)
    driver = driver_of(tuner())
    driver.load_state_dict(whole.driver.state_dict())
    assert Fit(driver).dropout == whole.driver.config["dropout"]


def test_a_state_without_a_round_is_no_state_of_a_guard():
    """Callbacks that try something first, such as a range test, save and load before training."""
    driver = driver_of(tuner())
    driver.prepare()
    driver.load_state_dict(driver.state_dict())
    assert Fit(driver).train(4 * STEPS).metrics == 4


def test_a_run_is_extended_by_a_larger_horizon():
    whole = Fit(driver_of(tuner())).train(4 * STEPS + 3)
    state = copy.deepcopy(whole.driver.state_dict())
    same = driver_of(tuner(7))
    same.load_state_dict(state)
    with pytest.raises(StateMismatchError, match="horizon"):
        Fit(same)
    assert same.tuner.decisions == ()
    assert same.state_dict() == state  # it can be tried again
    longer = driver_of(tuner(7), changed=["horizon"])
    longer.load_state_dict(state)
    Fit(longer).train(4 * STEPS)
    assert [one.round for one in longer.tuner.observations] == list(range(7))
    with pytest.raises(InvalidArgumentError, match="changed"):
        driver_of(tuner(), changed="horizon")


REFUSED = {
    "reward": {},
    "clock": {"clock": {}},
    "decision": {"decision": "{}"},
    "tuner": {"shared": {}},
    "text": {"decision": "b"},
    "no text": {"decision": []},
    "due": {"due": "b"},
    "over": {"over": None},
    "generators": {"generators": []},
    "a generator": {"generators": ["b"]},
    "states of generators": {"generators": [{"torch": torch.zeros(3), "python": 1, "numpy": {}}]},
}


@pytest.mark.parametrize("part", REFUSED)
def test_a_state_that_is_refused_changes_nothing(part):
    state = Fit(driver_of(tuner())).train(3).driver.state_dict()
    driver = driver_of(tuner(), metric="accuracy" if part == "reward" else "loss")
    driver.load_state_dict({**state, **REFUSED[part]})
    network = nn.Linear(2, 1)
    generator = torch.get_rng_state()
    with pytest.raises(StateMismatchError):
        driver.start(Trained(network, torch.optim.SGD(network.parameters(), lr=0.1)))
    assert driver.tuner.decisions == ()
    assert driver.config == {}
    assert torch.equal(torch.get_rng_state(), generator)


NOT_DRIVEN = {
    "twins with a session": lambda: session(),
    "a log of them": lambda: LoggedTuner(session(), Silent()),
    "a population": lambda: bc.PopulationTuner(SPACE, 4, start=START),
    "curves": lambda: bc.CurveOptimizer(SPACE, 4),
    "no tuner": lambda: None,
}


def session():
    return bc.Session.of(bc.TwinTuner(SPACE, 20, start=START), nn.Linear(1, 1))


@pytest.mark.parametrize("kind", NOT_DRIVEN)
def test_an_optimizer_that_is_not_driven_is_refused_at_the_door(kind):
    with pytest.raises(InvalidArgumentError, match=r"told gains|OnlineTuner|without a session"):
        driver_of(NOT_DRIVEN[kind]())


# -- another fit -----------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize("steps", [3, 4, 5])
def test_in_another_fit_a_round_begins_and_the_first_query_has_no_reward(guard, steps, caplog):
    driver = driver_of(tuner(8), guard=guard)
    first = Fit(driver).train(steps)
    told = len(driver.tuner.observations)
    with caplog.at_level(logging.WARNING):
        second = Fit(driver).train(2 * STEPS, metric=100.0)  # a network that is much worse
    assert "before this fit" in caplog.text
    rewards = [one.reward for one in driver.tuner.observations]
    assert rewards[told] is None
    assert rewards[told + 1] == pytest.approx(-math.log(0.9))
    assert driver.restores == 0
    assert second.dropout == driver.config["dropout"]
    assert first.network is not second.network


def test_a_guard_never_brings_back_the_network_of_another_fit():
    driver = driver_of(tuner(8))
    Fit(driver).train(STEPS)
    second = Fit(driver)
    weight = second.network[0].weight.detach().clone()
    second.train(STEPS, metric=math.nan)
    assert torch.equal(second.network[0].weight, weight)


@pytest.mark.parametrize("anew", [True, False], ids=["another callback", "the same callback"])
@pytest.mark.parametrize("within", [LoggedTuner, None])
def test_a_fit_without_a_round_left_is_refused(anew, within):
    tuned = tuner() if within is None else within(tuner(), Silent())
    driver = driver_of(tuned)
    Fit(driver).train(4 * STEPS)
    with pytest.raises(HorizonExceededError, match="all 4 rounds played"):
        Fit(driver_of(tuned) if anew else driver)


def test_a_tuner_without_a_horizon_is_never_done():
    driver = driver_of(tuner(None))
    Fit(driver).train(4 * STEPS)
    assert Fit(driver).train(4 * STEPS).metrics == 4


def test_a_metric_that_was_due_in_another_fit_is_not_told():
    driver = driver_of(tuner())
    first = Fit(driver)
    for _ in range(STEPS):
        driver.before_step()
        driver.after_step()
    assert driver.is_due
    Fit(driver)
    assert not driver.is_due
    driver.validated(1.0)
    assert driver.tuner.observations == ()
    assert first.metrics == 0


def test_two_tuners_on_one_optimizer_are_refused_before_a_step():
    one, other = driver_of(tuner()), driver_of(tuner())
    first = Fit(one)
    Fit(other, optimizer=first.optimizer)
    with pytest.raises(InvalidArgumentError, match="one tuner for an optimizer"):
        one.before_step()
    assert one.tuner.decisions == ()
    Fit(one, optimizer=first.optimizer).train(STEPS)  # the first one alone is well


@pytest.mark.parametrize("prepares", [True, False])
def test_another_tuner_may_take_over_the_optimizer_of_an_earlier_fit(prepares):
    driver, other = driver_of(tuner(None)), driver_of(tuner())
    earlier = Fit(driver).train(STEPS)
    if prepares:
        driver.prepare()
    later = Fit(driver).train(1)
    Fit(other, optimizer=earlier.optimizer).train(STEPS)
    later.train(STEPS)
    Fit(driver_of(tuner()), optimizer=earlier.optimizer)
    with pytest.raises(InvalidArgumentError, match="one tuner for an optimizer"):
        other.before_step()


def test_a_displaced_tuner_stays_so_when_an_earlier_optimizer_is_taken_over():
    driver, first, second = driver_of(tuner(None)), driver_of(tuner()), driver_of(tuner())
    earlier, later = Fit(driver), Fit(driver)
    Fit(first, optimizer=later.optimizer)
    Fit(second, optimizer=earlier.optimizer)
    with pytest.raises(InvalidArgumentError, match="one tuner for an optimizer"):
        driver.before_step()


# -- the horizon and the length of the run ---------------------------------------------------------


@pytest.mark.parametrize("within", [LoggedTuner, None])
def test_after_the_horizon_the_incumbent_stays_and_a_warning_says_so_once(within, caplog):
    tuned = tuner()
    fit = Fit(driver_of(tuned if within is None else within(tuned, Silent())))
    for metric in (1.0, 0.5, 0.4, 3.0):  # the last one is the worst
        fit.train(STEPS, metric)
    best = tuned.best()
    assert best != dict(tuned.decisions[-1].config)
    with caplog.at_level(logging.WARNING):
        fit.train(3 * STEPS)
    assert dict(fit.driver.config) == best
    assert (fit.dropout, fit.rate) == (best["dropout"], best["lr"])
    assert len(caplog.records) == 1
    assert "has no round left" in caplog.text


def test_a_metric_of_the_last_round_that_comes_late_decides_on_the_incumbent():
    tuned = tuner()
    fit = Fit(driver_of(tuned))
    for metric in (1.0, 0.9, 0.8):
        fit.train(STEPS, metric)
    for _ in range(STEPS + 1):  # the last round, whose metric is due, and a step after it
        fit.driver.before_step()
        fit.driver.after_step()
    assert fit.driver.is_due
    earlier = dict(fit.driver.config)
    fit.driver.validated(1e-3)
    fit.train(1)
    assert dict(fit.driver.config) == tuned.best() != earlier
    assert fit.rate == fit.driver.config["lr"]


def test_without_an_incumbent_the_last_configuration_stays(caplog):
    with caplog.at_level(logging.WARNING):
        fit = Fit(driver_of(bc.RandomTuner(SPACE, horizon=2)), steps=4 * STEPS)
        assert "trained with the last configuration" in caplog.text
        fit.train(4 * STEPS)
    assert fit.driver.config == fit.driver.tuner.decisions[-1].config
    assert "the last configuration" in caplog.text


@pytest.mark.parametrize("published", [False, True])
def test_a_longer_run_of_several_fits_is_measured_as_its_tuner_decides(published):
    """The kind: a query that a driver loses or adds as a fit or a horizon changes."""
    make = bc.OnlineTuner.as_published if published else bc.OnlineTuner

    def driver(horizon, state=None):
        tuned = make(SPACE, horizon, query=bc.BernoulliQuery(0.5), seed=1)
        driver = driver_of(tuned, guard=False, changed=["horizon"])
        if state is not None:
            driver.load_state_dict(copy.deepcopy(state))
        return driver

    first = driver(6)
    Fit(first).train(1)
    Fit(first).train(1)  # the round of another fit is another one
    longer = driver(10, first.state_dict())
    Fit(longer)
    fit = Fit(longer).train(8 * STEPS)
    decisions = longer.tuner.decisions
    assert len(decisions) == 10
    assert [one.round for one in decisions[2:] if one.query] == [
        one.round for one in longer.tuner.observations
    ]
    assert fit.metrics == len(longer.tuner.observations) > 0
    assert decisions[-1].query is not published  # the coin comes up against both


STEPS_OF_A_RUN = {
    "as long": (8, ""),
    "a round and a half longer": (11, "the run has 5"),
    "less than a round longer": (9, ""),
    "much longer": (80, "the run has 40"),
    "shorter": (4, "still explores"),
    "less than a round shorter": (7, ""),
    "shorter than a round": (1, "ends before its first round"),
    "without an end": (math.inf, ""),
    "unknown": (None, ""),
}


@pytest.mark.parametrize("case", STEPS_OF_A_RUN)
def test_a_horizon_that_does_not_fit_the_run_earns_one_warning_at_the_start(case, caplog):
    steps, said = STEPS_OF_A_RUN[case]
    with caplog.at_level(logging.WARNING):
        Fit(driver_of(tuner()), steps=steps)
    assert said in caplog.text
    assert len(caplog.records) == (said != "")


@pytest.mark.parametrize(("steps", "of", "said"), [(7, 8, 1), (5, None, 1), (6, 6, 0), (1, 1, 0)])
def test_steps_at_the_end_that_no_query_has_seen_are_said(steps, of, said, caplog):
    """The kind: training that no query has seen, when nothing comes after it. One warning suffices."""
    fit = Fit(driver_of(tuner(4 if of == 8 else 3)), steps=of).train(steps)
    caplog.clear()
    fit.driver.finish()
    assert ["last steps (1) are not measured" in one for one in caplog.messages] == said * [True]


@pytest.mark.parametrize("done", range(1, 8))
def test_a_resumed_run_that_fits_earns_no_warning(done, caplog):
    whole = Fit(driver_of(tuner())).train(done)
    driver = driver_of(tuner())
    driver.load_state_dict(whole.driver.state_dict())
    with caplog.at_level(logging.WARNING):
        Fit(driver, steps=8 - done)
    assert caplog.text == ""


def test_rounds_that_are_left_are_counted_in_each_unit():
    assert RoundClock(RoundLength(steps=5)).rounds_in(20, None) == 4
    assert RoundClock(RoundLength(epochs=2)).rounds_in(100, 7.0) == 3.5
    assert RoundClock(RoundLength(epochs=2)).rounds_in(100, None) is None
    assert RoundClock(RoundLength(seconds=2)).rounds_in(100, 7.0) is None
    running = RoundClock(RoundLength(epochs=2))
    running.begin()
    running.step(ends_epoch=True)
    assert running.rounds_in(None, 7.0) == 3
