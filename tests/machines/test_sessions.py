"""A session goes back exactly when its tuner counts on it, whatever comes in between.

The kind of fault: a decision that the tuner counts on and that was not carried out.
"""

import copy
import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import botorch_costly as bc
from botorch_costly.errors import HorizonExceededError, RestoreError
from tests.machines.abuse import (
    BAD_NUMBERS,
    GARBAGE,
    interrupted,
    refused_or_done,
    run_machine,
    through_a_file,
)
from tests.machines.path import Path
from tests.tuners.online.states import same
from tests.tuners.twins.running import RATE

LOSSES = st.floats(1e-3, 1e3) | st.just(float("nan")) | st.just(float("inf"))
HORIZON = 60


class SessionMachine(RuleBasedStateMachine):
    """A model beside the session: the path that each kept state had."""

    @initialize(seed=st.integers(0, 5))
    def make(self, seed):
        self.seed = seed
        self.path = Path()
        self.session = self.session_of(self.path)
        self.kept = {}
        self.decision = None  # trained, and not told yet

    def session_of(self, path):
        return bc.Session.of(bc.TwinTuner(RATE, HORIZON, start={"lr": 1e-3}, seed=self.seed), path)

    def has_rounds_left(self):
        return len(self.session.tuner.decisions) < HORIZON

    def carried_out(self, decision, before):
        """Assert that the parts are where the decision wants them, and train the round."""
        if decision.keep is not None:
            self.kept[decision.keep] = before
        wanted = before if decision.restore is None else self.kept[decision.restore]
        assert self.path.rounds == wanted
        self.path.train(decision.round)
        self.decision = decision

    @rule()
    def play(self):
        if not (self.has_rounds_left()):
            return
        before = self.path.rounds
        self.carried_out(self.session.ask(), before)

    @rule(losses=st.lists(LOSSES, min_size=1, max_size=12))
    def play_and_tell(self, losses):
        if not (self.has_rounds_left()):
            return
        for loss in losses:
            if self.has_rounds_left():
                self.play()
                self.tell(loss)

    @rule(loss=LOSSES)
    def tell(self, loss):
        if not (self.decision is not None):
            return
        if self.decision is not None:
            self.session.tell(self.decision, loss)
            self.decision = None

    @rule(value=st.sampled_from(BAD_NUMBERS))
    def tell_something_bad(self, value):
        if not (self.decision is not None):
            return
        with refused_or_done(self.session):
            self.session.tell(self.decision, value)
            self.decision = None

    @rule()
    def resume_elsewhere(self):
        path = Path()
        path.load_state_dict(through_a_file(self.path.state_dict()))
        session = self.session_of(path)
        session.load_state_dict(through_a_file(self.session.state_dict()))
        assert same(session.state_dict(), self.session.state_dict())
        self.path, self.session = path, session

    @rule(after=st.integers(1, 400))
    def interrupt_an_ask(self, after):
        """Whether it was interrupted or not, what comes next is carried out on the right state."""
        if not (self.has_rounds_left()):
            return
        before, state = self.path.rounds, copy.deepcopy(self.session.state_dict())
        decision = None
        with interrupted(after):
            decision = self.session.ask()
        if decision is not None:
            self.carried_out(decision, before)
            return
        assert same(self.session.state_dict(), state)
        self.path.rounds = before  # a user repeats the ask on the network as it is

    @rule()
    def a_part_does_not_go_back(self):
        if not (self.has_rounds_left()):
            return
        before, state = self.path.rounds, copy.deepcopy(self.session.state_dict())
        self.path.fails = True
        try:
            decision = self.session.ask()
        except RestoreError:
            assert same(self.session.state_dict(), state)
            self.path.fails = False
        else:
            self.path.fails = False
            self.carried_out(decision, before)

    @rule(state=st.sampled_from(GARBAGE), damage=st.sampled_from([None, [], {"a": 1}, "b", 0.5]))
    def load_garbage(self, state, damage):
        mine = self.session.state_dict()
        damaged = [{**mine["tuner"], part: damage} for part in mine["tuner"]]
        for bad in (state, *({**mine, "tuner": one} for one in (*damaged, damage))):
            with refused_or_done(self.session):
                self.session.load_state_dict(bad)
                assert same(bad, mine), "a damaged state was taken"

    @rule()
    def ask_beyond_the_horizon(self):
        if self.has_rounds_left():
            return
        with refused_or_done(self.session), pytest.raises(HorizonExceededError):
            self.session.ask()


def test_a_session_takes_any_order_of_calls():
    run_machine(SessionMachine, examples=15, steps=25)


def test_metrics_that_never_come_leave_a_state_to_go_back_to():
    """All rates that are trained for longer count as diverged, after the first state was dropped."""
    machine = SessionMachine()
    machine.make(seed=0)
    machine.play()
    for loss in (math.nan, math.nan, 1.0, 1.0, 1.0, 1.0):
        machine.play()
        machine.tell(loss)
    for _ in range(HORIZON - 7):
        machine.play()


@pytest.mark.slow
def test_a_session_takes_many_orders_of_calls():
    run_machine(SessionMachine, examples=300, steps=50)
