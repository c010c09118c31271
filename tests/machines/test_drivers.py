"""A driver tunes the network that it was started with, and pays for what it asked for, whatever comes.

The kind of fault: what is in effect, told or saved is not what was decided. A model beside the driver
counts the rounds, the metrics that were due, and the decision that has to be in effect.
"""

import copy
import math
import pickle

import pytest
import torch
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from torch import nn

import botorch_costly as bc
from botorch_costly.errors import CostlyError, HorizonExceededError
from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.training import Trained, TrainerOptions
from tests.machines.abuse import (
    BAD_NUMBERS,
    GARBAGE,
    interrupted,
    refused_or_done,
    run_machine,
    through_a_file,
)
from tests.tuners.online.states import same

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 0.5, log=True), "dropout": bc.Real(0.0, 0.6)})
ARMS = bc.SearchSpace({"lr": bc.Choice([1e-3, 1e-2, 0.1]), "dropout": bc.Choice([0.0, 0.5])})
START = {"lr": 0.1, "dropout": 0.1}
HORIZON, STEPS = 6, 2  # rounds, and steps of each
PUBLISHED = "OnlineTuner as published"
TUNERS = {
    "OnlineTuner": lambda horizon: bc.OnlineTuner(SPACE, horizon, query=bc.BernoulliQuery(0.5)),
    PUBLISHED: lambda horizon: bc.OnlineTuner.as_published(
        SPACE, horizon, query=bc.BernoulliQuery(0.5)
    ),
    "BanditTuner": lambda horizon: bc.BanditTuner(ARMS, horizon=horizon),
    "FixedTuner": lambda horizon: bc.FixedTuner(SPACE, START, horizon=horizon),
}
METRICS = st.floats(0.01, 10) | st.sampled_from([0.0, 1e-30, 1e30, math.nan, math.inf])


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 1), nn.Dropout(0.5))


class DriverMachine(RuleBasedStateMachine):
    """A loop over steps under a driver, whose network is moved by hand so that states differ."""

    tuner, queries_last = staticmethod(TUNERS["FixedTuner"]), True

    @initialize(guard=st.booleans())
    def make(self, guard):
        self.guard, self.horizon = guard, HORIZON
        self.driver = self.driver_of()
        self.runs = False  # whether a round has begun and is not over
        self.count = self.told = 0  # steps of the round, and metrics that were due
        self.due = set()  # rounds
        self.start(self.driver)

    def driver_of(self, changed=()):
        options = TrainerOptions(RoundLength(steps=STEPS), guard=self.guard, changed=changed)
        return Driver(self.tuner(self.horizon), options)

    def start(self, driver, network_of=network):
        """Start a driver with another network and optimizer; they are taken over once it has."""
        new = network_of()
        optimizer = torch.optim.SGD(new.parameters(), lr=0.2, momentum=0.9)
        driver.start(Trained(new, optimizer))
        self.driver, self.network, self.optimizer = driver, new, optimizer

    # -- what is true between any two calls -----------------------------------------------------

    @property
    def decisions(self):
        return self.driver.tuner.decisions

    def has_rounds_left(self):
        return len(self.decisions) < self.horizon

    @invariant()
    def every_query_was_due(self):
        assert len(self.driver.tuner.observations) == self.told
        assert {one.round for one in self.driver.tuner.observations} <= self.due

    @invariant()
    def what_was_decided_is_in_effect(self):
        if not self.driver.config:
            return
        assert self.optimizer.param_groups[0]["lr"] == self.driver.config["lr"]
        assert self.network[1].p == self.driver.config["dropout"]

    def in_effect(self):
        """The rate, dropout and network, which a refusal leaves alone."""
        groups = [{**group, "params": None} for group in self.optimizer.param_groups]
        return copy.deepcopy((groups, self.network[1].p, self.network.state_dict()))

    # -- training ---------------------------------------------------------------------------------

    def before_step(self):
        """Begin a round where one has to begin, and nowhere else."""
        begins, rounds = not self.runs, len(self.decisions)
        ends = not self.has_rounds_left()
        self.driver.before_step()
        self.runs = self.runs or not ends
        assert len(self.decisions) == rounds + (begins and not ends)
        if begins and ends:
            tuner = self.driver.tuner
            best = tuner.best() if tuner.predicts else None
            last = dict(self.decisions[-1].config)
            assert dict(self.driver.config) == (last if best is None else best)
        elif rounds:
            assert dict(self.driver.config) == dict(self.decisions[-1].config)

    def is_over(self):
        return not self.runs and not self.has_rounds_left()

    def after_step(self):
        over = self.is_over()
        with torch.no_grad():
            self.network[0].weight.add_(1.0)
        return self.counted(self.driver.after_step(), over=over)

    def counted(self, due, *, over):
        """Return whether a metric is due, which has to be so where the model has it."""
        if over:
            assert not due
            return due
        self.count = (self.count + 1) % STEPS
        self.runs = self.count > 0
        last = self.decisions[-1]
        # The driver adds no query of its own. That of the last round is the tuner's, and the published
        # tuner has none for its sake: the coin decides there as in any other round.
        assert last.query or last.round < self.horizon - 1 or not self.queries_last
        assert due == (self.count == 0 and last.query)
        if due:
            self.due.add(last.round)
        return due

    def validate(self, metric):
        due, restores = self.driver.is_due, self.driver.restores
        weight = self.network[0].weight.detach().clone()
        self.driver.validated(metric)
        self.told += due
        assert not self.driver.is_due
        went_back = self.driver.restores > restores
        assert due or not went_back
        assert went_back or torch.equal(self.network[0].weight, weight)

    @rule(metrics=st.lists(METRICS, min_size=1, max_size=4))
    def train(self, metrics):
        """Train as many rounds as there are metrics."""
        for metric in metrics:
            for _ in range(STEPS):
                self.step(metric)

    @rule(metric=METRICS)
    def step(self, metric):
        self.before_step()
        if self.after_step():
            self.validate(metric)

    @rule()
    def step_without_a_metric(self):
        """A trainer that skips a validation, as with ``limit_val_batches=0``."""
        self.before_step()
        self.after_step()

    @rule(metric=METRICS)
    def validate_now(self, metric):
        """A trainer's own validation: no query, unless one is due."""
        self.validate(metric)

    @rule(value=st.sampled_from(BAD_NUMBERS))
    def validate_something_bad(self, value):
        before, restores = self.in_effect(), self.driver.restores
        with refused_or_done(self.driver):
            self.validate(value)
            return
        assert self.driver.is_due
        assert self.driver.restores == restores
        assert same(self.in_effect(), before)

    # -- elsewhere --------------------------------------------------------------------------------

    @rule()
    def resume_elsewhere(self):
        """In another process, with states of network and optimizer; the next step is the same."""
        state = through_a_file(self.driver.state_dict())
        weights = through_a_file([self.network.state_dict(), self.optimizer.state_dict()])
        before, old = copy.deepcopy(self.driver.config), self.driver
        other = self.driver_of()
        other.load_state_dict(state)
        assert same(other.state_dict(), state)  # saved before it has begun
        self.start(other)
        self.network.load_state_dict(weights[0])
        self.optimizer.load_state_dict(weights[1])
        assert same(other.tuner.state_dict(), old.tuner.state_dict())
        assert (other.is_due, other.restores) == (old.is_due, old.restores)
        if not self.is_over():
            assert dict(other.config) == dict(before)
            old._trained = None  # it decides without an optimizer, to compare
            old.before_step()
            self.before_step()
            assert other.decision == old.decision
            assert same(other.tuner.state_dict(), old.tuner.state_dict())
        else:
            self.before_step()  # the incumbent is in effect from the next step on

    @rule()
    def fit_another_network(self):
        played = len(self.decisions)
        try:
            self.driver.prepare()
            self.start(self.driver)
        except HorizonExceededError:
            assert played == self.horizon
            self.make(self.guard)
            return
        assert played < self.horizon
        self.count, self.runs = 0, False
        assert not self.driver.is_due
        assert self.driver.config == {}
        assert self.driver.restores == 0

    @rule()
    def train_for_longer(self):
        """A horizon that has changed is refused, unless it is said to have changed."""
        if self.horizon > 2 * HORIZON:
            return
        state, over = through_a_file(self.driver.state_dict()), self.is_over()
        self.horizon += 2
        refusing = self.driver_of()
        refusing.load_state_dict(state)
        with pytest.raises(CostlyError, match="horizon"):
            self.start(refusing)
        assert refusing.tuner.decisions == ()
        weights = copy.deepcopy((self.network.state_dict(), self.optimizer.state_dict()))
        longer = self.driver_of(changed=["horizon"])
        longer.load_state_dict(state)
        self.start(longer)
        self.network.load_state_dict(weights[0])
        self.optimizer.load_state_dict(weights[1])
        if over:
            self.before_step()  # a round begins

    @rule(copied=st.sampled_from([copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))]))
    def copy_the_optimizer(self, copied):
        """A copy of network and optimizer is set as the original is, once a driver has begun with it."""
        state = through_a_file(self.driver.state_dict())
        new, optimizer = copied((self.network, self.optimizer))
        other = self.driver_of()
        other.load_state_dict(state)
        other.start(Trained(new, optimizer))
        self.driver, self.network, self.optimizer = other, new, optimizer

    # -- abuse ------------------------------------------------------------------------------------

    def compare(self, state, before):
        assert same(self.driver.state_dict(), state)
        assert same(self.in_effect(), before)

    @rule(after=st.integers(1, 1500))
    def interrupt_before_a_step(self, after):
        """An interrupted ``before_step`` has begun no round, or can be called again."""
        rounds, begins = len(self.decisions), not self.runs and self.has_rounds_left()
        with interrupted(after):
            self.driver.before_step()
        self.driver.before_step()  # a user runs the cell again
        assert len(self.decisions) == rounds + begins
        self.runs = self.runs or begins

    @rule(after=st.integers(1, 20))
    def interrupt_after_a_step(self, after):
        self.before_step()
        state, over, due = copy.deepcopy(self.driver.state_dict()), self.is_over(), None
        with interrupted(after):
            due = self.driver.after_step()
        if due is None:
            assert same(self.driver.state_dict(), state)
        else:
            self.counted(due, over=over)

    @rule(metric=st.floats(0.01, 10), after=st.integers(1, 150))
    def interrupt_a_validation(self, metric, after):
        """An interrupted ``validated`` has told all or nothing, and is due until it has."""
        if not self.driver.is_due:
            return
        with interrupted(after):
            self.driver.validated(metric)
        if self.driver.is_due:
            self.driver.validated(metric)
        self.told += 1
        assert not self.driver.is_due

    @rule(state=st.sampled_from(GARBAGE), damage=st.sampled_from([[], {"a": 1}, "b", 0.5]))
    def load_garbage(self, state, damage):
        """Refused as it is loaded, or as the driver starts with it; all is as before."""
        mine = self.driver.state_dict()
        for bad in (state, *({**mine, part: damage} for part in mine)):
            fresh = self.driver_of()
            generator = torch.get_rng_state()
            new = network()
            torch.set_rng_state(generator)
            optimizer = torch.optim.SGD(new.parameters(), lr=0.2)
            try:
                fresh.load_state_dict(bad)
                fresh.start(Trained(new, optimizer))
            except CostlyError:
                assert fresh.tuner.decisions == ()
                assert fresh.config == {}
                assert optimizer.param_groups[0]["lr"] == 0.2
                assert torch.equal(torch.get_rng_state(), generator)
            else:
                assert bad is not state, "no state was taken for one"
                damaged = [part for part in mine if bad[part] is damage]
                unread = mine["decision"] is None and damaged[0] in {"reward", "clock"}
                assert unread, f"a damaged state was taken: {damaged} is {damage!r}"


def machine_of(name):
    parts = {"tuner": staticmethod(TUNERS[name]), "queries_last": name != PUBLISHED}
    return type(name, (DriverMachine,), parts)


@pytest.mark.parametrize("name", TUNERS)
def test_a_run_of_three_fits_and_two_longer_horizons_is_queried_as_decided(name):
    """For the published tuner the coin of the last round comes up against a query."""
    machine = machine_of(name)()
    machine.make(guard=False)
    machine.interrupt_after_a_step(after=1)
    machine.fit_another_network()
    machine.resume_elsewhere()
    machine.train_for_longer()
    machine.train_for_longer()
    machine.fit_another_network()
    machine.train(metrics=[1.0] * (machine.horizon - 2))
    machine.every_query_was_due()
    assert machine.is_over()
    assert machine.decisions[-1].query == machine.queries_last


@pytest.mark.parametrize("name", TUNERS)
def test_a_driver_takes_any_order_of_calls(name):
    run_machine(machine_of(name), examples=4, steps=20)


@pytest.mark.slow
@pytest.mark.parametrize("name", TUNERS)
def test_a_driver_takes_many_orders_of_calls(name):
    run_machine(machine_of(name), examples=200, steps=40)
